"""Averages over draws: by hand, and quantiles against their distribution functions."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from bayescascade.methods.rules import averages
from bayescascade.methods.rules.averages import average_intervals, mixture_quantiles
from bayescascade.methods.rules.label_list import LabelList
from tests.methods.rules.lists import BINS, cells_of, random_rules


def mixtures(rng, n_mixtures=7, n_components=9, n_classes=3):
    """Return random components, a few of which each mixture has, and the mixtures' weights."""
    a = rng.gamma(2.0, 30.0, (n_components, n_classes)) + 0.1
    b = rng.gamma(2.0, 3.0, (n_components, n_classes)) + 0.1
    weights = rng.dirichlet(np.ones(n_components), n_mixtures)
    weights *= rng.random(weights.shape) < 0.6
    weights[:, 0] += 0.1
    return a, b, weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_quantiles_invert_the_distribution_function(at_once, rng, monkeypatch):
    """An interval of 95 % must hold 95 % of the average over lists."""
    monkeypatch.setattr(averages, "_MOST_BETAS", at_once)
    a, b, weights = mixtures(rng)
    levels = (0.005, 0.025, 0.5, 0.975)
    found = mixture_quantiles(a, b, csr_array(weights), levels)
    assert found.shape == (7, 3, 4)
    for k, level in enumerate(levels):
        below = scipy.stats.beta(a, b).cdf(found[:, np.newaxis, :, k])
        assert_allclose(np.einsum("mi,mic->mc", weights, below), level, atol=1e-8)
        # the twin that averages the components' quantiles
        mean = weights @ scipy.stats.beta(a, b).ppf(level)
        assert not np.allclose(found[..., k], mean, atol=0.01)


def quantiles(a, b, *levels):
    """Return the quantiles of the mixture of equal shares of Beta distributions."""
    of_class, of_others = np.array(a)[:, np.newaxis], np.array(b)[:, np.newaxis]
    weights = csr_array(np.full((1, len(a)), 1 / len(a)))
    return mixture_quantiles(of_class, of_others, weights, levels)[0, 0]


@pytest.mark.parametrize("size", [1e-12, 1e-3, 5000.0, 1e12])
def test_extreme_components(size):
    """Concentrations next to nothing, tables of a million million rows: certainly yes, or no."""
    low, high = quantiles([size, 1.0], [1.0, size], 0.025, 0.975)
    assert 0 <= low <= high <= 1
    assert_allclose((low, high), (1 - high, 1 - low), atol=1e-9)
    if size > 1:
        assert low < 0.001 < 0.999 < high


def random_draws(rng, n=5, classes=("a", "b", "c")):
    """Return lists of random rules over a small domain, and how often each was drawn."""
    draws = []
    for _ in range(n):
        rules = random_rules(rng, BINS, 3)
        counts = rng.integers(0, 9, (len(rules) + 1, len(classes))).astype(float)
        draws.append(LabelList(BINS, np.array(classes), rules, counts, 0.7))
    return draws, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")], ids=len)
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_intervals_are_of_the_mixture(at_once, classes, rng, monkeypatch):
    """Equal shares of the draws' Beta distributions lie below and above, however many rows."""
    monkeypatch.setattr(averages, "_MOST_PARTS", at_once)
    draws, times = random_draws(rng, classes=classes)
    draws, times = [*draws, draws[0]], np.append(times, 2.0)  # two draws with equal parts
    cells = np.tile(cells_of(BINS)[0], 2)[:, 3:]
    intervals = average_intervals(draws, times, cells, 0.8)
    assert intervals.shape == (cells.shape[1], len(classes), 2)
    for side, q in enumerate((0.1, 0.9)):
        reached = 0.0
        for labels, n in zip(draws, times, strict=True):
            a, b = (one[labels.part_of_codes(cells)] for one in labels.beta_parameters)
            reached += n * scipy.stats.beta(a, b).cdf(intervals[..., side]) / times.sum()
        assert_allclose(reached, q, atol=1e-7)
