"""The columns of linear classifiers: the numbers, and optionally steps at their quantiles."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.store import GIVEN, As, Of, stored

N_STEPS = 11
"""Maximum number of steps of a column."""

MOST_COLUMNS = 1000
"""If a matrix has more columns, or nearly as many, columns have fewer steps or none."""


def _read_cuts(data: list[float | None]) -> Floats:
    return np.array([np.nan if cut is None else cut for cut in data], np.float64)


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns made from the columns of a matrix, grouped by feature.

    column (p,): the column of the matrix; cut (p,): NaN for its numbers, otherwise the column is 1
    above the cut and 0 up to it; source (m,): the feature of each column of the matrix.
    """

    column: Annotated[Integers, Of("basis", kind=np.int64)]
    cut: Annotated[Floats, As(stored, _read_cuts)]
    source: Annotated[NDArray[np.integer[Any]], GIVEN]

    def __post_init__(self) -> None:
        every = np.arange(len(self.source))
        is_sorted = (
            np.array_equal(np.unique(self.column), every) and (np.diff(self.column) >= 0).all()
        )
        if not is_sorted or self.cut.shape != self.column.shape or np.isinf(self.cut).any():
            raise ValueError("a basis must have the columns of the matrix in order")

    @cached_property
    def feature(self) -> Integers:
        """The feature of each column, (p,) int64, ascending."""
        return np.asarray(self.source, np.int64)[self.column]

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
        return cls(np.array(column, np.int64), np.array(cut, np.float64), source)

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
