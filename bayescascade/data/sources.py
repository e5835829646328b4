"""Where rows come from: a DataFrame, a CSV file or a Parquet file, block by block.

Tables of other libraries become DataFrames here, with their names and categories (`as_frame`).
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.interchange
import pyarrow.parquet
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_integer, check_weight_values
from bayescascade.data.levels import to_numbers

__all__ = [
    "CsvSource",
    "FrameSource",
    "ParquetSource",
    "Source",
    "as_column",
    "as_frame",
    "weighted_blocks",
]

_NATIVE = (pd.DataFrame, pd.Series, np.ndarray, Sequence, Mapping)

_FRAME_BLOCK_ROWS = 100_000
_CSV_BLOCK_BYTES = 2 << 20

# What pandas.read_csv takes for a missing cell.
_MISSING_TEXTS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip


def as_frame(rows: Any) -> Any:
    """Return another library's table as a DataFrame, and whatever has no named columns as it is.

    Parameters
    ----------
    rows : object
        A table of Arrow, of polars, or of whatever offers Arrow's PyCapsule interface or the
        dataframe interchange protocol. Its dictionaries (categories) become categoricals.

    Raises
    ------
    DataError
        If it has named columns but cannot be read.
    """
    if isinstance(rows, _NATIVE):
        return rows
    if _is_arrow(rows):
        return _read(lambda: _frame_of_arrow(pyarrow.table(rows)), rows)
    if hasattr(rows, "__dataframe__"):
        return _read(lambda: _frame_of_interchange(rows), rows)
    if hasattr(type(rows), "columns"):  # as an array it would lose their names
        raise DataError(
            f"rows must be a DataFrame, an array or a table that Arrow can read, got "
            f"{type(rows).__name__}: convert it to one of these"
        )
    return rows


def as_column(cells: Any) -> Any:
    """Return another library's column, or table of one column, in pandas' form; see `as_frame`."""
    if isinstance(cells, _NATIVE) or not _is_arrow(cells):
        return cells
    column = _read(lambda: pyarrow.chunked_array(cells), cells)
    if pyarrow.types.is_struct(column.type):
        return as_frame(cells)
    return _read(lambda: column.to_pandas(integer_object_nulls=True), cells)


def _is_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _read(reader: Callable[[], Any], data: object) -> Any:
    try:
        return reader()
    except Exception as error:  # other libraries raise what they like
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"cannot read the {type(data).__name__} as Arrow data: {reason}") from error


def _frame_of_arrow(table: pyarrow.Table) -> pd.DataFrame:
    categories = {}
    for index, field in enumerate(table.schema):
        # pyarrow cannot convert categories that are intervals
        if pyarrow.types.is_dictionary(field.type) and isinstance(
            field.type.value_type, pyarrow.BaseExtensionType
        ):
            column = table.column(index).combine_chunks()
            table = table.set_column(index, field.name, column.indices)
            categories[field.name] = pd.Categorical.from_codes(
                column.indices.fill_null(-1), column.dictionary.to_pandas(), column.type.ordered
            )
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)
    return frame.assign(**categories)


def _frame_of_interchange(rows: Any) -> pd.DataFrame:
    frame = _frame_of_arrow(pyarrow.interchange.from_dataframe(rows))
    described = rows.__dataframe__()
    for name in frame.select_dtypes("category"):  # pyarrow forgets which are ordered
        if described.get_column_by_name(name).describe_categorical["is_ordered"]:
            frame[name] = frame[name].cat.as_ordered()
    return frame


class Source(Protocol):
    """Rows that can be read several times."""

    label: str  # what messages and printed models call it; may be empty
    names: list[str]  # the columns, in order; a name may occur twice
    is_text: bool  # whether numbers come as text

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""


class FrameSource:
    """A DataFrame's rows."""

    is_text = False

    def __init__(self, frame: pd.DataFrame, label: str = "") -> None:
        self.label = label
        self.names = [str(name) for name in frame.columns]
        self._frame = frame

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""
        chosen = self._frame.iloc[:, [self.names.index(name) for name in names]]
        chosen = chosen.set_axis(list(names), axis=1)
        for start in range(0, len(chosen), _FRAME_BLOCK_ROWS):
            yield chosen.iloc[start : start + _FRAME_BLOCK_ROWS]


class CsvSource:
    """A comma-separated UTF-8 file with a header, perhaps compressed (.gz, .bz2, .zst).

    Every cell is read as text. Rows must be as wide as the header; blank lines are skipped.
    """

    is_text = True

    def __init__(self, path: str | PathLike[str], chunk_rows: int) -> None:
        self._path = _check_path(path)
        self._chunk_rows = check_integer("chunk_rows", chunk_rows, 1)
        self.label = self._path.name
        self._raw_names = self._read_header()
        # pandas calls a column without a name so
        self.names = [name or f"Unnamed: {i}" for i, name in enumerate(self._raw_names)]

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, at most `chunk_rows` rows at a time."""
        raw_names = [self._raw_names[self.names.index(name)] for name in names]
        broken_rows = []

        def refuse(row: pyarrow.csv.InvalidRow) -> str:
            broken_rows.append(row)
            return "error"

        options = (
            # Rows are numbered only if one thread reads, which is fast enough.
            pyarrow.csv.ReadOptions(use_threads=False, block_size=_CSV_BLOCK_BYTES),
            pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            pyarrow.csv.ConvertOptions(
                include_columns=raw_names,
                column_types=dict.fromkeys(raw_names, pyarrow.string()),
                null_values=_MISSING_TEXTS,
                strings_can_be_null=True,
            ),
        )
        with (
            _explained_errors(self.label, broken_rows),
            pyarrow.csv.open_csv(str(self._path), *options) as reader,
        ):
            for batch in reader:
                for start in range(0, batch.num_rows, self._chunk_rows):
                    frame = batch.slice(start, self._chunk_rows).to_pandas()
                    yield frame.set_axis(list(names), axis=1)

    def _read_header(self) -> list[str]:
        with (
            _explained_errors(self.label),
            pyarrow.input_stream(str(self._path), compression="detect") as stream,
            io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
        ):
            header = next((row for row in csv.reader(text) if row), None)
        if header is None:
            raise DataError(f"{self.label} must have a header and rows, got an empty file")
        return header


class ParquetSource:
    """A Parquet file's rows."""

    is_text = False

    def __init__(self, path: str | PathLike[str], chunk_rows: int) -> None:
        self._path = _check_path(path)
        self._chunk_rows = check_integer("chunk_rows", chunk_rows, 1)
        self.label = self._path.name
        with _explained_errors(self.label), pyarrow.parquet.ParquetFile(self._path) as file:
            # An index that pandas stored is no column.
            columns = file.schema_arrow.empty_table().to_pandas().columns
        self.names = [str(name) for name in columns]

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, at most `chunk_rows` rows at a time."""
        with _explained_errors(self.label), pyarrow.parquet.ParquetFile(self._path) as file:
            for batch in file.iter_batches(self._chunk_rows, columns=list(names)):
                yield batch.to_pandas()[list(names)]


def weighted_blocks(
    source: Source, names: Sequence[str], weights: str | NDArray[np.float64] | None
) -> Iterator[tuple[int, pd.DataFrame, NDArray[np.float64] | None]]:
    """Yield the number of a block's first row, its cells, and its rows' weights, if there are any.

    The weights are a column, which is then among the cells, or (n_rows,) numbers >= 0.

    Raises
    ------
    DataError
        If a weight is no number >= 0, or there are no rows.
    """
    label = f'weights column "{weights}"'
    first_row = 1
    for frame in source.blocks([*names, weights] if isinstance(weights, str) else names):
        block_weights = None
        if isinstance(weights, str):
            numbers = to_numbers(label, frame[weights], first_row)
            block_weights = check_weight_values(label, numbers, first_row)
        elif weights is not None:
            block_weights = weights[first_row - 1 : first_row - 1 + len(frame)]
        yield first_row, frame, block_weights
        first_row += len(frame)
    if first_row == 1:
        raise DataError(f"{source.label or 'the table'} must have at least one row, got none")


def _check_path(path: str | PathLike[str]) -> Path:
    checked = Path(path)
    if checked.is_dir():
        raise DataError(f"{path} is a directory, not a file")
    if not checked.exists():
        raise DataError(f"no such file: {path}")
    return checked


@contextmanager
def _explained_errors(
    label: str, broken_rows: Sequence[pyarrow.csv.InvalidRow] = ()
) -> Iterator[None]:
    """Turn what the readers raise into a DataError of one line."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, csv.Error, UnicodeDecodeError) as error:
        if broken_rows:
            row = broken_rows[0]
            raise DataError(
                f"{label}: every row must have {row.expected_columns} cells, "
                f"got {row.actual_columns} in row {row.number - 1}"
            ) from None
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
            raise DataError(f"{label} must be UTF-8 text: convert its encoding") from None
        reason = str(error).splitlines()[0]
        raise DataError(f"cannot read {label}: {reason}") from None
