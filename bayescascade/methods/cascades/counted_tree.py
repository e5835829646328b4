"""A tree with the weights of its nodes: what is kept of a draw, and saved, without the data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.leaves import leaf_boxes, level_starts, levels_left
from bayescascade.methods.cascades.tree import Tree

__all__ = ["CountedTree"]

_TOLERANCE = 1e-6  # between a leaf's count and the sum of its levels', which may be rounded


@dataclass(frozen=True, eq=False)
class CountedTree:
    """A tree and the weight of the rows at each of its nodes.

    Parameters
    ----------
    tree : Tree
    counts : (n_nodes,) float64
    level_counts : (n_leaves, L) float64 or None
        Of independent leaves, left to right: the weight of every level of every column, the levels
        of one column after those of the one before. None for uniform leaves, which need none.
    """

    tree: Tree
    counts: NDArray[np.float64]
    level_counts: NDArray[np.float64] | None = None

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.counts[0])

    def to_record(self) -> dict[str, Any]:
        """Return the tree and the weights of its leaves, from which those above follow."""
        record = {**self.tree.to_flat(), "leaf_counts": self.counts[self.tree.leaves].tolist()}
        if self.level_counts is not None:
            record["level_counts"] = self.level_counts.tolist()
        return record

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], schema: Schema, *, has_level_counts: bool = False
    ) -> "CountedTree":
        """Rebuild from what `to_record` returned.

        Parameters
        ----------
        record : mapping
        schema : Schema
        has_level_counts : bool
            Whether there must be counts of levels in the leaves, or must be none.

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
        if ("level_counts" in record) != has_level_counts:
            raise ModelFileError(
                "a saved tree must have counts of levels exactly if its leaves are independent"
            )
        if not has_level_counts:
            return cls(tree, counts)
        return cls(tree, counts, _read_level_counts(record["level_counts"], tree, counts, schema))


def _read_level_counts(
    told: Any, tree: Tree, counts: NDArray[np.float64], schema: Schema
) -> NDArray[np.float64]:
    """Return the counts of levels in a tree's leaves, checked; `told` may be anything."""
    level_counts = np.array(told, np.float64)
    left = levels_left(schema, leaf_boxes(schema, tree))
    if level_counts.shape != left.shape:
        raise ModelFileError(
            f"a saved tree's counts of levels must be {left.shape[0]} lists of {left.shape[1]}, "
            f"got an array of shape {level_counts.shape}"
        )
    if not (np.isfinite(level_counts) & (level_counts >= 0) & (left | (level_counts == 0))).all():
        raise ModelFileError(
            "a saved tree's counts of levels must be finite, >= 0, and 0 for levels not in the leaf"
        )
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(level_counts, level_starts(schema)[:-1], axis=1)
    expected = counts[tree.leaves, np.newaxis]
    if not (np.abs(sums - expected) <= _TOLERANCE * expected).all():
        raise ModelFileError("a saved tree's counts of levels must sum up to those of its leaves")
    return level_counts
