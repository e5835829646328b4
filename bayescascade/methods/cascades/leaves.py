"""What the density is inside the leaves: their part of a log likelihood, and of a print.

A *uniform* leaf of weight ``n_l`` and volume ``v_l`` contributes ``-n_l ln v_l``. In an
*independent* leaf each column follows its own Dirichlet-multinomial over its ``m_j`` levels that
are left in the leaf's box, with ``a`` = `leaf_concentration` for each; for weights ``n_jc`` and
widths ``w_c`` of the levels it contributes::

    sum_j [ lnG(a m_j) - lnG(n_l + a m_j)
            + sum_{c left} (lnG(n_jc + a) - lnG(a) - n_jc ln w_c) ]

Arrays over levels have the levels of all columns one after the other, ``L`` in all.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.blocks import full_block
from bayescascade.methods.cascades.tree import Tree

__all__ = [
    "independent_log_inside",
    "independent_probabilities",
    "leaf_boxes",
    "level_starts",
    "levels_left",
    "root_box",
]

_LOW_BITS = np.uint64((1 << 32) - 1)


def root_box(schema: Schema) -> NDArray[np.uint64]:
    """Return the block of all levels of every column, (p,) uint64."""
    blocks = [full_block(c.kind == "nominal", c.n_levels) for c in schema.columns]
    return np.array(blocks, np.uint64)


def leaf_boxes(schema: Schema, tree: Tree) -> NDArray[np.uint64]:
    """Return the blocks that are left of every column in a tree's leaves, (n_leaves, p) uint64."""
    return tree.boxes(root_box(schema))[tree.leaves]


def level_starts(schema: Schema) -> NDArray[np.int64]:
    """Return where every column's levels start among all of them, and their number, (p + 1,)."""
    return np.concatenate([[0], np.cumsum(schema.n_levels)]).astype(np.int64)


def levels_left(schema: Schema, boxes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which levels of every column are left in each box.

    Parameters
    ----------
    schema : Schema
    boxes : (n, p) uint64
        Blocks, as `Tree.boxes` has them.

    Returns
    -------
    (n, L) bool
    """
    left = np.empty((boxes.shape[0], int(schema.n_levels.sum())), np.bool_)
    starts = level_starts(schema)
    for j, column in enumerate(schema.columns):
        codes, block = np.arange(column.n_levels, dtype=np.uint64), boxes[:, j, np.newaxis]
        if column.kind == "nominal":
            inside = (block >> codes) & np.uint64(1) == 1
        else:
            inside = (codes >= (block & _LOW_BITS)) & (codes < (block >> np.uint64(32)))
        left[:, starts[j] : starts[j + 1]] = inside
    return left


def independent_log_inside(
    schema: Schema,
    boxes: NDArray[np.uint64],
    level_counts: NDArray[np.float64],
    leaf_concentration: float,
) -> NDArray[np.float64]:
    """Return what each box contributes to the log likelihood as an independent leaf, nats.

    Parameters
    ----------
    schema : Schema
    boxes : (n, p) uint64
        Blocks, as `Tree.boxes` has them.
    level_counts : (n, L) float64
        Weight of every level among the rows in each box; 0 for those not left.
    leaf_concentration : float > 0
        Dirichlet parameter of every level.

    Returns
    -------
    (n,) float64
    """
    a, starts = leaf_concentration, level_starts(schema)[:-1]
    left = levels_left(schema, boxes)
    widths = np.concatenate([column.widths for column in schema.columns])
    terms = gammaln(level_counts + a) - gammaln(a) - level_counts * np.log(widths)
    weights = np.add.reduceat(level_counts, starts, axis=1)
    total = a * np.add.reduceat(left.astype(np.float64), starts, axis=1)
    inside: NDArray[np.float64] = np.where(left, terms, 0.0).sum(axis=1)
    inside += (gammaln(total) - gammaln(weights + total)).sum(axis=1)
    return inside


def independent_probabilities(
    schema: Schema,
    boxes: NDArray[np.uint64],
    level_counts: NDArray[np.float64],
    leaf_concentration: float,
) -> NDArray[np.float64]:
    """Return the probability of every level inside each box as an independent leaf.

    Parameters
    ----------
    schema, boxes, level_counts
        As in `independent_log_inside`.
    leaf_concentration : float >= 0
        ``a`` of the posterior mean ``(n_jc + a) / (n_l + a m_j)``; with 0 it is the share of the
        rows, or of the width where there are none.

    Returns
    -------
    (n, L) float64
        Sums up to 1 over each column; 0 for levels not left.
    """
    starts = level_starts(schema)
    left = levels_left(schema, boxes)
    weights = np.where(left, level_counts + leaf_concentration, 0.0)
    widths = np.concatenate([column.widths for column in schema.columns])
    is_empty = np.add.reduceat(weights, starts[:-1], axis=1) == 0
    weights = np.where(np.repeat(is_empty, schema.n_levels, axis=1), left * widths, weights)
    totals = np.add.reduceat(weights, starts[:-1], axis=1)
    probabilities: NDArray[np.float64] = weights / np.repeat(totals, schema.n_levels, axis=1)
    return probabilities
