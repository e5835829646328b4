"""Blocks of levels, and the log densities of `methods.cascades.models`, term by term, in nats.

Blocks are packed as `methods.cascades.tree` says.

What the rows of an independent leaf contribute needs the weight of every level among them: a pass
over the rows, also of a leaf that is only proposed. None of that is called where leaves are
uniform.
"""

from math import lgamma, log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.kernels.layout import (
    COUNTED,
    END,
    LEAF_MODEL,
    ORDERED,
    READY,
    START,
)

__all__ = [
    "block_size",
    "block_width",
    "blocks_of",
    "branch_value",
    "count_rows",
    "full_block",
    "in_block",
    "inside",
    "inside_gain",
    "leaf_value",
    "levels_of",
    "log_gamma",
    "lowest_code",
    "shape_value",
    "weigh_cuts",
    "weigh_levels",
]


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
    return np.uint64(code) >= block & np.uint64(0xFFFFFFFF) and np.uint64(
        code
    ) < block >> np.uint64(32)


@inner_kernel
def levels_of(is_nominal, block, out):
    """Write a block's codes, ascending, and return how many."""
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
        for code in range(
            np.int64(block & np.uint64(0xFFFFFFFF)), np.int64(block >> np.uint64(32))
        ):
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
def blocks_of(is_nominal, codes, m, assign, b, out):
    """Write the `b` packed blocks that `assign` makes of `m` ascending codes."""
    for branch in range(b):
        out[branch] = np.uint64(0)
    for i in range(m):
        code = np.uint64(codes[i])
        branch = assign[codes[i]]
        if is_nominal:
            out[branch] |= np.uint64(1) << code
        elif out[branch] == 0:
            out[branch] = code | (code + np.uint64(1)) << np.uint64(32)
        else:
            out[branch] = (out[branch] & np.uint64(0xFFFFFFFF)) | (
                code + np.uint64(1)
            ) << np.uint64(32)


@inner_kernel
def lowest_code(is_nominal, block):
    """Return the lowest code of a block."""
    if not is_nominal:
        return np.int64(block & np.uint64(0xFFFFFFFF))
    code = 0
    while not block & np.uint64(1):
        block >>= np.uint64(1)
        code += 1
    return code


@inner_kernel
def log_gamma(model, count):
    """lnG(count + alpha), from the table where weights are whole."""
    index = np.int64(count)
    if index < model.log_gamma.shape[0]:
        return model.log_gamma[index]
    return lgamma(count + model.alpha)


@inner_kernel
def leaf_value(model, count, log_volume):
    """Contribution of a leaf to the log density, but for `shape_value` and `inside`."""
    value = -model.rate
    if model.kind == LEAF_MODEL:
        value = log_gamma(model, count) - log_gamma(model, 0.0)
    return value if model.independent else value - count * log_volume


@inner_kernel
def branch_value(model, counts, b, total):
    """Contribution of an inner node with branches of weights counts[:b]."""
    if model.kind == LEAF_MODEL:
        return 0.0
    value = -model.rate + b * log(model.rate) - lgamma(b + 1.0)
    value += lgamma(b * model.alpha) - lgamma(b * model.alpha + total)
    for branch in range(b):
        value += log_gamma(model, counts[branch]) - log_gamma(model, 0.0)
    return value


@inner_kernel
def shape_value(model, n_leaves, n_used, total):
    """Contribution of the numbers of leaves and of columns used."""
    if n_leaves > model.max_leaves:
        return -np.inf
    value = model.inclusion[n_used]
    if model.kind == LEAF_MODEL:
        value += -model.rate + n_leaves * log(model.rate) - lgamma(n_leaves + 1.0)
        value += lgamma(n_leaves * model.alpha) - lgamma(total + n_leaves * model.alpha)
    return value


@inner_kernel
def count_rows(table, work, node, counts):
    """Write the weight of every level among the node's rows into counts (L,)."""
    p = table.codes.shape[0]
    counts[:] = 0.0
    for i in range(work.nodes[node, START], work.nodes[node, END]):
        row = work.rows[i]
        weight = table.weights[row]
        for j in range(p):
            counts[table.offsets[j] + table.row_codes[row, j]] += weight


@inner_kernel
def inside(table, model, work, node):
    """Return what the node contributes as the independent leaf that it is or would be."""
    counted = node
    if work.nodes[node, READY] < COUNTED:
        counted = work.nodes.shape[0]
        count_rows(table, work, node, work.histogram[counted])
    return log_marginals(table, model, work, node, counted, -1, np.uint64(0))


@inner_kernel
def count_branches(table, work, node, j, b, assign):
    """Fill a histogram behind those of the nodes for each branch of a split of the node."""
    p = table.codes.shape[0]
    first = work.nodes.shape[0]
    work.histogram[first : first + b] = 0.0
    for i in range(work.nodes[node, START], work.nodes[node, END]):
        row = work.rows[i]
        counted = first + assign[table.row_codes[row, j]]
        weight = table.weights[row]
        for k in range(p):
            work.histogram[counted, table.offsets[k] + table.row_codes[row, k]] += weight


@inner_kernel
def weigh_cuts(table, model, work, node, j, m, out):
    """Write what both sides of each two-way cut of `work.order` contribute; out (m - 1,)."""
    count_ordered(table, work, node, j, m)
    first = work.nodes.shape[0]
    left, right = first + m, first + m + 1
    work.histogram[left] = 0.0
    left_block, right_block = np.uint64(0), work.box[node, j]
    for i in range(m - 1):
        code = np.uint64(work.order[i])
        if table.nominal[j]:
            left_block |= np.uint64(1) << code
            right_block &= ~left_block
        else:
            low = work.box[node, j] & np.uint64(0xFFFFFFFF)
            high = work.box[node, j] >> np.uint64(32)
            left_block = low | (code + np.uint64(1)) << np.uint64(32)
            right_block = (code + np.uint64(1)) | high << np.uint64(32)
        for level in range(work.histogram.shape[1]):
            work.histogram[left, level] += work.histogram[first + i, level]
            work.histogram[right, level] = max(
                work.histogram[node, level] - work.histogram[left, level], 0.0
            )
        out[i] = log_marginals(table, model, work, node, left, j, left_block)
        out[i] += log_marginals(table, model, work, node, right, j, right_block)


@inner_kernel
def weigh_levels(table, model, work, node, j, m):
    """Return what all branches contribute if each of `work.order` is one."""
    count_ordered(table, work, node, j, m)
    value = 0.0
    for i in range(m):
        code = np.uint64(work.order[i])
        if table.nominal[j]:
            block = np.uint64(1) << code
        else:
            block = code | (code + np.uint64(1)) << np.uint64(32)
        value += log_marginals(table, model, work, node, work.nodes.shape[0] + i, j, block)
    return value


@inner_kernel
def count_ordered(table, work, node, j, m):
    """Fill a histogram behind those of the nodes for each of `work.order`."""
    for i in range(m):
        work.assign[ORDERED, work.order[i]] = i
    count_branches(table, work, node, j, m, work.assign[ORDERED])


@inner_kernel
def inside_gain(table, model, work, node, j, b, assign):
    """Return how much more than the node its branches contribute, if it is split so."""
    first = work.nodes.shape[0]
    change = -inside(table, model, work, node)
    count_branches(table, work, node, j, b, assign)
    m = levels_of(table.nominal[j], work.box[node, j], work.order)
    blocks_of(table.nominal[j], work.order, m, assign, b, work.words)
    for branch in range(b):
        change += log_marginals(table, model, work, node, first + branch, j, work.words[branch])
    return change


@inner_kernel
def log_marginals(table, model, work, node, counted, split, block):
    """Sum those of the columns, given ``histogram[counted]``; `split` has only `block` left."""
    a, log_gamma_a = model.leaf_alpha, leaf_log_gamma(model, 0.0)
    value = 0.0
    for j in range(table.codes.shape[0]):
        left = block if j == split else work.box[node, j]
        base = table.offsets[j]
        count = 0.0
        for code in range(table.n_levels[j]):
            if in_block(table.nominal[j], left, code):
                n = work.histogram[counted, base + code]
                if n > 0.0:  # else the terms cancel
                    count += n
                    value += leaf_log_gamma(model, n) - log_gamma_a
                    value -= n * log(table.widths[base + code])
        total = a * block_size(table.nominal[j], left)
        value += lgamma(total) - lgamma(count + total)
    return value


@inner_kernel
def leaf_log_gamma(model, count):
    """lnG(count + leaf_alpha), from the table where weights are whole."""
    index = np.int64(count)
    if index < model.leaf_log_gamma.shape[0]:
        return model.leaf_log_gamma[index]
    return lgamma(count + model.leaf_alpha)
