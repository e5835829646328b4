"""Readers of one file, in chunks: CSV, Parquet, Arrow's own format (Feather) and Excel."""

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.parquet

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.texts import shortened
from bayescascade.base.typed_words import typed
from bayescascade.base.validation import check_integer
from bayescascade.data.arrow_frames import frame_of_arrow
from bayescascade.data.dialects import SNIFFED_BYTES, TO_BE_FOUND, GivenDialect, sniffed
from bayescascade.data.sources import Batch, FrameSource, categorical_names, column_names

_CSV_BLOCK_BYTES = 2 << 20
_MOST_BLANK = 1 << 12  # characters after a header that are searched for rows

MISSING_TEXTS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that pandas.read_csv reads as missing cells."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file, with its file system."""

    path: str  # in the syntax of its file system
    filesystem: Any = None  # a pyarrow.fs.FileSystem; None for this machine's

    @classmethod
    def of(cls, path: "str | PathLike[str] | DataFile") -> "DataFile":
        """Return a file of this machine; raises DataError if there is none."""
        if isinstance(path, DataFile):
            return path
        checked = Path(path)
        if checked.is_dir():
            raise DataError(f"{path} is a directory, not a file")
        if not checked.exists():
            raise DataError(f"no such file: {path}")
        return cls(str(checked))

    @property
    def label(self) -> str:
        """The file's name without folders."""
        return Path(self.path).name

    def stream(self) -> Any:
        """Return a stream of its bytes, decompressed according to its extension."""
        if self.filesystem is None:
            return pyarrow.input_stream(self.path, compression="detect")
        return self.filesystem.open_input_stream(self.path, compression="detect")

    def random_access(self) -> Any:
        """Return it as a file with random access."""
        if self.filesystem is None:
            return pyarrow.OSFile(self.path)
        return self.filesystem.open_input_file(self.path)


class CsvSource:
    """A text file with a header, perhaps compressed, all cells as text; see `Dialect`."""

    format_name = "CSV"
    is_text = True
    categorical: frozenset[str] = frozenset()

    def __init__(
        self,
        path: str | PathLike[str] | DataFile,
        chunk_rows: int,
        dialect: GivenDialect = TO_BE_FOUND,
    ) -> None:
        self._file = DataFile.of(path)
        self._chunk_rows = check_integer("chunk_rows", chunk_rows, 1)
        self._encoding = dialect.encoding
        self.label = self._file.label
        with _explained_errors(self.label), self._file.stream() as stream:
            self._dialect = sniffed(stream.read(SNIFFED_BYTES), dialect)
        told = self._dialect.words
        self.notes = [f"{self.label} is read as text with {told}"] if told else []
        self._raw_names = self._read_header()
        # pandas' name for a column without a name
        self.names = [name or f"Unnamed: {i}" for i, name in enumerate(self._raw_names)]

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, at most `chunk_rows` rows at a time."""
        # Arrow numbers rows only if one thread reads, which is fast enough.
        for batch in self._batches(names, pyarrow.string(), use_threads=False):
            yield batch.to_pandas()

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`, as dictionaries of texts."""
        return self._batches(names, pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))

    def _batches(
        self, names: Sequence[str], kind: pyarrow.DataType, use_threads: bool = True
    ) -> Generator[pyarrow.RecordBatch, None, None]:
        if not self._has_rows:  # Arrow's threads could abort a program that exits soon
            return
        raw_names = [self._raw_names[self.names.index(name)] for name in names]
        broken_rows = []

        def refuse(row: pyarrow.csv.InvalidRow) -> str:
            broken_rows.append(row)
            return "error"

        options = (
            pyarrow.csv.ReadOptions(
                use_threads=use_threads,
                block_size=_CSV_BLOCK_BYTES,
                encoding=self._dialect.encoding.removesuffix("-sig"),  # Arrow skips the mark itself
            ),
            pyarrow.csv.ParseOptions(
                delimiter=self._dialect.delimiter,
                newlines_in_values=True,
                invalid_row_handler=refuse,
            ),
            pyarrow.csv.ConvertOptions(
                include_columns=raw_names,
                column_types=dict.fromkeys(raw_names, kind),
                null_values=MISSING_TEXTS,
                strings_can_be_null=True,
            ),
        )
        with (
            _explained_errors(self.label, broken_rows, self._encoding),
            self._file.stream() as stream,
            pyarrow.csv.open_csv(stream, *options) as reader,
        ):
            for batch in reader:
                columns = list(map(self._dialect.with_points, batch.columns))
                batch = pyarrow.RecordBatch.from_arrays(columns, list(names))
                for start in range(0, batch.num_rows, self._chunk_rows):
                    yield batch.slice(start, self._chunk_rows)

    def _read_header(self) -> list[str]:
        with (
            _explained_errors(self.label, encoding=self._encoding),
            self._file.stream() as stream,
            io.TextIOWrapper(stream, encoding=self._dialect.encoding, newline="") as text,
        ):
            rows = csv.reader(text, delimiter=self._dialect.delimiter)
            header = next((row for row in rows if row), None)
            rest = text.read(_MOST_BLANK)
        if header is None:
            raise DataError(f"{self.label} must have a header and rows, got an empty file")
        self._has_rows = bool(rest.strip()) or len(rest) == _MOST_BLANK
        return header


class _ColumnFile(ABC):
    """A file whose columns have types; a subclass opens and reads it."""

    format_name: ClassVar[str]
    is_text = False
    notes: Sequence[str] = ()
    _opener: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        path: str | PathLike[str] | DataFile,
        chunk_rows: int,
        dialect: GivenDialect = TO_BE_FOUND,
    ) -> None:
        self._file = DataFile.of(path)
        self._chunk_rows = check_integer("chunk_rows", chunk_rows, 1)
        self.label = self._file.label
        _check_no_dialect(self.label, dialect)
        with self._open() as file:  # `schema` of Parquet is not Arrow's
            self._schema: pyarrow.Schema = getattr(file, "schema_arrow", None) or file.schema
        with _explained_notes(self.label, self._schema):
            self.names = column_names(self._schema)
        self.categorical = categorical_names(self._schema)

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, at most `chunk_rows` rows at a time."""
        for batch in self._read(names):
            with _explained_notes(self.label, batch.schema):
                frame = frame_of_arrow(pyarrow.Table.from_batches([batch]))
            yield frame[list(names)]

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`, as Arrow's batches."""
        yield from self._read(names)

    def _read(self, names: Sequence[str], **options: Any) -> Iterator[pyarrow.RecordBatch]:
        with self._open(**options) as file:
            for batch in self._batches_of(file, list(names)):
                batch.validate(full=True)  # damaged offsets could crash the process
                for start in range(0, batch.num_rows, self._chunk_rows):
                    yield batch.slice(start, self._chunk_rows)

    @contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        with (
            _explained_errors(self.label),
            self._file.random_access() as opened,
            self._opener(opened, **options) as file,
        ):
            yield file

    @abstractmethod
    def _batches_of(self, file: Any, names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        """Yield the cells of an open file in some columns."""


class ParquetSource(_ColumnFile):
    """A Parquet file's rows."""

    format_name = "Parquet"
    _opener = staticmethod(pyarrow.parquet.ParquetFile)

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`, as Arrow's batches: texts as dictionaries, as stored."""
        with _explained_notes(self.label, self._schema):  # which may name other columns
            types = {name: self._schema.field(name).type for name in names}
        is_text = (pyarrow.types.is_string, pyarrow.types.is_large_string)
        texts = [name for name, kind in types.items() if any(of(kind) for of in is_text)]
        yield from self._read(names, read_dictionary=texts)

    def _batches_of(self, file: Any, names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        yield from file.iter_batches(self._chunk_rows, columns=names)


class ArrowFileSource(_ColumnFile):
    """The rows of a file in Arrow's own format, also called Feather."""

    format_name = "Arrow"
    _opener = staticmethod(pyarrow.ipc.open_file)

    def _batches_of(self, file: Any, names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        for index in range(file.num_record_batches):
            yield file.get_batch(index).select(names)


class ExcelSource(FrameSource):
    """The rows of an Excel file's first sheet, all of them in memory."""

    format_name = "Excel"

    def __init__(
        self,
        path: str | PathLike[str] | DataFile,
        chunk_rows: int,  # noqa: ARG002 # a sheet is read at once
        dialect: GivenDialect = TO_BE_FOUND,
    ) -> None:
        file = DataFile.of(path)
        _check_no_dialect(file.label, dialect)
        try:
            with file.stream() as stream, pd.ExcelFile(io.BytesIO(stream.read())) as book:
                frame = pd.read_excel(book)
                n_sheets = len(book.sheet_names)
        except ImportError as error:
            found = re.search(r"dependency '(\w+)'", str(error))
            library = found[1] if found else "openpyxl"
            raise DataError(
                f"{file.label} is an Excel file; to read it, install {library}: "
                f"pip install {library}"
            ) from None
        except Exception as error:  # of any library
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise DataError(f"cannot read {file.label} as an Excel file: {reason}") from None
        super().__init__(frame, file.label)
        if n_sheets > 1:
            self.notes = [f"{file.label} has {n_sheets} sheets: the first one is read"]


FileSource: TypeAlias = CsvSource | ParquetSource | ArrowFileSource | ExcelSource

READERS: dict[str, type[FileSource]] = {
    ".csv": CsvSource,
    ".parquet": ParquetSource,
    ".pq": ParquetSource,
    ".arrow": ArrowFileSource,
    ".feather": ArrowFileSource,
    ".ipc": ArrowFileSource,
    ".xlsx": ExcelSource,
    ".xls": ExcelSource,
}
"""The reader of each extension, after the extension of compression."""


def _check_no_dialect(label: str, dialect: GivenDialect) -> None:
    if dialect:
        raise ParameterError(f"sep, encoding and decimal must be of a text file, got {label}")


@contextmanager
def _explained_errors(
    label: str, broken_rows: Sequence[pyarrow.csv.InvalidRow] = (), encoding: str | None = None
) -> Iterator[None]:
    """Turn the readers' exceptions into a DataError of one line."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, csv.Error, UnicodeDecodeError) as error:
        if broken_rows:
            row = broken_rows[0]
            where = "" if row.number is None else f" in row {row.number - 1}"  # of threads: None
            raise DataError(
                f"{label}: every row must have {row.expected_columns} cells, "
                f"got {row.actual_columns}{where}"
            ) from None
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
            raise DataError(
                f"{label} must be {encoding or 'UTF-8'} text: convert its encoding, or name it "
                f"({typed('ReadAs(encoding=)', '--encoding')})"
            ) from None
        reason = str(error).splitlines()[0]
        raise DataError(f"cannot read {label}: {reason}") from None


@contextmanager
def _explained_notes(label: str, schema: pyarrow.Schema) -> Iterator[None]:
    """Raise DataError if pandas' metadata in a file are damaged."""
    try:
        yield
    except pyarrow.ArrowException:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        if b"pandas" not in (schema.metadata or {}):
            raise
        problem = shortened(f"{type(error).__name__}: {error}")
        raise DataError(
            f"{label} is damaged: its pandas metadata cannot be read: {problem}"
        ) from error
