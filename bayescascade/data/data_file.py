"""A data file: its place, its bytes, and errors while it is read."""

import csv
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv

from bayescascade.base.errors import DataError
from bayescascade.base.texts import shortened
from bayescascade.base.typed_words import typed
from bayescascade.base.validation import check_integer

_BROKEN = (
    pyarrow.ArrowException, OSError, csv.Error, UnicodeError, EOFError, zipfile.BadZipFile,
    zlib.error, lzma.LZMAError, NotImplementedError,
)  # fmt: skip
"""Errors of readers and of what decompresses."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file, with its file system."""

    path: str  # in the syntax of its file system
    filesystem: Any = None  # a pyarrow.fs.FileSystem; None for this machine's
    compression: str | None = "detect"  # as pyarrow names it; "detect": by the extension
    member: str | None = None  # the file in a zip archive

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
        """Return a stream of its bytes, decompressed."""
        if self.member is not None:
            return zipfile.ZipFile(self._opened()).open(self.member)
        if self.filesystem is None:
            return pyarrow.input_stream(self.path, compression=self.compression)
        return self.filesystem.open_input_stream(self.path, compression=self.compression)

    def random_access(self) -> Any:
        """Return it as a file with random access; if it is compressed, from memory."""
        if self.member is None and self.compression in (None, "detect"):
            return self._opened()
        with self.stream() as stream:
            return pyarrow.BufferReader(stream.read())

    def start(self, n_bytes: int, *, as_stored: bool = False) -> bytes:
        """Return its first bytes, perhaps not decompressed."""
        with explained_errors(self.label):
            opened = self._opened() if as_stored else self.stream()
            with opened as stream:
                found: bytes = stream.read(n_bytes)
                return found

    def _opened(self) -> Any:
        if self.filesystem is None:
            return pyarrow.OSFile(self.path)
        return self.filesystem.open_input_file(self.path)


class OpenedFile:
    """A file whose rows are read at most `chunk_rows` at a time."""

    def __init__(self, path: str | PathLike[str] | DataFile, chunk_rows: int) -> None:
        self._file = DataFile.of(path)
        self._chunk_rows = check_integer("chunk_rows", chunk_rows, 1)
        self.label = self._file.label


@contextmanager
def explained_errors(
    label: str,
    broken_rows: Sequence[pyarrow.csv.InvalidRow] = (),
    encoding: str | None = None,
    advice: str = "",
) -> Iterator[None]:
    """Turn the readers' exceptions into a DataError of one line; `advice` is on broken rows."""
    try:
        yield
    except _BROKEN as error:
        if broken_rows:
            row = broken_rows[0]
            where = "" if row.number is None else f" in row {row.number - 1}"  # of threads: None
            raise DataError(
                f"{label}: every row must have {row.expected_columns} cells, "
                f"got {row.actual_columns}{where}{advice}"
            ) from None
        if isinstance(error, UnicodeError) or "invalid UTF8" in str(error):
            raise DataError(
                f"{label} must be {encoding or 'UTF-8'} text: convert its encoding, or name it "
                f"({typed('ReadAs(encoding=)', '--encoding')})"
            ) from None
        reason = shortened((str(error) or type(error).__name__).splitlines()[0])
        raise DataError(f"cannot read {label}: {reason}") from None
