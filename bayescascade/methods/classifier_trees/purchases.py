"""What nodes of a tree buy, as a value."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Purchases:
    """What nodes buy: bought (n_nodes, n_features) bool; never written."""

    bought: Bools

    def to_list(self) -> list[list[int]]:
        """Return the features of each node."""
        return [np.flatnonzero(node).tolist() for node in self.bought]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Purchases):
            return NotImplemented
        return np.array_equal(self.bought, other.bought)

    def __hash__(self) -> int:
        return hash(self.bought.tobytes())

    def __repr__(self) -> str:
        return f"Purchases({self.to_list()})"
