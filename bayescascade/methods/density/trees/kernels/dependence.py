"""Leaves with dependent columns; `methods.density.trees.dependence` has the formulas.

For a box, kernels read its rows and the number of remaining levels of each column: excluded cells
hold no rows, and an empty cell's gamma functions cancel. The elimination of k columns takes ``k^3 /
6`` multiplications if the ratios of weights fit into floats, otherwise as many sums of logs. The
caller adds the widths of levels.
"""

from math import exp, lgamma, log, log1p

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.kernels import densities, layout as at
from bayescascade.methods.density.trees.kernels.layout import (
    Array,
    DependenceWorkspace,
    TableArrays,
)

_RANGE = 600.0  # range of log weights whose ratios fit into floats, nats
_NEGLIGIBLE = 38.0  # nats; smaller summands do not change the sum


@kernel
def count_pairs(
    table: TableArrays,
    work: DependenceWorkspace,
    n_left: Array,
    rows: Array,
    edges: Array,
    out: Array,
) -> None:
    """Add each box's weights of levels and pairs of levels to the lower half of out (n, L, L).

    Its rows are ``rows[edges[i]:edges[i + 1]]``; columns are not counted if their n_left (p,) int64
    is 1.
    """
    k = list_free(work, n_left)
    for box in range(edges.shape[0] - 1):
        for i in range(edges[box], edges[box + 1]):
            add_row(table, work, k, rows[i], out[box])


@kernel
def score_leaves(
    offsets: Array,
    work: DependenceWorkspace,
    n_left: Array,
    pairs: Array,
    scored: Array,
    edges: Array,
    log_evidence: Array,
    out: Array,
) -> None:
    """Write leaves' log marginal likelihoods (n,), and rows' log densities (m,), without widths.

    All leaves have the same numbers of levels left, n_left (p,) int64 >= 1, and the weights of
    pairs (n, L, L). scored (m, p): the codes of the rows; those in a leaf are
    ``scored[edges[i]:edges[i + 1]]``.
    """
    k = list_free(work, n_left)
    for leaf in range(pairs.shape[0]):
        total, log_evidence[leaf], log_sum, fits = weigh(offsets, work, k, pairs[leaf])
        for row in range(edges[leaf], edges[leaf + 1]):
            value = log_predictive(offsets, work, k, pairs[leaf], total, scored, row, fits)
            out[row] = value - log_sum


@inner_kernel
def inside(table, work, node, j, which, branch):
    """Return the contribution of a node, or of a branch >= 0 of ``assign[which]``, as a leaf."""
    own = work.dependence
    for column in range(table.n_levels.shape[0]):
        block = work.words[branch] if branch >= 0 and column == j else work.box[node, column]
        own.n_left[column] = densities.block_size(table.nominal[column], block)
    k = list_free(own, own.n_left)
    own.pairs[:] = 0.0
    total = 0.0
    for i in range(work.nodes[node, at.START], work.nodes[node, at.END]):
        row = work.rows[i]
        if branch < 0 or work.assign[which, table.row_codes[row, j]] == branch:
            total += add_row(table, own, k, row, own.pairs)
    value = weigh(table.offsets, own, k, own.pairs)[1]
    for column in range(table.n_levels.shape[0]):
        if own.n_left[column] == 1:
            block = work.words[branch] if branch >= 0 and column == j else work.box[node, column]
            value -= total * log(densities.block_width(table, column, block))
        else:
            for place in range(table.offsets[column], table.offsets[column + 1]):
                value -= own.pairs[place, place] * log(table.widths[place])
    return value


@inner_kernel
def inside_gain(table, work, node, j, b, which):
    """Return the contribution of the branches of such a split, minus that of the node."""
    densities.write_blocks(table, work, node, j, b, which)
    change = -inside(table, work, node, j, which, -1)
    for branch in range(b):
        change += inside(table, work, node, j, which, branch)
    return change


@inner_kernel
def list_free(work, n_left):
    """List the columns with two or more levels left, and return their number k."""
    k = 0
    for j in range(n_left.shape[0]):
        work.n_left[j] = n_left[j]
        if n_left[j] > 1:
            work.free[k] = j
            work.shares[k] = 1.0 / n_left[j]
            k += 1
    return k


@inner_kernel
def add_row(table, work, k, row, pairs):
    """Count a row's levels and pairs of levels, and return its weight."""
    weight = table.weights[row]
    for s in range(k):
        j = work.free[s]
        place = table.offsets[j] + table.row_codes[row, j]
        work.places[s] = place
        for t in range(s + 1):
            pairs[place, work.places[t]] += weight
    return weight


@inner_kernel
def weigh(offsets, work, k, pairs):
    """Write ln W from the weights of pairs, and scaled W if it fits into floats, else ln W again.

    Return the weight of all rows, their log marginal likelihood, the log of the sum over all trees
    by the written weights, and whether these are W.
    """
    total = 0.0
    if k > 0:
        for place in range(offsets[work.free[0]], offsets[work.free[0] + 1]):
            total += pairs[place, place]
    norm = lgamma(work.concentration) - lgamma(work.concentration + total)
    value, low, high = 0.0, np.inf, -np.inf
    for s in range(k):
        u = work.free[s]
        a, log_column = work.concentration * work.shares[s], norm
        log_gamma = lgamma(a)
        for place in range(offsets[u], offsets[u + 1]):
            if pairs[place, place] > 0.0:  # otherwise the terms cancel
                log_column += lgamma(pairs[place, place] + a) - log_gamma
        work.log_columns[s] = log_column
        value += log_column
        for t in range(s):
            v = work.free[t]
            b, log_pair = a * work.shares[t], norm
            log_gamma = lgamma(b)
            for place in range(offsets[u], offsets[u + 1]):
                if pairs[place, place] > 0.0:
                    for other in range(offsets[v], offsets[v + 1]):
                        if pairs[place, other] > 0.0:
                            log_pair += lgamma(pairs[place, other] + b) - log_gamma
            work.logs[s, t] = log_pair - log_column - work.log_columns[t]
            low, high = min(low, work.logs[s, t]), max(high, work.logs[s, t])
    fits = k < 2 or high - low <= _RANGE
    scale = low + (high - low) / 2 if k > 1 and fits else 0.0
    for s in range(k):
        for t in range(s):
            work.weights[s, t] = exp(work.logs[s, t] - scale) if fits else work.logs[s, t]
            work.graph[s, t] = work.weights[s, t]
    log_sum = eliminate(work.graph, k, fits)
    if k > 1:
        value += log_sum + (k - 1.0) * scale - (k - 2.0) * log(np.float64(k))
    return total, value, log_sum, fits


@inner_kernel
def log_predictive(offsets, work, k, pairs, total, scored, row, fits):
    """Return a row's log density plus the log sum over trees, from W if it fits, else ln W."""
    value, per_row = 0.0, 1.0 / (total + work.concentration)
    for s in range(k):
        place = offsets[work.free[s]] + scored[row, work.free[s]]
        imagined = work.concentration * work.shares[s]
        own = (pairs[place, place] + imagined) * per_row
        value += log(own)
        work.places[s] = place
        work.inverses[s] = 1.0 / own
        for t in range(s):
            both = (pairs[place, work.places[t]] + imagined * work.shares[t]) * per_row
            ratio = both * work.inverses[s] * work.inverses[t]
            if fits:
                work.graph[s, t] = work.weights[s, t] * ratio
            else:
                work.graph[s, t] = work.weights[s, t] + log(ratio)
    return value + eliminate(work.graph, k, fits)


@inner_kernel
def eliminate(graph, k, fits):
    """Return the log of the sum over all trees, from weights or their logs; overwrites them."""
    value = 0.0
    for last in range(k - 1, 0, -1):
        if fits:
            pivot = 0.0
            for s in range(last):
                pivot += graph[last, s]
            value += log(pivot)
            inverse = 1.0 / pivot
            for s in range(1, last):
                share = graph[last, s] * inverse
                for t in range(s):
                    graph[s, t] += share * graph[last, t]
        else:
            log_pivot = -np.inf
            for s in range(last):
                log_pivot = add_logs(log_pivot, graph[last, s])
            value += log_pivot
            for s in range(1, last):
                log_share = graph[last, s] - log_pivot
                for t in range(s):
                    graph[s, t] = add_logs(graph[s, t], log_share + graph[last, t])
    return value


@inner_kernel
def add_logs(one, other):
    """ln(exp(one) + exp(other)); one or both may be -inf."""
    low, high = min(one, other), max(one, other)
    return high + log1p(exp(low - high)) if low > high - _NEGLIGIBLE else high
