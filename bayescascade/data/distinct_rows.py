"""Distinct rows and their summed weights, added block by block.

A row's codes are folded into mixed-radix 64-bit words, first column most significant, so that
equal words are equal rows, and sorting words sorts rows lexicographically. Weights are summed as
integers on a fixed grid (2**-96 of the power of two above the largest weight), so sums do not
depend on the order of rows or on blocks. A smaller positive weight is rounded up to one unit of the
grid, so its row is kept.
"""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers

_LIMB_BITS = 32
_N_LIMBS = 3
_FEW = 10_000  # rows
_MOST_BYTES = 1 << 30  # for each call of Arrow's grouping


class DistinctRows:
    """Accumulates rows of codes; memory is proportional to the distinct rows.

    n_levels (n_columns,) int64; `largest_weight` bounds all weights, None if each row counts once.
    """

    def __init__(self, n_levels: Integers, largest_weight: float | None) -> None:
        self._word_columns = _columns_of_words([int(n) for n in n_levels])
        self._n_levels = n_levels
        self._exponent = None if largest_weight is None else math.frexp(largest_weight)[1]
        n_limbs = 1 if self._exponent is None else _N_LIMBS
        self._words = np.empty((len(self._word_columns), 0), dtype=np.uint64)
        self._limbs = np.empty((n_limbs, 0), dtype=np.int64)
        self._pending: list[tuple[NDArray[np.uint64], Integers]] = []
        self._n_pending = 0
        self._is_repetitive = True  # whether grouping the rows of a block has paid

    def add(self, codes: Codes, weights: Floats | None) -> None:
        """Add rows: codes (n_columns, n_rows) >= 0, weights (n_rows,) >= 0 or None for ones."""
        self.add_sums(codes, self.to_limbs(weights, codes.shape[1]))

    def add_sums(self, codes: NDArray[np.integer], limbs: Integers) -> None:
        """Add rows, some of which may be equal, with their weights as integers; see `to_limbs`."""
        words = _folded(codes, self._n_levels, self._word_columns)
        if self._is_repetitive:
            n_rows = words.shape[1]
            words, limbs = _sum_equal_rows(words, limbs)
            self._is_repetitive = words.shape[1] <= n_rows // 2
        self._pending.append((words, limbs))
        self._n_pending += words.shape[1]
        # Merging only when the pending rows are as many as the merged ones keeps the work linear.
        if self._n_pending >= self._words.shape[1]:
            self._merge()

    def result(self) -> tuple[Codes, Floats]:
        """Return the distinct rows in lexicographic order, and their weights > 0."""
        self._merge()
        order = np.lexsort(self._words[::-1])
        self._words, self._limbs = self._words[:, order], self._limbs[:, order]
        codes, limbs = self.sums()
        weights = self._from_limbs(limbs)
        is_positive = weights > 0
        return np.compress(is_positive, codes, axis=1), weights[is_positive]

    def sums(self) -> tuple[Codes, Integers]:
        """Return the distinct rows in any order, and weights (n_limbs, n_distinct) int64."""
        self._merge()
        codes = np.empty((len(self._n_levels), self._words.shape[1]), dtype=np.int32)
        for word, columns in zip(self._words, self._word_columns, strict=True):
            for column in reversed(columns):
                word, codes[column] = np.divmod(word, np.uint64(self._n_levels[column]))
        return codes, self._limbs

    def _merge(self) -> None:
        if not self._pending:
            return
        blocks = [(self._words, self._limbs), *self._pending]
        n_rows = self._words.shape[1] + self._n_pending
        self._pending, self._n_pending = [], 0
        self._words, self._limbs = _sum_equal_rows(
            np.concatenate([words for words, _ in blocks], axis=1),
            np.concatenate([limbs for _, limbs in blocks], axis=1),
        )
        self._is_repetitive |= self._words.shape[1] <= n_rows // 2

    def to_limbs(self, weights: Floats | None, n_rows: int) -> Integers:
        """Return weights as (n_limbs, n_rows) integers, most significant first; sums are exact."""
        if weights is None or self._exponent is None:
            return np.ones((1, n_rows), dtype=np.int64)
        limbs = np.empty((_N_LIMBS, n_rows), dtype=np.int64)
        rest = np.ldexp(weights, _LIMB_BITS - self._exponent)
        for limb in limbs:
            limb[:] = rest  # truncates
            rest = np.ldexp(rest - limb, _LIMB_BITS)
        # A weight below the grid still counts.
        limbs[-1][(weights > 0) & ~limbs.any(axis=0)] = 1
        return limbs

    def _from_limbs(self, limbs: Integers) -> Floats:
        if self._exponent is None:
            counts: Floats = limbs[0].astype(np.float64)
            return counts
        limbs = limbs.copy()
        for lower in range(_N_LIMBS - 1, 0, -1):
            limbs[lower - 1] += limbs[lower] >> _LIMB_BITS
            limbs[lower] &= (1 << _LIMB_BITS) - 1
        total = np.zeros(limbs.shape[1])
        for limb in limbs[::-1]:
            total = limb + np.ldexp(total, -_LIMB_BITS)
        weights: Floats = np.ldexp(total, self._exponent - _LIMB_BITS)
        return weights


def distinct_places(
    codes: NDArray[np.integer], n_levels: Sequence[int]
) -> tuple[Integers, Integers]:
    """Return `index` and `inverse` of ``np.unique(codes, axis=1)``, ten times faster.

    codes (n_columns, n_rows) are from 0 to n_levels - 1, (n_columns,). Of equal rows, any is the
    one indexed.
    """
    words = _folded(codes, n_levels, _columns_of_words(list(n_levels)))
    order, places = np.lexsort(words[::-1]), np.empty(codes.shape[1], np.int64)
    is_first = _first_of_equal(words[:, order])
    places[order] = np.cumsum(is_first) - 1
    return order[is_first], places


def _folded(
    codes: NDArray[np.integer], n_levels: Sequence[int] | Integers, words: list[list[int]]
) -> NDArray[np.uint64]:
    """Return the words of rows, (n_words, n_rows), given the columns of each word."""
    folded = np.zeros((len(words), codes.shape[1]), dtype=np.uint64)
    for word, columns in zip(folded, words, strict=True):
        for column in columns:
            word *= np.uint64(n_levels[column])
            word += codes[column].astype(np.uint64)
    return folded


def _first_of_equal(words: NDArray[np.uint64]) -> Flags:
    """Return which of sorted rows are unlike the row before, (n_rows,)."""
    is_first = np.ones(words.shape[1], dtype=np.bool_)
    is_first[1:] = (words[:, 1:] != words[:, :-1]).any(axis=0)
    return is_first


def _columns_of_words(n_levels: list[int]) -> list[list[int]]:
    """Group consecutive columns so that each group's number of cells fits 64 bits."""
    groups: list[list[int]] = []
    n_cells = 2**64
    for column, n in enumerate(n_levels):
        n_cells *= n
        if n_cells > 2**64 or not groups:
            groups.append([])
            n_cells = n
        groups[-1].append(column)
    return groups


def _sum_equal_rows(
    words: NDArray[np.uint64], limbs: Integers
) -> tuple[NDArray[np.uint64], Integers]:
    """Return the distinct columns of `words`, in any order, and the sums of their `limbs`."""
    if words.shape[1] <= _FEW or words.nbytes > _MOST_BYTES:
        return _sum_by_sorting(words, limbs)
    # For many rows, hashing and threads take less time.
    keys = [f"word{place}" for place in range(len(words))]
    terms = [f"limb{place}" for place in range(len(limbs))]
    table = pyarrow.table([*words, *limbs], names=[*keys, *terms])
    sums = table.group_by(keys).aggregate([(term, "sum") for term in terms])
    return (
        np.array([sums.column(key).to_numpy() for key in keys]),
        np.array([sums.column(f"{term}_sum").to_numpy() for term in terms]),
    )


def _sum_by_sorting(
    words: NDArray[np.uint64], limbs: Integers
) -> tuple[NDArray[np.uint64], Integers]:
    if words.shape[1] == 0:
        return words, limbs
    order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
    words, limbs = words[:, order], limbs[:, order]
    starts = np.flatnonzero(_first_of_equal(words))
    return words[:, starts], np.add.reduceat(limbs, starts, axis=1)
