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
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.validation import check_real

Floats = NDArray[np.float64]

_PER_BANDWIDTH = 2.5
_OVERHANG = 3  # bandwidths beyond the ends, where the grid would be short of neighbors
_LEAST_EIGENVALUE = 1e-13  # of the largest; what is smaller is rounding
_MOST_LANDMARKS = 2000


@dataclass(frozen=True)
class GaussianFeatures:
    """The features of a Gaussian kernel on the interval [low, high].

    Raises ParameterError if the interval is more than about a thousand bandwidths wide.
    """

    bandwidth: float  # > 0, in the units of the numbers
    low: float
    high: float  # outside of the interval the kernel is met less well
    _landmarks: Floats = field(init=False, repr=False, compare=False)
    _weights: Floats = field(
        init=False, repr=False, compare=False
    )  # from kernels with landmarks to features

    def __post_init__(self) -> None:
        least = (self.high - self.low) * _PER_BANDWIDTH / _MOST_LANDMARKS
        check_real("bandwidth", self.bandwidth, above=0.0, minimum=least)
        beyond = _OVERHANG * self.bandwidth
        width = self.high - self.low + 2 * beyond
        n_landmarks = 1 + math.ceil(width * _PER_BANDWIDTH / self.bandwidth)
        landmarks = np.linspace(self.low - beyond, self.high + beyond, n_landmarks)
        object.__setattr__(self, "_landmarks", landmarks)
        values, vectors = np.linalg.eigh(gaussian_kernel(landmarks, landmarks, self.bandwidth))
        kept = values > _LEAST_EIGENVALUE * values[-1]
        object.__setattr__(self, "_weights", vectors[:, kept] / np.sqrt(values[kept]))

    def __call__(self, numbers: Floats) -> Floats:
        """Return the features of (n,) numbers, (n, n_features)."""
        features: Floats = gaussian_kernel(numbers, self._landmarks, self.bandwidth) @ self._weights
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
    kernel: Floats = np.exp(-0.5 * apart**2)
    return kernel
