"""The check behind the words exact, optimal and gap, and its bounds on rounding.

A solver claims a log density for its state. Before a result is called exact, the posterior
evaluates the state independently. The two may differ only by rounding, for which both have a proved
bound; a larger difference is a bug.

A float of magnitude x is off by at most ``UNIT x``. A log density is a sum of terms, some of which
are far larger than the sum: ``lnG(x)`` of a billion rows is 2e10, and its last digit 4e-6. So the
bounds add up the sizes of the terms. For ``lnG(x)``, `log_gamma_sizes` is at least

* ``abs(lnG(x))``: rounding of the value, in which gammaln is right to a few units;
* ``x abs(psi(x))``: the change of the value for a relative error of x;

since ``abs(lnG(x)) <= x ln x`` and ``psi(x) <= ln x`` for x >= 2; below 2, where ``lnG`` is between
-0.13 and ``-ln x``, and ``x abs(psi(x))`` at most 1.06, both are at most ``abs(ln x) + 1``.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import InternalError

S = TypeVar("S")

UNIT = 2.0**-53
"""The largest relative error of one operation in floats."""

EVALUATED = 8.0
"""The error of a log gamma, in `UNIT` times its size: 4 for gammaln, 4 for its argument.

Of 52,000 numbers from 1e-300 to 1e300, SciPy's gammaln was off by 2.7 at most, and libm's by 3.7.
"""

_VISIBLE = 5e-3  # nats that a print of two decimals shows


def shown_gap(gap: float, rounding: float) -> float:
    """Return the gap to be shown: the bound on rounding instead of 0, if it would be visible.

    So no result is called exact if rounding may have changed its printed figures.
    """
    return rounding if gap == 0.0 and rounding >= _VISIBLE else gap


def log_gamma_sizes(x: Floats | float) -> Floats:
    """Return bounds on ``abs(lnG(x))`` and ``x abs(psi(x))``, of numbers x > 0."""
    sizes: Floats = (np.asarray(x, np.float64) + 1.0) * (np.abs(np.log(x)) + 1.0)
    return sizes


def share_of_sums(weights: Floats) -> float:
    """Return the largest relative error of a sum of some of the weights, in any order.

    Sums of whole numbers below 2**53 are exact; n others >= 0 are off by ``(n - 1) UNIT`` at most.
    """
    if np.all(weights == np.rint(weights)) and weights.sum() < 2.0**53:
        return 0.0
    return float(weights.size) * UNIT


def certified(
    log_density: Callable[[S], float], state: S, claimed: float, rounding: float
) -> float:
    """Return the log density of a state, and check it against a solver's claim.

    InternalError if the two differ by more than `rounding` >= 0, a proved bound on the rounding
    errors of both together.
    """
    found = float(log_density(state))
    if not abs(found - claimed) <= rounding:  # NaN fails the check
        raise InternalError(
            f"a search found {claimed!r} to be the best, but its result is worth {found!r}, which "
            f"rounding, at most {rounding:.2g}, does not explain: an error in bayescascade. "
            "Nothing is certified; please report it, with the data and the parameters if you can"
        )
    return found
