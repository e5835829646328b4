"""Density trees, grown greedily by squared error and pruned at their weakest links.

*Growth*, Ram and Gray (KDD 2011), section 3, is by greedy two-way splits. The density is ``n_t / (n
v_t)`` on a leaf of weight ``n_t`` and volume ``v_t``. Its integrated squared error, without a term
that does not depend on the tree, is estimated by the sum over leaves of ::

    R(t) = -(n_t / n)^2 / v_t

A split of ``t`` into ``l`` and ``r`` reduces it by ``R(t) - R(l) - R(r)``. If the left side has the
share ``p`` of the rows of ``t`` and the share ``q`` of its volume, this is ::

    -R(t) (p - q)^2 / (q (1 - q))

so a node has the split with the largest last factor; among ties, the first cut of the earliest
column.

Nominal columns are split into any two sets of levels. The gain is a convex function of the left
side's weight and width, so its maximum is at an extreme point of the possible sums over levels,
where one side has the densest levels. So levels are ordered by density, and only cuts of this order
are tried. This is exact, except that a minimum weight of leaves may exclude the best cut; another
set may then be better than the best remaining cut, but it is not searched for.

*Pruning*, section 3.2, is after Breiman et al. (1984), chapter 3. The pruned tree for a
complexity ``alpha >= 0`` is the subtree with the least ``sum over leaves of R(t) + alpha``. As
``alpha`` grows, nodes become leaves in the order of their links ::

    g(t) = (R(t) - sum of R over the leaves below t) / (number of leaves below t - 1)

and each pruned tree is a subtree of those for smaller ``alpha``. So one number for each node, the
``alpha`` from which on it is not split, determines all of them: `weakest_links`.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.watch import check_time
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.tree import LEAF, Tree, pack_block

_LEAST_GAIN = 1e-12  # gains below this are rounding errors
_TIE = 1e-9  # gains within this relative difference are equal up to rounding
_LEAST_LOG_VOLUME = -600.0  # relative to the domain; the error of a smaller leaf may overflow


@dataclass(frozen=True, slots=True)
class GrownTree:
    """A tree, and the values of its nodes that pruning needs."""

    tree: Tree
    counts: Floats  # (n_weights, n_nodes): for each of the weights in `grow`
    log_volumes: Floats  # (n_nodes,) <= 0: log of each node's share of the domain's volume

    @property
    def errors(self) -> Floats:
        """``R(t)`` of every node as a leaf, by the first weights; the domain has volume 1."""
        shares = self.counts[0] / self.counts[0, 0]
        errors: Floats = -(shares**2) * np.exp(-self.log_volumes)
        return errors


def grow(
    schema: Schema,
    codes: NDArray[np.integer],
    weights: Floats,
    *,
    min_leaf_size: float,
    max_leaf_size: float,
) -> GrownTree:
    """Grow a tree until no leaf is both too large and worth a split.

    codes (n_columns, n_rows) int; weights (n_weights, n_rows) float64 >= 0: the first ones
    determine the splits, and are not all 0; the others are only summed at the nodes. A leaf has at
    least the weight `min_leaf_size` >= 0, and a node of at most `max_leaf_size` >= 0 is not split.
    OutOfTime between two nodes.
    """
    widths = [column.widths for column in schema.columns]
    is_nominal = [column.kind == "nominal" for column in schema.columns]
    full = [np.arange(column.n_levels) for column in schema.columns]
    feature: list[int] = []
    parent: list[int] = []
    block: list[int] = []
    counts: list[Floats] = []
    log_volumes: list[float] = []
    stack = [_Open(-1, 0, 0.0, full, np.arange(codes.shape[1]))]
    while stack:
        node = stack.pop()
        index = len(feature)
        node_counts = weights[:, node.rows].sum(axis=1)
        parent.append(node.parent)
        block.append(node.block)
        counts.append(node_counts)
        log_volumes.append(node.log_volume)
        split = None
        if node_counts[0] > max_leaf_size and node.log_volume > _LEAST_LOG_VOLUME:
            check_time()
            split = _best_split(node, codes, weights[0], widths, is_nominal, min_leaf_size)
        if split is None:
            feature.append(LEAF)
            continue
        j, sides = split
        feature.append(j)
        width = widths[j][node.box[j]].sum()
        for side in reversed(sides):  # the first one goes to the stack last
            box = list(node.box)
            box[j] = side
            log_share = float(np.log(widths[j][side].sum() / width))
            word = pack_block(is_nominal[j], side.tolist())
            inside = node.rows[np.isin(codes[j, node.rows], side)]
            stack.append(_Open(index, word, node.log_volume + log_share, box, inside))
    tree = Tree.from_nodes(feature, parent, block)
    return GrownTree(tree, np.array(counts).T, np.array(log_volumes))


class _Open(NamedTuple):
    """A node that may still be split: its parent, its levels of each column, and its rows."""

    parent: int
    block: int
    log_volume: float
    box: Sequence[NDArray[np.intp]]
    rows: NDArray[np.intp]


def _best_split(
    node: _Open,
    codes: NDArray[np.integer],
    weights: Floats,
    widths: Sequence[Floats],
    is_nominal: Sequence[bool],
    min_leaf_size: float,
) -> tuple[int, list[NDArray[np.intp]]] | None:
    """Return column and sides of the best split, the lowest level's side first, or None."""
    best_gain, best = _LEAST_GAIN, None
    for j, levels in enumerate(node.box):
        if levels.size == 1:
            continue
        by_level = np.bincount(codes[j, node.rows], weights[node.rows], widths[j].size)[levels]
        width = widths[j][levels]
        order = np.arange(levels.size)
        if is_nominal[j]:
            order = np.argsort(-by_level / width, kind="stable")
        left = np.cumsum(by_level[order])
        p = left[:-1] / left[-1]
        cut_widths = np.cumsum(width[order])
        q = cut_widths[:-1] / cut_widths[-1]
        gains = (p - q) ** 2 / (q * (1 - q))
        is_large = (left[:-1] >= min_leaf_size) & (left[-1] - left[:-1] >= min_leaf_size)
        gains[~is_large] = -np.inf
        largest = float(gains.max())
        if largest > best_gain * (1 + _TIE):
            best_gain = largest
            cut = int(np.argmax(gains >= largest * (1 - _TIE)))
            sides = [levels[order[: cut + 1]], levels[order[cut + 1 :]]]
            best = j, sorted(sides, key=min)
    return best


def weakest_links(tree: Tree, errors: Floats) -> Floats:
    """Return the complexity from which on each node is a leaf or gone, (n_nodes,) float64 >= 0.

    errors (n_nodes,) float64: ``R(t)``, at every node at least the sum of its children's.
    """
    links = np.full(tree.n_nodes, np.inf)
    links[tree.leaves] = 0.0
    below = tree.summed(errors[tree.leaves])
    n_leaves = tree.summed(np.ones(tree.n_leaves))
    end = np.arange(1, tree.n_nodes + 1)  # of each node's subtree, which is contiguous
    for node in range(tree.n_nodes - 1, 0, -1):
        end[tree.parent[node]] = max(end[tree.parent[node]], end[node])

    def link(node: int) -> float:
        return float((errors[node] - below[node]) / (n_leaves[node] - 1))

    heap = [(link(int(node)), int(node)) for node in np.flatnonzero(tree.feature != LEAF)]
    heapq.heapify(heap)
    complexity = 0.0
    while heap:
        known, node = heapq.heappop(heap)
        if links[node] < np.inf:
            continue  # removed with a node above
        if link(node) > known:  # links grow when weaker ones below are removed
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
    """Return the pruned tree for a complexity >= 0, and its nodes' indices in `tree`."""
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
    """Return sums of `values` over the leaves of each pruned tree, (n,), by `weakest_links`."""
    # A node is a leaf from its own link on, until its parent's.
    ends = np.append(np.inf, links[tree.parent[1:]])
    return _sums_up_to(complexities, links, values) - _sums_up_to(complexities, ends, values)


def _sums_up_to(limits: Floats, places: Floats, values: Floats) -> Floats:
    """Return, for each limit, the sum of the values with a place up to it."""
    order = np.argsort(places, kind="stable")
    sums = np.append(0.0, np.cumsum(values[order]))
    return sums[np.searchsorted(places[order], limits, side="right")]
