"""Random rows of leaves with dependent columns; `trees.dependence` has the formulas."""

from math import log

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.density.trees.kernels.layout import Array


@kernel
def draw_rows(
    rng: np.random.Generator,
    starts: Array,
    columns: Array,
    log_shares: Array,
    kept: Array,
    levels: Array,
    pairs: Array,
    work: Array,
    highest: Array,
    out: Array,
) -> None:
    """Draw for each row a tree of the k columns, and the row given the tree, into out (n, p) int32.

    starts (p + 1,) int64: each column's first level; columns (k,) int64: those that are drawn;
    log_shares (k, k) and kept (k (k - 1) (2k - 1) / 6,) float64: for each vertex, the rows before
    it, of what `dependence` keeps of the elimination; levels (L,) and pairs (L, L): their weights;
    work (5, k) int64 and highest (k,): space.
    """
    k = columns.shape[0]
    for row in range(out.shape[0]):
        draw_tree(rng, k, log_shares, kept, work, highest)
        _draw_level(rng, starts, columns[0], levels, out[row])
        is_drawn = work[4]
        is_drawn[:] = 0
        is_drawn[0] = 1
        n_drawn = 1
        while n_drawn < k:
            for edge in range(k - 1):
                u, v = work[0, edge], work[1, edge]
                if is_drawn[u] == is_drawn[v]:
                    continue
                if is_drawn[u] == 1:
                    u, v = v, u
                above = starts[columns[v]] + out[row, columns[v]]
                _draw_level(rng, starts, columns[u], pairs[above], out[row])
                is_drawn[u] = 1
                n_drawn += 1


@inner_kernel
def draw_tree(rng, k, log_shares, kept, work, highest):
    """Draw the k - 1 edges of a tree in proportion to its weight, into ``work[:2]``.

    The vertices are added one by one. Each edge is kept, or is a path through the new vertex. Then
    each part of what remains is joined to the new vertex by one edge.
    """
    one, other, part, chosen = work[0], work[1], work[2], work[3]
    n_edges, first = 0, 0
    for last in range(1, k):
        for v in range(last):
            part[v] = v
            chosen[v] = -1
        n_kept = 0
        for edge in range(n_edges):
            u, v = one[edge], other[edge]
            if rng.random() < kept[first + u * last + v]:
                one[n_kept], other[n_kept] = u, v
                part[_root(part, u)] = _root(part, v)
                n_kept += 1
        _join(rng, last, log_shares[last], part, chosen, highest)
        n_edges = n_kept
        for v in range(last):
            if part[v] == v:
                one[n_edges], other[n_edges] = chosen[v], last
                n_edges += 1
        first += last * last


@inner_kernel
def _join(rng, last, log_shares, part, chosen, highest):
    """Choose a vertex of each part by its share; the largest of Gumbel's variables has this law."""
    for v in range(last):
        root = _root(part, v)
        value = log_shares[v] - log(-log(1.0 - rng.random()))
        if chosen[root] < 0 or value > highest[root]:
            chosen[root], highest[root] = v, value


@inner_kernel
def _root(part, v):
    """Return the vertex that stands for the part of a vertex."""
    while part[v] != v:
        v = part[v]
    return v


@inner_kernel
def _draw_level(rng, starts, column, weights, out):
    """Draw the level of a column in proportion to the weights of all levels."""
    first, end = starts[column], starts[column + 1]
    total = 0.0
    for level in range(first, end):
        total += weights[level]
    left = rng.random() * total
    drawn = first
    for level in range(first, end):
        if weights[level] > 0.0:  # rounding may leave more than the last one's
            drawn = level
            left -= weights[level]
            if left < 0.0:
                break
    out[column] = drawn - first
