"""BUDGETRF: trees grown by GREEDYTREE, and added within the budget (Nan 2018, chapter 3).

GREEDYTREE (section 3.3): while a node's impurity ``F(S)`` is positive, it is split by the column
and cut of least risk, ``c(t)^b / (F(S) - max_i F(S_i))`` with ``b = 1``. Columns are coded once for
all trees, by the index of their values among the distinct ones ("exact"), or among at most 255 bins
of about equal numbers of rows ("histogram"); `kernels.growing_cuts` finds the best of all cuts in
linear time. "random" uses 80, 40 or 20 cuts, at nodes of more than 2,000 rows, more than 500, or
fewer, as in the thesis's experiments; cuts are drawn at the values of random rows.

*Departures.* A free column has no risk, so the rule above would split by it as long as it reduces
the impurity at all. This is very bad: on covertype with a quarter of the columns free, 40 trees err
on 73 % of the rows, and on 46 % if only columns paid above are free. Here a free column is used
only if it reduces the impurity at least as much as the column of least risk among the others; then
40 trees err on 18 % in both cases. With positive costs and `reuse_is_free` false the rule is that
of the thesis, and its bound on the cost holds.

If costs differ much, a budget is not spent: the cheapest columns divide a set nearly as well as any
others, which are never used. On covertype with random costs from 1 to 20, 40 trees cost 4 % of all
features and err on 37 % of the rows; with ``b = 0.25``, 6 % and 24 %; with ``b = 0``, 27 % and 18
%. So ``b`` can be chosen; the trees are those of the thesis for costs ``c^b``.

Values may be missing: all missing values of a node go to the side that makes the cut better, or
alone to the right. If a column has none at the node, missing values in later rows follow the
greater weight. For ties of risk, see `kernels.growing`.

BUDGETRF (Algorithm 2): each tree is grown on n_rows rows drawn with replacement; the first tree
with which the mean cost of the validation rows exceeds the budget is excluded, and ends the forest.
A row pays for a feature once, even if several trees read it, so costs never fall as trees are
added.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import isqrt
from numbers import Integral, Real
from time import perf_counter
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.watch import Watch
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.forests.kernels import growing as kernels
from bayescascade.methods.budget.forests.kernels.growing_cuts import MISSING, ImpurityArrays
from bayescascade.methods.budget.forests.trees import LEAF

MAX_BINS = 255

_GRACE = 1.0  # seconds by which trees may exceed the time limit
_SECONDS = 0.1  # seconds of a thread's work before its trees are counted

_Seeds: TypeAlias = Sequence[np.random.SeedSequence]

_Tree: TypeAlias = tuple[Forest, Flags]
"""A tree, and the items that each validation row pays for in it, (n_rows, n_items)."""

Share: TypeAlias = int | float | str | None
"""The number of columns drawn for a split: a number, a share, the square root, or all."""


class CodedColumns(NamedTuple):
    """Columns coded by the indices of their values; `GrowingArrays` describes the arrays."""

    codes: Codes
    starts: Integers
    lows: Floats
    highs: Floats

    @classmethod
    def of(cls, X: NDArray[np.float32], max_bins: int | None = None) -> Self:
        """Code a matrix, NaN missing; columns of over `max_bins` values are cut at quantiles."""
        codes = np.empty(X.shape[::-1], np.int32)
        lows, highs = [], []
        for j in range(X.shape[1]):
            is_missing = np.isnan(X[:, j])
            values, ranks, n_each = np.unique(
                X[~is_missing, j], return_inverse=True, return_counts=True
            )
            bins = np.arange(len(values))
            if max_bins is not None and len(values) > max_bins:
                below = np.cumsum(n_each) - n_each
                bins = below * max_bins // n_each.sum()
                bins = np.unique(bins, return_inverse=True)[1]
            codes[j, is_missing], codes[j, ~is_missing] = MISSING, bins[ranks]
            is_first = np.diff(bins, prepend=-1) > 0
            lows.append(values[is_first])
            highs.append(values[np.append(is_first[1:], True)[: len(values)]])
        starts = np.cumsum([0, *(len(values) for values in lows)])
        return cls(codes, starts, *(np.concatenate(v).astype(np.float64) for v in (lows, highs)))


@dataclass(frozen=True, slots=True, eq=False)
class TreeGrower:
    """Grows trees on weighted rows."""

    columns: CodedColumns
    labels: Integers  # (n_rows,) >= 0
    measure: ImpurityArrays
    items: CostItems  # costs of each column
    n_classes: int
    max_features: int  # >= 1, number used for each split, drawn at random unless all
    cost_exponent: float = 1.0  # >= 0, power of a column's cost; 1: as in the thesis, 0: all equal
    reuse_is_free: bool = True  # a column and its groups are free below a node that reads it
    max_depth: int | None = None
    has_stumps: bool = False  # whether only random cuts are used

    def grow(self, rng: np.random.Generator, weights: Floats) -> Forest:
        """Return a forest of one tree, grown on rows with these weights.

        `rng` draws columns and cuts, if these are random; weights (n_rows,) >= 0, not all zero, are
        whole numbers, so that a node of one class never appears impure by rounding.
        """
        n_rows = int(np.count_nonzero(weights))
        depth = n_rows if self.max_depth is None else self.max_depth
        items, is_free = self.items, self.reuse_is_free
        nodes = kernels.new_nodes(2 * n_rows - 1, self.n_classes)
        data = kernels.GrowingArrays(*self.columns, self.labels, weights)
        per_column = (items.costs, items.starts, items.items)
        costs = kernels.GrowthCosts(*per_column, self.cost_exponent, is_free)
        limits = kernels.GrowthLimits(depth, self.max_features, self.has_stumps)
        work = kernels.new_workspace(n_rows, len(self.columns.codes), self.n_classes, items.n_items)
        n_nodes = kernels.grow(rng, data, self.measure, costs, limits, nodes, work)
        return Forest.from_preorder(*(array[:n_nodes].copy() for array in nodes))


@dataclass(frozen=True, slots=True, eq=False)
class GrownForest:
    """Trees within a budget; None if there are none.

    `costs`, (n_trees,) >= 0, are means over the validation rows after each tree, not decreasing. If
    the first tree is beyond the budget, there is only its cost.
    """

    trees: Forest | None
    costs: Floats
    is_interrupted: bool = False  # by Ctrl-C

    @property
    def n_trees(self) -> int:
        """Number of trees within the budget."""
        return 0 if self.trees is None else self.trees.n_trees

    def within(self, budget: float | None) -> Self:
        """Return the result for a smaller budget."""
        n_trees = sum(budget is None or is_within(cost, budget) for cost in self.costs.tolist())
        if self.trees is None or n_trees == self.n_trees:
            return self
        if not n_trees:
            return replace(self, trees=None, costs=self.costs[:1])
        trees = self.trees.part(slice(int(self.trees.tree_starts[n_trees])))
        return replace(self, trees=trees, costs=self.costs[:n_trees])


def add_trees(
    grower: TreeGrower,
    seeds: _Seeds,
    validation_rows: NDArray[np.float32],
    *,
    budget: float | None,
    bootstrap: bool,
    n_jobs: int | None,
    watch: Watch,
) -> GrownForest:
    """Grow trees until the mean cost exceeds the budget, or there is one for each seed.

    With `bootstrap`, each has its own draw of the rows. The trees do not depend on `n_jobs`. After
    the time limit of `watch` no new tree is started, except the first.
    """
    trees: list[Forest] = []
    costs: list[float] = []
    paid = np.zeros((len(validation_rows), grower.items.n_items), np.bool_)
    is_interrupted = False
    try:
        grow = partial(_grow, grower, validation_rows, bootstrap)
        for tree, paid_by_tree in _trees(grow, seeds, n_jobs, watch):
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


def bare_root(labels: Integers, n_classes: int) -> Forest:
    """Return a tree without splits, which costs nothing."""
    counts = np.bincount(labels, minlength=n_classes)[np.newaxis].astype(np.float64)
    none = np.zeros(1)
    return Forest.from_preorder(np.full(1, LEAF, np.int32), none, none > 0, counts)


def _trees(
    grow: Callable[[_Seeds], list[_Tree]], seeds: _Seeds, n_jobs: int | None, watch: Watch
) -> Iterator[_Tree]:
    """Yield trees in the order of their seeds, in batches of about `_SECONDS` per thread."""
    # starting work in threads takes milliseconds, as small trees do; the limit bounds the number of
    # trees that are grown beyond the budget
    n_workers = effective_n_jobs(n_jobs)
    start, n_each, seconds = 0, 1, 0.0
    with Parallel(n_jobs=n_jobs, prefer="threads") as pool:
        while start < len(seeds) and not (start > 0 and watch.is_over(max(0.0, seconds - _GRACE))):
            stop = min(start + n_workers * n_each, len(seeds))
            began = perf_counter()
            grown = pool(
                delayed(grow)(seeds[first : min(first + n_each, stop)])
                for first in range(start, stop, n_each)
            )
            seconds = perf_counter() - began
            yield from chain.from_iterable(grown)
            start = stop
            if n_workers > 1:
                n_each = max(1, int(n_each * _SECONDS / seconds))


def outside_bags(seeds: _Seeds, n_rows: int) -> Flags:
    """Return whether each row is out of the bag of each seed's tree, (n_rows, n_trees) bool."""
    outside = np.ones((n_rows, len(seeds)), np.bool_)
    for tree, rng in enumerate(map(np.random.default_rng, seeds)):
        outside[_bag(rng, n_rows), tree] = False
    return outside


def _bag(rng: np.random.Generator, n_rows: int) -> Integers:
    """Return the rows of a tree's bag, drawn with replacement, (n_rows,) int64."""
    return rng.integers(0, n_rows, n_rows)


def _grow(
    grower: TreeGrower, validation_rows: NDArray[np.float32], bootstrap: bool, seeds: _Seeds
) -> list[_Tree]:
    n_rows, grown = len(grower.labels), []
    for rng in map(np.random.default_rng, seeds):
        draws = _bag(rng, n_rows) if bootstrap else np.arange(n_rows)
        tree = grower.grow(rng, np.bincount(draws, minlength=n_rows).astype(np.float64))
        grown.append((tree, grower.items.paid(tree.features_used(validation_rows))))
    return grown


class GrowthAlternative(NamedTuple):
    """One of the forests that the parameters allow.

    `error`, in [0, 1], is that on the validation rows or, in cross-validation, on all rows; NaN
    without either, or without a tree.
    """

    alpha: float
    cost_exponent: float
    max_features: int  # >= 1, columns drawn for each split
    n_trees: int  # trees within the budget; 0 if the first one is beyond it
    cost: float  # mean of validation rows; that of the first tree if beyond the budget
    error: float  # share of wrongly classified rows


def alternative_of(
    alpha: float, grower: TreeGrower, grown: GrownForest, training: TrainingRows
) -> GrowthAlternative:
    """Return the alternative of a grown forest."""
    cost = float(grown.costs[-1]) if len(grown.costs) else np.nan
    error = np.nan
    if grown.trees is not None and training.validation_labels is not None:
        said = grown.trees.predict_proba(training.validation_rows).argmax(axis=1)
        error = float(np.mean(said != training.validation_labels))
    return GrowthAlternative(
        alpha, grower.cost_exponent, grower.max_features, grown.n_trees, cost, error
    )


def several(name: str, value: object) -> list[tuple[str, object]]:
    """Return the values of a parameter with one or several values, with their names."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return [(name, value)]
    if not len(value):
        raise ParameterError(f"{name} must be one value or several, got {value!r}")
    return [(f"{name}[{i}]", one) for i, one in enumerate(value)]


def check_share(name: str, value: object) -> Share:
    """Return the number or share of drawn columns in plain types; ParameterError if invalid."""
    if value is None or (isinstance(value, str) and value == "sqrt"):
        return value
    if isinstance(value, Integral):
        number = int(value)
        if number >= 1 and not isinstance(value, bool):
            return number
    elif isinstance(value, Real) and 0.0 < float(value) <= 1.0:
        return float(value)
    raise ParameterError(
        f'{name} must be an integer >= 1, a share in (0, 1], "sqrt", "auto" or None, got {value!r}'
    )


def n_drawn(share: Share, n_columns: int) -> int:
    """Return the number of drawn columns; a share is rounded down, to at least one."""
    if share is None:
        return n_columns
    if isinstance(share, str):
        return isqrt(n_columns)
    if isinstance(share, int):
        return min(share, n_columns)
    return max(1, int(share * n_columns))
