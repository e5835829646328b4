"""What the fuzzer of privacy finds: nothing in a few problems, and each kind of broken promise."""

from dataclasses import replace

import numpy as np
import pytest

from bayescascade import PrivateAdditiveNoiseModel
from bayescascade.methods.causal import private, protection as directions
from bayescascade.methods.rado import private_rows, protection, releases
from bayescascade.privacy import accounting, mechanisms
from tests.fuzz.privacy import CHECKS
from tests.fuzz.running import search

MANY = {"a feature of a row": 60, "a row of sums": 30, "a row of a direction": 60}
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

    monkeypatch.setattr("bayescascade.methods.rado.rados.read_hiding", learned)
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


def test_rows_that_are_not_clipped_are_found(monkeypatch):
    monkeypatch.setattr(releases, "clipped", lambda rows: rows.edges())
    assert finds("a row of sums")


@pytest.mark.slow
def test_a_bound_too_low_is_found(monkeypatch):
    """Halved: that of kendall is tight; others are nearly met."""
    real = directions.by_test_row
    monkeypatch.setattr(directions, "by_test_row", lambda *args: 0.5 * real(*args))
    assert finds("scores by a test row", "must be at most")


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


def test_a_distance_of_the_rows_alone_is_found(monkeypatch):
    monkeypatch.setattr(directions, "iqr_distance", lambda *_: 9)
    assert finds("distances to instability", "the change of stable", n=150)


def test_a_law_of_another_shift_is_found(monkeypatch):
    real = protection.coordinate_delta
    monkeypatch.setattr(protection, "coordinate_delta", lambda *args: 0.5 * real(*args))
    assert finds("laws of coordinates", "the delta of a coordinate")


def test_a_tenth_of_the_noise_is_found(monkeypatch):
    real = mechanisms.at_least
    monkeypatch.setattr(mechanisms, "at_least", lambda number: real(number) / 10)
    assert finds("laws of releases", "epsilon must be", n=25)


def test_a_ledger_that_forgets_is_found(monkeypatch):
    real = accounting.PrivacyLedger._total
    monkeypatch.setattr(
        accounting.PrivacyLedger, "_total", lambda self, entries: real(self, entries[-3:])
    )
    assert finds("ledgers", n=120)


def test_copies_with_a_budget_of_their_own_are_found(monkeypatch):
    """As when a pickled model lost its ledger, and its clone paid from none."""

    def forgetful(model, *_):
        model._is_spent = True

    monkeypatch.setattr(PrivateAdditiveNoiseModel, "_spend", forgetful)
    assert finds("budgets of models", "fits must cost", n=120)


def test_a_merge_of_the_weakest_promise_is_found(monkeypatch):
    real = protection.released_together
    monkeypatch.setattr(
        "bayescascade.methods.rado.rados.released_together",
        lambda promises, **_: real(promises, same_rows=False),
    )
    assert finds("merged sums", "must promise at least", n=120)


def test_problems_are_repeated_by_their_number():
    """A find names a problem, which is then the same again."""
    seen = []
    checks = {"a": lambda problem: seen.append(problem.rng.random()), "b": str}
    search(checks, 5, problems=range(7))
    search(checks, 5, problems=[4])
    assert seen[2] == seen[-1]
    assert len(np.unique(seen)) == 4
