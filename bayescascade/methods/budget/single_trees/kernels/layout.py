"""The arrays of a budgeted tree: the rows of its nodes, and its log density, nats.

The rows of a node are a range of one permutation of all rows, which is divided among its children:
growing sorts the rows of one leaf, and a change those below one split.
"""

from math import inf, lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.chain_kernels import enlist
from bayescascade.base.jit import inner_kernel, kernel

CANDIDATE, PARENT, LEFT, RIGHT, START, END = range(6)  # columns of `nodes`
LEAVES, SPLITS, TWIGS = range(3)  # rows of `lists`, `places` and `sizes`

N_FREE = 0  # index in `numbers`

Array = NDArray[Any]  # the docstrings give dtypes


class TreeModel(NamedTuple):
    """Arrays of rows, candidates and prior: n rows, p columns, C candidates.

    codes (p, n) uint16; labels (n,) int64; weights (n,) float64 > 0; open_columns: those with a
    candidate; starts (p + 1,) int64: start of a column's candidates; column (C,) int64;
    log_candidate (C,) float64: log probability of proposing each; log_split (C,) float64:
    contribution of each split to the log prior, without costs; item_starts (p + 1,) and items,
    int64: the cost items of each column; item_price (I,) float64: decrease of the log prior by
    each, per unit of weight of the paying rows; alpha > 0: concentration of each class; min_weight
    > 0: least weight of a leaf; max_leaves; of_label, of_all (W,) float64: log gamma of alpha, and
    of alpha times the number of classes, each plus 0, 1, 2, ..., because most weights are whole.
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


class TreeWorkspace(NamedTuple):
    """The work space of a changing tree, of up to M nodes and K classes; node 0 is the root.

    nodes (M, 6) int64: candidate (-1 at leaves), parent, left and right child, and the range of the
    node's rows in `order`; counts (M, K) float64: their weight by class; order (n,) int64: rows;
    lists, places, sizes: leaves, splits and splits over two leaves; free (M,) int64: the numbers[0]
    unused nodes; stack (M,) int64: for walks; bins (B, K) float64: weight by code and class of a
    node's rows; log_weight (C,) float64: see `sweep.weigh`.
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


def new_workspace(model: TreeModel, n_classes: int) -> TreeWorkspace:
    """Return a work space for `load`."""
    n_rows, max_leaves = model.labels.shape[0], model.max_leaves
    capacity = 4 * max_leaves + 1  # a tree, and a replacement with one leaf too many
    return TreeWorkspace(
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


@kernel
def load(model: TreeModel, work: TreeWorkspace, tree: Array) -> bool:
    """Load a tree, (n_nodes,) int64 candidates in preorder, into the work space.

    Returns whether each leaf has enough rows; if not, the work space is not valid.
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
def density(model: TreeModel, work: TreeWorkspace, tree: Array) -> float:
    """Return the log density of a tree, as for `load`, without log(1 - s) of one leaf."""
    return float(subtree_value(model, work, 0)) if load(model, work, tree) else -inf


@kernel
def export(work: TreeWorkspace, tree: Array) -> int:
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
def push_children(work, depth, node):
    """Push the children of a split on the stack; return its new depth."""
    work.stack[depth] = work.nodes[node, LEFT]
    work.stack[depth + 1] = work.nodes[node, RIGHT]
    return depth + 2


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
    """Set the rows of a node, and count their classes."""
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
    """Divide a node's rows between two nodes; return whether each has enough weight."""
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
    """Divide the rows of a node among all nodes below; stop, with False, at too small a node."""
    nodes = work.nodes
    work.stack[0] = top
    depth = 1
    while depth > 0:
        depth -= 1
        node = work.stack[depth]
        candidate = nodes[node, CANDIDATE]
        if candidate < 0:
            continue
        if not share_rows(model, work, node, candidate, nodes[node, LEFT], nodes[node, RIGHT]):
            return False
        depth = push_children(work, depth, node)
    return True


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
    """Return the decrease of the log prior by the cost of a split for the rows of a node."""
    column = model.column[candidate]
    price = 0.0
    for place in range(model.item_starts[column], model.item_starts[column + 1]):
        if not is_paid(model, work, node, model.items[place]):
            price += model.item_price[model.items[place]]
    return price * weight_of(work, node)


@inner_kernel
def split_gain(model, work, node, candidate, left, right):
    """Return the change of log density by splitting a leaf into two nodes, which have its rows."""
    gain = leaf_value(model, work, left) + leaf_value(model, work, right)
    gain += model.log_split[candidate] - leaf_value(model, work, node)
    return gain - split_price(model, work, node, candidate)


@inner_kernel
def subtree_value(model, work, top):
    """Return the contribution of a subtree to the log density."""
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
        depth = push_children(work, depth, node)
    return value
