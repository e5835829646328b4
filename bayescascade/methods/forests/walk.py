"""A row on its way through a forest, as its features are acquired one by one."""

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.trees import Trees


class TreesWalk:
    """A row on its way: how far each tree has come with what is known."""

    def __init__(self, trees: Trees, encoder: MatrixEncoder) -> None:
        self._trees, self._encoder, self._source = trees, encoder, encoder.source
        self._cells = np.empty(self._source.size, np.float32)
        self._is_known = np.zeros(self._source.size, np.bool_)
        self.nodes = trees.roots.copy()

    @property
    def waiting(self) -> dict[int, int]:
        """How many trees ask for each feature next, by its place."""
        features = self._trees.feature[self.nodes]
        asked = np.unique(self._source[features[features >= 0]], return_counts=True)
        return dict(zip(*(each.tolist() for each in asked), strict=True))

    def learn(self, column: int, value: object) -> None:
        """Let every tree go on by the value of a feature, as far as what is known leads."""
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
    """A row on its way, see `costs.acquisition`."""

    def __init__(self, forest: Forest, encoder: MatrixEncoder) -> None:
        super().__init__(forest, encoder)
        self._forest = forest

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """What `Forest.predict_proba` says at leaves, added up in the same order."""
        shares = self._forest.probabilities
        total = np.zeros(shares.shape[1])
        for node in self.nodes:
            total += shares[node]
        return total / self.nodes.size
