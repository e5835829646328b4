"""Metropolis-Hastings steps on a tree, weights of levels at its nodes, and densities of rows."""

from math import exp, log

import numpy as np

from bayescascade.base.chain_kernels import draw
from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.kernels import (
    densities,
    layout as at,
    moves,
    regrouping,
    trees,
)
from bayescascade.methods.density.trees.kernels.layout import (
    CascadeArrays,
    CascadeWorkspace,
    FlatTree,
    TableArrays,
)


@inner_kernel
def inner_below_root(rng, work):
    """Draw an inner node other than the root; there must be one."""
    index = np.int64(rng.random() * (work.sizes[at.INNER] - 1))
    if index >= work.places[at.INNER, 0]:
        index += 1
    return work.lists[at.INNER, index]


@kernel
def sweep(
    rng: np.random.Generator,
    table: TableArrays,
    model: CascadeArrays,
    work: CascadeWorkspace,
    capacity: int,
    n_steps: int,
    beta: float,
    move_cdf: at.Array,
    proposed: at.Array,
    accepted: at.Array,
    summary: at.Array,
    best_tree: FlatTree,
) -> int:
    """Run steps on ``exp(beta * log density)`` from the work space's tree; return their number.

    There are fewer only if the work space, with room for `capacity` nodes, is nearly full. The tree
    may be from other steps if weights are integers. move_cdf (6,) float64: cumulative probabilities
    of MOVES; proposed, accepted (6,) int64: counts, increased; summary (3,) float64: last log
    density, that of the best tree, and its nodes. The best tree is written to `best_tree`.
    """
    nodes, sizes = work.nodes, work.sizes
    trees.refresh(table, model, work)
    n_beyond = nodes.shape[0] - capacity
    best_size = trees.export(work, best_tree)
    best = trees.log_density(model, work)
    current, done = best, 0
    # a step may take as many nodes as a proposed split has branches, or half of those in use
    while done < n_steps and 3 * (sizes[at.FREE] - n_beyond) > capacity + 2 * model.max_proposed:
        u = rng.random()
        gain = np.nan
        if u < move_cdf[at.GROW]:
            move = at.GROW
            gain = moves.grow(rng, table, model, work, beta)
        elif u < move_cdf[at.PRUNE]:
            move = at.PRUNE
            gain = moves.prune(rng, table, model, work, beta)
        elif u < move_cdf[at.CHANGE]:
            move = at.CHANGE
            if sizes[at.INNER] > 0:
                node = draw(rng, work, at.INNER)
                if work.places[at.TWIGS, node] >= 0:
                    gain = moves.change_twig(rng, table, model, work, beta, node)
                else:
                    gain = moves.change_above(rng, table, model, work, beta, node)
        elif u < move_cdf[at.SWAP]:
            move = at.SWAP
            if sizes[at.INNER] > 1:
                child = inner_below_root(rng, work)
                parent = nodes[child, at.PARENT]
                if nodes[child, at.FEATURE] == nodes[parent, at.FEATURE]:
                    gain = regrouping.rotate(rng, table, model, work, beta, parent, child)
                elif regrouping.same_splits_below(work, parent):
                    gain = regrouping.transpose(rng, table, model, work, beta, parent)
                else:
                    gain = moves.exchange(rng, table, model, work, beta, parent, child)
        elif u < move_cdf[at.REGROUP]:
            move = at.REGROUP
            if rng.random() < 0.5:
                if sizes[at.INNER] > 0:
                    node = draw(rng, work, at.INNER)
                    gain = regrouping.nest(rng, table, model, work, beta, node)
            elif sizes[at.INNER] > 1:
                child = inner_below_root(rng, work)
                parent = nodes[child, at.PARENT]
                gain = regrouping.flatten(rng, table, model, work, beta, parent, child)
        else:
            move = at.GRAFT
            if sizes[at.INNER] > 0:
                node = draw(rng, work, at.INNER)
                if rng.random() < 0.5:
                    gain = moves.insert(rng, table, model, work, beta, node)
                else:
                    gain = moves.remove(rng, table, model, work, beta, node)
        proposed[move] += 1
        done += 1
        if not np.isnan(gain):
            accepted[move] += 1
            current += gain
            if current > best + 1e-8:  # more than rounding; its error is then removed
                current = trees.log_density(model, work)
                if current > best:
                    best = current
                    best_size = trees.export(work, best_tree)
    summary[0] = trees.log_density(model, work)
    summary[1], summary[2] = best, best_size
    return done


@kernel
def count_levels(table: TableArrays, work: CascadeWorkspace, n_nodes: int) -> None:
    """Fill the histograms of the first nodes of the work space: a pass over the rows of each."""
    for node in range(n_nodes):
        densities.count_rows(table, work, node, work.histogram[node])


@kernel
def score_rows(
    codes: at.Array,
    nominal: at.Array,
    feature: at.Array,
    first: at.Array,
    following: at.Array,
    block: at.Array,
    box_width: at.Array,
    log_weight: at.Array,
    leaf: at.Array,
    offset: at.Array,
    log_level: at.Array,
    stack: at.Array,
    out: at.Array,
) -> None:
    """Write the log density of each row, nats, missing cells integrated out.

    codes (p, n) int32, -1 where missing; nominal (p,) bool; feature, first, following (m,) int64:
    the tree's columns, first children and next siblings, -1 for none; block (m,) uint64;
    box_width (m, p) float64: total width of each column's levels at a node; stack (m + 1,) int64:
    scratch; out (n,) float64. A row outside all leaves gets minus infinity.

    Uniform leaves: log_weight (m,) float64 has their log densities, log_level no rows. Independent
    leaves: log_weight has their log probabilities, log_level (n_leaves, L) float64 the log
    densities of all levels inside, by column; leaf (m,) int64 is a node's row in it, offset (p,)
    int64 a column's first level.
    """
    p, n_rows = codes.shape
    is_uniform = log_level.shape[0] == 0
    for row in range(n_rows):
        best, total, size = -np.inf, 0.0, 1
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
                if codes[j, row] < 0 or densities.in_block(nominal[j], block[child], codes[j, row]):
                    stack[size] = child
                    size += 1
                child = following[child]
        out[row] = best + log(total) if best > -np.inf else -np.inf
