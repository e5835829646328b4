r"""How much a test row can change a score: bounds that hold for all rows, and a distance to worse.

Neighbors differ in one of the m rows that test: u_k, v_k, of a and of b, become others. All numbers
are within declared bounds, scaled to [-1, 1]; kernels are Gaussian, so that ``0 <= k <= k(u, u) =
1``; bandwidths and proposals do not depend on any row.

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
  ``p = phi(u_k) - mu``, p~ of the new row, and q, q~ by psi, let ``e = |mu|^2 - <phi(u_k), mu> -
  <phi(u~_k), mu>``, so that ``<p, p~> >= e`` and ``|p|^2 + |p~|^2 = 2 + 2 e``, and e' of q. If e,
  e' >= 0, then ``|A - B|^2 = |p|^2 |q|^2 + |p~|^2 |q~|^2 - 2 <p, p~> <q, q~> <= 2 (1 + e)(1 + e')
  + 2 t t' - 2 e e'`` where ``t = (|p|^2 - |p~|^2) / 2`` is within ``1 - e`` of 0, as means of
  kernels are >= 0 and ``|mu| <= 1``; that is at most ``4 + 2 e e' <= 6``. If the inner products
  have different signs, say ``-c = <p, p~> < 0``, then ``c <= -e``, and ``|A - B|^2 <= max(|q|^2,
  |q~|^2) (2 + 2 e + 2 c) <= 4``, as ``|q|^2 <= 2``; if they have the same but e < 0, ``|A - B|^2
  <= 2 (2 + 2 e) <= 4``. Hence ``sqrt(6) / m``. (For HSIC itself, the square, this proves ``sqrt(6)
  / (m - 1)``, as ``|C| <= 1 / 2``; the thesis has ``(12 m - 11) / (m - 1)^2``, not proved.)

**A distance.** `iqr_distance` returns how many rows have to be replaced, at least, until another
one might change the score by more than was proposed; replacing one row changes it by at most 1, as
propose-test-release demands. It is the first k at which a bound u_k on the change exceeds the
proposal, where u_k of a neighbor is at most u_{k+1}.
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


def iqr_distance(samples: Sequence[Floats], proposed: float) -> int:
    """Return how many rows to replace until another may change a log IQR by more than proposed.

    Let v be the sorted numbers and i the place of a quartile. After k rows are replaced, the
    numbers beside the quartile may be those that are k + 1 places apart, a window around i;
    another row moves both quartiles by a place, in the same direction, or one, so the IQR changes
    by no more than the widest window g_k. It is not less than I_k, the least difference of numbers
    that are k + 1 places closer: ``u_k = log(1 + g_k / I_k)``.

    `samples` are (m,) float64 each, of which the least distance is returned; proposed > 0, nats, is
    for each log IQR.
    """
    return min(
        bisect_right(range(len(numbers)), proposed, key=_iqr_bound(np.sort(numbers)))
        for numbers in samples
    )


def _iqr_bound(ordered: Floats) -> Callable[[int], float]:
    low, high = interquartile(len(ordered))

    def bound(k: int) -> float:
        if k + 1 > low:  # beyond the least number, where anything may be
            return math.inf
        places = np.arange(k + 2)
        starts = np.array([[low], [high]]) - places  # of windows
        gap = float((ordered[starts + k + 1] - ordered[starts]).max())
        least = float((ordered[high - (k + 1) + places] - ordered[low + places]).min())
        return math.log1p(gap / least) if least > 0 else math.inf

    return bound
