"""Nodes of a tree in the work space: making, freeing, listing them, and grouping their rows."""

from math import log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.kernels.densities import (
    block_size,
    block_width,
    blocks_of,
    branch_value,
    inside,
    leaf_value,
    levels_of,
    lowest_code,
)
from bayescascade.methods.cascades.kernels.layout import (
    COUNT,
    END,
    FEATURE,
    FIRST,
    GROWABLE,
    IN_PLACE,
    LOG_VOLUME,
    N_CHILDREN,
    N_FIELDS,
    N_FREE,
    N_LEAVES,
    N_SPLITTABLE,
    N_USED,
    NEXT,
    PARENT,
    POSITION,
    READY,
    START,
    TWIGS,
    VALUE,
    WEIGHT,
)

__all__ = [
    "copy_row",
    "count_use",
    "exchange_links",
    "free_node",
    "link_child",
    "make_inner",
    "make_leaf",
    "new_node",
    "nth_child",
    "place_children",
    "replace_link",
    "sort_children",
    "sync_lists",
]


@inner_kernel
def add_to(work, which, node):
    position = work.sizes[which]
    work.lists[which, position] = node
    work.nodes[node, POSITION + which] = position
    work.sizes[which] = position + 1


@inner_kernel
def drop_from(work, which, node):
    position = work.nodes[node, POSITION + which]
    if position < 0:
        return
    last = work.lists[which, work.sizes[which] - 1]
    work.lists[which, position] = last
    work.nodes[last, POSITION + which] = position
    work.nodes[node, POSITION + which] = -1
    work.sizes[which] -= 1


@inner_kernel
def new_node(work, parent):
    """Take an unused node, a leaf of `parent` not yet linked or listed."""
    work.sizes[N_FREE] -= 1
    node = work.free[work.sizes[N_FREE]]
    nodes = work.nodes
    for field in range(N_FIELDS):
        nodes[node, field] = -1
    nodes[node, PARENT] = parent
    nodes[node, N_CHILDREN] = 0
    nodes[node, READY] = 0
    return node


@inner_kernel
def free_node(work, node):
    """Give a node back."""
    for which in range(3):
        drop_from(work, which, node)
    work.free[work.sizes[N_FREE]] = node
    work.sizes[N_FREE] += 1


@inner_kernel
def is_twig(work, node):
    child = work.nodes[node, FIRST]
    if child < 0:
        return False
    while child >= 0:
        if work.nodes[child, FEATURE] >= 0:
            return False
        child = work.nodes[child, NEXT]
    return True


@inner_kernel
def sync_lists(work, node):
    """Put the node into the lists that it belongs to, and out of the others."""
    inner = work.nodes[node, FEATURE] >= 0
    for which in range(3):
        if which == GROWABLE:
            wanted = not inner and work.nodes[node, N_SPLITTABLE] > 0
        elif which == TWIGS:
            wanted = inner and is_twig(work, node)
        else:
            wanted = inner
        if wanted and work.nodes[node, POSITION + which] < 0:
            add_to(work, which, node)
        elif not wanted:
            drop_from(work, which, node)


@inner_kernel
def count_use(work, j, change):
    """Count a split on column `j` more or less, and the columns in use with it."""
    before = np.int64(work.uses[j] > 0)
    work.uses[j] += change
    work.sizes[N_USED] += np.int64(work.uses[j] > 0) - before


@inner_kernel
def partition_rows(table, work, start, end, j, assign, b, edges, counts):
    """Group rows[start:end] by branch, stably; writes where groups start and end, and weights."""
    codes = table.codes[j]
    if b == 2:
        low = start
        high = 0
        count = 0.0
        rest = 0.0
        for i in range(start, end):  # without a branch that the processor could mispredict
            row = work.rows[i]
            side = assign[codes[row]]
            weight = table.weights[row]
            work.rows[low] = row
            work.spare[0, high] = row
            low += 1 - side
            high += side
            count += weight * (1 - side)
            rest += weight * side
        for i in range(high):
            work.rows[low + i] = work.spare[0, i]
        edges[0] = start
        edges[1] = low
        edges[2] = end
        counts[0] = count
        counts[1] = rest
        return
    edges[b] = 0
    for branch in range(b):
        edges[branch] = 0
        counts[branch] = 0.0
    for i in range(start, end):
        row = work.rows[i]
        branch = assign[codes[row]]
        edges[branch + 1] += 1
        counts[branch] += table.weights[row]
    edges[0] = start
    for branch in range(b):
        edges[branch + 1] += edges[branch]
    for i in range(start, end):
        row = work.rows[i]
        branch = assign[codes[row]]
        work.spare[0, edges[branch]] = row
        edges[branch] += 1
    for i in range(start, end):
        work.rows[i] = work.spare[0, i]
    for branch in range(b, 0, -1):
        edges[branch] = edges[branch - 1]
    edges[0] = start


@inner_kernel
def copy_row(source, i, target, k):
    """Copy source[i] to target[k]."""
    for column in range(source.shape[1]):
        target[k, column] = source[i, column]


@inner_kernel
def place_children(table, model, work, node):
    """Derive the children of an inner node from its own box and rows and from their blocks.

    The blocks stand in ``box[child, feature]``; this groups the rows and sets everything else.
    """
    nodes, reals = work.nodes, work.reals
    j = nodes[node, FEATURE]
    child = nodes[node, FIRST]
    branch = 0
    while child >= 0:
        m = levels_of(table.nominal[j], work.box[child, j], work.order)
        for i in range(m):
            work.assign[IN_PLACE, work.order[i]] = branch
        child = nodes[child, NEXT]
        branch += 1
    start, end = nodes[node, START], nodes[node, END]
    counts = work.branch[WEIGHT]
    partition_rows(table, work, start, end, j, work.assign[IN_PLACE], branch, work.edges, counts)
    own_width = block_width(table, j, work.box[node, j])
    child = nodes[node, FIRST]
    branch = 0
    while child >= 0:
        block = work.box[child, j]
        copy_row(work.box, node, work.box, child)
        work.box[child, j] = block
        nodes[child, START] = work.edges[branch]
        nodes[child, END] = work.edges[branch + 1]
        nodes[child, READY] = 0
        splittable = nodes[node, N_SPLITTABLE]
        if block_size(table.nominal[j], block) < 2:
            splittable -= 1
        nodes[child, N_SPLITTABLE] = splittable
        count = counts[branch]
        reals[child, COUNT] = count
        width = block_width(table, j, block)
        reals[child, LOG_VOLUME] = reals[node, LOG_VOLUME] + log(width / own_width)
        if nodes[child, FEATURE] < 0:
            reals[child, VALUE] = leaf_value(model, count, reals[child, LOG_VOLUME])
            if model.independent:
                reals[child, VALUE] += inside(table, model, work, child)
        child = nodes[child, NEXT]
        branch += 1
    reals[node, VALUE] = branch_value(model, counts, branch, reals[node, COUNT])


@inner_kernel
def link_child(work, node, child, previous):
    """Append a child behind the sibling `previous`, or as the first (-1)."""
    if previous < 0:
        work.nodes[node, FIRST] = child
    else:
        work.nodes[previous, NEXT] = child
    work.nodes[child, PARENT] = node
    work.nodes[child, NEXT] = -1
    work.nodes[node, N_CHILDREN] += 1


@inner_kernel
def make_inner(table, model, work, node, j, b, assign):
    """Turn a leaf into an inner node with `b` leaves below it."""
    m = levels_of(table.nominal[j], work.box[node, j], work.order)
    blocks_of(table.nominal[j], work.order, m, assign, b, work.words)
    work.nodes[node, FEATURE] = j
    count_use(work, j, 1)
    previous = -1
    for branch in range(b):
        child = new_node(work, node)
        work.box[child, j] = work.words[branch]
        link_child(work, node, child, previous)
        previous = child
    work.sizes[N_LEAVES] += b - 1
    place_children(table, model, work, node)
    child = work.nodes[node, FIRST]
    while child >= 0:
        sync_lists(work, child)
        child = work.nodes[child, NEXT]
    sync_lists(work, node)
    if work.nodes[node, PARENT] >= 0:
        sync_lists(work, work.nodes[node, PARENT])


@inner_kernel
def make_leaf(table, model, work, node):
    """Turn an inner node whose children are leaves into a leaf."""
    child = work.nodes[node, FIRST]
    while child >= 0:
        following = work.nodes[child, NEXT]
        free_node(work, child)
        child = following
    count_use(work, work.nodes[node, FEATURE], -1)
    work.sizes[N_LEAVES] -= work.nodes[node, N_CHILDREN] - 1
    work.nodes[node, FEATURE] = -1
    work.nodes[node, FIRST] = -1
    work.nodes[node, N_CHILDREN] = 0
    work.reals[node, VALUE] = leaf_value(
        model, work.reals[node, COUNT], work.reals[node, LOG_VOLUME]
    )
    if model.independent:
        work.reals[node, VALUE] += inside(table, model, work, node)
    sync_lists(work, node)
    if work.nodes[node, PARENT] >= 0:
        sync_lists(work, work.nodes[node, PARENT])


@inner_kernel
def nth_child(work, node, n):
    """Return the child with n siblings before it."""
    child = work.nodes[node, FIRST]
    for _ in range(n):
        child = work.nodes[child, NEXT]
    return child


@inner_kernel
def exchange_links(work, one_parent, one, other_parent, other):
    """Let two nodes take each other's place among the children of their parents."""
    replace_link(work, one_parent, one, other)
    replace_link(work, other_parent, other, one)
    after_one, after_other = work.nodes[one, NEXT], work.nodes[other, NEXT]
    work.nodes[one, NEXT], work.nodes[other, NEXT] = after_other, after_one
    work.nodes[one, PARENT], work.nodes[other, PARENT] = other_parent, one_parent


@inner_kernel
def replace_link(work, parent, old, new):
    """Let whatever points to a child from its parent or sibling before point to another node."""
    if work.nodes[parent, FIRST] == old:
        work.nodes[parent, FIRST] = new
        return
    child = work.nodes[parent, FIRST]
    while work.nodes[child, NEXT] != old:
        child = work.nodes[child, NEXT]
    work.nodes[child, NEXT] = new


@inner_kernel
def sort_children(table, work, node, j):
    """Link a node's children anew in the order of their blocks' lowest codes."""
    size = 0
    child = work.nodes[node, FIRST]
    while child >= 0:
        k = size
        lowest = lowest_code(table.nominal[j], work.box[child, j])
        while k > 0 and lowest < lowest_code(table.nominal[j], work.box[work.order[k - 1], j]):
            work.order[k] = work.order[k - 1]
            k -= 1
        work.order[k] = child
        size += 1
        child = work.nodes[child, NEXT]
    work.nodes[node, FIRST] = work.order[0]
    for k in range(size):
        work.nodes[work.order[k], NEXT] = work.order[k + 1] if k + 1 < size else -1
