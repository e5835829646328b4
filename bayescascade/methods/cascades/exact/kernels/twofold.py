"""Arithmetic of twice a float's digits: numbers that are the sum of two floats, high + low.

The log density of 1e12 rows is some 1e13 nats, and that of trees from which to choose differs by
single nats: in floats a hundredth would be left to chance. Sums and products as of Dekker (1971).
"""

from math import frexp, ldexp

from bayescascade.base.jit import inner_kernel

__all__ = ["LN_2", "LN_2_LOW", "log_gamma", "plus", "times"]

LN_2, LN_2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_HALF_LN_2_PI, _HALF_LN_2_PI_LOW = 0.9189385332046728, -3.8782941580672414e-17
_SPLITTER = 2.0**27 + 1.0


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
