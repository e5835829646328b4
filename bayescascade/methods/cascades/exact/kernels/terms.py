"""The closed forms of one box: what it is worth as a leaf, and what splitting it costs."""

from math import lgamma

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.exact.kernels.scaled import from_log

__all__ = ["log_leaf", "write_factors"]


@inner_kernel
def _log_gamma(table, alpha, multiple, count):
    """lnG(multiple alpha + count), from the table where weights are whole."""
    index = np.int64(count)
    if index < table.shape[1]:
        return table[multiple, index]
    return lgamma(multiple * alpha + count)


@inner_kernel
def _log_share(terms, count):
    """Log of what the Dirichlet above a box gives its rows: lnG(count + alpha) - lnG(alpha)."""
    return _log_gamma(terms.log_gamma, terms.alpha, 1, count) - _log_gamma(
        terms.log_gamma, terms.alpha, 1, 0.0
    )


@inner_kernel
def log_leaf(lattice, terms, counts, work, count, log_volume):
    """Log of what the box of `work.digits` is worth as a leaf, its share included."""
    value = _log_share(terms, count)
    if terms.is_branch:
        value -= terms.rate
    if count == 0.0:
        return value
    if not terms.independent:
        return value - count * log_volume
    last = work.digits.shape[0] - 1
    for j in range(last + 1):
        block = lattice.starts[j] + work.digits[j]
        level = lattice.level_start[j]
        if lattice.sizes[block] == 1:
            code = lattice.codes[lattice.code_start[block]]
            value -= count * lattice.log_level_width[level + code]
            continue
        value += _log_gamma(terms.leaf_log_gamma, terms.leaf_alpha, lattice.sizes[block], 0.0)
        value -= _log_gamma(terms.leaf_log_gamma, terms.leaf_alpha, lattice.sizes[block], count)
        base = work.count_base[j] + work.digits[last] * work.count_step[j]
        none = _log_gamma(terms.leaf_log_gamma, terms.leaf_alpha, 1, 0.0)
        for i in range(lattice.code_start[block], lattice.code_start[block + 1]):
            code = lattice.codes[i]
            inside = counts[base + lattice.single[level + code] * work.count_stride[j]]
            value += _log_gamma(terms.leaf_log_gamma, terms.leaf_alpha, 1, inside) - none
            value -= inside * lattice.log_level_width[level + code]
    return value


@inner_kernel
def write_factors(terms, work, count, most):
    """Write what a split of a box into b <= most branches is worth, but for the branches."""
    share = _log_share(terms, count)
    for i in range(terms.branches.shape[0]):
        b = terms.branches[i]
        if b > most:
            break
        value = share + terms.log_split[b]
        value -= _log_gamma(terms.log_gamma, terms.alpha, b, count)
        work.factor[b], work.factor_exponent[b] = from_log(value)
