"""Scores that boosted trees add up to, and how rows come to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.trees import Trees, linked, splits_from_dict
from bayescascade.methods.forests.walk import TreesWalk

Numbers = NDArray[np.float64]

_BLOCK = 8192  # rows whose leaves are held at a time


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
    values_: Numbers
    intercept_: Numbers
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
    def columns(self) -> NDArray[np.int64]:
        """Columns of the matrix that are read for some row."""
        return np.unique(self.trees.feature[self.trees.is_split]).astype(np.int64)

    def of(self, rows: Matrix, means: Numbers) -> Numbers:
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

    def read(self, rows: Matrix) -> NDArray[np.bool_]:
        """Return which columns are read for each row, (n, p)."""
        return self.trees.features_used(rows)

    def walk(self, means: Numbers, encoder: MatrixEncoder) -> "BoostedWalk":
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
        """Rebuild scores from `to_record`; ModelFileError if the record is malformed."""
        try:
            trees = Trees(**linked(*splits_from_dict(record["trees"], n_columns)))
        except ParameterError as error:
            raise ModelFileError(str(error)) from None
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
    def scores(self) -> Numbers:
        """What they come to, once nothing is waited for, (c,)."""
        total = self._scores.intercept_.copy()
        for tree, node in enumerate(self.nodes.tolist()):
            total[tree % len(total)] += self._scores.values_[node]
        return total
