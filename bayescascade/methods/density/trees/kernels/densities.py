"""Blocks of levels, and the log densities of `methods.density.trees.models`, term by term, in nats.

Blocks are packed as in `methods.density.trees.tree`.

The contribution of an independent leaf needs the weight of each level among its rows: a pass over
the rows, even if the leaf is only proposed. These functions are not called for uniform leaves.
"""

from math import exp, lgamma, log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.density.trees.kernels import layout as at


@inner_kernel
def block_size(is_nominal, block):
    """Return the number of codes in a block."""
    if is_nominal:
        size = 0
        while block:
            block &= block - np.uint64(1)
            size += 1
        return size
    return np.int64(block >> np.uint64(32)) - np.int64(block & np.uint64(0xFFFFFFFF))


@inner_kernel
def in_block(is_nominal, block, code):
    """Whether a code is in a block."""
    if is_nominal:
        return (block >> np.uint64(code)) & np.uint64(1) == np.uint64(1)
    word = np.uint64(code)
    return word >= block & np.uint64(0xFFFFFFFF) and word < block >> np.uint64(32)


@inner_kernel
def levels_of(is_nominal, block, out):
    """Write a block's codes, ascending, and return their number."""
    size = 0
    if is_nominal:
        code = 0
        while block:
            if block & np.uint64(1):
                out[size] = code
                size += 1
            block >>= np.uint64(1)
            code += 1
    else:
        low, high = np.int64(block & np.uint64(0xFFFFFFFF)), np.int64(block >> np.uint64(32))
        for code in range(low, high):
            out[size] = code
            size += 1
    return size


@inner_kernel
def block_width(table, j, block):
    """Return the total width of a block of column `j`."""
    width = 0.0
    for code in range(table.n_levels[j]):
        if in_block(table.nominal[j], block, code):
            width += table.widths[table.offsets[j] + code]
    return width


@inner_kernel
def full_block(table, j):
    """Return the block of all codes of column `j`."""
    if table.nominal[j]:
        return np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - table.n_levels[j])
    return np.uint64(table.n_levels[j]) << np.uint64(32)


@inner_kernel
def block_of(is_nominal, code):
    """Return the block of one code."""
    word = np.uint64(code)
    if is_nominal:
        return np.uint64(1) << word
    return word | (word + np.uint64(1)) << np.uint64(32)


@inner_kernel
def joined(is_nominal, block, other):
    """Union of two blocks; the first may be empty; adjacent and in order if not nominal."""
    if is_nominal or block == 0:
        return block | other
    return (block & np.uint64(0xFFFFFFFF)) | (other >> np.uint64(32)) << np.uint64(32)


@inner_kernel
def write_blocks(table, work, node, j, b, which):
    """Write the blocks of a node's levels by `assign[which]` into `work.words`."""
    for branch in range(b):
        work.words[branch] = np.uint64(0)
    for i in range(levels_of(table.nominal[j], work.box[node, j], work.order)):
        branch = work.assign[which, work.order[i]]
        block = block_of(table.nominal[j], work.order[i])
        work.words[branch] = joined(table.nominal[j], work.words[branch], block)


@inner_kernel
def log_gamma(model, count):
    """lnG(count + alpha), from the table if weights are integers."""
    index = np.int64(count)
    if index < model.log_gamma.shape[0]:
        return model.log_gamma[index]
    return lgamma(count + model.alpha)


@inner_kernel
def log_splits(table, model, work, node, split, block):
    """Log number of splits that a node's box allows, -inf for none; 0 if the prior needs none."""
    if not model.is_generative:
        return 0.0
    best, total, n_open = -np.inf, 0.0, 0
    for j in range(table.codes.shape[0]):
        size = block_size(table.nominal[j], block if j == split else work.box[node, j])
        if size < 2:
            continue
        n_open += 1
        value = model.log_ways[j, size]
        if value > best:
            total = total * exp(best - value) + 1.0
            best = value
        else:
            total += exp(value - best)
    return best + log(total) if n_open > model.n_kept else -np.inf


@inner_kernel
def leaf_value(model, count, log_volume, n_splittable):
    """Contribution of a leaf to the log density, without `shape_value` and `inside`."""
    value = 0.0
    if model.is_generative:
        if n_splittable > model.n_kept:
            value = model.log_stop
    elif model.kind == at.BRANCH_MODEL:
        value = -model.rate
    if model.kind == at.LEAF_MODEL:
        value += log_gamma(model, count) - log_gamma(model, 0.0)
    is_uniform = not (model.independent or model.dependent)
    return value - count * log_volume if is_uniform else value


@inner_kernel
def branch_value(model, work, which, b, total, log_number):
    """Contribution of a node with branches ``branch[which, :b]``; log_number: by `log_splits`."""
    value = 0.0
    if model.is_generative:
        value = model.log_go - log_number if log_number > -np.inf else -np.inf
    elif model.kind == at.BRANCH_MODEL:
        value = -model.rate + b * log(model.rate) - lgamma(b + 1.0)
    if model.kind == at.LEAF_MODEL:
        return value
    value += lgamma(b * model.alpha) - lgamma(b * model.alpha + total)
    for branch in range(b):
        value += log_gamma(model, work.branch[which, branch]) - log_gamma(model, 0.0)
    return value


@inner_kernel
def split_value(model, work, which, b, node):
    """Return `branch_value` for a node with known weight and number of splits."""
    count, log_number = work.reals[node, at.COUNT], work.reals[node, at.LOG_SPLITS]
    return branch_value(model, work, which, b, count, log_number)


@inner_kernel
def shape_value(model, n_leaves, n_used, total):
    """Contribution of the numbers of leaves and of used columns."""
    if n_leaves > model.max_leaves:
        return -np.inf
    value = model.inclusion[n_used]
    if model.kind == at.LEAF_MODEL:
        if not model.is_generative:
            value += -model.rate + n_leaves * log(model.rate) - lgamma(n_leaves + 1.0)
        value += lgamma(n_leaves * model.alpha) - lgamma(total + n_leaves * model.alpha)
    return value


@inner_kernel
def count_rows(table, work, node, counts):
    """Write the weight of every level among the node's rows into counts (L,)."""
    p = table.codes.shape[0]
    counts[:] = 0.0
    for i in range(work.nodes[node, at.START], work.nodes[node, at.END]):
        row = work.rows[i]
        weight = table.weights[row]
        for j in range(p):
            counts[table.offsets[j] + table.row_codes[row, j]] += weight


@inner_kernel
def inside(table, model, work, node):
    """Return the contribution of the node as an independent leaf."""
    counted = node
    if work.nodes[node, at.READY] < at.COUNTED:
        counted = work.nodes.shape[0]
        count_rows(table, work, node, work.histogram[counted])
    return log_marginals(table, model, work, node, counted, -1, np.uint64(0))


@inner_kernel
def count_branches(table, work, node, j, b, which):
    """Fill a histogram, after those of the nodes, for each branch of a split of the node."""
    p, first = table.codes.shape[0], work.nodes.shape[0]
    work.histogram[first : first + b] = 0.0
    for i in range(work.nodes[node, at.START], work.nodes[node, at.END]):
        row = work.rows[i]
        counted = first + work.assign[which, table.row_codes[row, j]]
        weight = table.weights[row]
        for k in range(p):
            work.histogram[counted, table.offsets[k] + table.row_codes[row, k]] += weight


@inner_kernel
def weigh_cuts(table, model, work, node, j, m, out):
    """Write the contributions of both sides of each two-way cut of `work.order`; out (m - 1,)."""
    count_ordered(table, work, node, j, m)
    first = work.nodes.shape[0]
    left, right = first + m, first + m + 1
    work.histogram[left] = 0.0
    left_block, right_block = np.uint64(0), work.box[node, j]
    for i in range(m - 1):
        block = block_of(table.nominal[j], work.order[i])
        left_block = joined(table.nominal[j], left_block, block)
        if table.nominal[j]:
            right_block &= ~block
        else:
            right_block += np.uint64(1)
        for level in range(work.histogram.shape[1]):
            work.histogram[left, level] += work.histogram[first + i, level]
            work.histogram[right, level] = max(
                work.histogram[node, level] - work.histogram[left, level], 0.0
            )
        out[i] = log_marginals(table, model, work, node, left, j, left_block)
        out[i] += log_marginals(table, model, work, node, right, j, right_block)


@inner_kernel
def weigh_levels(table, model, work, node, j, m):
    """Return the contribution of all branches if each level of `work.order` has one."""
    count_ordered(table, work, node, j, m)
    value = 0.0
    for i in range(m):
        block = block_of(table.nominal[j], work.order[i])
        value += log_marginals(table, model, work, node, work.nodes.shape[0] + i, j, block)
    return value


@inner_kernel
def count_ordered(table, work, node, j, m):
    """Fill a histogram, after those of the nodes, for each level of `work.order`."""
    for i in range(m):
        work.assign[at.ORDERED, work.order[i]] = i
    count_branches(table, work, node, j, m, at.ORDERED)


@inner_kernel
def inside_gain(table, model, work, node, j, b, which):
    """Return the contribution of the branches of such a split, minus that of the node."""
    first = work.nodes.shape[0]
    change = -inside(table, model, work, node)
    count_branches(table, work, node, j, b, which)
    write_blocks(table, work, node, j, b, which)
    for branch in range(b):
        change += log_marginals(table, model, work, node, first + branch, j, work.words[branch])
    return change


@inner_kernel
def log_marginals(table, model, work, node, counted, split, block):
    """Sum log marginals of columns, given ``histogram[counted]``; `split` has only `block` left."""
    a, log_gamma_a = model.leaf_alpha, leaf_log_gamma(model, 0.0)
    value = 0.0
    for j in range(table.codes.shape[0]):
        left = block if j == split else work.box[node, j]
        base, count = table.offsets[j], 0.0
        for code in range(table.n_levels[j]):
            if in_block(table.nominal[j], left, code):
                n = work.histogram[counted, base + code]
                if n > 0.0:  # otherwise the terms cancel
                    count += n
                    value += leaf_log_gamma(model, n) - log_gamma_a
                    value -= n * log(table.widths[base + code])
        total = a * block_size(table.nominal[j], left)
        value += lgamma(total) - lgamma(count + total)
    return value


@inner_kernel
def leaf_log_gamma(model, count):
    """lnG(count + leaf_alpha), from the table if weights are integers."""
    index = np.int64(count)
    if index < model.leaf_log_gamma.shape[0]:
        return model.leaf_log_gamma[index]
    return lgamma(count + model.leaf_alpha)
