r"""Regressions from a private histogram: what training rows are told by is noisy counts alone.

The rows are counted in cells of a grid over [-1, 1]^2, and the counts get Laplace noise. Replacing
a row lowers a count by one and raises another, 2 in all, so its scale is 2 / epsilon. Both
regressions are computed from those counts, and whatever is computed from what is private is
private: no bound on a regression is needed. (The thesis bounds how much a row moves kernel ridge
regression, see `sensitivity`; that is much for any regression which follows a curve.)

With N the noisy count of a column of the grid and S the noisy sum of y in it, each cell at its
middle, the mean S / N has about the variance ``(s^2 N + K v / 3) / N^2``: K cells of noise of
variance v at heights whose square is 1/3 in the mean, and s^2 of the rows, taken as 1/25. A
Gaussian process with these variances smooths the means; columns that noise may have filled are
left out. Finer grids have more noise in a column, coarser ones less of the curve; the number of
cells is public, ``(n epsilon)^(1/3)`` a side.
"""

import numpy as np

from bayescascade.methods.causal.features import Floats, gaussian_kernel
from bayescascade.methods.causal.regression import Predict
from bayescascade.privacy.mechanisms import laplace
from bayescascade.privacy.noise import NoiseSource

_FEWEST_CELLS, _MOST_CELLS = 8, 64
_WIDTH = 0.2  # of the Gaussian process's kernel
_SPREAD, _ROW_VARIANCE = 0.25, 0.04  # variances of curves and of rows around them
_DEVIATIONS = 3.0  # of its noise that a column's count is to be above


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
    """Return how far off a column's mean is, by noise, in half widths of the bounds.

    It is the standard deviation before smoothing if n rows are spread evenly; no row is needed.
    """
    n_cells = _cells(n, epsilon)
    return float((n_cells * 2 * (2 / epsilon) ** 2 / 3) ** 0.5 / (n / n_cells))


def _cells(n: int, epsilon: float) -> int:
    return int(np.clip(round((n * epsilon) ** (1 / 3)), _FEWEST_CELLS, _MOST_CELLS))


def _smoothed(counts: Floats, variance: float, edges: Floats) -> Predict:
    """Return the regression of the second coordinate on the first."""
    middles, n_cells = (edges[:-1] + edges[1:]) / 2, len(counts)
    totals = counts.sum(axis=1)
    is_full = totals > max(_DEVIATIONS * (n_cells * variance) ** 0.5, 1.0)
    at, totals = middles[is_full], totals[is_full]
    means = (counts[is_full] @ middles / totals).clip(-1.0, 1.0)
    variances = (_ROW_VARIANCE * totals + n_cells * variance / 3) / totals**2
    weights = np.linalg.solve(_SPREAD * gaussian_kernel(at, at, _WIDTH) + np.diag(variances), means)
    return lambda rows: _SPREAD * gaussian_kernel(rows, at, _WIDTH) @ weights
