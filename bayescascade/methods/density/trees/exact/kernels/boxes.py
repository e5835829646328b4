"""The recursion over boxes, line by line: counts of rows, then sums over all trees below."""

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.exact.kernels.layout import (
    UNION,
    Array,
    IndexArrays,
    LatticeArrays,
    RecursionWorkspace,
    Scaled,
    TermArrays,
)
from bayescascade.methods.density.trees.exact.kernels.sums import (
    add_scaled,
    all_sums,
    block_sums,
    level_products,
    pair_sum,
    row_of,
)
from bayescascade.methods.density.trees.exact.kernels.terms import (
    ZERO,
    added,
    normalized,
    write_factors,
    write_leaf,
)


@inner_kernel
def first_line(lattice, index, is_open, work, n_fixed):
    """Go to the first line of open boxes that have entries, with the given first digits."""
    work.cost[0] = 0
    for j in range(n_fixed):
        whole = lattice.starts[j + 1] - lattice.starts[j] - 1
        work.cost[j + 1] = _raised(lattice, index, work.cost[j], j, work.digits[j] < whole)
    _lowest_from(lattice, index, is_open, work, n_fixed)


@inner_kernel
def enter_box(lattice, index, work):
    """Go to the line of the box of `work.digits`, with all columns."""
    work.cost[0] = 0
    for j in range(work.digits.shape[0] - 1):
        whole = lattice.starts[j + 1] - lattice.starts[j] - 1
        work.cost[j + 1] = _raised(lattice, index, work.cost[j], j, work.digits[j] < whole)


@inner_kernel
def next_line(lattice, index, is_open, work, n_fixed):
    """Go to the next line with the same first digits; False after the last."""
    for back in range(work.digits.shape[0] - 1 - n_fixed):
        j = work.digits.shape[0] - 2 - back
        start, whole = lattice.starts[j], lattice.starts[j + 1] - lattice.starts[j] - 1
        if work.digits[j] < whole:
            digit = work.digits[j] + 1
            while not is_open[start + digit]:
                digit += 1
            work.digits[j] = digit
            work.cost[j + 1] = _raised(lattice, index, work.cost[j], j, digit < whole)
            _lowest_from(lattice, index, is_open, work, j + 1)
            return True
    return False


@inner_kernel
def _lowest_from(lattice, index, is_open, work, column):
    """Set the outer columns from `column` on to the smallest digits that have entries."""
    last = work.digits.shape[0] - 1
    for j in range(column, last):
        start, whole = lattice.starts[j], lattice.starts[j + 1] - lattice.starts[j] - 1
        digit = 0 if index.step[j, work.cost[j]] > 0 else whole
        while not is_open[start + digit]:
            digit += 1
        work.digits[j] = digit
        work.cost[j + 1] = _raised(lattice, index, work.cost[j], j, digit < whole)


@inner_kernel
def _raised(lattice, index, cost, j, is_narrowed):
    if not is_narrowed:
        return cost
    return min(cost + lattice.costs[j], index.size.shape[0] - 1)


@inner_kernel
def find_line(index, work, base, stride):
    """Write the position of the line's own entries to the last place of base and stride."""
    last = work.digits.shape[0] - 1
    stride[last], base[last] = index.step[last, work.cost[last]], 0
    for j in range(last):
        base[last] += work.digits[j] * index.step[j, work.cost[j]]


@inner_kernel
def find_shape(lattice, index, work):
    """Return base and stride of the shapes of the line's boxes."""
    last = work.digits.shape[0] - 1
    stride, base = index.step[last, work.cost[last]], 0
    for j in range(last):
        shape = lattice.shape[lattice.starts[j] + work.digits[j]]
        base += shape * index.step[j, work.cost[j]]
    return base, stride


@inner_kernel
def find_children(lattice, index, work, base, stride, step):
    """Write the positions of entries for the line's boxes, and for those narrower in one column.

    With block x of column j, and digit y of the last column, a child's entries start at
    ``base[j] + x * stride[j] + y * step[j]``.
    """
    last = work.digits.shape[0] - 1
    before, behind = 0, 0
    for j in range(last):
        behind += work.digits[j] * index.step[j, work.cost[j]]
    own_step = index.step[last, work.cost[last]]
    for j in range(last):
        stride[j] = index.step[j, work.cost[j]]
        own = work.digits[j] * stride[j]
        behind -= own
        whole = lattice.starts[j + 1] - lattice.starts[j] - 1
        if lattice.costs[j] == 0 or work.digits[j] < whole:
            base[j] = before + behind
            step[j] = own_step
        else:  # a child costs more, which moves the later columns
            base[j] = before
            cost = _raised(lattice, index, work.cost[j], j, True)
            for i in range(j + 1, last):
                base[j] += work.digits[i] * index.step[i, cost]
                is_narrowed = work.digits[i] < lattice.starts[i + 1] - lattice.starts[i] - 1
                cost = _raised(lattice, index, cost, i, is_narrowed)
            step[j] = index.step[last, cost]
        before += own
    stride[last], step[last], base[last] = own_step, 0, before


@kernel
def count_rows(
    lattice: LatticeArrays,
    index: IndexArrays,
    row_codes: Array,
    weights: Array,
    subsets: Array,
    counts: Array,
) -> None:
    """Add rows (N, p) to boxes with single levels of some columns, subsets (S, p)."""
    for s in range(subsets.shape[0]):
        for row in range(row_codes.shape[0]):
            at, cost = 0, 0
            for j in range(row_codes.shape[1]):
                block = lattice.starts[j + 1] - lattice.starts[j] - 1
                step = index.step[j, cost]
                if subsets[s, j]:
                    block = lattice.single[lattice.level_start[j] + row_codes[row, j]]
                    cost += lattice.costs[j]
                at += block * step
            counts[at] += weights[row]


@kernel
def count_boxes(
    lattice: LatticeArrays,
    index: IndexArrays,
    is_open: Array,
    counts: Array,
    work: RecursionWorkspace,
    n_fixed: int,
    is_first: bool,
    n_lines: int,
) -> bool:
    """Count the rows in the boxes of some lines by two parts of each; return if lines are left."""
    if is_first:
        first_line(lattice, index, is_open, work, n_fixed)
    last = work.digits.shape[0] - 1
    for _ in range(n_lines):
        find_children(lattice, index, work, work.count_base, work.count_stride, work.count_step)
        digit = 0
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
        if not next_line(lattice, index, is_open, work, n_fixed):
            return False
    return True


@inner_kernel
def _has_children(lattice, index, work, j, kept, block):
    """Whether the boxes with fewer levels of column j have entries."""
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
    """Sum the counts of the boxes that partition a block of column j."""
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
    work: RecursionWorkspace,
    maximize: bool,
    n_fixed: int,
    is_first: bool,
    n_lines: int,
) -> bool:
    """Evaluate the open boxes of some lines, in order; return whether lines are left.

    A box's entries are the sum (or largest) over all trees below it, see `TermArrays.shift`. Boxes
    without rows are copied from their shapes, if there are `shapes`.
    """
    if is_first:
        first_line(lattice, index, is_open, work, n_fixed)
    last = work.digits.shape[0] - 1
    start, stop = lattice.starts[last], lattice.starts[last + 1]
    grouped = is_grouped(lattice, terms, last)
    has_shapes = shapes.mantissa.shape[0] > 0
    for _ in range(n_lines):
        find_children(lattice, index, work, work.base, work.stride, work.step)
        if terms.independent:
            find_children(
                lattice, counts_index, work, work.count_base, work.count_stride, work.count_step
            )
        else:
            find_line(counts_index, work, work.count_base, work.count_stride)
        shape, shape_step = 0, 0
        if has_shapes:
            shape, shape_step = find_shape(lattice, shapes_index, work)
        lowest = 0 if work.stride[last] > 0 else stop - start - 1
        for block in range(lowest, stop - start):
            cost = work.cost[last] + (lattice.costs[last] if block < stop - start - 1 else 0)
            limit = index.size[min(cost, index.size.shape[0] - 1)]
            if grouped:
                block_sums(
                    lattice, terms, values, work, last, block, work.base[last],
                    work.stride[last], limit, maximize, 0,
                )  # fmt: skip
            if not is_open[start + block]:
                continue
            own = work.base[last] + block * work.stride[last]
            count = counts[work.count_base[last] + block * work.count_stride[last]]
            if count == 0.0 and has_shapes:
                source = shape + lattice.shape[start + block] * shape_step
                for k in range(limit):
                    values.mantissa[own + k] = shapes.mantissa[source + k]
                    values.exponent[own + k] = shapes.exponent[source + k]
                continue
            work.digits[last] = block
            write_leaf(lattice, terms, counts, work, count)
            if terms.shift == 0:
                _evaluate_one(lattice, terms, values, work, count, own, maximize)
            else:
                _evaluate_many(lattice, terms, values, work, count, own, limit, maximize)
        if not next_line(lattice, index, is_open, work, n_fixed):
            return False
    return True


@inner_kernel
def is_grouped(lattice, terms, j):
    """Whether a column can be split into more than two blocks, other than by levels."""
    n_levels = lattice.level_start[j + 1] - lattice.level_start[j]
    return terms.most > 2 and n_levels > 2 and lattice.splits[j] and not lattice.by_levels


@inner_kernel
def _evaluate_one(lattice, terms, values, work, count, own, maximize):
    """Write the only entry of the box of `work.digits`, so far a leaf, to values[own]."""
    last = work.digits.shape[0] - 1
    digit, widest = work.digits[last], 0
    for j in range(last + 1):
        if lattice.splits[j]:
            widest = max(widest, lattice.sizes[lattice.starts[j] + work.digits[j]])
    if terms.has_factors:
        write_factors(terms, work, count, widest)
    mantissa, exponent = 0.0, ZERO
    for j in range(last + 1):
        block = lattice.starts[j] + work.digits[j]
        size = lattice.sizes[block]
        if size < 2 or not lattice.splits[j]:
            continue
        base = work.base[j] + digit * work.step[j]
        if size == 2 or terms.most == 2:
            mantissa, exponent = pair_sum(
                lattice, values, block, base, work.stride[j], maximize, mantissa, exponent
            )
        else:
            add_column(lattice, terms, values, work, j, base, 1, maximize)
    if mantissa > 0.0:
        mantissa, exponent = normalized(mantissa, exponent)
        mantissa, exponent = added(
            work.total[0], work.total_exponent[0],
            mantissa * work.factor[2], exponent + work.factor_exponent[2], maximize,
        )  # fmt: skip
    else:
        mantissa, exponent = work.total[0], work.total_exponent[0]
    values.mantissa[own], values.exponent[own] = normalized(mantissa, exponent)


@inner_kernel
def _evaluate_many(lattice, terms, values, work, count, own, limit, maximize):
    """Write the entries of the box of `work.digits`, so far a leaf, from values[own] on."""
    last = work.digits.shape[0] - 1
    digit = work.digits[last]
    for k in range(1, limit):
        work.total[k], work.total_exponent[k] = 0.0, ZERO
    if terms.has_factors:
        write_factors(terms, work, count, work.factor.shape[0] - 1)
    for j in range(last + 1):
        if lattice.splits[j] and can_split(lattice, terms, j, work.digits[j], limit):
            base = work.base[j] + digit * work.step[j]
            add_column(lattice, terms, values, work, j, base, limit, maximize)
    for k in range(limit):
        values.mantissa[own + k], values.exponent[own + k] = normalized(
            work.total[k], work.total_exponent[k]
        )


@inner_kernel
def add_column(lattice, terms, values, work, j, base, limit, maximize):
    """Add the splits of one column to the box's entries."""
    block = work.digits[j]
    size = lattice.sizes[lattice.starts[j] + block]
    bit = 1 << j if terms.shift == UNION else 0
    fewest, most, region = 2, min(terms.most, size), work.side[0]
    if lattice.by_levels:
        level_products(lattice, terms, values, work, j, base, work.stride[j], limit, maximize)
        fewest, most, block = size, size, 0
    elif j == work.digits.shape[0] - 1 and is_grouped(lattice, terms, j):
        region = 0  # computed when the line reached this block
    else:
        all_sums(
            lattice, terms, values, work, j, block, base, work.stride[j], limit, maximize, region
        )
    for b in range(fewest, most + 1):
        at = row_of(terms, work, region, block, b)
        add_scaled(terms, work, at, b, limit, bit, maximize)


@inner_kernel
def can_split(lattice, terms, j, kept, limit):
    """Whether a tree below a box of at most `limit` entries can split column j."""
    whole = lattice.starts[j + 1] - lattice.starts[j] - 1
    n_levels = lattice.level_start[j + 1] - lattice.level_start[j]
    if lattice.by_levels:
        return kept == whole and n_levels > 1 and (terms.shift != 1 or limit >= n_levels)
    return lattice.sizes[lattice.starts[j] + kept] > 1 and (terms.shift != 1 or limit > 1)
