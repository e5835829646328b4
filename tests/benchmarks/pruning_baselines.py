"""What BudgetPruneClassifier is compared with: forests along one line, from the whole one to less.

`GreedyPrune` removes features, `TruncatedForest` trees. `CostComplexityPrune` prunes every tree by
itself, for its size and not its cost.

With R(h) the Gini impurity of node h times the share of its tree's rows, a tree pruned at level
alpha is the smallest one that minimizes ``sum_leaves R + alpha x number of leaves``. Such trees are
nested (Breiman, Friedman, Olshen and Stone 1984, chapter 3), so that all of them are told by the
level at which each split goes: the link between a split and the subtree below it is as weak as
``(R(h) - sum of R over its leaves) / (its leaves - 1)``, and the weakest is cut first. It is what
scikit-learn's ``ccp_alpha`` does to trees grown by the Gini impurity.
"""

import copy
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from bayescascade.base.watch import watch_in_use
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.forests.bags import out_of_bag
from bayescascade.methods.budget.pruning.budget_prune import BudgetPruneClassifier
from bayescascade.methods.budget.pruning.given_forest import count_classes
from bayescascade.methods.budget.pruning.path import choose_pruning, wrong_elsewhere
from bayescascade.methods.budget.pruning.program import Pruning, PruningProgram
from bayescascade.methods.budget.pruning.solvers import remove_features

_MOST_LEVELS = 20  # of a path that is not told any
_ORDER_SHARE = 0.25  # at 1, removing what all trees begin with is as good as removing nothing


class BaselinePruner(BudgetPruneClassifier):
    """A pruner whose `strength` alone says how much is left of the forest.

    A `budget` leaves as much of it as it allows.
    """

    strength: ClassVar[str]
    """Name of the parameter; its fitted value has a trailing underscore."""

    @abstractmethod
    def _values(self):
        """Return values of the strength; from one to the next, no row pays more."""

    @abstractmethod
    def _untold(self, training):
        """Return the value where neither the strength nor a budget is given."""

    def _few_values(self):
        """Return the values of a path that is not told any."""
        return self._values()

    def path(self, values=None, *, budgets=None):
        """Return the forest pruned to these values of the strength, or to budgets."""
        self._check_unpruned()
        if budgets is not None:
            return [self._pruned_at("budget", one, self._within(one)) for one in budgets]
        wanted = self._few_values() if values is None else values
        return [self._pruned_at(self.strength, one, one) for one in wanted]

    def _pruned_at(self, name, value, found):
        model = copy.copy(self)
        model.set_params(**{"budget": None, name: value})
        model._take(found)
        model._compare(found)
        return model

    def fit_budgets(self, *given, **named):
        return super(BudgetPruneClassifier, self).fit_budgets(*given, **named)

    @property
    def certificate_texts(self):
        return super(BudgetPruneClassifier, self).certificate_texts

    def _buy_nothing(self):
        super(BudgetPruneClassifier, self)._buy_nothing()

    def _fields(self):
        return {}

    def _tuned(self, training):
        value = getattr(self, self.strength)
        return self._untold(training) if value is None else value

    def _within(self, budget):
        """Return the value that leaves most of the forest within a budget."""
        values = self._values()
        place = bisect_left(values, True, key=lambda value: is_within(self._cost(value), budget))
        return values[place]

    def _cost(self, value):
        """Return the mean cost of the validation rows at a value of the strength."""
        return float(self._costs(self._left(value), self._validation_rows).mean())

    def _take(self, value):
        """Be fitted to what is left at a value of the strength."""
        setattr(self, f"{self.strength}_", value)
        self._become(self._left(value).without_bare_roots(), self._validation_rows, watch_in_use())


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyPrune(BaselinePruner):
    """A forest from which features are removed one after the other.

    Trees are cut at every split on a removed feature. Each step removes the one that leaves the
    least ``error + tradeoff x cost``; see `methods.budget.pruning.solvers`, and F. Nan's
    thesis, Learning to predict under a budget (Boston University, 2018), section 4.5.
    """

    model_name: ClassVar[str] = "greedy_prune"
    title: ClassVar[str] = "greedily pruned forest"
    strength: ClassVar[str] = "n_removed"

    tradeoff: float | None = None
    n_removed: int | None = None

    def _prepare(self, training):
        forest = self.whole_forest_
        self.program_ = PruningProgram.of(forest, self._matrix_items, training.validation_rows)
        feature = self._encoder.source[forest.feature[self.program_.node]]
        given = self.tradeoff
        self.tradeoff_ = _ORDER_SHARE * _worth(self.program_) if given is None else given
        self._steps = tuple(remove_features(self.program_, feature, self.tradeoff_))

    def _values(self):
        return range(len(self._steps))

    def _untold(self, training):
        solver = RemovalSolver(self.program_, self._steps)
        if self.tradeoff is None:
            wrong = wrong_elsewhere(self, training, "in_bag")
            self.tradeoff_ = choose_pruning(self.program_, solver, wrong).tradeoff
        return solver.place(self.tradeoff_)

    def _left(self, found):
        return self._cut(self._steps[found][1])

    def _take(self, value):
        super()._take(value)
        self.removed_ = [self.feature_texts[feature] for feature, _ in self._steps[1 : value + 1]]


@dataclass(eq=False, repr=False, kw_only=True)
class TruncatedForest(BaselinePruner):
    """A forest of which only the first trees are left."""

    model_name: ClassVar[str] = "truncated_forest"
    title: ClassVar[str] = "truncated forest"
    strength: ClassVar[str] = "n_trees"

    n_trees: int | None = None

    def _prepare(self, training):
        pass

    def _values(self):
        return range(self.whole_forest_.n_trees, -1, -1)

    def _untold(self, training: TrainingRows) -> int:  # noqa: ARG002
        return self.whole_forest_.n_trees

    def _left(self, found):
        whole = self.whole_forest_
        left = whole.part(slice(whole.tree_starts[max(found, 1)]))
        return left if found else left.pruned(np.zeros(left.n_nodes, np.bool_))


@dataclass(eq=False, repr=False, kw_only=True)
class CostComplexityPrune(BaselinePruner):
    """A forest whose trees are pruned for their size, at a level as scikit-learn's `ccp_alpha`.

    Without a level, each tree has that at which it errs least on the rows not in its bag.
    """

    model_name: ClassVar[str] = "cost_complexity_prune"
    title: ClassVar[str] = "cost-complexity pruned forest"
    strength: ClassVar[str] = "level"

    level: float | None = None

    def _prepare(self, training: TrainingRows) -> None:  # noqa: ARG002
        self._levels = split_levels(self.whole_forest_)

    def _values(self):
        return np.unique(np.append(0.0, self._levels)).tolist()

    def _few_values(self):
        levels = self._values()
        places = np.unique(np.linspace(0, len(levels) - 1, _MOST_LEVELS).round().astype(int))
        return [levels[place] for place in places]

    def _untold(self, training):
        outside = out_of_bag(self.estimator_, len(training.rows), "level=None")
        counts = count_classes(self.whole_forest_, training.rows, training.labels, outside)
        return best_levels(self.whole_forest_, self._levels, counts)

    def _left(self, found):
        forest = self.whole_forest_
        of_trees = np.broadcast_to(found, forest.n_trees)
        is_split = self._levels > np.repeat(of_trees, np.diff(forest.tree_starts))
        return forest.pruned(is_split)


def _worth(program):
    """Return the tradeoff at which the whole forest is as good as nothing of it."""
    everything = np.ones(program.n_splits, np.bool_)
    cost = program.cost(everything)
    return max(0.0, program.base_error - program.error(everything)) / cost if cost > 0 else 0.0


def split_levels(forest):
    """Return the level at which each split goes, (n_nodes,) float64 >= 0; 0 at leaves.

    A tree pruned at a level keeps the splits that go at higher ones; no split goes later than the
    one above it.
    """
    totals, levels = forest.counts.sum(axis=1), np.zeros(forest.n_nodes)
    gini = 1.0 - (forest.probabilities**2).sum(axis=1)
    risk = gini * totals / np.repeat(totals[forest.roots], np.diff(forest.tree_starts))
    below, n_leaves = risk.copy(), np.ones(forest.n_nodes, np.int64)
    splits = np.flatnonzero(forest.right >= 0)
    for split in splits[::-1]:  # sums over the leaves of each subtree
        children = [split + 1, forest.right[split]]
        below[split], n_leaves[split] = below[children].sum(), n_leaves[children].sum()
    for start, end in pairwise(forest.tree_starts.tolist()):
        alive, level = splits[(splits >= start) & (splits < end)], 0.0
        while alive.size:
            links = (risk[alive] - below[alive]) / (n_leaves[alive] - 1)
            weakest, level = alive[links.argmin()], max(level, links.min())
            change, fewer = risk[weakest] - below[weakest], n_leaves[weakest] - 1
            node = weakest
            while node >= 0:
                below[node] += change
                n_leaves[node] -= fewer
                node = forest.parents[node]
            is_gone = (alive >= weakest) & (alive < forest.ends[weakest])
            levels[alive[is_gone]] = level
            alive = alive[~is_gone]
    return levels


def best_levels(forest, levels, counts):
    """Return the level of each tree at which it errs least on other rows, (n_trees,) float64.

    The highest of equals, for the smallest tree; 0 keeps all but what is of no use. `levels` are
    those of `split_levels`, `counts` (n_nodes, n_classes) the other rows' weight at each node.
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


class RemovalSolver:
    """Finds the best of the prunings that removing features one by one led to."""

    def __init__(self, program, steps):
        self.program = program
        self._steps = steps

    def place(self, tradeoff):
        """Return the place of the step that leaves the least ``error + tradeoff x cost``."""
        objective = self.program.objective
        return int(np.argmin([objective(kept, tradeoff) for _, kept in self._steps]))

    def solve(self, tradeoff):
        """Return that step's pruning; nothing is proved of others."""
        kept = self._steps[self.place(tradeoff)][1]
        return Pruning.of(self.program, kept, tradeoff, -np.inf)
