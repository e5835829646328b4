"""Trees are added while the budget lasts: Algorithm 2 of Nan (2018), BUDGETRF.

Each tree is grown on as many rows as there are, drawn with replacement; the first one with which
the mean cost of the validation rows passes the budget is left out, and ends the forest. A row pays
for a feature once, however many trees read it, so costs never fall as trees are added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from bayescascade.costs.limits import is_within
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.growing import TreeGrower

__all__ = ["GrownForest", "add_trees"]

_SECONDS = 0.1  # that a thread works before what it has grown is counted

_Tree: TypeAlias = tuple[Forest, NDArray[np.bool_]]
"""A tree, and the items that each validation row pays for in it, (n_rows, n_items)."""


@dataclass(frozen=True, slots=True, eq=False)
class GrownForest:
    """Trees within a budget.

    Parameters
    ----------
    trees : Forest or None
        None if there is none.
    costs : (n_trees,) float64 >= 0
        Mean cost of the validation rows after each tree, not decreasing. If the first tree is
        beyond the budget, its cost alone.
    is_interrupted : bool
        Whether Ctrl-C ended it.
    """

    trees: Forest | None
    costs: NDArray[np.float64]
    is_interrupted: bool = False

    @property
    def n_trees(self) -> int:
        """Number of trees within the budget."""
        return 0 if self.trees is None else self.trees.n_trees


def add_trees(
    grower: TreeGrower,
    seeds: Sequence[np.random.SeedSequence],
    validation_rows: NDArray[np.float32],
    *,
    budget: float | None,
    bootstrap: bool,
    n_jobs: int | None,
) -> GrownForest:
    """Grow trees until the mean cost passes the budget, or there are enough.

    Parameters
    ----------
    grower : TreeGrower
    seeds : sequence of SeedSequence
        Of each tree, in order: the most that are grown, at least one.
    validation_rows : (n_validation_rows, n_columns) float32
    budget : float >= 0 or None
        None is no limit.
    bootstrap : bool
        Whether each tree has its own draw of the rows; else it has each row once.
    n_jobs : int or None
        Trees grown at a time, in threads; no tree depends on it.
    """
    trees: list[Forest] = []
    costs: list[float] = []
    paid = np.zeros((len(validation_rows), grower.items.n_items), np.bool_)
    is_interrupted = False
    try:
        for tree, paid_by_tree in _trees(grower, seeds, validation_rows, bootstrap, n_jobs):
            paid |= paid_by_tree
            cost = float(grower.items.total(paid).mean())
            if budget is not None and not is_within(cost, budget):
                if not trees:
                    return GrownForest(None, np.array([cost]))
                break
            trees.append(tree)
            costs.append(cost)
    except KeyboardInterrupt:
        is_interrupted = True
    forest = Forest.concatenate(trees) if trees else None
    return GrownForest(forest, np.array(costs), is_interrupted)


def _trees(
    grower: TreeGrower,
    seeds: Sequence[np.random.SeedSequence],
    validation_rows: NDArray[np.float32],
    bootstrap: bool,
    n_jobs: int | None,
) -> Iterator[_Tree]:
    """Yield trees in the order of their seeds, a few grown at a time.

    Handing work to threads takes milliseconds, as small trees do: of these, each thread grows as
    many at a time as `_SECONDS` allow, which bounds what is grown beyond the budget in vain.
    """
    n_workers = effective_n_jobs(n_jobs)
    if n_workers == 1:
        for seed in seeds:
            yield _grow(grower, seed, validation_rows, bootstrap)
        return
    start, n_each = 0, 1
    with Parallel(n_jobs=n_jobs, prefer="threads") as pool:
        while start < len(seeds):
            stop = min(start + n_workers * n_each, len(seeds))
            began = perf_counter()
            grown = pool(
                delayed(_grow_several)(
                    grower, seeds[first : min(first + n_each, stop)], validation_rows, bootstrap
                )
                for first in range(start, stop, n_each)
            )
            seconds = perf_counter() - began
            yield from chain.from_iterable(grown)
            start, n_each = stop, max(1, int(n_each * _SECONDS / seconds))


def _grow_several(
    grower: TreeGrower,
    seeds: Sequence[np.random.SeedSequence],
    validation_rows: NDArray[np.float32],
    bootstrap: bool,
) -> list[_Tree]:
    return [_grow(grower, seed, validation_rows, bootstrap) for seed in seeds]


def _grow(
    grower: TreeGrower,
    seed: np.random.SeedSequence,
    validation_rows: NDArray[np.float32],
    bootstrap: bool,
) -> _Tree:
    rng = np.random.default_rng(seed)
    n_rows = len(grower.labels)
    weights = np.ones(n_rows)
    if bootstrap:
        weights = np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows).astype(np.float64)
    tree = grower.grow(rng, weights)
    return tree, grower.items.paid(tree.features_used(validation_rows))
