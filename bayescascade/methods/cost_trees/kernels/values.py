"""Densities of budgeted trees, nats."""

from math import lgamma

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cost_trees.kernels.layout import (
    CANDIDATE,
    PARENT,
    TreeModel,
    TreeWork,
    push_children,
    weight_of,
)

__all__ = ["density"]


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
        depth = push_children(work, depth, node)
    return value
