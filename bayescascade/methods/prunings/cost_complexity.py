"""CostComplexityPrune: every tree of a forest pruned by itself, for its size and not its cost.

With R(h) the Gini impurity of node h times the share of its tree's rows, a tree pruned at level
alpha is the smallest one that minimizes ``sum_leaves R + alpha x number of leaves``. Such trees are
nested (Breiman, Friedman, Olshen and Stone 1984, chapter 3), so that all of them are told by the
level at which each split goes: the link between a split and the subtree below it is as weak as
``(R(h) - sum of R over its leaves) / (its leaves - 1)``, and the weakest is cut first. It is what
scikit-learn's ``ccp_alpha`` does to trees grown by the Gini impurity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.validation import check_real
from bayescascade.data.training_rows import TrainingRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.baselines import BaselinePruner
from bayescascade.methods.prunings.kernels.programs import find_ends, find_levels
from bayescascade.methods.prunings.pruner import count_classes, out_of_bag

__all__ = ["CostComplexityPrune", "best_levels", "split_levels"]

_MOST_LEVELS = 20  # of a path that is not told any

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class CostComplexityPrune(BaselinePruner):
    """A forest whose trees are pruned for their size: a baseline, which knows nothing of costs.

    Parameters
    ----------
    forest, costs, budget, n_jobs, random_state
        As of every `ForestPruner`; costs decide only what is within a budget.
    level : float >= 0 or None
        What a leaf must be worth, as scikit-learn's `ccp_alpha`. None: of each tree, the level at
        which it errs least on the rows not in its bag; the forest must have been grown on these
        rows, with bootstrap.

    Attributes
    ----------
    level_ : float, or (n_trees,) float64
        The level, or each tree's own.

    References
    ----------
    Breiman, L., Friedman, J., Olshen, R. and Stone, C. (1984). Classification and regression trees.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade.budget import CostComplexityPrune
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> y = X[:, 3] + X[:, 7] > 0
    >>> model = CostComplexityPrune(random_state=0).fit(X[:300], y[:300], X[300:])
    >>> [round(one.validation_cost_) for one in model.path([0.0, 0.1])]
    [12, 2]
    """

    model_name: ClassVar[str] = "cost_complexity_prune"
    title: ClassVar[str] = "cost-complexity pruned forest"
    knob: ClassVar[str] = "level"

    level: float | None = None

    def _prepare(self, training: TrainingRows) -> None:  # noqa: ARG002
        self._levels = split_levels(self.whole_forest_)

    def _values(self) -> Sequence[float]:
        levels: list[float] = np.unique(np.append(0.0, self._levels)).tolist()
        return levels

    def _few_values(self) -> Sequence[float]:
        levels = self._values()
        places = np.unique(np.linspace(0, len(levels) - 1, _MOST_LEVELS).round().astype(int))
        return [levels[place] for place in places]

    def _untold(self, training: TrainingRows) -> Floats:
        outside = out_of_bag(self.estimator_, len(training.rows), "level=None")
        counts = count_classes(self.whole_forest_, training.rows, training.labels, outside)
        return best_levels(self.whole_forest_, self._levels, counts)

    def _forest_at(self, value: float | Floats) -> Forest:
        forest = self.whole_forest_
        of_trees = np.broadcast_to(value, forest.n_trees)
        is_split = self._levels > np.repeat(of_trees, np.diff(forest.tree_starts))
        return forest.pruned(is_split).without_bare_roots()

    def _valid(self, name: str, value: Any) -> float | Floats:
        if isinstance(value, list):  # of a file
            return np.array([check_real(name, one, minimum=0.0) for one in value], np.float64)
        return check_real(name, value, minimum=0.0)


def split_levels(forest: Forest) -> Floats:
    """Return the level at which each split goes, (n_nodes,) float64 >= 0; 0 at leaves.

    A tree pruned at a level keeps the splits that go at higher ones; no split goes later than the
    one above it.
    """
    totals = forest.counts.sum(axis=1)
    gini = 1.0 - (forest.probabilities**2).sum(axis=1)
    risk = gini * totals / np.repeat(totals[forest.roots], np.diff(forest.tree_starts))
    ends, alive = np.empty(forest.n_nodes, np.int64), np.empty(forest.n_nodes, np.int32)
    n_leaves = np.empty(forest.n_nodes, np.int64)
    branch_risk, levels = np.empty(forest.n_nodes), np.empty(forest.n_nodes)
    find_ends(forest.right, ends)
    find_levels(
        forest.tree_starts, forest.right, forest.parents, ends, risk, branch_risk, n_leaves, alive,
        levels,
    )  # fmt: skip
    return levels


def best_levels(forest: Forest, levels: Floats, counts: Floats) -> Floats:
    """Return the level of each tree at which it errs least on other rows, (n_trees,) float64.

    Parameters
    ----------
    forest : Forest
    levels : (n_nodes,) float64
        Of `split_levels`.
    counts : (n_nodes, n_classes) float64
        Weight of each class of the other rows at each node.

    Returns
    -------
    (n_trees,) float64
        The highest of equals, for the smallest tree; 0 keeps all but what is of no use.
    """
    wrong = forest.errors(counts)
    best = np.zeros(forest.n_trees)
    for tree in range(forest.n_trees):
        nodes = np.arange(*forest.tree_starts[tree : tree + 2])
        splits = nodes[forest.feature[nodes] >= 0]
        splits = splits[np.argsort(levels[splits], kind="stable")]
        worse = wrong[splits] - wrong[splits + 1] - wrong[forest.right[splits]]
        tried = np.unique(np.append(0.0, levels[splits]))
        n_cut = np.searchsorted(levels[splits], tried, side="right")
        errors = np.append(0.0, np.cumsum(worse))[n_cut]  # beyond the whole tree's
        best[tree] = tried[np.flatnonzero(errors <= errors.min())[-1]]
    return best
