"""What a family takes for a cell of its matrix: missing, too large, or of a new level."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice

Matrix = NDArray[Any]  # of the policy's type

_MEANINGS: Final[Mapping[str, str]] = {
    "error": "",
    "missing": "counts as missing",
    "mean": "counts as the mean of its column",
}
"""What an unknown level is taken for, by policy."""


@dataclass(frozen=True, slots=True)
class CellPolicy:
    """What a family takes for a cell.

    Parameters
    ----------
    missing : {"error", "nan", "level"}
        A missing cell is an error; NaN in all its columns of the matrix; or a level of those
        columns that had some, see `matrix`, and of others a level that was not learned.
    unknown : {"error", "missing", "mean"}
        A level that was not learned is an error; a missing cell, which must not be an error; or the
        mean of what its columns of the matrix were, which whoever learned from them knows. The
        last two are said in an `UnknownLevelWarning`.
    dtype : float32 or float64
        Of the matrix. Numbers too large for it become its largest, but are refused in arrays.
    keeps_ranges : bool
        Whether the encoder keeps the least and greatest of whole numbers, for words about splits.
        That is data, which nothing private may hold.
    """

    missing: str = "error"
    unknown: str = "error"
    dtype: type[np.floating[Any]] = np.float64
    keeps_ranges: bool = False

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, ("error", "nan", "level"))
        check_choice("unknown", self.unknown, ("error", "missing", "mean"))
        if self.missing != "nan" and self.unknown == "missing":
            raise ParameterError(
                'unknown must be "error" or "mean" unless missing is "nan", got "missing"'
            )

    @property
    def meaning_of_unknown(self) -> str:
        """What an unknown level is taken for, in words; empty if it is an error."""
        return _MEANINGS[self.unknown]

    def numbers(self, numbers: NDArray[np.float64]) -> Matrix:
        """Return finite numbers or NaN in the matrix's type, the largest where they are larger."""
        largest = float(np.finfo(self.dtype).max)
        rounded: Matrix = numbers.clip(-largest, largest).astype(self.dtype)
        return rounded


STRICT: Final = CellPolicy()
"""Missing cells and unknown levels are errors."""
