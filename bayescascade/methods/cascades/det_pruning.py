"""Weakest-link pruning of a density estimation tree, and sums over the leaves of every pruned tree.

Ram and Gray (2011), section 3.2, after Breiman et al. (1984), chapter 3. The pruned tree for a
complexity ``alpha >= 0`` is the subtree with the least ``sum over leaves of R(t) + alpha``. As
``alpha`` grows, nodes become leaves in the order of their links ::

    g(t) = (R(t) - sum of R over the leaves below t) / (number of leaves below t - 1)

and each pruned tree is a subtree of those for smaller ``alpha``. So one number a node, the
``alpha`` from which on it is no longer split, tells all of them: `weakest_links`.
"""

import heapq

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.cascades.tree import LEAF, Tree

__all__ = ["leaf_totals", "prune", "weakest_links"]

Floats = NDArray[np.float64]


def weakest_links(tree: Tree, errors: Floats) -> Floats:
    """Return the complexity from which on each node is a leaf or gone, (n_nodes,) float64 >= 0.

    Parameters
    ----------
    tree : Tree
    errors : (n_nodes,) float64
        ``R(t)`` of every node; that of a node is at least the sum of its children's.

    Returns
    -------
    (n_nodes,) float64 >= 0
        0 at leaves, and nowhere more than at the parent.
    """
    links = np.full(tree.n_nodes, np.inf)
    links[tree.leaves] = 0.0
    below = np.where(tree.feature == LEAF, errors, 0.0)
    n_leaves = (tree.feature == LEAF).astype(np.int64)
    end = np.arange(1, tree.n_nodes + 1)  # of each node's subtree, which stands in one piece
    for node in range(tree.n_nodes - 1, 0, -1):
        above = tree.parent[node]
        below[above] += below[node]
        n_leaves[above] += n_leaves[node]
        end[above] = max(end[above], end[node])

    def link(node: int) -> float:
        return float((errors[node] - below[node]) / (n_leaves[node] - 1))

    heap = [(link(int(node)), int(node)) for node in np.flatnonzero(tree.feature != LEAF)]
    heapq.heapify(heap)
    complexity = 0.0
    while heap:
        known, node = heapq.heappop(heap)
        if links[node] < np.inf:
            continue  # gone with a node above
        if link(node) > known:  # a link grows as weaker ones below it go
            heapq.heappush(heap, (link(node), node))
            continue
        complexity = max(complexity, known)
        subtree = links[node : end[node]]
        subtree[subtree == np.inf] = complexity
        gained, lost = errors[node] - below[node], n_leaves[node] - 1
        above = node
        while above >= 0:
            below[above] += gained
            n_leaves[above] -= lost
            above = int(tree.parent[above])
    return links


def prune(tree: Tree, links: Floats, complexity: float) -> tuple[Tree, NDArray[np.intp]]:
    """Return the pruned tree for a complexity >= 0, and which nodes of `tree` its nodes are."""
    is_kept = np.ones(tree.n_nodes, np.bool_)
    is_kept[1:] = links[tree.parent[1:]] > complexity
    kept = np.flatnonzero(is_kept)
    position = np.cumsum(is_kept) - 1
    feature = np.where(links[kept] > complexity, tree.feature[kept], LEAF)
    parent = tree.parent[kept]
    parent[1:] = position[parent[1:]]
    pruned = Tree(feature.astype(np.int32), parent.astype(np.int32), tree.block[kept])
    return pruned, kept


def leaf_totals(tree: Tree, links: Floats, values: Floats, complexities: Floats) -> Floats:
    """Return the sum of `values` over the leaves of the pruned tree for each complexity.

    Parameters
    ----------
    tree : Tree
    links : (n_nodes,) float64
        By `weakest_links`.
    values : (n_nodes,) float64
    complexities : (n,) float64 >= 0

    Returns
    -------
    (n,) float64
    """
    # A node is a leaf from its own link on, until its parent's.
    ends = np.append(np.inf, links[tree.parent[1:]])
    return _sums_up_to(complexities, links, values) - _sums_up_to(complexities, ends, values)


def _sums_up_to(limits: Floats, places: Floats, values: Floats) -> Floats:
    """Return the sum of the values whose place is at most each limit."""
    order = np.argsort(places, kind="stable")
    sums = np.append(0.0, np.cumsum(values[order]))
    chosen: Floats = sums[np.searchsorted(places[order], limits, side="right")]
    return chosen
