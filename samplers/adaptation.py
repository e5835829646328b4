"""What a chain of vectors learns of its density during warm-up: a step size, and scales.

The step size is doubled or halved until single steps cross the acceptance aimed at, then found by
dual averaging (Hoffman and Gelman 2014, algorithms 4 and 5). Departures: dual averaging is drawn
towards where it began, not towards ten times as much, for longer steps without a trajectory save
nothing; and four times as strongly, for the acceptance of single steps is noisier.

The scales are the standard deviations of the components over windows of the warm-up, each as long
as all before it: it sees more of a density from whose scales it has less to suffer. The second half
of the warm-up leaves them alone, and finds the step size that goes with them.
"""

import math
from typing import NamedTuple

import numpy as np

from samplers.types import Vector

# dual averaging, in the letters of Hoffman and Gelman: gamma, t0, kappa
SHRINKAGE, DELAY, FORGETTING = 0.2, 10.0, 0.75
LOG_STEP_BOUND = 100.0  # only a density that cannot be normalized comes that far

LEAST_WINDOW = 100  # steps; fewer tell too little of a standard deviation


class StepSize(NamedTuple):
    """What dual averaging remembers."""

    log_step: float  # of the step size to try next
    log_mean: float  # weighted mean so far, in which late ones count most: what warm-up ends with
    error: float  # mean shortfall of the acceptance
    log_anchor: float  # where it began, and is drawn to
    n_seen: float  # steps so far

    @classmethod
    def begun(cls, log_step: float) -> "StepSize":
        """Return the memory that has seen nothing."""
        return cls(log_step, log_step, 0.0, log_step, 0.0)

    def adapted(self, shortfall: float) -> "StepSize":
        """Return the memory after a step that fell short of the acceptance aimed at, (-1, 1)."""
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
        """Return the moments with one state more."""
        n_seen = self.n_seen + 1
        deviation = state - self.mean
        mean = self.mean + deviation / n_seen
        return Spread(n_seen, mean, self.squares + deviation * (state - mean))

    def deviations(self, otherwise: Vector) -> Vector:
        """Return the standard deviations, or `otherwise` if one is zero: the chain stood still."""
        found = np.sqrt(self.squares / max(1, self.n_seen))
        return found if (np.isfinite(found) & (found > 0.0)).all() else otherwise


def window_ends(n_warmup: int) -> list[int]:
    """Return after how many steps of the warm-up scales are learned; never if it is short."""
    ends = [n_warmup // 2]
    while ends[0] >= LEAST_WINDOW:
        ends.insert(0, ends[0] // 2)
    return ends[1:]
