"""Cells outside a model's domain: the rows that have some, and the warning."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.errors import UnknownLevelError, UnknownLevelWarning, warn_user
from bayescascade.base.typed_words import typed, typed_setting
from bayescascade.data.column import UNKNOWN
from bayescascade.data.levels import Cells, level_text, plain_level


class UnknownCells:
    """The unknown cells of some rows, recorded column by column while they are encoded.

    `levels` maps each column with unknown cells to the text of the first one, None for a missing
    cell; `meaning` says how such cells are treated.
    """

    def __init__(self) -> None:
        """Start without columns."""
        self.levels: dict[str, str | None] = {}
        self.meaning = ""
        self._rows = np.zeros(0, np.bool_)
        self._n_appended = 0

    def note(self, name: str, cells: Cells, codes: NDArray[np.integer]) -> None:
        """Record the cells of the column `name` with the code UNKNOWN, all (n_rows,)."""
        unknown = codes == UNKNOWN
        if not unknown.any():
            return
        value = cells.iloc[int(np.argmax(unknown))]
        self.levels[name] = None if pd.isna(value) else level_text(plain_level(name, value))
        self._rows = unknown | self._rows if self._rows.size else unknown

    def append(self, later: "UnknownCells") -> None:
        """Append the record of other rows."""
        self.levels = later.levels | self.levels
        self.meaning = later.meaning or self.meaning
        self._n_appended += later.n_rows

    @property
    def n_rows(self) -> int:
        """Number of rows with unknown cells."""
        return self._n_appended + int(self._rows.sum())

    def tell(self, meaning: str, whole: "UnknownCells | None" = None) -> None:
        """Append these rows to a `whole`; without one, warn about them."""
        self.meaning = meaning if self.levels else ""
        if whole is None:
            self.warn()
        else:
            whole.append(self)

    def warn(self) -> None:
        """Warn about the rows with unknown cells, if any."""
        if self.levels:
            warn_user(UnknownLevelWarning(self.n_rows, self.levels, self.meaning))


def advised(error: UnknownLevelError, choice: str) -> UnknownLevelError:
    """Return the error with advice: declare all levels, or accept unknown ones by `choice`."""
    levels = typed("nominal=, ordinal=", "--nominal, --ordinal")
    accepted = typed_setting("unknown", choice)
    return error.advising(
        f"give all its levels when fitting ({levels}), or accept unknown ones with {accepted}"
    )
