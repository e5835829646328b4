"""One class: a forest of columns, and how a row's cells are passed up in it.

A column hands its parent, for each of the parent's levels, the probability of all cells at or below
it; a missing cell is the sum over its levels. That takes no longer than complete rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class RowClass(NamedTuple):
    """What is inside a class: a forest of columns."""

    parents: tuple[int, ...]  # -1 for none
    # For each column the probabilities of its levels; given the parent's, (parent's levels, own
    # levels), if it has one.
    tables: tuple[Floats, ...]

    @property
    def order(self) -> list[int]:
        """The columns, parents before their children."""
        below: dict[int, list[int]] = {}
        for j, parent in enumerate(self.parents):
            below.setdefault(parent, []).append(j)
        order = below.get(-1, [])[:]
        for j in order:
            order.extend(below.get(j, ()))
        return order

    def pass_up(self, seen: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        """Return the log probability of what is seen, (n,), and what reaches each column.

        seen: for each column (n, n_levels), where 1 says that a level is possible; what reaches the
        column is that times the probability of all below, up to a factor for each row.
        """
        reached, log_mass = list(seen), np.zeros(seen[0].shape[0])
        for j in reversed(self.order):
            passed = reached[j] @ self.tables[j].T
            if self.parents[j] < 0:
                log_mass += log_of(passed)
                continue
            most = passed.max(axis=1, initial=0.0)
            log_mass += log_of(most)
            passed /= np.where(most > 0, most, 1.0)[:, np.newaxis]
            reached[self.parents[j]] = reached[self.parents[j]] * passed
        return log_mass, reached

    def sample(
        self, n: int, reached: Sequence[Floats], rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Draw (p, n) codes given what reaches each column, of one row."""
        codes = np.empty((len(self.parents), n), np.int32)
        for j in self.order:
            sums = np.cumsum(np.atleast_2d(self.tables[j] * reached[j]), axis=1)
            own = sums[codes[self.parents[j]] if self.parents[j] >= 0 else np.zeros(n, int)]
            drawn = rng.random((n, 1)) * own[:, -1:]
            codes[j] = (own <= drawn).sum(axis=1)
        return codes


def log_of(values: Floats) -> Floats:
    """Return logarithms, -inf of 0."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(values)
    return logs
