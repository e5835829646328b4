"""Sums of logistic losses over rows, and the price at which a limit of shares is met.

Each takes one pass over the rows, where NumPy takes several; `softplus(s) = log(1 + exp(s))`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Numbers = NDArray[np.float64]


@inner_kernel
def _softplus(score):
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))


@inner_kernel
def _chance(score):
    if score >= 0.0:
        return 1.0 / (1.0 + math.exp(-score))
    small = math.exp(score)
    return small / (1.0 + small)


@kernel
def logistic_loss(scores: Numbers, targets: Numbers, sizes: Numbers) -> float:
    """Return ``sum_i size_i [softplus(score_i) - target_i score_i]``, targets in [0, 1]."""
    total = 0.0
    for i in range(scores.shape[0]):
        total += sizes[i] * (_softplus(scores[i]) - targets[i] * scores[i])
    return total


@kernel
def logistic_slopes(
    scores: Numbers, targets: Numbers, sizes: Numbers, slopes: Numbers, bends: Numbers
) -> float:
    """Return the loss, and write its first and second derivatives by the scores; all (n,)."""
    total = 0.0
    for i in range(scores.shape[0]):
        chance = _chance(scores[i])
        total += sizes[i] * (_softplus(scores[i]) - targets[i] * scores[i])
        slopes[i] = sizes[i] * (chance - targets[i])
        bends[i] = sizes[i] * chance * (1.0 - chance)
    return total


@kernel
def signed_losses(scores: Numbers, labels: NDArray[np.int64], losses: Numbers) -> None:
    """Write softplus of the scores (n,), with their sign changed for rows with a label above 0."""
    for i in range(scores.shape[0]):
        losses[i] = _softplus(-scores[i] if labels[i] > 0 else scores[i])


@kernel
def gated_losses(
    gates: Numbers, local: Numbers, full: Numbers, kept: Numbers, sent: Numbers
) -> None:
    """Write local + softplus(gate) and full + softplus(-gate), (n,) each."""
    for i in range(gates.shape[0]):
        away = _softplus(gates[i])
        kept[i], sent[i] = local[i] + away, full[i] + away - gates[i]


@kernel
def price_of_limit(
    gaps: Numbers, sizes: Numbers, limit: float, highest: float, shares: Numbers
) -> float:
    """Return the least price at which ``sum size_i sigma(gap_i - price)`` is at most a limit.

    Newton's method in the bracket [0, highest], where the limit is met at `highest`; also writes
    the shares.
    """
    low, high, price = 0.0, highest, 0.0
    for _ in range(200):
        total, slope = 0.0, 0.0
        for i in range(gaps.shape[0]):
            share = _chance(gaps[i] - price)
            shares[i] = share
            total += sizes[i] * share
            slope += sizes[i] * share * (1.0 - share)
        excess = total - limit
        if (price == 0.0 and excess <= 0.0) or abs(excess) <= 1e-14 or high - low <= 1e-15 * high:
            break
        if excess > 0.0:
            low = price
        else:
            high = price
        step = price + excess / slope if slope > 0.0 else low
        price = step if low < step < high else 0.5 * (low + high)
    return price


@kernel
def least_objective(kept: Numbers, sent: Numbers, price: float, weights: Numbers) -> float:
    """Return ``-sum_i w_i log[exp(-kept_i) + exp(-sent_i - price)]``."""
    total = 0.0
    for i in range(kept.shape[0]):
        total += weights[i] * (kept[i] - _softplus(kept[i] - sent[i] - price))
    return total
