"""The short way through a line of boxes, for single entries, integer weights, uniform leaves.

The distance from a box's place to a child's depends only on the split, so it is looked up in a
table, like all values that depend only on the number of rows.
"""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.exact.kernels.boxes import (
    find_line,
    find_shape,
    first_line,
    next_line,
)
from bayescascade.methods.density.trees.exact.kernels.doubles import plus, times
from bayescascade.methods.density.trees.exact.kernels.layout import (
    Array,
    IndexArrays,
    LatticeArrays,
    RecursionWorkspace,
    Scaled,
    Tables,
    TermArrays,
)
from bayescascade.methods.density.trees.exact.kernels.terms import (
    ZERO,
    added,
    find_ways,
    from_log,
    normalized,
)


@kernel
def evaluate_lines(
    lattice: LatticeArrays,
    index: IndexArrays,
    is_open: Array,
    terms: TermArrays,
    tables: Tables,
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
    """Do the same as `boxes.evaluate_boxes` for boxes with one entry; writes `is_wrapped`."""
    if is_first:
        first_line(lattice, index, is_open, work, n_fixed)
    last = work.digits.shape[0] - 1
    start, stop = lattice.starts[last], lattice.starts[last + 1]
    mantissas, exponents = values.mantissa, values.exponent
    children, places = tables.children, work.places
    for _ in range(n_lines):
        find_line(index, work, work.base, work.stride)
        find_line(counts_index, work, work.count_base, work.count_stride)
        shape, shape_step = find_shape(lattice, shapes_index, work)
        volume, volume_low, ways = outer_volume(lattice, work)
        list_splits(lattice, terms, tables, work)
        for block in range(stop - start):
            if not is_open[start + block]:
                continue
            own = work.base[last] + block * work.stride[last]
            count = np.float64(counts[work.count_base[last] + block * work.count_stride[last]])
            if count == 0.0:
                source = shape + lattice.shape[start + block] * shape_step
                mantissas[own] = shapes.mantissa[source]
                exponents[own] = shapes.exponent[source]
                if exponents[own] != shapes.exponent[source]:
                    work.is_wrapped[0] = True
                continue
            n_rows = np.int64(count) if terms.is_branch else 0
            mantissa, exponent = leaf_of(
                lattice, terms, tables, work, count, volume, volume_low, ways, start + block
            )
            for i in range(terms.branches.shape[0]):
                b = terms.branches[i]
                more, more_exponent = 0.0, ZERO
                own_splits = work.ends[b]
                if lattice.splits[last]:
                    places[own_splits] = tables.begin[b, start + block]
                    places[own_splits + 1] = tables.end[b, start + block]
                for split in range(work.begins[b], own_splits + 2, 2):
                    if b > 2:
                        more, more_exponent = _products(
                            mantissas, exponents, children, places[split], places[split + 1], own,
                            b, maximize, more, more_exponent,
                        )  # fmt: skip
                        continue
                    for at in range(places[split], places[split + 1], 2):
                        left = np.uint64(own + children[at])
                        right = np.uint64(own + children[at + 1])
                        product = mantissas[left] * mantissas[right]
                        power = np.int64(exponents[left]) + np.int64(exponents[right])
                        if power == more_exponent:
                            more = max(more, product) if maximize else more + product
                        else:
                            more, more_exponent = added(
                                more, more_exponent, product, power, maximize
                            )
                if more == 0.0:
                    continue
                more, more_exponent = normalized(more, more_exponent)
                if terms.has_factors:
                    more *= tables.factor[b, n_rows]
                    more_exponent += np.int64(tables.exponent[b, n_rows])
                if terms.is_generative:
                    more, more_exponent = normalized(more * work.per_way[0], more_exponent)
                mantissa, exponent = added(mantissa, exponent, more, more_exponent, maximize)
            mantissa, exponent = normalized(mantissa, exponent)
            mantissas[own], exponents[own] = mantissa, exponent
            if exponents[own] != exponent:
                work.is_wrapped[0] = True
        if not next_line(lattice, index, is_open, work, n_fixed):
            return False
    return True


@inner_kernel
def outer_volume(lattice, work):
    """Return log volume, and number of splits, of a line's boxes, without the last column."""
    volume, low, ways = 0.0, 0.0, 0.0
    for j in range(work.digits.shape[0] - 1):
        block = lattice.starts[j] + work.digits[j]
        volume, low = plus(volume, low, lattice.log_width[block, 0], lattice.log_width[block, 1])
        ways += lattice.ways[block]
    return volume, low, ways


@inner_kernel
def leaf_of(lattice, terms, tables, work, count, volume, volume_low, ways, block):
    """Return a box's value as a leaf, given the block of the last column, and write `per_way`."""
    volume, volume_low = plus(
        volume, volume_low, lattice.log_width[block, 0], lattice.log_width[block, 1]
    )
    volume, volume_low = times(-count, 0.0, volume, volume_low)
    n = np.int64(count)
    value, low = plus(tables.leaf[n, 0], tables.leaf[n, 1], terms.per_leaf, 0.0)
    if terms.is_generative:
        value, low = find_ways(terms, work, ways + lattice.ways[block], value, low)
    value, low = plus(value, low, volume, volume_low)
    return from_log(value, low)


@inner_kernel
def list_splits(lattice, terms, tables, work):
    """List where partitions of a line's blocks begin and end; the last column's follow later."""
    n = 0
    for i in range(terms.branches.shape[0]):
        b = terms.branches[i]
        work.begins[b] = n
        for j in range(work.digits.shape[0] - 1):
            block = lattice.starts[j] + work.digits[j]
            if lattice.splits[j] and tables.begin[b, block] < tables.end[b, block]:
                work.places[n], work.places[n + 1] = tables.begin[b, block], tables.end[b, block]
                n += 2
        work.ends[b] = n
        work.places[n], work.places[n + 1] = 0, 0
        n += 2


@inner_kernel
def _products(
    mantissas, exponents, children, begin, end, own, b, maximize, mantissa, exponent
):  # fmt: skip
    """Add the products of the b children over some splits."""
    for at in range(begin, end, b):
        product, power = 1.0, 0
        for i in range(at, at + b):
            child = own + children[i]
            product, power = normalized(
                product * mantissas[child], power + np.int64(exponents[child])
            )
        mantissa, exponent = added(mantissa, exponent, product, power, maximize)
    return mantissa, exponent
