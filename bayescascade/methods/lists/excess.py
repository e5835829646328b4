"""Differences of log gammas of large weights, without cancellation.

A part's term of the log likelihood consists of differences ``lnG(n + a) - lnG(a)``. For a billion
rows each is 2e10, with a last digit of 4e-6, but the term of a nearly pure part is only a few nats.
So each difference is written as

    lnG(n + a) - lnG(a) = n ln n - n + D(n, a)

with the *excess* D, which is as small as ``a ln n``. The other terms sum up in closed form: for
labels to minus the entropy E, for densities to ``sum_l n_l ln(n_l / n)``.

*Excess.* Let ``r(x) = lnG(x) - (x - 1/2) ln x + x - ln(2 pi) / 2``, which is given to 1.1e-16 by
the first five terms of its series, ``1 / 12x - ..``, for x >= 16. If a, or only n + a, is at least
16,

    D = n ln(1 + a / n) + (a - 1/2) ln(1 + n / a) + r(n + a) - r(a)
    D = n ln(1 + a / n) + (a - 1/2) ln(n + a) - a + ln(2 pi) / 2 + r(n + a) - lnG(a)

and otherwise by its definition. Every number here has a relative error of a few `UNIT`, and the
sizes of the numbers add up to at most `excess_sizes`,

    S(n, a) = 120 + 16 ln(1 + n + a) + 2 abs(ln a) + n ln(1 + a / n) + a ln(1 + n / a):

the last two terms bound those of the first form; in the second form ``n ln(1 + a / n) <= a < 16``,
``(a - 1/2) ln(n + a)`` and ``lnG(a) <= 28 + abs(ln a)``; below 16 all are less than 120 + 2 abs(ln
a). S also bounds the change of D by a relative change of n or a: ``n abs(psi(n + a) - ln n) <= n
ln(1 + a / n) + 1``, as ``ln x - 1 / x <= psi(x) <= ln x``, and ``a (psi(n + a) - psi(a)) <= a ln(1
+ n / a) + 1``. It grows with n, and with a for a >= 1.

So the error of D is at most `OPERATIONS` ``UNIT S``: for its longest term, ``n log1p(a / n)``, 1
for the quotient, 2 for log1p, 1 for the product; 8 for a log gamma (`guard.EVALUATED`); 6 for the
sums.

*Entropy.* ``E = -sum_c n_c ln(n_c / n)`` is added up class by class: for weights s >= x, with ``q =
x / s``, joining two classes adds ``(s + x) ln(1 + q) - x ln q``. Nothing cancels, so each has a
relative error of a few UNIT; and because ``s dE/ds <= E``, a relative error of a sum s changes E by
no more than that share. For C classes, the error of E is at most ``(OPERATIONS + C) UNIT E``.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bayescascade.base.arrays import Floats

OPERATIONS = 20.0
"""Maximum error of an excess or an entropy, in units of `guard.UNIT` times its size."""

FEW = 16.0
"""The series of ``lnG`` is exact to rounding from here on."""

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def log_excess(weights: ArrayLike, alphas: ArrayLike) -> Floats:
    """Return ``D(n, a)`` for weights n >= 0 and concentrations a > 0, nats; 0 for n = 0."""
    n, alpha = np.broadcast_arrays(np.asarray(weights, np.float64), np.asarray(alphas, np.float64))
    end = n + alpha
    with np.errstate(all="ignore"):  # in forms that are not used
        shared = n * _log_one_plus(alpha, n)
        of_many = (alpha - 0.5) * np.log1p(n / alpha) + _series(end) - _series(alpha)
        of_few = (alpha - 0.5) * np.log(end) - alpha + _HALF_LOG_2PI + _series(end)
        value = shared + np.where(alpha >= FEW, of_many, of_few - gammaln(alpha))
        direct = gammaln(end) - gammaln(alpha) - n * np.log(n) + n
    return np.where(n > 0.0, np.where(end < FEW, direct, value), 0.0)


def excess_sizes(weights: ArrayLike, alphas: ArrayLike) -> Floats:
    """Return ``S(n, a)``: a bound on the sizes of the terms and on the changes of `log_excess`."""
    n, alpha = np.broadcast_arrays(np.asarray(weights, np.float64), np.asarray(alphas, np.float64))
    with np.errstate(all="ignore"):
        shared = np.where(n > 0.0, n * _log_one_plus(alpha, n), 0.0)
        shared = shared + alpha * _log_one_plus(n, alpha)
    sizes: Floats = 120.0 + 16.0 * np.log1p(n + alpha) + 2.0 * np.abs(np.log(alpha)) + shared
    return sizes


def entropies(counts: Floats) -> Floats:
    """Return ``-sum_c n_c ln(n_c / n)``, nats, for weights >= 0 of classes on the last axis."""
    total: Floats = np.zeros(counts.shape[:-1])
    value: Floats = np.zeros(counts.shape[:-1])
    for label in range(counts.shape[-1]):
        small = np.minimum(total, counts[..., label])
        large = np.maximum(total, counts[..., label])
        with np.errstate(all="ignore"):
            share = small / large
            joined = (small + large) * np.log1p(share) - small * np.log(share)
        value = value + np.where(share > 0.0, joined, 0.0)
        total = total + counts[..., label]
    return value


def _log_one_plus(x: Floats, y: Floats) -> Floats:
    """Return ``ln(1 + x / y)``, where the quotient may be too large for a float."""
    quotient = x / y
    return np.where(np.isfinite(quotient), np.log1p(quotient), np.log(x + y) - np.log(y))


def _series(x: Floats) -> Floats:
    """Return ``r(x)`` for x >= 16."""
    square = 1.0 / (x * x)
    tail = 1 / 1260 - square * (1 / 1680 - square / 1188)
    return (1 / 12 - square * (1 / 360 - square * tail)) / x
