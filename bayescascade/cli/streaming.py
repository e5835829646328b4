"""Rows from a file, through a model, into another file, block by block.

One block is in memory at a time. Ctrl-C ends a file after the current block, and keeps all blocks
so far. Arrow reads, and forests route rows, on all cores. The rest is work of pandas, which holds
the GIL, and passing blocks to processes would take as long.
"""

import csv
import io
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from bayescascade.base.errors import BayesCascadeError, DataError
from bayescascade.base.files import replaced_file
from bayescascade.cli.interrupts import deferred_interrupts
from bayescascade.cli.output import csv_texts, interrupted, rows_of, write_texts
from bayescascade.cli.progress_lines import rows_progress

Columns: TypeAlias = Mapping[str, Sequence[object] | NDArray[Any] | pyarrow.Array]
"""A block of rows, by column name: columns of Arrow, of texts or of numbers."""

_SAMPLE_BYTES = 1 << 20
_PARQUET = (".parquet", ".pq")


def tell_blocks(
    data: str, blocks: Generator[Columns, None, None]
) -> Generator[Columns, None, None]:
    """Yield blocks made from the rows of a file, and show the number of rows done.

    The code that makes the blocks may use all cores.
    """
    from joblib import parallel_config

    n_done = 0
    with (
        rows_progress(Path(data).name, _n_rows(data)) as show,
        closing(blocks),
        parallel_config("threading", n_jobs=-1),
    ):
        for columns in blocks:
            yield columns
            n_done += _length(columns)
            show(n_done)


def write_blocks(path: str, blocks: Generator[Columns, None, None]) -> None:
    """Write blocks into a file: Parquet by its extension, otherwise CSV with a header.

    The file appears, or replaces the old one, when it is complete. After Ctrl-C it has the blocks
    so far; unless these are all, a note says so and the command exits with 130. Raises FileError if
    the file cannot be written, and DataError if a block of Parquet has other columns or types than
    the first. After any error the old file is unchanged.
    """
    n_rows, is_complete = 0, True
    with ExitStack() as stack:
        is_interrupted = stack.enter_context(deferred_interrupts())
        temporary = stack.enter_context(replaced_file(path))
        kind = _ParquetFile if is_parquet(path) else _CsvFile
        file = stack.enter_context(closing(kind(temporary)))
        for columns in stack.enter_context(closing(blocks)):
            file.write(columns)
            n_rows += _length(columns)
            if is_interrupted():
                is_complete = _is_exhausted(blocks)
                break
    if not is_complete:
        interrupted(f"{path} has the first {n_rows:,} rows")


def write_rows(path: str | None, data: str, blocks: Generator[Columns, None, None]) -> None:
    """Write blocks made from the rows of a file by `write_blocks`, or as CSV to stdout."""
    if path is None:
        write_texts(None, csv_texts(blocks))
    else:
        write_blocks(path, tell_blocks(data, blocks))


def _is_exhausted(blocks: Generator[Columns, None, None]) -> bool:
    """Return whether there is no further block; a block that raises an error counts as one."""
    try:
        return next(blocks, None) is None
    except BayesCascadeError:
        return False


class _CsvFile:
    """CSV in the format of the csv module; Arrow writes numbers in the shortest exact form."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._has_header = False

    def write(self, columns: Columns) -> None:
        """Append a block."""
        if not self._has_header:
            self._write_rows([tuple(columns)])
            self._has_header = True
        table = _table(columns)
        if all(_is_number(field.type) for field in table.schema):
            options = pyarrow.csv.WriteOptions(include_header=False)
            pyarrow.csv.write_csv(table, self._file, options)
        else:
            self._write_rows(rows_of(columns))

    def _write_rows(self, rows: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode())

    def close(self) -> None:
        """Write the rest of the file."""
        self._file.close()


class _ParquetFile:
    """Parquet, with a row group for each block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None  # a pyarrow.parquet.ParquetWriter, once columns are known

    def write(self, columns: Columns) -> None:
        """Append a block; raises DataError if its columns' types differ from the first block's."""
        table = _table(columns)
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(_table_as(table, self._writer.schema))

    def close(self) -> None:
        """Write the footer, without which the file cannot be read."""
        if self._writer is not None:
            self._writer.close()


def _table(columns: Columns) -> pyarrow.Table:
    return pyarrow.table({name: _array(column) for name, column in columns.items()})


def _table_as(table: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """Return a table with the types of a schema; DataError if it has other types."""
    if table.column_names != schema.names:
        raise DataError(
            f"all blocks of rows must have the columns {', '.join(schema.names)} of the first, "
            f"got {', '.join(table.column_names)}"
        )
    for field in schema:
        try:
            table.column(field.name).cast(field.type)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            raise DataError(
                f'column "{field.name}" must hold {field.type} in all rows of Parquet, as in the '
                f"first, got {table.schema.field(field.name).type}: CSV takes both"
            ) from None
    return table.cast(schema)


def _is_number(kind: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind))


def _array(column: Sequence[object] | NDArray[Any] | pyarrow.Array) -> pyarrow.Array:
    """Return a column for Arrow: int64 for a range, float64 for other numbers, otherwise texts."""
    if isinstance(column, pyarrow.Array | pyarrow.ChunkedArray):
        return column
    if isinstance(column, range):
        return pyarrow.array(np.arange(column.start, column.stop))
    if isinstance(column, np.ndarray):
        column = column.tolist()
    first = next((cell for cell in column if cell is not None), None)
    if first is None or isinstance(first, str):
        return pyarrow.array(column, pyarrow.string())
    # by NumPy: Arrow refuses integers beyond its types, and integers beyond 2^53 beside 0.5
    numbers = np.asarray(column, dtype=np.float64)
    mask = np.array([cell is None for cell in column]) if None in column else None
    return pyarrow.array(numbers, mask=mask)


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _n_rows(path: str) -> int | None:
    """Return the approximate number of rows of a file; None if it cannot be estimated quickly."""
    try:
        if is_parquet(path):
            return int(pyarrow.parquet.read_metadata(path).num_rows)
        if Path(path).suffix.lower() != ".csv":
            return None
        with Path(path).open("rb") as file:
            sample = file.read(_SAMPLE_BYTES)
        return Path(path).stat().st_size * sample.count(b"\n") // max(len(sample), 1)
    except (OSError, pyarrow.ArrowException):
        return None  # reading the file raises the error


def is_parquet(path: str) -> bool:
    """Return whether a file has the extension of Parquet."""
    return Path(path).suffix.lower() in _PARQUET
