"""A policy of boxes for new rows, which is printed and drawn as a tree, and written as SQL."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.items import CostItems
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.forest import Forest, ForestWalk
from bayescascade.methods.forests.reports import class_tree_boxes, label_sql, path_words
from bayescascade.methods.margin_neighbors.boxes import (
    LEAF,
    BoxTable,
    FeatureBins,
    Policy,
    columns_of,
)
from bayescascade.methods.margin_neighbors.margins import probabilities_of
from bayescascade.report.numbers import cost_texts, count_texts, share_text
from bayescascade.report.page import BLANK, Fold, Guided, Numbers, Page, Pieces
from bayescascade.report.printed import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_QUESTIONS = 6
_NO_ROW = 1e-9  # weight of a leaf without rows


@dataclass(frozen=True, eq=False)
class BoxPolicy(Printed):
    """A tree of features to acquire, whose branches are bins.

    Attributes
    ----------
    policy : Policy
        The acquired features, in preorder.
    error, cost : float
        Error rate and mean cost of the training rows.
    tradeoff : float
        Errors per row that a unit of cost is worth.
    objective : float
        ``error + tradeoff * cost``.
    greedy_gap : float
        Objective of the greedy policy of the thesis, minus this objective.
    first_questions : mapping of int to float
        Posterior probability of each first feature; -1 means no feature.
    forest : Forest
        The policy as a tree of comparisons. Its leaves have class probabilities.
    """

    policy: Policy
    bins: tuple[FeatureBins, ...] = field(repr=False)
    leaf_counts: Floats = field(repr=False)  # (n_leaves, n_classes)
    error: float
    cost: float
    tradeoff: float
    greedy_gap: float
    first_questions: Mapping[int, float]
    encoder: MatrixEncoder = field(repr=False)
    items: CostItems = field(repr=False)
    classes: NDArray[Any]

    @classmethod
    def of(
        cls,
        policy: Policy,
        table: BoxTable,
        bins: tuple[FeatureBins, ...],
        scores: tuple[Floats, Sequence[Floats]] | None,
        **more: Any,
    ) -> Self:
        """Return a policy with predictions at its leaves, by class shares or by scores."""
        counts = []
        above: dict[int, int] = {}  # from boxes to the boxes of their parents
        for box, feature, _ in table.walk(policy):
            if feature != LEAF:
                stride = int(table.strides[feature])
                above |= {box + digit * stride: box for digit in table.bins(feature)}
                continue
            weight = float(table.weights[box])
            if scores is None:
                told = table.counts[box if weight > 0 or box == 0 else above[box]]
                counts.append(told if weight > 0 else told / told.sum() * _NO_ROW)
            else:
                digits = (box // table.strides) % table.sizes
                added = [part[digit - 1] for part, digit in zip(scores[1], digits, strict=True)
                         if digit > 0]  # fmt: skip
                score = scores[0] + np.sum(added, axis=0) if added else scores[0]
                counts.append(probabilities_of(score) * max(weight, _NO_ROW))
        return cls(policy, bins, np.array(counts), items=table.items, **more)

    @property
    def objective(self) -> float:
        """The error rate plus tradeoff times the mean cost."""
        return self.error + self.tradeoff * self.cost

    @cached_property
    def children(self) -> list[list[int]]:
        """The nodes below each node of the policy, in the order of the bins."""
        nodes = self.policy.nodes
        children: list[list[int]] = [[] for _ in nodes]
        ends = [0] * len(nodes)
        for node in reversed(range(len(nodes))):
            end = node + 1
            if nodes[node] != LEAF:
                for _ in range(self.bins[nodes[node]].n_bins):
                    children[node].append(end)
                    end = ends[end]
            ends[node] = end
        return children

    @cached_property
    def forest(self) -> Forest:
        """The policy as a tree of comparisons."""
        nodes = self.policy.nodes
        is_leaf = np.array(nodes) == LEAF
        leaf_of = dict(zip(np.flatnonzero(is_leaf).tolist(), self.leaf_counts, strict=True))

        def grown(node: int) -> list[_Split]:
            if nodes[node] == LEAF:
                return [(LEAF, 0.0, False, leaf_of[node])]
            return chained(node, 0)

        def chained(node: int, place: int) -> list[_Split]:
            chain, children = self.bins[nodes[node]].chain, self.children[node]
            inside = grown(children[place])
            if place == len(chain):
                return inside
            step, rest = chain[place], chained(node, place + 1)
            left, right = (inside, rest) if step.is_left else (rest, inside)
            counts = left[0][3] + right[0][3]
            return [(step.column, step.threshold, step.missing_left, counts), *left, *right]

        column, threshold, missing, counts = zip(*grown(0), strict=True)
        return Forest.from_preorder(
            np.array(column, np.int32), np.array(threshold), np.array(missing, np.bool_),
            np.array(counts),
        )  # fmt: skip

    # -- rows --------------------------------------------------------------------------------------

    @property
    def shares(self) -> Floats:
        """Shares of the classes, (n_classes,)."""
        return np.asarray(self.forest.counts[0])

    def walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        """Return a function that starts a row without measured features."""
        return partial(ForestWalk, self.forest, encoder)

    def used(self, rows: NDArray[Any]) -> Flags:
        """Return which features rows (n, p) of the matrix acquire, (n, d) bool."""
        of_matrix = self.forest.features_used(rows)
        groups = columns_of(np.asarray(self.encoder.source, np.int64))
        return np.stack([of_matrix[:, columns].any(axis=1) for columns in groups], axis=1)

    def probabilities(self, rows: NDArray[Any]) -> Floats:
        """Return class probabilities, (n, n_classes)."""
        return self.forest.predict_proba(rows)

    def reasons(self, rows: NDArray[Any], encoder: MatrixEncoder) -> list[str]:
        """Return the path of each row in words."""
        leaves = self.forest.apply(rows)[:, 0].tolist()
        words = {leaf: path_words(self.forest, leaf, encoder) for leaf in {*leaves}}
        return [words[leaf] for leaf in leaves]

    # -- what a user sees --------------------------------------------------------------------------

    how_to_read = ()
    size_text = "boxes"

    def facts(self) -> list[list[str]]:
        """Return the tradeoff, as pieces of a line."""
        return [[f"tradeoff {self.tradeoff:.3g}"]]

    def page(self) -> Page:
        """Return a line for each node: a bin, and the next feature or the predicted class."""
        told = [
            f"error {100 * self.error:.2f} %",
            f"cost {cost_texts([self.cost])[0]} a row",
            f"objective {self.objective:.4f}",
            f"greedy {self.objective + self.greedy_gap:.4f}",
        ]
        firsts = sorted(self.first_questions.items(), key=lambda each: -each[1])
        asked = [
            f"{'nothing' if feature == LEAF else self.encoder.names[feature]} ({share:.2f})"
            for feature, share in firsts[:_MOST_QUESTIONS]
        ]
        return (Pieces(told), Pieces(["asked first", *asked]), BLANK, self._tree())

    def _tree(self) -> Guided:
        nodes, names = self.policy.nodes, self.encoder.names
        classes = [level_text(label) for label in self.classes.tolist()]
        last = [columns[-1] for columns in columns_of(np.asarray(self.encoder.source, np.int64))]
        words = {
            feature: self.bins[feature].words(self.encoder, last[feature])
            for feature in {*nodes} - {LEAF}
        }
        counts = self._counts
        parents, labels = [0] * len(nodes), ["everyone"] * len(nodes)
        for node, feature in enumerate(nodes):
            for place, child in enumerate(self.children[node]):
                parents[child], labels[child] = node, words[feature][place]
            if feature != LEAF:
                labels[node] += f": asks for {names[feature]}"
        best = counts.argmax(axis=1)
        shares = counts.max(axis=1) / counts.sum(axis=1)
        sizes = counts.sum(axis=1).round(6)
        columns = [
            Numbers("rows", count_texts(sizes.tolist())),
            Numbers("class", [classes[place] for place in best]),
            Numbers("share", [share_text(share) for share in shares.tolist()]),
        ]
        at_leaves = np.where(np.array(nodes) == LEAF, sizes, 0.0)
        fold = Fold(at_leaves.tolist(), "the rows", ("leaf", "leaves"), sizes.tolist())
        return Guided(labels, parents, columns, lambda node: labels[node], fold=fold)

    @cached_property
    def _counts(self) -> Floats:
        """Weights of the classes at each node, (n_nodes, n_classes)."""
        nodes = self.policy.nodes
        counts = np.zeros((len(nodes), self.leaf_counts.shape[1]))
        counts[np.array(nodes) == LEAF] = self.leaf_counts
        for node in reversed(range(len(nodes))):
            for child in self.children[node]:
                counts[node] += counts[child]
        return counts

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the tree, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        """
        return class_tree_boxes(self.forest, 0, self.encoder, self.classes).plot(ax)

    def to_dot(self) -> str:
        """Return the tree as Graphviz source."""
        return class_tree_boxes(self.forest, 0, self.encoder, self.classes).dot("policy")

    def to_sql(self, label: object = None) -> str:
        """Return the class of a row, or the probability of a class, as a standard SQL expression.

        The parameter and errors are those of `ForestClassifier.to_sql`.
        """
        return label_sql(self.forest, self.encoder, self.classes, label)

    # -- files -------------------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "nodes": list(self.policy.nodes),
            "bins": [[list(step) for step in each.chain] for each in self.bins],
            "leaf_counts": self.leaf_counts.tolist(),
            "error": self.error,
            "cost": self.cost,
            "tradeoff": self.tradeoff,
            "greedy_gap": self.greedy_gap,
            "first_questions": [list(each) for each in self.first_questions.items()],
        }

    @classmethod
    def from_record(
        cls,
        record: Mapping[str, Any],
        encoder: MatrixEncoder,
        items: CostItems,
        classes: NDArray[Any],
    ) -> Self:
        """Rebuild a policy from `to_record`; ModelFileError if it does not fit the columns."""
        groups = columns_of(np.asarray(encoder.source, np.int64))
        bins = tuple(
            FeatureBins.from_record(each, columns)
            for each, columns in zip(record["bins"], groups, strict=True)
        )
        numbers = [float(record[name]) for name in ("error", "cost", "tradeoff", "greedy_gap")]
        nodes = tuple(record["nodes"])
        shape = nodes.count(LEAF), len(classes)
        counts = read_array(record, "leaf_counts", shape, least=0)
        _check_nodes(nodes, [each.n_bins for each in bins])
        if not (counts.sum(axis=1) > 0).all() or not np.isfinite(numbers).all():
            raise ModelFileError("a saved policy must have finite counts of classes at its leaves")
        firsts = {int(feature): float(share) for feature, share in record["first_questions"]}
        if not all(LEAF <= j < len(bins) and 0 <= p <= 1 + 1e-9 for j, p in firsts.items()):
            raise ModelFileError("a saved policy's first questions must be features and shares")
        return cls(
            Policy(nodes), bins, counts, numbers[0], numbers[1], numbers[2], numbers[3], firsts,
            encoder, items, classes,
        )  # fmt: skip


_Split = tuple[int, float, bool, Floats]


def _check_nodes(nodes: Sequence[Any], n_bins: Sequence[int]) -> None:
    """Raise ModelFileError unless nodes are a tree in preorder that asks for a feature once."""
    pending: list[frozenset[int]] = [frozenset()]
    for node in nodes:
        if not pending or type(node) is not int or not LEAF <= node < len(n_bins):
            raise ModelFileError("a saved policy must be one tree of questions in preorder")
        measured = pending.pop()
        if node in measured:
            raise ModelFileError("a saved policy must ask once for a feature on a path")
        if node != LEAF:
            pending += [measured | {node}] * n_bins[node]
    if pending:
        raise ModelFileError("a saved policy must be one tree of questions in preorder")
