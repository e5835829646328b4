"""Sets of rows as bits: intersect, count by class, subtract; and antecedents extended on them."""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.rules.kernels.layout import COLUMN, Array, RowArrays

__all__ = ["capture", "count", "extend", "population"]

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


@kernel
def extend(
    items: Array,
    rows: RowArrays,
    parents: Array,
    least_weight: float,
    captured: Array,
    counts: Array,
    found: Array,
    largest: Array,
) -> int:
    """Write the antecedents that extend `parents` by an item of a later column.

    items (I, 3) int32; parents (n, k) int32: items, ascending; least_weight: weight of the rows
    that an antecedent captures at least, nothing is counted if it is 0; captured (2, W) uint64 and
    counts (C,) float64: scratch; found (>= n I, k + 1) int32 is written; largest (1,) float64: the
    largest weight met, raised.

    Returns the number found.
    """
    n_items = items.shape[0]
    n_words = captured.shape[1]
    n_members = parents.shape[1]
    n_found = 0
    for parent in range(parents.shape[0]):
        for w in range(n_words):
            captured[0, w] = rows.everyone[w]
        first = 0
        for k in range(n_members):
            item = parents[parent, k]
            for w in range(n_words):
                captured[0, w] &= rows.bits[item, w]
        if n_members > 0:
            first = parents[parent, n_members - 1] + 1
            column = items[first - 1, COLUMN]
            while first < n_items and items[first, COLUMN] == column:
                first += 1
        for item in range(first, n_items):
            if least_weight > 0.0:
                for w in range(n_words):
                    captured[1, w] = captured[0, w] & rows.bits[item, w]
                count(rows, captured[1], counts)
                weight = 0.0
                for label in range(counts.shape[0]):
                    weight += counts[label]
                largest[0] = max(largest[0], weight)
                if weight < least_weight:
                    continue
            for k in range(n_members):
                found[n_found, k] = parents[parent, k]
            found[n_found, n_members] = item
            n_found += 1
    return n_found
