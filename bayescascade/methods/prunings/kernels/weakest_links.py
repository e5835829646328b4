"""At which price of a leaf each split of a forest goes (numba, nothing else)."""

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import kernel

__all__ = ["find_levels"]


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
