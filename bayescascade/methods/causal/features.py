r"""Gaussian kernels by features: ``exp(-(u - v)^2 / (2 b^2)) = phi(u) . phi(v)``, bandwidth b.

The features are those of landmarks, a grid that is declared and not learned: phi(u) is the
orthogonal projection of the kernel's feature of u onto what those of the landmarks span. On a line
few of them are enough, since the eigenvalues of a Gaussian kernel fall faster than exponentially:
with five landmarks to two bandwidths the kernel is met to 1e-9 between the ends of the grid.

**Why private scores may use them.** A projection shortens: ``|phi(u)| <= 1``, and whatever was
proved of the norms of differences of features holds of their projections, too, far outside of the
grid as well. The landmarks do not depend on the rows.
"""

import math

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.validation import check_real

Floats = NDArray[np.float64]

_PER_BANDWIDTH = 2.5
_OVERHANG = 3  # bandwidths beyond the ends, where the grid would be short of neighbors
_LEAST_EIGENVALUE = 1e-13  # of the largest; what is smaller is rounding
_MOST_LANDMARKS = 2000


class GaussianFeatures:
    """The features of a Gaussian kernel, of `bandwidth`, on [low, high], up to 1,000 bandwidths."""

    def __init__(self, bandwidth: float, low: float, high: float) -> None:
        least = (high - low) * _PER_BANDWIDTH / _MOST_LANDMARKS
        self._bandwidth = check_real("bandwidth", bandwidth, above=0.0, minimum=least)
        beyond = _OVERHANG * bandwidth
        n_landmarks = 1 + math.ceil((high - low + 2 * beyond) * _PER_BANDWIDTH / bandwidth)
        self._landmarks = np.linspace(low - beyond, high + beyond, n_landmarks)
        kernel = gaussian_kernel(self._landmarks, self._landmarks, bandwidth)
        values, vectors = np.linalg.eigh(kernel)
        kept = values > _LEAST_EIGENVALUE * values[-1]
        self._weights = vectors[:, kept] / np.sqrt(values[kept])  # from kernels with landmarks

    def __call__(self, numbers: Floats) -> Floats:
        """Return the features of (n,) numbers, (n, n_features)."""
        kernel = gaussian_kernel(numbers, self._landmarks, self._bandwidth)
        features: Floats = kernel @ self._weights
        return features

    @classmethod
    def around(cls, numbers: Floats, bandwidth: float) -> "GaussianFeatures":
        """Return features of an interval that holds all numbers but those very far out.

        Those are more than 200 bandwidths from the median: such a number is as if alone.
        """
        middle, most = float(np.median(numbers)), 200 * bandwidth
        low, high = float(numbers.min()), float(numbers.max())
        return cls(bandwidth, max(low, middle - most), min(high, middle + most))


def gaussian_kernel(numbers: Floats, others: Floats, bandwidth: float) -> Floats:
    """Return the kernel between (n,) and (m,) numbers, (n, m)."""
    apart = (numbers[:, np.newaxis] - others) / bandwidth
    return np.exp(-0.5 * apart**2)
