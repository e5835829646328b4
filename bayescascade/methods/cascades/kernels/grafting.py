"""Moves that put a split above a subtree, or take it away, as `moves` says.

Each returns the change of log density (nats) if it was accepted, and NaN if it was not.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import accept
from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.kernels.densities import shape_value
from bayescascade.methods.cascades.kernels.layout import (
    COUNT,
    FEATURE,
    FIRST,
    IN_PLACE,
    INNER,
    N_CHILDREN,
    N_LEAVES,
    N_USED,
    NEXT,
    PARENT,
    PROPOSED,
)
from bayescascade.methods.cascades.kernels.levels import blocks_of, levels_of
from bayescascade.methods.cascades.kernels.nodes import (
    count_use,
    free_node,
    link_child,
    new_node,
    sync_lists,
)
from bayescascade.methods.cascades.kernels.proposals import draw_split, log_q_split, read_split
from bayescascade.methods.cascades.kernels.subtrees import (
    collect,
    replace_below,
    restore,
    save,
    uses_below,
)

__all__ = ["insert", "remove"]


@inner_kernel
def insert(rng, table, model, work, beta, node):
    """Put a split above an inner node: one branch keeps the subtree, the others are leaves."""
    nodes, sizes = work.nodes, work.sizes
    j, b = draw_split(rng, table, model, work, node)
    keep = np.int64(rng.random() * b)
    if uses_below(work, node, j):
        return np.nan
    n_inner = sizes[INNER]
    log_q_ratio = log(n_inner * b / (n_inner + 1.0))
    log_q_ratio -= log_q_split(table, model, work, node, j, b, work.assign[PROPOSED])
    m = levels_of(table.nominal[j], work.box[node, j], work.order)
    blocks_of(table.nominal[j], work.order, m, work.assign[PROPOSED], b, work.words)

    saved_size = collect(work, node)
    save(work, saved_size)
    inside = new_node(work, node)
    take_over(work, inside, node)
    nodes[node, FEATURE] = j
    nodes[node, FIRST] = -1
    nodes[node, N_CHILDREN] = 0
    previous = -1
    for branch in range(b):
        child = inside if branch == keep else new_node(work, node)
        work.box[child, j] = work.words[branch]
        link_child(work, node, child, previous)
        previous = child
    change = replace_below(table, model, work, node, saved_size)
    change += shape_change(model, work, b - 1, np.int64(work.uses[j] == 0))
    if accept(rng, beta * change + log_q_ratio):
        sizes[N_LEAVES] += b - 1
        count_use(work, j, 1)
        sync_below(work, node)
        return change
    free_all(work, nodes[node, FIRST])
    restore(work, saved_size)
    return np.nan


@inner_kernel
def remove(rng, table, model, work, beta, node):
    """Take away a split with one inner branch, which gets all of its rows."""
    nodes, sizes = work.nodes, work.sizes
    j, b = nodes[node, FEATURE], nodes[node, N_CHILDREN]
    inside = -1
    n_inner_children = 0
    child = nodes[node, FIRST]
    while child >= 0:
        if nodes[child, FEATURE] >= 0:
            inside = child
            n_inner_children += 1
        child = nodes[child, NEXT]
    if n_inner_children != 1 or uses_below(work, inside, j):
        return np.nan
    n_inner = sizes[INNER]
    read_split(table, work, node)
    log_q_ratio = log_q_split(table, model, work, node, j, b, work.assign[IN_PLACE])
    log_q_ratio -= log((n_inner - 1.0) * b / n_inner)

    saved_size = collect(work, node)
    save(work, saved_size)
    former = nodes[node, FIRST]
    take_over(work, node, inside)
    change = replace_below(table, model, work, node, saved_size)
    change += shape_change(model, work, 1 - b, -np.int64(work.uses[j] == 1))
    if accept(rng, beta * change + log_q_ratio):
        sizes[N_LEAVES] -= b - 1
        count_use(work, j, -1)
        free_all(work, former)
        sync_below(work, node)
        return change
    restore(work, saved_size)
    return np.nan


@inner_kernel
def take_over(work, node, other):
    """Give a node the split and the children of another."""
    nodes = work.nodes
    nodes[node, FEATURE] = nodes[other, FEATURE]
    nodes[node, FIRST] = nodes[other, FIRST]
    nodes[node, N_CHILDREN] = nodes[other, N_CHILDREN]
    child = nodes[node, FIRST]
    while child >= 0:
        nodes[child, PARENT] = node
        child = nodes[child, NEXT]


@inner_kernel
def free_all(work, child):
    """Give a node and the siblings behind it back."""
    while child >= 0:
        following = work.nodes[child, NEXT]
        free_node(work, child)
        child = following


@inner_kernel
def sync_below(work, node):
    """List the nodes of a subtree where they belong."""
    for i in range(collect(work, node)):
        sync_lists(work, work.subtree[i])


@inner_kernel
def shape_change(model, work, more_leaves, more_used):
    """Change of `shape_value` with so many leaves and columns more."""
    n_leaves, n_used, total = work.sizes[N_LEAVES], work.sizes[N_USED], work.reals[0, COUNT]
    after = shape_value(model, n_leaves + more_leaves, n_used + more_used, total)
    return after - shape_value(model, n_leaves, n_used, total)
