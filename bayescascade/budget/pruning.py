"""A pruning of a forest, and how far from the best one it can be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayescascade.budget.program import PruningProgram

__all__ = ["Pruning"]


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
        """What a better pruning could gain at most, relative to the objective: >= 0, 0 is proof."""
        if self.objective == self.lower_bound:
            return 0.0
        return (self.objective - self.lower_bound) / abs(self.objective)
