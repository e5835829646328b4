"""What each split of a density tree wins: how much more probable it makes the rows.

A split of ``n`` rows and volume ``v`` into branches of ``n_c`` and ``v_c`` wins, where leaves are
uniform ::

    sum over branches of n_c ln((n_c / n) / (v_c / v))   nats,

which is never negative. Of other leaves, the log marginal likelihoods of what is inside take the
place of ``-n_c ln v_c`` and ``-n ln v``: a split into leaves of several columns that are hardly
different may lose.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.counted_tree import CountedTree
from bayescascade.methods.cascades.dependence import DependentLeaf
from bayescascade.methods.cascades.models import independent_log_inside
from bayescascade.methods.cascades.tree import root_box
from bayescascade.model.importances import importance_shares

Floats = NDArray[np.float64]


def split_shares(
    schema: Schema, counted: CountedTree, log_volumes: Floats, leaf_concentration: float
) -> Floats:
    """Return each column's share of what all splits win, (p,) float64; 0 of no splits."""
    tree, counts = counted.tree, counted.counts
    inside = _log_inside(schema, counted, log_volumes, leaf_concentration)
    worth = xlogy(counts, counts) + inside
    gains = -worth
    np.add.at(gains, tree.parent[1:], worth[1:])
    splits = np.flatnonzero(tree.feature >= 0)
    return importance_shares(schema.n_columns, tree.feature[splits], gains[splits])


def _log_inside(
    schema: Schema, counted: CountedTree, log_volumes: Floats, concentration: float
) -> Floats:
    """Return the log likelihood of every node's rows as a leaf, given that they are there."""
    boxes = counted.tree.boxes(root_box(schema))
    if counted.pair_counts is not None:
        pairs = _summed(counted, counted.pair_counts)
        leaves = (
            DependentLeaf(schema, *own, concentration) for own in zip(boxes, pairs, strict=True)
        )
        return np.array([leaf.log_evidence for leaf in leaves])
    if counted.level_counts is not None:
        levels = _summed(counted, counted.level_counts)
        return independent_log_inside(schema, boxes, levels, concentration)
    return -counted.counts * log_volumes


def _summed(counted: CountedTree, of_leaves: Floats) -> Floats:
    """Return the sums below every node of arrays of the leaves."""
    tree = counted.tree
    sums = np.zeros((tree.n_nodes, *of_leaves.shape[1:]))
    sums[tree.leaves] = of_leaves
    for node in range(tree.n_nodes - 1, 0, -1):
        sums[tree.parent[node]] += sums[node]
    return sums
