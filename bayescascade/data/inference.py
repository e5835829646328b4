"""From the cells of a column to its kind and its levels.

A collector reads a column block by block, in bounded memory, and then names its `Column`: what was
declared, else what the cells show, else an error that says what to declare. The bins of a
continuous column hold about equally many of a bounded sample of its values.
"""

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.data.column import MAX_LEVELS, MAX_NOMINAL_LEVELS, Column
from bayescascade.data.declarations import ColumnDeclaration
from bayescascade.data.levels import (
    Cells,
    Level,
    check_numbers,
    factorize,
    level_text,
    parse_texts,
    tidy_levels,
    to_numbers,
)

__all__ = ["BinCollector", "Collector", "LevelCollector", "RowSample", "equal_frequency_edges"]

SAMPLE_SIZE = 250_000  # a quantile is then off by at most about 0.3 % of the rows

# In fewer rows the values of a column that identifies nothing may all differ by chance.
_MIN_IDENTIFIED_ROWS = 5


@dataclass(kw_only=True)
class Collector(ABC):
    """What has been seen of one column so far."""

    name: str
    declared: ColumnDeclaration
    is_text: bool  # whether numbers come as text, as in CSV
    n_rows: int = 0
    n_missing: int = 0
    first_missing_row: int = 0

    @abstractmethod
    def add(self, cells: Cells, weights: NDArray[np.float64] | None) -> None:
        """Read the next block of cells and the rows' weights, (n,) or None for ones."""

    @abstractmethod
    def column(self, missing: str, is_weighted: bool) -> Column:
        """Return the column that fits the cells; `missing` is "error" or "level".

        Raises
        ------
        DataError
            If the cells break a rule of the column's kind, or the kind must be declared.
        """

    def _count_missing(self, is_missing: NDArray[np.bool_]) -> None:
        if is_missing.any() and not self.n_missing:
            self.first_missing_row = self.n_rows + 1 + int(np.argmax(is_missing))
        self.n_missing += int(is_missing.sum())
        self.n_rows += len(is_missing)

    def _has_missing_level(self, missing: str) -> bool:
        if self.n_missing and missing == "error":
            cells = "1 missing cell" if self.n_missing == 1 else f"{self.n_missing:,} missing cells"
            raise DataError(
                f'column "{self.name}" has {cells}, the first in row {self.first_missing_row}: '
                'fill them, drop the column, or make them a level with missing="level" '
                "(--missing level)"
            )
        if self.n_missing == self.n_rows:
            raise DataError(f'column "{self.name}" has only missing cells: drop it')
        return self.n_missing > 0


@dataclass(kw_only=True)
class LevelCollector(Collector):
    """Collects the distinct values of a counted column."""

    _is_categorical: bool = False
    _is_ordered: bool = True
    # Keyed by type as well: True and 1 are equal. Intervals stand beside their text.
    _values: dict[tuple[type, Level], Any] = field(default_factory=dict)

    def add(self, cells: Cells, weights: NDArray[np.float64] | None) -> None:
        """Read the next block of cells; weights do not matter."""
        if self.declared.levels is not None:  # encoding will find what is outside
            self._count_missing(cells.isna().to_numpy())
            return
        factor = factorize(self.name, cells)
        self._count_missing(factor.positions < 0)
        self._is_categorical |= factor.is_categorical
        self._is_ordered &= factor.is_ordered or not factor.values
        for value, interval in itertools.zip_longest(factor.values, factor.intervals):
            self._values.setdefault((type(value), value), interval)
        if len(self._values) > MAX_LEVELS:
            # Too many for any kind (unless they are spellings of fewer): raise before the end.
            self.column("level", is_weighted=weights is not None)

    def column(self, missing: str, is_weighted: bool) -> Column:
        """Return the column that fits the cells; see `Collector.column`."""
        has_missing_level = self._has_missing_level(missing)
        kind = self.declared.kind or ("ordinal" if self._is_ordered else "nominal")
        if self.declared.levels is not None:
            return Column(self.name, kind, self.declared.levels, (), has_missing_level)
        values = [value for _, value in self._values]
        intervals = list(self._values.values())
        if self._is_ordered and None not in intervals:  # other blocks may have others between
            values = [value for _, value in sorted(zip(intervals, values, strict=True))]
        levels = tidy_levels(parse_texts(values) if self.is_text else values)
        if self.declared.kind is None and not (self._is_categorical or self._is_ordered):
            self._check_undeclared(levels, is_weighted)
        if kind == "nominal" and len(levels) + has_missing_level > MAX_NOMINAL_LEVELS:
            raise DataError(self._too_many_message(levels, has_missing_level))
        is_in_order = kind == "ordinal" and self._is_ordered
        if kind == "ordinal" and not is_in_order and isinstance(levels[0], str):
            some = [level_text(level) for level in sorted(levels)[:3]]
            raise DataError(
                f'ordinal column "{self.name}" holds text: give its levels in order, as in '
                f'ordinal={{"{self.name}": {some}}} (--ordinal {self.name}:{",".join(some)})'
            )
        return Column(
            self.name, kind, tuple(levels if is_in_order else sorted(levels)), (), has_missing_level
        )

    def _check_undeclared(self, levels: list[Level], is_weighted: bool) -> None:
        """Raise DataError if the values should not be taken for levels unless declared so."""
        drop = f"drop it (--drop {self.name})"
        continuous = f'continuous={{"{self.name}": 10}} (--continuous {self.name}:10)'
        if isinstance(levels[0], float):
            broken = next(level for level in levels if not float(level).is_integer())
            raise DataError(
                f'column "{self.name}" holds numbers such as {broken}: declare it {continuous} '
                f"or ordinal (--ordinal {self.name}), or {drop}"
            )
        if len(levels) == self.n_rows >= _MIN_IDENTIFIED_ROWS and not is_weighted:
            raise DataError(
                f'column "{self.name}" has a different value in every row ({self.n_rows:,} read): '
                f"{drop} or declare its kind"
            )
        if len(levels) > MAX_NOMINAL_LEVELS and isinstance(levels[0], int):
            raise DataError(
                f'column "{self.name}" has {len(levels):,} different whole numbers, more than '
                f"the {MAX_NOMINAL_LEVELS} levels of a nominal column: declare it {continuous} "
                f"or ordinal (--ordinal {self.name}), or {drop}"
            )

    def _too_many_message(self, levels: list[Level], has_missing_level: bool) -> str:
        counted = f"{len(levels) + has_missing_level:,} levels"
        if has_missing_level:
            counted += " (one of them for missing cells)"
        return (
            f'nominal column "{self.name}" has {counted}, more than {MAX_NOMINAL_LEVELS}: '
            "group rare levels, declare it ordinal with its levels in order, "
            f"or drop it (--drop {self.name})"
        )


@dataclass(kw_only=True)
class BinCollector(Collector):
    """Collects the range and a sample of a continuous column."""

    _lowest: float = math.inf
    _highest: float = -math.inf
    _sample: "RowSample" = field(default_factory=lambda: RowSample())

    def add(self, cells: Cells, weights: NDArray[np.float64] | None) -> None:
        """Read the next block of cells and the rows' weights."""
        first_row = self.n_rows + 1
        label = f'continuous column "{self.name}"'
        numbers = to_numbers(label, cells, first_row)
        present = ~np.isnan(numbers)
        check_numbers(label, numbers, first_row)
        self._count_missing(~present)
        if self.declared.n_bins is not None and present.any():
            values = numbers[present]
            self._lowest = min(self._lowest, float(values.min()))
            self._highest = max(self._highest, float(values.max()))
            weights = np.ones(len(numbers)) if weights is None else weights
            self._sample.add(values, weights[present], first_row + np.flatnonzero(present))

    def column(self, missing: str, is_weighted: bool) -> Column:  # noqa: ARG002
        """Return the column that fits the cells; see `Collector.column`."""
        has_missing_level = self._has_missing_level(missing)
        if self.declared.n_bins is None:
            assert self.declared.edges is not None
            edges = self.declared.edges
        elif self._lowest == self._highest:
            raise DataError(
                f'continuous column "{self.name}" must vary, got {self._lowest:g} in every row: '
                f"drop it (--drop {self.name}) or give its bin edges"
            )
        else:
            edges = self._sample.edges(self.declared.n_bins, self._lowest, self._highest)
        return Column(self.name, "continuous", (), edges, has_missing_level)


class RowSample:
    """Up to `SAMPLE_SIZE` rows' values and weights, drawn without replacement.

    Every row gets a pseudo-random key from its number and the rows with the smallest keys are
    kept: the sample does not depend on how the rows were cut into blocks.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, dtype=np.uint64)
        self._values = np.empty(0)
        self._weights = np.empty(0)

    def add(
        self, values: NDArray[np.float64], weights: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> None:
        """Add values and weights of the data rows with numbers `rows`; all (n,)."""
        self._keys = np.append(self._keys, _random_keys(rows))
        self._values = np.append(self._values, values)
        self._weights = np.append(self._weights, weights)
        if len(self._keys) > SAMPLE_SIZE:
            kept = np.argpartition(self._keys, SAMPLE_SIZE)[:SAMPLE_SIZE]
            self._keys = self._keys[kept]
            self._values = self._values[kept]
            self._weights = self._weights[kept]

    def edges(self, n_bins: int, lowest: float, highest: float) -> tuple[float, ...]:
        """Return edges of equal-frequency bins from `lowest` to `highest`."""
        return equal_frequency_edges(self._values, self._weights, n_bins, lowest, highest)


def equal_frequency_edges(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_bins: int,
    lowest: float,
    highest: float,
) -> tuple[float, ...]:
    """Return increasing edges of at most `n_bins` bins of nearly equal weight.

    The inner edges are midpoints between neighboring distinct values, each where the weight below
    comes closest to its share; shares that fall on the same midpoint are merged.

    Parameters
    ----------
    values, weights : (n,) float64, weights >= 0
    n_bins : int >= 1
    lowest, highest : float
        The outer edges, lowest < highest; no value lies outside.
    """
    # Sorting by weight as well makes the sums independent of the order of equal values.
    order = np.lexsort((weights, values))
    values, weights = values[order], weights[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    distinct = values[starts]
    weight_up_to = np.cumsum(np.add.reduceat(weights, starts))
    # Cut k lies between distinct values k and k + 1 and leaves weight_below[k] below it.
    weight_below = weight_up_to[:-1]
    if not len(weight_below):
        return (lowest, highest)
    shares = weight_up_to[-1] * np.arange(1, n_bins) / n_bins
    above = np.clip(np.searchsorted(weight_below, shares), 0, len(weight_below) - 1)
    below = np.maximum(above - 1, 0)
    is_below_closer = np.abs(shares - weight_below[below]) <= np.abs(weight_below[above] - shares)
    cuts = np.unique(np.where(is_below_closer, below, above))
    lower, upper = distinct[cuts], distinct[cuts + 1]
    middles = lower / 2 + upper / 2
    # Between neighboring floats there is no middle: the upper one starts the next bin.
    inner = np.where(middles > lower, middles, upper)
    inner = inner[(inner > lowest) & (inner < highest)]
    return (lowest, *inner.tolist(), highest)


def _random_keys(rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a hash of each row number (the finalizer of splitmix64; Steele et al. 2014)."""
    keys = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
