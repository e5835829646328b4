"""How much a model's splits on each feature are worth, as shares: what `feature_importances_` is.

A model offers them where they mean something, and says of what they are shares; the attribute is
missing elsewhere.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def importance_shares(
    n_features: int, features: ArrayLike, gains: ArrayLike
) -> NDArray[np.float64]:
    """Return each feature's share of what splits win; 0 if its splits together lose.

    features (n_splits,) int; gains (n_splits,) float64; what is returned (n_features,) float64
    >= 0, with sum 1, or 0 if no split wins anything.
    """
    sums = np.zeros(n_features)
    np.add.at(sums, np.asarray(features, np.intp), np.asarray(gains, np.float64))
    sums = np.maximum(sums, 0.0)
    total = sums.sum()
    shares: NDArray[np.float64] = sums / total if total > 0 else sums
    return shares
