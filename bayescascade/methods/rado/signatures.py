"""Random signatures, never all at once: subsets of rows as bits, and the sums of edges over them.

A rado with signature s, pi = 1/2 sum_i (s_i + y_i) x_i, is the sum of the edges y_i x_i over the
subset of rows where s_i = y_i (Nock, Patrini and Friedman, "Rademacher observations, private data,
and boosting", 2015, definition 1). If s is uniform, every row is in the subset by a fair coin.
"""

import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.methods.rado.kernels.subsets import add_subsets, count_members, count_uses, resize

Bits: TypeAlias = NDArray[np.uint8]
Draw: TypeAlias = Callable[[int], bytes]
"""Returns this many random bytes."""

Edges: TypeAlias = Callable[[int, int], Floats]
"""Returns the edges of the rows from one up to before another, (n, n_columns)."""

_GROUP_BYTES = 1 << 25
_BLOCK_ROWS = 1 << 13
_MOST_WORDS = 1 << 20


def draw_by(rng: np.random.Generator | None) -> Draw:
    """Return a source of random bytes: a generator or, for None, the operating system.

    What is to be secret must come from the latter, which nobody can draw again.
    """
    return os.urandom if rng is None else rng.bytes


def groups(n_rows: int, n_subsets: int) -> Iterator[slice]:
    """Yield subsets, at a time as many as take at most 32 MB, or one."""
    each = max(1, _GROUP_BYTES // _n_bytes(n_rows))
    for first in range(0, n_subsets, each):
        yield slice(first, min(first + each, n_subsets))


def draw_subsets(draw: Draw, n_rows: int, n_subsets: int, sizes: Integers | None = None) -> Bits:
    """Return subsets of rows, uniform among all or among those of a size.

    A uniform subset to which random rows are added, or from which some are taken, until it has a
    size is uniform among those of that size, for no step prefers a row; and so is one that begins
    empty or full. The start is that from which it is least far.

    sizes (n_subsets,) int64 from 0 to n_rows; what is returned (ceil(n_rows / 8), n_subsets) uint8:
    bit i of byte b says whether row 8 b + i is in the subset; those beyond the rows are 0.
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
    """Return how many subsets each row is in, (n_rows,)."""
    counts = np.zeros(n_rows, np.int64)
    count_uses(bits, counts)
    return counts


def _n_bytes(n_rows: int) -> int:
    return -(-n_rows // 8)


def _words(draw: Draw, counts: Integers, sizes: Integers) -> Integers:
    """Return about as many random numbers from 0 to 2**63 - 1 as `resize` needs."""
    missing = int(np.abs(counts - sizes).sum())
    words = np.frombuffer(draw(8 * min(_MOST_WORDS, 2 * missing + 64)), np.uint64)
    return (words >> np.uint64(1)).astype(np.int64)
