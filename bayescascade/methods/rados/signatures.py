"""Random signatures in groups: subsets of rows as bits, and sums of edges over them.

A rado with signature s, pi = 1/2 sum_i (s_i + y_i) x_i, is the sum of the edges y_i x_i over the
subset of rows where s_i = y_i (Nock, Patrini and Friedman, "Rademacher observations, private data,
and boosting", 2015, definition 1). If s is uniform, every row is in the subset with probability
1/2.
"""

import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.methods.rados.kernels import (
    add_subsets,
    count_members,
    count_uses,
    resize,
)

Bits: TypeAlias = NDArray[np.uint8]
Draw: TypeAlias = Callable[[int], bytes]
"""It returns this many random bytes."""

Edges: TypeAlias = Callable[[int, int], Floats]
"""It returns the edges of rows from first to end - 1, (n, n_columns)."""

_GROUP_BYTES = 1 << 25
_BLOCK_ROWS = 1 << 13
_MOST_WORDS = 1 << 20


def draw_by(rng: np.random.Generator | None) -> Draw:
    """Return a source of random bytes: a generator or, for None, the operating system.

    Secret bytes must come from the operating system, because nobody can repeat these.
    """
    return os.urandom if rng is None else rng.bytes


def groups(n_rows: int, n_subsets: int) -> Iterator[slice]:
    """Yield groups of subsets that take at most 32 MB, or single ones."""
    each = max(1, _GROUP_BYTES // _n_bytes(n_rows))
    for first in range(0, n_subsets, each):
        yield slice(first, min(first + each, n_subsets))


def draw_subsets(draw: Draw, n_rows: int, n_subsets: int, sizes: Integers | None = None) -> Bits:
    """Return random subsets of rows, uniform among all or among those of given sizes.

    If random rows are added to a uniform subset, or removed from it, until it has a size, it is
    uniform among subsets of that size, because no step prefers a row. The same is true for an empty
    or a full start. The start is the nearest one.

    sizes (n_subsets,) int64 from 0 to n_rows; result (ceil(n_rows / 8), n_subsets) uint8: bit i of
    byte b says whether row 8 b + i is in the subset; bits beyond the rows are 0.
    """
    n_bytes = _n_bytes(n_rows)
    typical = n_rows / 2 if sizes is None else float(np.median(sizes))
    if sizes is not None and typical < n_rows / 4:
        bits = np.zeros((n_subsets, n_bytes), np.uint8)
    elif sizes is not None and typical > 3 * n_rows / 4:
        bits = np.full((n_subsets, n_bytes), 255, np.uint8)
    else:
        drawn = np.frombuffer(draw(n_bytes * n_subsets), np.uint8)
        bits = drawn.reshape(n_subsets, n_bytes).copy()
    bits[:, -1] &= (1 << (n_rows - 8 * (n_bytes - 1))) - 1
    if sizes is not None:
        counts = np.zeros(n_subsets, np.int64)
        count_members(bits, counts)
        while not resize(bits, n_rows, counts, sizes, _words(draw, counts, sizes)):
            pass
    return np.ascontiguousarray(bits.T)


def subset_sums(bits: Bits, edges: Edges, n_rows: int, n_columns: int) -> Floats:
    """Return the sum of the edges over each subset, (n_subsets, n_columns) float64.

    `bits` as `draw_subsets` returns them; `edges` is called for blocks of rows in turn.
    """
    out = np.zeros((bits.shape[1], n_columns))
    sums = np.empty((256, n_columns))
    for first in range(0, n_rows, _BLOCK_ROWS):
        end = min(first + _BLOCK_ROWS, n_rows)
        block = np.ascontiguousarray(edges(first, end), np.float64)
        add_subsets(bits[first // 8 : _n_bytes(end)], block, sums, out)
    return out


def uses(bits: Bits, n_rows: int) -> Integers:
    """Return the number of subsets with each row, (n_rows,)."""
    counts = np.zeros(n_rows, np.int64)
    count_uses(bits, counts)
    return counts


def _n_bytes(n_rows: int) -> int:
    return -(-n_rows // 8)


def _words(draw: Draw, counts: Integers, sizes: Integers) -> Integers:
    """Return random numbers from 0 to 2**63 - 1, about as many as `resize` needs."""
    missing = int(np.abs(counts - sizes).sum())
    words = np.frombuffer(draw(8 * min(_MOST_WORDS, 2 * missing + 64)), np.uint64)
    return (words >> np.uint64(1)).astype(np.int64)
