"""A tree in the work space: loading, exporting, and changes of one or many nodes.

A change of many nodes is a trial: a subtree is saved, changed and recomputed, and restored if
necessary.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import enlist, strike
from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.kernels import densities, dependence, layout as at
from bayescascade.methods.density.trees.kernels.layout import (
    CascadeArrays,
    CascadeWorkspace,
    FlatTree,
    TableArrays,
)


@kernel
def load(
    table: TableArrays,
    model: CascadeArrays,
    work: CascadeWorkspace,
    feature: at.Array,
    parent: at.Array,
    block: at.Array,
) -> None:
    """Lay a tree out in the work space.

    feature (n,), parent (n,) int32, block (n,) uint64: a tree in canonical order, as in `Tree`;
    the work space must hold n nodes or more.
    """
    n_nodes, n_rows = feature.shape[0], work.rows.shape[0]
    nodes, sizes = work.nodes, work.sizes
    sizes[:] = 0
    work.uses[:] = 0
    nodes[:, :] = -1
    work.places[:, :] = -1
    for row in range(n_rows):
        work.rows[row] = row
    for node in range(nodes.shape[0] - 1, n_nodes - 1, -1):
        enlist(work, at.FREE, node)
    last = work.subtree  # the last linked child
    for node in range(n_nodes):
        last[node], nodes[node, at.FEATURE] = -1, feature[node]
        nodes[node, at.N_CHILDREN], nodes[node, at.READY] = 0, 0
        if feature[node] >= 0:
            count_use(work, feature[node], 1)
        else:
            sizes[at.N_LEAVES] += 1
        if node > 0:
            above = parent[node]
            work.box[node, feature[above]] = block[node]
            link_child(work, above, node, last[above])
            last[above] = node
    nodes[0, at.START], nodes[0, at.END], nodes[0, at.N_SPLITTABLE] = 0, n_rows, 0
    work.reals[0, at.COUNT] = 0.0
    for row in range(n_rows):  # in order, unlike NumPy's sum
        work.reals[0, at.COUNT] += table.weights[row]
    work.reals[0, at.LOG_VOLUME] = 0.0
    for j in range(table.codes.shape[0]):
        work.box[0, j] = densities.full_block(table, j)
        nodes[0, at.N_SPLITTABLE] += table.n_levels[j] >= 2
        work.reals[0, at.LOG_VOLUME] += log(densities.block_width(table, j, work.box[0, j]))
    work.reals[0, at.LOG_SPLITS] = densities.log_splits(table, model, work, 0, -1, np.uint64(0))
    set_leaf_value(table, model, work, 0)
    for node in range(n_nodes):
        if feature[node] >= 0:
            place_children(table, model, work, node)
    for node in range(n_nodes):
        sync_lists(work, node)


@inner_kernel
def refresh(table, model, work):
    """Make a changed tree equal to the result of `load`, except for nodes' numbers.

    Lists are sorted again, and values whose last bits depend on previous steps are recomputed. Sums
    of weights must be exact, so weights must be integers.
    """
    nodes, reals = work.nodes, work.reals
    for which in range(at.FREE):
        work.sizes[which] = 0
    is_uniform = not (model.independent or model.dependent)
    node = 0
    while node >= 0:
        for which in range(at.FREE):
            work.places[which, node] = -1
        sync_lists(work, node)
        j = nodes[node, at.FEATURE]
        if j >= 0:
            own_width = densities.block_width(table, j, work.box[node, j])
            b, child = 0, nodes[node, at.FIRST]
            while child >= 0:
                set_log_volume(table, work, child, j, own_width)
                work.branch[at.WEIGHT, b] = reals[child, at.COUNT]
                b += 1
                child = nodes[child, at.NEXT]
            reals[node, at.VALUE] = densities.split_value(model, work, at.WEIGHT, b, node)
        elif is_uniform:
            count, log_volume = reals[node, at.COUNT], reals[node, at.LOG_VOLUME]
            n_open = nodes[node, at.N_SPLITTABLE]
            reals[node, at.VALUE] = densities.leaf_value(model, count, log_volume, n_open)
        node = following(work, node, 0)


@kernel
def export(work: CascadeWorkspace, tree: FlatTree) -> int:
    """Write the tree in canonical order, as in `Tree`; return its number of nodes."""
    nodes = work.nodes
    written = work.saved_nodes[:, 0]  # the new number of each node
    tree.feature[0], tree.parent[0], tree.block[0] = nodes[0, at.FEATURE], -1, np.uint64(0)
    written[0] = 0
    size = 1
    node = following(work, 0, 0)
    while node >= 0:
        above = nodes[node, at.PARENT]
        written[node], tree.feature[size] = size, nodes[node, at.FEATURE]
        tree.parent[size] = written[above]
        tree.block[size] = work.box[node, nodes[above, at.FEATURE]]
        size += 1
        node = following(work, node, 0)
    return size


@inner_kernel
def log_density(model, work):
    """Log density of the tree in the work space, from its nodes' values."""
    root_count = work.reals[0, at.COUNT]
    value = densities.shape_value(model, work.sizes[at.N_LEAVES], work.sizes[at.N_USED], root_count)
    size = collect(work, 0)
    for i in range(size):
        value += work.reals[work.subtree[i], at.VALUE]
    return value


@inner_kernel
def new_node(work, parent):
    """Take an unused node, a leaf of `parent` not yet linked or listed."""
    node = work.lists[at.FREE, work.sizes[at.FREE] - 1]
    strike(work, at.FREE, node)
    for field in range(at.N_FIELDS):
        work.nodes[node, field] = -1
    work.nodes[node, at.PARENT], work.nodes[node, at.N_CHILDREN] = parent, 0
    work.nodes[node, at.READY] = 0
    return node


@inner_kernel
def free_node(work, node):
    """Return a node to the unused ones."""
    for which in range(at.FREE):
        if work.places[which, node] >= 0:
            strike(work, which, node)
    enlist(work, at.FREE, node)


@inner_kernel
def free_all(work, child):
    """Return a node and the siblings after it to the unused ones."""
    while child >= 0:
        following = work.nodes[child, at.NEXT]
        free_node(work, child)
        child = following


@inner_kernel
def sync_lists(work, node):
    """Add the node to its lists, and remove it from the others."""
    inner = work.nodes[node, at.FEATURE] >= 0
    for which in range(at.FREE):
        wanted = inner
        if which == at.GROWABLE:
            wanted = not inner and work.nodes[node, at.N_SPLITTABLE] > 0
        elif which == at.TWIGS:
            wanted = inner and is_twig(work, node)
        is_listed = work.places[which, node] >= 0
        if wanted and not is_listed:
            enlist(work, which, node)
        elif is_listed and not wanted:
            strike(work, which, node)


@inner_kernel
def sync_below(work, node):
    """Add the nodes of a subtree to their lists."""
    for i in range(collect(work, node)):
        sync_lists(work, work.subtree[i])


@inner_kernel
def is_twig(work, node):
    """Return whether a node is inner and all its children are leaves."""
    child = work.nodes[node, at.FIRST]
    if child < 0:
        return False
    while child >= 0:
        if work.nodes[child, at.FEATURE] >= 0:
            return False
        child = work.nodes[child, at.NEXT]
    return True


@inner_kernel
def count_use(work, j, change):
    """Add to the number of splits on column `j`, and update the number of used columns."""
    before = np.int64(work.uses[j] > 0)
    work.uses[j] += change
    work.sizes[at.N_USED] += np.int64(work.uses[j] > 0) - before


@inner_kernel
def link_child(work, node, child, previous):
    """Append a child after the sibling `previous`, or as the first (-1)."""
    if previous < 0:
        work.nodes[node, at.FIRST] = child
    else:
        work.nodes[previous, at.NEXT] = child
    work.nodes[child, at.PARENT], work.nodes[child, at.NEXT] = node, -1
    work.nodes[node, at.N_CHILDREN] += 1


@inner_kernel
def make_inner(table, model, work, node, j, b):
    """Turn a leaf into an inner node by the proposed split."""
    densities.write_blocks(table, work, node, j, b, at.PROPOSED)
    work.nodes[node, at.FEATURE] = j
    count_use(work, j, 1)
    previous = -1
    for branch in range(b):
        child = new_node(work, node)
        work.box[child, j] = work.words[branch]
        link_child(work, node, child, previous)
        previous = child
    work.sizes[at.N_LEAVES] += b - 1
    place_children(table, model, work, node)
    child = work.nodes[node, at.FIRST]
    while child >= 0:
        sync_lists(work, child)
        child = work.nodes[child, at.NEXT]
    sync_lists(work, node)
    if work.nodes[node, at.PARENT] >= 0:
        sync_lists(work, work.nodes[node, at.PARENT])


@inner_kernel
def make_leaf(table, model, work, node):
    """Turn an inner node whose children are leaves into a leaf."""
    free_all(work, work.nodes[node, at.FIRST])
    count_use(work, work.nodes[node, at.FEATURE], -1)
    work.sizes[at.N_LEAVES] -= work.nodes[node, at.N_CHILDREN] - 1
    work.nodes[node, at.FEATURE], work.nodes[node, at.FIRST] = -1, -1
    work.nodes[node, at.N_CHILDREN] = 0
    set_leaf_value(table, model, work, node)
    sync_lists(work, node)
    if work.nodes[node, at.PARENT] >= 0:
        sync_lists(work, work.nodes[node, at.PARENT])


@inner_kernel
def place_children(table, model, work, node):
    """Derive an inner node's children from its box, rows and blocks ``box[child, feature]``."""
    nodes = work.nodes
    j, b = nodes[node, at.FEATURE], nodes[node, at.N_CHILDREN]
    read_split(table, work, node)
    partition_rows(table, work, node, b)
    own_width = densities.block_width(table, j, work.box[node, j])
    child = nodes[node, at.FIRST]
    for branch in range(b):
        set_box(table, model, work, child, j, work.box[child, j], own_width)
        nodes[child, at.START] = work.edges[branch]
        nodes[child, at.END] = work.edges[branch + 1]
        nodes[child, at.READY] = 0
        work.reals[child, at.COUNT] = work.branch[at.WEIGHT, branch]
        if nodes[child, at.FEATURE] < 0:
            set_leaf_value(table, model, work, child)
        child = nodes[child, at.NEXT]
    work.reals[node, at.VALUE] = densities.split_value(model, work, at.WEIGHT, b, node)


@inner_kernel
def read_split(table, work, node):
    """Write the current split of an inner node into `work.assign[IN_PLACE]`."""
    j, child = work.nodes[node, at.FEATURE], work.nodes[node, at.FIRST]
    for branch in range(work.nodes[node, at.N_CHILDREN]):
        for i in range(densities.levels_of(table.nominal[j], work.box[child, j], work.order)):
            work.assign[at.IN_PLACE, work.order[i]] = branch
        child = work.nodes[child, at.NEXT]


@inner_kernel
def partition_rows(table, work, node, b):
    """Group a node's rows by `assign[IN_PLACE]`, stably; writes edges and weights of branches."""
    assign, edges, counts = work.assign[at.IN_PLACE], work.edges, work.branch[at.WEIGHT]
    start, end = work.nodes[node, at.START], work.nodes[node, at.END]
    codes = table.codes[work.nodes[node, at.FEATURE]]
    if b == 2:
        low, high, count, rest = start, 0, 0.0, 0.0
        for i in range(start, end):  # without branches, to avoid mispredictions
            row = work.rows[i]
            side, weight = assign[codes[row]], table.weights[row]
            work.rows[low], work.spare[0, high] = row, row
            low += 1 - side
            high += side
            count += weight * (1 - side)
            rest += weight * side
        for i in range(high):
            work.rows[low + i] = work.spare[0, i]
        edges[0], edges[1], edges[2], counts[0] = start, low, end, count
        counts[1] = rest
        return
    edges[b] = 0
    for branch in range(b):
        edges[branch], counts[branch] = 0, 0.0
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
def set_box(table, model, work, node, j, block, own_width):
    """Derive box and volume of a node with this block of column `j` from its parent's box."""
    parent = work.nodes[node, at.PARENT]
    copy_row(work.box, parent, work.box, node)
    work.box[node, j] = block
    is_closed = densities.block_size(table.nominal[j], block) < 2
    work.nodes[node, at.N_SPLITTABLE] = work.nodes[parent, at.N_SPLITTABLE] - is_closed
    set_log_volume(table, work, node, j, own_width)
    work.reals[node, at.LOG_SPLITS] = densities.log_splits(table, model, work, parent, j, block)


@inner_kernel
def set_log_volume(table, work, node, j, own_width):
    """Derive the volume of a node with a block of column `j` from its parent's."""
    log_share = log(densities.block_width(table, j, work.box[node, j]) / own_width)
    above = work.reals[work.nodes[node, at.PARENT], at.LOG_VOLUME]
    work.reals[node, at.LOG_VOLUME] = above + log_share


@inner_kernel
def set_leaf_value(table, model, work, node):
    """Set the contribution of a leaf; its other values are known."""
    count, log_volume = work.reals[node, at.COUNT], work.reals[node, at.LOG_VOLUME]
    value = densities.leaf_value(model, count, log_volume, work.nodes[node, at.N_SPLITTABLE])
    if model.independent:
        value += densities.inside(table, model, work, node)
    elif model.dependent:
        value += dependence.inside(table, work, node, -1, 0, -1)
    work.reals[node, at.VALUE] = value


@inner_kernel
def collect(work, node):
    """Write the subtree's nodes into `work.subtree`, parents first; return their number."""
    work.subtree[0] = node
    size, i = 1, 0
    while i < size:
        child = work.nodes[work.subtree[i], at.FIRST]
        while child >= 0:
            work.subtree[size] = child
            size += 1
            child = work.nodes[child, at.NEXT]
        i += 1
    return size


@inner_kernel
def following(work, node, top):
    """Return the node after this one in preorder at or below `top`, or -1."""
    if work.nodes[node, at.FIRST] >= 0:
        return work.nodes[node, at.FIRST]
    while node != top and work.nodes[node, at.NEXT] < 0:
        node = work.nodes[node, at.PARENT]
    return -1 if node == top else work.nodes[node, at.NEXT]


@inner_kernel
def uses_below(work, node, j):
    """Whether any split at or below the node is on column `j`."""
    current = node
    while current >= 0:
        if work.nodes[current, at.FEATURE] == j:
            return True
        current = following(work, current, node)
    return False


@inner_kernel
def save(work, node):
    """Keep a copy of a subtree and of its rows; return the number of its nodes."""
    size = collect(work, node)
    for i in range(size):
        node = work.subtree[i]
        work.saved_subtree[i] = node
        copy_row(work.nodes, node, work.saved_nodes, i)
        copy_row(work.reals, node, work.saved_reals, i)
        copy_row(work.box, node, work.saved_box, i)
    save_rows(work, work.subtree[0])
    return size


@inner_kernel
def save_rows(work, node):
    """Keep a copy of a node's rows in `spare[1]`."""
    for i in range(work.nodes[node, at.START], work.nodes[node, at.END]):
        work.spare[1, i] = work.rows[i]


@inner_kernel
def restore(work, size):
    """Undo everything since `save`."""
    for i in range(size):
        node = work.saved_subtree[i]
        copy_row(work.saved_nodes, i, work.nodes, node)
        copy_row(work.saved_reals, i, work.reals, node)
        copy_row(work.saved_box, i, work.box, node)
    top = work.saved_subtree[0]
    for i in range(work.nodes[top, at.START], work.nodes[top, at.END]):
        work.rows[i] = work.spare[1, i]


@inner_kernel
def replace_below(table, model, work, top, saved_size):
    """Recompute a changed subtree, kept by `save`, from its rows; return the change in value."""
    size = collect(work, top)
    for i in range(size):
        if work.nodes[work.subtree[i], at.FEATURE] >= 0:
            place_children(table, model, work, work.subtree[i])
    change = 0.0
    for i in range(size):
        change += work.reals[work.subtree[i], at.VALUE]
    for i in range(saved_size):
        change -= work.saved_reals[i, at.VALUE]
    return change


@inner_kernel
def copy_row(source, i, target, k):
    """Copy source[i] to target[k]."""
    for column in range(source.shape[1]):
        target[k, column] = source[i, column]
