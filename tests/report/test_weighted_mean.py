"""Means and standard errors of weighted values are those of the values repeated."""

import math

import numpy as np
import pytest

from bayescascade.model.weighted_mean import WeightedMean


def test_a_weight_is_equal_values(rng):
    """In blocks or at once; values far from zero must not lose their differences."""
    values, weights = 1e9 + rng.normal(size=200), rng.integers(0, 4, 200)
    mean = WeightedMean()
    for block in np.split(np.arange(200), [0, 1, 120]):
        mean.add(values[block], weights[block].astype(float))
    repeated = np.repeat(values, weights)
    assert mean.weight == len(repeated)
    assert mean.mean == pytest.approx(repeated.mean(), rel=1e-14)
    expected = repeated.std(ddof=1) / math.sqrt(len(repeated))
    assert mean.standard_error == pytest.approx(expected, rel=1e-6)


def test_what_cannot_be_known_is_nan():
    mean = WeightedMean()
    mean.add(np.array([3.0]), np.zeros(1))
    assert math.isnan(mean.mean)
    mean.add(np.array([3.0]))
    assert mean.mean == 3.0
    assert math.isnan(mean.standard_error)
