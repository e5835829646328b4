"""Where rows come from: a DataFrame, a CSV file or a Parquet file, block by block."""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Protocol

import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.parquet

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_integer

__all__ = ["CsvSource", "FrameSource", "ParquetSource", "Source"]

_FRAME_BLOCK_ROWS = 100_000
_CSV_BLOCK_BYTES = 2 << 20

# What pandas.read_csv takes for a missing cell.
_MISSING_TEXTS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip


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
