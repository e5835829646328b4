"""The moves on trees; those that keep all leaves are in `regrouping`.

* `grow` splits a leaf, drawn uniformly among those that can be split; `prune` takes back a split
  whose branches are all leaves, drawn uniformly among those.
* `change` draws any inner node. Over leaves, it proposes any other split in its place. Higher up
  it keeps the number of branches and everything below, each branch by rank, and is invalid unless
  every split below still shares out exactly the levels that reach it.
* `swap` draws an inner node other than the root. If it splits its parent's column once more, one of
  its children and one of its siblings are exchanged; if all siblings make the same split, parent
  and children trade places: the leaves stay as they are in both cases. Otherwise it exchanges its
  split with its parent's, under the same condition as `change`.
* `regroup`, only where splits may have three or more branches, either nests two or more branches
  of an inner node, but not all, under a split of the same column of their own (ordered columns:
  neighbors), or takes such a split back; each with probability one half. The leaves stay.
* `graft` draws any inner node and either puts a split above it, on a column not used below, one
  branch of which keeps the subtree while the others are leaves, or takes the node's split away if
  just one branch is inner and does not use its column; each with probability one half.

Where a split sends every level its own way, a column has one split, nothing is regrouped, and
`change` keeps the number of branches by taking a column with as many levels left.

Each returns the change of log density (nats) if it was accepted, and NaN if it was not.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import accept
from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.kernels.densities import (
    block_size,
    blocks_of,
    branch_value,
    inside_gain,
    leaf_value,
    levels_of,
    shape_value,
)
from bayescascade.methods.cascades.kernels.layout import (
    COUNT,
    FEATURE,
    FIRST,
    GROWABLE,
    IN_PLACE,
    INNER,
    LOG_VOLUME,
    N_CHILDREN,
    N_LEAVES,
    N_USED,
    NEXT,
    PARENT,
    POSITION,
    PROPOSED,
    TWIGS,
    WEIGHT,
    WIDTH,
)
from bayescascade.methods.cascades.kernels.nodes import (
    count_use,
    free_node,
    link_child,
    make_inner,
    make_leaf,
    new_node,
    sync_lists,
)
from bayescascade.methods.cascades.kernels.proposals import (
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
from bayescascade.methods.cascades.kernels.subtrees import (
    collect,
    replace_below,
    restore,
    save,
    uses_below,
)

__all__ = ["change_above", "change_twig", "exchange", "grow", "insert", "prune", "remove"]


@inner_kernel
def grow(rng, table, model, work, beta):
    """Split a leaf."""
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
    if model.independent:
        change += inside_gain(table, model, work, node, j, b, assign)
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
    """Take back a split over leaves."""
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
        make_leaf(table, model, work, node)
        return change
    return np.nan


@inner_kernel
def change_twig(rng, table, model, work, beta, node):
    """Put another split in the place of one over leaves."""
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
        make_leaf(table, model, work, node)
        make_inner(table, model, work, node, j, b, work.assign[PROPOSED])
        return change
    return np.nan


@inner_kernel
def change_above(rng, table, model, work, beta, node):
    """Put another split in the place of one over inner nodes, which stay, each by its rank."""
    nodes = work.nodes
    old_j, b = nodes[node, FEATURE], nodes[node, N_CHILDREN]
    most = b if model.by_levels else work.order.shape[0]
    n_open = 0
    for j in range(table.codes.shape[0]):
        n_open += b <= block_size(table.nominal[j], work.box[node, j]) <= most
    prepare(table, model, work, node)
    j = draw_uniform_feature(rng, table, work, node, b, most, n_open)
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
    change = replace_below(table, model, work, node, size)
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
    change = replace_below(table, model, work, parent, size)
    if accept(rng, beta * change):
        for i in range(size):
            sync_lists(work, work.subtree[i])
        return change
    restore(work, size)
    return np.nan


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
