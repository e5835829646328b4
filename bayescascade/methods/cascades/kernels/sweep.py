"""A block of Metropolis-Hastings steps on a tree in the work space, and what else trees are asked.

That is densities of rows, counts of levels, and how probable a proposal is, for tests.
"""

from math import exp, log

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cascades.kernels.densities import count_rows, in_block
from bayescascade.methods.cascades.kernels.layout import (
    CHANGE,
    FEATURE,
    GRAFT,
    GROW,
    INNER,
    N_FREE,
    PARENT,
    POSITION,
    PRUNE,
    REGROUP,
    SWAP,
    TWIGS,
    Array,
    FlatTree,
    ModelArrays,
    TableArrays,
    Work,
)
from bayescascade.methods.cascades.kernels.moves import (
    change_above,
    change_twig,
    exchange,
    grow,
    insert,
    prune,
    remove,
)
from bayescascade.methods.cascades.kernels.proposals import log_q_split
from bayescascade.methods.cascades.kernels.regrouping import (
    flatten,
    nest,
    rotate,
    same_splits_below,
    transpose,
)
from bayescascade.methods.cascades.kernels.subtrees import export, log_density

__all__ = ["count_levels", "score_rows", "split_log_probability", "sweep"]


@inner_kernel
def inner_below_root(rng, work):
    """Draw an inner node other than the root; there must be one."""
    index = np.int64(rng.random() * (work.sizes[INNER] - 1))
    if index >= work.nodes[0, POSITION + INNER]:
        index += 1
    return work.lists[INNER, index]


@kernel
def sweep(
    rng: np.random.Generator,
    table: TableArrays,
    model: ModelArrays,
    work: Work,
    n_steps: int,
    beta: float,
    move_cdf: Array,
    proposed: Array,
    accepted: Array,
    summary: Array,
    best_tree: FlatTree,
) -> int:
    """Run steps on ``exp(beta * log density)`` from the tree in the work space.

    move_cdf (6,) float64: cumulative selection probabilities of MOVES; proposed, accepted (6,)
    int64: counts, added to. The best tree visited, the first one included, is left in `best_tree`,
    as large as the work space, and `summary` (3,) float64 is written: the log density reached, that
    of the best tree, and its number of nodes.

    Returns the steps done: fewer than `n_steps` only when the work space is nearly full.
    """
    nodes, sizes = work.nodes, work.sizes
    best_size = export(work, best_tree)
    best = log_density(model, work)
    current = best
    done = 0
    capacity = nodes.shape[0]
    # a step may take as many nodes as a split proposed has branches, or half of those in use
    while done < n_steps and 3 * sizes[N_FREE] > capacity + 2 * model.max_proposed:
        u = rng.random()
        gain = np.nan
        if u < move_cdf[GROW]:
            move = GROW
            gain = grow(rng, table, model, work, beta)
        elif u < move_cdf[PRUNE]:
            move = PRUNE
            gain = prune(rng, table, model, work, beta)
        elif u < move_cdf[CHANGE]:
            move = CHANGE
            if sizes[INNER] > 0:
                node = work.lists[INNER, np.int64(rng.random() * sizes[INNER])]
                if nodes[node, POSITION + TWIGS] >= 0:
                    gain = change_twig(rng, table, model, work, beta, node)
                else:
                    gain = change_above(rng, table, model, work, beta, node)
        elif u < move_cdf[SWAP]:
            move = SWAP
            if sizes[INNER] > 1:
                child = inner_below_root(rng, work)
                parent = nodes[child, PARENT]
                if nodes[child, FEATURE] == nodes[parent, FEATURE]:
                    gain = rotate(rng, table, model, work, beta, parent, child)
                elif same_splits_below(work, parent):
                    gain = transpose(rng, table, model, work, beta, parent)
                else:
                    gain = exchange(rng, table, model, work, beta, parent, child)
        elif u < move_cdf[REGROUP]:
            move = REGROUP
            if rng.random() < 0.5:
                if sizes[INNER] > 0:
                    node = work.lists[INNER, np.int64(rng.random() * sizes[INNER])]
                    gain = nest(rng, table, model, work, beta, node)
            elif sizes[INNER] > 1:
                child = inner_below_root(rng, work)
                gain = flatten(rng, table, model, work, beta, nodes[child, PARENT], child)
        else:
            move = GRAFT
            if sizes[INNER] > 0:
                node = work.lists[INNER, np.int64(rng.random() * sizes[INNER])]
                if rng.random() < 0.5:
                    gain = insert(rng, table, model, work, beta, node)
                else:
                    gain = remove(rng, table, model, work, beta, node)
        proposed[move] += 1
        done += 1
        if not np.isnan(gain):
            accepted[move] += 1
            current += gain
            if current > best + 1e-8:  # more than rounding, which is then removed
                current = log_density(model, work)
                if current > best:
                    best = current
                    best_size = export(work, best_tree)
    summary[0] = log_density(model, work)
    summary[1] = best
    summary[2] = best_size
    return done


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
