"""Quantiles of mixtures of Beta distributions, against their distribution functions."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from bayescascade.rules.mixtures import beta_mixture_quantile


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
