"""The mean of weighted values that come in blocks, and its standard error."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["WeightedMean"]


class WeightedMean:
    """Sums over values; a weight is how many equal values one stands for.

    Attributes
    ----------
    weight : float >= 0
        Of all values.
    mean : float
        NaN without weight.
    """

    def __init__(self) -> None:
        """Start without values."""
        self.weight = 0.0
        self.mean = math.nan
        self._squares = 0.0  # of what the values differ from their mean

    def add(self, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> None:
        """Add a block.

        Parameters
        ----------
        values : (n,) float64
        weights : (n,) float64 >= 0, optional
            1 each by default.
        """
        weights = np.ones(len(values)) if weights is None else weights
        added = float(weights.sum())
        if added == 0.0:
            return
        mean = float(np.dot(values, weights)) / added
        self._squares += float(np.dot((values - mean) ** 2, weights))
        if self.weight:
            between = (mean - self.mean) ** 2
            self._squares += between * self.weight * added / (self.weight + added)
            mean = (self.mean * self.weight + mean * added) / (self.weight + added)
        self.weight, self.mean = self.weight + added, mean

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN for a weight of at most 1."""
        if self.weight <= 1.0:
            return math.nan
        return math.sqrt(self._squares / (self.weight - 1.0) / self.weight)
