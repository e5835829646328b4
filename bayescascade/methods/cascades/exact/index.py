"""Where the entries of boxes are kept, and how many there are: exact integers for any table."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.cascades.exact.kernels import IndexArrays

__all__ = ["Index"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Index:
    """Boxes in lexicographic order of their digits, each with as many entries as its cost allows.

    Parameters
    ----------
    n_blocks : (p,) tuple of int
        Blocks of each column, the whole column last.
    costs : (p,) tuple of int >= 0
        What a box costs for each column that it narrows.
    sizes : (C + 2,) tuple of int >= 0
        Entries of a box by its cost; what costs more than C has the last of them, 0.
    closed : frozenset of int
        Columns that no box narrows.
    """

    n_blocks: tuple[int, ...]
    costs: tuple[int, ...]
    sizes: tuple[int, ...]
    closed: frozenset[int] = frozenset()

    @cached_property
    def _totals(self) -> list[list[int]]:
        """Entries of all boxes of the columns from j on, by the cost of those before."""
        totals = [list(self.sizes)]
        for j in reversed(range(len(self.n_blocks))):
            behind = totals[0]
            narrowed = 0 if j in self.closed else self.n_blocks[j] - 1
            totals.insert(
                0, [narrowed * behind[self._raised(c, j)] + n for c, n in enumerate(behind)]
            )
        return totals

    def _raised(self, cost: int, j: int) -> int:
        return min(cost + self.costs[j], len(self.sizes) - 1)

    @property
    def n_entries(self) -> int:
        """Number of entries of all boxes."""
        return self._totals[0][0]

    def lowest(self, j: int) -> int:
        """Return the smallest block of a column that is kept."""
        return self.n_blocks[j] - 1 if j in self.closed else 0

    def _step(self, j: int, cost: int) -> int:
        return self._totals[j + 1][self._raised(cost, j)]

    def locate(self, digits: Sequence[int]) -> tuple[int, int]:
        """Return where a box's entries start, and how many it has."""
        at = cost = 0
        for j, digit in enumerate(digits):
            at += (digit - self.lowest(j)) * self._step(j, cost)
            if digit < self.n_blocks[j] - 1:
                cost = self._raised(cost, j)
        return at, self.sizes[cost]

    def entries(self, is_open: Sequence[NDArray[np.bool_]]) -> Integers:
        """Return the positions of all entries of the boxes whose blocks are open."""
        at, cost = np.zeros(1, np.int64), np.zeros(1, np.int64)
        arrays = self.arrays
        for j, flags in enumerate(is_open):
            digits = np.flatnonzero(flags)
            at = (at[:, None] + (digits - self.lowest(j)) * arrays.step[j, cost][:, None]).ravel()
            raised = np.minimum(cost + self.costs[j], len(self.sizes) - 1)
            cost = np.where(digits < self.n_blocks[j] - 1, raised[:, None], cost[:, None]).ravel()
            kept = cost < len(self.sizes) - 1
            at, cost = at[kept], cost[kept]
        sizes = arrays.size[cost]
        starts = np.repeat(at - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        return starts + np.arange(starts.size)

    @cached_property
    def arrays(self) -> IndexArrays:
        """The same for kernels."""
        p, n_costs = len(self.n_blocks), len(self.sizes)
        steps = [[self._step(j, cost) for cost in range(n_costs)] for j in range(p)]
        return IndexArrays(
            lowest=np.array([self.lowest(j) for j in range(p)], np.int64),
            step=np.array(steps, np.int64),
            size=np.array(self.sizes, np.int64),
        )
