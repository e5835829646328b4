"""A data file: its place, its bytes, what it is, and errors while it is read.

The first bytes show what a file is, whatever its name says. Compressed tables and tables of other
programs are read. Others, such as JSON, are refused in a line: as text, they would be one column of
nonsense.
"""

import codecs
import csv
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

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
_START = 1 << 10

_COMPRESSED: Final[Mapping[bytes, str]] = {
    b"\x1f\x8b\x08": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4",
}  # fmt: skip
_TABLES: Final[Mapping[bytes, str]] = {
    b"PAR1": ".parquet", b"ARROW1\0\0": ".arrow", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ".xls",
    b"<stata_dta>": ".dta", b"$FL2@(#)": ".sav", b"$FL3@(#)": ".sav",
    b"\0" * 12 + b"\xc2\xea\x81\x60": ".sas7bdat", b"HEADER RECORD*******LIB": ".xpt",
}  # fmt: skip
"""The extension of readable formats by their first bytes."""
_OTHERS: Final[Mapping[bytes, str]] = {
    b"%PDF": "a PDF document", b"SQLite format 3\0": "an SQLite database",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file", b"\x93NUMPY": "an array of NumPy",
    b"\x80\x04": "a pickle", b"\x80\x05": "a pickle", b"\xfd7zXZ\0": "an xz archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive", b"RDX2\n": "R's data", b"RDX3\n": "R's data",
    b"RDA3\n": "R's data", b"{\\rtf": "an RTF document", b"\x89PNG": "a picture",
}  # fmt: skip
_OLD_STATA = re.compile(rb"[\x69-\x73][\x01\x02]\x01\x00")
_HTML = re.compile(r"<(!doctype\s+html|html|head|body|table)\b", re.IGNORECASE)
_JSON = re.compile(r'\{\s*("|\}|$)|\[\s*([\[{"\]]|$)')


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


class Recognized(NamedTuple):
    """A file, and the extension of its format."""

    file: DataFile
    extension: str  # empty for text
    note: str = ""  # if its name says something else


def recognized(file: DataFile, encoding: str | None) -> Recognized:
    """Return what a file is; DataError if it holds no table that can be read.

    A zip archive is the table in it; `encoding` is given by the user.
    """
    start = file.start(_START, as_stored=True)
    if start.startswith(b"PK\x03\x04"):
        return _in_archive(file, encoding)
    # its bytes decide, as browsers may decompress a file, or lose an extension
    found = _of(_COMPRESSED, start)
    if found is not None or not file.path.lower().endswith(".br"):
        file = replace(file, compression=found)
    if file.compression is not None:
        start = file.start(_START)
    return Recognized(file, _extension(file.label, start, encoding))


def _in_archive(file: DataFile, encoding: str | None) -> Recognized:
    with explained_errors(file.label), zipfile.ZipFile(file.random_access()) as archive:
        members = archive.infolist()
        names = [
            member.filename
            for member in members
            if not member.is_dir() and not re.search(r"(^|/)(\.|__MACOSX/)", member.filename)
        ]
        if any(member.flag_bits & 1 for member in members):
            raise DataError(f"{file.label} is a zip archive with a password: unpack it")
    if "xl/workbook.xml" in names:
        return Recognized(file, ".xlsx")
    if "mimetype" in names or "[Content_Types].xml" in names:
        raise _refusal(file.label, "a document of an office program")
    tables = [name for name in names if PurePosixPath(name).suffix.lower() in _OF_TABLES]
    chosen = tables if len(tables) == 1 else names
    if len(chosen) != 1:
        text = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
        raise DataError(
            f"{file.label} must be an archive of one table, got {len(names)} files"
            f"{f' ({text})' if names else ''}: unpack it"
        )
    inside = replace(file, compression=None, member=chosen[0])
    extension = _extension(file.label, inside.start(_START), encoding)
    return Recognized(inside, extension, f"{file.label} is a zip archive: {chosen[0]} is read")


_OF_TABLES = (".csv", ".tsv", ".txt", ".dat", ".tab", *_TABLES.values(), ".pq", ".feather", ".xlsx")


def _extension(label: str, start: bytes, encoding: str | None) -> str:
    """Return the extension of a format, empty for text; DataError for what is no table."""
    found = _of(_TABLES, start)
    if found is not None:
        return found
    if _OLD_STATA.match(start):
        return ".dta"
    other = _of(_OTHERS, start)
    if other is None and (start[257:262] == b"ustar" or start.startswith(b"PK\x03\x04")):
        other = "an archive in another"
    if other is None and encoding is None:
        other = _no_table(start)
    if other is not None:
        raise _refusal(label, other)
    return ""


def _no_table(start: bytes) -> str | None:
    """Return what text is if it holds no table, None if it may hold one."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = start.decode("utf-16", errors="ignore")
    elif b"\0" in start:
        return "a binary file"
    else:
        text = start.decode("utf-8-sig", errors="ignore")
    text = text.lstrip()
    if _HTML.match(text):
        return "an HTML page"
    if text.startswith("<?xml"):
        return "an XML file"
    return "a JSON file" if _JSON.match(text) else None


def _refusal(label: str, what: str) -> DataError:
    how = typed("read it with pandas and pass the DataFrame", "save it as CSV or Parquet")
    if what == "a binary file":
        encoding = typed('ReadAs(encoding="utf-16-le")', "--encoding utf-16-le")
        how += f", or name its encoding, as in {encoding}"
    return DataError(f"{label} must hold a table, got {what}: {how}")


def _of(names: Mapping[bytes, str], start: bytes) -> str | None:
    return next((name for mark, name in names.items() if start.startswith(mark)), None)
