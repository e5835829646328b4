"""What a user sees of a tree of classifiers: a line for each node, and a row's way in words."""

from typing import Any

import numpy as np

from bayescascade.costs.items import CostItems
from bayescascade.data.levels import level_text
from bayescascade.methods.classifier_trees.judges import prices_of
from bayescascade.methods.classifier_trees.tree import ClassifierTree
from bayescascade.report.numbers import cost_texts, count_texts
from bayescascade.report.page import Numbers, Page, PrintedTable

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
"""Terms of the page, or nothing, and what they mean."""


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
    """Return for each node the way of a row that comes to it, and what it has paid for."""
    ways = [""] * len(tree.nodes)
    for place, node in enumerate(tree.nodes):
        for child, side in zip(node.children, ("high", "low"), strict=True):
            if child >= 0:
                ways[child] = f"{ways[place]}, {side}" if ways[place] else side
    told = []
    for way, has in zip(ways, tree.has, strict=True):
        read = ", ".join(names[feature] for feature in np.flatnonzero(has))
        told.append(f"{way or 'any row'}: reads {read or 'nothing'}")
    return told


_MOST_OUTPUTS = 3  # that have a column each


def coefficient_table(tree: ClassifierTree, columns: list[str], classes: list[Any]) -> Page:
    """Return a line for each of the `columns` that a classifier weighs, the strongest first."""
    node = tree.nodes[0]
    leaf, texts = node.leaf, tree.basis.texts(columns)
    if not leaf.columns.size:
        return ()
    rank = {feature: place for place, feature in enumerate(node.bought.tolist())}
    of_column = [rank[feature] for feature in tree.basis.feature[leaf.columns].tolist()]
    order = np.argsort(of_column, kind="stable")
    shown = leaf.coefficients[:, order]
    if len(shown) == 1:
        named = [Numbers("per unit", [f"{one:.4g}" for one in shown[0]])]
    elif len(shown) <= _MOST_OUTPUTS:
        named = [
            Numbers(level_text(label), [f"{one:.4g}" for one in row])
            for label, row in zip(classes, shown, strict=True)
        ]
    else:
        named = [Numbers("largest per unit", [f"{one:.4g}" for one in np.abs(shown).max(axis=0)])]
    labels = [texts[column] for column in leaf.columns[order]]
    return (PrintedTable(labels, named, "column"),)
