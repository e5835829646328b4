"""Codes as what stands in a frame's cells: labels, values, and values among other cells."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.data.column import Column
from bayescascade.data.levels import Cells, level_text, plain_level


def labels_of(column: Column) -> list[object]:
    """Return what stands for each code of a column."""
    if column.kind == "continuous":
        labels: list[object] = [column.bin_words(k, k) for k in range(len(column.edges) - 1)]
    else:
        labels = list(column.levels)
    return [*labels, None] if column.has_missing_level else labels


def values_of(column: Column, codes: NDArray[np.integer], rng: np.random.Generator | None) -> Cells:
    """Return levels, and numbers of bins: drawn, or without a generator the (lower) middles."""
    if column.kind == "continuous" and rng is None:
        middles = _middles(column)
        if column.is_whole:
            middles = np.floor(middles).astype(np.int64)
        return pd.Series(middles[codes], name=column.name)
    return column.decode(codes, rng or np.random.default_rng(0))


def numbers_of(column: Column) -> NDArray[np.float64]:
    """Return the number that each code of a column of numbers stands for in a mean."""
    if column.kind == "continuous":
        return _middles(column)
    return np.array(column.levels, np.float64)


def filled(
    cells: Cells, column: Column, rows: NDArray[np.intp], codes: NDArray[np.integer], values: Cells
) -> Cells:
    """Return cells in which some rows have new values, of the cells' type if it can hold them."""
    if len(rows) == len(cells) and not isinstance(cells.dtype, pd.CategoricalDtype):
        return values.set_axis(cells.index)
    found: list[object] = values.tolist()
    with_values = cells.astype(object)
    if isinstance(cells.dtype, pd.CategoricalDtype) and column.kind != "continuous":
        categories = cells.cat.categories
        known = column.encode(pd.Series(categories), allow_unknown=True)
        of_code = dict(zip(known.tolist(), categories, strict=True))
        of_code.pop(column.other_code, None)  # none of the levels that are grouped
        found = [of_code.get(code, v) for code, v in zip(codes.tolist(), found, strict=True)]
        cells = cells.cat.add_categories([v for v in dict.fromkeys(found) if v not in categories])
    elif pd.api.types.infer_dtype(cells, skipna=True) == "string" and not isinstance(found[0], str):
        found = [level_text(plain_level(column.name, value)) for value in found]
    with_values.iloc[rows] = pd.Series(found, dtype=object).to_numpy()
    try:
        return with_values.astype(cells.dtype)
    except (TypeError, ValueError):  # such as the middle of a bin among integers
        return with_values.infer_objects()


def _middles(column: Column) -> NDArray[np.float64]:
    edges = np.array(column.edges)
    middles: NDArray[np.float64] = edges[:-1] + np.diff(edges) / 2
    return middles
