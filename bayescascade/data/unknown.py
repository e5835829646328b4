"""Cells that are outside what a model learned of: which rows have some, and the warning of it."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.errors import UnknownLevelWarning, warn_user
from bayescascade.data.column import UNKNOWN
from bayescascade.data.levels import Cells, level_text, plain_level


class UnknownCells:
    """The unknown cells of some rows, noted column by column while they are encoded.

    `levels` maps each column that has some to the text of the first, None if it is missing.
    """

    def __init__(self) -> None:
        """Start without columns."""
        self.levels: dict[str, str | None] = {}
        self._rows = np.zeros(0, np.bool_)

    def note(self, name: str, cells: Cells, codes: NDArray[np.integer]) -> None:
        """Note which cells of the column `name` have the code UNKNOWN, all (n_rows,)."""
        unknown = codes == UNKNOWN
        if not unknown.any():
            return
        value = cells.iloc[int(np.argmax(unknown))]
        self.levels[name] = None if pd.isna(value) else level_text(plain_level(name, value))
        self._rows = unknown | self._rows if self._rows.size else unknown

    def append(self, later: "UnknownCells") -> None:
        """Note what was noted of other rows."""
        self.levels = later.levels | self.levels
        self._rows = np.append(self._rows, later._rows)

    @property
    def n_rows(self) -> int:
        """Number of rows that have such a cell."""
        return int(self._rows.sum())

    def warn(self, meaning: str) -> None:
        """Warn of the rows that have such a cell, if any; `meaning` is what one was taken for."""
        if self.levels:
            warn_user(UnknownLevelWarning(self.n_rows, self.levels, meaning))
