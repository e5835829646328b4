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

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.base.jit import kernel
from bayescascade.base.validation import check_integer, check_real
from bayescascade.base.watch import watch_in_use
from bayescascade.costs.limits import check_amounts, is_within, too_low
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.forests.bags import out_of_bag
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.frontier import remove_features
from bayescascade.methods.prunings.path import PruningPath
from bayescascade.methods.prunings.program import Pruning, PruningProgram
from bayescascade.methods.prunings.pruner import ForestPruner, count_classes
from bayescascade.methods.prunings.tradeoffs import choose_pruning, wrong_elsewhere

_MOST_LEVELS = 20  # of a path that is not told any
_ORDER_SHARE = 0.25  # at 1, removing what all trees begin with is as good as removing nothing

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class BaselinePruner(ForestPruner):
    """A pruner whose `strength` alone says how much is left of the forest.

    A `budget` leaves as much of it as it allows.
    """

    @abstractmethod
    def _values(self) -> Sequence[Any]:
        """Return values of the strength; from one to the next, no row pays more."""

    @abstractmethod
    def _untold(self, training: TrainingRows) -> Any:
        """Return the value where neither the strength nor a budget is given."""

    @abstractmethod
    def _valid(self, name: str, value: Any) -> Any:
        """Return a value that may be one of the strength; raise ParameterError if it is none."""

    def _checked(self, name: str, value: Any) -> Any:
        """Return a value of the strength for this forest; raise ParameterError if it is none."""
        return self._valid(name, value)

    def _few_values(self) -> Sequence[Any]:
        """Return the values of a path that is not told any."""
        return self._values()

    def path(
        self, values: Sequence[Any] | None = None, *, budgets: Sequence[float] | None = None
    ) -> PruningPath[Self]:
        """Return the forest pruned to several degrees.

        Parameters
        ----------
        values : sequence, optional
            Of the strength; by default, all that make a difference, or a choice of them.
        budgets : sequence of float >= 0, optional
            Instead of these values.

        Returns
        -------
        PruningPath
            A fitted classifier for each, in the order given.

        Raises
        ------
        ParameterError
            If both are given, or one is no list, or has a value out of its range.
        BudgetError
            If nothing that can be left is within one of the budgets.
        NotFittedError
            Before `fit`, and if the model was read from a file.
        """
        self._check_unpruned()
        if values is not None and budgets is not None:
            raise ParameterError("either values or budgets must be given, got both")
        if budgets is not None:
            return self._path("budget", check_amounts("budgets", budgets), self._within)
        if values is None:
            wanted = self._few_values()
        elif isinstance(values, str) or not isinstance(values, Iterable):
            raise ParameterError(f"values must be a list of {self.strength}, got {values!r}")
        else:
            wanted = [self._checked(f"values[{i}]", value) for i, value in enumerate(values)]
        return self._path(self.strength, wanted, lambda value: value)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if getattr(self, self.strength) is not None:
            self._valid(self.strength, getattr(self, self.strength))

    def _tuned(self, training: TrainingRows) -> Any:
        value = getattr(self, self.strength)
        return self._untold(training) if value is None else self._checked(self.strength, value)

    def _within(self, budget: float) -> Any:
        """Return the value that leaves most of the forest within a budget."""
        values = self._values()
        place = bisect_left(values, True, key=lambda value: is_within(self._cost(value), budget))
        if place == len(values):
            least = self._cost(values[-1])
            raise too_low(budget, least, "the mean cost of the least that can be left")
        return values[place]

    def _cost(self, value: Any) -> float:
        """Return the mean cost of the validation rows at a value of the strength."""
        return float(self._costs(self._left(value), self._validation_rows).mean())

    def _take(self, value: Any) -> None:
        """Be fitted to what is left at a value of the strength."""
        setattr(self, f"{self.strength}_", value)
        self._become(self._left(value).without_bare_roots(), self._validation_rows, watch_in_use())

    def _own_record(self) -> dict[str, Any]:
        value = getattr(self, f"{self.strength}_")
        return {self.strength: value.tolist() if isinstance(value, np.ndarray) else value}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        setattr(self, f"{self.strength}_", self._valid(self.strength, record[self.strength]))


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyPrune(BaselinePruner):
    """A forest from which features are removed one after the other: a baseline.

    Trees are cut at every split on a removed feature. Each step removes the one that leaves the
    least ``error + tradeoff x cost``; see `bayescascade.methods.prunings.frontier`.

    Parameters
    ----------
    forest, costs, budget, n_jobs, random_state
        As of every `ForestPruner`.
    tradeoff : float >= 0 or None
        In-bag error rate that a unit of cost is worth, in choosing what to remove and how much.
        None: to choose what to remove, a quarter of what the whole forest lessens that rate by for
        a unit of its cost; and how much, unless `n_removed` or a `budget` says it, what rows decide
        on that nothing was fitted to, as of `BudgetPruneClassifier`.
    n_removed : int >= 0 or None
        Features to remove, at most all; None: as many as leave the least ``error + tradeoff x
        cost``.

    Attributes
    ----------
    tradeoff_ : float
        `tradeoff`, or the one that said how much to remove; not in saved models.
    n_removed_ : int
        How many features were removed.
    removed_ : list of str
        Which, in their order. A feature that was only read below others goes with these.
    program_ : PruningProgram
        What the splits gain and cost; not in saved models.

    References
    ----------
    Nan, F. (2018). Learning to predict under a budget. PhD thesis, Boston University. Section 4.5.
    """

    model_name: ClassVar[str] = "greedy_prune"
    title: ClassVar[str] = "greedily pruned forest"
    strength: ClassVar[str] = "n_removed"

    tradeoff: float | None = None
    n_removed: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.tradeoff is not None:
            check_real("tradeoff", self.tradeoff, minimum=0.0)

    def _prepare(self, training: TrainingRows) -> None:
        forest = self.whole_forest_
        self.program_ = PruningProgram.of(forest, self._matrix_items, training.validation_rows)
        feature = self._encoder.source[forest.feature[self.program_.node]]
        given = self.tradeoff
        self.tradeoff_ = _ORDER_SHARE * _worth(self.program_) if given is None else given
        self._steps = tuple(remove_features(self.program_, feature, self.tradeoff_))

    def _values(self) -> Sequence[int]:
        return range(len(self._steps))

    def _untold(self, training: TrainingRows) -> int:
        solver = RemovalSolver(self.program_, self._steps)
        if self.tradeoff is None:
            wrong = wrong_elsewhere(self, training, "in_bag")
            self.tradeoff_ = choose_pruning(self.program_, solver, wrong).tradeoff
        return solver.place(self.tradeoff_)

    def _left(self, found: int) -> Forest:
        return self._cut(self._steps[found][1])

    def _take(self, value: int) -> None:
        super()._take(value)
        self.removed_ = [self.feature_texts[feature] for feature, _ in self._steps[1 : value + 1]]

    def _valid(self, name: str, value: Any) -> int:
        return check_integer(name, value, minimum=0)

    def _checked(self, name: str, value: Any) -> int:
        return min(self._valid(name, value), len(self._steps) - 1)

    def _own_record(self) -> dict[str, Any]:
        return {**super()._own_record(), "removed": self.removed_}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        removed = record["removed"]
        if not isinstance(removed, list) or not set(removed) <= set(self.feature_texts):
            raise ValueError(f"removed must be features, got {removed!r}")
        self.n_removed_ = check_integer(
            "n_removed", record["n_removed"], minimum=len(removed), maximum=len(removed)
        )
        self.removed_ = removed


@dataclass(eq=False, repr=False, kw_only=True)
class TruncatedForest(BaselinePruner):
    """A forest of which only the first trees are left: a baseline.

    Parameters
    ----------
    forest, costs, budget, n_jobs, random_state
        As of every `ForestPruner`; costs decide only what is within a budget.
    n_trees : int >= 1 or None
        Trees to keep; None: all of them.

    Attributes
    ----------
    n_trees_ : int
        The number of trees that are left.
    """

    model_name: ClassVar[str] = "truncated_forest"
    title: ClassVar[str] = "truncated forest"
    strength: ClassVar[str] = "n_trees"

    n_trees: int | None = None

    def _prepare(self, training: TrainingRows) -> None:
        pass

    def _values(self) -> Sequence[int]:
        return range(self.whole_forest_.n_trees, 0, -1)

    def _untold(self, training: TrainingRows) -> int:  # noqa: ARG002
        return self.whole_forest_.n_trees

    def _left(self, found: int) -> Forest:
        return self.whole_forest_.part(slice(self.whole_forest_.tree_starts[found]))

    def _valid(self, name: str, value: Any) -> int:
        return check_integer(name, value, minimum=1)

    def _checked(self, name: str, value: Any) -> int:
        return check_integer(name, value, minimum=1, maximum=self.whole_forest_.n_trees)


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
    """

    model_name: ClassVar[str] = "cost_complexity_prune"
    title: ClassVar[str] = "cost-complexity pruned forest"
    strength: ClassVar[str] = "level"

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

    def _left(self, found: float | Floats) -> Forest:
        forest = self.whole_forest_
        of_trees = np.broadcast_to(found, forest.n_trees)
        is_split = self._levels > np.repeat(of_trees, np.diff(forest.tree_starts))
        return forest.pruned(is_split)

    def _valid(self, name: str, value: Any) -> float:
        return check_real(name, value, minimum=0.0)

    def _read_own(self, record: Mapping[str, Any]) -> None:
        told = record["level"]
        levels = [self._valid("level", one) for one in (told if isinstance(told, list) else [told])]
        # a list has each tree's own
        self.level_: float | Floats = np.array(levels) if isinstance(told, list) else levels[0]


def _worth(program: PruningProgram) -> float:
    """Return the tradeoff at which the whole forest is as good as nothing of it."""
    everything = np.ones(program.n_splits, np.bool_)
    cost = program.cost(everything)
    return max(0.0, program.base_error - program.error(everything)) / cost if cost > 0 else 0.0


def split_levels(forest: Forest) -> Floats:
    """Return the level at which each split goes, (n_nodes,) float64 >= 0; 0 at leaves.

    A tree pruned at a level keeps the splits that go at higher ones; no split goes later than the
    one above it.
    """
    totals = forest.counts.sum(axis=1)
    gini = 1.0 - (forest.probabilities**2).sum(axis=1)
    risk = gini * totals / np.repeat(totals[forest.roots], np.diff(forest.tree_starts))
    n_leaves, alive = np.empty(forest.n_nodes, np.int64), np.empty(forest.n_nodes, np.int32)
    branch_risk, levels = np.empty(forest.n_nodes), np.empty(forest.n_nodes)
    find_levels(
        forest.tree_starts, forest.right, forest.parents, forest.ends, risk, branch_risk, n_leaves,
        alive, levels,
    )  # fmt: skip
    return levels


def best_levels(forest: Forest, levels: Floats, counts: Floats) -> Floats:
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
    """Finds the best of the prunings that removing features one by one led to.

    Parameters
    ----------
    program : PruningProgram
    steps : sequence of (int, (n_splits,) bool)
        What `remove_features` yielded.
    """

    def __init__(self, program: PruningProgram, steps: Sequence[tuple[int, Bools]]) -> None:
        self.program = program
        self._steps = steps

    def place(self, tradeoff: float) -> int:
        """Return the place of the step that leaves the least ``error + tradeoff x cost``."""
        objective = self.program.objective
        return int(np.argmin([objective(kept, tradeoff) for _, kept in self._steps]))

    def solve(self, tradeoff: float) -> Pruning:
        """Return that step's pruning; nothing is proved of others."""
        kept = self._steps[self.place(tradeoff)][1]
        return Pruning.of(self.program, kept, tradeoff, -np.inf)


@kernel
def find_levels(
    tree_starts: NDArray[np.int64],
    right: NDArray[np.int32],
    parents: NDArray[np.int32],
    ends: NDArray[np.int64],
    risk: NDArray[np.float64],
    branch_risk: NDArray[np.float64],
    n_leaves: NDArray[np.int64],
    alive: NDArray[np.int32],
    levels: NDArray[np.float64],
) -> None:
    """Prune each tree at its weakest link until it is a leaf, and write when each split goes.

    tree_starts (n_trees + 1,) int64; right, parents (n_nodes,) int32 and ends (n_nodes,) int64: the
    right child, -1 at leaves, the parent, and the end of the subtree of each node; risk (n_nodes,)
    float64: what each node adds as a leaf. Written: levels (n_nodes,) float64, 0 at leaves. Work
    spaces: branch_risk (n_nodes,) float64, n_leaves (n_nodes,) int64, alive (n_nodes,) int32.
    """
    for tree in range(tree_starts.shape[0] - 1):
        start, end = tree_starts[tree], tree_starts[tree + 1]
        n_alive = 0
        for node in range(end - 1, start - 1, -1):
            branch_risk[node] = risk[node]
            n_leaves[node] = 1
            levels[node] = 0.0
            if right[node] >= 0:
                left = node + 1
                branch_risk[node] = branch_risk[left] + branch_risk[right[node]]
                n_leaves[node] = n_leaves[left] + n_leaves[right[node]]
                alive[n_alive] = node
                n_alive += 1
        level = 0.0
        while n_alive > 0:
            weakest, least = alive[0], np.inf
            for place in range(n_alive):
                node = alive[place]
                link = (risk[node] - branch_risk[node]) / (n_leaves[node] - 1)
                if link < least or (link == least and node < weakest):
                    weakest, least = node, link
            level = max(level, least)
            risk_change = risk[weakest] - branch_risk[weakest]
            leaf_change = 1 - n_leaves[weakest]
            node = weakest
            while node >= 0:
                branch_risk[node] += risk_change
                n_leaves[node] += leaf_change
                node = parents[node]
            n_left = 0
            for place in range(n_alive):
                node = alive[place]
                if weakest <= node < ends[weakest]:
                    levels[node] = level
                else:
                    alive[n_left] = node
                    n_left += 1
            n_alive = n_left
