"""What a file is, by its first bytes, whatever its name says.

Compressed tables and tables of other programs are read. Others, such as JSON, are refused in a
line: as text, they would be one column of nonsense.
"""

import codecs
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from bayescascade.base.errors import DataError
from bayescascade.base.typed_words import typed
from bayescascade.data.data_file import DataFile, explained_errors

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
