"""Quantiles of mixtures of Beta distributions: how sure an average over lists is."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

__all__ = ["beta_mixture_quantile"]

_TOLERANCE = 1e-10
_MOST_STEPS = 60


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
