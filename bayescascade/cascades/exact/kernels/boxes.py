"""The recursion over boxes: rows in each, then the sum over all trees of each."""

from bayescascade._jit import inner_kernel, kernel
from bayescascade.cascades.exact.kernels.layout import (
    UNION,
    Array,
    IndexArrays,
    LatticeArrays,
    Scaled,
    TermArrays,
    Work,
)
from bayescascade.cascades.exact.kernels.lines import find_children, first_line, next_line
from bayescascade.cascades.exact.kernels.scaled import ZERO, from_log, normalized
from bayescascade.cascades.exact.kernels.sums import (
    add_scaled,
    block_sums,
    level_products,
    side_sums,
)
from bayescascade.cascades.exact.kernels.terms import log_leaf, write_factors

__all__ = ["count_boxes", "count_rows", "evaluate_boxes", "split_sums"]


@kernel
def count_rows(
    lattice: LatticeArrays,
    index: IndexArrays,
    row_codes: Array,
    weights: Array,
    subsets: Array,
    counts: Array,
) -> None:
    """Add every row to the boxes that keep one level of some columns, and all of the others.

    row_codes (N, p) integers, columns in the lattice's order; weights (N,) float64; subsets
    (S, p) bool: the columns narrowed; counts: of all boxes.
    """
    for s in range(subsets.shape[0]):
        for row in range(row_codes.shape[0]):
            at = 0
            cost = 0
            for j in range(row_codes.shape[1]):
                block = lattice.starts[j + 1] - lattice.starts[j] - 1
                step = index.step[j, cost]
                if subsets[s, j]:
                    block = lattice.single[lattice.level_start[j] + row_codes[row, j]]
                    cost += lattice.costs[j]
                at += (block - index.lowest[j]) * step
            counts[at] += weights[row]


@kernel
def count_boxes(
    lattice: LatticeArrays,
    index: IndexArrays,
    is_open: Array,
    counts: Array,
    work: Work,
    is_first: bool,
    n_lines: int,
) -> bool:
    """Count the rows of the boxes of some lines; whether lines are left.

    A box holds what two boxes hold that share out one column of it; only where those have no
    entries must it be counted already, by `count_rows`.
    """
    if is_first:
        first_line(lattice, index, is_open, work)
    last = work.digits.shape[0] - 1
    for _ in range(n_lines):
        find_children(lattice, index, work, work.count_base, work.count_stride, work.count_step)
        digit = index.lowest[last]
        if index.step[last, work.cost[last]] == 0:
            digit = lattice.starts[last + 1] - lattice.starts[last] - 1
        for block in range(digit, lattice.starts[last + 1] - lattice.starts[last]):
            own = work.count_base[last] + block * work.count_stride[last]
            for back in range(last + 1):
                j = last - back
                kept = block if j == last else work.digits[j]
                if _has_children(lattice, index, work, j, kept, block):
                    base = work.count_base[j] + block * work.count_step[j]
                    counts[own] = _shared_out(lattice, counts, j, kept, base, work.count_stride[j])
                    break
        if not next_line(lattice, index, is_open, work):
            return False
    return True


@inner_kernel
def _has_children(lattice, index, work, j, kept, block):
    """Whether the boxes that keep less of column j have entries."""
    last = work.digits.shape[0] - 1
    if lattice.sizes[lattice.starts[j] + kept] < 2:
        return False
    cost = work.cost[last]
    if j == last or block < lattice.starts[last + 1] - lattice.starts[last] - 1:
        cost += lattice.costs[last]
    if j < last and kept == lattice.starts[j + 1] - lattice.starts[j] - 1:
        cost += lattice.costs[j]
    return cost < index.size.shape[0] and index.size[cost] > 0


@inner_kernel
def _shared_out(lattice, counts, j, kept, base, stride):
    """Sum the counts of boxes that share out a block of column j."""
    if lattice.by_levels:
        total = 0.0
        for level in range(lattice.level_start[j], lattice.level_start[j + 1]):
            total += counts[base + lattice.single[level] * stride]
        return total
    pair = lattice.pair_start[lattice.starts[j] + kept]
    return counts[base + lattice.first[pair] * stride] + counts[base + lattice.rest[pair] * stride]


@kernel
def evaluate_boxes(
    lattice: LatticeArrays,
    index: IndexArrays,
    is_open: Array,
    terms: TermArrays,
    counts_index: IndexArrays,
    counts: Array,
    values: Scaled,
    shapes_index: IndexArrays,
    shapes: Scaled,
    work: Work,
    maximize: bool,
    is_first: bool,
    n_lines: int,
) -> bool:
    """Evaluate the open boxes of some lines, in order; whether lines are left.

    A box's entries: the sum (or largest) over all trees below it of what they are worth, one entry
    for each number of leaves, set of columns used, or one in all; see `TermArrays.shift`. Boxes
    without rows are copied from those of their shape if `shapes` has any.
    """
    if is_first:
        first_line(lattice, index, is_open, work)
    last = work.digits.shape[0] - 1
    start, stop = lattice.starts[last], lattice.starts[last + 1]
    keeps = terms.most > 2 and not lattice.by_levels
    for _ in range(n_lines):
        find_children(lattice, index, work, work.base, work.stride, work.step)
        find_children(
            lattice, counts_index, work, work.count_base, work.count_stride, work.count_step
        )
        log_volume = 0.0
        shape = 0
        for j in range(last):
            block = lattice.starts[j] + work.digits[j]
            log_volume += lattice.log_width[block]
            if shapes.mantissa.shape[0] > 0:
                shape += (lattice.shape[block] - shapes_index.lowest[j]) * shapes_index.step[
                    j, work.cost[j]
                ]
        line_step = 0
        if shapes.mantissa.shape[0] > 0:
            line_step = shapes_index.step[last, work.cost[last]]
            shape -= shapes_index.lowest[last] * line_step
        digit = index.lowest[last] if work.stride[last] > 0 else stop - start - 1
        for block in range(digit, stop - start):
            cost = work.cost[last] + (lattice.costs[last] if block < stop - start - 1 else 0)
            limit = index.size[min(cost, index.size.shape[0] - 1)]
            own = work.base[last] + block * work.stride[last]
            if is_open[start + block]:
                count = counts[work.count_base[last] + block * work.count_stride[last]]
                if count == 0.0 and shapes.mantissa.shape[0] > 0:
                    source = shape + lattice.shape[start + block] * line_step
                    for k in range(limit):
                        values.mantissa[own + k] = shapes.mantissa[source + k]
                        values.exponent[own + k] = shapes.exponent[source + k]
                else:
                    _evaluate(
                        lattice, terms, counts, values, work, block, count,
                        log_volume + lattice.log_width[start + block], own, limit, maximize,
                    )  # fmt: skip
                    continue
            if keeps and lattice.splits[last]:  # larger boxes of the line read these sums
                block_sums(
                    lattice, terms, values, last, block, work.base[last], work.stride[last],
                    limit, maximize, work.line, work.line_exponent, work.total.shape[0], True,
                )  # fmt: skip
        if not next_line(lattice, index, is_open, work):
            return False
    return True


@inner_kernel
def _evaluate(lattice, terms, counts, values, work, digit, count, log_volume, own, limit, maximize):
    """Write one box's entries to values[own : own + limit]."""
    n_entries = work.total.shape[0]
    last = work.digits.shape[0] - 1
    keeps = terms.most > 2 and not lattice.by_levels
    for k in range(limit):
        work.total[k] = 0.0
        work.total_exponent[k] = ZERO
    work.total[0], work.total_exponent[0] = from_log(
        log_leaf(lattice, terms, counts, work, digit, count, log_volume)
    )
    if terms.is_branch:
        write_factors(terms, work, count, work.factor.shape[0] - 1)
    for j in range(last + 1):
        kept = digit if j == last else work.digits[j]
        if not lattice.splits[j] or not _can_split(lattice, terms, j, kept, limit):
            continue
        base = work.base[j] + digit * work.step[j]
        bit = 1 << j if terms.shift == UNION else 0
        if lattice.by_levels:
            b = level_products(
                lattice, terms, values, j, base, work.stride[j], limit, maximize,
                work.side, work.side_exponent, n_entries,
            )  # fmt: skip
            add_scaled(
                terms, work, work.side, work.side_exponent, b * n_entries, b, limit, bit, maximize
            )
            continue
        is_line = keeps and j == last
        if is_line:
            most = block_sums(
                lattice, terms, values, j, kept, base, work.stride[j], limit, maximize,
                work.line, work.line_exponent, n_entries, keeps,
            )  # fmt: skip
        else:
            most = side_sums(
                lattice, terms, values, j, kept, base, work.stride[j], limit, maximize,
                work.side, work.side_exponent, n_entries, keeps,
            )  # fmt: skip
        row = kept * (terms.most + 1) * n_entries if keeps else 0
        for b in range(2, most + 1):
            at = row + b * n_entries
            if is_line:
                add_scaled(terms, work, work.line, work.line_exponent, at, b, limit, bit, maximize)
            else:
                add_scaled(terms, work, work.side, work.side_exponent, at, b, limit, bit, maximize)
    for k in range(limit):
        values.mantissa[own + k], values.exponent[own + k] = normalized(
            work.total[k], work.total_exponent[k]
        )


@inner_kernel
def _can_split(lattice, terms, j, kept, limit):
    """Whether a tree below a box of at most `limit` entries can split column j."""
    whole = lattice.starts[j + 1] - lattice.starts[j] - 1
    n_levels = lattice.level_start[j + 1] - lattice.level_start[j]
    if lattice.by_levels:
        return kept == whole and n_levels > 1 and (terms.shift != 1 or limit >= n_levels)
    return lattice.sizes[lattice.starts[j] + kept] > 1 and (terms.shift != 1 or limit > 1)


@kernel
def split_sums(
    lattice: LatticeArrays,
    terms: TermArrays,
    values: Scaled,
    column: int,
    block: int,
    base: int,
    stride: int,
    limit: int,
    maximize: bool,
    out: Array,
    out_exponent: Array,
    n_entries: int,
) -> None:
    """Write the sums over the splits of one column of a box, and of what is left of the column.

    base, stride: where a child's entries start, ``base + block * stride``; limit: the box's
    entries; row b of a block: ``out[(block * (most + 1) + b) * n_entries :]``; of whole columns
    split by levels, row b: the last b levels' product.
    """
    if lattice.by_levels:
        level_products(
            lattice, terms, values, column, base, stride, limit, maximize,
            out, out_exponent, n_entries,
        )  # fmt: skip
    else:
        keeps = terms.most > 2
        side_sums(
            lattice, terms, values, column, block, base, stride, limit, maximize,
            out, out_exponent, n_entries, keeps,
        )  # fmt: skip
