"""The cells that a label list accepts, as codes and as SQL.

Unlike a density (`Schema.encode`), a label is also predicted for a value beyond the training range:
it is in the outer bin of a continuous column. An unknown level may be accepted: it satisfies no
condition.
"""

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Codes
from bayescascade.base.errors import DataError, UnknownLevelError
from bayescascade.base.typed_words import typed_setting
from bayescascade.data.column import MISSING, UNKNOWN, Column
from bayescascade.data.levels import check_numbers, to_numbers, without_codes
from bayescascade.data.schema import Schema
from bayescascade.data.sql import sql_column, sql_condition
from bayescascade.data.unknown import UnknownCells, advised


def encode_for_labels(
    schema: Schema,
    frame: pd.DataFrame,
    *,
    missing: str = "error",
    unknown: str = "error",
    first_row: int = 1,
    whole: UnknownCells | None = None,
) -> Codes:
    """Return the codes of rows, (n_columns, n_rows) int32, -1 where a cell satisfies no condition.

    Columns are matched by name. A `missing` cell is an "error", the missing "level" of its column,
    or, with "none" and no such level, satisfies no condition. `unknown` is "ignore" or "error".
    Rows with ignored levels are appended to `whole` if it is given; otherwise an
    `UnknownLevelWarning` names the levels. DataError names column, value and row.
    """
    found = UnknownCells()
    codes = np.empty((schema.n_columns, len(frame)), np.int32)
    columns = zip(schema.columns, schema.cells_of(frame, first_row), codes, strict=True)
    for column, given, column_codes in columns:
        cells = without_codes(given, column.missing_codes)
        is_missing = cells.isna().to_numpy(dtype=np.bool_)
        if is_missing.any() and _is_refused(column, missing, unknown):
            row = first_row + int(np.argmax(is_missing))
            raise DataError(
                f'column "{column.name}" has a missing cell (NaN) in row {row}, and had none in fit'
                + _remedy(missing)
            )
        if column.kind == "continuous":
            numbers = to_numbers(f'continuous column "{column.name}"', cells, first_row)
            check_numbers(f'column "{column.name}"', numbers, first_row)
            cells = pd.Series(np.clip(numbers, column.edges[0], column.edges[-1]))
        try:
            column_codes[:] = column.encode(cells, first_row, allow_unknown=unknown == "ignore")
            if missing == "level":
                column_codes[column_codes == MISSING] = UNKNOWN  # the column has no such level
            found.note(column.name, cells, column_codes)
        except UnknownLevelError as error:
            raise advised(error, "ignore") from None
    found.tell("meets no condition", whole)
    codes[codes == UNKNOWN] = MISSING
    return codes


def readable_sql(column: Column, missing: str, unknown: str) -> str:
    """Return the condition for cells without an error in `encode_for_labels`; "" if always true."""
    name, known = sql_column(column), range(column.n_levels - column.has_missing_level)
    is_refused = _is_refused(column, missing, unknown)
    is_any = column.kind == "continuous" or unknown == "ignore"
    if is_any:
        return f"{name} IS NOT NULL" if is_refused else ""
    condition = sql_condition(column, known)
    return condition if is_refused else f"({condition} OR {name} IS NULL)"


def _is_refused(column: Column, missing: str, unknown: str) -> bool:
    """Return whether a missing cell of a column is an error."""
    is_unknown = missing == "level" and not column.has_missing_level
    return missing == "error" or (is_unknown and unknown == "error")


def _remedy(missing: str) -> str:
    """Return advice for a missing cell that is an error, by the parameter `missing`."""
    if missing == "error":
        return f": fill it, or fit with {typed_setting('missing', 'level')}"
    return f": fill it, or accept it with {typed_setting('unknown', 'ignore')}"
