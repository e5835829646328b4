"""Proposing a split of a node, and the exact probability of having proposed it.

Given only the node's levels and rows: the column ``j`` in proportion to
``(1 - EPS) exp(score_j) / sum_k exp(score_k) + EPS / (columns left)``, then the number of branches
from ``branch_log_weights``, then, with probability ``1 - EPS``, a cut of the levels in order of
their density (of their own order, where ordered), otherwise any partition at random. Two-way cuts
are drawn in proportion to the square root of their Bayes factor, others uniformly; ``score_j`` is
the log of the sum of those two-way weights.
"""

from math import exp, lgamma, log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.cascades.kernels.densities import (
    block_size,
    count_rows,
    in_block,
    levels_of,
    log_gamma,
    weigh_cuts,
    weigh_levels,
)
from bayescascade.methods.cascades.kernels.layout import (
    COUNTED,
    END,
    EPS,
    FEATURE,
    FIRST,
    IN_PLACE,
    LOG_NORM,
    N_CHILDREN,
    N_SPLITTABLE,
    NEXT,
    PARENT,
    PROPOSED,
    READY,
    SCORED,
    SCRATCH,
    START,
    WEIGHT,
    WIDTH,
)

__all__ = [
    "draw_partition",
    "draw_split",
    "draw_uniform_feature",
    "log_q_partition",
    "log_q_split",
    "measure_branches",
    "order_levels",
    "prepare",
    "read_split",
    "same_partition",
]


@inner_kernel
def order_levels(table, histogram, node, j, block, order):
    """Write a block's codes in order of falling density, ties by code; ascending if ordered."""
    m = levels_of(table.nominal[j], block, order)
    if table.nominal[j]:
        base = table.offsets[j]
        for i in range(1, m):
            code = order[i]
            density = histogram[node, base + code]
            k = i
            while k > 0 and histogram[node, base + order[k - 1]] < density:
                order[k] = order[k - 1]
                k -= 1
            order[k] = code
    return m


@inner_kernel
def cut_scores(table, model, work, node, j, m, out):
    """Write half the log Bayes factor, up to the node's constant, of each two-way cut of `order`.

    ``out[i]`` is for the cut after the i-th of the ordered levels; returns log sum exp of them.
    """
    if model.independent:
        return independent_cut_scores(table, model, work, node, j, m, out)
    base = table.offsets[j]
    total_count = 0.0
    total_width = 0.0
    for i in range(m):
        total_count += work.histogram[node, base + work.order[i]]
        total_width += table.widths[base + work.order[i]]
    count = 0.0
    width = 0.0
    best = -np.inf
    for i in range(m - 1):
        count += work.histogram[node, base + work.order[i]]
        rest = max(total_count - count, 0.0)
        if table.nominal[j]:  # every level has width 1
            log_left = model.log_integers[i + 1] - model.log_integers[m]
            log_right = model.log_integers[m - 1 - i] - model.log_integers[m]
        else:
            width += table.widths[base + work.order[i]]
            log_left = log(width / total_width)
            log_right = log((total_width - width) / total_width)
        score = log_gamma(model, count) + log_gamma(model, rest)
        out[i] = 0.5 * (score - count * log_left - rest * log_right)
        best = max(best, out[i])
    total = 0.0
    for i in range(m - 1):
        total += exp(out[i] - best)
    return best + log(total)


@inner_kernel
def independent_cut_scores(table, model, work, node, j, m, out):
    """Do the same as `cut_scores` where leaves are independent."""
    weigh_cuts(table, model, work, node, j, m, out)
    total_count = 0.0
    for i in range(m):
        total_count += work.histogram[node, table.offsets[j] + work.order[i]]
    count = 0.0
    best = -np.inf
    for i in range(m - 1):
        count += work.histogram[node, table.offsets[j] + work.order[i]]
        rest = max(total_count - count, 0.0)
        out[i] = 0.5 * (out[i] + log_gamma(model, count) + log_gamma(model, rest))
        best = max(best, out[i])
    total = 0.0
    for i in range(m - 1):
        total += exp(out[i] - best)
    return best + log(total)


@inner_kernel
def levels_score(table, model, work, node, j, m):
    """Return half the log Bayes factor of sending each of the ordered levels its own way."""
    base = table.offsets[j]
    count = 0.0
    width = 0.0
    score = lgamma(m * model.alpha) - m * log_gamma(model, 0.0)
    for i in range(m):
        level = base + work.order[i]
        n = work.histogram[node, level]
        count += n
        width += table.widths[level]
        score += log_gamma(model, n)
        if not model.independent:
            score -= n * log(table.widths[level])
    score -= lgamma(m * model.alpha + count)
    if model.independent:
        score += weigh_levels(table, model, work, node, j, m)
    else:
        score += count * log(width)
    return 0.5 * score


@inner_kernel
def prepare(table, model, work, node):
    """Fill the node's histogram and split scores, unless they are there."""
    nodes = work.nodes
    if nodes[node, READY] == SCORED:
        return
    fill_histogram(table, model, work, node)
    p = table.codes.shape[0]
    best = -np.inf
    for j in range(p):
        block = work.box[node, j]
        if block_size(table.nominal[j], block) < 2:
            work.score[node, j] = -np.inf
            continue
        m = order_levels(table, work.histogram, node, j, block, work.order)
        if model.by_levels:
            work.score[node, j] = levels_score(table, model, work, node, j, m)
        else:
            work.score[node, j] = cut_scores(table, model, work, node, j, m, work.branch[SCRATCH])
        best = max(best, work.score[node, j])
    total = 0.0
    for j in range(p):
        total += exp(work.score[node, j] - best)
    work.reals[node, LOG_NORM] = best + log(total)
    nodes[node, READY] = SCORED


@inner_kernel
def fill_histogram(table, model, work, node):
    """Count the node's rows; of two branches only the smaller one, if weights are whole.

    The other follows by subtraction, which is exact for whole numbers only.
    """
    nodes = work.nodes
    if nodes[node, READY] >= COUNTED:
        return
    parent = nodes[node, PARENT]
    if (
        model.log_gamma.shape[0] > 0
        and parent >= 0
        and nodes[parent, READY] >= COUNTED
        and nodes[parent, N_CHILDREN] == 2
    ):
        sibling = nodes[parent, FIRST]
        if sibling == node:
            sibling = nodes[node, NEXT]
        n_rows = nodes[node, END] - nodes[node, START]
        if nodes[sibling, READY] < COUNTED and nodes[sibling, END] - nodes[sibling, START] < n_rows:
            count_node(table, work, sibling)
        if nodes[sibling, READY] >= COUNTED:
            for level in range(work.histogram.shape[1]):
                work.histogram[node, level] = (
                    work.histogram[parent, level] - work.histogram[sibling, level]
                )
            nodes[node, READY] = COUNTED
            return
    count_node(table, work, node)


@inner_kernel
def count_node(table, work, node):
    """Fill the node's histogram from its rows."""
    count_rows(table, work, node, work.histogram[node])
    work.nodes[node, READY] = COUNTED


@inner_kernel
def draw_feature(rng, table, work, node):
    """Draw a column to split: informed by the data, or uniform among the splittable."""
    p = table.codes.shape[0]
    if rng.random() >= EPS:
        u = rng.random()
        chosen = -1
        for j in range(p):
            if work.score[node, j] > -np.inf:
                chosen = j
                u -= exp(work.score[node, j] - work.reals[node, LOG_NORM])
                if u < 0.0:
                    break
        return chosen
    most = work.order.shape[0]
    return draw_uniform_feature(rng, table, work, node, 2, most, work.nodes[node, N_SPLITTABLE])


@inner_kernel
def draw_uniform_feature(rng, table, work, node, fewest, most, n_open):
    """Draw uniformly among the `n_open` columns that have from `fewest` to `most` levels left."""
    index = np.int64(rng.random() * n_open)
    for j in range(table.codes.shape[0]):
        if fewest <= block_size(table.nominal[j], work.box[node, j]) <= most:
            if index == 0:
                return j
            index -= 1
    return -1


@inner_kernel
def draw_branches(rng, model, m):
    if model.by_levels:
        return m
    most = min(m, model.max_proposed)
    if most == 2:
        return 2
    u = rng.random()
    norm = model.branch_log_norms[most]
    for b in range(2, most):
        u -= exp(model.branch_log_weights[b] - norm)
        if u < 0.0:
            return b
    return most


@inner_kernel
def draw_partition(rng, table, model, work, node, j, m, b, assign):
    """Draw a partition of the `m` levels left of column `j` into `b` branches; returns nothing.

    Writes the branch of every level code into `assign`, branches numbered by lowest code.
    `work.order` must hold the ordered levels.
    """
    order = work.order
    if model.by_levels:
        for i in range(m):
            assign[order[i]] = i
    elif rng.random() >= EPS or not table.nominal[j]:
        if b == 2:
            total = cut_scores(table, model, work, node, j, m, work.branch[SCRATCH])
            informed = table.nominal[j] or rng.random() >= EPS
            u = rng.random()
            cut = m - 2
            if informed:
                for i in range(m - 1):
                    u -= exp(work.branch[SCRATCH, i] - total)
                    if u < 0.0:
                        cut = i
                        break
            else:
                cut = np.int64(u * (m - 1))
            for i in range(m):
                assign[order[i]] = 0 if i <= cut else 1
        else:
            cuts_left = b - 1
            branch = 0
            for i in range(m):
                assign[order[i]] = branch
                places_left = m - 1 - i
                if cuts_left > 0 and rng.random() * places_left < cuts_left:
                    branch += 1
                    cuts_left -= 1
    else:
        # uniform over all partitions: walking the levels down, the last of i levels is a block of
        # its own with probability S(i - 1, k - 1) / S(i, k)
        k = b
        for i in range(m, 0, -1):
            alone = i == k or (
                k > 1
                and rng.random() < exp(model.log_stirling[i - 1, k - 1] - model.log_stirling[i, k])
            )
            assign[order[i - 1]] = 1 if alone else 0
            if alone:
                k -= 1
        branch = 0
        for i in range(m):
            if assign[order[i]] == 1:
                assign[order[i]] = branch
                branch += 1
            else:
                assign[order[i]] = np.int64(rng.random() * branch)
    number_branches(table, j, work.box[node, j], assign, b, work.branch[SCRATCH])


@inner_kernel
def number_branches(table, j, block, assign, b, seen):
    """Renumber branches by the lowest code in each."""
    for branch in range(b):
        seen[branch] = -1.0
    following = 0
    for code in range(table.n_levels[j]):
        if in_block(table.nominal[j], block, code):
            if seen[assign[code]] < 0.0:
                seen[assign[code]] = following
                following += 1
            assign[code] = np.int64(seen[assign[code]])


@inner_kernel
def log_q_partition(table, model, work, node, j, m, b, assign):
    """Log probability that `draw_partition` makes of this partition; `work.order` as there."""
    if model.by_levels:
        return 0.0
    order = work.order
    changes = 0
    cut = 0
    for i in range(m - 1):
        if assign[order[i]] != assign[order[i + 1]]:
            changes += 1
            cut = i
    is_cut = changes == b - 1
    if b == 2 and is_cut:
        total = cut_scores(table, model, work, node, j, m, work.branch[SCRATCH])
        informed = exp(work.branch[SCRATCH, cut] - total)
    elif is_cut:
        informed = exp(-log_choose(m - 1, b - 1))
    else:
        informed = 0.0
    log_ways = model.log_stirling[m, b] if table.nominal[j] else log_choose(m - 1, b - 1)
    uniform = exp(-log_ways)
    return log((1.0 - EPS) * informed + EPS * uniform)


@inner_kernel
def log_q_split(table, model, work, node, j, b, assign):
    """Log probability of proposing this split of the node: column, branches, partition."""
    if b > model.max_proposed:
        return -np.inf
    prepare(table, model, work, node)
    m = order_levels(table, work.histogram, node, j, work.box[node, j], work.order)
    informed = exp(work.score[node, j] - work.reals[node, LOG_NORM])
    log_q = log((1.0 - EPS) * informed + EPS / work.nodes[node, N_SPLITTABLE])
    most = min(m, model.max_proposed)
    if most > 2 and not model.by_levels:
        log_q += model.branch_log_weights[b] - model.branch_log_norms[most]
    return log_q + log_q_partition(table, model, work, node, j, m, b, assign)


@inner_kernel
def draw_split(rng, table, model, work, node):
    """Draw a split into `work.assign[PROPOSED]`; returns its column and number of branches."""
    prepare(table, model, work, node)
    j = draw_feature(rng, table, work, node)
    m = order_levels(table, work.histogram, node, j, work.box[node, j], work.order)
    b = draw_branches(rng, model, m)
    draw_partition(rng, table, model, work, node, j, m, b, work.assign[PROPOSED])
    return j, b


@inner_kernel
def measure_branches(table, work, node, j, b, assign):
    """Write weight and width of each branch of a split into `work.branch[WEIGHT]` and `[1]`."""
    for branch in range(b):
        work.branch[WEIGHT, branch] = 0.0
        work.branch[WIDTH, branch] = 0.0
    base = table.offsets[j]
    for code in range(table.n_levels[j]):
        if in_block(table.nominal[j], work.box[node, j], code):
            work.branch[WEIGHT, assign[code]] += work.histogram[node, base + code]
            work.branch[WIDTH, assign[code]] += table.widths[base + code]


@inner_kernel
def read_split(table, work, node):
    """Write the split in place at an inner node into `work.assign[IN_PLACE]`."""
    j = work.nodes[node, FEATURE]
    child = work.nodes[node, FIRST]
    branch = 0
    while child >= 0:
        m = levels_of(table.nominal[j], work.box[child, j], work.order)
        for i in range(m):
            work.assign[IN_PLACE, work.order[i]] = branch
        child = work.nodes[child, NEXT]
        branch += 1


@inner_kernel
def same_partition(table, work, node, j):
    """Whether the split proposed for column `j` is the one in place."""
    for code in range(table.n_levels[j]):
        inside = in_block(table.nominal[j], work.box[node, j], code)
        if inside and work.assign[PROPOSED, code] != work.assign[IN_PLACE, code]:
            return False
    return True


@inner_kernel
def log_choose(n, k):
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)
