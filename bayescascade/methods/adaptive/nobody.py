"""No full model at all: what stands where nothing is ever sent."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder

Numbers = NDArray[np.float64]


class Nobody(NamedTuple):
    """A full model that knows the shares of the classes (n_classes,), and reads nothing."""

    shares: Numbers
    n_features: int

    @property
    def text(self) -> str:
        """What it is called."""
        return "nobody"

    def probabilities(self, rows: Matrix) -> Numbers:
        """Return the probability of each class, (n, n_classes)."""
        return np.repeat(self.shares[np.newaxis], len(rows), axis=0)

    def used(self, rows: Matrix) -> NDArray[np.bool_]:
        """Return which features it reads for each row, (n, n_features)."""
        return np.zeros((len(rows), self.n_features), np.bool_)

    def walk(self, encoder: MatrixEncoder) -> "_Nowhere":
        """Return a row of which nothing is known."""
        del encoder
        return _Nowhere(self.shares)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types; the shares are those of the gate's record."""
        return {"nobody": True}


class _Nowhere:
    """A row that waits for nothing."""

    def __init__(self, shares: Numbers) -> None:
        self.probabilities, self.waiting = shares, dict[int, int]()

    def learn(self, column: int, value: object) -> None:
        del column, value
