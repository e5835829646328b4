"""How much of a new row's probability comes to every box, and stays there: from the top down.

Of what comes to a box by trees in which it is split so, all goes on to every branch's box (times
the branch's share, under the branch model), whatever row it is: only boxes that hold the row count,
and of each split one does. The steps are those of `sums` and `boxes.evaluate_boxes`, backwards.
"""

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cascades.exact.kernels.boxes import (
    can_split,
    enter_box,
    find_children,
    find_line,
    first_line,
    is_grouped,
    next_line,
)
from bayescascade.methods.cascades.exact.kernels.layout import (
    UNION,
    Array,
    IndexArrays,
    LatticeArrays,
    Scaled,
    TermArrays,
    Work,
)
from bayescascade.methods.cascades.exact.kernels.sums import (
    all_sums,
    block_sums,
    level_products,
    row_of,
)
from bayescascade.methods.cascades.exact.kernels.terms import (
    normalized,
    share,
    unscaled,
    write_factors,
    write_leaf,
)

__all__ = ["last_line", "previous_line", "share_out", "sum_leaves"]


@kernel
def share_out(
    lattice: LatticeArrays,
    index: IndexArrays,
    terms: TermArrays,
    counts_index: IndexArrays,
    counts: Array,
    values: Scaled,
    work: Work,
    is_alike: Array,
    flows: Array,
    row_flows: Array,
    is_first: bool,
    n_lines: int,
) -> bool:
    """Share out what comes to the boxes of some lines, the largest first; whether lines are left.

    values: sums; is_alike (N,) bool: whether a column's levels in a block count alike where there
    are no rows; flows float64, of all entries: what came to the root is shared out, and what stays
    in a box as a leaf is left as the first of its entries; row_flows: zeros, as many as work.sums.
    """
    last = work.digits.shape[0] - 1
    start, stop = lattice.starts[last], lattice.starts[last + 1]
    if is_first:
        last_line(lattice, work)
    grouped = is_grouped(lattice, terms, last)
    for _ in range(n_lines):
        enter_box(lattice, index, work)
        find_children(lattice, index, work, work.base, work.stride, work.step)
        if terms.independent:
            find_children(
                lattice, counts_index, work, work.count_base, work.count_stride, work.count_step
            )
        else:
            find_line(counts_index, work, work.count_base, work.count_stride)
        alike = True
        for j in range(last):
            alike = alike and is_alike[lattice.starts[j] + work.digits[j]]
        lowest = 0 if work.stride[last] > 0 else stop - start - 1
        if grouped:
            for block in range(lowest, stop - start):
                limit = _limit(lattice, index, work, block)
                block_sums(
                    lattice, terms, values, work, last, block, work.base[last],
                    work.stride[last], limit, False, 0,
                )  # fmt: skip
                _clear_rows(terms, work, row_flows, block, 0, limit)
        for back in range(stop - start - lowest):
            block = stop - start - 1 - back
            work.digits[last] = block
            limit = _limit(lattice, index, work, block)
            own = work.base[last] + block * work.stride[last]
            count = counts[work.count_base[last] + block * work.count_stride[last]]
            if count == 0.0 and alike and is_alike[start + block]:
                _keep(terms, flows, own, limit)
            else:
                _share_box(
                    lattice, terms, counts, values, work, count, own, limit, flows, row_flows
                )
            if grouped:
                _share_block(
                    lattice, terms, values, work, last, block, work.base[last],
                    work.stride[last], limit, 0, flows, row_flows,
                )  # fmt: skip
        if not previous_line(lattice, index, work):
            return False
    return True


@inner_kernel
def _limit(lattice, index, work, block):
    """Return the entries of a box of the line."""
    last = work.digits.shape[0] - 1
    cost = work.cost[last]
    if block < lattice.starts[last + 1] - lattice.starts[last] - 1:
        cost += lattice.costs[last]
    return index.size[min(cost, index.size.shape[0] - 1)]


@inner_kernel
def last_line(lattice, work):
    """Go to the last line, of the whole table."""
    for j in range(work.digits.shape[0] - 1):
        work.digits[j] = lattice.starts[j + 1] - lattice.starts[j] - 1


@inner_kernel
def previous_line(lattice, index, work):
    """Go to the line before, False before the first."""
    last = work.digits.shape[0] - 1
    for back in range(last):
        j = last - 1 - back
        if work.digits[j] > 0 and index.step[j, work.cost[j]] > 0:
            work.digits[j] -= 1
            for i in range(j + 1, last):
                work.digits[i] = lattice.starts[i + 1] - lattice.starts[i] - 1
            return True
    return False


@inner_kernel
def _keep(terms, flows, own, limit):
    """Leave all that comes to a box in it, where the trees below spread it evenly."""
    total = 0.0
    for k in range(limit):  # a leaf more, of no rows, is as probable as the others
        total += flows[own + k] * (k + 1 if terms.shift == 1 else 1)
    flows[own] = total * terms.alpha


@inner_kernel
def _share_box(lattice, terms, counts, values, work, count, own, limit, flows, row_flows):
    """Share out what comes to the box of `work.digits` to its splits, and leave the leaf's part."""
    last = work.digits.shape[0] - 1
    block = work.digits[last]
    write_leaf(lattice, terms, counts, work, count)
    stays = flows[own] * (count + terms.alpha) * share(
        work.total[0], work.total_exponent[0], values.mantissa[own], values.exponent[own]
    )  # fmt: skip
    if terms.is_branch:
        write_factors(terms, work, count, work.factor.shape[0] - 1)
        for k in range(limit):
            flows[own + k] *= count + terms.alpha
    for j in range(last + 1):
        kept = work.digits[j]
        if not can_split(lattice, terms, j, kept, limit):
            continue
        base, stride = work.base[j] + block * work.step[j], work.stride[j]
        size = lattice.sizes[lattice.starts[j] + kept]
        bit = 1 << j if terms.shift == UNION else 0
        is_line = j == last and is_grouped(lattice, terms, j)
        if (size == 2 or terms.most == 2) and not is_line:
            _write_ratios(terms, values, work, count, own, limit, bit, flows)
            _share_pairs(
                lattice, terms, values, work, lattice.starts[j] + kept, base, stride, limit, flows
            )
            continue
        if lattice.by_levels:
            level_products(lattice, terms, values, work, j, base, stride, limit, False)
            at = row_of(terms, work, work.side[0], 0, size)
            _clear(row_flows, at, limit)
            _feed(terms, values, work, count, own, limit, bit, size, at, flows, row_flows)
            _share_levels(lattice, terms, values, work, j, base, stride, limit, flows, row_flows)
            continue
        if is_line:  # the line's own sums, of which larger blocks may have made use
            for b in range(2, min(terms.most, size) + 1):
                at = row_of(terms, work, 0, kept, b)
                _feed(terms, values, work, count, own, limit, bit, b, at, flows, row_flows)
            continue
        region = work.side[0]
        all_sums(lattice, terms, values, work, j, kept, base, stride, limit, False, region)
        inner = limit if terms.shift == UNION else limit - terms.shift
        low = lattice.pair_start[lattice.starts[j] + kept]
        high = lattice.pair_start[lattice.starts[j] + kept + 1]
        for pair in range(low, high):
            _clear_rows(terms, work, row_flows, lattice.rest[pair], region, inner)
        _clear_rows(terms, work, row_flows, kept, region, limit)
        for b in range(2, min(terms.most, size) + 1):
            at = row_of(terms, work, region, kept, b)
            _feed(terms, values, work, count, own, limit, bit, b, at, flows, row_flows)
        _share_block(
            lattice, terms, values, work, j, kept, base, stride, limit, region, flows, row_flows
        )
        for back in range(high - low):
            _share_block(
                lattice, terms, values, work, j, lattice.rest[high - 1 - back], base, stride,
                inner, region, flows, row_flows,
            )  # fmt: skip
    flows[own] = stays


@inner_kernel
def _clear_rows(terms, work, row_flows, block, region, limit):
    for b in range(2, terms.most + 1):
        at = row_of(terms, work, region, block, b)
        _clear(row_flows, at, limit)


@inner_kernel
def _clear(row_flows, at, n):
    for k in range(at, at + n):
        row_flows[k] = 0.0


@inner_kernel
def _part(terms, count, b):
    """Return what a box's flow is divided by for b branches, each to be given its own weight."""
    return 1.0 / (count + b * terms.alpha) if terms.is_branch else 1.0


@inner_kernel
def _write_ratios(terms, values, work, count, own, limit, bit, flows):
    """Write to the total what comes to a box for each of its entries, over what these are."""
    part = _part(terms, count, 2)
    for k in range(limit):
        work.total[k], work.total_exponent[k] = 0.0, 0
        mantissa = values.mantissa[own + (k | bit)]
        if mantissa > 0.0:
            ratio, exponent = normalized(
                work.factor[2] / mantissa,
                work.factor_exponent[2] - values.exponent[own + (k | bit)],
            )
            work.total[k] = ratio * flows[own + (k | bit)] * part
            work.total_exponent[k] = exponent


@inner_kernel
def _feed(terms, values, work, count, own, limit, bit, b, at, flows, row_flows):
    """Add to the flow of sums over partitions into b blocks what comes to them from a box."""
    part = _part(terms, count, b)
    for k in range(limit):
        target = own + (k | bit)
        if work.sums[at + k] > 0.0 and flows[target] > 0.0:
            ratio, exponent = normalized(
                work.factor[b] / values.mantissa[target],
                work.factor_exponent[b] - values.exponent[target],
            )
            worth = unscaled(work.sums[at + k], work.sums_exponent[at + k] + exponent) * ratio
            row_flows[at + k] += worth * flows[target] * part


@inner_kernel
def _write_row_ratios(work, at, limit, row_flows):
    """Write to the total the flow of sums, over the sums."""
    for k in range(limit):
        sums = work.sums[at + k]
        work.total[k] = row_flows[at + k] / sums if sums > 0.0 else 0.0
        work.total_exponent[k] = -work.sums_exponent[at + k] if sums > 0.0 else 0


@inner_kernel
def _share_pairs(lattice, terms, values, work, block, base, stride, limit, flows):
    """Share out what comes to two-way splits of a block to the parts."""
    n = limit if terms.shift == UNION else limit - terms.shift
    for pair in range(lattice.pair_start[block], lattice.pair_start[block + 1]):
        left, right = base + lattice.first[pair] * stride, base + lattice.rest[pair] * stride
        _part_flows(
            terms, work, values.mantissa, values.exponent, left, n, flows, values.mantissa,
            values.exponent, right, n, flows, limit,
        )  # fmt: skip


@inner_kernel
def _share_block(
    lattice, terms, values, work, column, block, base, stride, limit, region, flows, row_flows
):  # fmt: skip
    """Share out what comes to the sums over partitions of a block, of all numbers of parts."""
    start = lattice.starts[column]
    n = limit if terms.shift == UNION else limit - terms.shift
    for b in range(2, min(terms.most, lattice.sizes[start + block]) + 1):
        _write_row_ratios(work, row_of(terms, work, region, block, b), limit, row_flows)
        if b == 2:
            _share_pairs(lattice, terms, values, work, start + block, base, stride, limit, flows)
            continue
        for pair in range(lattice.pair_start[start + block], lattice.pair_start[start + block + 1]):
            rest = lattice.rest[pair]
            if lattice.sizes[start + rest] >= b - 1:
                _part_flows(
                    terms, work, values.mantissa, values.exponent,
                    base + lattice.first[pair] * stride, n, flows, work.sums, work.sums_exponent,
                    row_of(terms, work, region, rest, b - 1), n, row_flows, limit,
                )  # fmt: skip


@inner_kernel
def _share_levels(lattice, terms, values, work, column, base, stride, limit, flows, row_flows):
    """Share out what comes to the product of all levels of a column."""
    stop = lattice.level_start[column + 1]
    q = stop - lattice.level_start[column]
    for back in range(q - 1):
        b = q - back
        inner = limit if terms.shift == UNION else limit - terms.shift * back
        n = inner if terms.shift == UNION else inner - terms.shift
        n_left = n if terms.shift == UNION else n - terms.shift * (b - 2)
        _write_row_ratios(work, row_of(terms, work, work.side[0], 0, b), inner, row_flows)
        left = base + lattice.single[stop - b] * stride
        if b == 2:
            _part_flows(
                terms, work, values.mantissa, values.exponent, left, n_left, flows,
                values.mantissa, values.exponent, base + lattice.single[stop - 1] * stride, n,
                flows, inner,
            )  # fmt: skip
        else:
            at = row_of(terms, work, work.side[0], 0, b - 1)
            _clear(row_flows, at, n)
            _part_flows(
                terms, work, values.mantissa, values.exponent, left, n_left, flows,
                work.sums, work.sums_exponent, at, n, row_flows, inner,
            )  # fmt: skip


@inner_kernel
def _part_flows(
    terms, work, left, left_exponent, i0, n_left, left_flows,
    right, right_exponent, k0, n_right, right_flows, limit,
):  # fmt: skip
    """Add to the flows of two parts what comes to the products of their entries, by the total."""
    for i in range(n_left):
        mantissa, exponent = left[i0 + i], left_exponent[i0 + i]
        if mantissa == 0.0:
            continue
        n = n_right if terms.shift == UNION else min(n_right, limit - terms.shift - i)
        for k in range(n):
            target = i | k if terms.shift == UNION else i + k + terms.shift
            product = mantissa * right[k0 + k]
            if product == 0.0 or work.total[target] == 0.0:
                continue
            power = exponent + right_exponent[k0 + k] + work.total_exponent[target]
            worth = unscaled(product, power) * work.total[target]
            left_flows[i0 + i] += worth
            right_flows[k0 + k] += worth


@kernel
def sum_leaves(
    lattice: LatticeArrays,
    index: IndexArrays,
    is_open: Array,
    terms: TermArrays,
    counts_index: IndexArrays,
    counts: Array,
    flows: Array,
    work: Work,
    per_width: Array,
    row: Array,
) -> float:
    """Return the density of a row: what stays in the open boxes, that hold it, over their volumes.

    flows: as `share_out` leaves them; per_width (N,) float64: one over the widths of blocks; row
    (p,) int64, -1 for a missing cell.
    """
    last = work.digits.shape[0] - 1
    start, stop = lattice.starts[last], lattice.starts[last + 1]
    first_line(lattice, index, is_open, work, 0)
    total = 0.0
    while True:
        find_line(index, work, work.base, work.stride)
        if terms.independent:
            find_children(
                lattice, counts_index, work, work.count_base, work.count_stride, work.count_step
            )
        lowest = 0 if work.stride[last] > 0 else stop - start - 1
        n_outer = 0 if terms.independent else last
        outer = 1.0
        for j in range(n_outer):
            outer *= _density(lattice, terms, counts, work, per_width, j, row[j])
        for block in range(lowest, stop - start):
            if not is_open[start + block]:
                continue
            work.digits[last] = block
            inside = outer
            for j in range(n_outer, last + 1):
                inside *= _density(lattice, terms, counts, work, per_width, j, row[j])
            total += flows[work.base[last] + block * work.stride[last]] * inside
        if not next_line(lattice, index, is_open, work, 0):
            return total


@inner_kernel
def _density(lattice, terms, counts, work, per_width, j, level):
    """Return the density of one column's level inside the box of `work.digits` as a leaf."""
    if level < 0:
        return 1.0
    block = lattice.starts[j] + work.digits[j]
    if not terms.independent or lattice.sizes[block] == 1:
        return per_width[block]
    last = work.digits.shape[0] - 1
    single = lattice.single[lattice.level_start[j] + level]
    at = work.count_base[j] + work.digits[last] * work.count_step[j]
    inside = counts[at + single * work.count_stride[j]] + terms.leaf_alpha
    count = counts[work.count_base[last] + work.digits[last] * work.count_stride[last]]
    within = count + terms.leaf_alpha * lattice.sizes[block]
    return inside / within * per_width[lattice.starts[j] + single]
