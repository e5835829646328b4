"""Whole trees and subtrees in the work space: loading, exporting, trying and undoing changes."""

from math import log

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cascades.kernels.densities import (
    block_width,
    full_block,
    inside,
    leaf_value,
    shape_value,
)
from bayescascade.methods.cascades.kernels.layout import (
    COUNT,
    END,
    FEATURE,
    FIRST,
    LOG_VOLUME,
    N_CHILDREN,
    N_FREE,
    N_LEAVES,
    N_SPLITTABLE,
    N_USED,
    NEXT,
    PARENT,
    READY,
    START,
    VALUE,
    Array,
    FlatTree,
    ModelArrays,
    TableArrays,
    Work,
)
from bayescascade.methods.cascades.kernels.nodes import (
    copy_row,
    count_use,
    link_child,
    place_children,
    sync_lists,
)

__all__ = [
    "collect",
    "export",
    "load",
    "log_density",
    "move_rows",
    "replace_below",
    "restore",
    "save",
    "save_rows",
    "uses_below",
]


@inner_kernel
def collect(work, node):
    """Write the subtree's nodes into `work.subtree`, parents first; returns how many."""
    work.subtree[0] = node
    size = 1
    i = 0
    while i < size:
        child = work.nodes[work.subtree[i], FIRST]
        while child >= 0:
            work.subtree[size] = child
            size += 1
            child = work.nodes[child, NEXT]
        i += 1
    return size


@inner_kernel
def save(work, size):
    """Keep a copy of the nodes in subtree[:size] and of the first one's rows."""
    for i in range(size):
        node = work.subtree[i]
        work.saved_subtree[i] = node
        copy_row(work.nodes, node, work.saved_nodes, i)
        copy_row(work.reals, node, work.saved_reals, i)
        copy_row(work.box, node, work.saved_box, i)
    save_rows(work, work.subtree[0])


@inner_kernel
def restore(work, size):
    """Undo everything since `save`."""
    for i in range(size):
        node = work.saved_subtree[i]
        copy_row(work.saved_nodes, i, work.nodes, node)
        copy_row(work.saved_reals, i, work.reals, node)
        copy_row(work.saved_box, i, work.box, node)
    top = work.saved_subtree[0]
    for i in range(work.nodes[top, START], work.nodes[top, END]):
        work.rows[i] = work.spare[1, i]


@inner_kernel
def save_rows(work, node):
    """Keep a copy of a node's rows in `spare[1]`."""
    for i in range(work.nodes[node, START], work.nodes[node, END]):
        work.spare[1, i] = work.rows[i]


@inner_kernel
def move_rows(work, node, start):
    """Move a subtree's rows, saved before by `save_rows`, to `start`; returns where they end."""
    nodes = work.nodes
    shift = start - nodes[node, START]
    for i in range(nodes[node, START], nodes[node, END]):
        work.rows[i + shift] = work.spare[1, i]
    for i in range(collect(work, node)):
        nodes[work.subtree[i], START] += shift
        nodes[work.subtree[i], END] += shift
    return nodes[node, END]


@inner_kernel
def replace_below(table, model, work, top, saved_size):
    """Derive a changed subtree from its top's rows; returns the change of its values' sum.

    The subtree before must have been kept by `save`; the one now is left in `work.subtree`.
    """
    size = collect(work, top)
    for i in range(size):
        if work.nodes[work.subtree[i], FEATURE] >= 0:
            place_children(table, model, work, work.subtree[i])
    change = 0.0
    for i in range(size):
        change += work.reals[work.subtree[i], VALUE]
    for i in range(saved_size):
        change -= work.saved_reals[i, VALUE]
    return change


@inner_kernel
def uses_below(work, node, j):
    """Whether any split at or below the node is on column `j`."""
    if work.nodes[node, FEATURE] < 0:
        return False
    current = node
    while True:
        if work.nodes[current, FEATURE] == j:
            return True
        if work.nodes[current, FIRST] >= 0:
            current = work.nodes[current, FIRST]
            continue
        while current != node and work.nodes[current, NEXT] < 0:
            current = work.nodes[current, PARENT]
        if current == node:
            return False
        current = work.nodes[current, NEXT]


@inner_kernel
def log_density(model, work):
    """Log density of the tree in the work space, from its nodes' values."""
    root_count = work.reals[0, COUNT]
    value = shape_value(model, work.sizes[N_LEAVES], work.sizes[N_USED], root_count)
    size = collect(work, 0)
    for i in range(size):
        value += work.reals[work.subtree[i], VALUE]
    return value


@kernel
def load(
    table: TableArrays, model: ModelArrays, work: Work, feature: Array, parent: Array, block: Array
) -> None:
    """Lay a tree out in the work space.

    feature (n,), parent (n,) int32, block (n,) uint64: a tree in canonical order, as in `Tree`;
    the work space must hold n nodes or more.
    """
    n_nodes = feature.shape[0]
    n_rows = work.rows.shape[0]
    nodes, sizes = work.nodes, work.sizes
    sizes[:] = 0
    work.uses[:] = 0
    nodes[:, :] = -1
    for row in range(n_rows):
        work.rows[row] = row
    for node in range(nodes.shape[0] - 1, n_nodes - 1, -1):
        work.free[sizes[N_FREE]] = node
        sizes[N_FREE] += 1
    last = work.subtree  # the child linked last
    for node in range(n_nodes):
        last[node] = -1
        nodes[node, FEATURE] = feature[node]
        nodes[node, N_CHILDREN] = 0
        nodes[node, READY] = 0
        if feature[node] >= 0:
            count_use(work, feature[node], 1)
        else:
            sizes[N_LEAVES] += 1
        if node > 0:
            above = parent[node]
            work.box[node, feature[above]] = block[node]
            link_child(work, above, node, last[above])
            last[above] = node
    nodes[0, START] = 0
    nodes[0, END] = n_rows
    nodes[0, N_SPLITTABLE] = 0
    work.reals[0, COUNT] = 0.0
    for row in range(n_rows):  # in order, as NumPy's own sum is not
        work.reals[0, COUNT] += table.weights[row]
    work.reals[0, LOG_VOLUME] = 0.0
    for j in range(table.codes.shape[0]):
        work.box[0, j] = full_block(table, j)
        nodes[0, N_SPLITTABLE] += table.n_levels[j] >= 2
        work.reals[0, LOG_VOLUME] += log(block_width(table, j, work.box[0, j]))
    work.reals[0, VALUE] = leaf_value(model, work.reals[0, COUNT], work.reals[0, LOG_VOLUME])
    if model.independent:
        work.reals[0, VALUE] += inside(table, model, work, 0)
    for node in range(n_nodes):
        if feature[node] >= 0:
            place_children(table, model, work, node)
    for node in range(n_nodes):
        sync_lists(work, node)


@kernel
def export(work: Work, tree: FlatTree) -> int:
    """Write the tree in canonical order, as in `Tree`; returns its number of nodes."""
    nodes = work.nodes
    feature, parent, block = tree.feature, tree.parent, tree.block
    node = 0
    size = 0
    feature[0] = nodes[0, FEATURE]
    parent[0] = -1
    block[0] = np.uint64(0)
    work.subtree[0] = 0  # where each node was written
    written = work.saved_nodes[:, 0]
    written[0] = 0
    size = 1
    while True:
        if nodes[node, FIRST] >= 0:
            node = nodes[node, FIRST]
        else:
            while node != 0 and nodes[node, NEXT] < 0:
                node = nodes[node, PARENT]
            if node == 0:
                return size
            node = nodes[node, NEXT]
        above = nodes[node, PARENT]
        written[node] = size
        feature[size] = nodes[node, FEATURE]
        parent[size] = written[above]
        block[size] = work.box[node, nodes[above, FEATURE]]
        size += 1
