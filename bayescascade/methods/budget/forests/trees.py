"""Binary trees that divide rows by thresholds, as flat arrays in preorder.

The left child of a split is the next node, so the columns of the splits and the positions of the
leaves determine the shape of the trees; `linked` derives the rest from them. A row goes left at a
split if its value, rounded to float32, is at most the threshold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.threads import for_ranges
from bayescascade.methods.budget.forests.kernels.routing import (
    TreeArrays,
    find_leaves,
    link_right,
    mark_columns,
)

LEAF = -1
"""The column of a leaf."""

_MOST_NODES = 2**31 - 1  # node numbers are int32


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees as arrays of nodes; subclasses add fields for each node.

    Parameters
    ----------
    tree_starts : (n_trees + 1,) int64
        The nodes of tree ``t`` are ``tree_starts[t]:tree_starts[t + 1]``, in preorder: the left
        child of a split is the next node.
    feature : (n_nodes,) int32
        Column of a split, -1 at leaves.
    threshold : (n_nodes,) float64
        A row goes left if its value, rounded to float32, is <= the threshold. Finite at splits, NaN
        at leaves.
    right : (n_nodes,) int32
        Index of the right child among the nodes of all trees, -1 at leaves.
    missing_left : (n_nodes,) bool
        Whether NaN goes left; False at leaves.
    """

    tree_starts: Integers
    feature: Codes
    threshold: Floats
    right: Codes
    missing_left: Flags

    # -- shape -------------------------------------------------------------------------------------

    @property
    def n_trees(self) -> int:
        """Number of trees, >= 1."""
        return len(self.tree_starts) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, leaves included."""
        return len(self.feature)

    @property
    def is_split(self) -> Flags:
        """Whether each node is a split, (n_nodes,) bool."""
        return self.feature >= 0

    @property
    def n_splits(self) -> int:
        """Number of splits of all trees."""
        return int(np.count_nonzero(self.feature >= 0))

    @property
    def roots(self) -> Integers:
        """First node of each tree, (n_trees,) int64."""
        return self.tree_starts[:-1]

    @property
    def parents(self) -> Codes:
        """Parent of each node, (n_nodes,) int32; -1 at roots. Parents precede children."""
        parents = np.full(self.n_nodes, -1, np.int32)
        splits = np.flatnonzero(self.feature >= 0).astype(np.int32)
        parents[splits + 1] = splits
        parents[self.right[splits]] = splits
        return parents

    @property
    def ends(self) -> Integers:
        """One past the last node of each node's subtree, (n_nodes,) int64."""
        last = np.where(self.is_split, self.right, np.arange(self.n_nodes))
        while self.is_split[last].any():  # twice as deep each time
            last = last[last]
        return last + 1

    def n_above(self, splits: Flags | None = None) -> Integers:
        """Return the number of splits (or of given nodes) above each node, (n_nodes,)."""
        splits = self.is_split if splits is None else splits
        change = np.bincount(np.flatnonzero(splits) + 1, minlength=self.n_nodes + 1)
        change -= np.bincount(self.ends[splits], minlength=self.n_nodes + 1)
        return change.cumsum()[:-1]

    @property
    def arrays(self) -> TreeArrays:
        """The trees as arrays for kernels."""
        return TreeArrays(*(getattr(self, name) for name in TreeArrays._fields))

    # -- rows --------------------------------------------------------------------------------------

    def apply(self, X: NDArray[np.float32]) -> Codes:
        """Return the leaf of each row in each tree, (n_rows, n_trees) int32.

        Parameters
        ----------
        X : (n_rows, n_columns) float32
            NaN is a missing value.
        """
        rows = self._rows(X)
        leaves = np.empty((rows.shape[0], self.n_trees), np.int32)
        trees = self.arrays
        self._send(lambda a, b: find_leaves(trees, rows[a:b], leaves[a:b]), rows)
        return leaves

    def features_used(self, X: NDArray[np.float32]) -> Flags:
        """Return the columns that any tree reads for each row, (n_rows, n_columns) bool."""
        rows = self._rows(X)
        used = np.zeros(rows.shape, np.bool_)
        trees = self.arrays
        self._send(lambda a, b: mark_columns(trees, rows[a:b], used[a:b]), rows)
        return used

    def _send(self, work: Callable[[int, int], object], rows: NDArray[np.float32]) -> None:
        """Call `work` for each range of rows, to route them through the trees."""
        for_ranges(work, len(rows), len(rows) * self.n_trees)

    def _rows(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows for kernels, checked, because kernels check no bounds."""
        rows = np.ascontiguousarray(X, np.float32)
        needed = int(self.feature.max()) + 1
        if rows.ndim != 2 or rows.shape[1] < needed:
            raise ParameterError(
                f"X must have at least {needed} columns, which the forest reads, "
                f"got shape {rows.shape}"
            )
        return rows

    def splits_to_dict(self) -> dict[str, list[Any]]:
        """Return the splits as plain JSON types; thresholds are those of splits only, in order."""
        is_split = self.is_split
        return {
            "feature": self.feature.tolist(),
            "threshold": self.threshold[is_split].tolist(),
            "missing_left": self.missing_left[is_split].tolist(),
        }


def linked(feature: Codes, threshold: Floats, missing_left: Flags) -> dict[str, NDArray[Any]]:
    """Return trees in preorder, one after the other; ParameterError if a split lacks a child."""
    n_nodes = feature.shape[0]
    if n_nodes > _MOST_NODES:
        raise ParameterError(f"a forest must have less than 2^31 nodes, got {n_nodes:,}")
    right, stack = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
    starts = np.empty(n_nodes + 1, np.int64)
    n_trees = link_right(np.ascontiguousarray(feature, np.int32), stack, right, starts)
    if n_trees < 1:
        raise ParameterError("each split of a forest must have two children, in preorder")
    is_split = feature >= 0
    return {
        "tree_starts": starts[: n_trees + 1].copy(),
        "feature": np.where(is_split, feature, LEAF).astype(np.int32),
        "threshold": np.where(is_split, threshold, np.nan),
        "right": right,
        "missing_left": is_split & missing_left,
    }


def splits_from_dict(record: Mapping[str, Any], n_columns: int) -> tuple[Codes, Floats, Flags]:
    """Return feature, threshold and missing_left from the result of `splits_to_dict`, checked."""
    feature = read_array(record, "feature", (None,), np.int64, least=LEAF, most=n_columns - 1)
    is_split = feature >= 0
    threshold = np.full(feature.shape, np.nan)
    missing_left = np.zeros(feature.shape, np.bool_)
    n_splits = int(np.count_nonzero(is_split))
    threshold[is_split] = read_array(record, "threshold", (n_splits,))
    missing_left[is_split] = read_array(record, "missing_left", (n_splits,), np.bool_)
    return feature.astype(np.int32), threshold, missing_left
