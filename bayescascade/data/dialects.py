"""The dialect of a text file: its delimiter, its encoding, and decimal commas.

In many countries, spreadsheets write ";" between cells and commas in numbers; older ones use the
Western European code page of Windows. A note reports a detected dialect, because it may be wrong.
Given options are not detected. Titles before the header, and comments, are no rows.
"""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow
from pyarrow import compute

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer
from bayescascade.data.number_marks import CURRENCIES

SNIFFED_BYTES = 1 << 18
_MOST_RECORDS = 1_000
_NO_SEPARATORS = ("+", "-", '"', "%", "\n", "\r", "\t")  # of thousands
_MOST_LINES = 100  # that are searched for comments, or for rows after titles
_MOST_TITLES = 20
_CHUNK = 1 << 16  # characters
_SEP_LINE = re.compile(r'"?sep=([^"\r\n])"?[\r\n]', re.IGNORECASE)
_DELIMITERS = {",": "commas", ";": '";"', "\t": "tabs", "|": '"|"'}
_DIGITS = r"[-+\u2212]?(?:\d+|\d{1,3}(?:[.'\u2019\u00a0\u202f]\d{3})+)"
_COMMA = re.compile(_DIGITS + r",\d+(?:[eE][-+]?\d+)?")
_NUMBER = re.compile(_DIGITS + r"(?:,\d+)?(?:[eE][-+]?\d+)?")
_POINT = re.compile(r"[-+]?\d+\.\d+")
_THOUSANDS = re.compile(r"[-+\u2212]?[1-9]\d{0,2},\d{3}")
_MARKS_OF_NUMBERS = f"%{CURRENCIES}" + " \u00a0\u202f"
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The dialect of a text file."""

    delimiter: str = ","  # one character
    encoding: str = "utf-8-sig"  # as Python names it
    has_decimal_commas: bool = False  # whether cells such as "3,5" are numbers
    # the first rows, if all have the same number of cells
    rows: Sequence[Sequence[str]] = ()
    words: str = ""  # the differences from UTF-8 with commas between cells; empty without any
    n_skipped: int = 0  # lines before the header
    comment: str | None = None  # the beginning of lines that are left out
    n_titles: int = 0  # lines that look like titles before the header, and are read
    has_commas_between: bool = False  # whether commas are between cells after these titles
    has_comments: bool = False  # whether lines that look like comments are read

    def with_points(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return texts, or a dictionary of them, with decimal points instead of commas."""
        if not self.has_decimal_commas:
            return column
        if isinstance(column, pyarrow.DictionaryArray):
            numbers = self.with_points(column.dictionary)
            if len(compute.unique(numbers)) == len(numbers):
                return pyarrow.DictionaryArray.from_arrays(column.indices, numbers)
            return self.with_points(column.dictionary_decode()).dictionary_encode()
        pattern = "^([-+]?[0-9]+),([0-9]+(?:[eE][-+]?[0-9]+)?)$"
        return compute.replace_substring_regex(column, pattern, r"\1.\2")


@dataclass(frozen=True, slots=True)
class GivenDialect:
    """The given options of a text file, None where not given; ParameterError if one is invalid."""

    sep: str | None = None  # one character between cells
    encoding: str | None = None  # as Python names it
    decimal: str | None = None  # "." or ","
    skip: int = 0  # lines before the header
    comment: str | None = None  # the beginning of lines that are left out
    strip: bool = True  # whether blanks at the ends of cells are left out
    keep_na: tuple[str, ...] = ()  # columns in which texts such as "NA" are levels
    thousands: str | None = None  # between the thousands of numbers
    missing_codes: tuple[str, ...] = ()  # texts that later become missing cells

    def __post_init__(self) -> None:
        if self.sep is not None and (len(self.sep) != 1 or not self.sep.isascii()):
            raise ParameterError(f"sep must be one ASCII character, got {self.sep!r}")
        if self.sep in ('"', "\n", "\r"):
            raise ParameterError(f"sep must be no quote or line break, got {self.sep!r}")
        if self.thousands is not None and (
            len(self.thousands) != 1
            or self.thousands.isalnum()
            or self.thousands in (self.decimal, *_NO_SEPARATORS)
        ):
            raise ParameterError(
                "thousands must be one character, other than a letter, a digit and decimal, got "
                f"{self.thousands!r}"
            )
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f'decimal must be "." or ",", got {self.decimal!r}')
        check_integer("skip", self.skip, 0)
        if self.comment is not None and (not self.comment or not self.comment.isprintable()):
            raise ParameterError(
                f"comment must be the beginning of lines, such as #, got {self.comment!r}"
            )
        if self.encoding is not None and not _is_text_encoding(self.encoding):
            raise ParameterError(
                f"encoding must be one that Python knows, such as cp1252, got {self.encoding!r}"
            )

    @property
    def of_text(self) -> bool:
        """Whether anything is given that only text files have."""
        return replace(self, strip=True, keep_na=(), missing_codes=()) != TO_BE_FOUND


TO_BE_FOUND = GivenDialect()


def sniffed(start: bytes, given: GivenDialect = TO_BE_FOUND) -> Dialect:
    """Return the dialect of a file from its first bytes, at most `SNIFFED_BYTES`.

    The delimiter is the one that gives rows of one width with the most cells; among equals, or
    without any, it is a comma. Decimal commas need another delimiter, and a column of only numbers,
    some with a comma. Files that are not UTF-8 and do not begin with the mark of UTF-16 are cp1252.
    Given options are used unchanged. Excel writes the delimiter in a first line, "sep=;".
    """
    encoding = given.encoding or _found_encoding(start)
    if codecs.lookup(encoding).name == "utf-8":
        encoding = "utf-8-sig"  # which skips a byte order mark
    text = start.decode(encoding, errors="ignore")
    is_whole = len(start) < SNIFFED_BYTES
    named, n_skipped = _SEP_LINE.match(text), given.skip
    if named and not given.skip:
        n_skipped = 1
        given = replace(given, sep=given.sep or named[1])
    text = kept_text(text, n_skipped, given.comment)
    delimiter, rows = given.sep or ",", list[list[str]]()
    for tried in (given.sep,) if given.sep else _DELIMITERS:
        found = list(_records(text, tried, is_whole))
        # the most cells, because each row and the header may have as many decimal commas
        if given.sep or (_are_regular(found) and (not rows or len(found[0]) > len(rows[0]))):
            delimiter, rows = tried, found
    has_commas = given.decimal == ","
    if given.decimal is None:
        is_free = delimiter != "," and given.thousands != ","
        has_commas = is_free and _have_commas(rows[1:])
    texts = []
    if given.sep is None and delimiter != ",":
        texts.append(f"{_DELIMITERS[delimiter]} between cells")
    if given.decimal is None and has_commas:
        texts.append("decimal commas")
    if given.encoding is None and encoding != "utf-8-sig":
        texts.append(f"encoding {encoding}")
    found_dialect = Dialect(
        delimiter, encoding, has_commas, (), ", ".join(texts), n_skipped, given.comment
    )
    if rows and _are_regular(rows):
        return replace(found_dialect, rows=rows[1:])
    n_titles, after_titles = _titles(
        text, [given.sep] if given.sep else list(_DELIMITERS), is_whole
    )
    lines = io.StringIO(text).readlines()
    has_comments = any(line.startswith("#") for line in lines[:_MOST_LINES]) and not given.comment
    if all(line.startswith("#") for line in lines[:n_titles]):
        n_titles = 0
    return replace(
        found_dialect,
        n_titles=n_titles,
        has_commas_between=after_titles == ",",
        has_comments=has_comments,
    )


def _titles(text: str, delimiters: Sequence[str], is_whole: bool) -> tuple[int, str]:
    """Return the number of lines before rows of one width, and the delimiter of these; or 0, ""."""
    for n in range(1, _MOST_TITLES + 1):
        rest = kept_text(text, n, None)
        for delimiter in delimiters:
            rows = list(itertools.islice(_records(rest, delimiter, is_whole), _MOST_LINES))
            if len(rows) > 1 and _are_regular(rows):
                return n, delimiter
    return 0, ""


def _found_encoding(start: bytes) -> str:
    marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    return marked or ("utf-8-sig" if _is_utf8(start) else "cp1252")


def _is_text_encoding(name: str) -> bool:
    try:
        b"a".decode(name, errors="ignore")
    except (LookupError, ValueError):  # also of codecs such as hex
        return False
    return True


def _is_utf8(start: bytes) -> bool:
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(start) - error.start < 4 and len(start) == SNIFFED_BYTES  # a character is cut
    return True


def _records(text: str, delimiter: str, is_whole: bool) -> Iterator[list[str]]:
    """Yield the first rows that are not blank, except the last, which may be truncated."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    before: list[str] | None = None
    n = 0
    try:
        for row in reader:
            if not row:
                continue
            if before is not None:
                yield before
                n += 1
            if n == _MOST_RECORDS:
                return
            before = row
    except csv.Error:
        return
    if before is not None and is_whole:
        yield before


def _are_regular(rows: Sequence[Sequence[str]]) -> bool:
    return bool(rows) and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)


def _have_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows have decimal commas; commas between thousands are none.

    If all could be either, they are between thousands if other numbers have decimal points.
    """
    commas: list[str] = []
    have_points = False
    for cells in zip(*rows, strict=False):
        filled = [cell.strip(_MARKS_OF_NUMBERS) for cell in cells if cell.strip()]
        numbers = [cell for cell in filled if _NUMBER.fullmatch(cell)]
        if len(numbers) == len(filled):
            commas += (cell for cell in numbers if _COMMA.fullmatch(cell))
        have_points = have_points or (bool(filled) and all(map(_POINT.fullmatch, filled)))
    may_be_thousands = have_points and all(map(_THOUSANDS.fullmatch, commas))
    return bool(commas) and not may_be_thousands


class KeptLines(io.RawIOBase):
    """A stream of a text file's lines as UTF-8, without the first ones and without comments.

    A comment is a line that begins with `comment`, also within quotes. The stream closes `source`.
    """

    def __init__(self, source: Any, encoding: str, n_skipped: int, comment: str | None) -> None:
        super().__init__()
        self._text = io.TextIOWrapper(source, encoding=encoding, newline="")
        self._comment, self._rest = comment, b""
        for _ in range(n_skipped):
            self._text.readline()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer, and return how many."""
        if not self._rest:
            self._rest = self._next().encode()
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n

    def close(self) -> None:
        """Close the source, too."""
        self._text.close()
        super().close()

    def _next(self) -> str:
        """Return more text, empty at its end."""
        if self._comment is None:
            return self._text.read(_CHUNK)
        while lines := self._text.readlines(_CHUNK):
            if kept := [line for line in lines if not line.startswith(self._comment)]:
                return "".join(kept)
        return ""


def kept_text(text: str, n_skipped: int, comment: str | None) -> str:
    """Return the same of a text."""
    if not n_skipped and comment is None:
        return text
    lines = io.StringIO(text, newline="").readlines()[n_skipped:]
    return "".join(line for line in lines if comment is None or not line.startswith(comment))
