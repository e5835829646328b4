"""The validation rows of trees of classifiers, the candidates, and the best prunings.

A row that reaches a node pays for the purchases of the node. So the cost of a subtree beyond its
root is a sum over its other nodes, and a pruning that minimizes

    errors + tradeoff * cost

is found bottom up: a node becomes a leaf once its own errors are at most the minimum for its
subtree. With tradeoff 0, these are the nodes whose subtrees gain nothing; they come first. The
validation rows are not learned from, so a subtree may have more errors than its root. As the
tradeoff grows, each node becomes a leaf once, in order of its subtree's gain in errors per cost.
These prunings are nested (Breiman and others, 1984, chapter 3, with costs instead of the number of
leaves).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.watch import Watch
from bayescascade.costs.choice import weighted_mean
from bayescascade.costs.items import CostItems
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.labels import TrainingRows
from bayescascade.data.levels import level_text
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows
from bayescascade.methods.budget.classifier_trees.tree import ClassifierTree
from bayescascade.report.numbers import cost_texts, count_texts
from bayescascade.report.page import Numbers, Page, PrintedTable

_HELD_OUT = 0.25
"""Share of held-out validation rows if no validation rows are given.

For few rows, cross-validation as for forests was no better (errors in percent within 10, 20, 30, 50
and 100 % of Turney's prices, five splits; with a held-out quarter first): trees on hepatitis 17.4,
16.8, 16.1, 14.8, 14.8 against 20.6 for all budgets, standard errors .8 to 2.2; on pima 32.1, 31.7,
31.7, 22.7, 24.9 against 32.9, 31.2, 31.2, 23.4, 23.9, standard errors 1.3 to 2.1; and it takes six
times the work. Trees grown on all rows have no rows left for pruning.
"""


HOW_TO_READ = (
    (
        "",
        "The first table has a line for each node, with the features that it buys in addition to "
        "those above it. A node computes a score from all of them, and sends the row to its high "
        "or its low child.",
    ),
    ("R²", "the share of the variance of the classes that the score explains there"),
    (
        "at most",
        "an upper bound for all choices within the node's budget; = means that it is reached",
    ),
    ("adds", "the additional cost of a row at this node"),
)
"""Terms of the page, or "", and their meanings."""

_MOST_OUTPUTS = 3  # classes with a column each


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScoredTree:
    """A candidate with its error and cost on the validation rows."""

    tree: ClassifierTree
    error: float  # error rate
    cost: float  # mean cost of a row


class TreeValidation(NamedTuple):
    """The validation rows."""

    rows: Matrix
    labels: Integers
    weights: Floats
    words: str
    learns: Flags  # (n_training_rows,), which rows are learned from

    def scored(self, tree: ClassifierTree, items: CostItems) -> dict[str, Any]:
        """Return the parts of a `ScoredTree`: a tree, its error and its mean cost."""
        wrong = tree.predict_proba(self.rows).argmax(axis=1) != self.labels
        costs = items.total(items.paid(tree.has))[tree.apply(self.rows)]
        return {
            "tree": tree,
            "error": weighted_mean(wrong, self.weights),
            "cost": float(costs.mean()),
        }


class TreeCandidates(NamedTuple):
    """The candidates of `fit`."""

    candidates: tuple[ScoredTree, ...]
    training: TrainingRows
    everything: GrowingRows
    validation: TreeValidation
    watch: Watch


def validation_of(training: TrainingRows, chooses: bool, random_state: Any) -> TreeValidation:
    """Return the validation rows: given ones, held-out ones, or all if nothing is chosen."""
    learns = np.ones(len(training.rows), np.bool_)
    if training.validation_labels is not None:
        rows, labels = training.validation_rows, training.validation_labels
        return TreeValidation(rows, labels, np.ones(len(rows)), "validation rows", learns)
    if not chooses:
        return TreeValidation(training.rows, training.labels, training.weights, "rows", learns)
    generator = np.random.default_rng(random_state)
    counts, held_out = training.weights > 0, np.zeros(len(training.rows), np.bool_)
    parts = split_by_class(training.labels[counts], [1 - _HELD_OUT, _HELD_OUT], generator)
    held_out[counts] = parts == 1
    return TreeValidation(
        training.rows[held_out], training.labels[held_out], training.weights[held_out],
        "held-out rows", ~held_out,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PrunedTree(ScoredTree):
    """A pruned tree."""

    tradeoff: float  # the least one for which it is best


def prices_of(tree: ClassifierTree, items: CostItems) -> Floats:
    """Return the additional cost of rows at each node, (n_nodes,)."""
    totals = items.total(items.paid(tree.has))
    above = np.zeros(len(tree.nodes))
    for place, node in enumerate(tree.nodes):
        for child in node.children:
            if child >= 0:
                above[child] = totals[place]
    return totals - above


def prunings(
    tree: ClassifierTree, items: CostItems, rows: Floats, labels: Integers
) -> list[PrunedTree]:
    """Return the best prunings for rows (n, n_matrix_columns), the largest tree first."""
    n_nodes, n_rows = len(tree.nodes), len(rows)
    errors, costs = np.zeros(n_nodes), np.zeros(n_nodes)
    prices = prices_of(tree, items)
    for place, there in tree.visited(rows):
        if there.size:
            answers = tree.nodes[place].leaf.probabilities(tree.basis, rows[there])
            errors[place] = (answers.argmax(axis=1) != labels[there]).sum()
            costs[place] = prices[place] * there.size / n_rows
    leaves, least_errors = set(), errors.copy()
    for place in reversed(range(n_nodes)):
        node = tree.nodes[place]
        further = errors[place] if node.is_leaf else least_errors[list(node.children)].sum()
        least_errors[place] = min(errors[place], further)
        if errors[place] <= further:  # no gain, or no nodes below
            leaves.add(place)
    found: list[PrunedTree] = []
    tradeoff = 0.0
    while True:
        below, beyond = errors.copy(), np.zeros(n_nodes)
        rates = {}
        for place in reversed(range(n_nodes)):
            if place not in leaves:
                children = list(tree.nodes[place].children)
                below[place] = below[children].sum()
                beyond[place] = (costs[children] + beyond[children]).sum()
                gain, cost = (errors[place] - below[place]) / n_rows, beyond[place]
                rates[place] = gain / cost if cost > 0 else np.inf
        reached = _reached(tree, leaves)
        rates = {place: rate for place, rate in rates.items() if place in reached}
        least = min(rates.values(), default=np.inf)
        if least > tradeoff:
            cut = [place for place in leaves if place in reached]
            error, cost = float(below[0]) / n_rows, float(costs[0] + beyond[0])
            pruned = tree.cut_at(cut)
            found.append(PrunedTree(tree=pruned, error=error, cost=cost, tradeoff=tradeoff))
            if np.isinf(least):  # the remaining tree has no costs
                return found
            tradeoff = least
        leaves |= {place for place, rate in rates.items() if rate <= tradeoff}


def _reached(tree: ClassifierTree, leaves: set[int]) -> set[int]:
    """Return the nodes that rows reach if those of `leaves` have no children."""
    reached = {0}
    for place, node in enumerate(tree.nodes):
        if place in reached and place not in leaves:
            reached |= set(node.children)
    return reached


def node_table(
    tree: ClassifierTree, names: list[str], items: CostItems, *, explains: bool = True
) -> PrintedTable:
    """Return a line for each node, children below their parents; with R², if it is known."""
    places, labels = [], []
    pending = [(0, 0, "all rows")]
    while pending:
        place, depth, side = pending.pop()
        node = tree.nodes[place]
        bought = ", ".join(names[feature] for feature in node.bought) or "nothing more"
        places.append(place)
        labels.append(f"{'· ' * depth}{side}: {bought}")
        above, below = node.children
        pending += [(c, depth + 1, s) for c, s in ((below, "low"), (above, "high")) if c >= 0]
    nodes = [tree.nodes[place] for place in places]
    prices = prices_of(tree, items)[places]
    bounds = ["=" if node.is_exact else f"{node.bound:.3f}" for node in nodes]
    columns = [
        Numbers("rows", count_texts([node.weight for node in nodes])),
        Numbers("adds", cost_texts(prices.tolist())),
    ]
    if explains:
        columns.append(Numbers("R²", [f"{node.explained:.3f}" for node in nodes]))
        columns.append(Numbers("at most", bounds))
    return PrintedTable(labels, columns, "node: buys")


def path_words(tree: ClassifierTree, names: list[str]) -> list[str]:
    """Return for each node the way of a row that reaches it, and the features it paid for."""
    ways = [""] * len(tree.nodes)
    for place, node in enumerate(tree.nodes):
        for child, side in zip(node.children, ("high", "low"), strict=True):
            if child >= 0:
                ways[child] = f"{ways[place]}, {side}" if ways[place] else side
    words = []
    for conditions, has in zip(ways, tree.has, strict=True):
        read = ", ".join(names[feature] for feature in np.flatnonzero(has))
        words.append(f"{conditions or 'any row'}: reads {read or 'nothing'}")
    return words


def coefficient_table(tree: ClassifierTree, columns: list[str], classes: list[Any]) -> Page:
    """Return a line for each of the `columns` with a coefficient, the strongest first."""
    node = tree.nodes[0]
    leaf, texts = node.leaf, tree.basis.texts(columns)
    if not leaf.columns.size:
        return ()
    rank = {feature: place for place, feature in enumerate(node.bought.tolist())}
    of_column = [rank[feature] for feature in tree.basis.feature[leaf.columns].tolist()]
    order = np.argsort(of_column, kind="stable")
    shown = leaf.coefficients[:, order]
    if len(shown) == 1:
        named = [Numbers("per unit", [f"{number:.4g}" for number in shown[0]])]
    elif len(shown) <= _MOST_OUTPUTS:
        named = [
            Numbers(level_text(label), [f"{number:.4g}" for number in row])
            for label, row in zip(classes, shown, strict=True)
        ]
    else:
        named = [
            Numbers("largest per unit", [f"{number:.4g}" for number in np.abs(shown).max(axis=0)])
        ]
    labels = [texts[column] for column in leaf.columns[order]]
    return (PrintedTable(labels, named, "column"),)
