"""A row on its way through a tree of classifiers, as its features are acquired one by one."""

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.classifier_trees.tree import ClassifierTree


class ClassifierWalk:
    """A row on its way, see `costs.acquisition`: it waits where a node's features are not known."""

    def __init__(
        self, tree: ClassifierTree, start: NDArray[np.float64], encoder: MatrixEncoder
    ) -> None:
        self._tree, self._encoder = tree, encoder
        self._has = tree.has
        self._cells = np.zeros((1, encoder.source.size))
        self._known = np.zeros(tree.n_features, np.bool_)
        self._node, self._answer = 0, start
        self._go_on()

    @property
    def waiting(self) -> dict[int, int]:
        """The features that the row's node still asks for; 1 for each."""
        missing = np.flatnonzero(self._has[self._node] & ~self._known)
        return dict.fromkeys(missing.tolist(), 1)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """What the last node answers of which all is known."""
        return self._answer

    def learn(self, column: int, value: object) -> None:
        """Take the value of a feature, and go on as far as what is known leads."""
        self._cells[0, self._encoder.source == column] = self._encoder.read_cell(column, value)
        self._known[column] = True
        self._go_on()

    def _go_on(self) -> None:
        while not self.waiting:
            node = self._tree.nodes[self._node]
            self._answer = node.leaf.probabilities(self._tree.basis, self._cells)[0]
            if node.is_leaf:
                return
            score = node.gate.outputs(self._tree.basis, self._cells)[0, 0]
            self._node = node.children[0] if score > node.threshold else node.children[1]
