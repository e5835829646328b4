"""Audits certify no more than is true, nearly all of it, and what broken mechanisms give away."""

import math

import numpy as np
import pytest

from bayescascade import audit_privacy
from bayescascade.base.errors import ParameterError
from bayescascade.privacy import mechanisms
from bayescascade.privacy.mechanisms import (
    exponential,
    gaussian,
    laplace,
    noise_source,
    propose_test_release,
)

DELTA = 0.02


def released(release):
    return None if release is None else tuple(release.values.tolist())


# From epsilon and a source to a mechanism, and the neighbors that it tells apart best.
MECHANISMS = {
    "laplace": (lambda e, n: lambda x: laplace(x, 1.0, e, n).values, (0.0, 1.0)),
    "laplace of two": (
        lambda e, n: lambda x: laplace(x, 2.0, e, n).values,
        ([0.0, 7.0], [1.0, 8.0]),
    ),
    "gaussian": (lambda e, n: lambda x: gaussian(x, 1.0, e, DELTA, n).values, (0.0, 1.0)),
    "exponential": (
        lambda e, n: lambda x: exponential(x, 1.0, e, n).index,
        ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    ),
    "propose-test-release": (
        lambda e, n: lambda x: released(propose_test_release(*x, 1.0, e, DELTA, n)),
        ((5, 0.0), (4, 1.0)),
    ),
    "stability": (
        lambda e, n: lambda x: released(propose_test_release(*x, 1e-3, e, DELTA, n)),
        ((0, 0.0), (0, 1.0)),
    ),
}


def bound(name, epsilon, noise, n_samples, promised=None):
    mechanism, neighbors = MECHANISMS[name]
    delta = 0.0 if "laplace" in name or name == "exponential" else DELTA
    run = mechanism(promised or epsilon, noise)
    return audit_privacy(run, neighbors, n_samples=n_samples, delta=delta).epsilon_lower


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("source", ["simulated", "opendp"])
def test_no_mechanism_is_refuted(name, source):
    """At the epsilon that it promises, by few samples; slow tests take more."""
    n_samples = 1000 if source == "simulated" else 100
    assert bound(name, 1.0, noise_source(source, 7), n_samples) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_mechanism_is_refuted_by_many_samples(name, epsilon):
    found = bound(name, epsilon, noise_source("simulated", 8), 4000)
    assert found <= epsilon
    if epsilon == 1.0 and name == "laplace":
        assert found > 0.8


class Halved:
    """A source of half the noise."""

    is_private = False

    def __init__(self, noise):
        self._noise = noise

    def laplace(self, scale, n):
        return self._noise.laplace(scale / 2, n)

    def gaussian(self, scale, n):
        return self._noise.gaussian(scale / 2, n)

    def choose(self, scores, scale):
        return self._noise.choose(scores, scale / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "gaussian", "exponential"])
def test_half_the_noise_is_found_out(name):
    """So is half the sensitivity, which is the same noise."""
    n_samples = 4000 if name == "gaussian" else 2000
    assert bound(name, 2.0, Halved(noise_source("simulated", 9)), n_samples) > 2.0


def test_half_the_sensitivity_is_found_out():
    """That of one value of two, which only both together give away."""
    noise = noise_source("simulated", 10)
    found = audit_privacy(
        lambda x: laplace(x, 1.0, 1.0, noise).values,
        ([0.0, 0.0], [1.0, 1.0]),
        n_samples=2000,
        statistic=min,
    )
    assert found.epsilon_lower > 1.0


def test_the_printed_threshold_is_found_out(monkeypatch):
    """Of a thesis: without the division by epsilon, unstable data are released too often."""
    epsilon, noise = 0.1, noise_source("simulated", 11)
    assert bound("stability", epsilon, noise, 1000) <= epsilon
    printed = math.ceil(1 + math.log(1 / DELTA))
    monkeypatch.setattr(mechanisms, "stability_threshold", lambda *_: printed)
    assert bound("stability", epsilon, noise, 1000) > 2.0


def is_out_of_reach(output):
    """Return whether NumPy never draws this number from Laplace's law around 0, of scale 1.

    It is -log or log of a multiple of 2**-53, and near 1 most floats are not.
    """
    place = round(math.exp(-abs(output)) * 2**53)
    near = range(max(1, place - 8), place + 9)
    return not any(-math.log(multiple * 2.0**-53) == abs(output) for multiple in near)


def test_floating_point_noise_is_found_out(rng):
    """The last bits of a sum tell what noise was added to; on a grid, they are the same for all."""
    plain = audit_privacy(rng.laplace, (0.0, 1.0), n_samples=1000, statistic=is_out_of_reach)
    assert plain.epsilon_lower > 3.0
    assert plain.frequencies[1] == 0.0
    noise = noise_source("simulated", 12)
    ours = audit_privacy(
        lambda x: laplace(x, 1.0, 1.0, noise).values,
        (0.0, 1.0),
        n_samples=1000,
        statistic=lambda values: is_out_of_reach(values.item()),
    )
    assert ours.epsilon_lower <= 1.0


@pytest.mark.slow
def test_bounds_hold_as_often_as_they_say(rng):
    """Of two equal laws, epsilon 0; outputs that were used twice, once to choose, lie often."""

    def fresh(_):
        return rng.random()

    def twice(_):
        if not kept:
            kept.extend(2 * rng.random(100).tolist())
        return kept.pop()

    kept = []
    wrong = {
        mechanism: sum(
            audit_privacy(mechanism, (0, 1), n_samples=200, confidence=0.5).epsilon_lower > 0
            for _ in range(100)
        )
        for mechanism in (fresh, twice)
    }
    assert wrong[fresh] <= 67  # of a binomial of 100 and 0.5, with probability 0.9998
    assert wrong[twice] > 90


def test_audits_are_printed():
    outputs = iter([*"ab" * 20, *"b" * 40])
    found = audit_privacy(lambda _: next(outputs), (0, 1), n_samples=40, confidence=0.9)
    assert str(found).splitlines() == [
        "epsilon >= 0.775",
        "confidence 0.9   40 runs a neighbor",
        "event: output is 'a'   frequencies 0.5 and 0",
    ]
    with pytest.raises(ParameterError, match="neighbors must be two data sets, got 3"):
        audit_privacy(len, (0, 1, 2))
    with pytest.raises(ParameterError, match="n_samples must be an integer >= 20"):
        audit_privacy(len, (0, 1), n_samples=3)
    mixed = iter([None, 1.0, "text", (2.0, None), np.float64(3.0)] * 8)
    assert audit_privacy(lambda _: next(mixed), (0, 1), n_samples=20).epsilon_lower == 0.0
