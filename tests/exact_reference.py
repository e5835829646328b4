"""Log densities of rule lists to 40 digits, from the floats that they are given. Nothing of ours.

A float of a billion rows' log gammas has seven digits behind the point; here rounding can be seen.
"""

from decimal import Decimal, localcontext
from functools import cache

_DIGITS = 50
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582")
_SERIES = (  # of Stirling: B_2k / (2k (2k - 1))
    (1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156),
    (-3617, 122400), (43867, 244188), (-174611, 125400), (77683, 5796),
    (-236364091, 1506960), (657931, 300),
)  # fmt: skip
_LARGE = 200


@cache
def log_gamma(x):
    """Return lnG(x) of a Decimal or a whole number x > 0."""
    with localcontext(prec=_DIGITS):
        shift, x = Decimal(1), Decimal(x)
        while x < _LARGE:
            shift *= x
            x += 1
        value = (x - Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 - shift.ln()
        power = x
        for above, below in _SERIES:
            value += Decimal(above) / Decimal(below) / power
            power *= x * x
        return value


def added(numbers):
    """Return a sum of Decimals."""
    with localcontext(prec=_DIGITS):
        return sum(numbers, Decimal(0))


def label_log_likelihood(counts, alpha):
    """Return the log likelihood of labels in parts, Decimals n_lc."""
    with localcontext(prec=_DIGITS):
        value = Decimal(0)
        for part in counts:
            of_all = len(part) * alpha
            value += log_gamma(of_all) - log_gamma(of_all + sum(part))
            value += sum(log_gamma(count + alpha) - log_gamma(alpha) for count in part)
        return value


def density_log_likelihood(counts, volumes, alpha):
    """Return the log likelihood of rows in parts with these counts and volumes, Decimals."""
    with localcontext(prec=_DIGITS):
        of_all = len(counts) * alpha
        value = log_gamma(of_all) - log_gamma(of_all + sum(counts))
        for count, volume in zip(counts, volumes, strict=True):
            value += log_gamma(count + alpha) - log_gamma(alpha) - count * volume.ln()
        return value


def log_prior(chosen, sizes, expected_rules, expected_size, max_rules=62):
    """Return the log prior of a list of candidates, step by step as it is generated."""
    with localcontext(prec=_DIGITS):
        longest = min(len(sizes), max_rules)
        value = _log_poisson(len(chosen), Decimal(expected_rules), range(longest + 1))
        left = list(sizes)
        for number in chosen:
            size = sizes[number]
            value += _log_poisson(size, Decimal(expected_size), sorted(set(left)))
            value -= Decimal(left.count(size)).ln()
            left.remove(size)
        return value


@cache
def _factorial(k):
    return Decimal(1) if k == 0 else k * _factorial(k - 1)


def _log_poisson(value, mean, support):
    total = sum(mean**k / _factorial(k) for k in support)
    return (mean**value / _factorial(value) / total).ln()


def off(value, truth):
    """Return by how much a float is above a Decimal, as a float."""
    with localcontext(prec=_DIGITS):
        return float(Decimal(float(value)) - truth)


def excess(n, alpha):
    """Return lnG(n + a) - lnG(a) - n ln n + n."""
    with localcontext(prec=_DIGITS):
        return log_gamma(n + alpha) - log_gamma(alpha) - n * n.ln() + n
