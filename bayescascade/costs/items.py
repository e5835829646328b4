"""Costs of columns by items, each of which is paid once for a row.

Of coefficients B of the columns,

    Omega(B) = sum_a c_a ``|B_a|``,

with c_a the cost of item a, B_a the coefficients of the columns that incur it, and the Euclidean
norm. This is a convex relaxation of the cost of the used features (Kusner, "Learning in the Real
World", 2016, equation 2.5; it is the l1 norm there if each feature has one column and there are no
groups). Features of a group are in two norms, one inside the other; so a whole group can be left
out, or single features of it. Free features are in no norm.

`split` is the proximal operator. By its dual, each item has a pull on its columns, of norm at most
t c_a, and the result is V minus the pulls. If any two items are disjoint or nested, a single pass
from smaller to larger items is exact (Jenatton and others, "Proximal Methods for Hierarchical
Sparse Coding", 2011, section 3); if a feature is in overlapping groups, passes are repeated until
nothing changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.costs.kernels.descending import Layout, shrink_all

_FLAT = 1e-12  # least curvature for the length of a step


@dataclass(frozen=True, slots=True, eq=False)
class CostItems:
    """Costs of columns by items: features or groups, each of which is paid once for a row.

    Features come first, in the order of the columns, and groups last. Column ``j`` incurs
    ``items[starts[j]:starts[j + 1]]``.
    """

    names: tuple[str, ...]  # features and groups; "x3" for a column with an index only
    costs: Floats  # (n_items,) > 0: a free feature is no item
    starts: Integers  # (n_columns + 1,)
    items: Integers  # (n_incurred,)
    n_groups: int = 0

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.names)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.starts) - 1

    @property
    def texts(self) -> list[str]:
        """The items in words: their names, or "blood (group)"."""
        first_group = self.n_items - self.n_groups
        groups = [f"{name} (group)" for name in self.names[first_group:]]
        return [*self.names[:first_group], *groups]

    def of_column(self, column: int) -> Integers:
        """Return the items that a column incurs."""
        return self.items[self.starts[column] : self.starts[column + 1]]

    def of_features(self, source: Sequence[int] | NDArray[np.integer]) -> "CostItems":
        """Return the same items for other columns, each derived from the one in `source`."""
        chosen = [self.of_column(int(column)) for column in source]
        return CostItems(self.names, self.costs, *_flattened(chosen), self.n_groups)

    def paid(self, used: Flags) -> Flags:
        """Return the items that each row pays for, (n_rows, n_items) bool.

        used (n_rows, n_columns) bool: the acquired columns.
        """
        paid = np.zeros((used.shape[0], self.n_items), np.bool_)
        for column in range(self.n_columns):
            for item in self.of_column(column):
                paid[:, item] |= used[:, column]
        return paid

    def total(self, paid: Flags) -> Floats:
        """Return the total cost of each row, (n_rows,) float64, given the result of `paid`."""
        total: Floats = np.where(paid, self.costs, 0.0).sum(axis=1)
        return total


def items_of(incurred: list[list[tuple[str, float]]]) -> CostItems:
    """Return the items of columns, given the named costs of each column, its own cost first."""
    own = [pairs[0] for pairs in incurred]
    shared = list(dict.fromkeys(pair for pairs in incurred for pair in pairs[1:]))
    n_groups = sum(cost > 0 for _, cost in shared)
    costing = [pair for pair in [*own, *shared] if pair[1] > 0]
    number = {name: item for item, (name, _) in enumerate(costing)}
    numbers = [[number[name] for name, cost in pairs if cost > 0] for pairs in incurred]
    costs = np.array([cost for _, cost in costing], np.float64)
    return CostItems(tuple(number), costs, *_flattened(numbers), n_groups)


def _flattened(rows: Sequence[Sequence[int] | Integers]) -> tuple[Integers, Integers]:
    """Return the starts of some lists in their concatenation, and the concatenation."""
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return starts, np.array([number for row in rows for number in row], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class CostNorms:
    """Norms over p columns, by the items that they incur.

    costs (m,); layout: the columns that incur each item, and their blocks.
    """

    n_columns: int
    costs: Floats
    layout: Layout

    @classmethod
    def of(cls, items: CostItems, feature: Integers, n_free: int = 0) -> Self:
        """Return the norms of columns (p,), given the feature of each, and free columns."""
        members: list[list[int]] = [[] for _ in range(items.n_items)]
        for column, of in enumerate(feature.tolist()):
            for item in items.of_column(of):
                members[item].append(column)
        places = [np.array(each, np.int64) for each in members]
        return cls._of(feature.size + n_free, items.costs, places)

    @classmethod
    def _of(cls, n_columns: int, costs: Floats, members: Sequence[Integers]) -> Self:
        """Return the norms of items with (n_members,) columns each, possibly none."""
        by_size = [a for a in np.argsort([m.size for m in members], kind="stable")]
        by_size = [a for a in by_size if members[a].size]
        is_nested = True
        outermost = np.full(n_columns, -1)  # item of each column so far
        of_column = np.arange(n_columns)
        for a in by_size:
            member = members[a]
            inside = np.unique(outermost[member])
            is_nested &= all(b < 0 or np.isin(members[b], member).all() for b in inside)
            outermost[member] = a
            if member.size > 1:
                joined = np.isin(of_column, of_column[member])
                of_column[joined] = of_column[member].min()
        blocks, of_column = np.unique(of_column, return_inverse=True)
        columns = np.argsort(of_column, kind="stable")
        every = np.arange(blocks.size + 1)
        of_item = np.array([of_column[members[a][0]] for a in by_size], np.int64)
        order = np.argsort(of_item, kind="stable")
        kept = [members[by_size[place]] for place in order]
        layout = Layout(
            np.searchsorted(of_column[columns], every),
            columns,
            np.searchsorted(of_item[order], every),
            np.cumsum([0, *(member.size for member in kept)]),
            np.concatenate([np.zeros(0, np.int64), *kept]),
            np.zeros(len(kept)),
            np.ones(blocks.size),
            int(is_nested),
        )
        return cls(n_columns, costs[[by_size[place] for place in order]], layout)

    def among(self, columns: Integers) -> Self:
        """Return the norms of some of the columns if the others are 0."""
        place = np.full(self.n_columns, -1)
        place[columns] = np.arange(columns.size)
        layout = self.layout
        members = np.split(place[layout.incurring], layout.members[1:-1])
        return self._of(columns.size, self.costs, [m[m >= 0] for m in members[: self.costs.size]])

    @property
    def is_free(self) -> Flags:
        """Whether each column is in no norm, (p,)."""
        free = np.ones(self.n_columns, np.bool_)
        free[self.layout.incurring] = False
        return free

    def total(self, coefficients: Floats) -> float:
        """Return Omega of coefficients (p, c)."""
        return float(self.costs @ self._norms(coefficients[self.layout.incurring]))

    def split(self, values: Floats, amount: float) -> tuple[Floats, Floats]:
        """Return the minimum B (p, c) of ``|B - V|^2 / 2 + t Omega(B)``, and the pulls by item."""
        left = np.array(values, np.float64)
        pulls = np.zeros((self.layout.incurring.size, left.shape[1]))
        shrink_all(left, pulls, self.layout._replace(limits=amount * self.costs))
        return left, pulls

    def least_amount(self, values: Floats, amount: float) -> float:
        """Return a t for which the proximal operator of V is 0; the smallest t if `amount` is it.

        The pulls at `amount`, plus the rest of each column given to one of its items, have the sum
        V. They prove that the largest of their norms divided by the costs is such a t. Columns in
        no norm are not used.
        """
        left, pulls = self.split(values, amount)
        owned, first = np.unique(self.layout.incurring, return_index=True)
        pulls[first] += left[owned]
        return float((self._norms(pulls) / self.costs).max(initial=0.0))

    def steps(self, curvature: Floats, penalty: float) -> Layout:
        """Return the layout with the longest step of each block and the items' limits.

        curvature (b, s, s): of all p columns and c outputs, s = p c, or of each output.
        """
        layout = self.layout
        n_outputs = curvature.shape[0] * curvature.shape[1] // self.n_columns
        lengths = np.empty(layout.lengths.size)
        for block in range(lengths.size):
            own = layout.columns[layout.starts[block] : layout.starts[block + 1]]
            if len(curvature) == 1:
                own = (own[:, np.newaxis] * n_outputs + np.arange(n_outputs)).ravel()
            parts = curvature[:, own[:, np.newaxis], own]
            steepest = np.linalg.eigvalsh(parts).max() if own.size > 1 else parts.max()
            lengths[block] = 1 / max(steepest * (1 + 1e-9), _FLAT)
        return layout._replace(limits=penalty * self.costs, lengths=lengths)

    def _norms(self, incurred: Floats) -> Floats:
        """Return the norm of each item's part of (n_incurring, c)."""
        squares = np.append((incurred**2).sum(axis=1), 0.0)
        return np.sqrt(np.add.reduceat(squares, self.layout.members)[:-1])
