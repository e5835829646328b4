"""The state of budgeted forests: binary trees with class counts, as flat arrays in preorder.

The left child of a split is the node after it, so the columns of the splits and the places of the
leaves say everything about the trees' shape; `Forest.from_preorder` derives the rest from them. A
row goes left at a split if its value, rounded to float32, is at most the threshold.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import depth_first_order
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.threads import for_ranges
from bayescascade.methods.forests.kernels.routing import (
    BLOCK,
    TreeArrays,
    add_leaves,
    find_leaves,
    link_right,
    mark_columns,
)

LEAF = -1
"""What stands for the column of a node that splits none."""

SKLEARN_FORESTS = (RandomForestClassifier, ExtraTreesClassifier, DecisionTreeClassifier)
"""Estimators of scikit-learn whose trees can be read."""

_MOST_NODES = 2**31 - 1  # their numbers are int32

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees that divide rows by thresholds; made by `from_sklearn` or `from_preorder`.

    Parameters
    ----------
    tree_starts : (n_trees + 1,) int64
        The nodes of tree ``t`` are ``tree_starts[t]:tree_starts[t + 1]``, in preorder: the left
        child of a split is the next node.
    feature : (n_nodes,) int32
        Column of a split, -1 at leaves.
    threshold : (n_nodes,) float64
        A row goes left if its value as float32 is <= the threshold, a finite number; NaN at leaves.
    right : (n_nodes,) int32
        Right child, counted over all trees, -1 at leaves.
    missing_left : (n_nodes,) bool
        Whether NaN goes left; False at leaves.
    counts : (n_nodes, n_classes) float64 >= 0
        Weight of the training rows of each class that reached the node; of each node some.
    """

    tree_starts: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: Floats
    right: NDArray[np.int32]
    missing_left: Flags
    counts: Floats

    @classmethod
    def from_preorder(
        cls, feature: NDArray[np.int32], threshold: Floats, missing_left: Flags, counts: Floats
    ) -> "Forest":
        """Return the forest whose trees stand one after the other, each in preorder.

        Parameters
        ----------
        feature, threshold, missing_left, counts
            As the fields; at leaves, thresholds and `missing_left` may be anything.

        Raises
        ------
        ParameterError
            If a split lacks a child, or there is no node, or are 2^31 or more.
        """
        n_nodes = feature.shape[0]
        if n_nodes > _MOST_NODES:
            raise ParameterError(f"a forest must have less than 2^31 nodes, got {n_nodes:,}")
        right, stack = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
        starts = np.empty(n_nodes + 1, np.int64)
        n_trees = link_right(np.ascontiguousarray(feature, np.int32), stack, right, starts)
        if n_trees < 1:
            raise ParameterError("each split of a forest must have two children, in preorder")
        is_split = feature >= 0
        return cls(
            tree_starts=starts[: n_trees + 1].copy(),
            feature=np.where(is_split, feature, LEAF).astype(np.int32),
            threshold=np.where(is_split, threshold, np.nan),
            right=right,
            missing_left=is_split & missing_left,
            counts=np.ascontiguousarray(counts, np.float64),
        )

    @classmethod
    def from_sklearn(
        cls, estimator: RandomForestClassifier | ExtraTreesClassifier | DecisionTreeClassifier
    ) -> "Forest":
        """Return the trees of a fitted scikit-learn forest or tree of one output.

        Raises
        ------
        ParameterError
            If it is no such estimator, is not fitted, or predicts several outputs.
        """
        if not isinstance(estimator, SKLEARN_FORESTS):
            raise ParameterError(
                "forest must be a RandomForestClassifier, an ExtraTreesClassifier or a "
                f"DecisionTreeClassifier of scikit-learn, got {type(estimator).__name__}"
            )
        if not hasattr(estimator, "n_outputs_"):
            raise ParameterError(f"forest must be fitted, got an unfitted {estimator}")
        if estimator.n_outputs_ != 1:
            raise ParameterError(f"forest must predict one output, got {estimator.n_outputs_}")
        trees = getattr(estimator, "estimators_", [estimator])
        return cls.concatenate([_one_sklearn_tree(tree.tree_) for tree in trees])

    @classmethod
    def concatenate(cls, forests: Sequence["Forest"]) -> "Forest":
        """Return all trees of some forests, at least one, over the same columns and classes."""
        names = ("feature", "threshold", "missing_left", "counts")
        parts = ([getattr(forest, name) for forest in forests] for name in names)
        return cls.from_preorder(*map(np.concatenate, parts))

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
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[1])

    @property
    def is_split(self) -> Flags:
        """Whether each node is a split, (n_nodes,) bool."""
        return self.feature >= 0

    @property
    def n_splits(self) -> int:
        """Number of splits of all trees."""
        return int(np.count_nonzero(self.feature >= 0))

    @property
    def roots(self) -> NDArray[np.int64]:
        """The first node of each tree, (n_trees,) int64."""
        return self.tree_starts[:-1]

    @property
    def parents(self) -> NDArray[np.int32]:
        """The parent of each node, (n_nodes,) int32; -1 at roots. Parents precede children."""
        parents = np.full(self.n_nodes, -1, np.int32)
        splits = np.flatnonzero(self.feature >= 0).astype(np.int32)
        parents[splits + 1] = splits
        parents[self.right[splits]] = splits
        return parents

    @property
    def ends(self) -> NDArray[np.int64]:
        """One past the last node of each node's subtree, (n_nodes,) int64."""
        last = np.where(self.is_split, self.right, np.arange(self.n_nodes))
        while self.is_split[last].any():  # twice as far down each time
            last = last[last]
        return last + 1

    def n_above(self, splits: Flags | None = None) -> NDArray[np.int64]:
        """Return how many splits, or those of (n_nodes,) bool, are above each node, (n_nodes,)."""
        splits = self.is_split if splits is None else splits
        change = np.bincount(np.flatnonzero(splits) + 1, minlength=self.n_nodes + 1)
        change -= np.bincount(self.ends[splits], minlength=self.n_nodes + 1)
        return change.cumsum()[:-1]

    def errors(self, counts: Floats | None = None) -> Floats:
        """Return the weight at each node that is not of the node's label, (n_nodes,) float64.

        Parameters
        ----------
        counts : (n_nodes, n_classes) float64 >= 0, optional
            Weight of the rows of each class that come to each node; by default, of the training
            rows, of whose classes the label is the most frequent.
        """
        counts = self.counts if counts is None else counts
        label = self.counts.argmax(axis=1)
        errors: Floats = counts.sum(axis=1) - counts[np.arange(label.size), label]
        return errors

    @cached_property
    def probabilities(self) -> Floats:
        """Share of each class at each node, (n_nodes, n_classes) float64."""
        shares: Floats = self.counts / self.counts.sum(axis=1, keepdims=True)
        return shares

    def impurity_decreases(self) -> Floats:
        """Return by how much each split lessens the Gini impurity, (n_nodes,) float64 >= 0.

        It is weighted by the training rows that come to the split, and a share of what all splits
        of its tree do; 0 at leaves.
        """
        totals = self.counts.sum(axis=1)
        impurity = totals * (1.0 - (self.probabilities**2).sum(axis=1))
        splits, decreases = np.flatnonzero(self.is_split), np.zeros(self.n_nodes)
        below = impurity[splits + 1] + impurity[self.right[splits]]
        decreases[splits] = impurity[splits] - below
        of_tree = np.add.reduceat(decreases, self.roots)
        shares: Floats = decreases / np.repeat(
            np.where(of_tree > 0, of_tree, 1.0), np.diff(self.tree_starts)
        )
        return shares

    @property
    def arrays(self) -> TreeArrays:
        """What kernels that send rows down take."""
        return TreeArrays(*(getattr(self, name) for name in TreeArrays._fields))

    # -- rows --------------------------------------------------------------------------------------

    def apply(self, X: NDArray[np.float32]) -> NDArray[np.int32]:
        """Return the leaf that each row comes to in each tree, (n_rows, n_trees) int32.

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

    def predict_proba(self, X: NDArray[np.float32]) -> Floats:
        """Return the mean of the shares at each row's leaves, (n_rows, n_classes) float64."""
        rows = self._rows(X)
        sums = np.zeros((rows.shape[0], self.n_classes))
        trees = self.arrays

        def add(start: int, stop: int) -> None:
            leaves = np.empty(BLOCK, np.int64)
            add_leaves(trees, rows[start:stop], self.probabilities, leaves, sums[start:stop])

        self._send(add, rows)
        sums /= self.n_trees
        return sums

    def features_used(self, X: NDArray[np.float32]) -> Flags:
        """Return the columns that any tree reads for each row, (n_rows, n_columns) bool."""
        rows = self._rows(X)
        used = np.zeros(rows.shape, np.bool_)
        trees = self.arrays
        self._send(lambda a, b: mark_columns(trees, rows[a:b], used[a:b]), rows)
        return used

    def _send(self, work: Callable[[int, int], object], rows: NDArray[np.float32]) -> None:
        """Let work send the rows of each range down the trees."""
        for_ranges(work, len(rows), len(rows) * self.n_trees)

    def _rows(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows as kernels read them, which look at no bounds."""
        rows = np.ascontiguousarray(X, np.float32)
        needed = int(self.feature.max()) + 1
        if rows.ndim != 2 or rows.shape[1] < needed:
            raise ParameterError(
                f"X must have at least {needed} columns, which the forest reads, "
                f"got shape {rows.shape}"
            )
        return rows

    # -- pruning and files -------------------------------------------------------------------------

    def pruned(self, is_split: Flags) -> "Forest":
        """Return the forest in which only some splits are left.

        Parameters
        ----------
        is_split : (n_nodes,) bool
            The splits to keep, of which those below a node that is none are gone, too. What it says
            of leaves is ignored.
        """
        feature = np.where(is_split, self.feature, LEAF)
        return replace(self, feature=feature).part(self.n_above(self.is_split & ~is_split) == 0)

    def part(self, nodes: slice | Flags) -> "Forest":
        """Return the forest of some nodes, which must be whole trees."""
        return Forest.from_preorder(
            self.feature[nodes], self.threshold[nodes], self.missing_left[nodes], self.counts[nodes]
        )

    def without_bare_roots(self) -> "Forest":
        """Return the trees that split rows, or all trees if none does.

        A tree cut at its root says the same of every row. Averaged with the others, it would only
        draw them towards the commonest class, until no row is predicted to be of another.
        """
        splits = self.is_split[self.roots]
        if splits.all() or not splits.any():
            return self
        return self.part(np.repeat(splits, np.diff(self.tree_starts)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the forest as plain JSON types; thresholds are those of the splits, in order."""
        is_split = self.is_split
        return {
            "feature": self.feature.tolist(),
            "threshold": self.threshold[is_split].tolist(),
            "missing_left": self.missing_left[is_split].tolist(),
            "counts": self.counts.tolist(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], n_columns: int, n_classes: int) -> "Forest":
        """Return the forest from what `to_dict` returned, over this many columns and classes.

        Raises
        ------
        ModelFileError
            If a field is missing, of a wrong type or range, or does not fit the others.
        """
        feature = _integers(record, "feature", LEAF, n_columns - 1)
        is_split = feature >= 0
        threshold = np.full(feature.shape, np.nan)
        missing_left = np.zeros(feature.shape, np.bool_)
        n_splits = int(np.count_nonzero(is_split))
        threshold[is_split] = _numbers(record, "threshold", (n_splits,))
        missing_left[is_split] = _flags(record, "missing_left", n_splits)
        counts = _numbers(record, "counts", (feature.size, n_classes))
        if np.any(counts < 0) or not np.all(counts.sum(axis=1) > 0):
            raise ModelFileError("a forest's counts must be >= 0, at each node some > 0")
        try:
            return cls.from_preorder(feature.astype(np.int32), threshold, missing_left, counts)
        except ParameterError as error:
            raise ModelFileError(str(error)) from None


def _one_sklearn_tree(tree: Any) -> Forest:  # Any: scikit-learn's Tree, which is compiled
    """Return a tree renumbered in preorder, which scikit-learn's best-first growth is not."""
    is_split = tree.children_left >= 0
    children = np.column_stack([tree.children_left, tree.children_right])[is_split].ravel()
    starts = np.append(0, 2 * np.cumsum(is_split))
    links = csr_array((np.ones(children.size), children, starts), shape=(is_split.size,) * 2)
    order = depth_first_order(links, 0, return_predecessors=False)
    totals = tree.weighted_n_node_samples[order, np.newaxis]
    counts = tree.value[order, 0, :] * totals
    whole = np.rint(counts)  # shares times a total miss whole numbers by their rounding
    counts = np.where(np.abs(counts - whole) <= 8 * np.finfo(float).eps * totals, whole, counts)
    return Forest.from_preorder(
        np.where(is_split, tree.feature, LEAF)[order].astype(np.int32),
        # infinite if all numbers go left and NaN right; JSON knows no infinity
        np.minimum(tree.threshold[order], np.finfo(np.float32).max),
        tree.missing_go_to_left[order].astype(np.bool_),
        counts,
    )


def _listed(record: Mapping[str, Any], name: str) -> list[Any]:
    values = record.get(name)
    if not isinstance(values, list):
        raise ModelFileError(f"a forest's {name} must be a list, got {type(values).__name__}")
    return values


def _integers(record: Mapping[str, Any], name: str, low: int, high: int) -> NDArray[np.int64]:
    values = _listed(record, name)
    if not values or not all(type(value) is int and low <= value <= high for value in values):
        raise ModelFileError(f"a forest's {name} must be integers from {low} to {high}")
    return np.array(values, np.int64)


def _numbers(record: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Floats:
    try:
        values = np.array(_listed(record, name))
    except ValueError:  # rows of different lengths
        values = np.array("")
    if values.shape != shape or values.dtype.kind not in "if" or not np.isfinite(values).all():
        raise ModelFileError(f"a forest's {name} must be finite numbers of shape {shape}")
    return values.astype(np.float64)


def _flags(record: Mapping[str, Any], name: str, count: int) -> Flags:
    values = _listed(record, name)
    if len(values) != count or not all(type(value) is bool for value in values):
        raise ModelFileError(f"a forest's {name} must be {count} of true and false")
    return np.array(values, np.bool_)
