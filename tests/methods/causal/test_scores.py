"""Scores and regressions by hand and by slow twins."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from bayescascade import AdditiveNoiseModel
from bayescascade.methods.causal import regression
from bayescascade.methods.causal.regression import (
    GaussianFeatures,
    half_median,
    kernel_ridge,
    left_out_residuals,
    regressed,
    row_features,
)
from bayescascade.methods.causal.scores import (
    SCORES,
    hsic_root,
    kendall,
    log_iqr,
    score_of,
    spearman,
    spread_of_shapes,
)
from tests.methods.causal.problems import (
    decayed,
    slow_hsic_root,
    slow_kendall,
    slow_ridge,
    slow_spearman,
)


def draws(seed, m=30, n_values=None):
    rng = np.random.default_rng(seed)
    if n_values is None:
        return rng.uniform(-1, 1, m), rng.normal(size=m)
    return rng.integers(n_values, size=m).astype(float), rng.integers(n_values, size=m).astype(
        float
    )


def test_ranks_by_hand():
    """Four rows, one pair out of order: d = 0, 0, 1, -1, so rho = 1 - 6 * 2 / 60."""
    a, b = np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 40, 30])
    assert spearman(a, b) == pytest.approx(0.8)
    assert kendall(a, b) == pytest.approx(4 / 6)
    assert spearman(a, -b) == pytest.approx(0.8)
    assert kendall(a, np.ones(4)) == spearman(a, np.ones(4)) == 0.0


@pytest.mark.parametrize("n_values", [None, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_ranks_agree_with_counting(seed, n_values):
    a, b = draws(seed, 30, n_values)
    assert kendall(a, b) == pytest.approx(slow_kendall(a, b), abs=1e-12)
    assert spearman(a, b) == pytest.approx(slow_spearman(a, b), abs=1e-12)
    if n_values is None:
        assert spearman(a, b) == pytest.approx(abs(spearmanr(a, b).statistic), abs=1e-12)


def test_shapes_by_hand():
    """At every width two bins, with means 1 and 4 and standard deviation 2.

    Effects become -1/2 (four times) and 2, and the reverse. Half of the difference of both
    distribution functions is .1 where |z| < 2, .3 where |z| < 1/2, and .05 where |z| = 2.
    """
    cause, effect = np.repeat([-1.0, 1.0], 5), np.array([0.0] * 4 + [5.0] + [0.0] + [5.0] * 4)
    expected = (2 * (14 * 0.1 + 0.1 + 0.05) + 9 * 0.3) / 61
    assert spread_of_shapes(cause, effect) == pytest.approx(expected)
    assert spread_of_shapes(-cause, 3 - 2 * effect) == pytest.approx(expected)
    assert spread_of_shapes(cause, np.tile(effect[:5], 2)) == 0.0


def test_noise_may_grow_with_the_cause_for_shapes_only():
    """Residuals then depend on the cause in both directions, here more in the right one."""
    right = dict.fromkeys(["shapes", "hsic"], 0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 3, 400)
        y = x**2 + (0.5 + x) * rng.uniform(-1, 1, 400)
        for score in right:
            model = AdditiveNoiseModel(score=score, decide="always", random_state=0).fit(x, y)
            right[score] += model.direction_ == "x->y"
    assert right["shapes"] >= 4
    assert right["hsic"] <= 1


def test_quartiles_by_hand():
    """Of nine numbers the third and the seventh, of eight the second and the seventh."""
    numbers = np.array([9.0, 1, 2, 8, 3, 7, 4, 6, 5])
    assert log_iqr(numbers) == pytest.approx(math.log(4))
    assert log_iqr(numbers[1:]) == pytest.approx(math.log(5))
    assert log_iqr(np.ones(9)) == -math.inf
    assert score_of("iqr", numbers, 2 * numbers) == pytest.approx(math.log(4) + math.log(8))
    expected = 2 * math.log(numbers.var()) + math.log(4)
    assert score_of("variance", numbers, 2 * numbers) == pytest.approx(expected)


@pytest.mark.parametrize("bandwidth", [0.1, 0.4, 1.5])
def test_features_are_those_of_the_kernel(bandwidth):
    """Landmarks meet the matrices of (4.4); a projection never lengthens, inside and far out."""
    a, b = draws(0, 60)
    kernel, other = GaussianFeatures(bandwidth, -1, 1), GaussianFeatures(2 * bandwidth, -4, 4)
    expected = slow_hsic_root(a, b, bandwidth, 2 * bandwidth)
    assert hsic_root(a, b, kernel, other) == pytest.approx(expected, abs=1e-9)
    far = np.linspace(-30, 30, 2001)
    assert (kernel(far) ** 2).sum(axis=1).max() <= 1 + 1e-9
    with pytest.raises(ValueError, match="bandwidth"):
        GaussianFeatures(1e-5, -1, 1)


@pytest.mark.parametrize("n", [2, 60, 300])
def test_features_of_rows_are_those_of_the_kernel(n):
    """Also with outliers and equal numbers, and the usual bandwidth by all pairs."""
    numbers = np.append(np.random.default_rng(0).standard_cauchy(n - 2).round(2), [0.0, 1e6])
    for bandwidth in (0.1, 2.0):
        features = row_features(numbers, bandwidth)
        np.testing.assert_allclose(features @ features.T, decayed(numbers, bandwidth), atol=1e-9)
    assert row_features(np.repeat(numbers, 5), 1.0).shape[1] <= n
    apart = np.sort([abs(a - b) for a, b in itertools.combinations(numbers, 2) if a != b])
    assert half_median(numbers) == pytest.approx(apart[(len(apart) - 1) // 2] / 2, rel=1e-6)
    assert half_median(np.ones(n)) == 1.0


@pytest.mark.parametrize("regularization", [1e-3, 0.5])
def test_ridge_is_the_minimum_of_its_objective(regularization):
    """(4.6) has lambda / 2 and the mean of squares, which other programs do not."""
    x, y = draws(1, 40)
    predict = kernel_ridge(x, y, GaussianFeatures(0.4, -1, 1), regularization)
    slow = slow_ridge(x, y, 0.4, regularization)
    rows = np.linspace(-1, 1, 50)
    np.testing.assert_allclose(predict(rows), slow(rows), atol=1e-7)
    other = slow_ridge(x, y, 0.4, 2 * regularization)
    assert np.abs(predict(rows) - other(rows)).max() > 1e-3


def test_the_chosen_ridge_finds_the_curve():
    """Also where units are far from 1, and x is constant."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1e6, 400)
    y = 1e3 + np.sin(x / 1e5) + 0.1 * rng.normal(size=400)
    rows = np.linspace(1e5, 9e5, 50)
    predicted = regressed("kernel_ridge", x, y)(rows)
    np.testing.assert_allclose(predicted, 1e3 + np.sin(rows / 1e5), atol=0.12)
    np.testing.assert_allclose(regressed("kernel_ridge", np.ones(20), x[:20])(rows), x[:20].mean())


def test_rows_are_left_out_of_their_own_prediction():
    """In closed form as by solving again; with the row, residuals would be smaller."""
    x, y = draws(2, 25)
    features, weights, residuals = regression._chosen(x, y)
    np.testing.assert_allclose(left_out_residuals(x, y), residuals, atol=1e-7)
    phi, y = features(x), y - y.mean()
    kept = next(
        r for r in regression._REGULARIZATIONS
        if np.allclose(phi.T @ (y - phi @ weights), 25 * r / 2 * weights, rtol=1e-4, atol=1e-9)
    )  # fmt: skip
    for row in range(25):
        others = np.arange(25) != row
        gram = phi[others].T @ phi[others] + 25 * kept / 2 * np.eye(phi.shape[1])
        alone = np.linalg.solve(gram, phi[others].T @ y[others])
        assert residuals[row] == pytest.approx(y[row] - phi[row] @ alone, abs=1e-6)
    assert np.abs(y - phi @ weights).mean() < np.abs(residuals).mean()


@pytest.mark.parametrize("name", ["hsic", "spearman", "kendall", "iqr", "variance"])
def test_independent_rows_show_what_the_table_says(name):
    """The temperature of the posterior: right within a factor that nobody would trip over."""
    rng = np.random.default_rng(0)
    kernels = (GaussianFeatures(1.0, -5, 5), GaussianFeatures(1.0, -5, 5))
    m, found = 200, []
    for _ in range(200):
        a, b = rng.normal(size=(2, m))
        found.append(score_of(name, a, b, kernels))
    size = np.std(found) if SCORES[name].largest == math.inf else np.mean(found)
    assert 0.4 < size / SCORES[name].independent(m) < 1.2
