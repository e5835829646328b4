"""Growing a tree of classifiers: each node buys within its budget, and halves its rows.

Kusner and others (2014), Algorithm 1, corrected as in the errata of the documentation.
"""

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.watch import watch_in_use
from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.leaves import (
    gate_of,
    least_squares_leaf,
    logistic_leaf,
)
from bayescascade.methods.budget.classifier_trees.scaling import NodeSums, squares_of
from bayescascade.methods.budget.classifier_trees.selection import NodeChoices
from bayescascade.methods.budget.classifier_trees.tree import ClassifierNode, ClassifierTree, Linear

_LEAST_ROWS = 20.0  # minimum weight of a node with children
_ROUNDING = 1e-9  # relative to scores
_LEAST_SHARE = 1e-3  # minimum share of a soft row that counts at a node


@dataclass(frozen=True, slots=True)
class NodeGrowth:
    """How a tree is grown; see `SubmodularTreeClassifier`.

    node_budgets: one number for all nodes, or one for each, breadth first.
    """

    node_budgets: tuple[float, ...]
    selection: str = "auto"
    max_depth: int = 5
    weights: str = "hard"
    leaf: str = "logistic"

    def budget(self, number: int) -> float:
        """Return the budget of a node of a full tree, numbered breadth first."""
        return self.node_budgets[number if len(self.node_budgets) > 1 else 0]


@dataclass(frozen=True, eq=False)
class GrowingRows:
    """Rows of the matrix (n, n_matrix_columns) to grow from, labels (n,), weights (n,) >= 0.

    targets (n, c): indicators, one for two classes.
    """

    rows: Floats
    labels: Integers
    weights: Floats
    basis: Basis
    n_classes: int
    targets: Floats

    @classmethod
    def of(
        cls, basis: Basis, rows: Floats, labels: Integers, weights: Floats, n_classes: int
    ) -> "GrowingRows":
        """Return rows with their basis and targets."""
        indicators = np.eye(n_classes)[labels]
        targets = indicators[:, 1:] if n_classes == 2 else indicators
        return cls(rows, labels, weights, basis, n_classes, targets)

    @cached_property
    def made(self) -> Floats:
        """The rows in the basis, (n, p)."""
        return self.basis.of_rows(self.rows)

    def sums(self, weights: Floats) -> NodeSums:
        """Return the sums of squares at a node whose rows have these weights."""
        return squares_of(self.made, self.targets, weights)

    def leaf(
        self, kind: str, weights: Floats, columns: Integers, sums: NodeSums | None = None
    ) -> Linear:
        """Return the predictor of a leaf whose rows have these weights, perhaps with its `sums`."""
        if kind == "least_squares":
            return least_squares_leaf(self.sums(weights) if sums is None else sums, columns)
        there = weights > _LEAST_SHARE * self.weights
        if not there.any():
            there = weights > 0
        return logistic_leaf(
            self.basis,
            self.rows[there],
            self.labels[there],
            weights[there],
            columns,
            self.n_classes,
        )


def grow(rows: GrowingRows, items: CostItems, how: NodeGrowth) -> ClassifierTree:
    """Return a tree grown from rows; `items` are the costs of features.

    When the time limit is reached, nodes that have no children yet are leaves.
    """
    watch = watch_in_use()
    n_features = items.n_columns
    starts = rows.basis.starts(n_features)
    nodes: list[ClassifierNode] = []
    waiting = deque([(rows.weights, np.zeros(n_features, np.bool_), 0)])
    while waiting and not (nodes and watch.is_over()):
        weights, inherited, number = waiting.popleft()
        sums = rows.sums(weights)
        node = NodeChoices(sums.squares, starts, items, inherited)
        bought = node.choose(how.budget(number), how.selection)
        has = inherited.copy()
        has[bought.features] = True
        columns = np.flatnonzero(has[rows.basis.feature])
        gate = gate_of(sums, columns)
        threshold, children = _children(rows, gate, weights, how, number)
        places = (-1, -1)
        if children is not None:
            first = len(nodes) + 1 + len(waiting)
            places = (first, first + 1)
            for side, part in enumerate(children):
                waiting.append((part, has, 2 * number + 1 + side))
        nodes.append(
            ClassifierNode(
                bought.features,
                bought.gains,
                bought.explained,
                bought.bound,
                bought.is_exact,
                float(weights.sum()),
                gate,
                threshold,
                places,
                rows.leaf(how.leaf, weights, columns, sums),
            )
        )
    return ClassifierTree(rows.basis, _with_pairs(nodes), n_features, rows.n_classes)


def _with_pairs(nodes: list[ClassifierNode]) -> tuple[ClassifierNode, ...]:
    """Return the first nodes of a tree, breadth first; those without both children are leaves."""
    n = len(nodes) - (len(nodes) + 1) % 2
    return tuple(
        replace(node, children=(-1, -1)) if node.children[1] >= n else node for node in nodes[:n]
    )


def refitted(tree: ClassifierTree, rows: GrowingRows, leaf: str) -> ClassifierTree:
    """Return the tree with leaves refitted to other rows; leaves without rows or time stay."""
    nodes, watch = list(tree.nodes), watch_in_use()
    for place, there in tree.visited(rows.rows):
        weights = np.zeros(len(rows.labels))
        weights[there] = rows.weights[there]
        node = replace(nodes[place], weight=float(weights.sum()))
        if node.is_leaf and weights.any() and not watch.is_over():
            node = replace(node, leaf=rows.leaf(leaf, weights, node.leaf.columns))
        nodes[place] = node
    return replace(tree, nodes=tuple(nodes))


def _children(
    rows: GrowingRows, gate: Linear, weights: Floats, how: NodeGrowth, number: int
) -> tuple[float, tuple[Floats, Floats] | None]:
    """Return the threshold, and the weights of rows at both children, None for a leaf."""
    is_last = number + 1 >= 2 ** (how.max_depth - 1)
    classes = np.unique(rows.labels[weights > 0])
    if is_last or weights.sum() < _LEAST_ROWS or classes.size < 2 or not gate.columns.size:
        return 0.0, None
    there = np.flatnonzero(weights)
    made = rows.made[there[:, np.newaxis], gate.columns]
    scores = made @ gate.coefficients[0] + gate.intercepts[0]
    threshold = _threshold(scores, weights[there])
    if threshold is None:
        return 0.0, None
    shares = expit(scores - threshold) if how.weights == "soft" else scores > threshold
    above, below = np.zeros_like(weights), np.zeros_like(weights)
    above[there] = weights[there] * shares
    below[there] = weights[there] - above[there]
    return threshold, (above, below)


def _threshold(scores: Floats, weights: Floats) -> float | None:
    """Return the middle of the gap nearest to the weighted median, None if there is one score.

    Gaps that rounding may close do not count, so equal rows always go the same way.
    """
    order = np.argsort(scores, kind="stable")
    ordered, total = scores[order], np.cumsum(weights[order])
    ends = np.flatnonzero(np.diff(ordered) > _ROUNDING * max(1.0, float(np.abs(ordered).max())))
    if not ends.size:
        return None
    end = ends[np.abs(total[ends] - total[-1] / 2).argmin()]
    return float((ordered[end] + ordered[end + 1]) / 2)
