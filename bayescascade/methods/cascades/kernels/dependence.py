"""Leaves whose columns depend on each other, as `methods.cascades.dependence` says.

Of a box, kernels read its rows and how many levels it has left of each column: cells that are not
left hold no rows, and an empty cell's gamma functions cancel. Eliminating k columns takes
``k^3 / 6`` multiplications where the weights differ by less than floats can hold, and as many
sums of logs where they do not. The widths of levels are left to the caller.
"""

from math import exp, lgamma, log, log1p

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.cascades.kernels import layout as at
from bayescascade.methods.cascades.kernels.densities import (
    block_size,
    block_width,
    write_blocks,
)
from bayescascade.methods.cascades.kernels.layout import Array, DependenceWork, TableArrays

__all__ = ["add_densities", "inside", "inside_gain", "weigh_boxes"]

_RANGE = 600.0  # of log weights whose ratios, too, floats hold, nats
_NEGLIGIBLE = 38.0  # nats by which a summand may be smaller and still change the sum


@kernel
def weigh_boxes(
    table: TableArrays, work: DependenceWork, rows: Array, edges: Array, n_left: Array, out: Array
) -> None:
    """Write the log marginal likelihood of each box, nats, but for the widths; out (n,) float64.

    Its rows are ``rows[edges[i]:edges[i + 1]]``; n_left (p,) int64 >= 1 are the levels left of each
    column, the same in all boxes.
    """
    k = list_free(work, n_left)
    for box in range(edges.shape[0] - 1):
        total = count_pairs(table, work, k, rows, edges[box], edges[box + 1])
        value = weigh_pairs(table, work, k, total, n_left)
        if k > 1:
            value += log_sum_of_trees(work, k) - (k - 2.0) * log(np.float64(k))
        out[box] = value


@kernel
def add_densities(
    table: TableArrays,
    work: DependenceWork,
    rows: Array,
    edges: Array,
    n_left: Array,
    log_mass: Array,
    scored: Array,
    scored_rows: Array,
    scored_edges: Array,
    log_least: float,
    out: Array,
) -> None:
    """Add to rows' log densities what boxes of given mass contribute, but for the widths.

    The rows scored in a box are ``scored_rows[scored_edges[i]:scored_edges[i + 1]]``, of codes
    scored (n, p); log_mass (n_boxes,) float64. A box that cannot raise a density by ``log_least``
    of it is passed over. out (n,) float64, nats.
    """
    k = list_free(work, n_left)
    for box in range(edges.shape[0] - 1):
        least, first, end = log_mass[box] - log_least, scored_edges[box], scored_edges[box + 1]
        matters = False
        for i in range(first, end):
            matters = matters or out[scored_rows[i]] < least
        if not matters:
            continue
        total = count_pairs(table, work, k, rows, edges[box], edges[box + 1])
        weigh_pairs(table, work, k, total, n_left)
        scale, fits = scale_weights(work, k)
        before = log_sum_of_trees(work, k) - (k - 1) * scale
        for i in range(first, end):
            row = scored_rows[i]
            if out[row] < least:
                value = log_predictive(table, work, k, total, scored, row, fits) - before
                out[row] = add_logs(out[row], log_mass[box] + value)


@inner_kernel
def space_of(table, model, work):
    """Return a `DependenceWork` of parts of the work space, which holds fewer arrays so."""
    p = table.n_levels.shape[0]
    n_levels = table.offsets[p]
    codes, reals = work.dependence_codes, work.dependence_reals
    graphs = n_levels + 3
    return DependenceWork(
        model.leaf_alpha,
        model.log_rise,
        codes[0],
        codes[1],
        reals[n_levels],
        codes[2],
        reals[n_levels + 1],
        reals[:n_levels],
        reals[n_levels + 2],
        reals[graphs : graphs + p],
        reals[graphs + p : graphs + 2 * p],
        reals[graphs + 2 * p : graphs + 3 * p],
    )


@inner_kernel
def inside(table, model, work, node, j, which, branch):
    """Return what the node contributes as the dependent leaf that it is or would be.

    Or what one branch of a split of column `j` does, of ``assign[which]`` and `words`; branch is -1
    for the node itself.
    """
    own = space_of(table, model, work)
    for column in range(table.n_levels.shape[0]):
        block = work.words[branch] if branch >= 0 and column == j else work.box[node, column]
        own.n_left[column] = block_size(table.nominal[column], block)
    k = list_free(own, own.n_left)
    own.pairs[:] = 0.0
    total = 0.0
    for i in range(work.nodes[node, at.START], work.nodes[node, at.END]):
        row = work.rows[i]
        if branch < 0 or work.assign[which, table.row_codes[row, j]] == branch:
            total += add_row(table, own, k, row)
    value = weigh_pairs(table, own, k, total, own.n_left)
    if k > 1:
        value += log_sum_of_trees(own, k) - (k - 2.0) * log(np.float64(k))
    for column in range(table.n_levels.shape[0]):
        if own.n_left[column] == 1:
            block = work.words[branch] if branch >= 0 and column == j else work.box[node, column]
            value -= total * log(block_width(table, column, block))
        else:
            for place in range(table.offsets[column], table.offsets[column + 1]):
                value -= own.pairs[place, place] * log(table.widths[place])
    return value


@inner_kernel
def inside_gain(table, model, work, node, j, b, which):
    """Return how much more than the node its branches contribute, if it is split so."""
    write_blocks(table, work, node, j, b, which)
    change = -inside(table, model, work, node, j, which, -1)
    for branch in range(b):
        change += inside(table, model, work, node, j, which, branch)
    return change


@inner_kernel
def list_free(work, n_left):
    """List the columns with two or more levels left, and return their number k."""
    k = 0
    for j in range(n_left.shape[0]):
        if n_left[j] > 1:
            work.free[k] = j
            work.shares[k] = 1.0 / n_left[j]
            k += 1
    return k


@inner_kernel
def count_pairs(table, work, k, rows, start, end):
    """Count levels and pairs of levels among rows[start:end]; return the rows' weight."""
    work.pairs[:] = 0.0
    total = 0.0
    for i in range(start, end):
        total += add_row(table, work, k, rows[i])
    return total


@inner_kernel
def add_row(table, work, k, row):
    """Count a row's levels and pairs of levels, and return its weight."""
    weight = table.weights[row]
    for s in range(k):
        j = work.free[s]
        place = table.offsets[j] + table.row_codes[row, j]
        work.places[s] = place
        for t in range(s + 1):
            work.pairs[place, work.places[t]] += weight
    return weight


@inner_kernel
def rise(work, product, n):
    """lnG(n + a) - lnG(a) for ``a = concentration / product``, from the table where it has it."""
    index = np.int64(n)
    if product < work.log_rise.shape[0] and index < work.log_rise.shape[1]:
        return work.log_rise[product, index]
    return lgamma(n + work.concentration / product) - lgamma(work.concentration / product)


@inner_kernel
def weigh_pairs(table, work, k, total, n_left):
    """Write ln W from the counts, and return the sum of ln M over the columns."""
    norm = lgamma(work.concentration) - lgamma(work.concentration + total)
    value = 0.0
    for s in range(k):
        u = work.free[s]
        log_column = norm
        for place in range(table.offsets[u], table.offsets[u + 1]):
            if work.pairs[place, place] > 0.0:  # else the terms cancel
                log_column += rise(work, n_left[u], work.pairs[place, place])
        work.log_columns[s] = log_column
        value += log_column
        for t in range(s):
            v = work.free[t]
            log_pair = norm
            for place in range(table.offsets[u], table.offsets[u + 1]):
                if work.pairs[place, place] > 0.0:
                    for other in range(table.offsets[v], table.offsets[v + 1]):
                        if work.pairs[place, other] > 0.0:
                            n = work.pairs[place, other]
                            log_pair += rise(work, n_left[u] * n_left[v], n)
            work.logs[s, t] = log_pair - log_column - work.log_columns[t]
    return value


@inner_kernel
def scale_weights(work, k):
    """Write W, scaled, where floats hold all of it; return the log scale, and whether they do."""
    low, high = np.inf, -np.inf
    for s in range(k):
        for t in range(s):
            low, high = min(low, work.logs[s, t]), max(high, work.logs[s, t])
    if k < 2:
        return 0.0, True
    if not high - low <= _RANGE:
        return 0.0, False
    middle = low + (high - low) / 2
    for s in range(k):
        for t in range(s):
            work.weights[s, t] = exp(work.logs[s, t] - middle)
    return middle, True


@inner_kernel
def log_sum_of_trees(work, k):
    """Return the log of the sum over all trees from ln W."""
    scale, fits = scale_weights(work, k)
    source = work.weights if fits else work.logs
    for s in range(k):
        for t in range(s):
            work.graph[s, t] = source[s, t]
    return (eliminate(work, k) if fits else eliminate_logs(work, k)) + max(k - 1, 0) * scale


@inner_kernel
def log_predictive(table, work, k, total, scored, row, fits):
    """Return a row's log density times the sum over all trees, from W if it fits, else ln W."""
    value, per_row = 0.0, 1.0 / (total + work.concentration)
    for s in range(k):
        u = work.free[s]
        place = table.offsets[u] + scored[row, u]
        imagined = work.concentration * work.shares[s]
        own = (work.pairs[place, place] + imagined) * per_row
        value += log(own)
        work.places[s] = place
        work.inverses[s] = 1.0 / own
        for t in range(s):
            both = (work.pairs[place, work.places[t]] + imagined * work.shares[t]) * per_row
            ratio = both * work.inverses[s] * work.inverses[t]
            if fits:
                work.graph[s, t] = work.weights[s, t] * ratio
            else:
                work.graph[s, t] = work.logs[s, t] + log(ratio)
    return value + (eliminate(work, k) if fits else eliminate_logs(work, k))


@inner_kernel
def eliminate(work, k):
    """Return the log of the sum over all trees of the graph's weights, and use the graph up."""
    graph = work.graph
    value = 0.0
    for last in range(k - 1, 0, -1):
        pivot = 0.0
        for s in range(last):
            pivot += graph[last, s]
        value += log(pivot)
        inverse = 1.0 / pivot
        for s in range(1, last):
            share = graph[last, s] * inverse
            for t in range(s):
                graph[s, t] += share * graph[last, t]
    return value


@inner_kernel
def eliminate_logs(work, k):
    """Return the same as `eliminate` where the graph holds logs of weights."""
    graph = work.graph
    value = 0.0
    for last in range(k - 1, 0, -1):
        log_pivot = -np.inf
        for s in range(last):
            log_pivot = add_logs(log_pivot, graph[last, s])
        value += log_pivot
        for s in range(1, last):
            share = graph[last, s] - log_pivot
            for t in range(s):
                graph[s, t] = add_logs(graph[s, t], share + graph[last, t])
    return value


@inner_kernel
def add_logs(one, other):
    """ln(exp(one) + exp(other)); one or both may be -inf."""
    low, high = min(one, other), max(one, other)
    return high + log1p(exp(low - high)) if low > high - _NEGLIGIBLE else high
