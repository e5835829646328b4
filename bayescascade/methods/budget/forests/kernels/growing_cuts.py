"""Impurities, and the best cut of a column at a node: exact, in time linear in the node's rows.

The formulas are those of `methods.budget.forests.impurities`, which also has the proofs.

A cut sends the codes up to some code left and the others right; the best cut has the least impure
worse side. Impurities are monotone, so the left side's impurity rises with the cut and the right
side's falls: the best cut is one of the two at their crossing. Bisection finds it without sorting:
the remaining codes are divided at the middle of their range, the classes of the lower part are
counted, and one of the parts, about half of the rows, is finished.

With ``alpha > 0`` many cuts have impurity zero. The impurity is then ``F + e F_0``, where ``F_0``
counts all pairs and e is infinitesimal: among equally good cuts by F, the one whose worse side has
the fewest pairs. The sum is as admissible as F, and no other choice by F is changed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes

MISSING = -1
"""The code of a missing value."""

PLACE_BITS = 32  # bits of `part` for a row's place in the node, below those for its code
PLACE = (1 << PLACE_BITS) - 1

THRESHOLD_PAIRS, POWERS, POLYNOMIAL = range(3)


class ImpurityArrays(NamedTuple):
    """An impurity as arrays."""

    kind: int  # one of the three
    alpha: float  # >= 0 for threshold-Pairs, otherwise 0
    order: int  # >= 2, for Powers
    coefficients: Array  # (n_terms,) float64 >= 0, for polynomials
    exponents: Array  # (n_terms, n_classes) int64 >= 0


@kernel
def impurities(arrays: ImpurityArrays, counts: Array, out: Array) -> None:
    """Write the impurity of each row of counts (n, n_classes) float64 >= 0 to out (n,) float64."""
    for i in range(counts.shape[0]):
        out[i] = impurity(arrays, counts[i])


@inner_kernel
def impurity(arrays, counts):
    """Impurity of a set with class weights counts (n_classes,) float64 >= 0."""
    if arrays.kind == THRESHOLD_PAIRS:
        return pairs(counts, arrays.alpha)
    if arrays.kind == POWERS:
        return _powers(counts, arrays.order)
    return _polynomial(counts, arrays.coefficients, arrays.exponents)


@inner_kernel
def pairs(counts, alpha):
    """``sum_{i < j} [[n_i - alpha]_+ [n_j - alpha]_+ - alpha^2]_+``."""
    total = 0.0
    if alpha == 0.0:
        before = 0.0
        for count in counts:
            total += before * count
            before += count
        return total
    for i in range(counts.shape[0]):
        first = counts[i] - alpha
        if first > 0.0:
            for j in range(i):
                second = counts[j] - alpha
                if second > 0.0:
                    total += max(first * second - alpha * alpha, 0.0)
    return total


@inner_kernel
def _powers(counts, order):
    """``(sum_i n_i)^order - sum_i n_i^order``."""
    total, separate = 0.0, 0.0
    for count in counts:
        total += count
        separate += _power(count, order)
    return max(_power(total, order) - separate, 0.0)  # rounding might make it negative


@inner_kernel
def _polynomial(counts, coefficients, exponents):
    """``sum_m coefficient_m prod_i n_i^exponent_mi``."""
    total = 0.0
    for term in range(coefficients.shape[0]):
        product = coefficients[term]
        for i in range(counts.shape[0]):
            product *= _power(counts[i], exponents[term, i])
        total += product
    return total


@inner_kernel
def _power(base, exponent):
    """``base^exponent`` for whole exponents >= 0; exact as long as whole floats are exact."""
    product = np.float64(1.0)
    for _ in range(exponent):
        product *= base
    return product


@inner_kernel
def best_cut(rng, data, measure, work, column, start, end, totals, has_stumps):
    """Find the best cut of a column for the rows start to end - 1, with class weights totals.

    Returns the impurity of the worse side and its pairs; the last code on the left and the first
    on the right (or MISSING if only missing values go right); whether missing values go left; and
    whether the column varies at all. The impurity is infinite if there is no cut.
    """
    n_rows, low, high = _gather(data, work, column, start, end)
    any_missing = n_rows < end - start
    found = np.inf, np.inf, np.int64(0), np.int64(0)
    if n_rows == 0 or (low == high and not any_missing):
        return *found, False, False
    n_stumps = _draw_stumps(rng, work, n_rows, end - start) if has_stumps else -1
    work.left[:] = 0.0
    found = _bisect(measure, work, n_rows, low, high + any_missing, totals, n_stumps)
    is_left = False
    if any_missing:
        _copy(work.missing, work.left)
        other = _bisect(measure, work, n_rows, low, high, totals, n_stumps)
        if other[0] < found[0] or (other[0] == found[0] and other[1] < found[1]):
            found, is_left = other, True
    return *found, is_left, True


@inner_kernel
def _gather(data, work, column, start, end):
    """Gather rows, count classes of missing rows; return the number of rows, and end codes."""
    codes = data.codes[column]
    work.missing[:] = 0.0
    n_rows = 0
    low, high = np.int64(data.starts[column + 1] - data.starts[column]), np.int64(MISSING)
    for i in range(end - start):
        code = np.int64(codes[work.rows[start + i]])
        if code == MISSING:
            work.missing[work.labels[i]] += work.weights[i]
            continue
        work.part[n_rows] = (code << PLACE_BITS) | i
        n_rows += 1
        low = min(low, code)
        high = max(high, code)
    return n_rows, low, high


@inner_kernel
def _bisect(measure, work, n_rows, low, high, totals, n_stumps):
    """Find the best cut in [low, high); with n_stumps >= 0, only among the cuts in work.stumps."""
    first, last = 0, n_rows  # the remaining rows: their codes are in [low, high]
    first_stump, last_stump = 0, n_stumps
    # both sides of the crossing: with the right side worse, and with the left side worse
    right_value, right_tie, right_low, right_high = np.inf, np.inf, np.int64(0), np.int64(0)
    left_value, left_tie, left_low, left_high = np.inf, np.inf, np.int64(0), np.int64(0)
    while low < high:
        if n_stumps < 0:
            cut = (low + high) // 2
        else:
            while first_stump < last_stump and work.stumps[first_stump] < low:
                first_stump += 1
            while first_stump < last_stump and work.stumps[last_stump - 1] >= high:
                last_stump -= 1
            if first_stump == last_stump:
                break
            cut = np.int64(work.stumps[(first_stump + last_stump) // 2])
        middle, below, above = _part(work, first, last, cut)
        _copy(work.left, work.trial)
        for i in range(first, middle):
            place = work.part[i] & PLACE
            work.trial[work.labels[place]] += work.weights[place]
        for label in range(totals.shape[0]):
            work.right[label] = totals[label] - work.trial[label]
        left, right = impurity(measure, work.trial), impurity(measure, work.right)
        tie, right_pairs = 0.0, 0.0
        if measure.alpha > 0.0:
            tie, right_pairs = pairs(work.trial, 0.0), pairs(work.right, 0.0)
        if left > right or (left == right and tie > right_pairs):
            left_value, left_tie, left_low = left, tie, below
            left_high = above if middle < last else np.int64(MISSING)
            high, last = below, middle
        else:
            right_value, right_tie, right_low = right, right_pairs, below
            right_high = above if middle < last else np.int64(MISSING)
            low = above if middle < last else high
            first = middle
            _copy(work.trial, work.left)
    if left_value < right_value or (left_value == right_value and left_tie < right_tie):
        return left_value, left_tie, left_low, left_high
    return right_value, right_tie, right_low, right_high


@inner_kernel
def _copy(source, target):
    """Copy class counts; an assignment to a slice would allocate."""
    for label in range(source.shape[0]):
        target[label] = source[label]


@inner_kernel
def _part(work, first, last, cut):
    """Move rows of codes up to the cut first; return their end, and the codes next to the cut."""
    part = work.part
    below, above = np.int64(MISSING), np.int64(np.iinfo(np.int32).max)
    middle = first
    for i in range(first, last):  # without branches, which are unpredictable
        row = part[i]
        code = row >> PLACE_BITS
        goes_left = code <= cut
        below = max(below, code if goes_left else np.int64(MISSING))
        above = min(above, above if goes_left else code)
        part[i], part[middle] = part[middle], row
        middle += goes_left
    return middle, below, above


@inner_kernel
def _draw_stumps(rng, work, n_rows, n_examples):
    """Draw cuts above the values of random rows, ascending; as many as in the thesis."""
    n_stumps = 80 if n_examples > 2000 else 40 if n_examples > 500 else 20
    for i in range(n_stumps):
        code = work.part[np.int64(rng.random() * n_rows)] >> PLACE_BITS
        j = i
        while j > 0 and work.stumps[j - 1] > code:
            work.stumps[j] = work.stumps[j - 1]
            j -= 1
        work.stumps[j] = code
    return n_stumps
