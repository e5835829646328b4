"""What the splits of a forest ask for, and are worth (numba, nothing else).

Trees are those of `methods.forests.forest`: the nodes of all trees in preorder, so that a
subtree is a range of nodes, and its splits are a range of splits.
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import kernel

__all__ = ["find_ends", "find_first_items", "find_levels", "mark_uses"]


@kernel
def find_ends(right: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
    """Write the node after the last one of each node's subtree.

    `right` (n_nodes,) int32: the right child, -1 at leaves; `ends` (n_nodes,) int64 is written.
    """
    for node in range(right.shape[0] - 1, -1, -1):
        ends[node] = node + 1 if right[node] < 0 else ends[right[node]]


@kernel
def find_first_items(
    parent: NDArray[np.int32],
    column: NDArray[np.int32],
    item_starts: NDArray[np.int64],
    items: NDArray[np.int64],
    slot_starts: NDArray[np.int64],
    is_first: NDArray[np.bool_],
) -> None:
    """Write for each item that a split asks for whether no split above it does.

    `parent` (n_splits,) int32, -1 at roots; `column` (n_splits,) int32 that it reads; the items of
    a column are items[item_starts[column]:item_starts[column + 1]]; `slot_starts` (n_splits + 1,)
    int64 numbers a split's items among all, and `is_first` (slot_starts[-1],) bool is written.
    """
    for split in range(parent.shape[0]):
        first = item_starts[column[split]]
        for place in range(first, item_starts[column[split] + 1]):
            is_new = True
            above = parent[split]
            while is_new and above >= 0:
                for other in range(item_starts[column[above]], item_starts[column[above] + 1]):
                    if items[other] == items[place]:
                        is_new = False
                above = parent[above]
            is_first[slot_starts[split] + place - first] = is_new


@kernel
def mark_uses(
    kept: NDArray[np.bool_],
    edge_starts: NDArray[np.int64],
    edge_use: NDArray[np.int32],
    used: NDArray[np.bool_],
) -> None:
    """Mark in `used`, (n_uses,) bool, what kept splits ask for; edges as in `PruningProgram`."""
    for split in range(kept.shape[0]):
        if kept[split]:
            for edge in range(edge_starts[split], edge_starts[split + 1]):
                used[edge_use[edge]] = True


@kernel
def find_levels(
    tree_starts: NDArray[np.int64],
    right: NDArray[np.int32],
    parents: NDArray[np.int32],
    ends: NDArray[np.int64],
    risk: NDArray[np.float64],
    branch_risk: NDArray[np.float64],
    n_leaves: NDArray[np.int64],
    alive: NDArray[np.int32],
    levels: NDArray[np.float64],
) -> None:
    """Prune each tree at its weakest link until it is a leaf, and write when each split goes.

    tree_starts (n_trees + 1,) int64; right, parents (n_nodes,) int32 and ends (n_nodes,) int64: the
    right child, -1 at leaves, the parent, and the end of the subtree of each node; risk (n_nodes,)
    float64: what each node adds as a leaf. Written: levels (n_nodes,) float64, 0 at leaves. Work
    spaces: branch_risk (n_nodes,) float64, n_leaves (n_nodes,) int64, alive (n_nodes,) int32.
    """
    for tree in range(tree_starts.shape[0] - 1):
        start, end = tree_starts[tree], tree_starts[tree + 1]
        n_alive = 0
        for node in range(end - 1, start - 1, -1):
            branch_risk[node] = risk[node]
            n_leaves[node] = 1
            levels[node] = 0.0
            if right[node] >= 0:
                left = node + 1
                branch_risk[node] = branch_risk[left] + branch_risk[right[node]]
                n_leaves[node] = n_leaves[left] + n_leaves[right[node]]
                alive[n_alive] = node
                n_alive += 1
        level = 0.0
        while n_alive > 0:
            weakest, least = alive[0], np.inf
            for place in range(n_alive):
                node = alive[place]
                link = (risk[node] - branch_risk[node]) / (n_leaves[node] - 1)
                if link < least or (link == least and node < weakest):
                    weakest, least = node, link
            level = max(level, least)
            risk_change = risk[weakest] - branch_risk[weakest]
            leaf_change = 1 - n_leaves[weakest]
            node = weakest
            while node >= 0:
                branch_risk[node] += risk_change
                n_leaves[node] += leaf_change
                node = parents[node]
            n_left = 0
            for place in range(n_alive):
                node = alive[place]
                if weakest <= node < ends[weakest]:
                    levels[node] = level
                else:
                    alive[n_left] = node
                    n_left += 1
            n_alive = n_left
