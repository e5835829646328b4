"""How a text file is written: what stands between cells, its encoding, and decimal commas.

Spreadsheets of many countries save ";" between cells and commas in numbers, and older ones write
in Windows' Western European code page. What is found is said by a note, as it may be wrong.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow
from pyarrow import compute

__all__ = ["SNIFFED_BYTES", "Dialect", "sniffed"]

SNIFFED_BYTES = 1 << 18
_MOST_RECORDS = 1_000
_DELIMITERS = {",": "commas", ";": '";"', "\t": "tabs", "|": '"|"'}
_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")
_NUMBER = re.compile(r"[-+]?\d+(?:,\d+)?(?:[eE][-+]?\d+)?")
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text file is written.

    Parameters
    ----------
    delimiter : str
        One character.
    encoding : str
        As Python calls it.
    has_decimal_commas : bool
        Whether cells such as "3,5" are numbers.
    """

    delimiter: str = ","
    encoding: str = "utf-8-sig"
    has_decimal_commas: bool = False

    @property
    def words(self) -> str:
        """What differs from UTF-8 with commas between cells; empty if nothing does."""
        told = []
        if self.delimiter != ",":
            told.append(f"{_DELIMITERS[self.delimiter]} between cells")
        if self.has_decimal_commas:
            told.append("decimal commas")
        if self.encoding != "utf-8-sig":
            told.append(f"encoding {self.encoding}")
        return ", ".join(told)

    def with_points(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return texts, or a dictionary of them, in which decimal commas are points."""
        if not self.has_decimal_commas:
            return column
        if isinstance(column, pyarrow.DictionaryArray):
            told = self.with_points(column.dictionary)
            if len(compute.unique(told)) == len(told):
                return pyarrow.DictionaryArray.from_arrays(column.indices, told)
            return self.with_points(column.dictionary_decode()).dictionary_encode()
        pattern = "^([-+]?[0-9]+),([0-9]+(?:[eE][-+]?[0-9]+)?)$"
        return compute.replace_substring_regex(column, pattern, r"\1.\2")


def sniffed(start: bytes) -> Dialect:
    """Return how a file is written whose first bytes these are, at most `SNIFFED_BYTES`.

    Commas are between cells unless with them rows differ in width, or have one cell, and with
    another delimiter they do not. Decimal commas need another delimiter, and a column of nothing
    but numbers, some with a comma. What is neither UTF-8 nor begins with the mark of UTF-16 is
    cp1252.
    """
    encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8-sig")
    text = start.decode(encoding, errors="ignore")
    if encoding == "utf-8-sig" and not _is_utf8(start):
        encoding = "cp1252"
        text = start.decode(encoding, errors="ignore")
    is_whole = len(start) < SNIFFED_BYTES
    for delimiter in _DELIMITERS:
        rows = list(_records(text, delimiter, is_whole))
        if _are_regular(rows):
            return Dialect(delimiter, encoding, delimiter != "," and _have_commas(rows[1:]))
    return Dialect(encoding=encoding)


def _is_utf8(start: bytes) -> bool:
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(start) - error.start < 4 and len(start) == SNIFFED_BYTES  # a character is cut
    return True


def _records(text: str, delimiter: str, is_whole: bool) -> Iterator[list[str]]:
    """Yield the first rows that are not blank, without the last, which may be cut."""
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
    for cells in zip(*rows, strict=False):
        filled = [cell for cell in cells if cell.strip()]
        numbers = [cell for cell in filled if _NUMBER.fullmatch(cell)]
        if any(_COMMA.fullmatch(cell) for cell in numbers) and len(numbers) == len(filled):
            return True
    return False
