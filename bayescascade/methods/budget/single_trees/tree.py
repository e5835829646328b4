"""The state of a tree posterior: a tree with splits from a list of candidates.

A candidate is a column and one of its thresholds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers

LEAF = -1
"""The candidate number of a leaf."""


@dataclass(frozen=True, slots=True)
class BudgetTree:
    """A binary tree in preorder: each node is followed by its left and its right subtree.

    Equal trees compare equal and have the same hash, because each tree has only one form.

    Parameters
    ----------
    nodes : tuple of int
        The index of each split among the candidates, -1 at leaves.
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
        """The leaves, ascending."""
        return [node for node, candidate in enumerate(self.nodes) if candidate == LEAF]

    @property
    def splits(self) -> list[int]:
        """The splits, ascending."""
        return [node for node, candidate in enumerate(self.nodes) if candidate != LEAF]

    def ends(self) -> list[int]:
        """Return the end of each node's subtree: one past its last node.

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
        """Return the tree with a leaf split."""
        return BudgetTree((*self.nodes[:leaf], candidate, LEAF, LEAF, *self.nodes[leaf + 1 :]))

    @classmethod
    def from_list(cls, nodes: Sequence[Any], n_candidates: int) -> "BudgetTree":
        """Return the tree with these nodes, checked.

        Raises
        ------
        ValueError
            If they are not a tree in preorder over this number of candidates.
        """
        n_open = 1  # subtrees not yet read
        for place, node in enumerate(nodes):
            if type(node) is not int or not LEAF <= node < n_candidates:
                raise ValueError(f"nodes must be integers from -1 to {n_candidates - 1}")
            n_open += -1 if node == LEAF else 1
            if n_open == 0 and place < len(nodes) - 1:
                break
        if n_open != 0 or place < len(nodes) - 1:
            raise ValueError("nodes must be one tree in preorder")
        return cls(tuple(nodes))


@dataclass(frozen=True, slots=True, eq=False)
class SplitCandidates:
    """Candidates, ordered by column and threshold, and the position of rows among them.

    Those of column ``j`` are ``starts[j]`` to ``starts[j + 1] - 1``. A code is the number of the
    column's thresholds below a row's value: the row goes left at candidates from
    ``starts[j] + code`` on.
    """

    starts: Integers  # (n_columns + 1,)
    columns: Integers  # (n_candidates,), column of each
    thresholds: Floats  # (n_candidates,); rows of float32 value <= it go left
    codes: NDArray[np.uint16]  # (n_columns, n_rows)

    @classmethod
    def of(cls, X: NDArray[np.float32], n_thresholds: int) -> "SplitCandidates":
        """Return candidates halfway between values of each column, about evenly over the rows.

        X (n_rows, n_columns): finite, or NaN for missing cells, which go right. A column with
        missing cells has one more candidate, at which all other cells go left. n_thresholds >= 1:
        maximum number of thresholds of a column; a column with fewer distinct values has one
        between any two.
        """
        thresholds = [_thresholds(column, n_thresholds) for column in X.T]
        codes = [np.searchsorted(*pair) for pair in zip(thresholds, X.T, strict=True)]
        per_column = np.array([len(values) for values in thresholds])
        return cls(
            starts=np.concatenate([[0], np.cumsum(per_column)]),
            columns=np.repeat(np.arange(per_column.size), per_column),
            thresholds=np.concatenate(thresholds),
            codes=np.array(codes, np.uint16),
        )

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return int(self.thresholds.size)

    @property
    def open_columns(self) -> Integers:
        """Columns with a threshold, ascending."""
        return np.flatnonzero(np.diff(self.starts))

    def log_probabilities(self) -> Floats:
        """Return the log probability of each candidate, nats: by column, then threshold."""
        per_column = np.diff(self.starts)
        shares: Floats = -np.log(self.open_columns.size * per_column[self.columns])
        return shares

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a column, then one of its thresholds."""
        column = self.open_columns[rng.integers(self.open_columns.size)]
        return int(rng.integers(self.starts[column], self.starts[column + 1]))


def _thresholds(column: NDArray[np.float32], n_thresholds: int) -> Floats:
    present = column[~np.isnan(column)].astype(np.float64)
    values, counts = np.unique(present, return_counts=True)
    chosen: Floats = (values[:-1] + values[1:]) / 2
    if chosen.size > n_thresholds:
        below = np.cumsum(counts)[:-1]
        wanted = np.arange(1, n_thresholds + 1) * present.size / (n_thresholds + 1)
        places = np.minimum(np.searchsorted(below, wanted), chosen.size - 1)
        chosen = chosen[np.unique(places)]
    if 0 < present.size < column.size:
        chosen = np.append(chosen, np.finfo(np.float32).max)
    return chosen
