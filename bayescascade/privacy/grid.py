"""The grid on which noise is added, so that floating point gives nothing away.

Values are rounded to multiples of a step, a power of two that depends on public numbers alone:
sensitivity, epsilon, delta, how many values. Noise is whole steps, so a release is a multiple of
the step whatever it was of. Nothing about floating point is assumed: a value x is computed as c
with abs(c - x) <= error, clipped to 2**60 steps either way (which moves no two values apart),
divided by the step (exact), and rounded to r with abs(r - c) <= 1/2 step. For neighbors,

    abs(r - r') <= abs(x - x') + 2 error + 1,        in steps,

so k values of L1 sensitivity S move by at most S + k (2 error + 1), and by the triangle inequality
of the other norm, those of L2 sensitivity S by at most S + sqrt(k) (2 error + 1). The noise is for
that. The step is at most 2**-20 noise scales and 2**-10 S / k (or S / sqrt(k)), whichever is less.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real

MOST_STEPS = 2**60
"""Of a value."""
UP = 1.0 + 2.0**-40
"""A factor that makes up for what is rounded in a few operations."""

_FINE, _FINE_TO_ROUNDING = 2.0**20, 2.0**10  # steps of a noise scale; of S for each rounding
_MOST_FINE, _MOST_NOISE = 2.0**44, 2.0**46  # steps of a noise scale, for the room of int64


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of step 2**exponent, on which rounded neighbors are at most `moves` > 0 steps apart.

    That distance is in the norm of the sensitivity.
    """

    exponent: int
    moves: float

    def rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return numbers in steps, rounded and clipped."""
        with np.errstate(over="ignore", under="ignore"):
            steps = np.rint(np.ldexp(numbers, -self.exponent))
        return np.clip(steps, -MOST_STEPS, MOST_STEPS).astype(np.int64)

    def units(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return steps in the units of the values."""
        return np.ldexp(steps.astype(np.float64), self.exponent)

    def length(self, steps: float) -> float:
        """Return a number of steps in the units of the values."""
        return math.ldexp(steps, self.exponent)


def grid_for(sensitivity: float, error: float, roundings: float, scales: float) -> Grid:
    """Return the grid for values of a sensitivity, if integers have room for the noise.

    sensitivity from 1e-100 to 1e100; error >= 0: by how much each value may be wrong; roundings >=
    1: the norm of a vector of ones, one for each value; scales > 0: the noise's scale for a
    sensitivity of 1.
    """
    sensitivity = check_real("sensitivity", sensitivity, minimum=1e-100, maximum=1e100)
    error = check_real("error", error, minimum=0.0, maximum=1e100)
    apart = at_least(Fraction(sensitivity) + 2 * Fraction(roundings) * Fraction(error))
    step = min(scales * apart / _FINE, apart / roundings / _FINE_TO_ROUNDING)
    exponent = math.frexp(max(step, scales * apart / _MOST_FINE))[1] - 1
    moves = at_least(Fraction(apart) / Fraction(2) ** exponent + Fraction(roundings))
    if scales * moves > _MOST_NOISE:
        raise ParameterError(
            f"epsilon must be larger: the scale of the noise must be <= {_MOST_NOISE:.0f} steps of "
            f"its grid, got {scales * moves:.3g} steps"
        )
    return Grid(exponent, moves)


def at_least(number: Fraction) -> float:
    """Return the least float that is not below a number."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)
