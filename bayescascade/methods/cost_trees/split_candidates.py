"""The splits that a tree posterior chooses from: a column and one of its thresholds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SplitCandidates"]


@dataclass(frozen=True, slots=True, eq=False)
class SplitCandidates:
    """Candidates, ordered by column and threshold, and where rows are among them.

    Parameters
    ----------
    starts : (n_columns + 1,) int64
        Candidates of column ``j`` are ``starts[j]`` to ``starts[j + 1] - 1``.
    columns : (n_candidates,) int64
        The column of each candidate.
    thresholds : (n_candidates,) float64
        A row goes left if its value as float32 is <= the threshold.
    codes : (n_columns, n_rows) uint16
        Number of the column's thresholds below a row's value: the row goes left at its candidates
        from ``starts[j] + code`` on.
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    codes: NDArray[np.uint16]

    @classmethod
    def of(cls, X: NDArray[np.float32], n_thresholds: int) -> "SplitCandidates":
        """Return candidates halfway between values of each column, about evenly among the rows.

        Parameters
        ----------
        X : (n_rows, n_columns) float32
            Finite.
        n_thresholds : int >= 1
            Most thresholds of a column. A column of fewer distinct values has one between any two.
        """
        thresholds = [_thresholds(column, n_thresholds) for column in X.T]
        codes = [np.searchsorted(*pair) for pair in zip(thresholds, X.T, strict=True)]
        per_column = np.array([len(values) for values in thresholds])
        return cls(
            starts=np.concatenate([[0], np.cumsum(per_column)]),
            columns=np.repeat(np.arange(per_column.size), per_column),
            thresholds=np.concatenate(thresholds),
            codes=np.array(codes, np.uint16),
        )

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return int(self.thresholds.size)

    @property
    def open_columns(self) -> NDArray[np.int64]:
        """Columns with a threshold, ascending."""
        return np.flatnonzero(np.diff(self.starts))

    def log_probabilities(self) -> NDArray[np.float64]:
        """Return the log probability of each candidate: a column first, then a threshold, nats."""
        per_column = np.diff(self.starts)
        shares: NDArray[np.float64] = -np.log(self.open_columns.size * per_column[self.columns])
        return shares

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a column, then one of its thresholds."""
        column = self.open_columns[rng.integers(self.open_columns.size)]
        return int(rng.integers(self.starts[column], self.starts[column + 1]))


def _thresholds(column: NDArray[np.float32], n_thresholds: int) -> NDArray[np.float64]:
    values, counts = np.unique(column.astype(np.float64), return_counts=True)
    between: NDArray[np.float64] = (values[:-1] + values[1:]) / 2
    if between.size <= n_thresholds:
        return between
    below = np.cumsum(counts)[:-1]
    wanted = np.arange(1, n_thresholds + 1) * column.size / (n_thresholds + 1)
    places = np.minimum(np.searchsorted(below, wanted), between.size - 1)
    chosen: NDArray[np.float64] = between[np.unique(places)]
    return chosen
