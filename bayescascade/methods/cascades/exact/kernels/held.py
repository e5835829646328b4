"""Boxes that hold two or more distinct rows, where a split sends each level its own way.

A box fixes the levels of a *set* of columns, a bit each, and leaves the others whole. Sets are gone
through in descending order, so that the boxes that a split leads to come before: column by column
from the last, all rows are shared out among the boxes of the set, and rows that are alone in theirs
are dropped. A box is known by its set and its first row, and a child's first row is met when its
parent's rows are gone through: nothing need be searched.
"""

from typing import NamedTuple

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cascades.exact.kernels.layout import Array, Scaled, TermArrays
from bayescascade.methods.cascades.exact.kernels.terms import (
    ZERO,
    added,
    from_log,
    log_rise,
    normalized,
    plus,
    times,
    write_factors,
)

__all__ = [
    "HeldArrays",
    "HeldWork",
    "count_sets",
    "evaluate_sets",
    "tabulate",
    "tabulate_factors",
    "weigh_splits",
]


class HeldArrays(NamedTuple):
    """p columns of several levels, N distinct rows, P *patterns* of rows, see `tabulate`.

    codes (p, N) uint16; weights (N,) float64; n_levels (p,) int64; splits (p,) bool: whether a
    column may be split; starts (p,) int64: where its log widths start, of its levels and the whole;
    is_wide (p,) bool: whether a level's is not 0; log_width (M, 2) and constant (2,), of all
    columns of one level together, float64: sums, see `terms`; pattern (N,) int64: each row's;
    rows (P,) int64: a row of each, -1 of the first, which is that of no row; begin (P + 1,) int64:
    where its worths start; steps (P, p) int64: how far each column moves them on if it is left
    whole; set_start (2**p + 1,) int64: where a set's boxes start; first (n_boxes,) int32: the first
    row of each.
    """

    codes: Array
    weights: Array
    n_levels: Array
    splits: Array
    starts: Array
    is_wide: Array
    log_width: Array
    constant: Array
    pattern: Array
    rows: Array
    begin: Array
    steps: Array
    set_start: Array
    first: Array


class HeldWork(NamedTuple):
    """Scratch of one thread.

    Of a level k, behind which columns k, k + 1, ... are decided on: rows (p + 1, N) int32, box
    after box; bounds (p + 1, N // 2 + 2) int64 and n_boxes (p + 1,) int64 of these; offsets
    (p + 1, P) int64: where worths of patterns are; levels (p + 1, 2) int64: which level has its
    rows, and its offsets. Of a set: place (p, N) int32: the box of which a row is the first if
    column j is fixed, too, or -1; power (p, Q + 1) float64 and its exponents int64: products of
    empty boxes. Of levels of a column: tally (Q,) int64, weight (Q,) float64, and seen (Q,) int64.
    factor, factor_exponent (Q + 1,): see `write_factors`; width (2,) float64.
    """

    rows: Array
    bounds: Array
    n_boxes: Array
    offsets: Array
    levels: Array
    place: Array
    power: Array
    power_exponent: Array
    tally: Array
    weight: Array
    seen: Array
    factor: Array
    factor_exponent: Array
    width: Array


_ROWS, _OFFSETS = 0, 1  # columns of `HeldWork.levels`


@kernel
def count_sets(
    held: HeldArrays, work: HeldWork, top: int, n_low: int, counts: Array, totals: Array
) -> None:
    """Count the boxes of all sets with the same last columns.

    top: these columns' bits; n_low: how many columns there are before them; written: counts
    (2**p,) int32, by set; added to totals (2,) int64: boxes, and rows times columns gone through.
    """
    p = held.codes.shape[0]
    for low in range((1 << n_low) - 1, -1, -1):
        chosen = _go_to(held, work, top, n_low, low)
        level = work.levels[0, _ROWS]
        n_boxes = work.n_boxes[level]
        n_left = 0
        for j in range(p):
            n_left += 1 - (chosen >> j & 1)
        counts[chosen] = n_boxes
        totals[0] += n_boxes
        totals[1] += work.bounds[level, n_boxes] * n_left


@kernel
def evaluate_sets(
    held: HeldArrays,
    terms: TermArrays,
    factors: Scaled,
    outside: Scaled,
    values: Scaled,
    work: HeldWork,
    top: int,
    n_low: int,
    maximize: bool,
) -> None:
    """Evaluate the boxes of all sets with the same last columns; see `count_sets`."""
    for low in range((1 << n_low) - 1, -1, -1):
        chosen = _go_to(held, work, top, n_low, low)
        level = work.levels[0, _ROWS]
        if work.n_boxes[level] == 0:
            continue
        _enter(held, terms, outside, work, chosen, True)
        for box in range(work.n_boxes[level]):
            begin, end = work.bounds[level, box], work.bounds[level, box + 1]
            count, mantissa, exponent = _leaf(held, terms, work, level, begin, end, chosen)
            row = _factor_row(terms, factors, work, count)
            for j in range(held.codes.shape[0]):
                if chosen >> j & 1 or not held.splits[j]:
                    continue
                more, more_exponent = _split(
                    held, terms, factors, outside, values, work, level, begin, end, j, row
                )
                mantissa, exponent = added(mantissa, exponent, more, more_exponent, maximize)
            own = held.set_start[chosen] + box
            values.mantissa[own], values.exponent[own] = normalized(mantissa, exponent)
            held.first[own] = work.rows[level, begin]
        _leave(held, work, chosen)


@kernel
def weigh_splits(
    held: HeldArrays,
    terms: TermArrays,
    factors: Scaled,
    outside: Scaled,
    values: Scaled,
    work: HeldWork,
    codes: Array,
    worth: Scaled,
) -> None:
    """Write what a box, of whatever number of rows, is worth as a leaf and by splits.

    codes (p,) int64: the level of each column that is fixed, else -1; worth: (p + 1,), of a leaf,
    then of each column.
    """
    p, n_all = held.codes.shape
    chosen, n = 0, 0
    for j in range(p):
        if codes[j] >= 0:
            chosen |= 1 << j
    work.levels[0, _ROWS], work.levels[0, _OFFSETS] = 0, 0
    _offset(held, work, 0, chosen)
    for row in range(n_all):
        j = 0
        while j < p and (codes[j] < 0 or codes[j] == held.codes[j, row]):
            j += 1
        if j == p:
            work.rows[0, n] = row
            n += 1
            _offset(held, work, held.pattern[row], chosen)
    _enter(held, terms, outside, work, chosen, n > 1)
    count, worth.mantissa[0], worth.exponent[0] = _leaf(held, terms, work, 0, 0, n, chosen)
    row = _factor_row(terms, factors, work, count)
    for j in range(p):
        worth.mantissa[j + 1], worth.exponent[j + 1] = 0.0, ZERO
        if not chosen >> j & 1 and held.splits[j]:
            worth.mantissa[j + 1], worth.exponent[j + 1] = _split(
                held, terms, factors, outside, values, work, 0, 0, n, j, row
            )
    if n > 1:
        _leave(held, work, chosen)


@inner_kernel
def _offset(held, work, pattern, chosen):
    """Write where a pattern's worth is in the boxes of a set."""
    at = held.begin[pattern]
    for j in range(held.codes.shape[0]):
        if not chosen >> j & 1:
            at += held.steps[pattern, j]
    work.offsets[0, pattern] = at


# -- rows of a set's boxes -------------------------------------------------------------------------


@inner_kernel
def _go_to(held, work, top, n_low, low):
    """Go from set low + 1 to set low, or from the start to the first; return the whole set."""
    p, n_rows = held.codes.shape
    if low == (1 << n_low) - 1:
        changed = p
        for row in range(n_rows):
            work.rows[p, row] = row
        work.n_boxes[p] = 1 if n_rows > 1 else 0
        work.bounds[p, 0], work.bounds[p, 1] = 0, n_rows
        for pattern in range(held.steps.shape[0]):
            work.offsets[p, pattern] = held.begin[pattern]
        work.levels[p, _ROWS], work.levels[p, _OFFSETS] = p, p
    else:
        changed = 1
        while not (low + 1) >> (changed - 1) & 1:
            changed += 1
    chosen = top << n_low | low
    for k in range(changed - 1, -1, -1):
        above, offsets_above = work.levels[k + 1, _ROWS], work.levels[k + 1, _OFFSETS]
        if chosen >> k & 1:
            _share_out(held, work, above, k)
            work.levels[k, _ROWS], work.levels[k, _OFFSETS] = k, offsets_above
        else:
            for pattern in range(held.steps.shape[0]):
                here = work.offsets[offsets_above, pattern] + held.steps[pattern, k]
                work.offsets[k, pattern] = here
            work.levels[k, _ROWS], work.levels[k, _OFFSETS] = above, k
    return chosen


@inner_kernel
def _share_out(held, work, above, k):
    """Share out the rows of boxes by the levels of column k; boxes of one row are dropped."""
    rows, bounds, tally, codes = work.rows, work.bounds, work.tally, held.codes
    n, n_boxes = 0, 0
    bounds[k, 0] = 0
    for box in range(work.n_boxes[above]):
        begin, end = bounds[above, box], bounds[above, box + 1]
        if end - begin == 2:
            one, other = rows[above, begin], rows[above, begin + 1]
            if codes[k, one] == codes[k, other]:
                rows[k, n], rows[k, n + 1] = one, other
                n, n_boxes = n + 2, n_boxes + 1
                bounds[k, n_boxes] = n
            continue
        n_seen = 0
        for i in range(begin, end):
            code = codes[k, rows[above, i]]
            if tally[code] == 0:
                work.seen[n_seen] = code
                n_seen += 1
            tally[code] += 1
        for i in range(n_seen):
            code = work.seen[i]
            size = tally[code]
            tally[code] = -1
            if size > 1:
                tally[code] = n
                n, n_boxes = n + size, n_boxes + 1
                bounds[k, n_boxes] = n
        for i in range(begin, end):
            row = rows[above, i]
            code = codes[k, row]
            if tally[code] >= 0:
                rows[k, tally[code]] = row
                tally[code] += 1
        for i in range(n_seen):
            tally[work.seen[i]] = 0
    work.n_boxes[k] = n_boxes


# -- what a box is worth ---------------------------------------------------------------------------


@inner_kernel
def _enter(held, terms, outside, work, chosen, has_boxes):
    """Look up what the splits of all boxes of a set have in common, and where children are."""
    empty = work.offsets[work.levels[0, _OFFSETS], 0]
    work.width[0], work.width[1] = held.constant[0], held.constant[1]
    for j in range(held.codes.shape[0]):
        if chosen >> j & 1:
            continue
        if not terms.independent:
            whole = held.starts[j] + held.n_levels[j]
            work.width[0], work.width[1] = plus(
                work.width[0], work.width[1], held.log_width[whole, 0], held.log_width[whole, 1]
            )
        at = empty - held.steps[0, j]
        work.power[j, 0], work.power_exponent[j, 0] = 1.0, 0
        for i in range(held.n_levels[j]):
            work.power[j, i + 1], work.power_exponent[j, i + 1] = normalized(
                work.power[j, i] * outside.mantissa[at],
                work.power_exponent[j, i] + outside.exponent[at],
            )
        if has_boxes:
            child = chosen | 1 << j
            for box in range(held.set_start[child], held.set_start[child + 1]):
                work.place[j, held.first[box]] = box


@inner_kernel
def _leave(held, work, chosen):
    for j in range(held.codes.shape[0]):
        if not chosen >> j & 1:
            child = chosen | 1 << j
            for box in range(held.set_start[child], held.set_start[child + 1]):
                work.place[j, held.first[box]] = -1


@inner_kernel
def _leaf(held, terms, work, level, begin, end, chosen):
    """Return the weight of a box's rows, and what it is worth as a leaf."""
    count = 0.0
    for i in range(begin, end):
        count += held.weights[work.rows[level, i]]
    value, low = log_rise(terms.log_gamma, terms.alpha, 1, count)
    value, low = plus(value, low, terms.per_leaf, 0.0)
    if count > 0.0:
        width, width_low = work.width[0], work.width[1]
        for j in range(held.codes.shape[0]):
            if not chosen >> j & 1:
                if terms.independent:
                    part, part_low = _inside(held, terms, work, level, begin, end, j, count)
                    value, low = plus(value, low, part, part_low)
            elif held.is_wide[j]:
                at = held.starts[j] + held.codes[j, work.rows[level, begin]]
                width, width_low = plus(
                    width, width_low, held.log_width[at, 0], held.log_width[at, 1]
                )
        part, part_low = times(-count, 0.0, width, width_low)
        value, low = plus(value, low, part, part_low)
    mantissa, exponent = from_log(value, low)
    return count, mantissa, exponent


@inner_kernel
def _inside(held, terms, work, level, begin, end, j, count):
    """Log of what the levels of one column are worth inside an independent leaf."""
    n_seen = 0
    for i in range(begin, end):
        row = work.rows[level, i]
        code = held.codes[j, row]
        if work.weight[code] == 0.0:
            work.seen[n_seen] = code
            n_seen += 1
        work.weight[code] += held.weights[row]
    value, low = log_rise(terms.leaf_log_gamma, terms.leaf_alpha, held.n_levels[j], count)
    value, low = -value, -low
    for i in range(n_seen):
        code = work.seen[i]
        part, part_low = _of_level(held, terms, j, code, work.weight[code])
        value, low = plus(value, low, part, part_low)
        work.weight[code] = 0.0
    return value, low


@inner_kernel
def _of_level(held, terms, j, code, count):
    value, low = log_rise(terms.leaf_log_gamma, terms.leaf_alpha, 1, count)
    at = held.starts[j] + code
    part, part_low = times(-count, 0.0, held.log_width[at, 0], held.log_width[at, 1])
    return plus(value, low, part, part_low)


@inner_kernel
def _split(held, terms, factors, outside, values, work, level, begin, end, j, factor_row):
    """Return what a split of a box by column j is worth."""
    offsets = work.levels[0, _OFFSETS]
    mantissa, exponent, n_seen = 1.0, 0, 0
    is_pair = end - begin == 2  # as most are
    for i in range(begin, end):
        row = work.rows[level, i]
        code = held.codes[j, row]
        if is_pair:
            if n_seen == 1 and code == held.codes[j, work.rows[level, begin]]:
                break
        elif work.tally[code] > 0:
            continue
        else:
            work.tally[code] = 1
            work.seen[n_seen] = code
        n_seen += 1
        place = work.place[j, row]
        if place >= 0:
            mantissa *= values.mantissa[place]
            exponent += values.exponent[place]
        else:
            pattern = held.pattern[row]
            at = work.offsets[offsets, pattern] - held.steps[pattern, j]
            mantissa *= outside.mantissa[at]
            exponent += outside.exponent[at]
        mantissa, exponent = normalized(mantissa, exponent)
    if not is_pair:
        for i in range(n_seen):
            work.tally[work.seen[i]] = 0
    rest = held.n_levels[j] - n_seen
    mantissa, exponent = normalized(
        mantissa * work.power[j, rest], exponent + work.power_exponent[j, rest]
    )
    if terms.is_branch:
        b = held.n_levels[j]
        if factor_row >= 0:
            mantissa *= factors.mantissa[factor_row + b]
            exponent += factors.exponent[factor_row + b]
        else:
            mantissa *= work.factor[b]
            exponent += work.factor_exponent[b]
    return mantissa, exponent


# -- tables ----------------------------------------------------------------------------------------


@inner_kernel
def _factor_row(terms, factors, work, count):
    """Return where the factors of splits are tabulated; -1 if they are written to the scratch."""
    size = work.factor.shape[0]
    index = np.int64(min(count, 1e15))
    if index == count and (index + 1) * size <= factors.mantissa.shape[0]:
        return index * size
    if terms.is_branch:
        write_factors(terms, work, count, size - 1)
    return -1


@kernel
def tabulate_factors(terms: TermArrays, work: HeldWork, factors: Scaled) -> None:
    """Write what splits of boxes of 0, 1, ... rows are worth but for their branches."""
    size = work.factor.shape[0]
    for n in range(factors.mantissa.shape[0] // size):
        write_factors(terms, work, float(n), size - 1)
        for b in range(size):
            factors.mantissa[n * size + b] = work.factor[b]
            factors.exponent[n * size + b] = work.factor_exponent[b]


@kernel
def tabulate(
    held: HeldArrays, terms: TermArrays, outside: Scaled, work: HeldWork, maximize: bool
) -> None:
    """Write what boxes without rows are worth, and those of one distinct row.

    These depend on the row's weight and, for every column, on numbers of levels and widths of the
    whole column and of the row's own level: rows with the same are one pattern, and the columns of
    a pattern with the same, a *class*, count only by how many of them are left whole. A pattern's
    worths stand in mixed radix of these numbers.
    """
    p = held.codes.shape[0]
    for pattern in range(held.rows.shape[0]):
        row = held.rows[pattern]
        count = 0.0 if row < 0 else held.weights[row]
        base = held.begin[pattern]
        if terms.is_branch:
            write_factors(terms, work, count, work.factor.shape[0] - 1)
        leaf, leaf_low = log_rise(terms.log_gamma, terms.alpha, 1, count)
        leaf, leaf_low = plus(leaf, leaf_low, terms.per_leaf, 0.0)
        part, part_low = times(-count, 0.0, held.constant[0], held.constant[1])
        leaf, leaf_low = plus(leaf, leaf_low, part, part_low)
        for at in range(held.begin[pattern + 1] - base):
            value, low = leaf, leaf_low
            empty = 0
            for k in range(p):
                n, n_alike = _in_class(held, pattern, at, k)
                empty += n * held.steps[0, k]
                if count > 0.0 and n_alike > 0:
                    part, part_low = _of_whole(held, terms, k, row, count)
                    part, part_low = times(float(n), 0.0, part, part_low)
                    value, low = plus(value, low, part, part_low)
                    fixed = held.starts[k] + held.codes[k, row]
                    part, part_low = times(
                        -count * (n_alike - n), 0.0,
                        held.log_width[fixed, 0], held.log_width[fixed, 1],
                    )  # fmt: skip
                    value, low = plus(value, low, part, part_low)
            mantissa, exponent = from_log(value, low)
            for k in range(p):
                n, n_alike = _in_class(held, pattern, at, k)
                if n == 0 or not held.splits[k]:
                    continue
                child = base + at - held.steps[pattern, k]
                more, more_exponent = outside.mantissa[child], outside.exponent[child]
                child = empty - held.steps[0, k]
                for _ in range(held.n_levels[k] - 1):
                    more, more_exponent = normalized(
                        more * outside.mantissa[child], more_exponent + outside.exponent[child]
                    )
                if terms.is_branch:
                    more *= work.factor[held.n_levels[k]]
                    more_exponent += work.factor_exponent[held.n_levels[k]]
                if not maximize:
                    more *= float(n)
                mantissa, exponent = added(mantissa, exponent, more, more_exponent, maximize)
            mantissa, exponent = normalized(mantissa, exponent)
            outside.mantissa[base + at], outside.exponent[base + at] = mantissa, exponent


@inner_kernel
def _in_class(held, pattern, at, k):
    """Return how many columns of column k's class are left whole, and of how many.

    Both 0 unless it is the first of the class.
    """
    step, n_alike = held.steps[pattern, k], 0
    for j in range(held.codes.shape[0]):
        if held.steps[pattern, j] == step:
            if j < k:
                return 0, 0
            n_alike += 1
    return at // step % (n_alike + 1), n_alike


@inner_kernel
def _of_whole(held, terms, k, row, count):
    """Log of what one row counts inside a leaf for a column that is left whole."""
    if terms.independent:
        value, low = log_rise(terms.leaf_log_gamma, terms.leaf_alpha, held.n_levels[k], count)
        part, part_low = _of_level(held, terms, k, held.codes[k, row], count)
        return plus(part, part_low, -value, -low)
    whole = held.starts[k] + held.n_levels[k]
    return times(-count, 0.0, held.log_width[whole, 0], held.log_width[whole, 1])
