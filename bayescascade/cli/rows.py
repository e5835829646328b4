"""Data files that commands read: CSV or Parquet, by the file's name."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from bayescascade.sources import Source
    from bayescascade.table import Table

__all__ = ["open_rows", "read_blocks", "read_table"]

_CHUNK_ROWS = 100_000
_PARQUET = (".parquet", ".pq")


def read_table(path: str, **declared: Any) -> "Table":
    """Read a data file as a table; `declared` as in `Table.from_csv`."""
    from bayescascade.table import Table

    read = Table.from_parquet if _is_parquet(path) else Table.from_csv
    return read(path, **declared)


def open_rows(path: str) -> "Source":
    """Open a data file to be read in blocks."""
    from bayescascade.sources import CsvSource, ParquetSource

    return (ParquetSource if _is_parquet(path) else CsvSource)(path, _CHUNK_ROWS)


def read_blocks(
    source: "Source", names: Sequence[str], weights: str | None
) -> Iterator[tuple[int, "pd.DataFrame", Any]]:
    """Yield the number of a block's first row, its cells in columns `names`, and its weights.

    Weights are (n,) float64, None without a column of them.

    Raises
    ------
    DataError
        If a column is missing or stands twice, a weight is no number >= 0, or there are no rows.
    """
    from bayescascade.errors import DataError
    from bayescascade.levels import to_numbers
    from bayescascade.schema import check_distinct_names, check_present
    from bayescascade.validation import check_weight_values

    needed = list(dict.fromkeys(names if weights is None else [*names, weights]))
    check_distinct_names([name for name in source.names if name in needed])
    check_present(needed, source.names)
    first_row = 1
    for frame in source.blocks(needed):
        row_weights = None
        if weights is not None:
            label = f'weights column "{weights}"'
            numbers = to_numbers(label, frame[weights], first_row)
            row_weights = check_weight_values(label, numbers, first_row)
        yield first_row, frame[list(names)], row_weights
        first_row += len(frame)
    if first_row == 1:
        raise DataError(f"{source.label} must have at least one row, got none")


def _is_parquet(path: str) -> bool:
    return Path(path).suffix.lower() in _PARQUET
