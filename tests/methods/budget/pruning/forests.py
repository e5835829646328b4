"""Forests written down by hand or drawn at random, for the tests of this folder."""

from typing import NamedTuple

import numpy as np

from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.pruning.program import PruningProgram
from tests.methods.budget.pruning import reference


class Problem(NamedTuple):
    """A small forest as the package and as its slow twin know it, with rows and costs."""

    forest: Forest
    roots: list[reference.Node]
    rows: np.ndarray
    weights: np.ndarray
    column_items: list[tuple[int, ...]]
    items: CostItems


def forest_of(trees):
    """Return the forest of nested trees, as `reference` writes them."""
    nodes = [node for tree in trees for node in reference.Node(tree).nodes()]
    return Forest.from_preorder(
        np.array([-1 if node.column is None else node.column for node in nodes], np.int32),
        np.array([np.nan if node.column is None else node.threshold for node in nodes]),
        np.zeros(len(nodes), np.bool_),
        np.array([node.counts for node in nodes], np.float64),
    )


def items_of(column_items, costs):
    """Return the cost items that each column incurs."""
    return CostItems(
        names=tuple(f"item {item}" for item in range(len(costs))),
        costs=np.array(costs, np.float64),
        starts=np.cumsum([0, *map(len, column_items)], dtype=np.int64),
        items=np.array([item for items in column_items for item in items], np.int64),
    )


def random_problem(rng, n_trees=2, depth=3, n_rows=6):
    """Return a problem of groups, free columns, weights (some 0) and repeated reads."""
    column_items = [(0,), (1, 3), (2, 3), (3,), ()]
    trees = [reference.random_tree(rng, depth, 5, 3) for _ in range(n_trees)]
    rows = rng.random((n_rows, 5)).astype(np.float32)
    return Problem(
        forest_of(trees),
        [reference.Node(tree) for tree in trees],
        rows,
        rng.integers(0, 4, n_rows) + np.eye(n_rows)[0],
        column_items,
        items_of(column_items, rng.uniform(0.2, 2.0, 4)),
    )


class Listed(NamedTuple):
    """A program and all its prunings, (n_prunings, n_splits) bool, with their errors and costs.

    feature: of each split.
    """

    program: PruningProgram
    prunings: np.ndarray
    errors: np.ndarray
    costs: np.ndarray
    feature: np.ndarray

    @classmethod
    def of(cls, forest, roots, program):
        """Return a program of a forest, whose trees `reference` knows, with all prunings."""
        leaves = reference.all_prunings(roots)
        prunings = np.array([reference.kept_splits(roots, one) for one in leaves], np.bool_)
        errors = np.array([program.error(one) for one in prunings])
        costs = np.array([program.cost(one) for one in prunings])
        return cls(program, prunings, errors, costs, forest.feature[program.node])

    def best(self, tradeoff):
        """Return the least objective."""
        return float((self.errors + tradeoff * self.costs).min())


def programs(rng, n_programs=12):
    """Return programs with groups, weights, work and splits that increase the error."""
    made = []
    for number in range(n_programs):
        problem = random_problem(rng, n_trees=3, depth=2 + number % 2, n_rows=5)
        program = PruningProgram.of(
            problem.forest,
            problem.items,
            problem.rows,
            problem.weights,
            split_cost=0.1 * (number % 3),
            counts=problem.forest.counts if number % 2 else rng.random(problem.forest.counts.shape),
        )
        made.append(Listed.of(problem.forest, problem.roots, program))
    return made
