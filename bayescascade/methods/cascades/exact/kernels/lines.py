"""The short way through a line of boxes: one entry each, whole weights, uniform leaves.

Boxes that differ only in the last column's block have the same splits of the other columns, with
children as far away: these are listed once a line. Logarithms of few rows have digits enough in one
float, and what depends on nothing but the number of rows is looked up.
"""

from math import exp, floor

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cascades.exact.kernels.boxes import (
    find_line,
    find_shape,
    first_line,
    next_line,
)
from bayescascade.methods.cascades.exact.kernels.layout import (
    Array,
    IndexArrays,
    LatticeArrays,
    Scaled,
    Tables,
    TermArrays,
    Work,
)
from bayescascade.methods.cascades.exact.kernels.terms import UNIT, ZERO, added, normalized

__all__ = ["evaluate_lines"]

_PER_UNIT = 1.0 / UNIT


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
    work: Work,
    maximize: bool,
    n_fixed: int,
    is_first: bool,
    n_lines: int,
) -> bool:
    """Do what `boxes.evaluate_boxes` does, of boxes with one entry."""
    if is_first:
        first_line(lattice, index, is_open, work, n_fixed)
    last = work.digits.shape[0] - 1
    start, stop = lattice.starts[last], lattice.starts[last + 1]
    for _ in range(n_lines):
        find_line(index, work, work.base, work.stride)
        find_line(counts_index, work, work.count_base, work.count_stride)
        shape, shape_step = find_shape(lattice, shapes_index, work)
        log_volume = 0.0
        for j in range(last):
            log_volume += lattice.log_width[lattice.starts[j] + work.digits[j], 0]
        _list_children(lattice, index, terms, tables, work)
        for block in range(stop - start):
            if not is_open[start + block]:
                continue
            own = work.base[last] + block * work.stride[last]
            count = np.float64(counts[work.count_base[last] + block * work.count_stride[last]])
            if count == 0.0:
                source = shape + lattice.shape[start + block] * shape_step
                values.mantissa[own] = shapes.mantissa[source]
                values.exponent[own] = shapes.exponent[source]
                continue
            n_rows = np.int64(count)
            value = tables.leaf[n_rows] + terms.per_leaf
            value -= count * (log_volume + lattice.log_width[start + block, 0])
            power = floor(value * _PER_UNIT + 0.5)
            mantissa, exponent = exp(value - power * UNIT), np.int64(power)
            begin = 0
            for i in range(terms.branches.shape[0]):
                b = terms.branches[i]
                more, more_exponent = 0.0, ZERO
                end = work.ends[b]
                if b == 2:
                    more, more_exponent = _pairs(
                        values, work.places, begin, end, own, maximize, more, more_exponent
                    )
                else:
                    more, more_exponent = _products(
                        values, work.places, begin, end, own, b, maximize, more, more_exponent
                    )
                begin = end
                if lattice.splits[last]:
                    more, more_exponent = _own_products(
                        tables, values, start + block, work.base[last], work.stride[last], b,
                        maximize, more, more_exponent,
                    )  # fmt: skip
                if more == 0.0:
                    continue
                more, more_exponent = normalized(more, more_exponent)
                if terms.is_branch:
                    more *= tables.factor[b, n_rows]
                    more_exponent += np.int64(tables.exponent[b, n_rows])
                mantissa, exponent = added(mantissa, exponent, more, more_exponent, maximize)
            values.mantissa[own], values.exponent[own] = normalized(mantissa, exponent)
        if not next_line(lattice, index, is_open, work, n_fixed):
            return False
    return True


@inner_kernel
def _list_children(lattice, index, terms, tables, work):
    """List the children by splits of the outer columns, by numbers of branches."""
    last = work.digits.shape[0] - 1
    n = 0
    for i in range(terms.branches.shape[0]):
        b = terms.branches[i]
        for j in range(last):
            if not lattice.splits[j]:
                continue
            step = index.step[j, work.cost[j]]
            block = lattice.starts[j] + work.digits[j]
            for way in range(tables.start[block], tables.start[block + 1]):
                if tables.size[way] != b:
                    continue
                for at in range(tables.at[way], tables.at[way] + b):
                    work.places[n] = (tables.parts[at] - work.digits[j]) * step
                    n += 1
        work.ends[b] = n


@inner_kernel
def _pairs(values, places, begin, end, own, maximize, mantissa, exponent):
    """Add the products of pairs of children."""
    for at in range(begin, end, 2):
        left, right = own + places[at], own + places[at + 1]
        product = values.mantissa[left] * values.mantissa[right]
        power = np.int64(values.exponent[left]) + np.int64(values.exponent[right])
        if power == exponent:
            mantissa = max(mantissa, product) if maximize else mantissa + product
        else:
            mantissa, exponent = added(mantissa, exponent, product, power, maximize)
    return mantissa, exponent


@inner_kernel
def _products(values, places, begin, end, own, b, maximize, mantissa, exponent):
    """Add the products of b children each."""
    for at in range(begin, end, b):
        product, power = 1.0, 0
        for i in range(at, at + b):
            child = own + places[i]
            product, power = normalized(
                product * values.mantissa[child], power + np.int64(values.exponent[child])
            )
        mantissa, exponent = added(mantissa, exponent, product, power, maximize)
    return mantissa, exponent


@inner_kernel
def _own_products(tables, values, block, base, stride, b, maximize, mantissa, exponent):
    """Add the products of b boxes of the line itself, that share out a block."""
    for way in range(tables.start[block], tables.start[block + 1]):
        if tables.size[way] != b:
            continue
        product, power = 1.0, 0
        for at in range(tables.at[way], tables.at[way] + b):
            child = base + tables.parts[at] * stride
            product, power = normalized(
                product * values.mantissa[child], power + np.int64(values.exponent[child])
            )
        mantissa, exponent = added(mantissa, exponent, product, power, maximize)
    return mantissa, exponent
