"""A block of Metropolis-Hastings steps on a budgeted tree.

grow, prune
    Split any leaf by any candidate; make any split over two leaves a leaf.
change
    Put any candidate in the place of any split, whose subtrees stay.
regrow
    Draw any node, and a new subtree for it; see the file of this name.

A candidate is drawn column first, then any of the column's thresholds.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import accept, draw, enlist, strike
from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cost_trees.kernels.layout import (
    CANDIDATE,
    LEAVES,
    LEFT,
    N_FREE,
    PARENT,
    RIGHT,
    SPLITS,
    TWIGS,
    Array,
    TreeModel,
    TreeWork,
    divide,
    export,
    is_twig,
    share_rows,
)
from bayescascade.methods.cost_trees.kernels.regrow import regrow
from bayescascade.methods.cost_trees.kernels.values import split_gain, subtree_value

__all__ = ["MOVES", "sweep"]

MOVES = ("grow", "prune", "change", "regrow")
GROW, PRUNE, CHANGE, REGROW = range(4)

IMPROVEMENT = 1e-8  # nats: more than rounding adds up to


# -- moves: each returns the change of log density if it was accepted, otherwise NaN ---------------


@inner_kernel
def draw_candidate(rng, model):
    """Draw a column that has candidates, then one of these."""
    column = model.open_columns[np.int64(rng.random() * model.open_columns.shape[0])]
    n_thresholds = model.starts[column + 1] - model.starts[column]
    return model.starts[column] + np.int64(rng.random() * n_thresholds)


@inner_kernel
def grow(rng, model, work, beta):
    """Split a leaf."""
    sizes, nodes = work.sizes, work.nodes
    if model.open_columns.shape[0] == 0 or sizes[LEAVES] == model.max_leaves:
        return np.nan
    node = draw(rng, work, LEAVES)
    candidate = draw_candidate(rng, model)
    n_free = work.numbers[N_FREE]
    left, right = work.free[n_free - 1], work.free[n_free - 2]
    if not share_rows(model, work, node, candidate, left, right):
        return np.nan
    gain = split_gain(model, work, node, candidate, left, right)
    above = nodes[node, PARENT]
    replaces = above >= 0 and work.places[TWIGS, above] >= 0
    log_forward = model.log_candidate[candidate] - log(sizes[LEAVES])
    log_back = -log(sizes[TWIGS] + 1 - replaces)
    if not accept(rng, beta * gain + log_back - log_forward):
        return np.nan
    work.numbers[N_FREE] -= 2
    nodes[node, CANDIDATE] = candidate
    nodes[node, LEFT] = left
    nodes[node, RIGHT] = right
    strike(work, LEAVES, node)
    enlist(work, SPLITS, node)
    enlist(work, TWIGS, node)
    if replaces:
        strike(work, TWIGS, above)
    for child in (left, right):
        nodes[child, CANDIDATE] = -1
        nodes[child, PARENT] = node
        enlist(work, LEAVES, child)
    return gain


@inner_kernel
def prune(rng, model, work, beta):
    """Make a split over two leaves a leaf."""
    sizes, nodes = work.sizes, work.nodes
    if sizes[TWIGS] == 0:
        return np.nan
    node = draw(rng, work, TWIGS)
    candidate, left, right = nodes[node, CANDIDATE], nodes[node, LEFT], nodes[node, RIGHT]
    gain = -split_gain(model, work, node, candidate, left, right)
    log_forward = -log(sizes[TWIGS])
    log_back = model.log_candidate[candidate] - log(sizes[LEAVES] - 1)
    if not accept(rng, beta * gain + log_back - log_forward):
        return np.nan
    for child in (left, right):
        strike(work, LEAVES, child)
        work.free[work.numbers[N_FREE]] = child
        work.numbers[N_FREE] += 1
    nodes[node, CANDIDATE] = -1
    strike(work, SPLITS, node)
    strike(work, TWIGS, node)
    enlist(work, LEAVES, node)
    above = nodes[node, PARENT]
    if above >= 0 and is_twig(work, above):
        enlist(work, TWIGS, above)
    return gain


@inner_kernel
def change(rng, model, work, beta):
    """Put another candidate in the place of a split."""
    nodes = work.nodes
    if work.sizes[SPLITS] == 0:
        return np.nan
    node = draw(rng, work, SPLITS)
    old, new = nodes[node, CANDIDATE], draw_candidate(rng, model)
    if new == old:
        return 0.0
    before = subtree_value(model, work, node)
    nodes[node, CANDIDATE] = new
    if divide(model, work, node):
        gain = subtree_value(model, work, node) - before
        log_q_ratio = model.log_candidate[old] - model.log_candidate[new]
        if accept(rng, beta * gain + log_q_ratio):
            return gain
    nodes[node, CANDIDATE] = old
    divide(model, work, node)
    return np.nan


@kernel
def sweep(
    rng: np.random.Generator,
    model: TreeModel,
    work: TreeWork,
    n_steps: int,
    beta: float,
    move_cdf: Array,
    proposed: Array,
    accepted: Array,
    best_tree: Array,
) -> int:
    """Run steps on ``exp(beta * log density)`` from the tree in the work space.

    move_cdf (4,) float64: cumulative selection probabilities of MOVES; proposed, accepted (4,)
    int64: counts, added to; best_tree (2 max_leaves - 1,) int64: the best tree visited, the first
    one included, is left there in preorder. Returns its number of nodes.
    """
    best_size = export(work, best_tree)
    excess = 0.0  # over the log density of the best tree
    for _ in range(n_steps):
        u = rng.random()
        if u < move_cdf[GROW]:
            move = GROW
            gain = grow(rng, model, work, beta)
        elif u < move_cdf[PRUNE]:
            move = PRUNE
            gain = prune(rng, model, work, beta)
        elif u < move_cdf[CHANGE]:
            move = CHANGE
            gain = change(rng, model, work, beta)
        else:
            move = REGROW
            gain = regrow(rng, model, work, beta)
        proposed[move] += 1
        if not np.isnan(gain):
            accepted[move] += 1
            excess += gain
            if excess > IMPROVEMENT:
                best_size = export(work, best_tree)
                excess = 0.0
    return best_size
