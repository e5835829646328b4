"""Adaptation of a chain of vectors during warm-up: its step size and its scales.

The step size is doubled or halved until the acceptance of single steps crosses the target
acceptance; dual averaging then adapts it (Hoffman and Gelman 2014, algorithms 4 and 5). There are
two departures. Dual averaging shrinks towards its initial value, not towards ten times that value,
because longer steps save nothing without a trajectory. It shrinks four times as strongly, because
the acceptance of single steps is noisier.

The scales are the standard deviations of the components over windows of the warm-up. Each window is
as long as all earlier ones together: it sees more of the density, with better scales. The second
half of the warm-up keeps the scales and adapts the step size to them.
"""

import math
from typing import NamedTuple

import numpy as np

from samplers.types import Vector

# dual averaging, in the notation of Hoffman and Gelman: gamma, t0, kappa
SHRINKAGE, DELAY, FORGETTING = 0.2, 10.0, 0.75
LOG_STEP_BOUND = 100.0  # only improper densities reach it

LEAST_WINDOW = 100  # steps; fewer do not estimate a standard deviation well


class StepSize(NamedTuple):
    """The state of dual averaging."""

    log_step: float  # log of the step size to try next
    log_mean: float  # weighted mean, recent steps count most: the result of warm-up
    error: float  # weighted mean shortfall of the acceptance
    log_anchor: float  # initial value, and the target of the shrinkage
    n_seen: float  # number of steps so far

    @classmethod
    def begun(cls, log_step: float) -> "StepSize":
        """Return the initial state."""
        return cls(log_step, log_step, 0.0, log_step, 0.0)

    def adapted(self, shortfall: float) -> "StepSize":
        """Return the state after a step, by its shortfall below the target acceptance, (-1, 1)."""
        n_seen = self.n_seen + 1.0
        error = self.error + (shortfall - self.error) / (n_seen + DELAY)
        log_step = self.log_anchor - math.sqrt(n_seen) / SHRINKAGE * error
        log_step = min(max(log_step, -LOG_STEP_BOUND), LOG_STEP_BOUND)
        log_mean = self.log_mean + n_seen**-FORGETTING * (log_step - self.log_mean)
        return StepSize(log_step, log_mean, error, self.log_anchor, n_seen)


class Spread(NamedTuple):
    """Running moments of the states in a window (Welford 1962)."""

    n_seen: int  # states so far
    mean: Vector  # (d,) float64
    squares: Vector  # (d,) float64, sums of squared deviations from the mean

    @classmethod
    def empty(cls, d: int) -> "Spread":
        """Return the moments of no states."""
        return cls(0, np.zeros(d), np.zeros(d))

    def joined_by(self, state: Vector) -> "Spread":
        """Return the moments with one more state."""
        n_seen = self.n_seen + 1
        deviation = state - self.mean
        mean = self.mean + deviation / n_seen
        return Spread(n_seen, mean, self.squares + deviation * (state - mean))

    def deviations(self, otherwise: Vector) -> Vector:
        """Return the standard deviations, or `otherwise` if one is zero: the chain did not move."""
        found = np.sqrt(self.squares / max(1, self.n_seen))
        return found if (np.isfinite(found) & (found > 0.0)).all() else otherwise


def window_ends(n_warmup: int) -> list[int]:
    """Return the steps of the warm-up after which scales are updated; none if it is short."""
    ends = [n_warmup // 2]
    while ends[0] >= LEAST_WINDOW:
        ends.insert(0, ends[0] // 2)
    return ends[1:]
