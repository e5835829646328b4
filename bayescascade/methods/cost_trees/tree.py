"""The state of a tree posterior: a tree whose splits are chosen from a list of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["LEAF", "BudgetTree"]

LEAF = -1
"""What stands in the place of a candidate at a leaf."""


@dataclass(frozen=True, slots=True)
class BudgetTree:
    """A binary tree in preorder: every node is followed by its left, then its right subtree.

    Equal trees are equal, and hash alike: there is one way to write each.

    Parameters
    ----------
    nodes : tuple of int
        The candidate that each split is, -1 at leaves.
    """

    nodes: tuple[int, ...] = (LEAF,)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.nodes) // 2

    @property
    def n_leaves(self) -> int:
        """Number of leaves, >= 1."""
        return len(self.nodes) // 2 + 1

    @property
    def leaves(self) -> list[int]:
        """Nodes that are leaves, ascending."""
        return [node for node, candidate in enumerate(self.nodes) if candidate == LEAF]

    @property
    def splits(self) -> list[int]:
        """Nodes that are splits, ascending."""
        return [node for node, candidate in enumerate(self.nodes) if candidate != LEAF]

    @property
    def twigs(self) -> list[int]:
        """Splits over two leaves, ascending."""
        return [node for node in self.splits if self.nodes[node + 1 : node + 3] == (LEAF, LEAF)]

    def ends(self) -> list[int]:
        """Return where each node's subtree ends: one past its last node.

        The right child of a split ``node`` is ``ends[node + 1]``.
        """
        ends = [0] * len(self.nodes)
        for node in reversed(range(len(self.nodes))):
            is_leaf = self.nodes[node] == LEAF
            ends[node] = node + 1 if is_leaf else ends[ends[node + 1]]
        return ends

    def depth(self) -> int:
        """Return the number of splits on the longest path."""
        ends = self.ends()
        depths = [0] * len(self.nodes)
        for node in self.splits:
            depths[node + 1] = depths[ends[node + 1]] = depths[node] + 1
        return max(depths)

    def grown(self, leaf: int, candidate: int) -> "BudgetTree":
        """Return the tree in which a leaf is split."""
        return BudgetTree((*self.nodes[:leaf], candidate, LEAF, LEAF, *self.nodes[leaf + 1 :]))

    def pruned(self, twig: int) -> "BudgetTree":
        """Return the tree in which a split over two leaves is a leaf."""
        return BudgetTree((*self.nodes[:twig], LEAF, *self.nodes[twig + 3 :]))

    def changed(self, split: int, candidate: int) -> "BudgetTree":
        """Return the tree in which a split is another one, over the same subtrees."""
        return BudgetTree((*self.nodes[:split], candidate, *self.nodes[split + 1 :]))

    @classmethod
    def from_list(cls, nodes: Sequence[Any], n_candidates: int) -> "BudgetTree":
        """Return the tree of these nodes, which may be anything.

        Raises
        ------
        ValueError
            If they are no tree in preorder over so many candidates.
        """
        n_open = 1  # subtrees still to come
        for place, node in enumerate(nodes):
            if type(node) is not int or not LEAF <= node < n_candidates:
                raise ValueError(f"nodes must be integers from -1 to {n_candidates - 1}")
            n_open += -1 if node == LEAF else 1
            if n_open == 0 and place < len(nodes) - 1:
                break
        if n_open != 0 or place < len(nodes) - 1:
            raise ValueError("nodes must be one tree in preorder")
        return cls(tuple(nodes))
