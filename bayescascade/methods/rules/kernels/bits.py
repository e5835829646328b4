"""Sets of rows as bits: intersect, count by class, subtract."""

import numpy as np

from bayescascade.base.jit import inner_kernel

__all__ = ["capture", "count", "population"]

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)


@inner_kernel
def population(word):
    """Count the bits set; LLVM knows this form and makes one instruction of it."""
    word = word - ((word >> np.uint64(1)) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _BYTES
    return np.int64((word * _SUM) >> np.uint64(56))


@inner_kernel
def capture(candidates, rows, rule, before, captured, after):
    """Divide the rows `before`, (W,) uint64, into those a candidate captures and the others."""
    n_words = before.shape[0]
    bits, members = rows.bits, candidates.members
    size = candidates.sizes[rule]
    first = members[rule, 0]
    if size == 1:
        for w in range(n_words):
            captured[w] = before[w] & bits[first, w]
            after[w] = before[w] ^ captured[w]
        return
    second = members[rule, 1]
    if size == 2:
        for w in range(n_words):
            captured[w] = before[w] & bits[first, w] & bits[second, w]
            after[w] = before[w] ^ captured[w]
        return
    for w in range(n_words):
        captured[w] = before[w] & bits[first, w] & bits[second, w]
    for k in range(2, size):
        item = members[rule, k]
        for w in range(n_words):
            captured[w] &= bits[item, w]
    for w in range(n_words):
        after[w] = before[w] ^ captured[w]


@inner_kernel
def count(rows, captured, counts):
    """Write the weight of the captured rows of each class into counts, (C,) float64."""
    counts[:] = 0.0
    for run in range(rows.run_start.shape[0]):
        start, end = rows.run_start[run], rows.run_end[run]
        weight = rows.run_weight[run]
        if not np.isnan(weight):
            total = 0
            for w in range(start, end):
                total += population(captured[w])
            counts[rows.run_class[run]] += weight * total
            continue
        total_weight = 0.0
        for w in range(start, end):
            word = captured[w]
            row = 64 * w
            while word != 0:
                skipped = _lowest_bit(word)
                word = (word >> np.uint64(skipped)) >> np.uint64(1)  # a shift by 64 is undefined
                row += skipped + 1
                total_weight += rows.row_weights[row - 1]
        counts[rows.run_class[run]] += total_weight


@inner_kernel
def _lowest_bit(word):
    """Position of the lowest bit set of a word that is not 0."""
    return population((word & (~word + np.uint64(1))) - np.uint64(1))
