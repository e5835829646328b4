"""Quantiles of many mixtures of Beta distributions, which share their components.

Lists that were drawn from a posterior resemble one another, so few different components occur: a
mixture is a row of a sparse matrix of weights over them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import elementwise
from scipy.sparse import csr_array
from scipy.special import betainc

__all__ = ["mixture_quantiles"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_TOLERANCES = {"xatol": 1e-10, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0}
_MOST_BETAS = 1 << 20  # evaluated at once


def mixture_quantiles(
    of_class: Floats, of_others: Floats, weights: csr_array, levels: Sequence[float]
) -> Floats:
    """Return where the distribution function of each mixture reaches each level.

    Parameters
    ----------
    of_class, of_others : (n_components, n_classes) float64 > 0
        Both parameters of each component's Beta distributions, of which a class has one.
    weights : (n_mixtures, n_components) sparse float64 >= 0
        Each row sums up to 1.
    levels : sequence of float in (0, 1)

    Returns
    -------
    (n_mixtures, n_classes, n_levels) float64
        To 1e-10. Four digits are printed, but twice as many cost just a step or two more.
    """
    n_mixtures, n_classes = weights.shape[0], of_class.shape[1]
    quantiles = np.empty((n_mixtures, n_classes, len(levels)))
    n_components = np.diff(weights.indptr)
    at_once = max(1, _MOST_BETAS // (int(n_components.max()) * n_classes * len(levels)))
    for start in range(0, n_mixtures, at_once):
        chosen = np.arange(start, min(start + at_once, n_mixtures))
        wanted = np.meshgrid(chosen, np.arange(n_classes), levels, indexing="ij")
        found = elementwise.find_root(
            lambda x, mixture, label, level: (
                _cdf(x, mixture, label, of_class, of_others, weights) - level
            ),
            (0.0, 1.0),
            args=tuple(one.ravel() for one in wanted),
            tolerances=_TOLERANCES,
        )
        quantiles[chosen] = found.x.reshape(wanted[0].shape)
    return quantiles


def _cdf(
    x: Floats,
    mixture: Indices,
    label: Indices,
    of_class: Floats,
    of_others: Floats,
    weights: csr_array,
) -> Floats:
    """Return the distribution function of a class in a mixture at each point; all are (n,)."""
    n_components = np.diff(weights.indptr)[mixture]
    ends = np.cumsum(n_components)
    starts = ends - n_components
    # where the components of all these mixtures stand, one mixture after the other
    entries = np.arange(ends[-1]) + np.repeat(weights.indptr[mixture] - starts, n_components)
    components, labels = weights.indices[entries], np.repeat(label, n_components)
    below = betainc(
        of_class[components, labels], of_others[components, labels], np.repeat(x, n_components)
    )
    totals: Floats = np.add.reduceat(weights.data[entries] * below, starts)
    return totals
