"""The columns of linear classifiers: the numbers, and optionally steps at their quantiles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array

N_STEPS = 11
"""Maximum number of steps of a column."""

MOST_COLUMNS = 1000
"""If a matrix has more columns, or nearly as many, columns have fewer steps or none."""


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Columns made from the columns of a matrix, grouped by feature.

    column (p,) int64: the column of the matrix; cut (p,): NaN for its numbers, otherwise the column
    is 1 above the cut and 0 up to it; feature (p,) int64, ascending: its feature.
    """

    column: Integers
    cut: Floats
    feature: Integers

    @classmethod
    def of(cls, kind: str, rows: Floats, source: NDArray[np.integer[Any]]) -> Self:
        """Return the basis "linear" or "bins" of rows (n, m); `source` has their features."""
        column, cut = [], []
        n_steps = min(N_STEPS, MOST_COLUMNS // max(1, rows.shape[1]) - 1)
        for place in range(rows.shape[1]):
            cuts: list[float] = []
            if kind == "bins" and n_steps > 0 and np.unique(rows[:, place]).size > 2:
                shares = np.arange(1, n_steps + 1) / (n_steps + 1)
                steps = np.unique(np.quantile(rows[:, place], shares, method="lower"))
                cuts = steps[steps < rows[:, place].max()].tolist()
            column += [place] * (1 + len(cuts))
            cut += [np.nan, *cuts]
        places = np.array(column, np.int64)
        return cls(places, np.array(cut), np.asarray(source, np.int64)[places])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.column.size

    def starts(self, n_features: int) -> Integers:
        """Return the starts of the columns of each feature, (n_features + 1,)."""
        counts = np.bincount(self.feature, minlength=n_features)
        return np.cumsum([0, *counts], dtype=np.int64)

    def of_rows(self, rows: Floats, columns: Integers | None = None) -> Floats:
        """Return rows of the matrix in this basis, (n, p) float64, or some of its columns."""
        chosen = np.arange(self.n_columns) if columns is None else columns
        cut, made = self.cut[chosen], np.asarray(rows[:, self.column[chosen]], np.float64)
        is_step = ~np.isnan(cut)
        made[:, is_step] = made[:, is_step] > cut[is_step]
        return made

    def texts(self, names: list[str]) -> list[str]:
        """Return the names of columns, given those of the matrix."""
        pairs = zip(self.column.tolist(), self.cut.tolist(), strict=True)
        return [names[j] if np.isnan(cut) else f"{names[j]} > {cut:.6g}" for j, cut in pairs]

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        cuts = [None if np.isnan(cut) else cut for cut in self.cut.tolist()]
        return {"column": self.column.tolist(), "cut": cuts}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], source: NDArray[np.integer[Any]]) -> Self:
        """Rebuild a basis from `to_record`; ModelFileError if it does not fit the columns."""
        column = read_array(record, "column", (None,), np.int64)
        cut = np.array([np.nan if each is None else each for each in record["cut"]], np.float64)
        if (
            column.shape != cut.shape
            or np.isinf(cut).any()
            or not np.array_equal(np.unique(column), np.arange(len(source)))
            or (np.diff(column) < 0).any()
        ):
            raise ModelFileError("a saved basis must have the columns of the matrix in order")
        return cls(column, cut, np.asarray(source, np.int64)[column])
