"""The splits that a box still allows: those that the generative prior draws from.

A column of m >= 2 levels left can be split in one way by "levels", and by "subsets" in as many as
there are partitions of its levels into 2 .. B blocks: sums over b of Stirling numbers of the second
kind, S(m, b), or of C(m - 1, b - 1) where levels are ordered. The order of blocks is no part of a
split.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import Tree, level_starts, levels_left, root_box

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SplitSpace:
    """Which splits a table's boxes allow."""

    schema: Schema
    partitions: str  # "subsets" or "levels"
    max_branches: int | None = None  # >= 2, of a split by subsets; None for any number
    max_depth: int | None = None  # most splits above a leaf, by "levels" alone; None for any

    @cached_property
    def log_ways(self) -> Floats:
        """Log number of splits of each column by its levels left, (p, Q + 1) float64; -inf: none.

        Q is the number of levels of the widest column.
        """
        widest = int(self.schema.n_levels.max())
        found = np.full((self.schema.n_columns, widest + 1), -np.inf)
        for j, column in enumerate(self.schema.columns):
            nominal = column.kind == "nominal"
            for m in range(2, column.n_levels + 1):
                found[j, m] = log(n_splits(m, nominal, self.partitions, self.max_branches))
        return found

    @cached_property
    def log_most(self) -> float:
        """Log of the number of splits of the whole domain: no box allows more; -inf: none."""
        return float(self.log_splits(Tree.root())[0])

    @property
    def n_kept(self) -> int:
        """Columns of two or more levels that every path leaves whole, for `max_depth`."""
        n_open = int((self.schema.n_levels > 1).sum())
        return 0 if self.max_depth is None else max(0, n_open - self.max_depth)

    def log_splits(self, tree: Tree) -> Floats:
        """Return the log number of splits that each node's box allows, (n_nodes,); -inf: none."""
        left = levels_left(self.schema, tree.boxes(root_box(self.schema)))
        starts = level_starts(self.schema)[:-1]
        n_left = np.add.reduceat(left.astype(np.int64), starts, axis=1)
        ways = self.log_ways[np.arange(starts.size), n_left]
        with np.errstate(divide="ignore"):
            logs: Floats = np.logaddexp.reduce(ways, axis=1)
        return np.where((n_left > 1).sum(axis=1) > self.n_kept, logs, -np.inf)


@cache
def n_splits(n_levels: int, is_nominal: bool, partitions: str, max_branches: int | None) -> int:
    """Return how many splits a column of some levels left allows."""
    if n_levels < 2 or partitions == "levels":
        return int(n_levels > 1)
    most = n_levels if max_branches is None else min(max_branches, n_levels)
    if most == n_levels and not is_nominal:
        return int(2 ** (n_levels - 1) - 1)
    return sum(_n_partitions(n_levels, b, is_nominal) for b in range(2, most + 1))


@cache
def _n_partitions(n_levels: int, n_parts: int, is_nominal: bool) -> int:
    """Return in how many ways levels are shared out among so many blocks."""
    if not is_nominal:
        return comb(n_levels - 1, n_parts - 1)
    if n_parts in (1, n_levels):
        return int(n_levels > 0)
    if n_parts > n_levels:
        return 0
    alone = _n_partitions(n_levels - 1, n_parts - 1, True)
    return alone + n_parts * _n_partitions(n_levels - 1, n_parts, True)
