"""Rows as codes for lists of labels, which more rows fit than were learned from.

Unlike a density (`Schema.encode`), labels can be told of a row beyond the range that was learned
from: it is in the outer bin of a continuous column. And a level that was never seen may be let
pass: it satisfies no condition.
"""

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.errors import DataError, UnknownLevelError
from bayescascade.data.column import Column
from bayescascade.data.levels import Cells, check_numbers, to_numbers
from bayescascade.data.schema import Schema, check_distinct_names, check_present

__all__ = ["UNKNOWNS", "encode_for_labels"]

UNKNOWNS: Final = ("error", "none")
"""What a level unseen in fit is: an error, or a cell that satisfies no condition."""

_REMEDIES: Final = {
    "error": ': fill it, or fit with missing="level" (--missing level)',
    "level": ': fill it, or let it pass with unknown="none" (--unknown none)',
}


def encode_for_labels(
    schema: Schema,
    frame: pd.DataFrame,
    *,
    missing: str = "error",
    unknown: str = "error",
    first_row: int = 1,
) -> NDArray[np.int32]:
    """Return the codes of rows, -1 where a cell satisfies no condition.

    Parameters
    ----------
    schema : Schema
    frame : DataFrame
        Columns are matched by name, in any order, and there may be more.
    missing : {"error", "level", "none"}
        A missing cell is an error; the missing level of its column, and where there is none an
        unknown level; or satisfies no condition where there is no missing level.
    unknown : {"error", "none"}
        See `UNKNOWNS`.
    first_row : int
        Number of the first row, for messages.

    Returns
    -------
    (n_columns, n_rows) int32, C-contiguous

    Raises
    ------
    DataError
        If a column is missing, or a cell has no code; names column, value and row.
    """
    names = [str(name) for name in frame.columns]
    check_distinct_names([name for name in names if name in set(schema.names)])
    check_present(schema.names, names)
    codes = np.empty((schema.n_columns, len(frame)), np.int32)
    for column, column_codes in zip(schema.columns, codes, strict=True):
        cells = frame.iloc[:, names.index(column.name)]
        is_missing = cells.isna().to_numpy(dtype=np.bool_)
        if is_missing.any() and _is_refused(column, missing, unknown):
            row = first_row + int(np.argmax(is_missing))
            raise DataError(
                f'column "{column.name}" has a missing cell (NaN) in row {row}, and had none in fit'
                + _REMEDIES[missing]
            )
        if column.kind == "continuous":
            column_codes[:] = _encode_numbers(column, cells, first_row)
        else:
            column_codes[:] = _encode_levels(column, cells, first_row, unknown == "none")
    return codes


def _is_refused(column: Column, missing: str, unknown: str) -> bool:
    if missing == "error":
        return True
    return missing == "level" and not column.has_missing_level and unknown == "error"


def _encode_numbers(column: Column, cells: Cells, first_row: int) -> NDArray[np.int32]:
    numbers = to_numbers(f'continuous column "{column.name}"', cells, first_row)
    check_numbers(f'column "{column.name}"', numbers, first_row)
    return column.encode(pd.Series(np.clip(numbers, column.edges[0], column.edges[-1])))


def _encode_levels(
    column: Column, cells: Cells, first_row: int, allow_unknown: bool
) -> NDArray[np.int32]:
    try:
        return column.encode(cells, first_row, allow_unknown=allow_unknown)
    except UnknownLevelError as error:
        raise error.advising(
            "give all its levels when fitting (nominal=, ordinal=), or let unknown ones pass with "
            'unknown="none" (--unknown none)'
        ) from None
