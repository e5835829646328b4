"""Sets of rows as bits: intersection, count by class, difference; extension of antecedents.

For branch and bound the rows are points that no list can separate, see
`methods.lists.exact.points`. The result is what each candidate would capture of the points that a
prefix leaves. Each point is in a group, and all values and bounds depend on sums that are linear in
the weights of the groups.
"""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.lists.kernels.layout import COLUMN, Array, CandidateArrays, RowArrays

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)

NOTHING, SOME, ALL = range(3)
"""How much a candidate captures of the remaining points."""

_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xC2B2AE3D27D4EB4F)
_THIRD = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)


@inner_kernel
def population(word):
    """Count the set bits; LLVM compiles this form to one instruction."""
    word = word - ((word >> np.uint64(1)) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _BYTES
    return np.int64((word * _SUM) >> np.uint64(56))


@inner_kernel
def capture(candidates, rows, rule, before, captured, after):
    """Divide the rows `before`, (W,) uint64, into those a candidate captures and others."""
    n_words = before.shape[0]
    bits, members = rows.bits, candidates.members
    size, first = candidates.sizes[rule], members[rule, 0]
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
                skipped = population((word & (~word + np.uint64(1))) - np.uint64(1))
                word = (word >> np.uint64(skipped)) >> np.uint64(1)  # shifts by 64 are undefined
                row += skipped + 1
                total_weight += rows.row_weights[row - 1]
        counts[rows.run_class[run]] += total_weight


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
    """Write the antecedents that extend `parents` by an item of a later column; return the number.

    items (I, 3) int32; parents (n, k) int32: items, ascending; least_weight: minimum weight of the
    rows of an antecedent, without counting if it is 0; captured (2, W) uint64 and counts (C,)
    float64: scratch; found (>= n I, k + 1) int32 is written; largest (1,) float64: raised to the
    largest weight found.
    """
    n_items, n_words, n_members = items.shape[0], captured.shape[1], parents.shape[1]
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


@kernel
def descend(
    candidates: CandidateArrays,
    points: RowArrays,
    rules: Array,
    remaining: Array,
    spare: Array,
    weights: Array,
    key: Array,
) -> None:
    """Write the points (W,) that no rule captures, and the weight of each of their groups, (G,)."""
    for w in range(remaining.shape[0]):
        remaining[w] = points.everyone[w]
    for position in range(rules.shape[0]):
        capture(candidates, points, rules[position], remaining, spare, remaining)
    count(points, remaining, weights)
    _hash(remaining, key)


@kernel
def divide(
    candidates: CandidateArrays,
    points: RowArrays,
    features: Array,
    remaining: Array,
    spare: Array,
    weights: Array,
    captured: Array,
    left: Array,
    fates: Array,
    first: int,
    last: int,
) -> None:
    """Write what candidates first .. last - 1 capture of the remaining points, and what they leave.

    features (G, F) float64: contribution of a unit of weight of each group to the sums; remaining
    (W,) uint64; spare (2, W) uint64 and weights (G,) float64: scratch; captured, left (n, F)
    float64: sums, zero where nothing is captured or left; fates (n,) int8.
    """
    for rule in range(first, last):
        capture(candidates, points, rule, remaining, spare[0], spare[1])
        captured[rule], left[rule] = 0.0, 0.0
        if not _is_any(spare[0]):
            fates[rule] = NOTHING
            continue
        _add_up(points, features, spare[0], weights, captured[rule])
        fates[rule] = ALL
        if _is_any(spare[1]):
            fates[rule] = SOME
            _add_up(points, features, spare[1], weights, left[rule])


@inner_kernel
def _is_any(words):
    w = 0
    while w < words.shape[0] and words[w] == 0:
        w += 1
    return w < words.shape[0]


@inner_kernel
def _add_up(points, features, members, weights, sums):
    count(points, members, weights)
    for group in range(features.shape[0]):
        if weights[group] > 0.0:
            for k in range(features.shape[1]):
                sums[k] += weights[group] * features[group, k]


@inner_kernel
def _hash(words, key):
    """Write a hash of a set, 128 bits: two chains of multiplications and shifts."""
    first, second = _FIRST, _SECOND
    for w in range(words.shape[0]):
        first = (first ^ words[w]) * _THIRD
        first ^= first >> _HALF
        second = (second + words[w]) * _FIRST
        second ^= second >> _HALF
    key[0], key[1] = first, second
