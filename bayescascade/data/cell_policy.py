"""How a family treats cells that are missing, too large or of a new level, and the warning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import (
    ParameterError,
    UnknownLevelError,
    UnknownLevelWarning,
    warn_user,
)
from bayescascade.base.typed_words import typed, typed_setting
from bayescascade.base.validation import check_choice
from bayescascade.data.column import UNKNOWN
from bayescascade.data.levels import Cells, level_text, plain_level

Matrix = NDArray[Any]  # of the policy's type

_MEANINGS: Final[Mapping[str, str]] = {
    "error": "",
    "missing": "counts as missing",
    "mean": "counts as the mean of its column",
}
"""The treatment of an unknown level in words, by policy."""


@dataclass(frozen=True, slots=True)
class CellPolicy:
    """How a family treats missing and unknown cells.

    missing: "error"; "nan", which is NaN in all columns of the matrix; or "level", a level of the
    columns that had missing cells (see `matrix`), and an unknown level of the others.
    unknown: a level that was not learned is an "error"; "missing", a missing cell (where missing
    must not be "error"; NaN in all columns of the matrix, of columns without a level for it); or
    the "mean" of its columns of the matrix, which the learner supplies.
    For the last two there is an `UnknownLevelWarning`.
    """

    missing: str = "error"
    unknown: str = "error"
    # float32 or float64, of the matrix; larger numbers become its largest,
    # but arrays with such numbers are refused
    dtype: type[np.floating[Any]] = np.float64
    # whether the encoder keeps the range of integers, for words about splits:
    # the range is data, which private models must not store
    keeps_ranges: bool = False

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, ("error", "nan", "level"))
        check_choice("unknown", self.unknown, ("error", "missing", "mean"))
        if self.missing == "error" and self.unknown == "missing":
            raise ParameterError(
                'unknown must be "error" or "mean" where missing is "error", got "missing"'
            )

    @property
    def may_be_nan(self) -> bool:
        """Whether cells of the matrix may be NaN."""
        return self.missing == "nan" or self.unknown == "missing"

    @property
    def meaning_of_unknown(self) -> str:
        """The treatment of an unknown level in words; empty if it is an error."""
        return _MEANINGS[self.unknown]

    def numbers(self, numbers: Floats) -> Matrix:
        """Return finite numbers or NaN in the matrix's type, limited to its largest number."""
        largest = float(np.finfo(self.dtype).max)
        rounded: Matrix = numbers.clip(-largest, largest).astype(self.dtype)
        return rounded


STRICT: Final = CellPolicy()
"""Missing cells and unknown levels are errors."""


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
