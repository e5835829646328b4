"""Averages of lists of labels over posterior draws: of probabilities, and of how sure they are.

A class's probability has a Beta distribution in each part of each draw; over the draws it is a
mixture of them, whose mean and quantiles are told.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from bayescascade.rules.label_list import LabelList
from bayescascade.validation import check_probability

__all__ = ["average_intervals", "average_probabilities", "beta_mixture_quantile"]

_TOLERANCE = 1e-10
_MOST_STEPS = 60
_MOST_BETAS = 1 << 20  # evaluated at once


def average_probabilities(
    draws: Sequence[LabelList], times: NDArray[np.float64], codes: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return the mean probability of each class over draws, (n_rows, n_classes) float64.

    Parameters
    ----------
    draws : sequence of LabelList
        At least one.
    times : (n_draws,) float64 > 0
        How often each was drawn.
    codes : (n_columns, n_rows) int32
    """
    total = np.zeros((codes.shape[1], draws[0].n_classes))
    for labels, n in zip(draws, times, strict=True):
        total += n * labels.probabilities[labels.part_of_codes(codes)]
    averaged: NDArray[np.float64] = total / times.sum()
    return averaged


def average_intervals(
    draws: Sequence[LabelList],
    times: NDArray[np.float64],
    codes: NDArray[np.int32],
    level: float,
) -> NDArray[np.float64]:
    """Return equal-tailed credible intervals over draws, (n_rows, n_classes, 2) float64.

    Parameters
    ----------
    draws, times, codes
        As in `average_probabilities`.
    level : float in (0, 1)
        Posterior probability that one class's probability is inside, for each class by itself.
    """
    level = check_probability("level", level, strict=True)
    columns = sorted({c.column for labels in draws for rule in labels.rules for c in rule})
    seen, position = np.unique(codes[columns], axis=1, return_inverse=True)
    cells = np.full((codes.shape[0], seen.shape[1]), -1, np.int32)
    cells[columns] = seen
    found = [(labels.beta_parameters, labels.part_of_codes(cells)) for labels in draws]
    intervals = np.empty((seen.shape[1], draws[0].n_classes, 2))
    most = max(1, _MOST_BETAS // (len(draws) * draws[0].n_classes))
    for start in range(0, seen.shape[1], most):
        chosen = slice(start, start + most)
        of_class = np.array([ones[parts[chosen]] for (ones, _), parts in found])
        of_others = np.array([others[parts[chosen]] for (_, others), parts in found])
        for side, q in enumerate(((1 - level) / 2, (1 + level) / 2)):
            intervals[chosen, :, side] = beta_mixture_quantile(
                of_class, of_others, times / times.sum(), q
            )
    return intervals[position.reshape(-1)]


def beta_mixture_quantile(
    of_class: NDArray[np.float64],
    of_others: NDArray[np.float64],
    weights: NDArray[np.float64],
    q: float,
) -> NDArray[np.float64]:
    """Return where the distribution function of each mixture is `q`.

    Parameters
    ----------
    of_class, of_others : (n_components, ...) float64 > 0
        Both parameters of each Beta distribution.
    weights : (n_components,) float64 > 0
        They sum up to 1.
    q : float in (0, 1)

    Returns
    -------
    (...) float64
        To 1e-10, by bisection between the lowest and the highest of the components' quantiles.
    """
    quantiles = betaincinv(of_class, of_others, q)
    low, high = quantiles.min(axis=0), quantiles.max(axis=0)
    for _ in range(_MOST_STEPS):
        if np.all(high - low <= _TOLERANCE):
            break
        middle = (low + high) / 2
        below = np.tensordot(weights, betainc(of_class, of_others, middle), axes=1)
        low, high = np.where(below < q, middle, low), np.where(below < q, high, middle)
    middles: NDArray[np.float64] = (low + high) / 2
    return middles
