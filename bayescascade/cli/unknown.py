"""Rows of a file with unknown levels: told once for all of its blocks."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from bayescascade.base.errors import UnknownLevelWarning, warn_user
from bayescascade.report.page import counted


class UnknownRows:
    """Counts rows with unknown levels (`n_rows`) over the blocks of a file.

    `levels` has the first such level by column, None if it is missing.
    """

    def __init__(self) -> None:
        """Start without rows."""
        self.n_rows = 0
        self.levels: dict[str, str | None] = {}
        self._meaning = ""

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Count the rows that a warning is of, instead of showing it; others are shown."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnknownLevelWarning)
            yield
        for each in caught:
            found = each.message
            if isinstance(found, UnknownLevelWarning):
                self.n_rows += found.n_rows
                self.levels = {**found.levels, **self.levels}
                self._meaning = found.meaning
            else:
                warnings.warn_explicit(found, each.category, each.filename, each.lineno)

    def warn(self) -> None:
        """Warn of all of them, if there are any."""
        if self.n_rows:
            warn_user(UnknownLevelWarning(self.n_rows, self.levels, self._meaning))

    @property
    def pieces(self) -> list[str]:
        """What is printed of them."""
        return [f"{counted(self.n_rows, 'row')} with unknown levels"] if self.n_rows else []
