"""Positive numbers of any size, ``mantissa * 2**(512 * exponent)``: sums of products without exp.

A stored mantissa lies in [2**-256, 2**256), so a product of two can neither overflow nor vanish. A
term more than three exponents below a sum is at most 2**-512 of it and dropped.
"""

from math import exp, floor

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.exact.kernels.twofold import LN_2, LN_2_LOW, plus, times

__all__ = ["UNIT", "ZERO", "added", "from_log", "normalized", "share"]

UNIT, _UNIT_LOW = 512 * LN_2, 512 * LN_2_LOW
ZERO = -(1 << 60)  # exponent of 0, far below any other
_LOW, _HIGH = 2.0**-256, 2.0**256
_DOWN, _UP = 2.0**-512, 2.0**512


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
def _lowered(n_exponents):
    if n_exponents == 1:
        return _DOWN
    return _DOWN * _DOWN if n_exponents == 2 else 0.0
