"""Boxes with two or more distinct rows, if each level of a split has its own branch.

A box fixes the levels of a *set* of columns, one bit each, and leaves the others whole. The loop
over sets is in descending order, so the children of a box come before it. Column by column from the
last, rows are distributed among the boxes of the set, and rows alone in their box are dropped. A
box is identified by its set and its first row. A loop over the rows of the parent meets the first
row of each child, so no search is necessary.

The values of boxes without rows, or with one, are in tables, see `tabulate`.
"""

from typing import NamedTuple

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.exact.kernels.doubles import plus, times
from bayescascade.methods.density.trees.exact.kernels.layout import Array, Scaled, TermArrays
from bayescascade.methods.density.trees.exact.kernels.terms import (
    ZERO,
    added,
    find_ways,
    from_log,
    log_rise,
    normalized,
    write_factors,
)


class SharedArrays(NamedTuple):
    """p columns of several levels, N distinct rows, P patterns of rows; see `tabulate`."""

    codes: Array  # (p, N) uint16
    weights: Array  # (N,) float64
    n_levels: Array  # (p,) int64
    splits: Array  # (p,) bool: whether a column may be split
    starts: Array  # (p,) int64: where the log widths of a column's levels and of the whole start
    log_width: Array  # (M, 2) float64: sums, see `terms`
    constant: Array  # (2,) float64: log width of all columns with one level, a sum
    pattern: Array  # (N,) int64: each row's pattern
    rows: Array  # (P,) int64: a row of each pattern; -1 for the first, which has no rows
    begin: Array  # (P + 1,) int64: where the values of a pattern start
    steps: Array  # (P, p) int64: offset by a column that is left whole
    set_start: Array  # (2**p + 1,) int64: where a set's boxes start
    first: Array  # (n_boxes,) int32: the first row of each box


class SharedWorkspace(NamedTuple):
    """Scratch of one thread, Q levels at most.

    After level k, columns k, k + 1, ... are decided. `factor`, `factor_exponent` and `per_way`: see
    `write_factors`; 1 in the leaf model with a Poisson. `place` is undefined if that box is not in
    the set.
    """

    rows: Array  # (p + 1, N) int32: rows after each level, box by box
    bounds: Array  # (p + 1, N // 2 + 2) int64: where the rows of each box start
    n_boxes: Array  # (p + 1,) int64: number of boxes
    levels: Array  # (p + 1,) int64: the level that has the rows of each level
    offsets: Array  # (P,) int64: position of each pattern's value for the set
    place: Array  # (p, N) int32: for the set: box whose first row this is if a column is fixed, too
    power: Array  # (p, Q + 1) float64: for the set: products of empty boxes
    power_exponent: Array  # (p, Q + 1) int64
    width: Array  # (2,) float64: for the set
    tally: Array  # (Q,) int64: for a column's levels
    weight: Array  # (Q,) float64
    seen: Array  # (Q,) int64
    factor: Array  # (Q + 1,)
    factor_exponent: Array  # (Q + 1,)
    per_way: Array  # (1,)


@kernel
def count_sets(
    shared: SharedArrays, work: SharedWorkspace, top: int, n_low: int, counts: Array, totals: Array
) -> None:
    """Count the boxes of all sets with the same last columns.

    top: these columns' bits; n_low: number of columns before them. Written: counts (2**p,) int32,
    by set; added to totals (2,) int64: boxes, and their rows, once for each column left whole.
    """
    for low in range((1 << n_low) - 1, -1, -1):
        chosen, level = _go_to(shared, work, top, n_low, low)
        n_boxes = work.n_boxes[level]
        counts[chosen] = n_boxes
        totals[0] += n_boxes
        for j in range(shared.codes.shape[0]):
            totals[1] += work.bounds[level, n_boxes] * (1 - (chosen >> j & 1))


@kernel
def evaluate_sets(
    shared: SharedArrays,
    terms: TermArrays,
    outside: Scaled,
    values: Scaled,
    work: SharedWorkspace,
    top: int,
    n_low: int,
    maximize: bool,
) -> None:
    """Evaluate the boxes of all sets with the same last columns; see `count_sets`."""
    for low in range((1 << n_low) - 1, -1, -1):
        chosen, level = _go_to(shared, work, top, n_low, low)
        if work.n_boxes[level] == 0:
            continue
        for pattern in range(shared.rows.shape[0]):
            _find(shared, work, chosen, pattern)
        _enter(shared, terms, outside, work, chosen, True)
        for box in range(work.n_boxes[level]):
            begin, end = work.bounds[level, box], work.bounds[level, box + 1]
            own = shared.set_start[chosen] + box
            shared.first[own] = work.rows[level, begin]
            values.mantissa[own], values.exponent[own] = _worth(
                shared, terms, outside, values, work, chosen, level, begin, end, maximize
            )


@kernel
def tabulate(
    shared: SharedArrays,
    terms: TermArrays,
    outside: Scaled,
    values: Scaled,
    work: SharedWorkspace,
    maximize: bool,
) -> None:
    """Write the values of boxes without rows, and with one distinct row, to `outside`.

    Rows with equal weight, numbers of levels and widths have one pattern. For equal columns of a
    pattern only the number left whole matters. A pattern's values are in mixed radix of these
    numbers.
    """
    p = shared.codes.shape[0]
    for pattern in range(shared.rows.shape[0]):
        n_rows = 0
        if shared.rows[pattern] >= 0:
            work.rows[0, 0], n_rows = shared.rows[pattern], 1
        for at in range(shared.begin[pattern + 1] - shared.begin[pattern]):
            chosen = 0
            for k in range(p):
                n_before, n_alike = 0, 0
                for j in range(p):
                    if shared.steps[pattern, j] == shared.steps[pattern, k]:
                        n_alike += 1
                        n_before += j < k
                if n_before >= at // shared.steps[pattern, k] % (n_alike + 1):
                    chosen |= 1 << k
            _find(shared, work, chosen, 0)
            _find(shared, work, chosen, pattern)
            _enter(shared, terms, outside, work, chosen, False)
            own = shared.begin[pattern] + at
            outside.mantissa[own], outside.exponent[own] = _worth(
                shared, terms, outside, values, work, chosen, 0, 0, n_rows, maximize
            )


@kernel
def weigh_splits(
    shared: SharedArrays,
    terms: TermArrays,
    outside: Scaled,
    values: Scaled,
    work: SharedWorkspace,
    codes: Array,
    worth: Scaled,
) -> None:
    """Write a box's value (p + 1,) as a leaf, then by splits; codes (p,): fixed levels, else -1."""
    p, n_all = shared.codes.shape
    chosen, n = 0, 0
    for j in range(p):
        if codes[j] >= 0:
            chosen |= 1 << j
    for row in range(n_all):
        j = 0
        while j < p and (codes[j] < 0 or codes[j] == shared.codes[j, row]):
            j += 1
        if j == p:
            work.rows[0, n] = row
            n += 1
            _find(shared, work, chosen, shared.pattern[row])
    _find(shared, work, chosen, 0)
    _enter(shared, terms, outside, work, chosen, n > 1)
    worth.mantissa[0], worth.exponent[0] = _leaf(shared, terms, work, chosen, 0, 0, n)
    for j in range(p):
        worth.mantissa[j + 1], worth.exponent[j + 1] = 0.0, ZERO
        if not chosen >> j & 1 and shared.splits[j]:
            worth.mantissa[j + 1], worth.exponent[j + 1] = _split(
                shared, outside, values, work, chosen, 0, 0, n, j
            )


# -- rows of a set's boxes -------------------------------------------------------------------------


@inner_kernel
def _go_to(shared, work, top, n_low, low):
    """Go from set low + 1 to set low, or to the first; return the whole set and its rows' level."""
    p, n_rows = shared.codes.shape
    if low == (1 << n_low) - 1:
        changed = p
        for row in range(n_rows):
            work.rows[p, row] = row
        work.n_boxes[p] = 1 if n_rows > 1 else 0
        work.bounds[p, 0], work.bounds[p, 1] = 0, n_rows
        work.levels[p] = p
    else:
        changed = 1
        while not (low + 1) >> (changed - 1) & 1:
            changed += 1
    chosen = top << n_low | low
    for k in range(changed - 1, -1, -1):
        work.levels[k] = work.levels[k + 1]
        if chosen >> k & 1:
            _share_out(shared, work, work.levels[k + 1], k)
            work.levels[k] = k
    return chosen, work.levels[0]


@inner_kernel
def _share_out(shared, work, above, k):
    """Distribute the rows of boxes by the levels of column k; boxes of one row are dropped."""
    rows, bounds, tally, codes = work.rows, work.bounds, work.tally, shared.codes
    n, n_boxes = 0, 0
    bounds[k, 0] = 0
    for box in range(work.n_boxes[above]):
        n_seen = 0
        for i in range(bounds[above, box], bounds[above, box + 1]):
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
        for i in range(bounds[above, box], bounds[above, box + 1]):
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
def _find(shared, work, chosen, pattern):
    """Write the position of a pattern's value in the boxes of a set."""
    at = shared.begin[pattern]
    for j in range(shared.codes.shape[0]):
        if not chosen >> j & 1:
            at += shared.steps[pattern, j]
    work.offsets[pattern] = at


@inner_kernel
def _enter(shared, terms, outside, work, chosen, has_boxes):
    """Look up the common values of the boxes of a set, and the places of their children."""
    work.width[0], work.width[1] = shared.constant[0], shared.constant[1]
    for j in range(shared.codes.shape[0]):
        if chosen >> j & 1:
            continue
        if not terms.independent:
            whole = shared.starts[j] + shared.n_levels[j]
            work.width[0], work.width[1] = plus(
                work.width[0], work.width[1], shared.log_width[whole, 0], shared.log_width[whole, 1]
            )
        at = work.offsets[0] - shared.steps[0, j]
        work.power[j, 0], work.power_exponent[j, 0] = 1.0, 0
        for i in range(shared.n_levels[j]):
            work.power[j, i + 1], work.power_exponent[j, i + 1] = normalized(
                work.power[j, i] * outside.mantissa[at],
                work.power_exponent[j, i] + outside.exponent[at],
            )
        if has_boxes:
            child = chosen | 1 << j
            for box in range(shared.set_start[child], shared.set_start[child + 1]):
                work.place[j, shared.first[box]] = box


@inner_kernel
def _worth(shared, terms, outside, values, work, chosen, level, begin, end, maximize):
    """Return the sum over all trees below a box, or the best."""
    mantissa, exponent = _leaf(shared, terms, work, chosen, level, begin, end)
    for j in range(shared.codes.shape[0]):
        if not chosen >> j & 1 and shared.splits[j]:
            more, power = _split(shared, outside, values, work, chosen, level, begin, end, j)
            mantissa, exponent = added(mantissa, exponent, more, power, maximize)
    return normalized(mantissa, exponent)


@inner_kernel
def _leaf(shared, terms, work, chosen, level, begin, end):
    """Return a box's value as a leaf; write the factors of its splits."""
    count = 0.0
    for i in range(begin, end):
        count += shared.weights[work.rows[level, i]]
    value, low = log_rise(terms.log_gamma, terms.alpha, 1, count)
    value, low = plus(value, low, terms.per_leaf, 0.0)
    if terms.is_generative:
        ways = 0.0
        for j in range(shared.codes.shape[0]):
            ways += 1.0 - (chosen >> j & 1)
        value, low = find_ways(terms, work, ways, value, low)
    if terms.has_factors:
        write_factors(terms, work, count, work.factor.shape[0] - 1)
    if count > 0.0:
        width, width_low = work.width[0], work.width[1]
        for j in range(shared.codes.shape[0]):
            if chosen >> j & 1:
                at = shared.starts[j] + shared.codes[j, work.rows[level, begin]]
                if shared.log_width[at, 0] != 0.0:
                    width, width_low = plus(
                        width, width_low, shared.log_width[at, 0], shared.log_width[at, 1]
                    )
            elif terms.independent:
                part, part_low = _inside(shared, terms, work, level, begin, end, j, count)
                value, low = plus(value, low, part, part_low)
        part, part_low = times(-count, 0.0, width, width_low)
        value, low = plus(value, low, part, part_low)
    return from_log(value, low)


@inner_kernel
def _inside(shared, terms, work, level, begin, end, j, count):
    """Log factor of the levels of one column inside an independent leaf."""
    table, alpha, n_seen = terms.leaf_log_gamma, terms.leaf_alpha, 0
    for i in range(begin, end):
        row = work.rows[level, i]
        code = shared.codes[j, row]
        if work.weight[code] == 0.0:
            work.seen[n_seen] = code
            n_seen += 1
        work.weight[code] += shared.weights[row]
    value, low = log_rise(table, alpha, shared.n_levels[j], count)
    value, low = -value, -low
    for i in range(n_seen):
        code = work.seen[i]
        inside, at = work.weight[code], shared.starts[j] + code
        part, part_low = log_rise(table, alpha, 1, inside)
        value, low = plus(value, low, part, part_low)
        part, part_low = times(-inside, 0.0, shared.log_width[at, 0], shared.log_width[at, 1])
        value, low = plus(value, low, part, part_low)
        work.weight[code] = 0.0
    return value, low


@inner_kernel
def _split(shared, outside, values, work, chosen, level, begin, end, j):
    """Return the value of a box's split by column j; its factor has been written."""
    low, high = shared.set_start[0], shared.set_start[0]
    child = chosen | 1 << j
    if end - begin > 1:
        low, high = shared.set_start[child], shared.set_start[child + 1]
    mantissa, exponent, n_seen = 1.0, 0, 0
    is_pair = end - begin == 2  # the most common case
    for i in range(begin, end):
        row = work.rows[level, i]
        code = shared.codes[j, row]
        if is_pair:
            if n_seen == 1 and code == shared.codes[j, work.rows[level, begin]]:
                break
        elif work.tally[code] > 0:
            continue
        else:
            work.tally[code], work.seen[n_seen] = 1, code
        n_seen += 1
        place = work.place[j, row]
        if low <= place < high:
            mantissa *= values.mantissa[place]
            exponent += values.exponent[place]
        else:
            pattern = shared.pattern[row]
            at = work.offsets[pattern] - shared.steps[pattern, j]
            mantissa *= outside.mantissa[at]
            exponent += outside.exponent[at]
        mantissa, exponent = normalized(mantissa, exponent)
    if not is_pair:
        for i in range(n_seen):
            work.tally[work.seen[i]] = 0
    rest, b = shared.n_levels[j] - n_seen, shared.n_levels[j]
    mantissa, exponent = normalized(
        mantissa * work.power[j, rest], exponent + work.power_exponent[j, rest]
    )
    return mantissa * work.factor[b], exponent + work.factor_exponent[b]
