"""Readers of one file: Parquet and Arrow's own format (Feather) in chunks, and others in memory."""

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeAlias

import pandas as pd
import pyarrow
import pyarrow.parquet

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.texts import shortened, with_article
from bayescascade.data.arrow_frames import frame_of_arrow
from bayescascade.data.cell_texts import MISSING_TEXTS, CellTexts
from bayescascade.data.data_file import DataFile, OpenedFile, explained_errors
from bayescascade.data.dialects import TO_BE_FOUND, GivenDialect
from bayescascade.data.sources import NO_UNITS, Batch, FrameSource, categorical_names, column_names
from bayescascade.data.text_files import CsvSource


class _ColumnFile(OpenedFile, ABC):
    """A file whose columns have types; a subclass opens and reads it."""

    format_name: ClassVar[str]
    is_text, units = False, NO_UNITS
    notes: Sequence[str] = ()
    _opener: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        path: str | PathLike[str] | DataFile,
        chunk_rows: int,
        dialect: GivenDialect = TO_BE_FOUND,
    ) -> None:
        super().__init__(path, chunk_rows)
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
                frame = frame_of_arrow(pyarrow.Table.from_batches([batch]))[list(names)]
            yield frame

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
            explained_errors(self.label),
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


class _MemorySource(FrameSource):
    """A file of another program, all of its rows in memory; `_read` reads it.

    `_read` takes the file's bytes and the given dialect, and returns the rows and a note, or "".
    """

    format_name: ClassVar[str]
    libraries: ClassVar[str] = "pandas"  # that pandas may need
    missing_texts: ClassVar[Sequence[str]] = ("",)
    skips_lines: ClassVar[bool] = False  # as given, before the header
    _read: ClassVar[Callable[..., tuple[pd.DataFrame, str]]]

    def __init__(
        self,
        path: str | PathLike[str] | DataFile,
        chunk_rows: int,  # noqa: ARG002 # it is read at once
        dialect: GivenDialect = TO_BE_FOUND,
    ) -> None:
        file, what = DataFile.of(path), with_article(f"{self.format_name} file")
        _check_no_dialect(file.label, replace(dialect, skip=0) if self.skips_lines else dialect)
        try:
            with file.stream() as stream:
                frame, note = type(self)._read(io.BytesIO(stream.read()), dialect)
        except ImportError as error:
            found = re.search(r"dependency '(\w+)'", str(error))
            library = found[1] if found else self.libraries
            name = "'bayescascade[excel]'" if library == "openpyxl" else library
            raise DataError(
                f"{file.label} is {what}; to read it, install {library}: pip install {name}"
            ) from None
        except Exception as error:  # of any library
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise DataError(f"cannot read {file.label} as {what}: {reason}") from None
        texts = CellTexts(dialect)
        super().__init__(texts.of_frame(frame, self.missing_texts), file.label)
        self.notes = [*([f"{file.label} {note}"] if note else []), *texts.notes]


def _read_excel(content: io.BytesIO, dialect: GivenDialect) -> tuple[pd.DataFrame, str]:
    with pd.ExcelFile(content) as book:
        kept, missing = dialect.keep_na, dict[Any, Sequence[str]]()  # as pandas names columns
        for name in pd.read_excel(book, nrows=0, skiprows=dialect.skip) if kept else ():
            missing[name] = [""] if str(name) in kept else MISSING_TEXTS
        frame = pd.read_excel(
            book, skiprows=dialect.skip, na_values=missing or None, keep_default_na=not missing
        )
        n_sheets = len(book.sheet_names)
    return frame, f"has {n_sheets} sheets: the first one is read" if n_sheets > 1 else ""


def _read_stata(content: io.BytesIO, _dialect: GivenDialect) -> tuple[pd.DataFrame, str]:
    return pd.read_stata(content, order_categoricals=False), ""


def _read_sas(content: io.BytesIO, _dialect: GivenDialect) -> tuple[pd.DataFrame, str]:
    if content.getvalue().startswith(b"HEADER"):
        return pd.read_sas(content, format="xport", encoding="latin-1"), ""
    return pd.read_sas(content, format="sas7bdat", encoding="infer"), ""


def _read_spss(content: io.BytesIO, _dialect: GivenDialect) -> tuple[pd.DataFrame, str]:
    with TemporaryDirectory() as folder:  # pandas reads it from a path
        path = Path(folder) / "rows.sav"
        path.write_bytes(content.getvalue())
        return pd.read_spss(path), ""


class ExcelSource(_MemorySource):
    """The rows of an Excel file's first sheet."""

    format_name, libraries = "Excel", "openpyxl"
    missing_texts, skips_lines = MISSING_TEXTS, True
    _read = staticmethod(_read_excel)


class StataSource(_MemorySource):
    """The rows of a Stata file; labels of values are levels without order."""

    format_name = "Stata"
    _read = staticmethod(_read_stata)


class SasSource(_MemorySource):
    """The rows of a SAS file: a data set, or a transport file."""

    format_name = "SAS"
    _read = staticmethod(_read_sas)


class SpssSource(_MemorySource):
    """The rows of an SPSS file."""

    format_name, libraries = "SPSS", "pyreadstat"
    _read = staticmethod(_read_spss)


FileSource: TypeAlias = CsvSource | ParquetSource | ArrowFileSource | _MemorySource

READERS: dict[str, type[FileSource]] = {
    ".csv": CsvSource,
    ".parquet": ParquetSource,
    ".pq": ParquetSource,
    ".arrow": ArrowFileSource,
    ".feather": ArrowFileSource,
    ".ipc": ArrowFileSource,
    ".xlsx": ExcelSource,
    ".xls": ExcelSource,
    ".dta": StataSource,
    ".sas7bdat": SasSource,
    ".xpt": SasSource,
    ".sav": SpssSource,
}
"""The reader of each extension, after the extension of compression."""


def _check_no_dialect(label: str, dialect: GivenDialect) -> None:
    if dialect.of_text:
        raise ParameterError(
            "sep, encoding, decimal, thousands, skip and comment must be of a text file, "
            f"got {label}"
        )


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
