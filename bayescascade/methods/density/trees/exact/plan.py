"""The plan of an exact solution: its boxes, entries and work, by arithmetic alone.

Integers are exact for any table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from bayescascade.base.arrays import Integers
from bayescascade.base.errors import ParameterError
from bayescascade.methods.density.trees.exact.kernels.layout import UNION, IndexArrays
from bayescascade.methods.density.trees.models import BranchModel
from bayescascade.methods.density.trees.split_space import n_splits

if TYPE_CHECKING:
    from bayescascade.data.table import Table
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior


_FEW_ROWS = 1 << 16  # most weights with a table of log gamma functions
_MOST_WAYS = 256  # most partitions of a column's levels in a list
_MANY_BOXES = 1 << 20  # from here on, numbers use short types
_WORK = (4, 8)  # a box takes as long as 4 pairs, and a pair as long as 8 products of entries
_SHORTER = 5  # speedup of the short way


@dataclass(frozen=True)
class Index:
    """Boxes in lexicographic order of their digits; their costs limit their entries."""

    n_blocks: tuple[int, ...]  # (p,): blocks of each column, the whole column last
    costs: tuple[int, ...]  # (p,), >= 0: cost of a box for each column that it narrows
    sizes: tuple[int, ...]  # (C + 2,): entries of a box by its cost; the last, 0, for costs above C

    @cached_property
    def _totals(self) -> list[list[int]]:
        """Entries of all boxes of the columns from j on, by the cost of the columns before."""
        totals = [list(self.sizes)]
        for j, n_blocks in reversed(list(enumerate(self.n_blocks))):
            narrowed, behind = n_blocks - 1, totals[0]
            before = [narrowed * behind[self._raised(c, j)] + n for c, n in enumerate(behind)]
            totals.insert(0, before)
        return totals

    def _raised(self, cost: int, j: int) -> int:
        return min(cost + self.costs[j], len(self.sizes) - 1)

    @property
    def n_entries(self) -> int:
        """Number of entries of all boxes."""
        return self._totals[0][0]

    def _step(self, j: int, cost: int) -> int:
        return self._totals[j + 1][self._raised(cost, j)]

    def locate(self, digits: Sequence[int]) -> tuple[int, int]:
        """Return the start of a box's entries, and their number."""
        at = cost = 0
        for j, digit in enumerate(digits):
            at += digit * self._step(j, cost)
            if digit < self.n_blocks[j] - 1:
                cost = self._raised(cost, j)
        return at, self.sizes[cost]

    @property
    def starts(self) -> Integers:
        """Starts of the boxes' entries, for an index in which every box has some."""
        costs = np.zeros(1, np.int64)
        for n, cost in zip(self.n_blocks, self.costs, strict=True):
            costs = np.add.outer(costs, np.where(np.arange(n) < n - 1, cost, 0)).ravel()
        sizes = np.array(self.sizes)[costs]
        starts: Integers = np.cumsum(sizes) - sizes
        return starts

    @cached_property
    def arrays(self) -> IndexArrays:
        """The same for kernels."""
        p, n_costs = len(self.n_blocks), len(self.sizes)
        steps = [[self._step(j, cost) for cost in range(n_costs)] for j in range(p)]
        return IndexArrays(step=np.array(steps, np.int64), size=np.array(self.sizes, np.int64))


@dataclass(frozen=True)
class SearchPlan:
    """The boxes of a problem and how their entries join."""

    columns: tuple[int, ...]  # (p,): the posterior's columns, the most expensive one last
    n_levels: tuple[int, ...]  # (p,): levels of those columns
    is_nominal: tuple[bool, ...]  # (p,)
    partitions: str  # "subsets" or "levels"
    max_branches: int  # most branches of a split, >= 2
    shift: int  # entries of a box: 1, numbers of leaves; 0, one alone; UNION, sets of used columns
    max_leaves: int  # most leaves of a tree, >= 1, if entries are numbers of leaves
    is_independent: bool  # whether columns vary independently inside a leaf
    n_distinct: int  # distinct rows
    n_whole: int  # integer weights in tables; 0 if weights are not integers

    @classmethod
    def of(cls, posterior: "CascadePosterior", max_leaves: int | None) -> "SearchPlan":
        """Plan the solution of a posterior; `max_leaves` None: entries are not by leaves."""
        model, table = posterior.model, posterior.table
        if model.leaf == "dependent":  # `shallow_trees` sums over their trees
            raise ParameterError(
                'leaf must be "uniform" or "independent" in a sum over all trees, got "dependent"'
            )
        if model.is_generative and posterior.splits.n_kept:
            raise ParameterError(f"max_depth must be None here, got {posterior.splits.max_depth}")
        n_levels = [int(q) for q in posterior.schema.n_levels]
        plan = cls(
            columns=(),
            n_levels=(),
            is_nominal=(),
            partitions=posterior.partitions,
            max_branches=posterior.max_branches,
            shift=0 if max_leaves is None else 1,
            max_leaves=1 if max_leaves is None else max_leaves,
            is_independent=model.leaf == "independent",
            n_distinct=table.n_distinct,
            n_whole=_n_whole_weights(table.weights),
        )
        if max_leaves is None and isinstance(model, BranchModel) and model.feature_inclusion:
            plan = replace(plan, shift=UNION)
        return plan.with_columns(range(len(n_levels)), n_levels, posterior.is_nominal)

    def of_rows(self, table: "Table") -> "SearchPlan":
        """Return the same plan for other rows."""
        return replace(self, n_distinct=table.n_distinct, n_whole=_n_whole_weights(table.weights))

    def with_columns(
        self, columns: Sequence[int], n_levels: Sequence[int], is_nominal: Sequence[bool]
    ) -> "SearchPlan":
        """Return the same plan for other columns, the most expensive last."""

        def dearness(i: int) -> tuple[bool, int]:
            is_grouped = self.partitions == "subsets" and self._most(n_levels[i]) > 2
            return is_grouped, number_of_blocks(n_levels[i], is_nominal[i], self.partitions)

        dearest = max(range(len(columns)), key=dearness)
        order = [i for i in range(len(columns)) if i != dearest] + [dearest]
        return replace(
            self,
            columns=tuple(columns[i] for i in order),
            n_levels=tuple(n_levels[i] for i in order),
            is_nominal=tuple(is_nominal[i] for i in order),
        )

    def _most(self, n_levels: int) -> int:
        return n_levels if self.partitions == "levels" else min(self.max_branches, n_levels)

    # -- boxes and entries -------------------------------------------------------------------------

    @property
    def kinds(self) -> list[tuple[int, bool]]:
        """Levels of each column, and whether it is nominal."""
        return list(zip(self.n_levels, self.is_nominal, strict=True))

    @property
    def most(self) -> int:
        """Most branches of any split."""
        return max(2, *(self._most(q) for q in self.n_levels))

    @cached_property
    def branches(self) -> tuple[int, ...]:
        """The possible numbers of branches, ascending."""
        if self.partitions == "levels":
            return tuple(sorted({q for q in self.n_levels if q > 1}))
        return tuple(range(2, self.most + 1))

    @cached_property
    def costs(self) -> tuple[int, ...]:
        """Least number of leaves outside a box that narrows the column."""
        if self.shift != 1:
            return (0,) * len(self.n_levels)
        return tuple(q - 1 if self.partitions == "levels" else min(q - 1, 1) for q in self.n_levels)

    @cached_property
    def _largest_cost(self) -> int:
        bound = self.max_leaves - 1
        if self.is_independent:  # every box needs the rows of each single level
            bound += max(self.costs)
        return min(bound, sum(self.costs))

    def n_entries(self, cost: int) -> int:
        """Return the number of entries of a box with this cost."""
        if self.shift == 1:
            return max(0, self.max_leaves - cost)
        return 1 if self.shift == 0 else 1 << len(self.columns)

    def index(self, are_shapes: bool = False) -> Index:
        """Return the index of the boxes' entries, or of the shapes'."""
        sizes = (*(self.n_entries(cost) for cost in range(self._largest_cost + 1)), 0)
        return Index(self._block_numbers(are_shapes), self.costs, sizes)

    def count_index(self) -> Index:
        """Return the index of the boxes' counts."""
        sizes = (*(1 for _ in range(self._largest_cost + 1)), 0)
        return Index(self._block_numbers(False), self.costs, sizes)

    def _block_numbers(self, are_shapes: bool) -> tuple[int, ...]:
        return tuple(number_of_blocks(*kind, self.partitions, are_shapes) for kind in self.kinds)

    # -- work and memory ---------------------------------------------------------------------------

    @cached_property
    def n_pairs(self) -> int:
        """Number of two-way partitions of all columns' blocks."""
        if self.partitions == "levels":
            return self.n_levels.count(2)
        return sum(
            _n_of_size(q, m, nominal) * _n_rests(m, r, nominal)
            for q, nominal in self.kinds
            for m in range(2, q + 1)
            for r in range(1, m)
        )

    @cached_property
    def n_terms(self) -> int:
        """Bound on the work of a pass, in pairs of parts (`_WORK`); empty boxes take little."""
        pairs, products = self._joins
        of_box, per_pair = _WORK
        n_terms = of_box * self.count_index().n_entries + pairs + products // per_pair
        return n_terms // (_SHORTER if self.is_short else 1) + self._scattered

    @cached_property
    def _joins(self) -> tuple[int, int]:
        """Numbers of joined pairs of parts, and of products of their entries."""
        blocks = self._block_numbers(False)
        boxes = self._by_cost([n - 1 for n in blocks])
        pairs = products = 0
        for j, (cost, n_blocks) in enumerate(zip(self.costs, blocks, strict=True)):
            narrow, whole = self._column_pairs(j)
            if whole == 0:
                continue
            for c, n_boxes in enumerate(_without(boxes, cost, n_blocks - 1)):
                for n_pairs, spent in ((whole, c), (narrow, c + cost)):
                    each = self._join_products(spent, j)
                    pairs += n_boxes * n_pairs * (each > 0)
                    products += n_boxes * n_pairs * each
        return pairs, products

    def _by_cost(self, narrowed: Sequence[int]) -> list[int]:
        """Return numbers of boxes by cost, given the number of ways to narrow each column."""
        boxes = [1] + [0] * self._largest_cost
        for cost, n in zip(self.costs, narrowed, strict=True):
            boxes = [b + n * boxes[c - cost] if c >= cost else b for c, b in enumerate(boxes)]
        return boxes

    def _column_pairs(self, j: int) -> tuple[int, int]:
        """Numbers of joined pairs of parts for a column's narrower blocks, and for the whole."""
        q, nominal = self.n_levels[j], self.is_nominal[j]
        if self.partitions == "levels":
            return 0, q - 1

        def own(m: int) -> int:
            most = self._most(q)
            return sum(_n_rests(m, r, nominal) * (min(most, r + 1) - 1) for r in range(1, m))

        def all_of(m: int) -> int:
            if self._most(q) == 2 or j == len(self.columns) - 1:
                return own(m)
            return own(m) + sum(_n_rests(m, r, nominal) * own(r) for r in range(2, m))

        return sum(_n_of_size(q, m, nominal) * all_of(m) for m in range(2, q)), all_of(q)

    def _join_products(self, cost: int, j: int) -> int:
        if self.shift == 1:
            n = self.max_leaves - cost
            if self.partitions == "levels":  # each other level has a leaf
                n -= self.n_levels[j] - 2
            return n * (n - 1) // 2 if n > 1 else 0
        return 1 if self.shift == 0 else 1 << 2 * len(self.columns)

    @cached_property
    def _scattered(self) -> int:
        """Number of counted rows in boxes that keep a single level of each column with counts."""
        if self.shift != 1:
            return self.n_distinct
        sets = self._by_cost([min(1, q - 1) for q in self.n_levels])
        return self.n_distinct * sum(sets[self._largest_cost + 1 - max(1, *self.costs) :])

    @cached_property
    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        blocks = self._block_numbers(False)
        row = (self.most + 1) * self.n_entries(0)
        sums = (max(blocks) + blocks[-1] if self.keeps else 2) * row
        tables = 2 * (self.most + max(self.n_levels)) * self.n_whole
        value, count = (10, 2) if self.is_compact else (16, 8)  # of each box
        return (
            value * self.index().n_entries
            + count * self.count_index().n_entries
            + 16 * (self.index(are_shapes=True).n_entries + sums)
            + 8 * tables
            + 16 * self.n_pairs
            # blocks: a few words each, and their levels, on average half of all
            + sum(n * (200 + 4 * q) for q, n in zip(self.n_levels, blocks, strict=True))
        )

    @cached_property
    def is_short(self) -> bool:
        """Whether the short way through lines applies; see `kernels.lines`.

        It does not apply if boxes have several entries, weights are not integers or too many,
        leaves are not uniform, or columns have too many partitions to list.
        """
        is_one = self.shift == 0 and not self.is_independent
        return is_one and self.is_tabulated and self.has_few_ways

    @property
    def is_tabulated(self) -> bool:
        """Whether log gamma functions of all weights are read from tables."""
        return 0 < self.n_whole <= _FEW_ROWS

    @property
    def is_compact(self) -> bool:
        """Whether there are enough boxes to use uint16 counts and int16 exponents."""
        return self.is_short and self.count_index().n_entries >= _MANY_BOXES

    @property
    def has_few_ways(self) -> bool:
        """Whether there are few enough partitions of each column to list."""
        return max(self.n_ways) <= _MOST_WAYS

    @cached_property
    def n_ways(self) -> tuple[int, ...]:
        """Number of partitions of each column."""
        return tuple(n_splits(*kind, self.partitions, self.max_branches) for kind in self.kinds)

    @property
    def keeps(self) -> bool:
        """Whether the sums over partitions of each block of a column are kept."""
        return self.partitions == "subsets" and self.most > 2


def _n_whole_weights(weights: np.ndarray) -> int:
    whole = bool(np.all(weights == np.rint(weights)))
    return int(min(weights.sum() + 2, _FEW_ROWS + 1)) if whole else 0


def number_of_blocks(
    n_levels: int, is_nominal: bool, partitions: str, are_shapes: bool = False
) -> int:
    """Return the number of blocks, or of their shapes, of a column with this many levels left."""
    if partitions == "levels":
        return 1 if n_levels == 1 else 2 if are_shapes else n_levels + 1
    if are_shapes:
        return n_levels
    return (1 << n_levels) - 1 if is_nominal else n_levels * (n_levels + 1) // 2


def _n_of_size(n_levels: int, size: int, is_nominal: bool) -> int:
    return comb(n_levels, size) if is_nominal else n_levels - size + 1


def _n_rests(size: int, rest: int, is_nominal: bool) -> int:
    """Return a block's number of rests of a size: levels outside the part with the lowest."""
    return comb(size - 1, rest) if is_nominal else 1


def _without(boxes: list[int], cost: int, narrowed: int) -> list[int]:
    """Return numbers of boxes by cost without one of the columns."""
    if cost == 0:
        return [n // (1 + narrowed) for n in boxes]
    others: list[int] = []
    for c, n in enumerate(boxes):
        others.append(n - narrowed * others[c - cost] if c >= cost else n)
    return others
