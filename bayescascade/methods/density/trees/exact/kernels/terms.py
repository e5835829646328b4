"""The closed forms of one box, as a leaf and split, and the number format of the recursion.

Logarithms are sums of two floats, see `doubles`. Log gamma functions are in tables if weights are
integers. Their array entries are converted to floats, because interpreted kernels would take three
times longer with NumPy's numbers. Positive numbers of any size, ``mantissa * 2**(512 * exponent)``,
make sums of products without exp. A stored mantissa lies in [2**-256, 2**256), so a product of two
cannot overflow or vanish. A term more than three exponents below a sum is at most 2**-512 of it,
and it is dropped.
"""

from math import exp, floor

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.exact.kernels.doubles import (
    LN_2,
    LN_2_LOW,
    log_gamma,
    log_of,
    plus,
    times,
)
from bayescascade.methods.density.trees.exact.kernels.layout import Array, TermArrays

UNIT, _UNIT_LOW = 512 * LN_2, 512 * LN_2_LOW
ZERO = -(1 << 60)  # exponent of 0, far below any other
_LOW, _HIGH = 2.0**-256, 2.0**256
_DOWN, _UP = 2.0**-512, 2.0**512


@inner_kernel
def from_log(value, low):
    """Return exp(value + low), off by at most 4 units of rounding."""
    exponent = floor(value / UNIT + 0.5)
    whole, whole_low = times(float(exponent), 0.0, UNIT, _UNIT_LOW)
    value, low = plus(value, low, -whole, -whole_low)
    mantissa = exp(value)
    return mantissa + mantissa * low, int(exponent)


@inner_kernel
def normalized(mantissa, exponent):
    """Return the same number with its mantissa in range; it was in [2**-700, 2**700)."""
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
    """Return a number as a share of one that is at least as large; mantissas below 2**512."""
    if exponent < whole_exponent:
        return mantissa * _lowered(whole_exponent - exponent) / whole
    if exponent > whole_exponent:
        return mantissa / (whole * _lowered(exponent - whole_exponent))
    return mantissa / whole


@inner_kernel
def unscaled(mantissa, exponent):
    """Return a number as a float; its exponent is at most 1."""
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
    """lnG(multiple alpha + count), from the table if it is there."""
    index = int(count)
    if index < table.shape[1] and count == index:
        return float(table[multiple, index, 0]), float(table[multiple, index, 1])
    high, low = times(float(multiple), 0.0, alpha, 0.0)
    high, low = plus(high, low, count, 0.0)
    return log_gamma(high, low)


@inner_kernel
def log_rise(table, alpha, multiple, count):
    """lnG(multiple alpha + count) - lnG(multiple alpha)."""
    high, low = _log_gamma(table, alpha, multiple, count)
    none, none_low = _log_gamma(table, alpha, multiple, 0.0)
    return plus(high, low, -none, -none_low)


@inner_kernel
def write_leaf(lattice, terms, counts, work, count):
    """Write the value of the box of `work.digits` as a leaf, with its share, to the total."""
    value, low = log_rise(terms.log_gamma, terms.alpha, 1, count)
    value, low = plus(value, low, terms.per_leaf, 0.0)
    if terms.is_generative:
        ways = 0.0
        for j in range(work.digits.shape[0]):
            ways += lattice.ways[lattice.starts[j] + work.digits[j]]
        value, low = find_ways(terms, work, ways, value, low)
    if count > 0.0:
        last = work.digits.shape[0] - 1
        for j in range(last + 1):
            block = lattice.starts[j] + work.digits[j]
            if not terms.independent or lattice.sizes[block] == 1:
                width, width_low = lattice.log_width[block, 0], lattice.log_width[block, 1]
                part, part_low = times(-count, 0.0, float(width), float(width_low))
            else:
                base = work.count_base[j] + work.digits[last] * work.count_step[j]
                part, part_low = _log_inside(
                    lattice, terms, counts, count, j, block, base, work.count_stride[j]
                )
            value, low = plus(value, low, part, part_low)
    work.total[0], work.total_exponent[0] = from_log(value, low)


@inner_kernel
def _log_inside(lattice, terms, counts, count, j, block, base, stride):
    """Log factor of the levels of one column inside an independent leaf."""
    table, alpha = terms.leaf_log_gamma, terms.leaf_alpha
    value, low = log_rise(table, alpha, lattice.sizes[block], count)
    value, low = -value, -low
    for i in range(lattice.code_start[block], lattice.code_start[block + 1]):
        single = lattice.single[lattice.level_start[j] + lattice.codes[i]]
        inside = float(counts[base + single * stride])
        part, part_low = log_rise(table, alpha, 1, inside)
        value, low = plus(value, low, part, part_low)
        at = lattice.starts[j] + single
        width, width_low = lattice.log_width[at, 0], lattice.log_width[at, 1]
        part, part_low = times(-inside, 0.0, float(width), float(width_low))
        value, low = plus(value, low, part, part_low)
    return value, low


@inner_kernel
def find_ways(terms, work, ways, value, low):
    """Write `per_way` of a box with this many splits; return its log value as a leaf."""
    work.per_way[0] = ways**-terms.power if ways > 0.0 else 0.0
    if ways > 0.0:
        value, low = plus(value, low, terms.log_stop[0], terms.log_stop[1])
    return value, low


@inner_kernel
def write_factors(terms, work, count, most):
    """Write the factors of splits into b <= most branches, for the box last written as a leaf."""
    share, share_low = log_rise(terms.log_gamma, terms.alpha, 1, count)
    for i in range(terms.branches.shape[0]):
        b = terms.branches[i]
        if b > most:
            break
        mantissa, exponent = _factor(terms, share, share_low, b, count)
        if terms.is_generative:
            mantissa, exponent = normalized(mantissa * work.per_way[0], exponent)
        work.factor[b], work.factor_exponent[b] = mantissa, exponent


@inner_kernel
def _factor(terms, share, share_low, b, count):
    """Return the factor of a split into b branches, from the log of the box's own share."""
    value, low = terms.log_split[b, 0], terms.log_split[b, 1]
    if terms.is_branch:
        more, more_low = _log_gamma(terms.log_gamma, terms.alpha, b, count)
        more, more_low = plus(share, share_low, -more, -more_low)
        value, low = plus(more, more_low, value, low)
    return from_log(value, low)


@kernel
def list_factors(terms: TermArrays, listed: Array, mantissas: Array, exponents: Array) -> None:
    """Write the factors of splits of `listed` numbers of rows into b branches, (B + 1, G)."""
    for n in listed:
        share, share_low = log_rise(terms.log_gamma, terms.alpha, 1, float(n))
        for i in range(terms.branches.shape[0]):
            b = terms.branches[i]
            mantissas[b, n], exponents[b, n] = _factor(terms, share, share_low, b, float(n))


@kernel
def list_rises(log_gamma: Array, listed: Array, out: Array) -> None:
    """Write the differences of the `listed` sums of two floats, of (n, 2), from the first."""
    for n in listed:
        out[n, 0], out[n, 1] = plus(
            log_gamma[n, 0], log_gamma[n, 1], -log_gamma[0, 0], -log_gamma[0, 1]
        )


@kernel
def list_log_gamma(alpha: float, multiple: int, power: float, listed: Array, out: Array) -> None:
    """Write power * lnG(multiple alpha + n) for the `listed` n; out (.., 2)."""
    start, start_low = times(float(multiple), 0.0, alpha, 0.0)
    for i in range(listed.size):
        high, low = plus(start, start_low, float(listed[i]), 0.0)
        high, low = log_gamma(high, low)
        out[i, 0], out[i, 1] = times(high, low, power, 0.0)


@kernel
def list_log_splits(rate: float, alpha: float, power: float, out: Array) -> None:
    """Write the log factors of b = 1, 2, .. branches without rows, times a power, to out.

    -rate + b ln rate - ln b! + lnG(b alpha); for rate 0, only lnG(b alpha).
    """
    log_rate, log_rate_low = log_of(rate, 0.0) if rate > 0.0 else (0.0, 0.0)
    for b in range(1, out.shape[0]):
        high, low = 0.0, 0.0
        if rate > 0.0:
            high, low = times(float(b), 0.0, log_rate, log_rate_low)
            high, low = plus(high, low, -rate, 0.0)
            more, more_low = log_gamma(b + 1.0, 0.0)
            high, low = plus(high, low, -more, -more_low)
        more, more_low = times(float(b), 0.0, alpha, 0.0)
        more, more_low = log_gamma(more, more_low)
        high, low = plus(high, low, more, more_low)
        out[b, 0], out[b, 1] = times(high, low, power, 0.0)


@kernel
def add_log_of(high: float, low: float, power: float, out: Array) -> None:
    """Add the log of a number, a sum of two floats, times a power, to sums, (n, 2)."""
    more, more_low = log_of(high, low)
    more, more_low = times(more, more_low, power, 0.0)
    for i in range(out.shape[0]):
        out[i, 0], out[i, 1] = plus(out[i, 0], out[i, 1], more, more_low)


@kernel
def list_log_weights(rate: float, alpha: float, total: float, numbers: Array, out: Array) -> None:
    """Write ln w_K for numbers K of leaves, without -lnG(total + alpha), to out (n,).

    ``w_K = exp(-rate) rate**K / K! G(K alpha) / G(total + K alpha)``, and for rate 0 without
    the Poisson.
    """
    log_rate, log_rate_low = log_of(rate, 0.0) if rate > 0.0 else (0.0, 0.0)
    one, one_low = plus(total, 0.0, alpha, 0.0)
    common, common_low = log_gamma(one, one_low)
    common, common_low = plus(common, common_low, -rate, 0.0)
    for i in range(numbers.shape[0]):
        k = float(numbers[i])
        value, low = times(k, 0.0, log_rate, log_rate_low)
        value, low = plus(value, low, common, common_low)
        if rate > 0.0:
            more, more_low = log_gamma(k + 1.0, 0.0)
            value, low = plus(value, low, -more, -more_low)
        more, more_low = times(k, 0.0, alpha, 0.0)
        whole, whole_low = plus(more, more_low, total, 0.0)
        more, more_low = log_gamma(more, more_low)
        value, low = plus(value, low, more, more_low)
        whole, whole_low = log_gamma(whole, whole_low)
        value, low = plus(value, low, -whole, -whole_low)
        out[i] = value + low
