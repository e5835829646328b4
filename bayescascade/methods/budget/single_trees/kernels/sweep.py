"""A block of Metropolis-Hastings steps on a budgeted tree.

grow, prune
    Split any leaf by any candidate; turn any split over two leaves into a leaf.
change
    Replace any split by any candidate, keeping its subtrees.
regrow
    Draw any node, and a new subtree for it from the top down. Each of its nodes is split by each
    candidate, or is a leaf, with a probability proportional to the density of the tree that ends
    there, to the power beta. The probability of drawing a tree is the product over its nodes, for
    the new and the old subtree, so the Hastings ratio is known. Trees with too many leaves are also
    drawn, and rejected.

For a candidate, a column is drawn first, then one of its thresholds.
"""

from math import exp, inf, log

import numpy as np

from bayescascade.base.chain_kernels import accept, draw, enlist, strike
from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.budget.single_trees.kernels.layout import (
    CANDIDATE,
    END,
    LEAVES,
    LEFT,
    N_FREE,
    PARENT,
    RIGHT,
    SPLITS,
    START,
    TWIGS,
    Array,
    TreeModel,
    TreeWorkspace,
    divide,
    export,
    is_twig,
    leaf_value,
    log_gamma,
    push_children,
    share_rows,
    split_gain,
    split_price,
    subtree_value,
)

MOVES = ("grow", "prune", "change", "regrow")
GROW, PRUNE, CHANGE, REGROW = range(4)

ENLIST, STRIKE, FREE, COUNT = range(4)  # tasks of `walk`

ROUNDING = 1e-12  # relative to a weight: rounding of differences that are zero

IMPROVEMENT = 1e-8  # nats: above the total rounding


# -- moves: each returns the change of log density if accepted, otherwise NaN ----------------------


@inner_kernel
def put(work, node, candidate, left, right):
    """Replace a node by a split or a leaf."""
    work.nodes[node, CANDIDATE] = candidate
    work.nodes[node, LEFT] = left
    work.nodes[node, RIGHT] = right


@inner_kernel
def draw_candidate(rng, model):
    """Draw a column with candidates, then one of these."""
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
    put(work, node, candidate, left, right)
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
    """Turn a split over two leaves into a leaf."""
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
    """Replace a split by another candidate."""
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


@inner_kernel
def regrow(rng, model, work, beta):
    """Draw a new subtree for any node."""
    sizes, nodes = work.sizes, work.nodes
    n_nodes = sizes[LEAVES] + sizes[SPLITS]
    place = np.int64(rng.random() * n_nodes)
    if place < sizes[LEAVES]:
        top = work.lists[LEAVES, place]
    else:
        top = work.lists[SPLITS, place - sizes[LEAVES]]
    candidate, left, right = nodes[top, CANDIDATE], nodes[top, LEFT], nodes[top, RIGHT]
    before = subtree_value(model, work, top)
    log_back = log_chance(model, work, top, beta)
    room = model.max_leaves - sizes[LEAVES] + walk(work, top, COUNT)
    log_forward = draw_subtree(rng, model, work, top, beta, room)
    if not np.isnan(log_forward):
        gain = subtree_value(model, work, top) - before
        n_changed = 2 * (sizes[LEAVES] + walk(work, top, COUNT)) - 1
        new, new_left, new_right = nodes[top, CANDIDATE], nodes[top, LEFT], nodes[top, RIGHT]
        put(work, top, candidate, left, right)
        n_changed -= 2 * walk(work, top, COUNT)
        if accept(rng, beta * gain + log_back - log_forward + log(n_nodes) - log(n_changed)):
            walk(work, top, STRIKE)
            walk(work, top, FREE)
            put(work, top, new, new_left, new_right)
            walk(work, top, ENLIST)
            above = nodes[top, PARENT]
            if above >= 0:
                if work.places[TWIGS, above] >= 0:
                    strike(work, TWIGS, above)
                if is_twig(work, above):
                    enlist(work, TWIGS, above)
            return gain
        put(work, top, new, new_left, new_right)
    walk(work, top, FREE)
    put(work, top, candidate, left, right)
    divide(model, work, top)
    return np.nan


# -- a new subtree ---------------------------------------------------------------------------------


@inner_kernel
def weigh(model, work, node, beta):
    """Weigh the choices for a node; return the log of their sum, and the log weight of a leaf.

    A candidate's log weight is beta times the log density of a split over two leaves; -inf if a
    leaf is too small.
    """
    bins, n_classes = work.bins, work.counts.shape[1]
    constant = model.of_all[0] - n_classes * model.of_label[0]
    stay = beta * leaf_value(model, work, node)
    most = stay
    for place in range(model.open_columns.shape[0]):
        column = model.open_columns[place]
        first, end = model.starts[column], model.starts[column + 1]
        bins[: end - first + 1] = 0.0
        for at in range(work.nodes[node, START], work.nodes[node, END]):
            row = work.order[at]
            bins[model.codes[column, row], model.labels[row]] += model.weights[row]
        price = split_price(model, work, node, first)
        value = -inf
        for candidate in range(first, end):
            code = candidate - first
            is_new = code == 0
            for label in range(n_classes):
                is_new = is_new or bins[code, label] > 0.0
                if code > 0:
                    bins[code, label] += bins[code - 1, label]
            if is_new:
                value = both_values(model, work, node, bins[code])
            work.log_weight[candidate] = -inf
            if value > -inf:
                log_density = value + 2 * constant + model.log_split[candidate] - price
                work.log_weight[candidate] = beta * log_density
                most = max(most, beta * log_density)
    total = exp(stay - most)
    for candidate in range(work.log_weight.shape[0]):
        total += exp(work.log_weight[candidate] - most)
    return most + log(total), stay


@inner_kernel
def both_values(model, work, node, left):
    """Return the value of two leaves, up to a constant, given the counts of the left one."""
    n_classes = work.counts.shape[1]
    value, on_left, on_right = 0.0, 0.0, 0.0
    for label in range(n_classes):
        rest = work.counts[node, label] - left[label]
        if rest < ROUNDING * work.counts[node, label]:
            rest = 0.0
        value += log_gamma(model.of_label, model.alpha, left[label])
        value += log_gamma(model.of_label, model.alpha, rest)
        on_left += left[label]
        on_right += rest
    if min(on_left, on_right) < model.min_weight:
        return -inf
    whole = n_classes * model.alpha
    value -= log_gamma(model.of_all, whole, on_left)
    return value - log_gamma(model.of_all, whole, on_right)


@inner_kernel
def log_chance(model, work, top, beta):
    """Return the log probability of drawing the current subtree of a node."""
    nodes = work.nodes
    work.stack[0] = top
    depth, log_probability = 1, 0.0
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        log_total, log_weight = weigh(model, work, node, beta)
        if nodes[node, CANDIDATE] >= 0:
            log_weight = work.log_weight[nodes[node, CANDIDATE]]
            depth = push_children(work, depth, node)
        log_probability += log_weight - log_total
    return log_probability


@inner_kernel
def draw_subtree(rng, model, work, top, beta, room):
    """Draw a new subtree for a node; return its log probability, NaN above `room` leaves."""
    nodes = work.nodes
    work.stack[0] = top
    depth, n_leaves, log_probability = 1, 1, 0.0
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        log_total, log_weight = weigh(model, work, node, beta)
        u = rng.random() - exp(log_weight - log_total)
        drawn = -1
        for candidate in range(work.log_weight.shape[0]):
            if u < 0.0:
                break
            chance = exp(work.log_weight[candidate] - log_total)
            if chance > 0.0:
                drawn = candidate
                u -= chance
        nodes[node, CANDIDATE] = drawn
        if drawn >= 0:
            n_leaves += 1
            log_weight = work.log_weight[drawn]
            for side in (LEFT, RIGHT):
                work.numbers[N_FREE] -= 1
                child = work.free[work.numbers[N_FREE]]
                nodes[node, side] = child
                nodes[child, CANDIDATE] = -1
                nodes[child, PARENT] = node
                work.stack[depth] = child
                depth += 1
            if n_leaves > room:
                return np.nan
            if not share_rows(model, work, node, drawn, nodes[node, LEFT], nodes[node, RIGHT]):
                return np.nan
        log_probability += log_weight - log_total
    return log_probability


@inner_kernel
def walk(work, top, what):
    """Add, remove, free (except the top) or count the nodes of a subtree; return its leaves."""
    nodes = work.nodes
    work.stack[0] = top
    depth, n_leaves = 1, 0
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        is_split = nodes[node, CANDIDATE] >= 0
        n_leaves += not is_split
        if is_split:
            depth = push_children(work, depth, node)
        which = SPLITS if is_split else LEAVES
        if what == ENLIST:
            enlist(work, which, node)
            if is_twig(work, node):
                enlist(work, TWIGS, node)
        elif what == STRIKE:
            strike(work, which, node)
            if work.places[TWIGS, node] >= 0:
                strike(work, TWIGS, node)
        elif what == FREE and node != top:
            work.free[work.numbers[N_FREE]] = node
            work.numbers[N_FREE] += 1
    return n_leaves


@kernel
def sweep(
    rng: np.random.Generator,
    model: TreeModel,
    work: TreeWorkspace,
    n_steps: int,
    beta: float,
    move_cdf: Array,
    proposed: Array,
    accepted: Array,
    best_tree: Array,
) -> int:
    """Run steps for ``exp(beta * log density)`` from the tree in the work space.

    move_cdf (4,) float64: cumulative selection probabilities of MOVES; proposed, accepted (4,)
    int64: counts are added; best_tree (2 max_leaves - 1,) int64: output, the best visited tree,
    including the first, in preorder. Returns its number of nodes.
    """
    best_size = export(work, best_tree)
    excess = 0.0  # of the log density over that of the best tree
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
