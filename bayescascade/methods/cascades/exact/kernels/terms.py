"""The closed forms of one box: what it is worth as a leaf, and what splitting it costs.

Logarithms are pairs of floats, see `twofold`.
"""

from math import lgamma

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.exact.kernels.scaled import from_log
from bayescascade.methods.cascades.exact.kernels.twofold import log_gamma, plus, times

__all__ = ["write_factors", "write_leaf"]

_MANY = 1 << 16  # rows from which on a float has too few digits for their lnG


@inner_kernel
def _log_gamma(table, alpha, multiple, count):
    """lnG(multiple alpha + count), from the table where weights are whole."""
    if count >= _MANY:
        high, low = plus(multiple * alpha, 0.0, count, 0.0)
        return log_gamma(high, low)
    index = np.int64(count)
    if index < table.shape[1]:
        return table[multiple, index], 0.0
    return lgamma(multiple * alpha + count), 0.0


@inner_kernel
def _log_rise(table, alpha, multiple, count):
    """lnG(multiple alpha + count) - lnG(multiple alpha)."""
    high, low = _log_gamma(table, alpha, multiple, count)
    none, none_low = _log_gamma(table, alpha, multiple, 0.0)
    return plus(high, low, -none, -none_low)


@inner_kernel
def write_leaf(lattice, terms, counts, work, count):
    """Write what the box of `work.digits` is worth as a leaf, its share included, to the total."""
    value, low = _log_rise(terms.log_gamma, terms.alpha, 1, count)
    value, low = plus(value, low, terms.per_leaf, 0.0)
    if count > 0.0:
        last = work.digits.shape[0] - 1
        for j in range(last + 1):
            block = lattice.starts[j] + work.digits[j]
            if not terms.independent or lattice.sizes[block] == 1:
                part, part_low = times(
                    -count, 0.0, lattice.log_width[block, 0], lattice.log_width[block, 1]
                )
            else:
                base = work.count_base[j] + work.digits[last] * work.count_step[j]
                part, part_low = _log_inside(
                    lattice, terms, counts, count, j, block, base, work.count_stride[j]
                )
            value, low = plus(value, low, part, part_low)
    work.total[0], work.total_exponent[0] = from_log(value, low)


@inner_kernel
def _log_inside(lattice, terms, counts, count, j, block, base, stride):
    """Log of what the levels of one column are worth inside an independent leaf."""
    table, alpha = terms.leaf_log_gamma, terms.leaf_alpha
    value, low = _log_rise(table, alpha, lattice.sizes[block], count)
    value, low = -value, -low
    for i in range(lattice.code_start[block], lattice.code_start[block + 1]):
        single = lattice.single[lattice.level_start[j] + lattice.codes[i]]
        inside = counts[base + single * stride]
        part, part_low = _log_rise(table, alpha, 1, inside)
        value, low = plus(value, low, part, part_low)
        width = lattice.starts[j] + single
        part, part_low = times(
            -inside, 0.0, lattice.log_width[width, 0], lattice.log_width[width, 1]
        )
        value, low = plus(value, low, part, part_low)
    return value, low


@inner_kernel
def write_factors(terms, work, count, most):
    """Write what a split of a box into b <= most branches is worth, but for the branches."""
    share, share_low = _log_rise(terms.log_gamma, terms.alpha, 1, count)
    for i in range(terms.branches.shape[0]):
        b = terms.branches[i]
        if b > most:
            break
        value, low = _log_gamma(terms.log_gamma, terms.alpha, b, count)
        value, low = plus(share, share_low, -value, -low)
        value, low = plus(value, low, terms.log_split[b], 0.0)
        work.factor[b], work.factor_exponent[b] = from_log(value, low)
