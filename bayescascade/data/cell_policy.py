"""How a family treats cells of its matrix that are missing, too large or of a new level."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice

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
