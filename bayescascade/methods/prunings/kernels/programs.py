"""Which splits a pruning program has, and what each is the first to ask for (numba, nothing else).

Trees are those of `methods.forests.forest`: the nodes of all trees in preorder, so that a
subtree is a range of nodes, and its splits are a range of splits.
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import kernel

__all__ = ["find_ends", "find_first_items", "mark_uses"]


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
