"""A block of Metropolis-Hastings steps on a budgeted tree.

The rows of a node are a range of one permutation of all rows, which its children share between
them: growing sorts the rows of one leaf, and a change those below one split.

grow, prune
    Split any leaf by any candidate; make any split over two leaves a leaf.
change
    Put any candidate in the place of any split, whose subtrees stay.
regrow
    Draw any node, and a new subtree for it from the top down: each of its nodes is split by each
    candidate, or is a leaf, with a probability proportional to the density of the tree that ends
    there, to the power beta. What a tree is drawn with is the product over its nodes, whether it is
    new or the one that it replaces, and so the Hastings ratio is known. Trees with more leaves than
    allowed are drawn too, and refused.

A candidate is drawn column first, then any of the column's thresholds.
"""

from math import exp, inf, lgamma, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.chain_kernels import accept, draw, enlist, strike
from bayescascade.base.jit import inner_kernel, kernel

__all__ = ["MOVES", "TreeModel", "TreeWork", "density", "export", "load", "new_work", "sweep"]

MOVES = ("grow", "prune", "change", "regrow")
GROW, PRUNE, CHANGE, REGROW = range(4)

CANDIDATE, PARENT, LEFT, RIGHT, START, END = range(6)  # columns of `nodes`
LEAVES, SPLITS, TWIGS = range(3)  # rows of `lists`, `places` and `sizes`

N_FREE = 0  # place in `numbers`

ENLIST, STRIKE, FREE, COUNT = range(4)  # what `walk` does

ROUNDING = 1e-12  # of a weight: what sums of others may leave of nothing

IMPROVEMENT = 1e-8  # nats: more than rounding adds up to

Array = NDArray[Any]  # the docstrings give dtypes


class TreeModel(NamedTuple):
    """Rows, candidates and prior as kernels read them: n rows, p columns, C candidates.

    codes (p, n) uint16; labels (n,) int64; weights (n,) float64 > 0; open_columns: those with a
    candidate; starts (p + 1,) int64: where a column's candidates start; column (C,) int64;
    log_candidate (C,) float64: log probability of proposing each; log_split (C,) float64: what each
    adds to the log prior as a split, its cost aside; item_starts (p + 1,) and items, int64: the
    cost items of each column; item_price (I,) float64: what the log prior loses by each per unit of
    weight of the rows that pay; alpha > 0: concentration of each class; min_weight > 0: least
    weight of a leaf; max_leaves; of_label, of_all (W,) float64: log gamma of alpha, and of alpha
    times the number of classes, plus 0, 1, 2, ..., which most weights are.
    """

    codes: Array
    labels: Array
    weights: Array
    open_columns: Array
    starts: Array
    column: Array
    log_candidate: Array
    log_split: Array
    item_starts: Array
    items: Array
    item_price: Array
    alpha: float
    min_weight: float
    max_leaves: int
    of_label: Array
    of_all: Array


class TreeWork(NamedTuple):
    """A tree while it changes, of up to M nodes and K classes; node 0 is the root.

    nodes (M, 6) int64: candidate (-1 at leaves), parent, left and right child, and the range of the
    node's rows in `order`; counts (M, K) float64: their weight by class; order (n,) int64: rows;
    lists, places, sizes: leaves, splits and splits over two leaves; free (M,) int64: nodes not in
    use, of which there are numbers[0]; stack (M,) int64: for walks; bins (B, K) float64: weight by
    code and class of a node's rows; log_weight (C,) float64: see `weigh`.
    """

    nodes: Array
    counts: Array
    order: Array
    lists: Array
    places: Array
    sizes: Array
    free: Array
    stack: Array
    numbers: Array
    bins: Array
    log_weight: Array


def new_work(model: TreeModel, n_classes: int) -> TreeWork:
    """Return a work space for `load`."""
    n_rows, max_leaves = model.labels.shape[0], model.max_leaves
    capacity = 4 * max_leaves + 1  # a tree, and one in its place, a leaf too large
    return TreeWork(
        nodes=np.empty((capacity, 6), np.int64),
        counts=np.empty((capacity, n_classes)),
        order=np.empty(n_rows, np.int64),
        lists=np.empty((3, capacity), np.int64),
        places=np.empty((3, capacity), np.int64),
        sizes=np.empty(3, np.int64),
        free=np.empty(capacity, np.int64),
        stack=np.empty(capacity, np.int64),
        numbers=np.empty(1, np.int64),
        bins=np.empty((1 + int(np.diff(model.starts).max()), n_classes)),
        log_weight=np.empty(model.column.shape[0]),
    )


# -- nodes and their rows --------------------------------------------------------------------------


@kernel
def load(model: TreeModel, work: TreeWork, tree: Array) -> bool:
    """Put a tree, (n_nodes,) int64 candidates in preorder, into the work space.

    Returns whether each leaf has enough rows; if not, the work space is of no use.
    """
    nodes = work.nodes
    n_nodes, capacity = tree.shape[0], nodes.shape[0]
    nodes[:, :] = -1
    work.places[:, :] = -1
    work.sizes[:] = 0
    depth = 0
    for node in range(n_nodes):
        if depth > 0:
            above = work.stack[depth - 1]
            nodes[node, PARENT] = above
            if nodes[above, LEFT] < 0:
                nodes[above, LEFT] = node
            else:
                nodes[above, RIGHT] = node
                depth -= 1
        nodes[node, CANDIDATE] = tree[node]
        if tree[node] >= 0:
            work.stack[depth] = node
            depth += 1
            enlist(work, SPLITS, node)
        else:
            enlist(work, LEAVES, node)
    for node in range(n_nodes):
        if is_twig(work, node):
            enlist(work, TWIGS, node)
    work.numbers[N_FREE] = capacity - n_nodes
    for place in range(capacity - n_nodes):
        work.free[place] = capacity - 1 - place
    for row in range(work.order.shape[0]):
        work.order[row] = row
    set_rows(model, work, 0, 0, work.order.shape[0])
    return bool(weight_of(work, 0) >= model.min_weight and divide(model, work, 0))


@kernel
def export(work: TreeWork, tree: Array) -> int:
    """Write the tree in preorder to tree (2 max_leaves - 1,) int64; return its number of nodes."""
    work.stack[0] = 0
    depth, size = 1, 0
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        tree[size] = work.nodes[node, CANDIDATE]
        size += 1
        if work.nodes[node, CANDIDATE] >= 0:
            work.stack[depth] = work.nodes[node, RIGHT]
            work.stack[depth + 1] = work.nodes[node, LEFT]
            depth += 2
    return size


@inner_kernel
def is_twig(work, node):
    """Whether a node is a split over two leaves."""
    nodes = work.nodes
    if nodes[node, CANDIDATE] < 0:
        return False
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    return nodes[left, CANDIDATE] < 0 and nodes[right, CANDIDATE] < 0


@inner_kernel
def set_rows(model, work, node, start, end):
    """Give a node its rows, and count their classes."""
    work.nodes[node, START] = start
    work.nodes[node, END] = end
    for label in range(work.counts.shape[1]):
        work.counts[node, label] = 0.0
    for place in range(start, end):
        row = work.order[place]
        work.counts[node, model.labels[row]] += model.weights[row]


@inner_kernel
def weight_of(work, node):
    """Return the weight of a node's rows."""
    weight = 0.0
    for label in range(work.counts.shape[1]):
        weight += work.counts[node, label]
    return weight


@inner_kernel
def share_rows(model, work, node, candidate, left, right):
    """Share a node's rows out to two nodes; return whether each has enough."""
    column = model.column[candidate]
    limit = candidate - model.starts[column]
    low, high = work.nodes[node, START], work.nodes[node, END]
    start, end = low, high
    while low < high:
        row = work.order[low]
        if model.codes[column, row] <= limit:
            low += 1
        else:
            high -= 1
            work.order[low] = work.order[high]
            work.order[high] = row
    set_rows(model, work, left, start, low)
    set_rows(model, work, right, low, end)
    least = min(weight_of(work, left), weight_of(work, right))
    return least >= model.min_weight


@inner_kernel
def divide(model, work, top):
    """Share the rows of a node out to all below; return False, unfinished, if a leaf lacks rows."""
    nodes = work.nodes
    work.stack[0] = top
    depth = 1
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        candidate = nodes[node, CANDIDATE]
        if candidate < 0:
            continue
        left, right = nodes[node, LEFT], nodes[node, RIGHT]
        if not share_rows(model, work, node, candidate, left, right):
            return False
        work.stack[depth] = left
        work.stack[depth + 1] = right
        depth += 2
    return True


# -- densities, nats -------------------------------------------------------------------------------


@inner_kernel
def log_gamma(table, offset, weight):
    """Return the log gamma function of offset + weight, from a table for whole weights."""
    place = int(weight)
    if place == weight and place < table.shape[0]:
        return table[place]
    return lgamma(offset + weight)


@inner_kernel
def leaf_value(model, work, node):
    """Return the log marginal likelihood of the labels of a node's rows."""
    n_classes = work.counts.shape[1]
    value = model.of_all[0] - n_classes * model.of_label[0]
    for label in range(n_classes):
        value += log_gamma(model.of_label, model.alpha, work.counts[node, label])
    return value - log_gamma(model.of_all, n_classes * model.alpha, weight_of(work, node))


@inner_kernel
def is_paid(model, work, node, item):
    """Whether a split above a node incurs an item."""
    above = work.nodes[node, PARENT]
    while above >= 0:
        column = model.column[work.nodes[above, CANDIDATE]]
        for place in range(model.item_starts[column], model.item_starts[column + 1]):
            if model.items[place] == item:
                return True
        above = work.nodes[above, PARENT]
    return False


@inner_kernel
def split_price(model, work, node, candidate):
    """Return what the log prior loses by what a split at a node costs its rows."""
    column = model.column[candidate]
    price = 0.0
    for place in range(model.item_starts[column], model.item_starts[column + 1]):
        if not is_paid(model, work, node, model.items[place]):
            price += model.item_price[model.items[place]]
    return price * weight_of(work, node)


@inner_kernel
def split_gain(model, work, node, candidate, left, right):
    """Return the change of log density when a leaf is split into two nodes, which have its rows."""
    gain = leaf_value(model, work, left) + leaf_value(model, work, right)
    gain += model.log_split[candidate] - leaf_value(model, work, node)
    return gain - split_price(model, work, node, candidate)


@kernel
def density(model: TreeModel, work: TreeWork) -> float:
    """Return the log density of the tree in the work space, log(1 - s) of one leaf aside."""
    return float(subtree_value(model, work, 0))


@inner_kernel
def subtree_value(model, work, top):
    """Return what the splits and leaves from a node on down add to the log density."""
    nodes = work.nodes
    work.stack[0] = top
    depth = 1
    value = 0.0
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        candidate = nodes[node, CANDIDATE]
        if candidate < 0:
            value += leaf_value(model, work, node)
            continue
        value += model.log_split[candidate] - split_price(model, work, node, candidate)
        work.stack[depth] = nodes[node, LEFT]
        work.stack[depth + 1] = nodes[node, RIGHT]
        depth += 2
    return value


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


@inner_kernel
def weigh(model, work, node, beta):
    """Weigh what may be put at a node; return the log of the sum, and log weight of a leaf.

    The log weight of each candidate is beta times the log density of the node's rows, if it is
    split by it over two leaves; -inf if one of these has too few rows.
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
    """Return the value of two leaves but for a constant, of which one has these counts."""
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
    """Return the log probability of drawing the subtree that a node has."""
    nodes = work.nodes
    work.stack[0] = top
    depth, log_probability = 1, 0.0
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        log_total, log_weight = weigh(model, work, node, beta)
        if nodes[node, CANDIDATE] >= 0:
            log_weight = work.log_weight[nodes[node, CANDIDATE]]
            work.stack[depth] = nodes[node, LEFT]
            work.stack[depth + 1] = nodes[node, RIGHT]
            depth += 2
        log_probability += log_weight - log_total
    return log_probability


@inner_kernel
def draw_subtree(rng, model, work, top, beta, room):
    """Give a node a new subtree; return its log probability, NaN if it has too many leaves.

    room: leaves that it may have.
    """
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
    """List, strike off, free or count all nodes of a subtree but the top's place in `free`."""
    nodes = work.nodes
    work.stack[0] = top
    depth, n_leaves = 1, 0
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        is_split = nodes[node, CANDIDATE] >= 0
        n_leaves += not is_split
        if is_split:
            work.stack[depth] = nodes[node, LEFT]
            work.stack[depth + 1] = nodes[node, RIGHT]
            depth += 2
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


@inner_kernel
def put(work, node, candidate, left, right):
    """Put a split, or a leaf, in the place of a node."""
    work.nodes[node, CANDIDATE] = candidate
    work.nodes[node, LEFT] = left
    work.nodes[node, RIGHT] = right


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
