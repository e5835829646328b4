"""The gain of a model's splits on each feature, as shares: `feature_importances_`.

A model has them only if they have a meaning, and documents what is shared.
"""

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Floats


def importance_shares(n_features: int, features: ArrayLike, gains: ArrayLike) -> Floats:
    """Return each feature's share of the gain of splits; 0 if its total gain is negative.

    features (n_splits,) int; gains (n_splits,) float64; what is returned (n_features,) float64
    >= 0, with sum 1, or 0 without any gain.
    """
    sums = np.zeros(n_features)
    np.add.at(sums, np.asarray(features, np.intp), np.asarray(gains, np.float64))
    sums = np.maximum(sums, 0.0)
    total = sums.sum()
    shares: Floats = sums / total if total > 0 else sums
    return shares
