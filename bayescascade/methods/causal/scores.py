"""Scores for the dependence between a cause and residuals, and for the spread of both.

Kusner (2016), section 4.1.5; a, b : (m,) numbers, "lower" is "more independent":

* ``spearman`` |rho|, ``rho = 12 sum_i c_i d_i / (m (m^2 - 1))``, where c, d are the ranks of a and
  b minus their mean. Without ties this is the thesis's ``1 - 6 sum (difference of ranks)^2 / ...``.
* ``kendall`` ``|C - D| / (m (m - 1) / 2)``, concordant and discordant pairs.
* ``hsic`` ``sqrt(trace(KHLH)) / (m - 1)``, the square root of (4.4), for Gaussian kernels K of a
  and L of b: the norm of their cross-covariance in feature space. The root gives the same order of
  directions, and changes less with a row: see `protection`.
* ``iqr`` ``log IQR(a) + log IQR(b)`` (4.2), and ``variance`` ``log V(a) + log V(b)``. For columns
  of variance 1 the second is RECI (Bloebaum et al. 2018): the smaller error of both regressions.
* ``shapes`` is of cause and effect, and needs no regression: see `spread_of_shapes`.

**Ties** (erratum 8 of the thesis's scores): equal numbers have the mean of their ranks, and pairs
that are equal in a or b do not count. So the contribution of a pair of rows depends only on these
two, no row changes the order of others, and the score is 0 if all numbers of a are equal.

**The spread of conditional shapes**: how much the shape of the effect varies with the cause.
If ``y = f(x) + g(x) * noise`` with noise independent of x, then y has the same shape at every x,
apart from its mean and its spread. Conditional divergence (Duong & Nguyen, *Bivariate causal
discovery via conditional divergence*, CLeaR 2022) compares the shapes of both directions. The score
of "x->y" is a mean over `WIDTHS` of

    ``mean over bins b of mean over z of |F_b(z) - F(z)|``,

b the bins of x of this width with `LEAST` rows or more, F_b the distribution function of y in b, in
standard deviations of these rows from their mean, and F that of the rows of all these bins.

**Departures.** The paper compares histograms, with bins of x of one width: on measured pairs, the
width changes its accuracy by 20 %. Here widths are averaged, in units of quartiles, as outliers
would put all other rows into few bins, and F_b is half the sum of ``P(y < z)`` and ``P(y <= z)``,
so that a reversed column changes nothing.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau, rankdata

from bayescascade.base.arrays import Floats

Features = Callable[[Floats], Floats]
"""Maps (m,) numbers to features of a Gaussian kernel, (m, r)."""

Kernels = tuple[Features, Features]


class Score(NamedTuple):
    """The properties of a score."""

    text: str  # its name in words
    # The approximate score of m independent rows: the mean of rank scores and HSIC; for spreads the
    # standard deviation of the sum of both logarithms, for normal rows.
    independent: Callable[[int], float]
    # Upper bound of the score, which is >= 0; for "hsic" with three rows or more (1/2 with many
    # rows). Infinite for the sums of log spreads, which have no bounds.
    largest: float
    # Percent of right directions in `N_MEASURED` Tuebingen cause-effect pairs of two columns with a
    # known cause, weighted by source (`tests/benchmarks/causal.py`).
    right: int
    lower: str = "residuals depend less on the cause"  # what a lower score means


N_MEASURED = 49
_CLOSER = "the shape of the effect depends less on the cause"
_LESS = "cause and residuals vary less together"
SCORES: Mapping[str, Score] = {
    "hsic": Score("root of HSIC", lambda m: m**-0.5, 0.75, 64),
    "spearman": Score("Spearman's |rho|", lambda m: (2 / (np.pi * (m - 1))) ** 0.5, 1.0, 61),
    "kendall": Score("Kendall's |tau|", lambda m: 2 / 3 * (2 / (np.pi * (m - 1))) ** 0.5, 1.0, 67),
    "iqr": Score("log interquartile ranges", lambda m: 1.17 * (2 / m) ** 0.5, np.inf, 44, _LESS),
    "variance": Score("log variances", lambda m: 2 * m**-0.5, np.inf, 59, _LESS),
    "shapes": Score("spread of conditional shapes", lambda m: 0.12 * m**-0.25, 1.0, 81, _CLOSER),
}


def score_of(name: str, a: Floats, b: Floats, kernels: Kernels | None = None) -> float:
    """Return a score of `SCORES` of a cause and residuals, (m,) each, with `kernels` for "hsic"."""
    if name == "hsic":
        assert kernels is not None, "HSIC is of two kernels"
        return hsic_root(a, b, *kernels)
    if name in _RANKS:
        return _RANKS[name](a, b)
    return _SPREADS[name](a) + _SPREADS[name](b)


def centered_ranks(numbers: Floats) -> Floats:
    """Return ranks minus their mean, (m,); equal numbers have the mean of their ranks."""
    ranks: Floats = rankdata(numbers) - (len(numbers) + 1) / 2
    return ranks


def spearman(a: Floats, b: Floats) -> float:
    """Return |rho|, in [0, 1]; see the module."""
    m = len(a)
    return float(12 * abs(centered_ranks(a) @ centered_ranks(b)) / (m * (m * m - 1)))


def kendall(a: Floats, b: Floats) -> float:
    """Return |C - D| over all pairs, in [0, 1], in O(m log m); m >= 3."""
    pairs = len(a) * (len(a) - 1) / 2
    runs = (np.unique(numbers, return_counts=True)[1].astype(np.int64) for numbers in (a, b))
    untied = [pairs - float((counts * (counts - 1)).sum() / 2) for counts in runs]
    if 0 in untied:
        return 0.0
    tau_b = kendalltau(a, b, method="asymptotic").statistic
    return float(abs(round(tau_b * (untied[0] * untied[1]) ** 0.5)) / pairs)


def hsic_root(a: Floats, b: Floats, kernel: Features, other: Features) -> float:
    """Return ``sqrt(trace(KHLH)) / (m - 1)`` in O(m r^2) for r features.

    a, b (m,) float64; `kernel` is that of K, `other` that of L.
    """
    left, right = kernel(a), other(b)
    crossed = left.T @ right - np.outer(left.sum(axis=0), right.sum(axis=0)) / len(a)
    return float(np.linalg.norm(crossed) / (len(a) - 1))


def interquartile(m: int) -> tuple[int, int]:
    """Return the indices of both quartiles of the IQR in m sorted numbers."""
    return (m - 1) // 4, m - 1 - (m - 1) // 4


def log_iqr(numbers: Floats) -> float:
    """Return the log of the interquartile range, nats; -inf if it is 0."""
    low, high = np.sort(numbers)[list(interquartile(len(numbers)))]
    with np.errstate(divide="ignore"):
        return float(np.log(high - low))


def log_variance(numbers: Floats) -> float:
    """Return the log of the variance, nats; -inf if it is 0."""
    with np.errstate(divide="ignore"):
        return float(np.log(np.var(numbers)))


_RANKS = {"spearman": spearman, "kendall": kendall}
_SPREADS = {"iqr": log_iqr, "variance": log_variance}


WIDTHS = (1.0, 1 / 2, 1 / 3, 1 / 4)
"""Widths of bins, in units of 1 / 1.349 of the distance of quartiles (of normal rows: 1 sd)."""
LEAST = 5
"""Fewest rows of a bin."""

_FARTHEST = 3.0  # units from the median; rows beyond are in the outermost bins
_POINTS = np.arange(-30, 31) / 10
_EQUAL = 1e-9  # a smaller standard deviation is rounding


def spread_of_shapes(cause: Floats, effect: Floats) -> float:
    """Return the score, in [0, 1], in O(n log n); cause, effect (n,) float64 of variance 1."""
    low, middle, high = np.quantile(cause, [0.25, 0.5, 0.75])
    unit = (high - low) / 1.349 or cause.std()
    near = ((cause - middle) / unit).clip(-_FARTHEST, _FARTHEST)
    return float(np.mean([_spread(np.rint(near / width), effect) for width in WIDTHS]))


def _spread(bins: Floats, effect: Floats) -> float:
    bin_of = (bins - bins.min()).astype(np.int64)
    counts = np.bincount(bin_of)
    shown = counts >= LEAST
    if not shown.any():
        return 0.0
    rows = counts.clip(1)
    left = effect - (np.bincount(bin_of, effect) / rows)[bin_of]
    spreads = np.sqrt(np.bincount(bin_of, left**2) / rows)
    units = np.where(spreads > _EQUAL, spreads, np.inf)  # equal numbers are at their mean
    scaled, cells = left / units[bin_of], len(_POINTS) + 1
    below = np.zeros((len(counts), cells))
    for side in ("left", "right"):
        place = bin_of * cells + np.searchsorted(_POINTS, scaled, side)
        below += np.bincount(place, minlength=below.size).reshape(below.shape) / 2
    summed = below[shown, :-1].cumsum(axis=1)  # of rows below each point
    shapes = summed / counts[shown, np.newaxis]
    pooled = summed.sum(axis=0) / counts[shown].sum()
    return float(np.abs(shapes - pooled).mean())
