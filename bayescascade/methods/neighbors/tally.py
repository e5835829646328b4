"""How many rows of each class prototypes take wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The rows of each class, and those of them taken wrong, (n_classes,) int64 each."""

    rows: NDArray[np.int64]
    wrong: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[np.int64], taken: NDArray[np.int64], n_classes: int) -> Self:
        """Count rows by their labels, and by the classes that they are taken for."""
        wrong = np.bincount(labels[taken != labels], minlength=n_classes)
        return cls(np.bincount(labels, minlength=n_classes), wrong)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.rows + other.rows, self.wrong + other.wrong)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.sum())

    @property
    def wrong_share(self) -> float:
        """Share of the rows that are taken wrong."""
        return float(self.wrong.sum() / self.rows.sum())

    @property
    def is_worse(self) -> bool:
        """Whether always predicting the most common class takes fewer rows wrong."""
        return bool(self.wrong.sum() > self.rows.sum() - self.rows.max())

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"rows": self.rows.tolist(), "wrong": self.wrong.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_classes: int) -> Self:
        """Return what `to_record` returned; raises ModelFileError if it is damaged."""
        rows, wrong = (
            read_array(record, name, (n_classes,), np.int64) for name in ("rows", "wrong")
        )
        if (rows < 1).any() or (wrong > rows).any():
            raise ModelFileError("a saved model's rows must be counted for each class")
        return cls(rows, wrong)
