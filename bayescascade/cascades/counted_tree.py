"""A tree with the weights of its nodes: what is kept of a draw, and saved, without the data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.cascades.tree import Tree
from bayescascade.errors import ModelFileError
from bayescascade.schema import Schema

__all__ = ["CountedTree"]


@dataclass(frozen=True, eq=False)
class CountedTree:
    """A tree and the weight of the rows at each of its nodes.

    Parameters
    ----------
    tree : Tree
    counts : (n_nodes,) float64
    """

    tree: Tree
    counts: NDArray[np.float64]

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.counts[0])

    def to_record(self) -> dict[str, Any]:
        """Return the tree and the weights of its leaves, from which those above follow."""
        return {**self.tree.to_flat(), "leaf_counts": self.counts[self.tree.leaves].tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], schema: Schema) -> "CountedTree":
        """Rebuild from what `to_record` returned.

        Raises
        ------
        ModelFileError
            If it is no tree over the schema's columns, or the counts are not its leaves'.
        KeyError, TypeError, ValueError
            If a field is missing or of a wrong type.
        """
        tree = Tree.from_flat(record)
        is_nominal = [column.kind == "nominal" for column in schema.columns]
        problem = next(tree.problems(is_nominal, schema.n_levels.tolist()), None)
        if problem is not None:
            raise ModelFileError(f"a saved tree must be a valid one: {problem}")
        leaf_counts = np.array(record["leaf_counts"], np.float64)
        leaves = tree.leaves
        if leaf_counts.shape != leaves.shape:
            raise ModelFileError(
                f"a saved tree with {leaves.size} leaves must have as many counts, "
                f"got {leaf_counts.size}"
            )
        is_count = np.isfinite(leaf_counts) & (leaf_counts >= 0)
        if not is_count.all() or not 0 < math.fsum(leaf_counts) < math.inf:
            raise ModelFileError("a saved tree's counts must be finite, >= 0 and not all 0")
        counts = np.zeros(tree.n_nodes)
        counts[leaves] = leaf_counts
        for node in range(tree.n_nodes - 1, 0, -1):
            counts[tree.parent[node]] += counts[node]
        return cls(tree, counts)
