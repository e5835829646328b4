"""Moves that put the same leaves into another tree, as `moves` defines them.

No row changes its leaf, so only the products over splits change, and with the leaf model nothing
does. Each returns the change of log density (nats) if it was accepted, and NaN if it was not.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import accept
from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.kernels.densities import block_size, block_width, branch_value
from bayescascade.methods.cascades.kernels.layout import (
    BRANCH_MODEL,
    COUNT,
    END,
    FEATURE,
    FIRST,
    INNER,
    LOG_VOLUME,
    N_CHILDREN,
    N_SPLITTABLE,
    NEXT,
    PARENT,
    READY,
    START,
    VALUE,
    WEIGHT,
    WIDTH,
)
from bayescascade.methods.cascades.kernels.nodes import (
    copy_row,
    count_use,
    exchange_links,
    free_node,
    link_child,
    new_node,
    nth_child,
    replace_link,
    sort_children,
    sync_lists,
)
from bayescascade.methods.cascades.kernels.subtrees import move_rows, save_rows

__all__ = ["flatten", "nest", "rotate", "same_splits_below", "transpose"]


@inner_kernel
def same_splits_below(work, parent):
    """Whether all children of the node are inner and split one column in the same way."""
    nodes = work.nodes
    first = nodes[parent, FIRST]
    j = nodes[first, FEATURE]
    if j < 0:
        return False
    child = nodes[first, NEXT]
    while child >= 0:
        if nodes[child, FEATURE] != j or nodes[child, N_CHILDREN] != nodes[first, N_CHILDREN]:
            return False
        one, other = nodes[first, FIRST], nodes[child, FIRST]
        while one >= 0:
            if work.box[one, j] != work.box[other, j]:
                return False
            one, other = nodes[one, NEXT], nodes[other, NEXT]
        child = nodes[child, NEXT]
    return True


@inner_kernel
def transpose(rng, table, model, work, beta, parent):
    """Split first on what all children split on, then on the parent's column: the same leaves."""
    nodes, reals = work.nodes, work.reals
    f, b = nodes[parent, FEATURE], nodes[parent, N_CHILDREN]
    first = nodes[parent, FIRST]
    g, c = nodes[first, FEATURE], nodes[first, N_CHILDREN]

    inner_after = work.sizes[INNER] - b + c
    log_q_ratio = log(c / (inner_after - 1.0)) - log(b / (work.sizes[INNER] - 1.0))
    change = 0.0
    if model.kind == BRANCH_MODEL:
        for k in range(c):
            work.branch[WEIGHT, k] = 0.0
        change -= reals[parent, VALUE]
        child = nodes[parent, FIRST]
        while child >= 0:
            change -= reals[child, VALUE]
            grandchild = nodes[child, FIRST]
            for k in range(c):
                work.branch[WEIGHT, k] += reals[grandchild, COUNT]
                grandchild = nodes[grandchild, NEXT]
            child = nodes[child, NEXT]
        change += branch_value(model, work.branch[WEIGHT], c, reals[parent, COUNT])
        for k in range(c):
            child = nodes[parent, FIRST]
            i = 0
            while child >= 0:
                grandchild = nodes[child, FIRST]
                for _ in range(k):
                    grandchild = nodes[grandchild, NEXT]
                work.branch[WIDTH, i] = reals[grandchild, COUNT]
                child = nodes[child, NEXT]
                i += 1
            change += branch_value(model, work.branch[WIDTH], b, work.branch[WEIGHT, k])
    if not accept(rng, beta * change + log_q_ratio):
        return np.nan

    for k in range(c):  # a new middle node for each block of g, linked behind the old ones
        middle = new_node(work, parent)
        nodes[middle, FEATURE] = f
        work.subtree[k] = middle
    child = nodes[parent, FIRST]
    while child >= 0:
        following = nodes[child, NEXT]
        grandchild = nodes[child, FIRST]
        for k in range(c):
            next_grandchild = nodes[grandchild, NEXT]
            middle = work.subtree[k]
            work.box[middle, g] = work.box[grandchild, g]
            work.box[grandchild, f] = work.box[child, f]
            last = nodes[middle, FIRST]
            while last >= 0 and nodes[last, NEXT] >= 0:
                last = nodes[last, NEXT]
            link_child(work, middle, grandchild, last)
            grandchild = next_grandchild
        free_node(work, child)
        child = following
    nodes[parent, FEATURE] = g
    nodes[parent, FIRST] = -1
    nodes[parent, N_CHILDREN] = 0
    previous = -1
    for k in range(c):
        link_child(work, parent, work.subtree[k], previous)
        previous = work.subtree[k]
    count_use(work, g, 1 - b)
    count_use(work, f, c - 1)
    place_transposed(table, model, work, parent)
    return change


@inner_kernel
def place_transposed(table, model, work, parent):
    """Derive new middle nodes from the subtrees below them, whose rows only move as a whole."""
    nodes, reals = work.nodes, work.reals
    g = nodes[parent, FEATURE]
    own_width = block_width(table, g, work.box[parent, g])
    start = nodes[parent, START]
    save_rows(work, parent)
    middle = nodes[parent, FIRST]
    n_middle = 0
    while middle >= 0:
        block = work.box[middle, g]
        copy_row(work.box, parent, work.box, middle)
        work.box[middle, g] = block
        nodes[middle, N_SPLITTABLE] = nodes[parent, N_SPLITTABLE]
        if block_size(table.nominal[g], block) < 2:
            nodes[middle, N_SPLITTABLE] -= 1
        nodes[middle, START] = start
        count = 0.0
        branch = 0
        below = nodes[middle, FIRST]
        while below >= 0:
            start = move_rows(work, below, start)
            work.branch[WIDTH, branch] = reals[below, COUNT]
            count += reals[below, COUNT]
            below = nodes[below, NEXT]
            branch += 1
        nodes[middle, END] = start
        reals[middle, COUNT] = count
        width = block_width(table, g, block)
        reals[middle, LOG_VOLUME] = reals[parent, LOG_VOLUME] + log(width / own_width)
        reals[middle, VALUE] = branch_value(model, work.branch[WIDTH], branch, count)
        work.branch[WEIGHT, n_middle] = count
        sync_lists(work, middle)
        middle = nodes[middle, NEXT]
        n_middle += 1
    reals[parent, VALUE] = branch_value(model, work.branch[WEIGHT], n_middle, reals[parent, COUNT])
    sync_lists(work, parent)


@inner_kernel
def rotate(rng, table, model, work, beta, parent, child):
    """Exchange a sibling and a child of a node that splits its parent's column once more.

    Both keep their rows, their box and everything below; the leaves stay as they are.
    """
    nodes, reals = work.nodes, work.reals
    j = nodes[parent, FEATURE]
    sibling = nth_child(work, parent, np.int64(rng.random() * (nodes[parent, N_CHILDREN] - 1)))
    if sibling == child:  # the last of the siblings stands in for the node itself
        sibling = nth_child(work, parent, nodes[parent, N_CHILDREN] - 1)
    grandchild = nth_child(work, child, np.int64(rng.random() * nodes[child, N_CHILDREN]))
    block = exchanged_block(table, work, j, child, grandchild, sibling)
    if block == 0:
        return np.nan

    count = reals[child, COUNT] + reals[sibling, COUNT] - reals[grandchild, COUNT]
    change = 0.0
    if model.kind == BRANCH_MODEL:
        gather_counts(work, parent, sibling, grandchild, child, count)
        b = nodes[parent, N_CHILDREN]
        value = branch_value(model, work.branch[WEIGHT], b, reals[parent, COUNT])
        gather_counts(work, child, grandchild, sibling, -1, 0.0)
        c = nodes[child, N_CHILDREN]
        child_value = branch_value(model, work.branch[WEIGHT], c, count)
        change = value + child_value - reals[parent, VALUE] - reals[child, VALUE]
        if not accept(rng, beta * change):
            return np.nan
        reals[parent, VALUE] = value
        reals[child, VALUE] = child_value

    width = block_width(table, j, work.box[child, j])
    reals[child, LOG_VOLUME] += log(block_width(table, j, block) / width)
    reals[child, COUNT] = count
    nodes[child, READY] = 0
    work.box[child, j] = block
    exchange_links(work, parent, sibling, child, grandchild)
    sort_children(table, work, parent, j)
    sort_children(table, work, child, j)

    lay_rows(work, parent, child)
    sync_lists(work, child)
    return change


@inner_kernel
def exchanged_block(table, work, j, child, leaving, entering):
    """Block of a node's column when one child's block is replaced; 0 if that is not contiguous."""
    gone, come = work.box[leaving, j], work.box[entering, j]
    if table.nominal[j]:
        return (work.box[child, j] & ~gone) | come
    low, high = np.uint64(0xFFFFFFFF), np.uint64(0)
    size = 0
    inside = work.nodes[child, FIRST]
    while inside >= 0:
        block = come if inside == leaving else work.box[inside, j]
        low = min(low, block & np.uint64(0xFFFFFFFF))
        high = max(high, block >> np.uint64(32))
        size += block_size(False, block)
        inside = work.nodes[inside, NEXT]
    if np.int64(high) - np.int64(low) != size:
        return np.uint64(0)
    return low | high << np.uint64(32)


@inner_kernel
def gather_counts(work, node, leaving, entering, changed, count):
    """Write the weights of a node's branches after an exchange, one of them having changed too."""
    child = work.nodes[node, FIRST]
    branch = 0
    while child >= 0:
        if child == leaving:
            work.branch[WEIGHT, branch] = work.reals[entering, COUNT]
        elif child == changed:
            work.branch[WEIGHT, branch] = count
        else:
            work.branch[WEIGHT, branch] = work.reals[child, COUNT]
        child = work.nodes[child, NEXT]
        branch += 1


@inner_kernel
def lay_rows(work, parent, child):
    """Lay a node's rows out by its branches, and those of one child, new or changed, by its own."""
    nodes = work.nodes
    save_rows(work, parent)
    start = nodes[parent, START]
    below = nodes[parent, FIRST]
    while below >= 0:
        if below == child:
            nodes[child, START] = start
            inside = nodes[child, FIRST]
            while inside >= 0:
                start = move_rows(work, inside, start)
                inside = nodes[inside, NEXT]
            nodes[child, END] = start
        else:
            start = move_rows(work, below, start)
        below = nodes[below, NEXT]


@inner_kernel
def nest(rng, table, model, work, beta, parent):
    """Put some of a node's branches, not all, under a split of the same column of their own."""
    nodes, reals = work.nodes, work.reals
    j, b = nodes[parent, FEATURE], nodes[parent, N_CHILDREN]
    if b < 3:
        return np.nan
    size = draw_group(rng, table.nominal[j], b, work.order)  # order[i]: is branch i in it?
    count = 0.0
    inside = 0
    outside = 0
    child = nodes[parent, FIRST]
    for i in range(b):
        if work.order[i]:
            work.branch[WIDTH, inside] = reals[child, COUNT]
            count += reals[child, COUNT]
            inside += 1
        else:
            work.branch[WEIGHT, outside] = reals[child, COUNT]
            outside += 1
        child = nodes[child, NEXT]
    work.branch[WEIGHT, outside] = count
    value = branch_value(model, work.branch[WEIGHT], outside + 1, reals[parent, COUNT])
    nested_value = branch_value(model, work.branch[WIDTH], size, count)
    change = value + nested_value - reals[parent, VALUE]
    if not accept(rng, beta * change + log_groups(table.nominal[j], b)):
        return np.nan

    middle = new_node(work, parent)
    nodes[middle, FEATURE] = j
    copy_row(work.box, parent, work.box, middle)
    block = np.uint64(0)
    child = nodes[parent, FIRST]
    nodes[parent, FIRST] = -1
    nodes[parent, N_CHILDREN] = 0
    last = -1
    last_inside = -1
    for i in range(b):
        following = nodes[child, NEXT]
        if work.order[i]:
            link_child(work, middle, child, last_inside)
            last_inside = child
            block = joined(table.nominal[j], block, work.box[child, j])
        else:
            link_child(work, parent, child, last)
            last = child
        child = following
    link_child(work, parent, middle, last)
    work.box[middle, j] = block
    sort_children(table, work, parent, j)
    count_use(work, j, 1)
    nodes[middle, N_SPLITTABLE] = nodes[parent, N_SPLITTABLE]
    width = block_width(table, j, work.box[parent, j])
    reals[middle, LOG_VOLUME] = reals[parent, LOG_VOLUME] + log(
        block_width(table, j, block) / width
    )
    reals[middle, COUNT] = count
    reals[middle, VALUE] = nested_value
    reals[parent, VALUE] = value
    lay_rows(work, parent, middle)
    sync_lists(work, middle)
    sync_lists(work, parent)
    return change


@inner_kernel
def flatten(rng, table, model, work, beta, parent, child):
    """Give the branches of a node that splits its parent's column once more to the parent."""
    nodes, reals = work.nodes, work.reals
    j = nodes[parent, FEATURE]
    b = nodes[parent, N_CHILDREN] - 1 + nodes[child, N_CHILDREN]
    if nodes[child, FEATURE] != j or b > model.max_branches:
        return np.nan
    i = 0
    below = nodes[parent, FIRST]
    while below >= 0:
        if below != child:
            work.branch[WEIGHT, i] = reals[below, COUNT]
            i += 1
        below = nodes[below, NEXT]
    below = nodes[child, FIRST]
    while below >= 0:
        work.branch[WEIGHT, i] = reals[below, COUNT]
        i += 1
        below = nodes[below, NEXT]
    value = branch_value(model, work.branch[WEIGHT], b, reals[parent, COUNT])
    change = value - reals[parent, VALUE] - reals[child, VALUE]
    if not accept(rng, beta * change - log_groups(table.nominal[j], b)):
        return np.nan

    last = nodes[child, FIRST]
    nodes[last, PARENT] = parent
    while nodes[last, NEXT] >= 0:
        last = nodes[last, NEXT]
        nodes[last, PARENT] = parent
    replace_link(work, parent, child, nodes[child, FIRST])
    nodes[last, NEXT] = nodes[child, NEXT]
    nodes[parent, N_CHILDREN] = b
    free_node(work, child)
    sort_children(table, work, parent, j)
    count_use(work, j, -1)
    reals[parent, VALUE] = value
    sync_lists(work, parent)
    return change


@inner_kernel
def joined(is_nominal, block, other):
    """Union of two blocks, the first perhaps empty; neighbors if ordered."""
    if is_nominal:
        return block | other
    if block == 0:
        return other
    return (block & np.uint64(0xFFFFFFFF)) | (other >> np.uint64(32)) << np.uint64(32)


@inner_kernel
def log_groups(is_nominal, b):
    """Log of how many groups of two or more of `b` branches, not all, can be nested."""
    if is_nominal:
        return log(2.0**b - b - 2.0)
    return log(b * (b - 1) / 2.0 - 1.0)  # runs of neighbors


@inner_kernel
def draw_group(rng, is_nominal, b, chosen):
    """Draw such a group uniformly into chosen[:b] (0 or 1); returns its size."""
    while True:
        size = 0
        if is_nominal:
            for i in range(b):
                chosen[i] = rng.random() < 0.5
                size += chosen[i]
        else:
            one, other = np.int64(rng.random() * b), np.int64(rng.random() * b)
            for i in range(b):
                chosen[i] = one <= i and i <= other
                size += chosen[i]
        if size >= 2 and size < b:
            return size
