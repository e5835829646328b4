"""A pruning of a forest, and how far from the best one it can be."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.prunings.program import PruningProgram

__all__ = ["Pruning", "relative_gap"]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Pruning:
    """What a solver returns: a pruning, and a bound that no pruning is below.

    Parameters
    ----------
    kept : (n_splits,) bool
        Splits kept, closed under parents.
    tradeoff : float >= 0
        Error rate that a unit of cost is worth.
    objective : float
        Error + tradeoff x cost; see `PruningProgram.objective`.
    lower_bound : float
        No pruning has a lower objective, up to rounding.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    kept: NDArray[np.bool_]
    tradeoff: float
    objective: float
    lower_bound: float
    interrupted: bool = False

    @classmethod
    def of(
        cls,
        program: PruningProgram,
        kept: NDArray[np.bool_],
        tradeoff: float,
        lower_bound: float,
        interrupted: bool = False,
    ) -> "Pruning":
        """Return a pruning with its objective; a bound above it, by rounding, is lowered to it."""
        objective = program.objective(kept, tradeoff)
        return cls(kept, tradeoff, objective, min(lower_bound, objective), interrupted)

    @property
    def gap(self) -> float:
        """See `relative_gap`."""
        return relative_gap(self.objective, self.lower_bound)


def relative_gap(objective: float, lower_bound: float) -> float:
    """Return by what share of itself an objective could be lower at most: >= 0, and 0 is proof.

    Differences up to 1e-9, in units of the error rate, are rounding. Of an objective of 0, all
    others are infinite shares.
    """
    difference = objective - lower_bound
    if difference <= _ROUNDING:
        return 0.0
    return difference / abs(objective) if objective else math.inf
