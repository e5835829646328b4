"""Binary trees with class counts at their nodes: the state of budgeted forests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import depth_first_order
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from bayescascade.base.arrays import Codes, Flags, Floats
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.forests.kernels.routing import BLOCK, add_leaves
from bayescascade.methods.budget.forests.trees import LEAF, Trees, linked, splits_from_dict

SKLEARN_FORESTS = (RandomForestClassifier, ExtraTreesClassifier, DecisionTreeClassifier)
"""Estimators of scikit-learn whose trees can be read."""


@dataclass(frozen=True, eq=False)
class Forest(Trees):
    """Trees that divide rows by thresholds; see `from_sklearn` and `from_preorder`.

    Parameters
    ----------
    tree_starts, feature, threshold, right, missing_left
        See `Trees`.
    counts : (n_nodes, n_classes) float64 >= 0
        Weight of the training rows of each class that reach the node; positive for some class.
    """

    counts: Floats

    @classmethod
    def from_preorder(
        cls, feature: Codes, threshold: Floats, missing_left: Flags, counts: Floats
    ) -> "Forest":
        """Return the forest from arrays of nodes, tree by tree, each tree in preorder.

        Parameters
        ----------
        feature, threshold, missing_left, counts
            Values of the fields of the same name. Thresholds and `missing_left` of leaves are
            ignored.

        Raises
        ------
        ParameterError
            If a split lacks a child, or if the number of nodes is 0 or at least 2^31.
        """
        made: Any = linked(feature, threshold, missing_left)
        return cls(**made, counts=np.ascontiguousarray(counts, np.float64))

    @classmethod
    def from_sklearn(
        cls, estimator: RandomForestClassifier | ExtraTreesClassifier | DecisionTreeClassifier
    ) -> "Forest":
        """Return the trees of a fitted scikit-learn forest or tree of one output.

        Raises
        ------
        ParameterError
            If it is another kind of estimator, is not fitted, or predicts several outputs.
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
        """Return all trees of one or more forests with the same columns and classes."""
        names = ("feature", "threshold", "missing_left", "counts")
        parts = ([getattr(forest, name) for forest in forests] for name in names)
        return cls.from_preorder(*map(np.concatenate, parts))

    # -- shape -------------------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[1])

    def errors(self, counts: Floats | None = None) -> Floats:
        """Return the weight of misclassified rows at each node, (n_nodes,) float64.

        Parameters
        ----------
        counts : (n_nodes, n_classes) float64 >= 0, optional
            Weight of the rows of each class that reach each node; by default, of the training rows.
            The label of a node is the most common class of its training rows.
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
        """Return how much each split decreases the Gini impurity, (n_nodes,) float64 >= 0.

        The decrease is weighted by the training rows that reach the split, and divided by the sum
        over the splits of its tree. It is 0 at leaves.
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

    # -- rows --------------------------------------------------------------------------------------

    def predict_proba(self, X: NDArray[np.float32]) -> Floats:
        """Return class shares at the leaves, averaged over trees, (n_rows, n_classes) float64."""
        rows = self._rows(X)
        sums = np.zeros((rows.shape[0], self.n_classes))
        trees = self.arrays

        def add(start: int, stop: int) -> None:
            leaves = np.empty(BLOCK, np.int64)
            add_leaves(trees, rows[start:stop], self.probabilities, leaves, sums[start:stop])

        self._send(add, rows)
        sums /= self.n_trees
        return sums

    # -- pruning and files -------------------------------------------------------------------------

    def pruned(self, is_split: Flags) -> "Forest":
        """Return the forest with only some of the splits.

        Parameters
        ----------
        is_split : (n_nodes,) bool
            The splits to keep. Splits below a node that is not kept are also removed. Values at
            leaves are ignored.
        """
        feature = np.where(is_split, self.feature, LEAF)
        return replace(self, feature=feature).part(self.n_above(self.is_split & ~is_split) == 0)

    def part(self, nodes: slice | Flags) -> "Forest":
        """Return the forest of some of the trees, given the range of their nodes."""
        return Forest.from_preorder(
            self.feature[nodes], self.threshold[nodes], self.missing_left[nodes], self.counts[nodes]
        )

    def without_bare_roots(self) -> "Forest":
        """Return only the trees with a split, or all trees if no tree has a split.

        A tree without splits predicts the same for each row. In the average, it would only move all
        predictions towards the most common class.
        """
        splits = self.is_split[self.roots]
        if splits.all() or not splits.any():
            return self
        return self.part(np.repeat(splits, np.diff(self.tree_starts)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the forest as plain JSON types; thresholds are those of splits only, in order."""
        return {**self.splits_to_dict(), "counts": self.counts.tolist()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], n_columns: int, n_classes: int) -> "Forest":
        """Rebuild a forest from the result of `to_dict` and the numbers of columns and classes.

        Raises
        ------
        ModelFileError
            If a field is missing, of a wrong type or range, or does not fit the others.
        """
        feature, threshold, missing_left = splits_from_dict(record, n_columns)
        counts = read_array(record, "counts", (feature.size, n_classes))
        if np.any(counts < 0) or not np.all(counts.sum(axis=1) > 0):
            raise ModelFileError("a forest's counts must be >= 0, at each node some > 0")
        try:
            return cls.from_preorder(feature, threshold, missing_left, counts)
        except ParameterError as error:
            raise ModelFileError(str(error)) from None


def _one_sklearn_tree(tree: Any) -> Forest:  # Any: scikit-learn's Tree, which is compiled
    """Return a tree renumbered in preorder, unlike scikit-learn's best-first growth."""
    is_split = tree.children_left >= 0
    children = np.column_stack([tree.children_left, tree.children_right])[is_split].ravel()
    starts = np.append(0, 2 * np.cumsum(is_split))
    links = csr_array((np.ones(children.size), children, starts), shape=(is_split.size,) * 2)
    order = depth_first_order(links, 0, return_predecessors=False)
    totals = tree.weighted_n_node_samples[order, np.newaxis]
    counts = tree.value[order, 0, :] * totals
    whole = np.rint(counts)  # rounding: shares times a total may not be whole
    counts = np.where(np.abs(counts - whole) <= 8 * np.finfo(float).eps * totals, whole, counts)
    return Forest.from_preorder(
        np.where(is_split, tree.feature, LEAF)[order].astype(np.int32),
        # infinite if all numbers go left and NaN right; JSON has no infinity
        np.minimum(tree.threshold[order], np.finfo(np.float32).max),
        tree.missing_go_to_left[order].astype(np.bool_),
        counts,
    )


class TreesWalk:
    """The path of a row: the node in each tree, given the known values."""

    def __init__(self, trees: Trees, encoder: MatrixEncoder) -> None:
        self._trees, self._encoder, self._source = trees, encoder, encoder.source
        self._cells = np.empty(self._source.size, np.float32)
        self._is_known = np.zeros(self._source.size, np.bool_)
        self.nodes = trees.roots.copy()

    @property
    def waiting(self) -> dict[int, int]:
        """Number of trees that need each feature next, by its index."""
        features = self._trees.feature[self.nodes]
        reads = np.unique(self._source[features[features >= 0]], return_counts=True)
        return dict(zip(*(each.tolist() for each in reads), strict=True))

    def learn(self, column: int, value: object) -> None:
        """Go on in every tree with the value of a feature, as far as known values lead."""
        cells = self._encoder.read_cell(column, value)
        of_column = self._source == column
        self._cells[of_column], self._is_known[of_column] = cells, True
        trees = self._trees
        while True:
            features = trees.feature[self.nodes]
            can_go = (features >= 0) & self._is_known[features]
            if not can_go.any():
                return
            nodes, cells = self.nodes[can_go], self._cells[features[can_go]]
            is_left = (cells <= trees.threshold[nodes]) | (
                np.isnan(cells) & trees.missing_left[nodes]
            )
            self.nodes[can_go] = np.where(is_left, nodes + 1, trees.right[nodes])


class ForestWalk(TreesWalk):
    """The path of a row through a forest; see `costs.acquisition`."""

    def __init__(self, forest: Forest, encoder: MatrixEncoder) -> None:
        super().__init__(forest, encoder)
        self._forest = forest

    @property
    def probabilities(self) -> Floats:
        """As in `Forest.predict_proba` at leaves, added up in the same order."""
        shares = self._forest.probabilities
        total = np.zeros(shares.shape[1])
        for node in self.nodes:
            total += shares[node]
        return total / self.nodes.size
