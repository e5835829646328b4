"""Columns of a basis in units in which a coefficient says as much in each of them."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.classifier_trees.sums import units_of
from bayescascade.methods.classifier_trees.tree import Linear

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


class Standard(NamedTuple):
    """What is subtracted from each column, (p,), and what it is multiplied by: 0 if constant."""

    means: Numbers
    scales: Numbers

    @classmethod
    def of(cls, made: Numbers, weights: Numbers) -> Self:
        """Return the weighted means, and one over the deviations, of columns (n, p)."""
        present = made[weights > 0]
        shares = weights[weights > 0] / weights.sum()
        means, units = shares @ present, units_of(present)
        units[units == 0] = 1.0
        deviations = np.sqrt(shares @ ((present - means) / units) ** 2)
        varies = (present.max(axis=0) > present.min(axis=0)) & (deviations > 0)
        return cls(means, np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0) / units)

    def scaled(self, made: Numbers) -> Numbers:
        """Return columns (n, p) of mean 0 and variance 1; constant ones are 0."""
        return (made - self.means) * self.scales

    def linear(
        self, coefficients: Numbers, intercepts: Numbers, columns: Places, kind: str
    ) -> Linear:
        """Return the outputs of some scaled columns, by coefficients (p, c), in their units."""
        own = (coefficients * self.scales[:, np.newaxis])[columns].T
        return Linear(columns, own, intercepts - own @ self.means[columns], kind)
