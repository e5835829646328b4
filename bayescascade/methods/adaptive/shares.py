"""The best shares q of the full model, given the gate and both models, in two ways.

`best_split` is (OPT1) of `objective`, in closed form but for the price beta. `best_log_odds` is for
a gate that is fitted to the log odds of q (Adapt-LstSq): Nan ("Learning to predict under a budget",
2018), (OPT5) of A.1 corrected as in the errata of the documentation: over s_i = logit(q_i), with
a_i = l_1i - l_0i,

    sum_i w_i [(1 - q_i) l_1i + q_i l_0i + (s_i - g_i)^2],      sum_i w_i q_i <= P_full.

At a price beta >= 0 of a share each row minimizes ``h(s) = (a - beta) sigma(-s) + (s - g)^2`` by
itself. Its derivative ``2 (s - g) - (a - beta) sigma(s) sigma(-s)`` has all its roots between g and
g + (a - beta) / 8, and a single one where ``|a - beta| < 12 sqrt 3``, since the derivative of
sigma(s) sigma(-s) is at most 1 / (6 sqrt 3). Elsewhere the best of the roots that a grid tells
apart is taken.

The price is found by Newton's method in a bracket: q falls as it grows. Where all rows have a
single root, q is continuous in the price, so that the limit is met, and the shares are the best
ones: for any others within the limit, the sum is no less. Else rows may jump, and what is returned
is the best of those whose mean is at most the mean returned.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from bayescascade.methods.adaptive.kernels.logistic import price_of_limit

Numbers = NDArray[np.float64]

_SINGLE = 12.0 * math.sqrt(3.0)
_N_STEPS = 60
_N_GRID = 33
_NEAR = 1e-10  # below the limit that the mean of q may be


class Split(NamedTuple):
    """Shares q (n,) of rows that go to the full model, the price beta of doing so, and logit q."""

    shares: Numbers
    beta: float
    logits: Numbers


def best_split(gaps: Numbers, sizes: Numbers, limit: float) -> Split:
    """Return q_i = sigma(gap_i - beta) with the least beta >= 0 such that sum w q <= limit.

    By Newton's method within a bracket that bisection halves where a step would leave it; gaps are
    A - B (n,), sizes w (n,) of sum 1.
    """
    if limit <= 0.0:
        return Split(np.zeros_like(gaps), np.inf, np.full_like(gaps, -np.inf))
    if limit >= 1.0:
        return Split(expit(gaps), 0.0, gaps)
    shares = np.empty_like(gaps)
    highest = max(float(gaps.max()) - float(logit(limit)), 0.0)  # all are at most the limit there
    beta = price_of_limit(gaps, sizes, limit, highest, shares)
    return Split(shares, beta, gaps - beta)


def best_log_odds(gaps: Numbers, gates: Numbers, sizes: Numbers, limit: float) -> Split:
    """Return the best shares, by gaps a (n,), gates g (n,) and sizes w (n,) of sum 1; limit > 0."""
    logits = _logits(gaps, gates)
    if limit >= 1.0 or float(sizes @ expit(logits)) <= limit:
        return Split(expit(logits), 0.0, logits)
    low, high = 0.0, 1.0
    while float(sizes @ expit(_logits(gaps - high, gates))) > limit:
        low, high = high, 2.0 * high
    beta = low
    for _ in range(_N_STEPS):
        logits = _logits(gaps - beta, gates)
        chances = expit(logits)
        excess = float(sizes @ chances) - limit
        low, high = (beta, high) if excess > 0 else (low, beta)
        if -_NEAR <= excess <= 0 or high - low <= 1e-15 * high:
            break
        bends = chances * expit(-logits)
        curvatures = 2.0 - (gaps - beta) * bends * (1.0 - 2.0 * chances)
        slope = float(sizes @ (bends**2 / np.where(curvatures > 0, curvatures, np.inf)))
        step = beta + (excess + 0.5 * _NEAR) / slope if slope > 0 else low
        beta = step if low < step < high else 0.5 * (low + high)
    logits = _logits(gaps - high, gates)
    return Split(expit(logits), high, logits)


def _logits(prices: Numbers, gates: Numbers) -> Numbers:
    """Return the s (n,) that minimize ``price sigma(-s) + (s - g)^2``."""
    ends = gates + prices / 8.0
    low, high = np.minimum(gates, ends), np.maximum(gates, ends)
    many = np.flatnonzero(np.abs(prices) >= _SINGLE)
    if many.size:
        low[many], high[many] = _brackets(prices[many], gates[many], low[many], high[many])
    found = 0.5 * (low + high)
    for _ in range(_N_STEPS):
        chances = expit(found)
        bends = chances * expit(-found)
        slopes = 2.0 * (found - gates) - prices * bends
        low, high = np.where(slopes <= 0, found, low), np.where(slopes > 0, found, high)
        curvatures = 2.0 - prices * bends * (1.0 - 2.0 * chances)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = found - slopes / curvatures
        inside = (newton >= low) & (newton <= high)
        following = np.where(inside, newton, 0.5 * (low + high))
        if np.abs(following - found).max(initial=0.0) <= 1e-11:
            return following
        found = following
    return found


def _brackets(
    prices: Numbers, gates: Numbers, low: Numbers, high: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the parts of [low, high] around the best root of each, separated by a grid."""
    ends = low[:, np.newaxis], high[:, np.newaxis]
    whole = ends[0] + (ends[1] - ends[0]) * np.linspace(0.0, 1.0, _N_GRID)
    bend = np.linspace(-8.0, 8.0, _N_GRID).clip(*ends)  # where sigma bends
    grid = np.concatenate([whole, bend], axis=1)
    values = prices[:, np.newaxis] * expit(-grid) + (grid - gates[:, np.newaxis]) ** 2
    best = grid[np.arange(len(grid)), values.argmin(axis=1)][:, np.newaxis]
    below = np.where(grid < best, grid, -np.inf).max(axis=1)
    above = np.where(grid > best, grid, np.inf).min(axis=1)
    return np.maximum(below, low), np.minimum(above, high)
