"""The moves on trees; those that keep all leaves are in `regrouping`.

* `grow` splits a leaf, drawn uniformly among those that can be split; `prune` removes a split whose
  branches are all leaves, drawn uniformly among these.
* `change` draws any inner node. Over leaves, it proposes any other split. Higher up it keeps the
  number of branches and everything below, each branch by rank, and is invalid unless each split
  below is still a partition of exactly the levels that reach it.
* `swap` draws an inner node other than the root. If it splits its parent's column again, one of its
  children and one of its siblings are exchanged; if all siblings make the same split, parent and
  children change places. The leaves stay the same in both cases. Otherwise it exchanges its split
  with its parent's, under the same condition as `change`.
* `regroup`, only where splits may have three or more branches, either nests two or more branches of
  an inner node, but not all, under a new split of the same column (ordered columns: adjacent
  branches), or removes such a split; each with probability one half. The leaves stay the same.
* `graft` draws any inner node and either puts a split above it, on a column not used below, one
  branch of which keeps the subtree while the others are leaves, or removes the node's split if
  exactly one branch is inner and does not use its column; each with probability one half.

If each level has its own branch, a column has one split, there is no `regroup`, and `change` keeps
the number of branches by choosing a column with as many remaining levels.

Each returns the change of log density (nats) if it was accepted, and NaN if it was not.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import accept, draw
from bayescascade.base.jit import inner_kernel
from bayescascade.methods.density.trees.kernels import (
    densities,
    dependence,
    layout as at,
    proposals,
    trees,
)


@inner_kernel
def grow(rng, table, model, work, beta):
    """Split a leaf."""
    sizes = work.sizes
    if sizes[at.GROWABLE] == 0:
        return np.nan
    node = draw(rng, work, at.GROWABLE)
    j, b = proposals.draw_split(rng, table, model, work, node)
    log_q_forward = proposals.log_q_split(table, model, work, node, j, b, at.PROPOSED)
    log_q_forward -= log(sizes[at.GROWABLE])
    parent = work.nodes[node, at.PARENT]
    twigs_after = sizes[at.TWIGS] + 1
    if parent >= 0 and work.places[at.TWIGS, parent] >= 0:
        twigs_after -= 1
    change = gain(table, model, work, node, j, b, at.PROPOSED)
    if accept(rng, beta * change - log(twigs_after) - log_q_forward):
        trees.make_inner(table, model, work, node, j, b)
        return change
    return np.nan


@inner_kernel
def gain(table, model, work, node, j, b, which):
    """Change of log density by such a split of a leaf, or of an inner node over leaves."""
    proposals.measure_branches(table, work, node, j, b, which)
    count, log_volume = work.reals[node, at.COUNT], work.reals[node, at.LOG_VOLUME]
    own_width = 0.0
    for branch in range(b):
        own_width += work.branch[at.WIDTH, branch]
    n_open, log_number = work.nodes[node, at.N_SPLITTABLE], work.reals[node, at.LOG_SPLITS]
    change = -densities.leaf_value(model, count, log_volume, n_open)
    change += densities.branch_value(model, work, at.WEIGHT, b, count, log_number)
    if model.is_generative:
        densities.write_blocks(table, work, node, j, b, which)
    for branch in range(b):
        n_left = n_open
        if model.is_generative:
            n_left -= densities.block_size(table.nominal[j], work.words[branch]) < 2
        log_share = log(work.branch[at.WIDTH, branch] / own_width)
        n = work.branch[at.WEIGHT, branch]
        change += densities.leaf_value(model, n, log_volume + log_share, n_left)
    if model.independent:
        change += densities.inside_gain(table, model, work, node, j, b, which)
    elif model.dependent:
        change += dependence.inside_gain(table, work, node, j, b, which)
    n_leaves, n_used = work.sizes[at.N_LEAVES], work.sizes[at.N_USED]
    inner = work.nodes[node, at.FEATURE]
    if inner >= 0:  # regarded as a leaf
        n_leaves -= work.nodes[node, at.N_CHILDREN] - 1
        n_used -= work.uses[inner] == 1
    used_after = n_used + (work.uses[j] - (inner == j) == 0)
    total = work.reals[0, at.COUNT]
    change += densities.shape_value(model, n_leaves + b - 1, used_after, total)
    return change - densities.shape_value(model, n_leaves, n_used, total)


@inner_kernel
def prune(rng, table, model, work, beta):
    """Remove a split over leaves."""
    sizes = work.sizes
    if sizes[at.TWIGS] == 0:
        return np.nan
    node = draw(rng, work, at.TWIGS)
    growable_after = sizes[at.GROWABLE] + 1
    child = work.nodes[node, at.FIRST]
    while child >= 0:
        growable_after -= work.places[at.GROWABLE, child] >= 0
        child = work.nodes[child, at.NEXT]
    j, b = work.nodes[node, at.FEATURE], work.nodes[node, at.N_CHILDREN]
    trees.read_split(table, work, node)
    log_q_back = proposals.log_q_split(table, model, work, node, j, b, at.IN_PLACE)
    log_q_back -= log(growable_after)
    change = -gain(table, model, work, node, j, b, at.IN_PLACE)
    if accept(rng, beta * change + log_q_back + log(sizes[at.TWIGS])):
        trees.make_leaf(table, model, work, node)
        return change
    return np.nan


@inner_kernel
def change_twig(rng, table, model, work, beta, node):
    """Replace a split over leaves."""
    old_j, old_b = work.nodes[node, at.FEATURE], work.nodes[node, at.N_CHILDREN]
    j, b = proposals.draw_split(rng, table, model, work, node)
    trees.read_split(table, work, node)
    if j == old_j and proposals.same_partition(table, work, node, j):
        return 0.0
    log_q_ratio = proposals.log_q_split(table, model, work, node, old_j, old_b, at.IN_PLACE)
    log_q_ratio -= proposals.log_q_split(table, model, work, node, j, b, at.PROPOSED)
    change = gain(table, model, work, node, j, b, at.PROPOSED)
    change -= gain(table, model, work, node, old_j, old_b, at.IN_PLACE)
    if accept(rng, beta * change + log_q_ratio):
        trees.make_leaf(table, model, work, node)
        trees.make_inner(table, model, work, node, j, b)
        return change
    return np.nan


@inner_kernel
def change_above(rng, table, model, work, beta, node):
    """Replace a split over inner nodes, which stay, each by its rank."""
    nodes = work.nodes
    old_j, b = nodes[node, at.FEATURE], nodes[node, at.N_CHILDREN]
    most = b if model.by_levels else work.order.shape[0]
    n_open = 0
    for j in range(table.codes.shape[0]):
        n_open += b <= densities.block_size(table.nominal[j], work.box[node, j]) <= most
    proposals.prepare(table, model, work, node)
    j = proposals.draw_uniform_feature(rng, table, work, node, b, most, n_open)
    m = proposals.order_levels(table, work, node, j)
    proposals.draw_partition(rng, table, model, work, node, j, m, b)
    trees.read_split(table, work, node)
    if j == old_j and proposals.same_partition(table, work, node, j):
        return 0.0
    m = proposals.order_levels(table, work, node, j)
    log_q_forward = proposals.log_q_partition(table, model, work, node, j, m, b, at.PROPOSED)
    m = proposals.order_levels(table, work, node, old_j)
    log_q_back = proposals.log_q_partition(table, model, work, node, old_j, m, b, at.IN_PLACE)

    densities.write_blocks(table, work, node, j, b, at.PROPOSED)
    child = nodes[node, at.FIRST]
    for branch in range(b):  # each split below must still partition the levels that reach it
        if j == old_j:
            if work.words[branch] != work.box[child, j] and trees.uses_below(work, child, j):
                return np.nan
        elif trees.uses_below(work, child, j) or trees.uses_below(work, child, old_j):
            return np.nan
        child = nodes[child, at.NEXT]

    size = trees.save(work, node)
    used_before = work.sizes[at.N_USED]
    trees.count_use(work, old_j, -1)
    trees.count_use(work, j, 1)
    nodes[node, at.FEATURE] = j
    child = nodes[node, at.FIRST]
    for branch in range(b):
        work.box[child, j] = work.words[branch]
        child = nodes[child, at.NEXT]
    change = trees.replace_below(table, model, work, node, size)
    change += model.inclusion[work.sizes[at.N_USED]] - model.inclusion[used_before]
    if accept(rng, beta * change + log_q_back - log_q_forward):
        trees.sync_below(work, node)
        return change
    trees.count_use(work, j, -1)
    trees.count_use(work, old_j, 1)
    trees.restore(work, size)
    return np.nan


@inner_kernel
def exchange(rng, table, model, work, beta, parent, child):
    """Exchange the splits of a parent and a child with as many branches; its own inverse."""
    nodes = work.nodes
    b = nodes[parent, at.N_CHILDREN]
    if nodes[child, at.N_CHILDREN] != b:
        return np.nan
    f, g = nodes[parent, at.FEATURE], nodes[child, at.FEATURE]
    other, rank = nodes[parent, at.FIRST], 0
    for i in range(b):
        if other == child:
            rank = i
        elif trees.uses_below(work, other, f) or trees.uses_below(work, other, g):
            return np.nan
        other = nodes[other, at.NEXT]
    below = nodes[child, at.FIRST]
    for i in range(b):
        if i != rank and (trees.uses_below(work, below, f) or trees.uses_below(work, below, g)):
            return np.nan
        below = nodes[below, at.NEXT]

    size = trees.save(work, parent)
    nodes[parent, at.FEATURE], nodes[child, at.FEATURE] = g, f
    other, grandchild = nodes[parent, at.FIRST], nodes[child, at.FIRST]
    while other >= 0:
        block = work.box[other, f]
        work.box[other, g], work.box[grandchild, f] = work.box[grandchild, g], block
        other, grandchild = nodes[other, at.NEXT], nodes[grandchild, at.NEXT]
    # the child's own block of f was read above, before its box is updated from the parent's
    change = trees.replace_below(table, model, work, parent, size)
    if accept(rng, beta * change):
        trees.sync_below(work, parent)
        return change
    trees.restore(work, size)
    return np.nan


@inner_kernel
def insert(rng, table, model, work, beta, node):
    """Put a split above an inner node: one branch keeps the subtree, the others are leaves."""
    nodes, sizes = work.nodes, work.sizes
    j, b = proposals.draw_split(rng, table, model, work, node)
    keep = np.int64(rng.random() * b)
    if trees.uses_below(work, node, j):
        return np.nan
    n_inner = sizes[at.INNER]
    log_q_ratio = log(n_inner * b / (n_inner + 1.0))
    log_q_ratio -= proposals.log_q_split(table, model, work, node, j, b, at.PROPOSED)
    densities.write_blocks(table, work, node, j, b, at.PROPOSED)

    size = trees.save(work, node)
    inside = trees.new_node(work, node)
    take_over(work, inside, node)
    nodes[node, at.FEATURE], nodes[node, at.FIRST], nodes[node, at.N_CHILDREN] = j, -1, 0
    previous = -1
    for branch in range(b):
        child = inside if branch == keep else trees.new_node(work, node)
        work.box[child, j] = work.words[branch]
        trees.link_child(work, node, child, previous)
        previous = child
    change = trees.replace_below(table, model, work, node, size)
    change += shape_change(model, work, b - 1, np.int64(work.uses[j] == 0))
    if accept(rng, beta * change + log_q_ratio):
        sizes[at.N_LEAVES] += b - 1
        trees.count_use(work, j, 1)
        trees.sync_below(work, node)
        return change
    trees.free_all(work, nodes[node, at.FIRST])
    trees.restore(work, size)
    return np.nan


@inner_kernel
def remove(rng, table, model, work, beta, node):
    """Remove a split with one inner branch, which gets all of its rows."""
    nodes, sizes = work.nodes, work.sizes
    j, b = nodes[node, at.FEATURE], nodes[node, at.N_CHILDREN]
    inside, n_inner_children, child = -1, 0, nodes[node, at.FIRST]
    while child >= 0:
        if nodes[child, at.FEATURE] >= 0:
            inside = child
            n_inner_children += 1
        child = nodes[child, at.NEXT]
    if n_inner_children != 1 or trees.uses_below(work, inside, j):
        return np.nan
    n_inner = sizes[at.INNER]
    trees.read_split(table, work, node)
    log_q_ratio = proposals.log_q_split(table, model, work, node, j, b, at.IN_PLACE)
    log_q_ratio -= log((n_inner - 1.0) * b / n_inner)

    size = trees.save(work, node)
    former = nodes[node, at.FIRST]
    take_over(work, node, inside)
    change = trees.replace_below(table, model, work, node, size)
    change += shape_change(model, work, 1 - b, -np.int64(work.uses[j] == 1))
    if accept(rng, beta * change + log_q_ratio):
        sizes[at.N_LEAVES] -= b - 1
        trees.count_use(work, j, -1)
        trees.free_all(work, former)
        trees.sync_below(work, node)
        return change
    trees.restore(work, size)
    return np.nan


@inner_kernel
def take_over(work, node, other):
    """Move the split and the children of another node to a node."""
    nodes = work.nodes
    nodes[node, at.FEATURE] = nodes[other, at.FEATURE]
    nodes[node, at.FIRST] = nodes[other, at.FIRST]
    nodes[node, at.N_CHILDREN] = nodes[other, at.N_CHILDREN]
    child = nodes[node, at.FIRST]
    while child >= 0:
        nodes[child, at.PARENT] = node
        child = nodes[child, at.NEXT]


@inner_kernel
def shape_change(model, work, more_leaves, more_used):
    """Change of `shape_value` by this many additional leaves and columns."""
    n_leaves, n_used = work.sizes[at.N_LEAVES], work.sizes[at.N_USED]
    total = work.reals[0, at.COUNT]
    after = densities.shape_value(model, n_leaves + more_leaves, n_used + more_used, total)
    return after - densities.shape_value(model, n_leaves, n_used, total)
