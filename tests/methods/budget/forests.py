"""Forests written down by hand or drawn at random, for the tests of this folder."""

from typing import NamedTuple

import numpy as np

from bayescascade.costs.items import CostItems
from bayescascade.methods.forests.forest import Forest
from tests.methods.budget import reference_pruning


class Problem(NamedTuple):
    """A small forest as the package and as its slow twin know it, with rows and costs."""

    forest: Forest
    roots: list[reference_pruning.Node]
    rows: np.ndarray
    weights: np.ndarray
    column_items: list[tuple[int, ...]]
    items: CostItems


def forest_of(trees) -> Forest:
    """Return the forest of nested trees, as `reference_pruning` writes them."""
    nodes = [node for tree in trees for node in reference_pruning.Node(tree).nodes()]
    return Forest.from_preorder(
        np.array([-1 if node.column is None else node.column for node in nodes], np.int32),
        np.array([np.nan if node.column is None else node.threshold for node in nodes]),
        np.zeros(len(nodes), np.bool_),
        np.array([node.counts for node in nodes], np.float64),
    )


def items_of(column_items, costs) -> CostItems:
    """Return the cost items that each column incurs."""
    return CostItems(
        names=tuple(f"item {item}" for item in range(len(costs))),
        costs=np.array(costs, np.float64),
        starts=np.cumsum([0, *map(len, column_items)], dtype=np.int64),
        items=np.array([item for items in column_items for item in items], np.int64),
    )


def random_problem(
    rng: np.random.Generator, n_trees: int = 2, depth: int = 3, n_rows: int = 6
) -> Problem:
    """Return a problem of groups, free columns, weights (some 0) and repeated reads."""
    column_items = [(0,), (1, 3), (2, 3), (3,), ()]
    trees = [reference_pruning.random_tree(rng, depth, 5, 3) for _ in range(n_trees)]
    rows = rng.random((n_rows, 5)).astype(np.float32)
    return Problem(
        forest_of(trees),
        [reference_pruning.Node(tree) for tree in trees],
        rows,
        rng.integers(0, 4, n_rows) + np.eye(n_rows)[0],
        column_items,
        items_of(column_items, rng.uniform(0.2, 2.0, 4)),
    )
