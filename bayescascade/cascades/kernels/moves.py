"""The moves, as `bayescascade.cascades.moves` defines them.

Each returns the change of log density (nats) if it was accepted, and NaN if it was not.
"""

from math import exp, log

import numpy as np

from bayescascade._jit import inner_kernel
from bayescascade.cascades.kernels.densities import branch_value, leaf_value, shape_value
from bayescascade.cascades.kernels.layout import (
    BRANCH_MODEL,
    COUNT,
    END,
    FEATURE,
    FIRST,
    GROWABLE,
    IN_PLACE,
    INNER,
    LOG_VOLUME,
    N_CHILDREN,
    N_LEAVES,
    N_SPLITTABLE,
    N_USED,
    NEXT,
    PARENT,
    POSITION,
    PROPOSED,
    READY,
    START,
    TWIGS,
    VALUE,
    WEIGHT,
    WIDTH,
)
from bayescascade.cascades.kernels.levels import block_size, block_width, blocks_of, levels_of
from bayescascade.cascades.kernels.nodes import (
    copy_row,
    count_use,
    exchange_links,
    free_node,
    link_child,
    make_inner,
    make_leaf,
    new_node,
    nth_child,
    sort_children,
    sync_lists,
)
from bayescascade.cascades.kernels.proposals import (
    draw_partition,
    draw_split,
    draw_uniform_feature,
    log_q_partition,
    log_q_split,
    measure_branches,
    order_levels,
    prepare,
    read_split,
    same_partition,
)
from bayescascade.cascades.kernels.subtrees import (
    collect,
    move_rows,
    replace_below,
    restore,
    save,
    save_rows,
    uses_below,
)

__all__ = [
    "change_above",
    "change_twig",
    "exchange",
    "grow",
    "prune",
    "rotate",
    "same_splits_below",
    "transpose",
]


@inner_kernel
def accept(rng, log_ratio):
    return log_ratio >= 0.0 or rng.random() < exp(log_ratio)


@inner_kernel
def grow(rng, table, model, work, beta):
    sizes = work.sizes
    if sizes[GROWABLE] == 0:
        return np.nan
    node = work.lists[GROWABLE, np.int64(rng.random() * sizes[GROWABLE])]
    j, b = draw_split(rng, table, model, work, node)
    assign = work.assign[PROPOSED]
    log_q_forward = log_q_split(table, model, work, node, j, b, assign) - log(sizes[GROWABLE])
    parent = work.nodes[node, PARENT]
    twigs_after = sizes[TWIGS] + 1
    if parent >= 0 and work.nodes[parent, POSITION + TWIGS] >= 0:
        twigs_after -= 1
    change = gain(table, model, work, node, j, b, assign)
    if accept(rng, beta * change - log(twigs_after) - log_q_forward):
        make_inner(table, model, work, node, j, b, assign)
        return change
    return np.nan


@inner_kernel
def gain(table, model, work, node, j, b, assign):
    """Change of log density when a leaf, or an inner node over leaves made a leaf, is split so."""
    measure_branches(table, work, node, j, b, assign)
    count, log_volume = work.reals[node, COUNT], work.reals[node, LOG_VOLUME]
    own_width = 0.0
    for branch in range(b):
        own_width += work.branch[WIDTH, branch]
    change = -leaf_value(model, count, log_volume)
    change += branch_value(model, work.branch[WEIGHT], b, count)
    for branch in range(b):
        change += leaf_value(
            model,
            work.branch[WEIGHT, branch],
            log_volume + log(work.branch[WIDTH, branch] / own_width),
        )
    n_leaves, n_used = work.sizes[N_LEAVES], work.sizes[N_USED]
    inner = work.nodes[node, FEATURE]
    if inner >= 0:  # seen as the leaf that it would be
        n_leaves -= work.nodes[node, N_CHILDREN] - 1
        n_used -= work.uses[inner] == 1
    used_after = n_used + (work.uses[j] - (inner == j) == 0)
    total = work.reals[0, COUNT]
    change += shape_value(model, n_leaves + b - 1, used_after, total)
    return change - shape_value(model, n_leaves, n_used, total)


@inner_kernel
def prune(rng, table, model, work, beta):
    sizes = work.sizes
    if sizes[TWIGS] == 0:
        return np.nan
    node = work.lists[TWIGS, np.int64(rng.random() * sizes[TWIGS])]
    growable_after = sizes[GROWABLE] + 1
    child = work.nodes[node, FIRST]
    while child >= 0:
        growable_after -= work.nodes[child, POSITION + GROWABLE] >= 0
        child = work.nodes[child, NEXT]
    j, b = work.nodes[node, FEATURE], work.nodes[node, N_CHILDREN]
    read_split(table, work, node)
    log_q_back = log_q_split(table, model, work, node, j, b, work.assign[IN_PLACE]) - log(
        growable_after
    )
    change = -gain(table, model, work, node, j, b, work.assign[IN_PLACE])
    if accept(rng, beta * change + log_q_back + log(sizes[TWIGS])):
        make_leaf(model, work, node)
        return change
    return np.nan


@inner_kernel
def change_twig(rng, table, model, work, beta, node):
    old_j, old_b = work.nodes[node, FEATURE], work.nodes[node, N_CHILDREN]
    j, b = draw_split(rng, table, model, work, node)
    read_split(table, work, node)
    if j == old_j and same_partition(table, work, node, j):
        return 0.0
    log_q_ratio = log_q_split(table, model, work, node, old_j, old_b, work.assign[IN_PLACE])
    log_q_ratio -= log_q_split(table, model, work, node, j, b, work.assign[PROPOSED])
    change = gain(table, model, work, node, j, b, work.assign[PROPOSED])
    change -= gain(table, model, work, node, old_j, old_b, work.assign[IN_PLACE])
    if accept(rng, beta * change + log_q_ratio):
        make_leaf(model, work, node)
        make_inner(table, model, work, node, j, b, work.assign[PROPOSED])
        return change
    return np.nan


@inner_kernel
def change_above(rng, table, model, work, beta, node):
    """Change the split of a node with inner children, which stay, each under the block of its rank."""
    nodes = work.nodes
    old_j, b = nodes[node, FEATURE], nodes[node, N_CHILDREN]
    n_open = 0
    for j in range(table.codes.shape[0]):
        n_open += block_size(table.nominal[j], work.box[node, j]) >= b
    prepare(table, model, work, node)
    j = draw_uniform_feature(rng, table, work, node, b, n_open)
    m = order_levels(table, work.histogram, node, j, work.box[node, j], work.order)
    draw_partition(rng, table, model, work, node, j, m, b, work.assign[PROPOSED])
    read_split(table, work, node)
    if j == old_j and same_partition(table, work, node, j):
        return 0.0
    m = order_levels(table, work.histogram, node, j, work.box[node, j], work.order)
    log_q_forward = log_q_partition(table, model, work, node, j, m, b, work.assign[PROPOSED])
    m = order_levels(table, work.histogram, node, old_j, work.box[node, old_j], work.order)
    log_q_back = log_q_partition(table, model, work, node, old_j, m, b, work.assign[IN_PLACE])

    m = levels_of(table.nominal[j], work.box[node, j], work.order)
    blocks_of(table.nominal[j], work.order, m, work.assign[PROPOSED], b, work.words)
    child = nodes[node, FIRST]
    branch = 0
    while child >= 0:  # every split below must still share out exactly the levels that reach it
        if j == old_j:
            if work.words[branch] != work.box[child, j] and uses_below(work, child, j):
                return np.nan
        elif uses_below(work, child, j) or uses_below(work, child, old_j):
            return np.nan
        child = nodes[child, NEXT]
        branch += 1

    size = collect(work, node)
    save(work, size)
    used_before = work.sizes[N_USED]
    count_use(work, old_j, -1)
    count_use(work, j, 1)
    nodes[node, FEATURE] = j
    child = nodes[node, FIRST]
    branch = 0
    while child >= 0:
        work.box[child, j] = work.words[branch]
        child = nodes[child, NEXT]
        branch += 1
    change = replace_below(table, model, work, size)
    change += model.inclusion[work.sizes[N_USED]] - model.inclusion[used_before]
    if accept(rng, beta * change + log_q_back - log_q_forward):
        for i in range(size):
            sync_lists(work, work.subtree[i])
        return change
    count_use(work, j, -1)
    count_use(work, old_j, 1)
    restore(work, size)
    return np.nan


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
def exchange(rng, table, model, work, beta, parent, child):
    """Exchange the splits of a parent and one child that has as many branches.

    The split in place at both nodes is a set of blocks in order; the child stays the same branch
    by rank, and so does everything else, so the move is its own inverse.
    """
    nodes = work.nodes
    b = nodes[parent, N_CHILDREN]
    if nodes[child, N_CHILDREN] != b:
        return np.nan
    f, g = nodes[parent, FEATURE], nodes[child, FEATURE]
    other = nodes[parent, FIRST]
    rank = 0
    i = 0
    while other >= 0:
        if other == child:
            rank = i
        elif uses_below(work, other, f) or uses_below(work, other, g):
            return np.nan
        other = nodes[other, NEXT]
        i += 1
    grandchild = nodes[child, FIRST]
    i = 0
    while grandchild >= 0:
        if i != rank and (uses_below(work, grandchild, f) or uses_below(work, grandchild, g)):
            return np.nan
        grandchild = nodes[grandchild, NEXT]
        i += 1

    size = collect(work, parent)
    save(work, size)
    nodes[parent, FEATURE] = g
    nodes[child, FEATURE] = f
    other, grandchild = nodes[parent, FIRST], nodes[child, FIRST]
    while other >= 0:
        block = work.box[other, f]
        work.box[other, g] = work.box[grandchild, g]
        work.box[grandchild, f] = block
        other, grandchild = nodes[other, NEXT], nodes[grandchild, NEXT]
    # the child's own block of f was read above before its box is derived anew from the parent's
    change = replace_below(table, model, work, size)
    if accept(rng, beta * change):
        for i in range(size):
            sync_lists(work, work.subtree[i])
        return change
    restore(work, size)
    return np.nan


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
