"""Random signatures in groups: subsets of rows as bits, and sums of edges over them.

A rado with signature s, pi = 1/2 sum_i (s_i + y_i) x_i, is the sum of the edges y_i x_i over the
subset of rows where s_i = y_i (Nock, Patrini and Friedman, "Rademacher observations, private data,
and boosting", 2015, definition 1). If s is uniform, every row is in the subset with probability
1/2.

Sums are made eight rows at a time: first those of the 256 subsets of eight rows. Then a rado adds
one of them, by its byte, instead of up to eight rows.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.jit import kernel

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


Array = NDArray[Any]


@kernel
def add_subsets(bits: Array, edges: Array, sums: Array, out: Array) -> None:
    """Add to out (n, d) float64 the sums of edges (m, d) float64 over n subsets of rows.

    Row 8 b + i is in subset j if bit i of bits[b, j] is set, bits (ceil(m / 8), n) uint8; bits
    beyond m are 0. sums (256, d) float64 is workspace.
    """
    n_rows, n_columns = edges.shape
    for byte in range(bits.shape[0]):
        for k in range(n_columns):
            sums[0, k] = 0.0
        for i in range(min(8, n_rows - 8 * byte)):
            for s in range(1 << i):
                for k in range(n_columns):
                    sums[(1 << i) + s, k] = sums[s, k] + edges[8 * byte + i, k]
        for j in range(out.shape[0]):
            chosen = bits[byte, j]
            if chosen:
                for k in range(n_columns):
                    out[j, k] += sums[chosen, k]


@kernel
def count_members(bits: Array, counts: Array) -> None:
    """Add the number of rows of each subset to counts (n,) int64; bits (n, ceil(m / 8)) uint8."""
    for j in range(bits.shape[0]):
        for byte in range(bits.shape[1]):
            chosen = int(bits[j, byte])
            for i in range(8):
                counts[j] += (chosen >> i) & 1


@kernel
def count_uses(bits: Array, counts: Array) -> None:
    """Add the number of subsets with each row to counts (m,) int64; bits as in `add_subsets`."""
    for byte in range(bits.shape[0]):
        for i in range(min(8, counts.shape[0] - 8 * byte)):
            for j in range(bits.shape[1]):
                counts[8 * byte + i] += (int(bits[byte, j]) >> i) & 1


@kernel
def resize(bits: Array, n_rows: int, counts: Array, sizes: Array, words: Array) -> bool:
    """Add random rows to subsets, or remove some, until they have the given sizes.

    Every word (int64 >= 0) picks a row; bits is (n, ceil(m / 8)) uint8, counts and sizes are (n,)
    int64. Returns whether there were enough words.
    """
    used = 0
    for j in range(bits.shape[0]):
        while counts[j] != sizes[j]:
            if used == words.shape[0]:
                return False
            row = words[used] % n_rows
            used += 1
            mask = 1 << (row & 7)
            is_in = (int(bits[j, row >> 3]) & mask) != 0
            if is_in != (counts[j] < sizes[j]):
                bits[j, row >> 3] = int(bits[j, row >> 3]) ^ mask
                counts[j] += -1 if is_in else 1
    return True
