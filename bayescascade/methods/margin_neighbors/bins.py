"""Bins of features: a short chain of comparisons each, which trees of forests can make, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.data.bins import equal_frequency_edges
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.reports import split_words

Ints = NDArray[np.int64]

_LARGEST = float(np.finfo(np.float32).max)


class Comparison(NamedTuple):
    """A step of a chain: a cell is at most a threshold, or not, and one side is a bin."""

    column: int
    threshold: float
    is_left: bool  # whether the bin is the side of cells at most the threshold
    missing_left: bool  # whether NaN is there


@dataclass(frozen=True, slots=True)
class FeatureBins:
    """Bins of a feature, by the first comparison that holds: quantiles, a level, a missing cell."""

    chain: tuple[Comparison, ...]

    @property
    def n_bins(self) -> int:
        """Number of bins, >= 1."""
        return len(self.chain) + 1

    @classmethod
    def of(
        cls, cells: NDArray[np.float32], weights: NDArray[np.float64], first: int, n_bins: int
    ) -> Self:
        """Return the bins of columns (n, width) of the matrix, from `first` on."""
        is_missing = np.isnan(cells[:, 0])
        known, sizes = cells[~is_missing].astype(np.float64), weights[~is_missing]
        steps: list[tuple[int, float, bool]] = []
        if cells.shape[1] > 1:  # a column for each level
            steps = [(first + place, 0.5, False) for place in range(cells.shape[1] - 1)]
        elif len(known):
            steps = [(first, cut, True) for cut in _cuts(known[:, 0], sizes, n_bins)]
        bare = cls(tuple(Comparison(*step, False) for step in steps))
        codes = bare.codes(known.astype(np.float32), first)
        fullest = int(np.bincount(codes, sizes, bare.n_bins).argmax()) if len(known) else 0
        chain = [
            Comparison(*step, step[2] if place == fullest else not step[2])
            for place, step in enumerate(steps)
        ]
        if 0 < len(known) < len(cells):
            chain.insert(0, Comparison(first, _LARGEST, False, False))
        return cls(tuple(chain))

    def codes(self, cells: NDArray[np.float32], first: int) -> Ints:
        """Return the bin of rows, (n,) int64, whose columns (n, width) begin at `first`."""
        found = np.full(len(cells), len(self.chain), np.int64)
        is_open = np.ones(len(cells), np.bool_)
        for place, step in enumerate(self.chain):
            cell = cells[:, step.column - first]
            is_left = (cell <= step.threshold) | (np.isnan(cell) & step.missing_left)
            inside = is_open & (is_left == step.is_left)
            found[inside] = place
            is_open &= ~inside
        return found

    def words(self, encoder: MatrixEncoder, last_column: int) -> list[str]:
        """Return what each bin is, such as "age is above 30 and age is at most 50"."""
        told, below = [], ""
        for step in self.chain:
            own = split_words(encoder, step.column, step.threshold, step.is_left)
            told.append(f"{below} and {own}" if below and step.is_left else own)
            if step.is_left:
                below = split_words(encoder, step.column, step.threshold, False)
        if not below and self.chain and self.chain[-1].threshold < _LARGEST:
            below = split_words(encoder, last_column, 0.5, False)
        return [*told, below or "anything else"]

    @classmethod
    def from_record(cls, record: Sequence[Any], columns: Sequence[int]) -> Self:
        """Return the chain of a saved file; ModelFileError if it is not about the columns."""
        chain = tuple(
            Comparison(int(column), float(threshold), bool(left), bool(missing))
            for column, threshold, left, missing in record
        )
        if any(step.column not in columns or not np.isfinite(step.threshold) for step in chain):
            raise ModelFileError("saved bins must compare columns of their features to numbers")
        return cls(chain)


def bins_of(
    rows: NDArray[np.float32], weights: NDArray[np.float64], source: Ints, n_bins: int
) -> tuple[FeatureBins, ...]:
    """Return the bins of each feature of rows (n, p), whose columns are of features `source`."""
    groups = columns_of(source)
    return tuple(FeatureBins.of(rows[:, each], weights, each[0], n_bins) for each in groups)


def columns_of(source: Ints) -> list[list[int]]:
    """Return the columns of each feature."""
    return [np.flatnonzero(source == feature).tolist() for feature in range(int(source[-1]) + 1)]


def codes_of(bins: Sequence[FeatureBins], rows: NDArray[np.float32], source: Ints) -> Ints:
    """Return the bin of each feature of rows, (n, d) int64."""
    pairs = zip(bins, columns_of(source), strict=True)
    return np.stack([each.codes(rows[:, columns], columns[0]) for each, columns in pairs], axis=1)


def _cuts(values: NDArray[np.float64], weights: NDArray[np.float64], n_bins: int) -> list[float]:
    """Return at most n_bins - 1 cuts between values, each bin of about the same weight."""
    lowest, highest = float(values.min()), float(values.max())
    if lowest == highest:
        return []
    edges = equal_frequency_edges(values, weights, n_bins, lowest, highest)
    return [float(edge) for edge in edges[1:-1] if lowest < edge < highest]
