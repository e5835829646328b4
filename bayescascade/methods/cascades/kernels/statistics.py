"""Densities of rows under a tree, counts of levels, and how probable a proposal is, for tests."""

from math import exp, log

import numpy as np

from bayescascade.base.jit import kernel
from bayescascade.methods.cascades.kernels.densities import count_rows
from bayescascade.methods.cascades.kernels.layout import Array, ModelArrays, TableArrays, Work
from bayescascade.methods.cascades.kernels.levels import in_block
from bayescascade.methods.cascades.kernels.proposals import log_q_split

__all__ = ["count_levels", "score_rows", "split_log_probability"]


@kernel
def count_levels(table: TableArrays, work: Work, n_nodes: int) -> None:
    """Fill the histograms of the first nodes of the work space: a pass over the rows of each."""
    for node in range(n_nodes):
        count_rows(table, work, node, work.histogram[node])


@kernel
def split_log_probability(
    table: TableArrays,
    model: ModelArrays,
    work: Work,
    node: int,
    j: int,
    b: int,
    assign: Array,
) -> float:
    """Log probability that this split is proposed for a node of the tree in the work space.

    j: the column; b: branches; assign (Q,) int64: the branch of each code left at the node.
    """
    log_q: float = log_q_split(table, model, work, node, j, b, assign)
    return log_q


@kernel
def score_rows(
    codes: Array,
    nominal: Array,
    feature: Array,
    first: Array,
    following: Array,
    block: Array,
    box_width: Array,
    log_weight: Array,
    leaf: Array,
    offset: Array,
    log_level: Array,
    stack: Array,
    out: Array,
) -> None:
    """Write the log density of each row, nats, missing cells integrated out.

    codes (p, n) int32, -1 where missing; nominal (p,) bool; feature, first, following (m,) int64:
    the tree's columns, first children and next siblings, -1 for none; block (m,) uint64;
    box_width (m, p) float64: total width of each column's levels at a node; stack (m + 1,) int64:
    scratch; out (n,) float64. A row that no leaf holds gets minus infinity.

    Uniform leaves: log_weight (m,) float64 has their log densities, log_level no rows. Independent
    ones: log_weight has their log probabilities, log_level (n_leaves, L) float64 the log densities
    inside, by column, of every level; leaf (m,) int64 is a node's row in it, offset (p,) int64 a
    column's first level.
    """
    p, n_rows = codes.shape
    is_uniform = log_level.shape[0] == 0
    for row in range(n_rows):
        best = -np.inf
        total = 0.0
        size = 1
        stack[0] = 0
        while size > 0:
            size -= 1
            node = stack[size]
            j = feature[node]
            if j < 0:
                value = log_weight[node]
                for k in range(p):
                    code = codes[k, row]
                    if is_uniform and code < 0:
                        value += log(box_width[node, k])
                    elif not is_uniform and code >= 0:
                        value += log_level[leaf[node], offset[k] + code]
                if value > best:
                    total = total * exp(best - value) + 1.0
                    best = value
                elif value > -np.inf:
                    total += exp(value - best)
                continue
            child = first[node]
            while child >= 0:
                if codes[j, row] < 0 or in_block(nominal[j], block[child], codes[j, row]):
                    stack[size] = child
                    size += 1
                child = following[child]
        out[row] = best + log(total) if best > -np.inf else -np.inf
