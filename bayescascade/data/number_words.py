"""Integers and truth values of a matrix as columns, for words in conditions.

A matrix holds 4.0 where the data had 4, and 1.0 for True: a threshold of 4.5 is "at most 4" to a
reader, and one of 0.5 is "False".
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.data.column import Column
from bayescascade.data.levels import Cells

_LARGEST = 2.0**24  # float32 is not exact for larger integers


def number_column(name: str, cells: Cells | NDArray[Any]) -> Column | None:
    """Return a column: one bin for integers, two levels for truth values; otherwise None."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return Column(name, "nominal", (False, True))
    numbers = pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    numbers = numbers[~np.isnan(numbers)]
    if not numbers.size or np.abs(numbers).max() > _LARGEST or (numbers != np.rint(numbers)).any():
        return None
    edges = (float(numbers.min()) - 0.5, float(numbers.max()) + 0.5)
    return Column(name, "continuous", (), edges, is_whole=True)


def split_at(column: Column, threshold: float) -> tuple[Column, list[int]] | None:
    """Return a `number_column` cut at a threshold, and the codes up to it; None if all are."""
    if column.kind == "nominal":
        return (column, [0]) if 0 <= threshold < 1 else None
    low, high = column.edges
    cut = float(np.floor(threshold)) + 0.5
    if not low < cut < high:
        return None
    return replace(column, edges=(low, cut, high)), [0]


def is_number_column(column: Column) -> bool:
    """Return whether a column may be that of numbers."""
    if column.kind == "continuous":
        return column.is_whole and len(column.edges) == 2
    return column.kind == "nominal" and column.levels == (False, True)
