"""Two columns of numbers: read, scaled, and split into parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.typed_words import typed
from bayescascade.base.validation import check_bounds
from bayescascade.data.arrow_frames import as_column
from bayescascade.data.levels import check_numbers, to_numbers

LEAST_ROWS = 20
_TIED = 10  # one value may be in a tenth of the rows
_FEW = 3  # number of equal rows allowed in any table


@dataclass(frozen=True, eq=False)
class Pair:
    """Rows of two variables; x, y (n_rows,) float64."""

    x: Floats
    y: Floats
    names: Mapping[str, str]  # names of "x" and "y"

    @classmethod
    def read(cls, x: Any, y: Any) -> "Pair":
        """Read two columns: arrays, lists, Series or tables of one column, of 20 rows or more."""
        (x_name, x), (y_name, y) = (_column(*values) for values in (("x", x), ("y", y)))
        if len(x) != len(y):
            raise DataError(
                f"x and y must have the same number of rows, got {len(x):,} and {len(y):,}"
            )
        if len(x) < LEAST_ROWS:
            raise DataError(f"x and y must have at least {LEAST_ROWS} rows, got {len(x):,}")
        if x_name == y_name:
            x_name, y_name = "x", "y"
        return cls(x, y, {"x": x_name, "y": y_name})

    def standardized(self) -> "Pair":
        """Return both with mean 0 and variance 1; raises DataError if one is constant."""
        scaled: list[Floats] = []
        for key, numbers in (("x", self.x), ("y", self.y)):
            largest = float(np.abs(numbers).max()) or 1.0  # its square might overflow
            shrunk = numbers / largest
            spread = float(shrunk.std())
            if np.ptp(numbers) == 0.0 or spread == 0.0:
                raise DataError(f"{key} must vary, got {numbers[0]:g} in every row")
            scaled.append((shrunk - shrunk.mean()) / spread)
        return Pair(scaled[0], scaled[1], self.names)

    def tied(self) -> str | None:
        """Return "x" or "y" if a value is in more than a tenth of this column's rows, else None.

        Then an effect appears to be the cause. In simulations with an effect binned into 2, 3 or 5
        values (500 rows), "hsic" called it the cause, with a large difference of scores, in 87, 45
        and 17 % of the cases, and "shapes" in all; with ties in a tenth, both never did.
        """
        for key, numbers in (("x", self.x), ("y", self.y)):
            counts = np.unique(numbers, return_counts=True)[1]
            if counts.max() > max(_FEW, len(numbers) / _TIED):
                return key
        return None

    def within(self, x_bounds: tuple[float, float], y_bounds: tuple[float, float]) -> "Pair":
        """Return both clipped to bounds and scaled to [-1, 1]."""
        return Pair(_scaled(self.x, x_bounds), _scaled(self.y, y_bounds), self.names)


def declared_bounds(name: str, bounds: Any) -> tuple[float, float]:
    """Return declared bounds; ParameterError, with the reason for them, if there are none."""
    if bounds is None:
        raise ParameterError(
            f"{name} must be declared, such as {typed('(0, 90)', '0,90')}, from general knowledge "
            "and not from the data (the smallest and largest number belong to somebody), got none"
        )
    return check_bounds(name, bounds)


def split_rows(n_rows: int, n_parts: int, rng: np.random.Generator) -> Integers:
    """Return the part of each row, (n_rows,), at random; sizes of parts differ by at most one row.

    It does not depend on cells, so replacing a row does not change the parts of other rows.
    """
    return rng.permutation(np.arange(n_rows) % n_parts)


def arrow(direction: str, names: Mapping[str, str]) -> str:
    """Return a direction in words, such as "altitude -> temperature"."""
    return " -> ".join(names[key] for key in direction.split("->"))


def read_names(names: Any) -> dict[str, str]:
    """Return the names of "x" and "y" from a file; ModelFileError if they are not valid."""
    is_pair = isinstance(names, Mapping) and set(names) == {"x", "y"}
    if not is_pair or not all(isinstance(name, str) for name in names.values()):
        raise ModelFileError(f"a saved model's names must be two texts, got {names!r}")
    return {key: names[key] for key in ("x", "y")}


def _scaled(numbers: Floats, bounds: tuple[float, float]) -> Floats:
    low, high = bounds
    half = high / 2 - low / 2  # because high - low may overflow
    scaled: Floats = (numbers.clip(low, high) / 2 - low / 2) / half * 2 - 1
    return scaled.clip(-1.0, 1.0)


def _column(key: str, cells: Any) -> tuple[str, Floats]:
    """Return the name and the numbers of a column; without a name, its key."""
    cells = as_column(cells)
    if isinstance(cells, pd.DataFrame) and cells.shape[1] == 1:
        cells = cells.iloc[:, 0]
    if not isinstance(cells, pd.Series):
        array = np.asarray(cells)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise DataError(f"{key} must be a single column, got shape {array.shape}")
        cells = pd.Series(array)
    label = key if cells.name is None else f'column "{cells.name}"'
    numbers = to_numbers(label, cells)
    check_numbers(label, numbers)
    if np.isnan(numbers).any():
        row = int(np.argmax(np.isnan(numbers)))
        raise DataError(f"{label} has a missing cell in row {row + 1}: fill it or drop the row")
    return str(key if cells.name is None else cells.name), numbers
