"""A tree with the weights of its nodes, as a user reads it; and their log likelihood."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.counted_tree import CountedTree
from bayescascade.methods.cascades.density import DensityTree
from bayescascade.methods.cascades.dependence import DependentTree
from bayescascade.methods.cascades.models import (
    CascadeModel,
    empirical_probabilities,
    independent_log_inside,
    independent_probabilities,
)
from bayescascade.methods.cascades.tree import leaf_boxes


def readable_tree(
    schema: Schema,
    counted: CountedTree,
    model: CascadeModel,
    is_empirical: bool,
    made: dict[Any, Any] | None = None,
) -> DensityTree:
    """Return a tree with probabilities, by shares of the rows if `is_empirical`.

    `made` holds what equal dependent leaves have in common, where several trees are read.
    """
    tree, counts = counted.tree, counted.counts
    if is_empirical:
        probabilities, a = empirical_probabilities(tree, counts), 0.0
    else:
        probabilities, a = model.probabilities(tree, counts), model.leaf_concentration
    if counted.pair_counts is not None:
        pairs, made = counted.pair_counts, {} if made is None else made
        return DependentTree.of(schema, tree, counts, probabilities, pairs, a, made)
    levels = None
    if counted.level_counts is not None:
        boxes = leaf_boxes(schema, tree)
        levels = independent_probabilities(schema, boxes, counted.level_counts, a)
    return DensityTree(schema, tree, counts, probabilities, level_probabilities=levels)


def log_inside_leaves(
    schema: Schema, counted: CountedTree, readable: DensityTree, model: CascadeModel
) -> NDArray[np.float64]:
    """Return the log likelihood, nats, of where rows are inside their leaves, (n_nodes,)."""
    tree = counted.tree
    log_inside = np.zeros(tree.n_nodes)
    if isinstance(readable, DependentTree):
        log_inside[tree.leaves] = [leaf.log_evidence for leaf in readable.inside]
    elif counted.level_counts is not None:
        boxes, a = leaf_boxes(schema, tree), model.leaf_concentration
        log_inside[tree.leaves] = independent_log_inside(schema, boxes, counted.level_counts, a)
    else:
        log_inside = -counted.counts * readable.log_volumes
    return log_inside
