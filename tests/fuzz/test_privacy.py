"""What the fuzzer of privacy finds: nothing in a few problems, and each kind of broken promise."""

from dataclasses import replace

import numpy as np
import pytest

from bayescascade import PrivateAdditiveNoiseModel
from bayescascade.methods.causal import private, protection as directions
from bayescascade.methods.rados import private_rows, protection, rados, releases
from bayescascade.privacy import accounting, mechanisms
from tests.fuzz.privacy import CHECKS
from tests.fuzz.running import search

MANY = {"a feature of a row": 20, "a row of sums": 30, "a row of a direction": 60}
"""Problems of checks that no other quick test does."""


@pytest.mark.parametrize("name", CHECKS)
def test_nothing_is_found(name):
    assert search({name: CHECKS[name]}, 1, problems=range(MANY.get(name, 2))).found == []


def finds(name, words="", n=60):
    """Return whether a check finds something within a few problems, and says what."""
    return any(
        words in found
        for number in range(n)
        for found in search({name: CHECKS[name]}, 2, problems=[number]).found
    )


def test_a_reading_of_the_rows_is_found(monkeypatch):
    """Units of the protected column as the rows have them, as they once were."""
    real = private_rows.read_hiding

    def learned(*args, **options):
        rows, place = real(*args, **options)
        center, units = rows.reading.center.copy(), rows.reading.units.copy()
        center[place] = rows.matrix[:, place].mean()
        reading = replace(rows.reading, center=center, units=units)
        return replace(rows, reading=reading), place

    monkeypatch.setattr(rados, "read_hiding", learned)
    assert finds("a feature of a row", "tells neighbors apart")


def test_classes_of_the_rows_are_found(monkeypatch):
    real = private_rows.codes_of_two

    def strict(label, cells, levels):
        codes = real(label, cells, levels)
        if label == "y" and len(set(codes.tolist())) < 2:
            raise private_rows.DataError("y must have at least two classes, got one class")
        return codes

    monkeypatch.setattr(private_rows, "codes_of_two", strict)
    assert finds("a row of sums", "tells neighbors apart")


def times(factor):
    """Return a decorator that multiplies a function's result."""
    return lambda real: lambda *given: factor * real(*given)


BROKEN = {  # by check: what of whom is replaced, made of the real one, and what is said
    "a row of sums": (releases, "clipped", lambda _: lambda rows: rows.edges(), ""),
    "scores by a test row": (directions, "by_test_row", times(0.5), "must be at most"),
    "distances to instability": (
        directions, "iqr_distance", lambda _: lambda *_: 9, "the change of stable"
    ),
    "laws of coordinates": (protection, "coordinate_delta", times(0.5), "the delta of a coordi"),
    "laws of releases": (mechanisms, "at_least", times(0.1), "epsilon must be"),
    "ledgers": (
        accounting.PrivacyLedger, "_total",
        lambda real: lambda ledger, entries: real(ledger, entries[-3:]), "",
    ),
    "merged sums": (
        rados, "released_together",
        lambda real: lambda promises, **_: real(promises, same_rows=False), "must promise at least",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n == "scores by a test row")) for n in BROKEN],
)
def test_broken_promises_are_found(name, monkeypatch):
    """Rows not clipped, half of a bound, a tenth of the noise, a ledger that forgets, ..."""
    owner, attribute, broken, words = BROKEN[name]
    monkeypatch.setattr(owner, attribute, broken(getattr(owner, attribute)))
    assert finds(name, words, n=150)


def test_noise_for_half_a_row_is_found(monkeypatch):
    """The whole way of a direction, from rows to what mechanisms are asked."""
    real = private.laplace
    monkeypatch.setattr(
        private, "laplace", lambda values, most, *args, **options: real(
            values, most / 5, *args, **options
        )
    )  # fmt: skip
    real_of = private.Protection.sensitivity
    monkeypatch.setattr(private.Protection, "sensitivity", lambda self, n: 0.1 * real_of(self, n))
    assert finds("a row of a direction", "inputs moved by", n=150)


def test_copies_with_a_budget_of_their_own_are_found(monkeypatch):
    """As when a pickled model lost its ledger, and its clone paid from none."""

    def forgetful(model, *_):
        model._is_spent = True

    monkeypatch.setattr(PrivateAdditiveNoiseModel, "_spend", forgetful)
    assert finds("budgets of models", "fits must cost", n=120)


def test_problems_are_repeated_by_their_number():
    """A find names a problem, which is then the same again."""
    seen = []
    checks = {"a": lambda problem: seen.append(problem.rng.random()), "b": str}
    search(checks, 5, problems=range(7))
    search(checks, 5, problems=[4])
    assert seen[2] == seen[-1]
    assert len(np.unique(seen)) == 4
