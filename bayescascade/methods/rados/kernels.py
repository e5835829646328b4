"""Sums of edges over many subsets of rows at once, eight rows at a time.

Sums of the 256 subsets of eight rows are made first. Then a rado adds one of them, by its byte,
instead of up to eight rows.
"""

from typing import Any

from numpy.typing import NDArray

from bayescascade.base.jit import kernel

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
