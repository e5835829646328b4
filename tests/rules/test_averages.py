"""Averages over draws: by hand, and quantiles against their distribution functions."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from bayescascade.rules import averages
from bayescascade.rules.averages import (
    average_intervals,
    average_probabilities,
    beta_mixture_quantile,
)
from bayescascade.rules.label_list import LabelList
from tests.rules.lists import BINS, cells_of, random_rules


@pytest.mark.parametrize("q", [0.005, 0.025, 0.5, 0.975])
def test_quantiles_invert_the_distribution_function(q, rng):
    """An interval of 95 % must hold 95 % of the average over lists."""
    a, b = rng.gamma(2.0, 30.0, (7, 4, 3)) + 0.1, rng.gamma(2.0, 3.0, (7, 4, 3)) + 0.1
    weights = rng.dirichlet(np.ones(7))
    found = beta_mixture_quantile(a, b, weights, q)
    assert found.shape == (4, 3)
    reached = np.tensordot(weights, scipy.stats.beta(a, b).cdf(found), axes=1)
    assert_allclose(reached, q, atol=1e-7)
    # the twin that averages the components' quantiles
    mean = np.tensordot(weights, scipy.stats.beta(a, b).ppf(q), axes=1)
    assert not np.allclose(found, mean, atol=0.01)


def test_one_component_is_a_beta():
    """A posterior of a single list has the list's own intervals."""
    found = beta_mixture_quantile(np.array([[2.0]]), np.array([[5.0]]), np.ones(1), 0.025)
    assert_allclose(found, scipy.stats.beta(2, 5).ppf(0.025), atol=1e-10)


def test_far_apart_components():
    """Half the draws say certainly yes, half certainly no: the interval is nearly everything."""
    a, b = np.array([[5000.0], [1.0]]), np.array([[1.0], [5000.0]])
    low, high = (beta_mixture_quantile(a, b, np.array([0.5, 0.5]), q) for q in (0.025, 0.975))
    assert low[0] < 0.001
    assert high[0] > 0.999


def random_draws(rng, n=5):
    """Return lists of random rules over a small domain, and how often each was drawn."""
    draws = []
    for _ in range(n):
        rules = random_rules(rng, BINS, 3)
        counts = rng.integers(0, 9, (len(rules) + 1, 3)).astype(float)
        draws.append(LabelList(BINS, np.array(["a", "b", "c"]), rules, counts, 0.7))
    return draws, rng.integers(1, 4, n).astype(float)


def test_averages_are_over_draws(rng):
    """Row by row, draw by draw, the more often drawn counting more."""
    draws, times = random_draws(rng)
    cells, _ = cells_of(BINS)
    expected = np.zeros((cells.shape[1], 3))
    for labels, n in zip(draws, times, strict=True):
        for row, part in enumerate(labels.part_of_codes(cells)):
            expected[row] += n * labels.probabilities[part] / times.sum()
    assert_allclose(average_probabilities(draws, times, cells), expected)
    assert_allclose(average_probabilities(draws[:1], times[:1], cells).sum(axis=1), 1.0)


@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_intervals_are_of_the_mixture(at_once, rng, monkeypatch):
    """Equal shares of the draws' Beta distributions lie below and above, however many rows."""
    monkeypatch.setattr(averages, "_MOST_BETAS", at_once)
    draws, times = random_draws(rng)
    cells, _ = cells_of(BINS)
    intervals = average_intervals(draws, times, cells, 0.8)
    assert intervals.shape == (cells.shape[1], 3, 2)
    for side, q in enumerate((0.1, 0.9)):
        reached = 0.0
        for labels, n in zip(draws, times, strict=True):
            a, b = (one[labels.part_of_codes(cells)] for one in labels.beta_parameters)
            reached += n * scipy.stats.beta(a, b).cdf(intervals[..., side]) / times.sum()
        assert_allclose(reached, q, atol=1e-7)


def test_draws_without_rules():
    """A posterior that believes in no rule gives every row the same interval."""
    labels = LabelList(BINS, np.array([0, 1]), (), np.array([[3.0, 5.0]]), 1.0)
    cells, _ = cells_of(BINS)
    found = average_intervals([labels], np.ones(1), cells, 0.95)
    assert_allclose(found, np.broadcast_to(labels.intervals()[0], found.shape), atol=1e-9)
