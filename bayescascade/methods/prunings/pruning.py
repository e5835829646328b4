"""A pruning of a forest, how far from the best one it can be, and prunings by removing features.

To remove a feature, every tree is cut at the first split on it on every path (Nan 2018, section
4.5). Each step removes the feature that leaves the least ``error + tradeoff x cost``, until no
split is left: as many steps as there are features, at most. The thesis says "the lowest training
error and average feature cost"; that they are weighed by `tradeoff` is our reading.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.prunings.kernels.programs import saved_by_removal
from bayescascade.methods.prunings.program import PruningProgram

__all__ = ["Pruning", "Removal", "relative_gap", "remove_features"]

_ROUNDING = 1e-9

Bools = NDArray[np.bool_]


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

    kept: Bools
    tradeoff: float
    objective: float
    lower_bound: float
    interrupted: bool = False

    @classmethod
    def of(
        cls,
        program: PruningProgram,
        kept: Bools,
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


class Removal(NamedTuple):
    """A step, and what it leaves.

    Parameters
    ----------
    feature : int
        The feature removed, -1 at the beginning.
    kept : (n_splits,) bool
        The splits that are left.
    """

    feature: int
    kept: Bools


def remove_features(
    program: PruningProgram, feature: NDArray[np.integer], tradeoff: float
) -> Iterator[Removal]:
    """Yield the whole forest, then what each removal leaves; the last keeps no split.

    Parameters
    ----------
    program : PruningProgram
    feature : (n_splits,) int
        The feature that each split is on.
    tradeoff : float >= 0
    """
    kept = np.ones(program.n_splits, np.bool_)
    remaining = np.unique(feature).tolist()
    below = {one: _at_or_below(program, feature == one) for one in remaining}
    n_removed = np.zeros(program.n_uses, np.int32)
    yield Removal(-1, kept)
    while kept.any():
        n_asking = _asking(program, kept)
        losses = []
        for one in remaining:
            removed = kept & below[one]
            saved = program.work[removed].sum() + saved_by_removal(
                removed, program.edge_starts, program.edge_use, program.use_cost, n_asking,
                n_removed,
            )  # fmt: skip
            losses.append(program.error_gain[removed].sum() - tradeoff * saved)
        chosen = remaining.pop(int(np.argmin(losses)))
        kept = kept & ~below[chosen]
        remaining = [one for one in remaining if np.any(kept & below[one])]
        yield Removal(chosen, kept)


def _asking(program: PruningProgram, kept: Bools) -> NDArray[np.int32]:
    """Return how many of the splits kept ask for each use, (n_uses,) int32."""
    uses = program.edge_use[np.repeat(kept, np.diff(program.edge_starts))]
    return np.bincount(uses, minlength=program.n_uses).astype(np.int32)


def _at_or_below(program: PruningProgram, marked: Bools) -> Bools:
    """Return the splits that are marked, or below one that is."""
    reached = marked.copy()
    inner = np.flatnonzero(program.parent >= 0)
    while True:
        further = inner[reached[program.parent[inner]] & ~reached[inner]]
        if not further.size:
            return reached
        reached[further] = True
