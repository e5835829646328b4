"""What columns cost: the things to pay for, each once for a row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class CostItems:
    """What columns cost: things to pay for, features or groups, each once for a row.

    Features come first, in the order of the columns, and groups last. Column ``j`` incurs
    ``items[starts[j]:starts[j + 1]]``.
    """

    names: tuple[str, ...]  # of features and groups; "x3" for a column that has an index only
    costs: NDArray[np.float64]  # (n_items,) > 0: what is free is no item
    starts: NDArray[np.int64]  # (n_columns + 1,)
    items: NDArray[np.int64]  # (n_incurred,)
    n_groups: int = 0

    @property
    def n_items(self) -> int:
        """Number of things that may be paid for."""
        return len(self.names)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.starts) - 1

    @property
    def texts(self) -> list[str]:
        """What the items are called in text: their names, or "blood (group)"."""
        first_group = self.n_items - self.n_groups
        groups = [f"{name} (group)" for name in self.names[first_group:]]
        return [*self.names[:first_group], *groups]

    def of_column(self, column: int) -> NDArray[np.int64]:
        """Return the items that a column incurs."""
        return self.items[self.starts[column] : self.starts[column + 1]]

    def of_features(self, source: Sequence[int] | NDArray[np.integer]) -> "CostItems":
        """Return the same items for other columns, each made of the one in `source`."""
        chosen = [self.of_column(int(column)) for column in source]
        return CostItems(self.names, self.costs, *_flattened(chosen), self.n_groups)

    def paid(self, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the items that each row pays for, (n_rows, n_items) bool.

        used (n_rows, n_columns) bool: the columns acquired.
        """
        paid = np.zeros((used.shape[0], self.n_items), np.bool_)
        for column in range(self.n_columns):
            for item in self.of_column(column):
                paid[:, item] |= used[:, column]
        return paid

    def total(self, paid: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return what each row pays, (n_rows,) float64, given the items of `paid`."""
        total: NDArray[np.float64] = np.where(paid, self.costs, 0.0).sum(axis=1)
        return total


def items_of(incurred: list[list[tuple[str, float]]]) -> CostItems:
    """Return the items of columns, given what each incurs, its own cost first."""
    own = [pairs[0] for pairs in incurred]
    shared = list(dict.fromkeys(pair for pairs in incurred for pair in pairs[1:]))
    n_groups = sum(cost > 0 for _, cost in shared)
    costing = [pair for pair in [*own, *shared] if pair[1] > 0]
    number = {name: item for item, (name, _) in enumerate(costing)}
    numbers = [[number[name] for name, cost in pairs if cost > 0] for pairs in incurred]
    costs = np.array([cost for _, cost in costing], np.float64)
    return CostItems(tuple(number), costs, *_flattened(numbers), n_groups)


def _flattened(
    rows: Sequence[Sequence[int] | NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each of some lists starts, and the lists one after the other."""
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return starts, np.array([number for row in rows for number in row], np.int64)
