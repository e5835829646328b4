r"""How much one row can change a score: bounds that hold for all rows, and distances to worse.

Neighbors differ in one row, of the m that test or of the n that the regressions are learned from.
All numbers are within declared bounds, scaled to [-1, 1]; kernels are Gaussian, so that ``0 <= k
<= k(u, u) = 1``; bandwidths, lambda and proposals do not depend on any row.

**A test row** (`by_test_row`) is replaced: u_k, v_k, of a and of b, become others.

* *kendall*: m - 1 pairs change by at most 2 of m (m - 1) / 2, hence ``4 / m`` (thesis, theorem 3).
* *spearman*: with c, d the centered ranks of a and b, the own product ``c_k d_k``, within ``(m -
  1)^2 / 4`` of 0, changes by at most ``(m - 1)^2 / 2``. Moving u_k shifts the ranks that it passes
  by at most 1, all of them in the same direction, so ``sum_{i != k} (c_i - c~_i) d_i`` is at most
  the sum of the positive d, or of the negative, ``m^2 / 8``: the sum of |d| is half the number of
  ordered pairs of which one is counted up and the other down, at most ``m^2 / 4``. The same again
  for v_k. Times ``12 / (m (m^2 - 1))``: ``(3 m^2 + 6 (m - 1)^2) / (m (m^2 - 1))``, about 9 / m.
  (The thesis has 30 / m.)
* *hsic*: let mu, nu be the means of the other rows' features, ``A = (phi(u_k) - mu) x (psi(v_k) -
  nu)`` and B the same of the new row. The cross-covariances C of all rows differ by ``(m - 1) /
  m^2 (A - B)``, and the score is ``m / (m - 1) |C|``: it changes by at most ``|A - B| / m``. With
  ``p = phi(u_k) - mu``, p~ of the new row and q, q~ likewise, let ``e = |mu|^2 - <phi(u_k), mu> -
  <phi(u~_k), mu>``, so that ``<p, p~> >= e`` and ``|p|^2 + |p~|^2 = 2 + 2 e``, and e' of q. If e,
  e' >= 0, then ``|A - B|^2 = |p|^2 |q|^2 + |p~|^2 |q~|^2 - 2 <p, p~> <q, q~> <= 2 (1 + e)(1 + e')
  + 2 t t' - 2 e e'`` where ``t = (|p|^2 - |p~|^2) / 2`` is within ``1 - e`` of 0, as means of
  kernels are >= 0 and ``|mu| <= 1``; that is at most ``4 + 2 e e' <= 6``. If the inner products
  have different signs, say ``-c = <p, p~> < 0``, then ``c <= -e``, and ``|A - B|^2 <= max(|q|^2,
  |q~|^2) (2 + 2 e + 2 c) <= 4``, as ``|q|^2 <= 2``; if they have the same but e < 0, ``|A - B|^2
  <= 2 (2 + 2 e) <= 4``. Hence ``sqrt(6) / m``. (For HSIC itself, the square, this proves ``sqrt(6)
  / (m - 1)``, as ``|C| <= 1 / 2``; the thesis has ``(12 m - 11) / (m - 1)^2``, not proved.)

**A training row** moves every residual by at most R (`residual_shift`). With ``J(w) = lambda / 2
|w|^2 + 1/n sum (w . phi_i - y_i)^2`` (4.6): at its minimum ``lambda |w|^2 = 2/n sum (y_i - f_i)
f_i <= 1/2``, so ``|f| <= |w| <= 1 / sqrt(2 lambda)``. The gradient of J~ at w is that of ``J~ -
J``, at most ``2/n (2 + 2 |w|)`` long, and J~ is lambda-strongly convex: ``|w - w~| <= 4 (1 + 1 /
sqrt(2 lambda)) / (n lambda) = R``. Predictions clipped to [-1, 1] are no farther apart. (Theorem 7
of the thesis has ``8 / (n lambda^1.5)``, which is false: lambda = 8, all x the same, one y
flipped.)

* *hsic*: features of residuals move by at most ``sqrt(2 - 2 exp(-R^2 / (2 b^2)))``, b the
  bandwidth, and ``C - C~`` is their mean against centered features, which are of norm <= 1 in
  square mean: ``m / (m - 1)`` times as much (`by_training_row`).
* *ranks*: only pairs whose residuals are at most 2 R apart can change order; one that does changes
  tau by at most ``4 / (m (m - 1))`` and rho by at most ``12 / (m (m + 1))``, the difference of two
  ranks times ``12 / (m (m^2 - 1))``. There may be many such pairs: `rank_distance`.

**Distances.** `rank_distance` and `iqr_distance` return how many rows have to be replaced, at
least, until another one might change the score by more than was proposed; replacing one row
changes them by at most 1, as propose-test-release demands. Each is the first k at which a bound
u_k on the change exceeds the proposal, where u_k of a neighbor is at most u_{k+1}.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from bayescascade.methods.causal.features import Floats
from bayescascade.methods.causal.scores import interquartile


def by_test_row(score: str, m: int) -> float:
    """Return by how much a row of m >= 3 changes "spearman", "kendall" or "hsic" at most."""
    if score == "kendall":
        return 4 / m
    if score == "spearman":
        return (3 * m * m + 6 * (m - 1) ** 2) / (m * (m * m - 1))
    return math.sqrt(6) / m


def residual_shift(n: int, regularization: float) -> float:
    """Return by how much one of n training rows moves a residual at most, R."""
    return 4 * (1 + 1 / math.sqrt(2 * regularization)) / (n * regularization)


def by_training_row(m: int, shift: float, bandwidth: float) -> float:
    """Return by how much residuals that move by `shift` change "hsic" of m test rows at most."""
    return m / (m - 1) * math.sqrt(-2 * math.expm1(-((shift / bandwidth) ** 2) / 2))


def rank_distance(
    score: str, residuals: Floats, proposed: float, shift: float, *, protects_test: bool
) -> int:
    """Return how many rows to replace until another may change a rank score by more than proposed.

    The bound u_k is ``N(2 (k + 1) R) + k (m - 1)`` times the change per pair, N(t) the number of
    pairs that are at most t apart: k training rows close gaps by 2 k R, and each test row is in
    m - 1 pairs. If test rows are not protected, they stay, and ``k (m - 1)`` is left out.

    residuals (m,) float64; shift > 0 is R; proposed >= 0, where 0 asks for how long the score does
    not change at all; `protects_test` says whether replaced rows may be test rows.
    """
    if proposed >= 1.0:  # the score is in [0, 1]
        return _MOST
    m = len(residuals)
    per_pair = _per_pair(score, m)
    if protects_test and by_test_row(score, m) > proposed:
        return 0
    ordered = np.sort(residuals)

    def bound(k: int) -> float:
        within = np.searchsorted(ordered, ordered + 2 * (k + 1) * shift, side="right")
        pairs = int((within - np.arange(1, m + 1)).sum())
        return per_pair * (pairs + protects_test * k * (m - 1))

    return _first_above(bound, proposed)


def iqr_distance(
    samples: Sequence[tuple[Floats, float]], proposed: float, *, protects_test: bool
) -> int:
    """Return how many rows to replace until another may change a log IQR by more than proposed.

    Let v be the sorted numbers and i the place of a quartile. After k test rows are replaced, the
    numbers beside the quartile may be those that are k + 1 places apart, a window around i;
    another row moves both quartiles by a place, in the same direction, or one, so the IQR changes
    by no more than the widest window g_k. It is not less than I_k, the least difference of numbers
    that are k + 1 places closer. Training rows move numbers by R each: ``u_k = log(1 + max(g_k +
    2 k R, 2 R) / (I_k - 2 (k + 1) R))``. If test rows are not protected, they stay, I_k is the
    IQR, and the next training row changes that by 2 R, whatever k is, in place of the maximum.

    `samples` are pairs of numbers, (m,) float64, and their R >= 0; the least distance of them all
    is returned. proposed > 0, nats, is for each log IQR; `protects_test` says whether replaced rows
    may be test rows.
    """
    return min(
        _first_above(_iqr_bound(np.sort(numbers), shift, protects_test), proposed)
        for numbers, shift in samples
    )


def farthest(score: str, m: int, proposed: float) -> float:
    """Return the largest distance that any m >= 3 rows have where test rows are protected.

    The proposal, >= 0, is for the score "spearman", "kendall" or "iqr".
    """
    if score == "iqr":
        return interquartile(m)[0] if proposed > 0 else 0
    if by_test_row(score, m) > proposed:
        return 0
    return math.inf if proposed >= 1.0 else 1 + proposed / (_per_pair(score, m) * (m - 1))


def _per_pair(score: str, m: int) -> float:
    return 4 / (m * (m - 1)) if score == "kendall" else 12 / (m * (m + 1))


def _iqr_bound(ordered: Floats, shift: float, protects_test: bool) -> Callable[[int], float]:
    low, high = interquartile(len(ordered))

    def bound(k: int) -> float:
        change, least = 2 * shift, float(ordered[high] - ordered[low])
        if protects_test:
            if k + 1 > low:  # beyond the least number, where anything may be
                return math.inf
            places = np.arange(k + 2)
            gap = max(float(_apart(ordered, i - places, k + 1).max()) for i in (low, high))
            change = max(change, gap + 2 * k * shift)
            inner = ordered[high - (k + 1) + places] - ordered[low + places]
            least = float(inner.min())
        least -= 2 * (k + 1) * shift
        return math.log1p(change / least) if least > 0 else math.inf

    return bound


def _apart(ordered: Floats, places: "np.ndarray[tuple[int], np.dtype[np.int64]]", n: int) -> Floats:
    """Return how far apart numbers are of which the second is `n` places above the first."""
    apart: Floats = ordered[places + n] - ordered[places]
    return apart


_MOST = 1 << 20  # rows beyond which no distance is told


def _first_above(bound: Callable[[int], float], proposed: float) -> int:
    """Return the first k >= 0 at which a bound that rises with k exceeds what was proposed."""
    return bisect_right(range(_MOST), proposed, key=bound)
