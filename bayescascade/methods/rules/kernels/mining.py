"""Extending antecedents by one condition, on bits, in the order in which candidates stand."""

from bayescascade.base.jit import kernel
from bayescascade.methods.rules.kernels.bits import count
from bayescascade.methods.rules.kernels.layout import COLUMN, Array, RowArrays

__all__ = ["extend"]


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
