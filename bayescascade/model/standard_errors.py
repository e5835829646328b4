"""Standard errors of what is measured on held-out rows; they hold for few rows and rare events.

An estimate with 1.96 standard errors on both sides should contain the truth in 95 % of tables. The
usual formulas do not: if all of 20 rows are right, the usual error of the accuracy is 0. So here

* shares have two rows more of each kind (Agresti and Coull, *Approximate is Better than "Exact"*,
  American Statistician 52(2), 1998), and half of what this moves them by is added to the error;
* gains, of 1, 0 or -1 a row, have one row more at each end (Bonett and Price, *Adjusted Wald
  Confidence Interval for a Difference of Binomial Proportions Based on Paired Data*, Journal of
  Educational and Behavioral Statistics 37(4), 2012), and half of the move is added, too;
* means of costs have the correction for skewness of Johnson, *Modified t Tests and Confidence
  Intervals for Asymmetrical Populations*, Journal of the American Statistical Association 73(363),
  1978, which widens the interval here on both sides;
* means over splits allow for rows that several splits learn from (Nadeau and Bengio, *Inference for
  the Generalization Error*, Machine Learning 52, 2003);
* slopes on values learned from all other rows have up to twice the variance: each pair of rows
  counts twice. If the values are noise, such slopes are too small, so only lower ends are printed;
* differences from the best of several models, chosen by the same rows, hold for each of them at the
  same time (Bonferroni);
* all are multiplied by Student's quantile over 1.96.

Errors are NaN if rows are too few, and are not printed then. A weight is a number of equal rows.
`tests/statistical/test_intervals.py` has the coverage of each.
"""

import math

import numpy as np
from scipy.special import ndtri, stdtrit

from bayescascade.base.arrays import Floats

_NORMAL = 1.96
_OF_SKEW = (1.0 + 2.0 * _NORMAL**2) / (6.0 * _NORMAL)
_LEAST_FOR_COSTS = 100.0  # with fewer rows, the dearest rows are often not among them
_EQUAL = 1e-28  # a relative variance that rounding alone explains
_LEAST_FOR_SPLITS = 1000.0  # with fewer, halves often have none of a rare level


def share_error(share: float, n: float) -> float:
    """Return the standard error of a share of n rows, such as an accuracy; NaN for n < 2."""
    if not n >= 2.0:
        return math.nan
    center = (n * share + 2.0) / (n + 4.0)
    error = math.sqrt(center * (1.0 - center) / (n + 4.0)) + abs(share - center) / 2.0
    return error * _student(n)


def folds_error(share: float, n: float, n_folds: int) -> float:
    """Return the standard error of a share of n rows, each held out from one of n_folds >= 2 fits.

    The fits learn from overlapping rows, so their errors are not independent.
    """
    return share_error(share, n) * _overlapping(n_folds, 1.0 / (n_folds - 1))


def gain_error(gains: Floats, weights: Floats | None = None) -> float:
    """Return the standard error of the mean of gains (n,); infinite for one row.

    Gains are -1, 0 or 1; for others within -1 and 1 it is conservative.
    """
    n = gains.size if weights is None else float(weights.sum())
    if n < 2:
        return math.inf
    mean = float(np.average(gains, weights=weights))
    center = n * mean / (n + 2)
    squares = (n * float(np.average(gains**2, weights=weights)) + 2.0) / (n + 2)
    error = math.sqrt((squares - center**2) / (n + 2)) + abs(mean - center) / 2.0
    return error * _student(n)


def paired_error(differences: Floats, n_folds: int) -> float:
    """Return the standard error of the mean difference of two models on the same rows (n,).

    Rows as in `folds_error`. Differences of two indicators, as of right predictions, are gains.
    """
    if np.isin(differences, (-1.0, 0.0, 1.0)).all():
        error = gain_error(differences)
    else:
        error = math.sqrt(differences.var(ddof=1) / differences.size) * _student(differences.size)
    return error * _overlapping(n_folds, 1.0 / (n_folds - 1))


def best_error(error: float, n_models: int) -> float:
    """Return the error of a model's difference from the best, given that from a fixed model.

    The best of the models is chosen by the same rows, so it is not as much better. The interval of
    the difference from the best of n - 1 others holds if those from all of them do, each of which
    fails in 5 / (n - 1) % (Bonferroni).
    """
    return error * float(-ndtri(0.025 / max(1, n_models - 1))) / _NORMAL


def splits_error(values: Floats, n: float) -> float:
    """Return the standard error of the mean of values (m,) from splits of n rows into halves.

    NaN for one split, or for less than 1,000 rows; 0 if the values are equal.
    """
    m = values.size
    if m < 2 or not n >= _LEAST_FOR_SPLITS:
        return math.nan
    variance = float(values.var(ddof=1))
    if variance <= _EQUAL * float(np.max(values**2)):
        return 0.0
    of_mean = math.sqrt(variance / m)
    return of_mean * _overlapping(m, 1.0) * _student(m)


def left_out_slope(labels: Floats, values: Floats, weights: Floats, n: float) -> Floats:
    """Return the slope of labels (m,) on values (m,), and its standard error, (2,).

    Each value is learned from the labels of the other rows. `n` is the number of rows that matter,
    such as effective rows, >= 2. Both are 0 if values are equal. Only slope - 1.645 errors is a
    bound of 95 %.
    """
    shares = weights / weights.sum()
    apart = values - shares @ values
    spread = float(shares @ apart**2)
    if not spread > _EQUAL * max(1.0, float(shares @ values**2)):
        return np.zeros(2)
    slope = float(shares @ (apart * labels)) / spread
    leverage = shares * (1.0 + apart**2 / spread)
    rest = (labels - shares @ labels - slope * apart) / (1.0 - leverage)
    error = math.sqrt(((shares * apart * rest) ** 2).sum()) / spread
    overlapping = _overlapping(len(labels), 1.0 / (len(labels) - 1))
    return np.array([slope, error * overlapping * _student(n)])


class WeightedMean:
    """Sums over values; a weight is the number of equal values."""

    def __init__(self) -> None:
        """Start without values."""
        self._origin = 0.0  # a mean of some values: keeps the digits of differences
        self._sums = np.zeros(4)  # of the weights times powers of differences from the origin

    def add(self, values: Floats, weights: Floats | None = None) -> None:
        """Add a block; values (n,) float64; weights (n,) float64 >= 0, by default 1 each."""
        weights = np.ones(len(values)) if weights is None else weights
        added = float(weights.sum())
        if added == 0.0:
            return
        if not self.weight:
            self._origin = float(np.dot(values, weights)) / added
        powers = np.vander(np.asarray(values) - self._origin, 4, increasing=True)
        self._sums = self._sums + weights @ powers

    @property
    def weight(self) -> float:
        """Number of values."""
        return float(self._sums[0])

    @property
    def mean(self) -> float:
        """The mean; NaN without weight."""
        return self._origin + float(self._sums[1]) / self.weight if self.weight else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; 0 if all values are equal, NaN for too few of them."""
        n = self.weight
        if not n >= _LEAST_FOR_COSTS:
            return math.nan
        shift, second, third = (self._sums[1:] / n).tolist()
        variance = max(second - shift**2, 0.0)
        if variance <= _EQUAL * self.mean**2:
            return 0.0
        moment = third - 3.0 * shift * second + 2.0 * shift**3
        error: float = math.sqrt(variance / (n - 1.0)) + _OF_SKEW * abs(moment) / (variance * n)
        return error * _student(n)


def _student(n: float) -> float:
    return float(stdtrit(n - 1.0, 0.975)) / _NORMAL


def _overlapping(m: int, ratio: float) -> float:
    """Return the factor for means over m splits, by the ratio of held-out rows to learned ones."""
    return math.sqrt(1.0 + m * ratio)
