"""Standardized units of the columns of a matrix."""

from typing import Annotated, NamedTuple

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.store import Of


class Units(NamedTuple):
    """Center and scale > 0 of each column, (n_columns,): subtracted, then divided."""

    center: Annotated[Floats, Of("columns")]
    units: Annotated[Floats, Of("columns", above=0)]

    @classmethod
    def of(cls, matrix: Floats) -> "Units":
        """Return means and standard deviations, without overflow; 1 for columns without spread."""
        center = np.sum(matrix / len(matrix), axis=0)
        is_constant = (matrix == matrix[0]).all(axis=0)
        center[is_constant] = matrix[0, is_constant]  # rounding may give another value
        units = np.ones(matrix.shape[1])
        for place in np.flatnonzero(~is_constant):
            with np.errstate(over="ignore"):
                away = np.abs(matrix[:, place] - center[place])
                largest = float(away.max())
                units[place] = largest * np.sqrt(np.mean((away / largest) ** 2))
        too_large = ~(np.isfinite(units) & (units > 0.0))
        center[too_large], units[too_large] = 0.0, 1.0
        return cls(center, units)

    def scaled(self, rows: Floats) -> Floats:
        """Return rows of the matrix in these units."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled: Floats = (rows - self.center) / self.units
        return scaled

    def unscaled(self, rows: Floats) -> Floats:
        """Return scaled rows in their original units."""
        return rows * self.units + self.center
