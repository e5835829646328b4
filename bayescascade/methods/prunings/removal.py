"""GreedyPrune: take one feature after the other out of a forest (Nan 2018, section 4.5).

To remove a feature, every tree is cut at the first split on it on every path. Each step removes the
feature that leaves the least ``error + tradeoff x cost``, until no split is left: as many steps as
there are features, at most. The thesis says "the lowest training error and average feature cost";
that they are weighed by `tradeoff` is our reading.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.prunings.kernels.removal import saved_by_removal
from bayescascade.methods.prunings.program import PruningProgram

__all__ = ["Removal", "remove_features"]

Bools = NDArray[np.bool_]


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
