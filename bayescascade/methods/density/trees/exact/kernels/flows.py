"""The flow of a new row's probability to every box, and the part that stays: from the top down.

The flow to a box, for the trees with one of its splits, continues in full to each branch's box
(times the branch's share, under the branch model). It does not depend on the row: only boxes that
hold the row count, and that is one branch of each split. The steps are those of `sums` and
`boxes.evaluate_boxes`, backwards.
"""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.exact.kernels.boxes import (
    can_split,
    enter_box,
    find_children,
    find_line,
    first_line,
    is_grouped,
    next_line,
)
from bayescascade.methods.density.trees.exact.kernels.choices import fill, n_entries, place
from bayescascade.methods.density.trees.exact.kernels.layout import (
    UNION,
    Array,
    IndexArrays,
    LatticeArrays,
    RecursionWorkspace,
    Scaled,
    Tables,
    TermArrays,
)
from bayescascade.methods.density.trees.exact.kernels.lines import (
    leaf_of,
    list_splits,
    outer_volume,
)
from bayescascade.methods.density.trees.exact.kernels.sums import block_sums, row_of
from bayescascade.methods.density.trees.exact.kernels.terms import (
    normalized,
    share,
    unscaled,
    write_factors,
    write_leaf,
)


@kernel
def share_out(
    lattice: LatticeArrays,
    index: IndexArrays,
    terms: TermArrays,
    tables: Tables,
    counts_index: IndexArrays,
    counts: Array,
    values: Scaled,
    work: RecursionWorkspace,
    is_alike: Array,
    flows: Array,
    row_flows: Array,
    is_first: bool,
    n_lines: int,
) -> bool:
    """Distribute the flow to the boxes of some lines, the largest first; return if lines are left.

    tables: empty if the short way does not apply; is_alike (N,) bool: whether a block's levels are
    exchangeable without rows; flows float64, of all entries, changed in place: the part that stays
    in a box as a leaf becomes its first entry; row_flows: zeros, of the size of work.sums.
    """
    last = work.digits.shape[0] - 1
    start, stop = lattice.starts[last], lattice.starts[last + 1]
    if is_first:
        for j in range(last):
            work.digits[j] = lattice.starts[j + 1] - lattice.starts[j] - 1
    is_short = tables.leaf.shape[0] > 0
    grouped = is_grouped(lattice, terms, last) and not is_short
    for _ in range(n_lines):
        enter_box(lattice, index, work)
        find_children(lattice, index, work, work.base, work.stride, work.step)
        if terms.independent:
            find_children(
                lattice, counts_index, work, work.count_base, work.count_stride, work.count_step
            )
        else:
            find_line(counts_index, work, work.count_base, work.count_stride)
        volume, volume_low, ways = outer_volume(lattice, work)
        alike = True
        for j in range(last):
            alike = alike and is_alike[lattice.starts[j] + work.digits[j]]
        lowest = 0 if work.stride[last] > 0 else stop - start - 1
        if is_short:
            list_splits(lattice, terms, tables, work)
        if grouped:
            for block in range(lowest, stop - start):
                work.digits[last] = block
                limit = n_entries(lattice, index, work)
                block_sums(
                    lattice, terms, values, work, last, block, work.base[last],
                    work.stride[last], limit, False, 0,
                )  # fmt: skip
        for back in range(stop - start - lowest):
            block = stop - start - 1 - back
            work.digits[last] = block
            limit = n_entries(lattice, index, work)
            own = work.base[last] + block * work.stride[last]
            count = np.float64(counts[work.count_base[last] + block * work.count_stride[last]])
            if count == 0.0 and alike and is_alike[start + block]:
                came = 0.0
                for k in range(limit):  # all leaves without rows are equally probable
                    came += flows[own + k] * (k + 1 if terms.shift == 1 else 1)
                flows[own] = came * terms.alpha
            elif is_short:
                leaf, exponent = leaf_of(
                    lattice, terms, tables, work, count, volume, volume_low, ways, start + block
                )
                _share_short(lattice, terms, tables, values, work, count, own, flows)
                flows[own] *= (count + terms.alpha) * share(
                    leaf, exponent, values.mantissa[own], np.int64(values.exponent[own])
                )
            else:
                _share_box(
                    lattice, terms, counts, values, work, count, own, limit, flows, row_flows
                )
            if grouped:
                _share_rows(
                    lattice, terms, values, work, last, block, work.base[last],
                    work.stride[last], limit, 0, flows, row_flows,
                )  # fmt: skip
        if not _previous_line(lattice, index, work):
            return False
    return True


@inner_kernel
def _previous_line(lattice, index, work):
    """Go to the previous line; False at the first."""
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
def _share_short(lattice, terms, tables, values, work, count, own, flows):
    """Distribute the flow to a box with one entry among its splits in `tables`."""
    last = work.digits.shape[0] - 1
    block = lattice.starts[last] + work.digits[last]
    children, places = tables.children, work.places
    for i in range(terms.branches.shape[0]):
        b = terms.branches[i]
        ratio, exponent = normalized(
            tables.factor[b, np.int64(count)] * work.per_way[0] / values.mantissa[own],
            tables.exponent[b, np.int64(count)] - np.int64(values.exponent[own]),
        )
        ratio *= flows[own] * (count + terms.alpha) / (count + b * terms.alpha)
        own_splits = work.ends[b]
        places[own_splits] = tables.begin[b, block]
        places[own_splits + 1] = tables.end[b, block]
        for split in range(work.begins[b], own_splits + 2, 2):
            for at in range(places[split], places[split + 1], b):
                product, power = 1.0, exponent
                for k in range(at, at + b):
                    child = np.uint64(own + children[k])
                    product *= values.mantissa[child]
                    power += np.int64(values.exponent[child])
                    if b > 2:
                        product, power = normalized(product, power)
                worth = unscaled(product, power) * ratio
                for k in range(at, at + b):
                    flows[np.uint64(own + children[k])] += worth


@inner_kernel
def _share_box(lattice, terms, counts, values, work, count, own, limit, flows, row_flows):
    """Distribute the flow to the box of `work.digits` among its splits; keep the leaf's part."""
    last = work.digits.shape[0] - 1
    write_leaf(lattice, terms, counts, work, count)
    stays = flows[own] * (count + terms.alpha) * share(
        work.total[0], work.total_exponent[0], values.mantissa[own], values.exponent[own]
    )  # fmt: skip
    if terms.has_factors:
        write_factors(terms, work, count, work.factor.shape[0] - 1)
    for j in range(last + 1):
        kept = work.digits[j]
        if not can_split(lattice, terms, j, kept, limit):
            continue
        fill(lattice, terms, values, work, j, limit, False, True)
        block, region = place(lattice, terms, work, j)
        size = lattice.sizes[lattice.starts[j] + kept]
        bit = 1 << j if terms.shift == UNION else 0
        for b in range(size if lattice.by_levels else 2, min(terms.most, size) + 1):
            at = row_of(terms, work, region, block, b)
            _feed(terms, values, work, count, own, limit, bit, b, at, flows, row_flows)
        if region == 0:  # sums of the line, which larger blocks may share
            continue
        base, stride = work.base[j] + work.digits[last] * work.step[j], work.stride[j]
        _share_rows(
            lattice, terms, values, work, j, block, base, stride, limit, region, flows, row_flows
        )
        if lattice.by_levels or terms.most == 2:
            continue
        inner = limit if terms.shift == UNION else limit - terms.shift
        low = lattice.pair_start[lattice.starts[j] + kept]
        for back in range(lattice.pair_start[lattice.starts[j] + kept + 1] - low):
            pair = lattice.pair_start[lattice.starts[j] + kept + 1] - 1 - back
            _share_rows(
                lattice, terms, values, work, j, lattice.rest[pair], base, stride, inner, region,
                flows, row_flows,
            )  # fmt: skip
    flows[own] = stays


@inner_kernel
def _feed(terms, values, work, count, own, limit, bit, b, at, flows, row_flows):
    """Add a box's flow to the flow of its sums over partitions into b blocks."""
    part = (count + terms.alpha) / (count + b * terms.alpha) if terms.is_branch else 1.0
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
def _share_rows(
    lattice, terms, values, work, column, block, base, stride, limit, region, flows, row_flows
):  # fmt: skip
    """Distribute the flow to the sums over partitions of a block, and clear it."""
    start, stop = lattice.starts[column], lattice.level_start[column + 1]
    n_levels = stop - lattice.level_start[column]
    most = n_levels if lattice.by_levels else min(terms.most, lattice.sizes[start + block])
    sums = Scaled(work.sums, work.sums_exponent)
    for back in range(most - 1):
        b = most - back
        inner = limit - back if lattice.by_levels and terms.shift == 1 else limit
        n = inner if terms.shift == UNION else inner - terms.shift
        n_left = n - (b - 2) if lattice.by_levels and terms.shift == 1 else n
        at = row_of(terms, work, region, block, b)
        for k in range(inner):  # the flow of sums, divided by the sums
            work.total[k], work.total_exponent[k] = 0.0, 0
            if row_flows[at + k] > 0.0:
                work.total[k] = row_flows[at + k] / work.sums[at + k]
                work.total_exponent[k] = -work.sums_exponent[at + k]
                row_flows[at + k] = 0.0
        low, high = 0, 1
        if not lattice.by_levels:
            low, high = lattice.pair_start[start + block], lattice.pair_start[start + block + 1]
        for pair in range(low, high):
            if lattice.by_levels:
                first, rest, alone = lattice.single[stop - b], 0, lattice.single[stop - 1]
            else:
                first, rest, alone = lattice.first[pair], lattice.rest[pair], lattice.rest[pair]
            left = base + first * stride
            if b == 2:
                right = base + alone * stride
                _share_pair(
                    terms, work, values, left, n_left, flows, values, right, n, flows, inner
                )
            elif lattice.by_levels or lattice.sizes[start + rest] >= b - 1:
                right = row_of(terms, work, region, rest, b - 1)
                _share_pair(
                    terms, work, values, left, n_left, flows, sums, right, n, row_flows, inner
                )


@inner_kernel
def _share_pair(
    terms, work, lefts, i0, n_left, left_flows, rights, k0, n_right, right_flows, limit
):  # fmt: skip
    """Add the flow to products of two parts' entries, by the total, to the flows of the parts."""
    for i in range(n_left):
        mantissa, exponent = lefts.mantissa[i0 + i], lefts.exponent[i0 + i]
        if mantissa == 0.0:
            continue
        n = n_right if terms.shift == UNION else min(n_right, limit - terms.shift - i)
        for k in range(n):
            target = i | k if terms.shift == UNION else i + k + terms.shift
            product = mantissa * rights.mantissa[k0 + k]
            if product == 0.0 or work.total[target] == 0.0:
                continue
            power = exponent + rights.exponent[k0 + k] + work.total_exponent[target]
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
    work: RecursionWorkspace,
    per_width: Array,
    row: Array,
) -> float:
    """Return a row's density: `flows` in boxes that hold it, over volumes; -1 is a missing cell."""
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
        n_outer = 0 if terms.independent else last
        outer = 1.0
        for j in range(n_outer):
            outer *= _density(lattice, terms, counts, work, per_width, j, row[j])
        for block in range(0 if work.stride[last] > 0 else stop - start - 1, stop - start):
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
    """Return the density of a column's level inside the box of `work.digits` as a leaf."""
    block = lattice.starts[j] + work.digits[j]
    if level < 0:
        return 1.0
    if not terms.independent or lattice.sizes[block] == 1:
        return per_width[block]
    last = work.digits.shape[0] - 1
    single = lattice.single[lattice.level_start[j] + level]
    at = work.count_base[j] + work.digits[last] * work.count_step[j]
    inside = counts[at + single * work.count_stride[j]] + terms.leaf_alpha
    count = counts[work.count_base[last] + work.digits[last] * work.count_stride[last]]
    within = count + terms.leaf_alpha * lattice.sizes[block]
    return inside / within * per_width[lattice.starts[j] + single]
