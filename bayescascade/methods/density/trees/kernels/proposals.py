"""Proposal of a split of a node, and its exact probability.

It depends only on the node's levels and rows. The column ``j`` is drawn in proportion to ``(1 -
EPS) exp(score_j) / sum_k exp(score_k) + EPS / (columns left)``, then the number of branches from
``branch_log_weights``, then, with probability ``1 - EPS``, a cut of the levels in order of their
density (of their own order, where ordered), otherwise any partition at random. Two-way cuts are
drawn in proportion to the square root of their Bayes factor, others uniformly; ``score_j`` is the
log of the sum of those two-way weights.
"""

from math import exp, lgamma, log

import numpy as np

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.density.trees.kernels import densities, layout as at


@inner_kernel
def order_levels(table, work, node, j):
    """Write and count a node's codes: by decreasing density, then code; ascending if ordered."""
    histogram, order = work.histogram, work.order
    m = densities.levels_of(table.nominal[j], work.box[node, j], order)
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
def cut_scores(table, model, work, node, j, m):
    """Write half log Bayes factors of `order`'s cuts to ``branch[SCRATCH]``; return log sum exp."""
    out = work.branch[at.SCRATCH]
    if model.independent:
        densities.weigh_cuts(table, model, work, node, j, m, out)
    base, total_count, total_width = table.offsets[j], 0.0, 0.0
    for i in range(m):
        total_count += work.histogram[node, base + work.order[i]]
        total_width += table.widths[base + work.order[i]]
    count, width, best = 0.0, 0.0, -np.inf
    for i in range(m - 1):
        count += work.histogram[node, base + work.order[i]]
        width += table.widths[base + work.order[i]]
        rest = max(total_count - count, 0.0)
        score = out[i] if model.independent else 0.0
        score += densities.log_gamma(model, count)
        score += densities.log_gamma(model, rest)
        if not model.independent:
            if table.nominal[j]:  # every level has width 1
                log_left = model.log_integers[i + 1] - model.log_integers[m]
                log_right = model.log_integers[m - 1 - i] - model.log_integers[m]
            else:
                log_left = log(width / total_width)
                log_right = log((total_width - width) / total_width)
            score = score - count * log_left - rest * log_right
        out[i] = 0.5 * score
        best = max(best, out[i])
    total = 0.0
    for i in range(m - 1):
        total += exp(out[i] - best)
    return best + log(total)


@inner_kernel
def levels_score(table, model, work, node, j, m):
    """Return half the log Bayes factor of a branch for each of the ordered levels."""
    base, count, width = table.offsets[j], 0.0, 0.0
    score = lgamma(m * model.alpha) - m * densities.log_gamma(model, 0.0)
    for i in range(m):
        level = base + work.order[i]
        n = work.histogram[node, level]
        count += n
        width += table.widths[level]
        score += densities.log_gamma(model, n)
        if not model.independent:
            score -= n * log(table.widths[level])
    score -= lgamma(m * model.alpha + count)
    if model.independent:
        score += densities.weigh_levels(table, model, work, node, j, m)
    else:
        score += count * log(width)
    return 0.5 * score


@inner_kernel
def prepare(table, model, work, node):
    """Fill the node's histogram and split scores, unless they exist."""
    nodes = work.nodes
    if nodes[node, at.READY] == at.SCORED:
        return
    fill_histogram(table, model, work, node)
    p, best = table.codes.shape[0], -np.inf
    for j in range(p):
        block = work.box[node, j]
        if densities.block_size(table.nominal[j], block) < 2:
            work.score[node, j] = -np.inf
            continue
        m = order_levels(table, work, node, j)
        if model.by_levels:
            work.score[node, j] = levels_score(table, model, work, node, j, m)
        else:
            work.score[node, j] = cut_scores(table, model, work, node, j, m)
        best = max(best, work.score[node, j])
    total = 0.0
    for j in range(p):
        total += exp(work.score[node, j] - best)
    work.reals[node, at.LOG_NORM] = best + log(total)
    nodes[node, at.READY] = at.SCORED


@inner_kernel
def fill_histogram(table, model, work, node):
    """Count a node's rows; for two branches of integer weights only the smaller one's."""
    nodes = work.nodes
    if nodes[node, at.READY] >= at.COUNTED:
        return
    parent = nodes[node, at.PARENT]
    if (
        model.log_gamma.shape[0] > 0
        and parent >= 0
        and nodes[parent, at.READY] >= at.COUNTED
        and nodes[parent, at.N_CHILDREN] == 2
    ):
        sibling = nodes[parent, at.FIRST]
        if sibling == node:
            sibling = nodes[node, at.NEXT]
        n_rows = nodes[node, at.END] - nodes[node, at.START]
        if (
            nodes[sibling, at.READY] < at.COUNTED
            and nodes[sibling, at.END] - nodes[sibling, at.START] < n_rows
        ):
            count_node(table, work, sibling)
        if nodes[sibling, at.READY] >= at.COUNTED:
            for level in range(work.histogram.shape[1]):
                work.histogram[node, level] = (
                    work.histogram[parent, level] - work.histogram[sibling, level]
                )
            nodes[node, at.READY] = at.COUNTED
            return
    count_node(table, work, node)


@inner_kernel
def count_node(table, work, node):
    """Fill the node's histogram from its rows."""
    densities.count_rows(table, work, node, work.histogram[node])
    work.nodes[node, at.READY] = at.COUNTED


@inner_kernel
def draw_feature(rng, table, work, node):
    """Draw a column to split: informed by the data, or uniformly among the splittable ones."""
    p = table.codes.shape[0]
    if rng.random() >= at.EPS:
        u = rng.random()
        chosen = -1
        for j in range(p):
            if work.score[node, j] > -np.inf:
                chosen = j
                u -= exp(work.score[node, j] - work.reals[node, at.LOG_NORM])
                if u < 0.0:
                    break
        return chosen
    most = work.order.shape[0]
    return draw_uniform_feature(rng, table, work, node, 2, most, work.nodes[node, at.N_SPLITTABLE])


@inner_kernel
def draw_uniform_feature(rng, table, work, node, fewest, most, n_open):
    """Draw uniformly among the `n_open` columns with `fewest` to `most` remaining levels."""
    index = np.int64(rng.random() * n_open)
    for j in range(table.codes.shape[0]):
        if fewest <= densities.block_size(table.nominal[j], work.box[node, j]) <= most:
            if index == 0:
                return j
            index -= 1
    return -1


@inner_kernel
def draw_branches(rng, model, m):
    """Draw the number of branches of a split of m levels."""
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
def draw_partition(rng, table, model, work, node, j, m, b):
    """Draw `b` branches, by lowest code, of the `m` levels in `work.order`: `assign[PROPOSED]`."""
    order, assign = work.order, work.assign[at.PROPOSED]
    if model.by_levels:
        for i in range(m):
            assign[order[i]] = i
    elif rng.random() >= at.EPS or not table.nominal[j]:
        if b == 2:
            total = cut_scores(table, model, work, node, j, m)
            informed = table.nominal[j] or rng.random() >= at.EPS
            u = rng.random()
            cut = m - 2
            if informed:
                for i in range(m - 1):
                    u -= exp(work.branch[at.SCRATCH, i] - total)
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
        # uniform over all partitions: from the last level down, the last of i levels is its own
        # block with probability S(i - 1, k - 1) / S(i, k)
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
    number_branches(table, j, work.box[node, j], assign, b, work.branch[at.SCRATCH])


@inner_kernel
def number_branches(table, j, block, assign, b, seen):
    """Renumber branches by the lowest code in each."""
    for branch in range(b):
        seen[branch] = -1.0
    following = 0
    for code in range(table.n_levels[j]):
        if densities.in_block(table.nominal[j], block, code):
            if seen[assign[code]] < 0.0:
                seen[assign[code]] = following
                following += 1
            assign[code] = np.int64(seen[assign[code]])


@inner_kernel
def log_q_partition(table, model, work, node, j, m, b, which):
    """Log probability that `draw_partition` draws this partition; `work.order` as there."""
    if model.by_levels:
        return 0.0
    order, assign = work.order, work.assign[which]
    changes, cut = 0, 0
    for i in range(m - 1):
        if assign[order[i]] != assign[order[i + 1]]:
            changes += 1
            cut = i
    is_cut = changes == b - 1
    if b == 2 and is_cut:
        total = cut_scores(table, model, work, node, j, m)
        informed = exp(work.branch[at.SCRATCH, cut] - total)
    elif is_cut:
        informed = exp(-log_choose(m - 1, b - 1))
    else:
        informed = 0.0
    log_ways = model.log_stirling[m, b] if table.nominal[j] else log_choose(m - 1, b - 1)
    uniform = exp(-log_ways)
    return log((1.0 - at.EPS) * informed + at.EPS * uniform)


@inner_kernel
def log_q_split(table, model, work, node, j, b, which):
    """Log probability of proposing this split of the node: column, branches, partition."""
    if b > model.max_proposed:
        return -np.inf
    prepare(table, model, work, node)
    m = order_levels(table, work, node, j)
    informed = exp(work.score[node, j] - work.reals[node, at.LOG_NORM])
    log_q = log((1.0 - at.EPS) * informed + at.EPS / work.nodes[node, at.N_SPLITTABLE])
    most = min(m, model.max_proposed)
    if most > 2 and not model.by_levels:
        log_q += model.branch_log_weights[b] - model.branch_log_norms[most]
    return log_q + log_q_partition(table, model, work, node, j, m, b, which)


@inner_kernel
def draw_split(rng, table, model, work, node):
    """Draw a split into `work.assign[PROPOSED]`; return its column and number of branches."""
    prepare(table, model, work, node)
    j = draw_feature(rng, table, work, node)
    m = order_levels(table, work, node, j)
    b = draw_branches(rng, model, m)
    draw_partition(rng, table, model, work, node, j, m, b)
    return j, b


@inner_kernel
def measure_branches(table, work, node, j, b, which):
    """Write weight and width of each branch of a split into `work.branch[WEIGHT]` and `[1]`."""
    assign = work.assign[which]
    for branch in range(b):
        work.branch[at.WEIGHT, branch], work.branch[at.WIDTH, branch] = 0.0, 0.0
    base = table.offsets[j]
    for code in range(table.n_levels[j]):
        if densities.in_block(table.nominal[j], work.box[node, j], code):
            work.branch[at.WEIGHT, assign[code]] += work.histogram[node, base + code]
            work.branch[at.WIDTH, assign[code]] += table.widths[base + code]


@inner_kernel
def same_partition(table, work, node, j):
    """Whether the proposed split of column `j` is the current one."""
    for code in range(table.n_levels[j]):
        inside = densities.in_block(table.nominal[j], work.box[node, j], code)
        if inside and work.assign[at.PROPOSED, code] != work.assign[at.IN_PLACE, code]:
            return False
    return True


@inner_kernel
def log_choose(n, k):
    """Return the log of the binomial coefficient, n over k."""
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)
