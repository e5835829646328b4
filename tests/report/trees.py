"""Density trees for tests of what is printed: made up, so that nothing needs to be fitted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.tree import Tree, leaf_boxes, level_starts, levels_left

TITANIC = Schema(
    (
        Column("class", "nominal", ("1st", "2nd", "3rd", "crew")),
        Column("sex", "nominal", ("female", "male")),
        Column("age", "ordinal", ("child", "adult")),
    )
)


def density_tree(
    schema: Schema, nested: Any, leaf_counts: Sequence[float], alpha: float = 0.0
) -> LearnedDensityTree:
    """Return the density of a nested tree whose leaves, in its order, have these counts."""
    tree = Tree.from_nested(nested, [column.kind == "nominal" for column in schema.columns])
    counts, probabilities = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    counts[tree.leaves] = leaf_counts
    smoothed = counts[tree.leaves] + alpha
    probabilities[tree.leaves] = smoothed / smoothed.sum()
    for node in range(tree.n_nodes - 1, 0, -1):
        counts[tree.parent[node]] += counts[node]
        probabilities[tree.parent[node]] += probabilities[node]
    return LearnedDensityTree(schema, tree, counts, probabilities, {})


def titanic_tree() -> LearnedDensityTree:
    """Return a small tree with nominal and ordinal splits."""
    by_age = (2, [((0,), None), ((1,), None)])
    by_class = (0, [((0, 1), None), ((2, 3), None)])
    nested = (1, [((0,), by_age), ((1,), (2, [((0,), None), ((1,), by_class)]))])
    return density_tree(TITANIC, nested, [45, 425, 64, 343, 1324])


def random_density(
    rng: np.random.Generator, schema: Schema, n_splits: int, depth_bias: float = 0.0
) -> LearnedDensityTree:
    """Return a tree of random splits; with a bias of 1, always of the deepest leaf."""
    root: list[Any] = [None]
    leaves: list[tuple[list[Any], int, list[list[int]], int]] = [
        (root, 0, [list(range(column.n_levels)) for column in schema.columns], 0)
    ]
    for _ in range(n_splits):
        splittable = [
            i for i, leaf in enumerate(leaves) if any(len(codes) > 1 for codes in leaf[2])
        ]
        if not splittable:
            break
        deepest = max(splittable, key=lambda i: leaves[i][3])
        chosen = deepest if rng.random() < depth_bias else int(rng.choice(splittable))
        holder, slot, box, depth = leaves.pop(chosen)
        column = int(rng.choice([j for j, codes in enumerate(box) if len(codes) > 1]))
        codes = box[column]
        if schema.columns[column].kind == "nominal":
            codes = rng.permutation(codes).tolist()
        cut = int(rng.integers(1, len(codes)))
        branches = [[tuple(sorted(part)), None] for part in (codes[:cut], codes[cut:])]
        holder[slot] = (column, branches)
        for branch in branches:
            inside = [list(branch[0]) if j == column else kept for j, kept in enumerate(box)]
            leaves.append((branch, 1, inside, depth + 1))
    n_leaves = len(leaves)
    counts = np.floor(rng.exponential(1.0, n_leaves) ** 4 * 50)
    return density_tree(schema, root[0], counts.tolist(), alpha=2.0)


def with_independent_leaves(
    rng: np.random.Generator, density: LearnedDensityTree
) -> LearnedDensityTree:
    """Return a density with the same tree, and random probabilities inside its leaves."""
    schema = density.schema
    left = levels_left(schema, leaf_boxes(schema, density.tree))
    weights = np.where(left, rng.exponential(1.0, left.shape) ** 3 + 1e-9, 0.0)
    totals = np.add.reduceat(weights, level_starts(schema)[:-1], axis=1)
    return replace(density, level_probabilities=weights / totals.repeat(schema.n_levels, axis=1))
