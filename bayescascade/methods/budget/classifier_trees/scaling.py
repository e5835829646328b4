"""Units of columns and targets at a node of a tree: sums of squares, and standard columns."""

from typing import NamedTuple, Self

import numpy as np

from bayescascade.base.arrays import Floats, Integers
from bayescascade.methods.budget.classifier_trees.tree import Linear

RIDGE = 1e-6
"""It is added to the variance, 1, of every column."""

_LEAST_EXPONENT = 1000


class NodeSums(NamedTuple):
    """Sums of squares of p columns and c targets at a node, and their scaling.

    squares (p + c, p + c); means, scales (p + c,): z-scores are (x - means) * scales; scales of
    constant columns are 0.
    """

    squares: Floats
    means: Floats
    scales: Floats
    n_columns: int  # p


def squares_of(columns: Floats, targets: Floats, weights: Floats, ridge: float = RIDGE) -> NodeSums:
    """Return the sums of squares of columns and targets at a node.

    columns (n, p) get variance 1 at the node, or 0 if constant; targets (n, c) get variances of sum
    1; weights (n,) >= 0.
    """
    is_present = weights > 0
    shares = weights[is_present] / weights.sum()
    if not is_present.all():
        columns, targets = columns[is_present], targets[is_present]
    both = np.column_stack([columns, targets])
    units = units_of(both)
    is_constant = units == 0
    means = shares @ both
    both -= means
    both *= np.sqrt(shares)[:, np.newaxis]
    units[is_constant] = 1.0
    units[columns.shape[1] :] = 1.0
    both /= units
    squares = both.T @ both
    n_columns = columns.shape[1]
    variances = np.where(is_constant, 1.0, squares.diagonal())
    scale = np.where(is_constant, 0.0, 1 / np.sqrt(variances))
    total = variances[n_columns:][~is_constant[n_columns:]].sum()
    scale[n_columns:] = 1 / np.sqrt(total) if total > 0 else 0.0
    squares *= scale * scale[:, np.newaxis]
    places = np.flatnonzero(~is_constant[:n_columns])
    squares[places, places] = 1.0 + ridge
    return NodeSums(squares, means, scale / units, n_columns)


def units_of(columns: Floats) -> Floats:
    """Return powers of 2 near the spread of columns (n, p), (p,); 0 for constant columns.

    Such units cause no rounding, and squares neither vanish nor overflow. Columns with a spread
    below 2^-1000 count as constant.
    """
    _, exponents = np.frexp(columns.max(axis=0) / 2 - columns.min(axis=0) / 2)
    is_some = (columns.max(axis=0) > columns.min(axis=0)) & (exponents > -_LEAST_EXPONENT)
    return np.where(is_some, np.ldexp(1.0, exponents), 0.0)


class Standard(NamedTuple):
    """Mean and scale factor of each column, (p,); the factor is 0 if it is constant."""

    means: Floats
    scales: Floats

    @classmethod
    def of(cls, made: Floats, weights: Floats) -> Self:
        """Return the weighted means and inverse deviations of columns (n, p)."""
        present = made[weights > 0]
        shares = weights[weights > 0] / weights.sum()
        means, units = shares @ present, units_of(present)
        units[units == 0] = 1.0
        deviations = np.sqrt(shares @ ((present - means) / units) ** 2)
        varies = (present.max(axis=0) > present.min(axis=0)) & (deviations > 0)
        return cls(means, np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0) / units)

    def scaled(self, made: Floats) -> Floats:
        """Return columns (n, p) of mean 0 and variance 1; constant ones are 0."""
        return (made - self.means) * self.scales

    def linear(
        self, coefficients: Floats, intercepts: Floats, columns: Integers, kind: str
    ) -> Linear:
        """Return outputs in original units, from coefficients (p, c) of some scaled columns."""
        own = (coefficients * self.scales[:, np.newaxis])[columns].T
        return Linear(columns, own, intercepts - own @ self.means[columns], kind)
