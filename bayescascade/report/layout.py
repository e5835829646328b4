"""Lines of text: wrapping by displayed width, flowing pieces, color.

Names and levels come from files: control characters are escaped, and wide characters count as two
columns.
"""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells

from bayescascade.base.texts import printable

GAP = "   "  # between the pieces of a line

_CODES = {"bold": "1", "dim": "2", "more": "36", "less": "33", "warning": "33"}


class Ink:
    """Colors text by ANSI codes if `color`."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, style: str, text: str) -> str:
        """Return `text` in a style: bold, dim, more, less, warning, or "" for none."""
        if not (self._color and style and text.strip()):
            return text
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def wrap(text: str, width: int, hanging: int = 0) -> list[str]:
    """Break text into lines of at most `width` >= 1 columns, between words if possible.

    Long words break after "_", "-" or "/" if possible. All lines but the first are `hanging`
    columns narrower, for an indent by the caller.
    """
    lines: list[str] = []
    line, room = "", width
    for word in printable(text).split(" "):
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= room:
            line = joined
            continue
        if line:
            lines.append(line)
            room = width - hanging
        *full, line = _broken(word, width - hanging)
        if full:
            lines.extend(full)
            room = width - hanging
    return [*lines, line]


def _broken(word: str, width: int) -> list[str]:
    """Break a long word into lines, after its "_", "-" or "/" if possible."""
    lines = [""]
    for part in re.findall(r"[^_/-]*[_/-]+|[^_/-]+", word):
        if cell_len(lines[-1] + part) <= width:
            lines[-1] += part
        else:
            lines += chop_cells(part, width)
    return lines[0 if lines[0] else 1 :] or [""]


def flow(
    pieces: Iterable[str], width: int, indent: int, *, first: str = "", gap: str = GAP
) -> list[str]:
    """Put pieces side by side on lines of `width` columns; wrap longer pieces.

    All lines but the first have `indent` spaces; `first` begins the first line; `gap` is between
    two pieces.
    """
    lines: list[str] = []
    start = line = first
    for piece in map(printable, pieces):
        joined = line + (gap if line != start else "") + piece
        if cell_len(joined) <= width:
            line = joined
            continue
        if line != start:
            lines.append(line)
            start = line = " " * indent
        *full, last = wrap(piece, width - cell_len(start), indent - cell_len(start))
        for part in full:
            lines.append(line + part)
            start = line = " " * indent
        line += last
    return [*lines, line]


def ljust(text: str, width: int) -> str:
    """Return text with spaces after it, to `width` columns."""
    return text + " " * (width - cell_len(text))


def rjust(text: str, width: int) -> str:
    """Return text with spaces before it, to `width` columns."""
    return " " * (width - cell_len(text)) + text


def longest(texts: Sequence[str]) -> int:
    """Return the displayed width of the widest text."""
    return max(map(cell_len, texts), default=0)
