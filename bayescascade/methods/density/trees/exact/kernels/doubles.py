"""Logarithms with twice a float's digits: the sum of two floats, high + low.

The log density of 1e12 rows is about 1e13 nats, and trees differ by single nats. Sums of floats
would have errors of hundredths. Sums and products follow Dekker (1971).

**Rounding**, with u = 2**-53, of high and low that do not overlap:

* `plus` and `times` are off by at most 4 u**2 times the sizes of what is added or multiplied;
* `log_of` is off by 1e-27 plus 8 u**2 times the logarithm: in the series, the part in a single
  float is below 2.2e-12, and the omitted part below 1e-33;
* `log_gamma` is off by 4e-18, 1e-27 x and 32 u**2 ``x ln x``: from 20 on, Stirling's series ends
  before a term of 2e-23, and its first term, at most 1/240, has the digits of one float.
"""

from decimal import Decimal, localcontext
from math import frexp, ldexp

import numpy as np

from bayescascade.base.jit import inner_kernel, remembered

LN_2, LN_2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_HALF_LN_2_PI, _HALF_LN_2_PI_LOW = 0.9189385332046728, -3.8782941580672414e-17
_THIRD, _THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17
_SPLITTER = 2.0**27 + 1.0
_LARGE = 20.0  # from here on, Stirling's series is used
_PARTS, _FIRST = 64, 45  # multiples of 1/64 from 45/64 on, with logarithms in a table


def _listed_logs() -> tuple[np.ndarray, np.ndarray]:
    """Return the logs of 45/64, 46/64, ..., 91/64 as sums of two floats."""
    with localcontext(prec=50):
        logs = [(Decimal(n) / _PARTS).ln() for n in range(_FIRST, 92)]
        high = np.array([float(log) for log in logs])
        low = np.array([float(log - Decimal(float(log))) for log in logs])
    return high, low


_LOGS, _LOGS_LOW = _listed_logs()


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
    """Return two floats with half of the digits each."""
    large = _SPLITTER * number
    high = large - (large - number)
    return high, number - high


@inner_kernel
def log_of(high, low):
    """Return the logarithm of a number > 0: ln c + 2 artanh((m - c) / (m + c)) + power ln 2.

    m is in [0.7, 1.42), and c the multiple of 1/64 nearest to it.
    """
    m, power = frexp(high)
    if m < 0.7071:
        m, power = 2.0 * m, power - 1
    low = ldexp(low, -power)
    at = int(m * _PARTS + 0.5)
    center = at / _PARTS
    above, above_low = plus(m, low, -center, 0.0)
    below, below_low = plus(m, low, center, 0.0)
    z, z_low = _over(above, above_low, below, below_low)
    square, square_low = times(z, z_low, z, z_low)
    cube, cube_low = times(square, square_low, z, z_low)
    third, third_low = times(cube, cube_low, _THIRD, _THIRD_LOW)
    tail = square * (1 / 9 + square * (1 / 11 + square / 13))
    tail = cube * square * (1 / 5 + square * (1 / 7 + tail))
    total, total_low = plus(third, third_low, tail, 0.0)
    total, total_low = plus(z, z_low, total, total_low)
    total, total_low = plus(
        _LOGS[at - _FIRST], _LOGS_LOW[at - _FIRST], 2.0 * total, 2.0 * total_low
    )
    whole, whole_low = times(float(power), 0.0, LN_2, LN_2_LOW)
    return plus(whole, whole_low, total, total_low)


@remembered
@inner_kernel
def log_gamma(high, low):
    """Return lnG of a number > 0 by Stirling's series, for small ones by recurrence from 20 on."""
    product, product_low = 1.0, 0.0
    while high < _LARGE:
        product, product_low = times(product, product_low, high, low)
        high, low = plus(high, low, 1.0, 0.0)
    value, value_low = log_of(high, low)
    shifted, shifted_low = plus(high, low, -0.5, 0.0)
    value, value_low = times(value, value_low, shifted, shifted_low)
    value, value_low = plus(value, value_low, -high, -low)
    value, value_low = plus(value, value_low, _HALF_LN_2_PI, _HALF_LN_2_PI_LOW + _series(high))
    if product != 1.0:
        below, below_low = log_of(product, product_low)
        value, value_low = plus(value, value_low, -below, -below_low)
    return value, value_low


@inner_kernel
def _series(x):
    """Return the rest of Stirling's formula, up to 0.18 / x**17."""
    y = 1.0 / (x * x)
    return (
        1 / 12
        - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (
            691 / 360360 - y * (1 / 156 - y * 3617 / 122400)
        )))))
    ) / x  # fmt: skip
