"""Standardized units of the columns of a matrix."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ModelFileError


class Units(NamedTuple):
    """Center and scale > 0 of each column, (n_columns,): subtracted, then divided."""

    center: Floats
    units: Floats

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

    def record(self) -> dict[str, list[float]]:
        """Return plain JSON types."""
        return {"center": self.center.tolist(), "units": self.units.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> "Units":
        """Return what `record` returned; raises ModelFileError if columns differ in number."""
        center, units = (np.array(record[name], np.float64) for name in ("center", "units"))
        is_scaled = center.shape == (n_columns,) == units.shape
        if not is_scaled or not np.isfinite([center, units]).all() or (units <= 0.0).any():
            raise ModelFileError("a saved model's units must be numbers > 0 for each column")
        return cls(center, units)
