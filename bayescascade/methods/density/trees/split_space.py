"""The number of splits of a box, from which the generative prior draws.

A column with m >= 2 remaining levels has one split by "levels". By "subsets" it has as many splits
as partitions of its levels into 2 .. B blocks: the sum over b of Stirling numbers of the second
kind, S(m, b), or of C(m - 1, b - 1) if levels are ordered. The order of blocks does not matter.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, log

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.tree import Tree, n_levels_left, root_box


@dataclass(frozen=True)
class SplitSpace:
    """The splits that a table's boxes allow."""

    schema: Schema
    partitions: str  # "subsets" or "levels"
    max_branches: int | None = None  # >= 2, for splits by subsets; None for any number
    max_depth: int | None = None  # most splits above a leaf, only by "levels"; None for any

    @cached_property
    def log_ways(self) -> Floats:
        """Log number of splits of columns by their remaining levels, (p, Q + 1); -inf for none."""
        widest = int(self.schema.n_levels.max())
        found = np.full((self.schema.n_columns, widest + 1), -np.inf)
        for j, column in enumerate(self.schema.columns):
            nominal = column.kind == "nominal"
            for m in range(2, column.n_levels + 1):
                found[j, m] = log(n_splits(m, nominal, self.partitions, self.max_branches))
        return found

    @cached_property
    def log_most(self) -> float:
        """Log number of splits of the whole domain, the largest of all boxes; -inf for none."""
        return float(self.log_splits(Tree.root())[0])

    @property
    def n_kept(self) -> int:
        """Number of columns with two or more levels that each path leaves whole, by `max_depth`."""
        n_open = int((self.schema.n_levels > 1).sum())
        return 0 if self.max_depth is None else max(0, n_open - self.max_depth)

    def log_splits(self, tree: Tree) -> Floats:
        """Return the log number of splits of each node's box, (n_nodes,); -inf for none."""
        n_left = n_levels_left(self.schema, tree.boxes(root_box(self.schema)))
        ways = self.log_ways[np.arange(n_left.shape[1]), n_left]
        with np.errstate(divide="ignore"):
            logs: Floats = np.logaddexp.reduce(ways, axis=1)
        return np.where((n_left > 1).sum(axis=1) > self.n_kept, logs, -np.inf)


@cache
def n_splits(n_levels: int, is_nominal: bool, partitions: str, max_branches: int | None) -> int:
    """Return the number of splits of a column with some remaining levels."""
    if n_levels < 2 or partitions == "levels":
        return int(n_levels > 1)
    most = n_levels if max_branches is None else min(max_branches, n_levels)
    if most == n_levels and not is_nominal:
        return int(2 ** (n_levels - 1) - 1)
    return sum(_n_partitions(n_levels, b, is_nominal) for b in range(2, most + 1))


@cache
def _n_partitions(n_levels: int, n_parts: int, is_nominal: bool) -> int:
    """Return the number of partitions of levels into a number of blocks."""
    if not is_nominal:
        return comb(n_levels - 1, n_parts - 1)
    if n_parts in (1, n_levels):
        return int(n_levels > 0)
    if n_parts > n_levels:
        return 0
    alone = _n_partitions(n_levels - 1, n_parts - 1, True)
    return alone + n_parts * _n_partitions(n_levels - 1, n_parts, True)
