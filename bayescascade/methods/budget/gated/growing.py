"""Boosted trees over binned columns: growing in Python, and scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.costs.items import CostItems
from bayescascade.data.bins import equal_frequency_edges
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.forests.forest import TreesWalk
from bayescascade.methods.budget.forests.trees import Trees, linked, splits_from_dict
from bayescascade.methods.budget.gated.kernels.trees import (
    LEAF,
    Binned,
    BoostedTree,
    CostPenalty,
    GateGrowth,
    SplitWorkspace,
    grow_tree,
)

_BLOCK = 8192  # rows whose leaves are in memory at a time

__all__ = ["LEAF", "BoostedTree", "CostPenalty", "GateGrowth", "Grower"]
N_BINS = 63
"""Maximum number of bins of a column; missing cells have one more."""

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class BoostedScores:
    """Sums of trees. Tree t belongs to output t modulo c.

    Attributes
    ----------
    trees : Trees
        The trees, over the columns of the matrix.
    values_ : (n_nodes,) float64
        Value of each leaf, 0 at splits.
    intercept_ : (c,) float64
        Initial values of the sums.
    n_columns : int
        Number of columns of the matrix.
    """

    trees: Trees
    values_: Floats
    intercept_: Floats
    n_columns: int

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.trees.n_trees

    @property
    def is_constant(self) -> bool:
        """Whether the trees read no column."""
        return self.trees.n_splits == 0

    @property
    def columns(self) -> Integers:
        """Columns of the matrix that some tree reads."""
        return np.unique(self.trees.feature[self.trees.is_split]).astype(np.int64)

    def of(self, rows: Matrix, means: Floats) -> Floats:
        """Return the scores (n, c), summed tree by tree, so scores do not depend on other rows."""
        del means  # trees send NaN one way
        c = len(self.intercept_)
        scores = np.repeat(self.intercept_[np.newaxis], len(rows), axis=0)
        for start in range(0, len(rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            leaves = self.trees.apply(rows[part])
            for tree in range(self.trees.n_trees):
                scores[part, tree % c] += self.values_[leaves[:, tree]]
        return scores

    def read(self, rows: Matrix) -> Flags:
        """Return the columns read for each row, (n, p)."""
        return self.trees.features_used(rows)

    def walk(self, means: Floats, encoder: MatrixEncoder) -> "BoostedWalk":
        """Return a row without known columns."""
        del means
        return BoostedWalk(self, encoder)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        values = self.values_[~self.trees.is_split].tolist()
        splits = self.trees.splits_to_dict()
        return {"trees": splits, "values": values, "starts": self.intercept_.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_outputs: int, n_columns: int) -> Self:
        """Rebuild scores from `to_record`; ModelFileError or ParameterError if it is malformed."""
        trees = Trees(**linked(*splits_from_dict(record["trees"], n_columns)))
        if trees.n_trees % n_outputs:
            raise ModelFileError(f"saved trees must come by {n_outputs}, got {trees.n_trees}")
        values = np.zeros(trees.n_nodes)
        is_leaf = ~trees.is_split
        values[is_leaf] = read_array(record, "values", (int(is_leaf.sum()),))
        return cls(trees, values, read_array(record, "starts", (n_outputs,)), n_columns)


class BoostedWalk(TreesWalk):
    """A row on its way through boosted trees."""

    def __init__(self, scores: BoostedScores, encoder: MatrixEncoder) -> None:
        super().__init__(scores.trees, encoder)
        self._scores = scores

    @property
    def scores(self) -> Floats:
        """The scores (c,), once no feature is missing."""
        total = self._scores.intercept_.copy()
        for tree, node in enumerate(self.nodes.tolist()):
            total[tree % len(total)] += self._scores.values_[node]
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Grower:
    """Grows trees on the same binned rows; penalty: "once", "per_row" or "none".

    columns (p,): the columns of the matrix that trees may read, of n_columns.
    """

    data: Binned
    cuts: tuple[Floats, ...]
    columns: Integers
    n_columns: int
    growth: GateGrowth
    penalty: str
    space: SplitWorkspace

    @classmethod
    def of(
        cls, rows: Matrix, weights: Floats, items: CostItems, growth: GateGrowth, penalty: str,
        columns: Integers | None = None,
    ) -> Self:  # fmt: skip
        """Return the grower for rows (n, n_columns) and some columns, by default all."""
        n_columns = rows.shape[1]
        if columns is None:
            columns = np.arange(n_columns)
        items = items.of_features(columns)
        cells = rows[:, columns].astype(np.float32).astype(np.float64)
        cuts = tuple(_cuts(column, weights) for column in cells.T)
        n, p = cells.shape
        codes = np.empty((n, p), np.uint8)
        for j, of_column in enumerate(cuts):
            found = np.searchsorted(of_column, cells[:, j])
            codes[:, j] = np.where(np.isnan(cells[:, j]), len(of_column) + 1, found)
        n_bins = np.array([len(of_column) + 1 for of_column in cuts], np.int64)
        data = Binned(codes, n_bins, items.starts, items.items, items.costs)
        n_slots, n_nodes = 2 ** max(growth.depth - 1, 0), 2 ** (growth.depth + 1) - 1
        space = SplitWorkspace(
            np.empty(n, np.int64), np.empty(n, np.int64),
            np.empty((n_slots, p, int(n_bins.max()) + 1, 2)), np.empty((n_slots, items.n_items)),
            *(np.empty(n_nodes, np.int64) for _ in range(3)),
        )  # fmt: skip
        return cls(data, cuts, columns, n_columns, growth, penalty, space)

    def buying(self, price: float, sizes: Floats) -> CostPenalty:
        """Return prices with nothing paid yet, at a price in nats per unit of cost.

        price: for the model, or for each row; sizes (n,): by how much each row counts in payments.
        """
        m, is_rows = self.data.costs.size, self.penalty == "per_row"
        return CostPenalty(
            price if self.penalty == "once" else 0.0, price if is_rows else 0.0,
            np.zeros(m, np.bool_), np.zeros((len(sizes) if is_rows else 0, m), np.uint8), sizes,
        )  # fmt: skip

    def grow(
        self, prices: CostPenalty, gradients: Floats, curvatures: Floats, scores: Floats
    ) -> BoostedTree:
        """Return a tree, add its values to scores (n,), and mark its items as paid."""
        n = 2 ** (self.growth.depth + 1) - 1
        tree = BoostedTree(
            np.empty(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_),
            np.zeros(n), np.zeros(n),
        )  # fmt: skip
        grow_tree(self.data, prices, self.growth, self.space, gradients, curvatures, tree, scores)
        return tree

    def scores(self, grown: Sequence[BoostedTree], starts: Floats) -> BoostedScores:
        """Return the sums of trees and of initial values (c,), as scores of rows of the matrix."""
        zero = np.zeros(1)
        nothing = BoostedTree(
            np.full(1, LEAF), np.zeros(1, np.int64), np.zeros(1, np.bool_), zero, zero
        )
        made = list(grown) or [nothing] * len(starts)
        order = _preorder(len(made[0].column))
        heaps = [np.stack([each[k] for each in made])[:, order] for k in range(4)]
        exists = _exist(np.stack([tree.column for tree in made]))[:, order]
        column, cut, missing_left, value = (of_trees[exists] for of_trees in heaps)
        is_leaf = column == LEAF
        cuts = np.full((len(self.cuts), N_BINS + 1), _LARGEST)
        for of_column, known in zip(cuts, self.cuts, strict=True):
            of_column[: len(known)] = known
        threshold = np.where(is_leaf, np.nan, cuts[column, cut])
        column = np.where(is_leaf, LEAF, self.columns[column]).astype(np.int32)
        trees = Trees(**linked(column, threshold, missing_left))
        return BoostedScores(trees, np.where(is_leaf, value, 0.0), starts, self.n_columns)


def _exist(columns: Integers) -> Flags:
    """Return which nodes of the heaps of trees exist, (n_trees, n_nodes), given their columns."""
    exists = np.zeros(columns.shape, np.bool_)
    exists[:, 0] = True
    for node in range(columns.shape[1] // 2):
        splits = exists[:, node] & (columns[:, node] != LEAF)
        exists[:, 2 * node + 1] = exists[:, 2 * node + 2] = splits
    return exists


@cache
def _preorder(n_nodes: int) -> tuple[int, ...]:
    """Return the nodes of a full heap in preorder."""
    found, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if 2 * node + 2 < n_nodes:
            waiting += [2 * node + 2, 2 * node + 1]
    return tuple(found)


def _cuts(column: Floats, weights: Floats) -> Floats:
    """Return ascending cuts between a column's values, fewer than the maximum number of bins."""
    known = ~np.isnan(column)
    values, sizes = column[known], weights[known]
    if not values.size or values.min() == values.max():
        return np.empty(0)
    distinct = np.unique(values)
    if len(distinct) <= N_BINS:
        return distinct[:-1] / 2 + distinct[1:] / 2
    edges = equal_frequency_edges(values, sizes, N_BINS, distinct[0], distinct[-1])
    return np.array(edges[1:-1])
