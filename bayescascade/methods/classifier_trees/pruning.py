"""The best prunings of a tree of classifiers for every tradeoff of errors and costs.

A row that comes to a node pays for what the node buys; so what a subtree costs beyond its root is a
sum over its other nodes, and a pruning that minimizes

    errors + tradeoff * cost

decides node by node, bottom up: a node becomes a leaf once its own errors are no more than the
least of its subtree. Without a tradeoff these are the nodes below which nothing is gained, which
come first: nothing was learned from the rows that judge, so a subtree may err more than its root.
As the tradeoff grows it happens once for each node, at the tradeoff where its subtree's gain in
errors per cost is least; these prunings are nested (Breiman and others, 1984, chapter 3, with what
is paid in place of the number of leaves).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayescascade.costs.items import CostItems
from bayescascade.methods.classifier_trees.judges import Candidate
from bayescascade.methods.classifier_trees.tree import ClassifierTree

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pruning(Candidate):
    """A pruned tree."""

    tradeoff: float  # the least that it is best for


def prices_of(tree: ClassifierTree, items: CostItems) -> Numbers:
    """Return what rows pay at each node, (n_nodes,), beside what they paid above it."""
    totals = items.total(items.paid(tree.has))
    above = np.zeros(len(tree.nodes))
    for place, node in enumerate(tree.nodes):
        for child in node.children:
            if child >= 0:
                above[child] = totals[place]
    return totals - above


def prunings(
    tree: ClassifierTree, items: CostItems, rows: Numbers, labels: NDArray[np.int64]
) -> list[Pruning]:
    """Return the best prunings by rows (n, n_matrix_columns), the largest tree first."""
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
        if errors[place] <= further:  # not worth anything, or none below
            leaves.add(place)
    found: list[Pruning] = []
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
            found.append(Pruning(tree=pruned, error=error, cost=cost, tradeoff=tradeoff))
            if np.isinf(least):  # what is left costs nothing more
                return found
            tradeoff = least
        leaves |= {place for place, rate in rates.items() if rate <= tradeoff}


def _reached(tree: ClassifierTree, leaves: set[int]) -> set[int]:
    """Return the nodes that rows come to if those of `leaves` have no children."""
    reached = {0}
    for place, node in enumerate(tree.nodes):
        if place in reached and place not in leaves:
            reached |= set(node.children)
    return reached
