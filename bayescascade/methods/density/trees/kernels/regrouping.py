"""Moves that build another tree with the same leaves; `moves` defines them.

No row changes its leaf, so only the products over splits change; with the leaf model, only the
generative prior does. Each returns the change of log density (nats) if it was accepted, and NaN if
it was not.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import accept
from bayescascade.base.jit import inner_kernel
from bayescascade.methods.density.trees.kernels import densities, layout as at, trees


@inner_kernel
def same_splits_below(work, parent):
    """Whether all children of the node are inner and split one column in the same way."""
    nodes = work.nodes
    first = nodes[parent, at.FIRST]
    j, b = nodes[first, at.FEATURE], nodes[first, at.N_CHILDREN]
    if j < 0:
        return False
    child = nodes[first, at.NEXT]
    while child >= 0:
        if nodes[child, at.FEATURE] != j or nodes[child, at.N_CHILDREN] != b:
            return False
        one, other = nodes[first, at.FIRST], nodes[child, at.FIRST]
        while one >= 0:
            if work.box[one, j] != work.box[other, j]:
                return False
            one, other = nodes[one, at.NEXT], nodes[other, at.NEXT]
        child = nodes[child, at.NEXT]
    return True


@inner_kernel
def transpose(rng, table, model, work, beta, parent):
    """Split first on the children's column, then on the parent's column, with the same leaves."""
    nodes, reals = work.nodes, work.reals
    f, b = nodes[parent, at.FEATURE], nodes[parent, at.N_CHILDREN]
    first = nodes[parent, at.FIRST]
    g, c = nodes[first, at.FEATURE], nodes[first, at.N_CHILDREN]

    inner_after = work.sizes[at.INNER] - b + c
    log_q_ratio = log(c / (inner_after - 1.0)) - log(b / (work.sizes[at.INNER] - 1.0))
    change = 0.0
    if model.kind == at.BRANCH_MODEL or model.is_generative:
        for k in range(c):
            work.branch[at.WEIGHT, k] = 0.0
        change -= reals[parent, at.VALUE]
        child = nodes[parent, at.FIRST]
        while child >= 0:
            change -= reals[child, at.VALUE]
            grandchild = nodes[child, at.FIRST]
            for k in range(c):
                work.branch[at.WEIGHT, k] += reals[grandchild, at.COUNT]
                grandchild = nodes[grandchild, at.NEXT]
            child = nodes[child, at.NEXT]
        change += densities.split_value(model, work, at.WEIGHT, c, parent)
        for k in range(c):
            child = nodes[parent, at.FIRST]
            for i in range(b):
                work.branch[at.WIDTH, i] = reals[nth_child(work, child, k), at.COUNT]
                child = nodes[child, at.NEXT]
            block = work.box[nth_child(work, first, k), g]
            change += densities.branch_value(
                model, work, at.WIDTH, b, work.branch[at.WEIGHT, k],
                densities.log_splits(table, model, work, parent, g, block),
            )  # fmt: skip
    if not accept(rng, beta * change + log_q_ratio):
        return np.nan

    for k in range(c):  # a new middle node for each block of g, linked after the old ones
        middle = trees.new_node(work, parent)
        nodes[middle, at.FEATURE], work.subtree[k] = f, middle
    child = nodes[parent, at.FIRST]
    while child >= 0:
        following, grandchild = nodes[child, at.NEXT], nodes[child, at.FIRST]
        for k in range(c):
            next_grandchild, middle = nodes[grandchild, at.NEXT], work.subtree[k]
            work.box[middle, g] = work.box[grandchild, g]
            work.box[grandchild, f] = work.box[child, f]
            last = nodes[middle, at.FIRST]
            while last >= 0 and nodes[last, at.NEXT] >= 0:
                last = nodes[last, at.NEXT]
            trees.link_child(work, middle, grandchild, last)
            grandchild = next_grandchild
        trees.free_node(work, child)
        child = following
    nodes[parent, at.FEATURE], nodes[parent, at.FIRST] = g, -1
    nodes[parent, at.N_CHILDREN] = 0
    previous = -1
    for k in range(c):
        trees.link_child(work, parent, work.subtree[k], previous)
        previous = work.subtree[k]
    trees.count_use(work, g, 1 - b)
    trees.count_use(work, f, c - 1)
    place_transposed(table, model, work, parent)
    return change


@inner_kernel
def place_transposed(table, model, work, parent):
    """Derive new middle nodes from the subtrees below them; these move with all of their rows."""
    nodes, reals = work.nodes, work.reals
    g = nodes[parent, at.FEATURE]
    own_width = densities.block_width(table, g, work.box[parent, g])
    start = nodes[parent, at.START]
    trees.save_rows(work, parent)
    middle, n_middle = nodes[parent, at.FIRST], nodes[parent, at.N_CHILDREN]
    for k in range(n_middle):
        trees.set_box(table, model, work, middle, g, work.box[middle, g], own_width)
        nodes[middle, at.START] = start
        count, below = 0.0, nodes[middle, at.FIRST]
        for branch in range(nodes[middle, at.N_CHILDREN]):
            start = move_rows(work, below, start)
            work.branch[at.WIDTH, branch] = reals[below, at.COUNT]
            count += reals[below, at.COUNT]
            below = nodes[below, at.NEXT]
        nodes[middle, at.END], reals[middle, at.COUNT] = start, count
        c = nodes[middle, at.N_CHILDREN]
        reals[middle, at.VALUE] = densities.split_value(model, work, at.WIDTH, c, middle)
        work.branch[at.WEIGHT, k] = count
        trees.sync_lists(work, middle)
        middle = nodes[middle, at.NEXT]
    reals[parent, at.VALUE] = densities.split_value(model, work, at.WEIGHT, n_middle, parent)
    trees.sync_lists(work, parent)


@inner_kernel
def rotate(rng, table, model, work, beta, parent, child):
    """Exchange a sibling and a child of a node that splits its parent's column."""
    nodes, reals = work.nodes, work.reals
    j = nodes[parent, at.FEATURE]
    sibling = nth_child(work, parent, np.int64(rng.random() * (nodes[parent, at.N_CHILDREN] - 1)))
    if sibling == child:  # the last of the siblings replaces the node itself
        sibling = nth_child(work, parent, nodes[parent, at.N_CHILDREN] - 1)
    grandchild = nth_child(work, child, np.int64(rng.random() * nodes[child, at.N_CHILDREN]))
    block = exchanged_block(table, work, j, child, grandchild, sibling)
    if block == 0:
        return np.nan

    count = reals[child, at.COUNT] + reals[sibling, at.COUNT] - reals[grandchild, at.COUNT]
    change = 0.0
    log_number = densities.log_splits(table, model, work, child, j, block)
    if model.kind == at.BRANCH_MODEL or model.is_generative:
        gather_counts(work, parent, sibling, grandchild, child, count)
        b = nodes[parent, at.N_CHILDREN]
        value = densities.split_value(model, work, at.WEIGHT, b, parent)
        gather_counts(work, child, grandchild, sibling, -1, 0.0)
        c = nodes[child, at.N_CHILDREN]
        child_value = densities.branch_value(model, work, at.WEIGHT, c, count, log_number)
        change = value + child_value - reals[parent, at.VALUE] - reals[child, at.VALUE]
        if not accept(rng, beta * change):
            return np.nan
        reals[parent, at.VALUE], reals[child, at.VALUE] = value, child_value

    width = densities.block_width(table, j, work.box[child, j])
    reals[child, at.LOG_VOLUME] += log(densities.block_width(table, j, block) / width)
    reals[child, at.COUNT], reals[child, at.LOG_SPLITS] = count, log_number
    nodes[child, at.READY], work.box[child, j] = 0, block
    exchange_links(work, parent, sibling, child, grandchild)
    sort_children(table, work, parent, j)
    sort_children(table, work, child, j)

    lay_rows(work, parent, child)
    trees.sync_lists(work, child)
    return change


@inner_kernel
def exchanged_block(table, work, j, child, leaving, entering):
    """Block of a node's column when one child's block is replaced; 0 if that is not contiguous."""
    gone, come = work.box[leaving, j], work.box[entering, j]
    if table.nominal[j]:
        return (work.box[child, j] & ~gone) | come
    low, high = np.uint64(0xFFFFFFFF), np.uint64(0)
    size, inside = 0, work.nodes[child, at.FIRST]
    while inside >= 0:
        block = come if inside == leaving else work.box[inside, j]
        low = min(low, block & np.uint64(0xFFFFFFFF))
        high = max(high, block >> np.uint64(32))
        size += densities.block_size(False, block)
        inside = work.nodes[inside, at.NEXT]
    if np.int64(high) - np.int64(low) != size:
        return np.uint64(0)
    return low | high << np.uint64(32)


@inner_kernel
def gather_counts(work, node, leaving, entering, changed, count):
    """Write the weights of a node's branches after an exchange; one of them has changed, too."""
    child = work.nodes[node, at.FIRST]
    for branch in range(work.nodes[node, at.N_CHILDREN]):
        weight = work.reals[entering if child == leaving else child, at.COUNT]
        work.branch[at.WEIGHT, branch] = count if child == changed else weight
        child = work.nodes[child, at.NEXT]


@inner_kernel
def lay_rows(work, parent, child):
    """Order a node's rows by its branches, and those of a new or changed child by its own."""
    nodes = work.nodes
    trees.save_rows(work, parent)
    start, below = nodes[parent, at.START], nodes[parent, at.FIRST]
    while below >= 0:
        if below == child:
            nodes[child, at.START] = start
            inside = nodes[child, at.FIRST]
            while inside >= 0:
                start = move_rows(work, inside, start)
                inside = nodes[inside, at.NEXT]
            nodes[child, at.END] = start
        else:
            start = move_rows(work, below, start)
        below = nodes[below, at.NEXT]


@inner_kernel
def nest(rng, table, model, work, beta, parent):
    """Put some of a node's branches, not all, under a new split of the same column."""
    nodes, reals = work.nodes, work.reals
    j, b = nodes[parent, at.FEATURE], nodes[parent, at.N_CHILDREN]
    if b < 3:
        return np.nan
    size = draw_group(rng, table.nominal[j], b, work.order)  # order[i]: is branch i in it?
    count, inside, outside = 0.0, 0, 0
    block = np.uint64(0)
    child = nodes[parent, at.FIRST]
    for i in range(b):
        if work.order[i]:
            block = densities.joined(table.nominal[j], block, work.box[child, j])
            work.branch[at.WIDTH, inside] = reals[child, at.COUNT]
            count += reals[child, at.COUNT]
            inside += 1
        else:
            work.branch[at.WEIGHT, outside] = reals[child, at.COUNT]
            outside += 1
        child = nodes[child, at.NEXT]
    work.branch[at.WEIGHT, outside] = count
    value = densities.split_value(model, work, at.WEIGHT, outside + 1, parent)
    log_number = densities.log_splits(table, model, work, parent, j, block)
    nested_value = densities.branch_value(model, work, at.WIDTH, size, count, log_number)
    change = value + nested_value - reals[parent, at.VALUE]
    if not accept(rng, beta * change + log_groups(table.nominal[j], b)):
        return np.nan

    middle = trees.new_node(work, parent)
    nodes[middle, at.FEATURE] = j
    child = nodes[parent, at.FIRST]
    nodes[parent, at.FIRST], nodes[parent, at.N_CHILDREN] = -1, 0
    last, last_inside = -1, -1
    for i in range(b):
        following = nodes[child, at.NEXT]
        if work.order[i]:
            trees.link_child(work, middle, child, last_inside)
            last_inside = child
        else:
            trees.link_child(work, parent, child, last)
            last = child
        child = following
    trees.link_child(work, parent, middle, last)
    own_width = densities.block_width(table, j, work.box[parent, j])
    trees.set_box(table, model, work, middle, j, block, own_width)
    sort_children(table, work, parent, j)
    trees.count_use(work, j, 1)
    reals[middle, at.COUNT], reals[middle, at.VALUE] = count, nested_value
    reals[parent, at.VALUE] = value
    lay_rows(work, parent, middle)
    trees.sync_lists(work, middle)
    trees.sync_lists(work, parent)
    return change


@inner_kernel
def flatten(rng, table, model, work, beta, parent, child):
    """Move the branches of a node that splits its parent's column again to the parent."""
    nodes, reals = work.nodes, work.reals
    j = nodes[parent, at.FEATURE]
    b = nodes[parent, at.N_CHILDREN] - 1 + nodes[child, at.N_CHILDREN]
    if nodes[child, at.FEATURE] != j or b > model.max_branches:
        return np.nan
    i, below = 0, nodes[parent, at.FIRST]
    while below >= 0:
        if below != child:
            work.branch[at.WEIGHT, i] = reals[below, at.COUNT]
            i += 1
        below = nodes[below, at.NEXT]
    below = nodes[child, at.FIRST]
    while below >= 0:
        work.branch[at.WEIGHT, i] = reals[below, at.COUNT]
        i += 1
        below = nodes[below, at.NEXT]
    value = densities.split_value(model, work, at.WEIGHT, b, parent)
    change = value - reals[parent, at.VALUE] - reals[child, at.VALUE]
    if not accept(rng, beta * change - log_groups(table.nominal[j], b)):
        return np.nan

    last = nodes[child, at.FIRST]
    nodes[last, at.PARENT] = parent
    while nodes[last, at.NEXT] >= 0:
        last = nodes[last, at.NEXT]
        nodes[last, at.PARENT] = parent
    replace_link(work, parent, child, nodes[child, at.FIRST])
    nodes[last, at.NEXT], nodes[parent, at.N_CHILDREN] = nodes[child, at.NEXT], b
    trees.free_node(work, child)
    sort_children(table, work, parent, j)
    trees.count_use(work, j, -1)
    reals[parent, at.VALUE] = value
    trees.sync_lists(work, parent)
    return change


@inner_kernel
def log_groups(is_nominal, b):
    """Log number of groups of two or more of `b` branches, not all, that can be nested."""
    if is_nominal:
        return log(2.0**b - b - 2.0)
    return log(b * (b - 1) / 2.0 - 1.0)  # runs of adjacent branches


@inner_kernel
def draw_group(rng, is_nominal, b, chosen):
    """Draw such a group uniformly into chosen[:b] (0 or 1); return its size."""
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


@inner_kernel
def nth_child(work, node, n):
    """Return the child with n siblings before it."""
    child = work.nodes[node, at.FIRST]
    for _ in range(n):
        child = work.nodes[child, at.NEXT]
    return child


@inner_kernel
def exchange_links(work, one_parent, one, other_parent, other):
    """Exchange the places of two nodes among the children of their parents."""
    replace_link(work, one_parent, one, other)
    replace_link(work, other_parent, other, one)
    after_one, after_other = work.nodes[one, at.NEXT], work.nodes[other, at.NEXT]
    work.nodes[one, at.NEXT], work.nodes[other, at.NEXT] = after_other, after_one
    work.nodes[one, at.PARENT], work.nodes[other, at.PARENT] = other_parent, one_parent


@inner_kernel
def replace_link(work, parent, old, new):
    """Redirect the link to a child, from its parent or previous sibling, to another node."""
    if work.nodes[parent, at.FIRST] == old:
        work.nodes[parent, at.FIRST] = new
        return
    child = work.nodes[parent, at.FIRST]
    while work.nodes[child, at.NEXT] != old:
        child = work.nodes[child, at.NEXT]
    work.nodes[child, at.NEXT] = new


@inner_kernel
def sort_children(table, work, node, j):
    """Relink a node's children in the order of their blocks' lowest codes."""
    size, child = 0, work.nodes[node, at.FIRST]
    while child >= 0:
        k = size
        lowest = lowest_code(table, work, child, j)
        while k > 0 and lowest < lowest_code(table, work, work.order[k - 1], j):
            work.order[k] = work.order[k - 1]
            k -= 1
        work.order[k] = child
        size += 1
        child = work.nodes[child, at.NEXT]
    work.nodes[node, at.FIRST] = work.order[0]
    for k in range(size):
        work.nodes[work.order[k], at.NEXT] = work.order[k + 1] if k + 1 < size else -1


@inner_kernel
def move_rows(work, node, start):
    """Move a subtree's rows, saved by `save_rows`, to `start`; return their end."""
    nodes = work.nodes
    shift = start - nodes[node, at.START]
    for i in range(nodes[node, at.START], nodes[node, at.END]):
        work.rows[i + shift] = work.spare[1, i]
    for i in range(trees.collect(work, node)):
        nodes[work.subtree[i], at.START] += shift
        nodes[work.subtree[i], at.END] += shift
    return nodes[node, at.END]


@inner_kernel
def lowest_code(table, work, node, j):
    """Return the lowest remaining code of column `j` at a node."""
    block = work.box[node, j]
    if not table.nominal[j]:
        return np.int64(block & np.uint64(0xFFFFFFFF))
    code = 0
    while not block & np.uint64(1):
        block >>= np.uint64(1)
        code += 1
    return code
