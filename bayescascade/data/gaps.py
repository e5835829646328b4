"""Missing cells of numbers and ranks in a matrix: their median, and a column that says so."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.column import Column

_MOST_LISTED = 5  # columns

Part = NDArray[Any]  # (n_rows, 1), a column of the matrix, NaN where a cell is missing


def median_of(part: Part) -> float | None:
    """Return the median of the cells that are there, 0 if none is; None if none is missing."""
    known = part[~np.isnan(part)]
    if known.size == len(part):
        return None
    # of two in the middle the lower, which is a value that there is
    return float(np.quantile(known, 0.5, method="lower")) if known.size else 0.0


def with_median(part: Part, median: float) -> Part:
    """Fill a column, and return it with another of 0 and 1 that says where, (n_rows, 2)."""
    is_missing = np.isnan(part[:, 0])
    part[is_missing] = median
    filled: Part = np.concatenate([part, is_missing[:, np.newaxis]], axis=1, dtype=part.dtype)
    return filled


def gap_texts(by_level: Sequence[str], by_median: Sequence[str]) -> list[str]:
    """Return what missing cells were taken for in the columns named, in words."""
    return [
        f"missing cells are {what} of {_listed(names)}"
        for what, names in (("a level", by_level), ("the median and a column", by_median))
        if names
    ]


def are_medians(medians: Any, levels: Sequence[Column | None]) -> bool:
    """Return whether a record's medians are of columns that can have them."""
    if not isinstance(medians, list) or len(medians) not in (0, len(levels)):
        return False
    return all(
        one is None
        or (type(one) in (int, float) and np.isfinite(one) and (of is None or of.kind == "ordinal"))
        for one, of in zip(medians, levels, strict=False)
    )


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many there are beside."""
    shown = ", ".join(names[:_MOST_LISTED])
    return f"{shown} and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else shown
