"""The closed forms of one box, as a leaf and split, and the numbers that the recursion reckons in.

Logarithms have twice a float's digits: they are the sum of two floats, high + low. The log density
of 1e12 rows is some 1e13 nats, and that of trees from which to choose differs by single nats: in
floats a hundredth would be left to chance. Sums and products as of Dekker (1971).

Positive numbers of any size, ``mantissa * 2**(512 * exponent)``, make sums of products without exp.
A stored mantissa lies in [2**-256, 2**256), so a product of two can neither overflow nor vanish. A
term more than three exponents below a sum is at most 2**-512 of it and dropped.
"""

from math import exp, floor, frexp, ldexp, lgamma

import numpy as np

from bayescascade.base.jit import inner_kernel

__all__ = [
    "UNIT",
    "ZERO",
    "added",
    "from_log",
    "log_gamma",
    "log_rise",
    "normalized",
    "plus",
    "share",
    "times",
    "unscaled",
    "write_factors",
    "write_leaf",
]

LN_2, LN_2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_HALF_LN_2_PI, _HALF_LN_2_PI_LOW = 0.9189385332046728, -3.8782941580672414e-17
_SPLITTER = 2.0**27 + 1.0

UNIT, _UNIT_LOW = 512 * LN_2, 512 * LN_2_LOW
ZERO = -(1 << 60)  # exponent of 0, far below any other
_LOW, _HIGH = 2.0**-256, 2.0**256
_DOWN, _UP = 2.0**-512, 2.0**512
_MANY = 1 << 16  # rows from which on a float has too few digits for their lnG


@inner_kernel
def plus(high, low, more, more_low):
    """Return a sum."""
    total = high + more
    part = total - high
    rest = (high - (total - part)) + (more - part) + (low + more_low)
    return _joined(total, rest)


@inner_kernel
def times(high, low, more, more_low):
    """Return a product."""
    product = high * more
    left, left_low = _halves(high)
    right, right_low = _halves(more)
    rest = left * right - product + left * right_low + left_low * right + left_low * right_low
    return _joined(product, rest + (high * more_low + low * more))


@inner_kernel
def _over(high, low, more, more_low):
    """Return a quotient."""
    quotient = high / more
    back, back_low = times(quotient, 0.0, more, more_low)
    rest, _ = plus(high, low, -back, -back_low)
    return _joined(quotient, rest / more)


@inner_kernel
def _joined(high, low):
    total = high + low
    return total, low - (total - high)


@inner_kernel
def _halves(number):
    """Return two floats of half the digits."""
    large = _SPLITTER * number
    high = large - (large - number)
    return high, number - high


@inner_kernel
def _log(high, low):
    """Return a logarithm: 2 artanh((m - 1) / (m + 1)) + power ln 2, m in [0.7, 1.42)."""
    m, power = frexp(high)
    if m < 0.7071:
        m, power = 2.0 * m, power - 1
    low = ldexp(low, -power)
    above, above_low = plus(m, low, -1.0, 0.0)
    below, below_low = plus(m, low, 1.0, 0.0)
    ratio, ratio_low = _over(above, above_low, below, below_low)
    square, square_low = times(ratio, ratio_low, ratio, ratio_low)
    total, total_low = 0.0, 0.0
    for odd in range(41, 0, -2):  # the next term would be 1e-34
        term, term_low = _over(2.0, 0.0, float(odd), 0.0)
        total, total_low = times(total, total_low, square, square_low)
        total, total_low = plus(total, total_low, term, term_low)
    total, total_low = times(total, total_low, ratio, ratio_low)
    whole, whole_low = times(float(power), 0.0, LN_2, LN_2_LOW)
    return plus(whole, whole_low, total, total_low)


@inner_kernel
def log_gamma(high, low):
    """Return lnG of a number of at least 1e4, by Stirling's series; its next term is 3e-15."""
    value, value_low = _log(high, low)
    shifted, shifted_low = plus(high, low, -0.5, 0.0)
    value, value_low = times(value, value_low, shifted, shifted_low)
    value, value_low = plus(value, value_low, -high, -low)
    return plus(value, value_low, _HALF_LN_2_PI, _HALF_LN_2_PI_LOW + 1.0 / (12.0 * high))


@inner_kernel
def from_log(value, low):
    """Return exp(value + low)."""
    exponent = floor(value / UNIT + 0.5)
    whole, whole_low = times(float(exponent), 0.0, UNIT, _UNIT_LOW)
    value, low = plus(value, low, -whole, -whole_low)
    return exp(value + low), int(exponent)


@inner_kernel
def normalized(mantissa, exponent):
    """Return the same number with its mantissa in range, from one in [2**-700, 2**700)."""
    if mantissa >= _HIGH:
        return mantissa * _DOWN, exponent + 1
    if mantissa < _LOW:
        if mantissa == 0.0:
            return 0.0, ZERO
        return mantissa * _UP, exponent - 1
    return mantissa, exponent


@inner_kernel
def added(mantissa, exponent, more, more_exponent, maximize):
    """Return the sum of two numbers, or the larger; mantissas in [2**-512, 2**700)."""
    if more_exponent > exponent:
        mantissa *= _lowered(more_exponent - exponent)
        exponent = more_exponent
    elif more_exponent < exponent:
        more *= _lowered(exponent - more_exponent)
    if maximize:
        return max(mantissa, more), exponent
    return mantissa + more, exponent


@inner_kernel
def share(mantissa, exponent, whole, whole_exponent):
    """Return a number as a share of one that is as large or larger; mantissas below 2**512."""
    if exponent < whole_exponent:
        return mantissa * _lowered(whole_exponent - exponent) / whole
    if exponent > whole_exponent:
        return mantissa / (whole * _lowered(exponent - whole_exponent))
    return mantissa / whole


@inner_kernel
def unscaled(mantissa, exponent):
    """Return a number as a float, of an exponent of at most 1."""
    if exponent == 0:
        return mantissa
    return mantissa * (_UP if exponent > 0 else _lowered(-exponent))


@inner_kernel
def _lowered(n_exponents):
    if n_exponents == 1:
        return _DOWN
    return _DOWN * _DOWN if n_exponents == 2 else 0.0


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
def log_rise(table, alpha, multiple, count):
    """lnG(multiple alpha + count) - lnG(multiple alpha)."""
    high, low = _log_gamma(table, alpha, multiple, count)
    none, none_low = _log_gamma(table, alpha, multiple, 0.0)
    return plus(high, low, -none, -none_low)


@inner_kernel
def write_leaf(lattice, terms, counts, work, count):
    """Write what the box of `work.digits` is worth as a leaf, its share included, to the total."""
    value, low = log_rise(terms.log_gamma, terms.alpha, 1, count)
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
    value, low = log_rise(table, alpha, lattice.sizes[block], count)
    value, low = -value, -low
    for i in range(lattice.code_start[block], lattice.code_start[block + 1]):
        single = lattice.single[lattice.level_start[j] + lattice.codes[i]]
        inside = counts[base + single * stride]
        part, part_low = log_rise(table, alpha, 1, inside)
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
    share, share_low = log_rise(terms.log_gamma, terms.alpha, 1, count)
    for i in range(terms.branches.shape[0]):
        b = terms.branches[i]
        if b > most:
            break
        value, low = _log_gamma(terms.log_gamma, terms.alpha, b, count)
        value, low = plus(share, share_low, -value, -low)
        value, low = plus(value, low, terms.log_split[b], 0.0)
        work.factor[b], work.factor_exponent[b] = from_log(value, low)
