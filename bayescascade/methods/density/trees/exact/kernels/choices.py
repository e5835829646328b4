"""Choices of a leaf or a split in a box: in proportion to the trees of each choice, or the best.

The trees of a choice have a share of the box's own entry, and the shares of all choices sum to one.
To draw, a loop adds shares until their sum exceeds a uniform number. To find the best, a loop over
all choices takes the largest share. It is not compared with the entry, because different rounding
could then exclude all choices. Among choices that are equal up to rounding, the first is taken; its
share is at least 1 / `_BETTER` of the largest.
"""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.exact.kernels.boxes import (
    add_column,
    can_split,
    enter_box,
    find_children,
    is_grouped,
)
from bayescascade.methods.density.trees.exact.kernels.layout import (
    UNION,
    Array,
    IndexArrays,
    LatticeArrays,
    RecursionWorkspace,
    Scaled,
    TermArrays,
)
from bayescascade.methods.density.trees.exact.kernels.sums import all_sums, level_products, row_of
from bayescascade.methods.density.trees.exact.kernels.terms import (
    ZERO,
    share,
    write_factors,
    write_leaf,
)

_BETTER = 1.0 + 2.0**-45  # factor that counts as better: more than the rounding of a share
_ALL = np.inf  # no sum of shares exceeds this
_BLOCK, _ENTRY = 0, 1  # rows of `parts`


@kernel
def choose_splits(
    rng: np.random.Generator,
    lattice: LatticeArrays,
    index: IndexArrays,
    terms: TermArrays,
    counts_index: IndexArrays,
    counts: Array,
    values: Scaled,
    work: RecursionWorkspace,
    maximize: bool,
    digits: Array,
    entries: Array,
    columns: Array,
    n_branches: Array,
    parts: Array,
) -> None:
    """Choose a leaf or a split in some boxes.

    digits (n, p) int64: the boxes, equal ones in sequence; entries (n,) int64: the entries of the
    subtrees, see `TermArrays.shift`. Written: columns (n,) int64: the column of the split, -1 for a
    leaf; n_branches (n,) int64; parts (n, 2, most) int64: block and entry of every branch, by
    lowest level.
    """
    last = work.digits.shape[0] - 1
    own, limit, has_line = 0, 0, False
    for node in range(entries.shape[0]):
        if node == 0 or not _is_in(work, digits, node):
            for j in range(last + 1):
                work.digits[j] = digits[node, j]
            _prepare(lattice, index, terms, counts_index, counts, work)
            own = work.base[last] + work.digits[last] * work.stride[last]
            limit = n_entries(lattice, index, work)
            has_line = False
        entry = entries[node]
        mantissa, exponent = values.mantissa[own + entry], values.exponent[own + entry]
        target = _ALL if maximize else rng.random()
        done = 0.0  # sum of shares, or the largest
        column, n_parts, first, rest, left, i, k = -1, 0, 0, 0, entry, 0, 0
        if entry == 0:
            done = share(work.total[0], work.total_exponent[0], mantissa, exponent)
        for j in range(last + 1):
            if done > target:
                break
            if not lattice.splits[j] or not can_split(lattice, terms, j, work.digits[j], limit):
                continue
            if terms.shift == UNION and not entry >> j & 1:
                continue
            size = lattice.sizes[lattice.starts[j] + work.digits[j]]
            # with UNION, the branches of a split of column j may or may not use it again
            for again in range(2 if terms.shift == UNION else 1):
                below = entry ^ (again << j)
                if size == 2 or not lattice.by_levels:
                    done, pair, new_i, new_k = _scan_pairs(
                        lattice, terms, values, work, j, below, mantissa, exponent,
                        target, done, maximize,
                    )  # fmt: skip
                    if pair >= 0:
                        column, n_parts, left, i, k = j, 2, below, new_i, new_k
                        first, rest = lattice.first[pair], lattice.rest[pair]
                if size > 2 and terms.most > 2 and done <= target:
                    if again == 0:
                        has_line = fill(lattice, terms, values, work, j, limit, maximize, has_line)
                    done, b = _scan_sums(
                        lattice, terms, work, j, below, mantissa, exponent, target, done, maximize
                    )
                    if b > 0:
                        column, n_parts, left = j, b, below
        columns[node], n_branches[node] = column, n_parts
        if n_parts == 2:
            parts[node, _BLOCK, 0], parts[node, _ENTRY, 0] = first, i
            parts[node, _BLOCK, 1], parts[node, _ENTRY, 1] = rest, k
        elif n_parts > 2:
            has_line = fill(lattice, terms, values, work, column, limit, maximize, has_line)
            _choose_parts(
                rng, lattice, terms, values, work, column, n_parts, left, maximize, node, parts
            )


@inner_kernel
def _is_in(work, digits, node):
    """Whether a node's box is that of `work.digits`."""
    is_in = True
    for j in range(work.digits.shape[0]):
        is_in = is_in and work.digits[j] == digits[node, j]
    return is_in


@inner_kernel
def _scan_pairs(lattice, terms, values, work, j, below, mantissa, exponent, target, done, maximize):
    """Scan a column's two-way splits; return the sum or largest, and pair and entries, or -1."""
    pair, i, k = -1, -1, -1
    block = lattice.starts[j] + work.digits[j]
    base = work.base[j] + work.digits[work.digits.shape[0] - 1] * work.step[j]
    for this in range(lattice.pair_start[block], lattice.pair_start[block + 1]):
        if done > target:
            break
        done, new_i, new_k = _scan(
            terms.shift, 2, below,
            values.mantissa, values.exponent, base + lattice.first[this] * work.stride[j],
            values.mantissa, values.exponent, base + lattice.rest[this] * work.stride[j],
            mantissa / work.factor[2], exponent - work.factor_exponent[2], target, done, maximize,
        )  # fmt: skip
        if new_i >= 0:
            pair, i, k = this, new_i, new_k
    return done, pair, i, k


@inner_kernel
def _scan_sums(lattice, terms, work, j, below, mantissa, exponent, target, done, maximize):
    """Scan the numbers of branches above two; return the sum or largest, and the number, or 0."""
    chosen = 0
    size = lattice.sizes[lattice.starts[j] + work.digits[j]]
    block, region = place(lattice, terms, work, j)
    for b in range(size if lattice.by_levels else 3, min(terms.most, size) + 1):
        if done > target:
            break
        at = row_of(terms, work, region, block, b) + below
        worth = share(
            work.sums[at], work.sums_exponent[at],
            mantissa / work.factor[b], exponent - work.factor_exponent[b],
        )  # fmt: skip
        if not maximize and worth > 0.0:
            done, chosen = done + worth, b
        elif maximize and worth > done * _BETTER:
            done, chosen = worth, b
    return done, chosen


@kernel
def enter_node(
    lattice: LatticeArrays,
    index: IndexArrays,
    terms: TermArrays,
    counts_index: IndexArrays,
    counts: Array,
    work: RecursionWorkspace,
) -> None:
    """Write the value of the box of ``work.digits`` as a leaf, and the factors of its splits."""
    _prepare(lattice, index, terms, counts_index, counts, work)


@inner_kernel
def _prepare(lattice, index, terms, counts_index, counts, work):
    """Find the entries around the box of `work.digits`, its value as a leaf, and split factors."""
    last = work.digits.shape[0] - 1
    enter_box(lattice, index, work)
    find_children(lattice, index, work, work.base, work.stride, work.step)
    find_children(lattice, counts_index, work, work.count_base, work.count_stride, work.count_step)
    count = np.float64(counts[work.count_base[last] + work.digits[last] * work.count_stride[last]])
    write_leaf(lattice, terms, counts, work, count)
    if terms.has_factors:
        write_factors(terms, work, count, work.factor.shape[0] - 1)


@inner_kernel
def n_entries(lattice, index, work):
    """Return the number of entries of the box of `work.digits`."""
    last = work.digits.shape[0] - 1
    cost = work.cost[last]
    if work.digits[last] < lattice.starts[last + 1] - lattice.starts[last] - 1:
        cost += lattice.costs[last]
    return index.size[min(cost, index.size.shape[0] - 1)]


@inner_kernel
def place(lattice, terms, work, j):
    """Return block and region of the sums over the splits of a column."""
    if lattice.by_levels:
        return 0, work.side[0]
    is_line = j == work.digits.shape[0] - 1 and is_grouped(lattice, terms, j)
    return work.digits[j], 0 if is_line else work.side[0]


@inner_kernel
def fill(lattice, terms, values, work, j, limit, maximize, has_line):
    """Write the sums over the splits of a column; return whether those of the last exist."""
    last = work.digits.shape[0] - 1
    base = work.base[j] + work.digits[last] * work.step[j]
    if lattice.by_levels:
        level_products(lattice, terms, values, work, j, base, work.stride[j], limit, maximize)
        return has_line
    block, region = place(lattice, terms, work, j)
    is_line = region == 0
    if not (is_line and has_line):
        all_sums(
            lattice, terms, values, work, j, block, base, work.stride[j], limit, maximize, region
        )
    return has_line or is_line


@inner_kernel
def _choose_parts(rng, lattice, terms, values, work, j, n_parts, entry, maximize, node, parts):
    """Choose blocks and entries of the branches one by one."""
    last = work.digits.shape[0] - 1
    base, stride = work.base[j] + work.digits[last] * work.step[j], work.stride[j]
    block, region = place(lattice, terms, work, j)
    stop = lattice.level_start[j + 1]
    for b in range(n_parts, 1, -1):
        at = row_of(terms, work, region, block, b) + entry
        mantissa, exponent = work.sums[at], work.sums_exponent[at]
        target = _ALL if maximize else rng.random()
        done = 0.0
        first, rest, i, k = 0, 0, 0, 0
        start = lattice.starts[j] + block
        low, high = lattice.pair_start[start], lattice.pair_start[start + 1]
        if lattice.by_levels:
            low, high = 0, 1
        for pair in range(low, high):
            if done > target:
                break
            if lattice.by_levels:
                new_first, new_rest = lattice.single[stop - b], 0
                simple = lattice.single[stop - 1]
            else:
                new_first, new_rest = lattice.first[pair], lattice.rest[pair]
                simple = new_rest
                if lattice.sizes[lattice.starts[j] + new_rest] < b - 1:
                    continue
            left = base + new_first * stride
            if b == 2:
                done, new_i, new_k = _scan(
                    terms.shift, b, entry, values.mantissa, values.exponent, left,
                    values.mantissa, values.exponent, base + simple * stride,
                    mantissa, exponent, target, done, maximize,
                )  # fmt: skip
            else:
                done, new_i, new_k = _scan(
                    terms.shift, b, entry, values.mantissa, values.exponent, left,
                    work.sums, work.sums_exponent, row_of(terms, work, region, new_rest, b - 1),
                    mantissa, exponent, target, done, maximize,
                )  # fmt: skip
            if new_i >= 0:
                first, rest, i, k = new_first, new_rest, new_i, new_k
        parts[node, _BLOCK, n_parts - b], parts[node, _ENTRY, n_parts - b] = first, i
        block, entry = rest, k
    if lattice.by_levels:
        block = lattice.single[stop - 1]
    parts[node, _BLOCK, n_parts - 1], parts[node, _ENTRY, n_parts - 1] = block, entry


@inner_kernel
def _scan(
    shift, b, entry, left, left_exponent, i0, right, right_exponent, k0,
    mantissa, exponent, target, done, maximize,
):  # fmt: skip
    """Scan entries of the first of b blocks and of the rest, as in `_scan_pairs`."""
    chosen_i, chosen_k = -1, -1
    n = entry + 1 if shift == UNION else entry - shift * (b - 1) + 1
    for i in range(n):
        mine = left[i0 + i]
        if mine == 0.0:
            continue
        low, high = (0, entry + 1) if shift == UNION else (entry - shift - i, entry - shift - i + 1)
        for k in range(low, high):
            product = mine * right[k0 + k]
            if product == 0.0 or (shift == UNION and i | k != entry):
                continue
            power = left_exponent[i0 + i] + right_exponent[k0 + k]
            worth = share(product, power, mantissa, exponent)
            if maximize:
                if worth > done * _BETTER:
                    done, chosen_i, chosen_k = worth, i, k
                continue
            if worth == 0.0:
                continue
            done, chosen_i, chosen_k = done + worth, i, k
            if done > target:
                return done, chosen_i, chosen_k
    return done, chosen_i, chosen_k


@kernel
def sum_columns(
    lattice: LatticeArrays,
    index: IndexArrays,
    terms: TermArrays,
    counts_index: IndexArrays,
    counts: Array,
    values: Scaled,
    work: RecursionWorkspace,
    out: Scaled,
) -> None:
    """Write the value of the box of ``work.digits`` as a leaf, then by splits of each column."""
    _prepare(lattice, index, terms, counts_index, counts, work)
    last = work.digits.shape[0] - 1
    limit = n_entries(lattice, index, work)
    for j in range(-1, last + 1):
        for entry in range(limit):
            if j >= 0 or entry > 0:
                work.total[entry], work.total_exponent[entry] = 0.0, ZERO
        if j >= 0 and lattice.splits[j] and can_split(lattice, terms, j, work.digits[j], limit):
            fill(lattice, terms, values, work, j, limit, False, False)
            base = work.base[j] + work.digits[last] * work.step[j]
            add_column(lattice, terms, values, work, j, base, limit, False)
        for entry in range(limit):
            at = (j + 1) * limit + entry
            out.mantissa[at], out.exponent[at] = work.total[entry], work.total_exponent[entry]
