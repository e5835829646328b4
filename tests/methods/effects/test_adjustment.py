"""Pseudo-outcomes are right on average if either what they rest on is, and come from other rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayescascade.methods.effects.adjustment import N_FOLDS, _by_folds, doubly_robust, nuisance


def _expected(propensity, untreated, treated):
    """Return the mean pseudo-outcome over both arms and outcomes; true values are .3, .2 and .6."""
    total = 0.0
    for arm, share, rate in ((False, 0.7, 0.2), (True, 0.3, 0.6)):
        for outcome in (False, True):
            chance = share * (rate if outcome else 1.0 - rate)
            given = (np.array([each]) for each in (outcome, arm, propensity, untreated, treated))
            total += chance * doubly_robust(*given)[0]
    return total


@pytest.mark.parametrize("said", [(0.3, 0.9, 0.1), (0.8, 0.2, 0.6)])
def test_either_suffices(said):
    """Wrong outcomes with the right propensity, and the other way round, give the effect."""
    assert_allclose(_expected(*said), 0.4, atol=1e-12)
    assert abs(_expected(0.8, 0.9, 0.1) - 0.4) > 0.1


def test_a_fold_does_not_learn_from_its_own_rows():
    """If a row changes, the logistic regression of the other folds says the same of its fold."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 2)), np.arange(60) % 3 == 0
    changed = X.copy()
    changed[7] += 5.0
    before, after = (_by_folds(rows, labels, np.ones(60), 0) for rows in (X, changed))
    is_same = before == after
    assert not is_same[7]
    assert is_same.sum() == 60 / N_FOLDS - 1


@pytest.mark.slow
def test_own_row_unused():
    """What is said of a row does not follow its own outcome: noise is not fitted."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(400, 3)), rng.random(400) < 0.5
    t = rng.random(400) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    found = nuisance(X, y, t, None, 0)
    own = np.where(t, found.treated, found.untreated)
    assert abs(np.corrcoef(own, y)[0, 1]) < 0.15  # standard error .05; in-sample forests: .9
    assert np.corrcoef(found.propensity, 1.0 / (1.0 + np.exp(-2.0 * X[:, 0])))[0, 1] > 0.9
    assert_array_equal(nuisance(X, y, t, 0.4, 0).propensity, 0.4)
