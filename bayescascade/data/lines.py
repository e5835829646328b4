"""Lines of a text file that are no rows: titles before the header, and comments."""

import io
from typing import Any

_CHUNK = 1 << 16  # characters


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
