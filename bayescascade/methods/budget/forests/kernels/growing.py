"""GREEDYTREE, compiled: one tree grown by minimax risk, without recursion (Nan 2018, section 3.3).

A node of impurity ``F(S) > 0`` is split by the column, and its best cut, of least risk ::

    R(t) = c(t)^b / (F(S) - max_i F(S_i))

where ``c(t)`` is the cost of the column, ``b = 1`` in the thesis, and ``S_i`` are the children.
Among equal risks, the split with the largest decrease of the impurity is used, then that with the
fewest pairs in the worse child, then the first column. A free column is used if it reduces the
impurity at least as much as that split; see `growing`.
"""

from typing import NamedTuple

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.budget.forests.kernels.growing_cuts import (
    MISSING,
    Array,
    ImpurityArrays,
    best_cut,
    impurity,
)

MOST_STUMPS = 80
START, END, DEPTH, N_CONSTANT = range(4)  # columns of `pending`
GREATEST = float(np.finfo(np.float32).max)


class GrowingArrays(NamedTuple):
    """The rows that trees are grown on, of n rows, d columns and k classes."""

    codes: Array  # (d, n) int32: index among a column's distinct values or bins, or MISSING
    starts: Array  # (d + 1,) int64: start of a column's values in lows and highs
    lows: Array  # (n_values,) float64: smallest value of each code
    highs: Array  # (n_values,) float64: largest value of each code
    labels: Array  # (n,) int64 < k
    weights: Array  # (n,) float64 >= 0


class GrowthCosts(NamedTuple):
    """Costs of columns: the items of each column, as in CostItems."""

    costs: Array  # (n_items,) float64 > 0
    starts: Array  # (d + 1,) int64: column j incurs items[starts[j]:starts[j + 1]]
    items: Array  # int64
    exponent: float  # >= 0: power of the costs
    reuse_is_free: bool  # whether items paid on the path are free


class GrowthLimits(NamedTuple):
    """Maximum depth, maximum number of columns for a split, and whether only to use random cuts."""

    max_depth: int
    max_features: int
    has_stumps: bool


class GrownNodes(NamedTuple):
    """The nodes of a tree, in the layout of a Forest, with room for m nodes."""

    feature: Array  # (m,) int32
    threshold: Array  # (m,) float64
    missing_left: Array  # (m,) bool
    counts: Array  # (m, k) float64


class GrowingSpace(NamedTuple):
    """The work space for growing a tree; s is the maximum number of stumps."""

    rows: Array  # (n,) int32: the rows, each node's in one range
    kept: Array  # (n,) int32: scratch for dividing a range
    labels: Array  # (n,) int64: labels of the current node's rows
    weights: Array  # (n,) float64: their weights
    part: Array  # (n,) int64: not missing in the current column, code and place in one number
    left: Array  # (k,) float64: class counts, like the next three
    right: Array
    trial: Array
    missing: Array
    columns: Array  # (d,) int64: in the order of use, first those known to be constant
    path: Array  # (n,) int32: the columns of the node's ancestors
    paid: Array  # (n_items,) bool: the items of these columns
    # (n, 4) int64: the right children that are not grown yet: start, end, depth, and number of
    # columns known to be constant
    pending: Array
    stumps: Array  # (s,) int32


def new_nodes(n_nodes: int, n_classes: int) -> GrownNodes:
    """Return space for a tree; unused pages of it take no memory."""
    feature, missing_left = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.bool_)
    return GrownNodes(feature, np.empty(n_nodes), missing_left, np.empty((n_nodes, n_classes)))


def new_workspace(n_rows: int, n_columns: int, n_classes: int, n_items: int) -> GrowingSpace:
    """Return a work space for trees of up to n_rows distinct rows."""
    return GrowingSpace(*(
        *np.empty((2, n_rows), np.int32), np.empty(n_rows, np.int64), np.empty(n_rows),
        np.empty(n_rows, np.int64), *np.empty((4, n_classes)), np.arange(n_columns),
        np.empty(n_rows, np.int32), np.empty(n_items, np.bool_), np.empty((n_rows, 4), np.int64),
        np.empty(MOST_STUMPS, np.int32),
    ))  # fmt: skip


@kernel
def grow(
    rng: np.random.Generator,
    data: GrowingArrays,
    measure: ImpurityArrays,
    costs: GrowthCosts,
    limits: GrowthLimits,
    nodes: GrownNodes,
    work: GrowingSpace,
) -> int:
    """Grow a tree on rows of weight > 0; return its number of nodes, less than twice the rows."""
    n_rows = 0
    for row in range(data.labels.shape[0]):
        if data.weights[row] > 0.0:
            work.rows[n_rows] = row
            n_rows += 1
    start, end, depth, n_constant = 0, n_rows, 0, 0
    n_nodes, n_pending = 0, 0
    while True:
        node = n_nodes
        n_nodes += 1
        _count(data, work, start, end, nodes.counts[node])
        split, n_constant = _best_split(
            rng, data, measure, costs, limits, work, nodes.counts[node], start, end, depth,
            n_constant,
        )  # fmt: skip
        nodes.feature[node] = split.column
        nodes.missing_left[node], nodes.threshold[node] = False, np.nan
        if split.column >= 0:
            nodes.missing_left[node] = _missing_left(data, work, split, start, end)
            nodes.threshold[node] = _threshold(data, split)
            middle = _divide(data, work, split, start, end)
            work.path[depth] = split.column
            depth += 1
            work.pending[n_pending, START], work.pending[n_pending, END] = middle, end
            work.pending[n_pending, DEPTH] = depth
            work.pending[n_pending, N_CONSTANT] = n_constant
            n_pending += 1
            end = middle
            continue
        if n_pending == 0:
            return n_nodes
        n_pending -= 1
        start, end = work.pending[n_pending, START], work.pending[n_pending, END]
        depth = work.pending[n_pending, DEPTH]
        n_constant = work.pending[n_pending, N_CONSTANT]


@inner_kernel
def _count(data, work, start, end, counts):
    """Gather labels and weights of the rows of a node, and sum the weights of its classes."""
    counts[:] = 0.0
    for i in range(start, end):
        row = work.rows[i]
        work.labels[i - start] = data.labels[row]
        work.weights[i - start] = data.weights[row]
        counts[data.labels[row]] += data.weights[row]


class _Split(NamedTuple):
    """A cut of a column: cost per decrease of the impurity, and the result of `best_cut`."""

    risk: float
    gain: float
    tie: float
    column: int
    low: int
    high: int
    is_left: bool


@inner_kernel
def _best_split(rng, data, measure, costs, limits, work, counts, start, end, depth, n_constant):
    """Return the split of a node, with column -1 for a leaf, and the number of constant columns.

    Constant columns at a node, the first n_constant, are not used below it. A random part of the
    others has at least one column that reduces the impurity if there is one.
    """
    none = _Split(np.inf, 0.0, 0.0, -1, 0, 0, False)
    whole = impurity(measure, counts)
    if whole <= 0.0 or depth >= limits.max_depth:
        return none, n_constant
    paid, free = none, none
    _mark_paid(costs, work, depth)
    n_columns, n_looked = data.codes.shape[0], 0
    for k in range(n_constant, n_columns):
        if limits.max_features < n_columns:
            if n_looked >= limits.max_features and max(paid.column, free.column) >= 0:
                break
            other = k + np.int64(rng.random() * (n_columns - k))
            work.columns[k], work.columns[other] = work.columns[other], work.columns[k]
        column = work.columns[k]
        cost = _cost(costs, work, column)
        if cost / whole > paid.risk:  # worse even with pure children
            n_looked += 1
            continue
        worse, tie, low, high, is_left, varies = best_cut(
            rng, data, measure, work, column, start, end, counts, limits.has_stumps
        )
        if not varies:
            work.columns[k], work.columns[n_constant] = work.columns[n_constant], column
            n_constant += 1
            continue
        n_looked += 1
        gain = whole - worse
        if gain > 0.0:
            split = _Split(cost / gain, gain, tie, column, low, high, is_left)
            if cost > 0.0:
                if _is_better(split, paid):
                    paid = split
            elif _is_better(split, free):
                free = split
    best = free if free.gain >= paid.gain else paid
    return best, n_constant


@inner_kernel
def _is_better(split, other):
    """Whether a split has less risk or, in ties, more gain, fewer pairs, an earlier column."""
    if split.risk != other.risk:
        return split.risk < other.risk
    if split.gain != other.gain:
        return split.gain > other.gain
    if split.tie != other.tie:
        return split.tie < other.tie
    return split.column < other.column


@inner_kernel
def _mark_paid(costs, work, depth):
    """Mark the items of the columns on the path to the node."""
    work.paid[:] = False
    if costs.reuse_is_free:
        for above in range(depth):
            column = work.path[above]
            for i in range(costs.starts[column], costs.starts[column + 1]):
                work.paid[costs.items[i]] = True


@inner_kernel
def _cost(costs, work, column):
    """Return the cost of a column's unpaid items at the node, raised to the exponent."""
    cost = 0.0
    for i in range(costs.starts[column], costs.starts[column + 1]):
        if not work.paid[costs.items[i]]:
            cost += costs.costs[costs.items[i]]
    return cost**costs.exponent if cost > 0.0 else 0.0


@inner_kernel
def _missing_left(data, work, split, start, end):
    """Whether missing values go left; without any, the side with more of the weight."""
    codes, balance = data.codes[split.column], 0.0
    for i in range(start, end):
        code, weight = codes[work.rows[i]], work.weights[i - start]
        if code == MISSING:
            return split.is_left
        balance += weight if code <= split.low else -weight
    return balance > 0.0


@inner_kernel
def _threshold(data, split):
    """Halfway between the values on both sides; the largest float32 if all numbers go left."""
    if split.high == MISSING:
        return GREATEST
    start = data.starts[split.column]
    below, above = data.highs[start + split.low], data.lows[start + split.high]
    threshold = below + (above - below) / 2.0
    return below if threshold >= above else threshold


@inner_kernel
def _divide(data, work, split, start, end):
    """Move rows that go left to the front, keeping the order for fast reads; return their end."""
    codes = data.codes[split.column]
    middle, n_right = start, 0
    for i in range(start, end):
        row = work.rows[i]
        code = codes[row]
        if split.is_left if code == MISSING else code <= split.low:
            work.rows[middle] = row
            middle += 1
        else:
            work.kept[n_right] = row
            n_right += 1
    for i in range(n_right):
        work.rows[middle + i] = work.kept[i]
    return middle
