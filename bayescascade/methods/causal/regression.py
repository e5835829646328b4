r"""Regressions of one number on another: by kernel ridge, and from a private histogram.

**Kernel ridge** is (4.6) of Kusner (2016), ``w = argmin lambda / 2 |w|^2 + 1/n sum (w . phi(x_i) -
y_i)^2``, phi the `GaussianFeatures`; it is solved in their few dimensions. There is no intercept,
so predictions far from all rows are 0.

**A private histogram**: the rows are counted in cells of a grid over [-1, 1]^2, and Laplace noise
is added to the counts. Replacing a row lowers one count by one and raises another, a total of 2, so
the scale is 2 / epsilon. Both regressions are computed from the noisy counts, and anything computed
from private results is private: no bound on a regression is needed. (The thesis bounds the effect
of a row on kernel ridge regression, which is large for any regression that follows a curve.)

With N the noisy count of a column of the grid and S the noisy sum of y in it, with y at the middle
of each cell, the variance of the mean S / N is about ``(s^2 N + K v / 3) / N^2``: K cells with
noise of variance v at heights with mean square 1/3, and the variance s^2 of the rows, assumed to be
1/25. A Gaussian process with these variances smooths the means; columns that may contain only noise
are excluded. Finer grids have more noise in a column, coarser ones less detail of the curve; the
number of cells is public, ``(n epsilon)^(1/3)`` per side.

**Features of Gaussian kernels**: ``exp(-(u - v)^2 / (2 b^2)) = phi(u) . phi(v)``, bandwidth b. They
are defined by landmarks, a grid that is declared and not learned: phi(u) is the orthogonal
projection of the kernel's feature of u onto the span of the landmarks' features. On a line few
landmarks are enough, because the eigenvalues of a Gaussian kernel decrease faster than
exponentially: with five landmarks per two bandwidths, the error of the kernel is below 1e-9 between
the ends of the grid.

**Why private scores may use them.** A projection shortens: ``|phi(u)| <= 1``, and all proved bounds
on norms of differences of features also hold for their projections, even far outside the grid. The
landmarks do not depend on the rows.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.linear_model import Ridge

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real
from bayescascade.methods.causal.kernels import factor_kernel, median_distance
from bayescascade.privacy.mechanisms import NoiseSource, laplace

_PER_BANDWIDTH = 2.5
_OVERHANG = 3  # bandwidths beyond the ends, so that numbers there have landmarks on both sides
_LEAST_EIGENVALUE = 1e-13  # of the largest; smaller ones are rounding
_MOST_LANDMARKS = 2000
_LEAST_LEFT = 1e-10  # what factors of rows may leave of a kernel's diagonal

Predict = Callable[[Floats], Floats]
"""Maps (n,) numbers to predictions of the other variable."""

KERNEL_RIDGE = "kernel_ridge"
_BANDWIDTHS = (0.1, 0.2, 0.4, 0.8, 1.6)  # in standard deviations
_REGULARIZATIONS = tuple(10.0**power for power in range(-7, 1))
# settings of the histogram
_FEWEST_CELLS, _MOST_CELLS = 8, 64
_WIDTH = 0.2  # bandwidth of the Gaussian process
_SPREAD, _ROW_VARIANCE = 0.25, 0.04  # variances of curves and of rows around them
_DEVIATIONS = 3.0  # standard deviations of noise; columns below are excluded


class GaussianFeatures:
    """The features of a Gaussian kernel, of `bandwidth`, on [low, high], up to 1,000 bandwidths."""

    def __init__(self, bandwidth: float, low: float, high: float) -> None:
        least = (high - low) * _PER_BANDWIDTH / _MOST_LANDMARKS
        self._bandwidth = check_real("bandwidth", bandwidth, above=0.0, minimum=least)
        beyond = _OVERHANG * bandwidth
        n_landmarks = 1 + math.ceil((high - low + 2 * beyond) * _PER_BANDWIDTH / bandwidth)
        self._landmarks = np.linspace(low - beyond, high + beyond, n_landmarks)
        kernel = gaussian_kernel(self._landmarks, self._landmarks, bandwidth)
        values, vectors = np.linalg.eigh(kernel)
        kept = values > _LEAST_EIGENVALUE * values[-1]
        self._weights = vectors[:, kept] / np.sqrt(values[kept])  # maps kernels to features

    def __call__(self, numbers: Floats) -> Floats:
        """Return the features of (n,) numbers, (n, n_features)."""
        kernel = gaussian_kernel(numbers, self._landmarks, self._bandwidth)
        features: Floats = kernel @ self._weights
        return features

    @classmethod
    def around(cls, numbers: Floats, bandwidth: float) -> "GaussianFeatures":
        """Return features on an interval with all numbers except extreme outliers.

        These are more than 200 bandwidths from the median, far from all other numbers.
        """
        middle, most = float(np.median(numbers)), 200 * bandwidth
        low, high = float(numbers.min()), float(numbers.max())
        return cls(bandwidth, max(low, middle - most), min(high, middle + most))


def gaussian_kernel(numbers: Floats, others: Floats, bandwidth: float) -> Floats:
    """Return the kernel between (n,) and (m,) numbers, (n, m)."""
    apart = (numbers[:, np.newaxis] - others) / bandwidth
    return np.exp(-0.5 * apart**2)


def _is_own(regression: Any) -> bool:
    return isinstance(regression, str) and regression == KERNEL_RIDGE


def check_regression(regression: Any) -> None:
    """Raise ParameterError unless this is "kernel_ridge" or a scikit-learn regressor."""
    is_object = hasattr(regression, "fit") and not isinstance(regression, type)
    if not _is_own(regression) and not (is_object and is_regressor(regression)):
        raise ParameterError(
            f'regression must be "{KERNEL_RIDGE}" or a scikit-learn regressor, got {regression!r}'
        )


def regression_words(regression: Any) -> str:
    """Return the name of a regression."""
    is_own = _is_own(regression)
    return "kernel ridge regression" if is_own else type(regression).__name__


def row_features(numbers: Floats, bandwidth: float) -> Floats:
    """Return features of the Gaussian kernel of these numbers alone, (n, n_features).

    Few numbers, or numbers far apart, have fewer of them than there are landmarks.
    """
    factor = np.empty((min(len(numbers), _MOST_LANDMARKS), len(numbers)))
    n_features = factor_kernel(numbers, bandwidth, _LEAST_LEFT, factor, np.empty(len(numbers)))
    return factor[:n_features].T


def half_median(numbers: Floats) -> float:
    """Return half of the median distance of numbers that differ, (n,); 1.0 if all are equal."""
    return median_distance(np.sort(numbers)) / 2 or 1.0


def left_out_residuals(x: Floats, y: Floats) -> Floats:
    """Return each row's residual from kernel ridge regression on the other rows, (n,) float64.

    Bandwidth and lambda have the smallest leave-one-out error, so a row has an influence on these
    two numbers, but on nothing else.
    """
    if np.ptp(x) == 0.0:
        residuals: Floats = y - (y.sum() - y) / (len(y) - 1)
        return residuals
    spread, centered = float(x.std()), y - y.mean()
    tried = (_left_out(row_features(x, ratio * spread), centered)[1] for ratio in _BANDWIDTHS)
    return min(tried, key=lambda residuals: float(residuals @ residuals))


def regressed(regression: Any, x: Floats, y: Floats) -> Predict:
    """Return the regression of y on x, (n,) numbers each.

    "kernel_ridge" chooses bandwidth and lambda by leave-one-out errors (in closed form), and
    subtracts the mean of y first, which (4.6) would shrink.
    """
    if not _is_own(regression):
        learned = clone(regression).fit(x[:, np.newaxis], y)
        return lambda rows: np.asarray(learned.predict(rows[:, np.newaxis]), np.float64)
    middle = float(y.mean())
    if np.ptp(x) == 0.0:
        return lambda rows: np.full(len(rows), middle)
    features, weights, _ = _chosen(x, y)
    return lambda rows: middle + features(rows) @ weights


def _chosen(x: Floats, y: Floats) -> tuple[GaussianFeatures, Floats, Floats]:
    """Return the best features, their weights, and the leave-one-out residuals."""
    spread, centered = float(x.std()), y - y.mean()
    tried = []
    for ratio in _BANDWIDTHS:
        features = GaussianFeatures.around(x, ratio * spread)
        tried.append((features, *_left_out(features(x), centered)))
    return min(tried, key=lambda fit: float(np.mean(fit[2] ** 2)))


def _left_out(features: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the weights of the best lambda, and leave-one-out residuals: over 1 - leverage."""
    values, vectors = np.linalg.eigh(features.T @ features)
    turned = features @ vectors
    penalties = len(y) / 2 * np.array(_REGULARIZATIONS)
    shrunk = 1 / (np.maximum(values, 0.0)[:, np.newaxis] + penalties)  # (n_features, n_lambdas)
    weights = shrunk * (turned.T @ y)[:, np.newaxis]
    residuals = (y[:, np.newaxis] - turned @ weights) / (1 - turned**2 @ shrunk).clip(1e-12)
    best = int(np.argmin(np.mean(residuals**2, axis=0)))
    return vectors @ weights[:, best], residuals[:, best]


def kernel_ridge(
    x: Floats, y: Floats, features: GaussianFeatures, regularization: float
) -> Predict:
    """Return the regression that minimizes (4.6) for (n,) numbers x and y; lambda > 0."""
    ridge = Ridge(alpha=len(x) * regularization / 2, fit_intercept=False)
    weights = ridge.fit(features(x), y).coef_
    return lambda rows: features(rows) @ weights


def histogram_regressions(
    x: Floats, y: Floats, epsilon: float, noise: NoiseSource
) -> tuple[Predict, Predict]:
    """Return private regressions of y on x and of x on y, together (epsilon, 0)-private.

    x, y (n,) float64 in [-1, 1]; epsilon > 0.
    """
    n_cells = _cells(len(x), epsilon)
    edges = np.linspace(-1.0, 1.0, n_cells + 1)
    counts = np.histogram2d(x, y, bins=(edges, edges))[0]
    private = laplace(counts.ravel(), 2.0, epsilon, noise)
    noisy = private.values.reshape(n_cells, n_cells)
    variance = 2 * private.scale**2
    return _smoothed(noisy, variance, edges), _smoothed(noisy.T, variance, edges)


def regression_error(n: int, epsilon: float) -> float:
    """Return the error of a column's mean by noise, in half widths of the bounds.

    It is the standard deviation before smoothing if n rows are spread evenly; it needs no rows.
    """
    n_cells = _cells(n, epsilon)
    return float((n_cells * 2 * (2 / epsilon) ** 2 / 3) ** 0.5 / (n / n_cells))


def _cells(n: int, epsilon: float) -> int:
    return int(np.clip(round((n * epsilon) ** (1 / 3)), _FEWEST_CELLS, _MOST_CELLS))


def _smoothed(counts: Floats, variance: float, edges: Floats) -> Predict:
    middles, n_cells = (edges[:-1] + edges[1:]) / 2, len(counts)
    totals = counts.sum(axis=1)
    is_full = totals > max(_DEVIATIONS * (n_cells * variance) ** 0.5, 1.0)
    at, totals = middles[is_full], totals[is_full]
    means = (counts[is_full] @ middles / totals).clip(-1.0, 1.0)
    variances = (_ROW_VARIANCE * totals + n_cells * variance / 3) / totals**2
    weights = np.linalg.solve(_SPREAD * gaussian_kernel(at, at, _WIDTH) + np.diag(variances), means)
    return lambda rows: _SPREAD * gaussian_kernel(rows, at, _WIDTH) @ weights
