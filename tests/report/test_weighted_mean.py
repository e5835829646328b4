"""Means and standard errors of weighted values are those of the values repeated."""

import math

import numpy as np
import pytest

from bayescascade.model.scores import WeightedMean


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
