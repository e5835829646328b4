"""The boxes with two or more distinct rows, if each level of a split has its own branch.

The value of a box without rows depends on the columns that are left whole; the value of a box with
a single distinct row also on its weight and widths, see `kernels.shared`. Nearly all boxes of a
table with many columns are of these two kinds. The others are counted, one by one, before arrays
are allocated for them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from itertools import groupby
from math import fsum, prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.jit import sparing
from bayescascade.base.threads import n_threads_of
from bayescascade.base.watch import check_time, watch_in_use
from bayescascade.methods.density.trees.exact.kernels.layout import Scaled, TermArrays
from bayescascade.methods.density.trees.exact.kernels.shared import (
    SharedArrays,
    SharedWorkspace,
    count_sets,
    evaluate_sets,
    tabulate,
    weigh_splits,
)
from bayescascade.methods.density.trees.exact.lattice import Lattice, term_arrays
from bayescascade.methods.density.trees.exact.pieces import Progress
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.recursion import Recursion, log_of, no_values

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior


_MOST_COLUMNS, _MOST_BOXES = 28, 1 << 31
_MOST_CELLS = 1 << 50  # bounds the exponents of sums over trees
_PIECE = 1 << 21  # most rows times sets between checks for an interrupt
_MANY_VISITS = 1e8  # from here on, threads share the work
_BYTES_OF_SET, _BYTES_OF_BOX, _BYTES_OF_WORTH = 12, 20, 16
_MOST_TABULATED = 1 << 16  # most rows with a table of split factors
_AS_GOOD = 1.0 - 2.0**-45  # share of the largest: differs by more than rounding


class SharedBoxes:
    """The boxes with two or more distinct rows; it has the methods of `Recursion`.

    The lattice is of partitions by levels, with one entry a box. codes (n_columns, N) uint16: the
    distinct rows; weights (N,) float64. `shapes` is the same without rows. `n_visits` counts rows
    of boxes, once for each column that is left whole.
    """

    def __init__(
        self, lattice: Lattice, terms: TermArrays, codes: NDArray[np.uint16], weights: Floats
    ) -> None:
        self.lattice, self.terms = lattice, terms
        n_levels = np.array(lattice.plan.n_levels)
        self._columns = np.flatnonzero(n_levels > 1)
        self._p, self._n = p, n = int(self._columns.size), int(codes.shape[1])
        starts, log_width = lattice.arrays.starts, lattice.arrays.log_width
        constant = log_width[starts[:-1][n_levels == 1]].ravel().tolist()
        self._arrays = SharedArrays(
            codes=np.ascontiguousarray(codes[self._columns]),
            weights=np.array(weights),
            n_levels=n_levels[self._columns],
            splits=np.ones(p, np.bool_),
            starts=starts[self._columns],
            log_width=log_width,
            constant=np.array([fsum(constant), fsum([*constant, -fsum(constant)])]),
            pattern=np.zeros(n, np.int64),
            rows=np.zeros(0, np.int64),
            begin=np.zeros(1, np.int64),
            steps=np.zeros((0, p), np.int64),
            set_start=np.zeros((1 << p) + 1 if n else 1, np.int64),
            first=np.zeros(0, np.int32),
        )
        self._arrays = self._with_patterns(None)
        self._way_columns = np.concatenate([[-1], self._columns])
        self._way_branches = np.concatenate([[0], self._arrays.n_levels])
        self._outside = self._values = no_values(0)
        self._work = self._new_workspace()
        self._how: tuple[bool, int | None, float] = (False, None, 0.0)
        self.n_boxes = self.n_visits = 0
        self.shapes = SharedBoxes(lattice, terms, codes[:, :0], weights[:0]) if n else self

    @classmethod
    def of(
        cls, posterior: "CascadePosterior", plan: SearchPlan, memory_limit: float, work_limit: float
    ) -> "SharedBoxes | None":
        """Count a plan's boxes; None if they exceed the limits or are of another kind."""
        p = sum(q > 1 for q in plan.n_levels)
        if plan.partitions != "levels" or plan.shift != 0 or not 0 < p <= _MOST_COLUMNS:
            return None
        if _BYTES_OF_SET << p > memory_limit or prod(plan.n_levels) > _MOST_CELLS:
            return None
        codes = posterior.table.codes[list(plan.columns)].astype(np.uint16)
        weights = posterior.table.weights
        if len(plan.columns) < len(posterior.is_nominal):
            codes, rows = np.unique(codes, axis=1, return_inverse=True)
            weights = np.bincount(rows.reshape(-1), weights, codes.shape[1]).astype(np.float64)
        plan = replace(plan, n_whole=min(plan.n_whole, _MOST_TABULATED))
        boxes = cls(Lattice.of(plan, posterior), term_arrays(plan, posterior.model), codes, weights)
        return boxes if boxes.count(memory_limit, work_limit) else None

    # -- sizes -------------------------------------------------------------------------------------

    def count(self, memory_limit: float = np.inf, work_limit: float = np.inf) -> bool:
        """Count the boxes; False as soon as they exceed the limits in bytes or terms."""
        counts, totals = np.zeros(1 << self._p, np.int32), np.zeros(2, np.int64)
        work = self._new_workspace()
        for top in range(self._n_tops):
            check_time()
            with sparing(self._n << self._p):
                count_sets(self._arrays, work, top, self._n_low, counts, totals)
            self.n_boxes, self.n_visits = totals.tolist()
            if self.memory_bytes > memory_limit or self.n_terms > work_limit:
                return False
        if self._n > 0:
            np.cumsum(counts, out=self._arrays.set_start[1:])
        return self.n_boxes < _MOST_BOXES

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        tables = self.terms.log_gamma.size + self.terms.leaf_log_gamma.size
        return (
            (_BYTES_OF_SET << self._p)
            + _BYTES_OF_BOX * self.n_boxes
            + _BYTES_OF_WORTH * self._n_worths
            + 8 * tables
            + 8 * (self._p + 1) * (2 * self._n + int(self._arrays.rows.size))
        )

    @property
    def n_terms(self) -> int:
        """Work of one pass, as in `ExactCost`."""
        per_set = 8 + self._p * int(self._arrays.rows.size)  # to find patterns
        of_tables = 2 * self._p * self._n_worths
        return self.n_visits // 3 + 2 * self.n_boxes + (per_set << self._p) // 32 + of_tables

    @property
    def _n_worths(self) -> int:
        return int(self._arrays.begin[-1])

    @property
    def _n_low(self) -> int:
        """Number of columns whose bits vary inside a piece."""
        return min(self._p, max(0, (_PIECE // max(self._n, 1)).bit_length() - 1))

    @property
    def _n_tops(self) -> int:
        return 1 << self._p - self._n_low

    def _with_patterns(self, closed: int | None) -> SharedArrays:
        """Find the patterns of rows, see `kernels.shared.tabulate`; `closed` is never split."""
        arrays, p, n = self._arrays, self._p, self._n
        splits = self._columns != (-1 if closed is None else closed)
        kinds: dict[tuple[float, ...], int] = {}

        def kind(k: int, *widths: float) -> int:
            key = (float(arrays.n_levels[k]), float(splits[k]), *widths)
            return kinds.setdefault(key, len(kinds))

        of_rows = np.empty((n, p))
        for k, j in enumerate(self._columns):
            widths = self.lattice.widths[j]
            of_level = [kind(k, widths.sum(), width) for width in widths.tolist()]
            of_rows[:, k] = np.array(of_level)[arrays.codes[k]]
        keys = np.column_stack([arrays.weights, of_rows])
        found, rows, pattern = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        classes = np.vstack([[kind(k) for k in range(p)], found[:, 1:]])
        alike = [classes == classes[:, [k]] for k in range(p)]
        first = np.column_stack([same.argmax(axis=1) for same in alike])
        n_alike = np.column_stack([same.sum(axis=1) for same in alike])
        radix = np.where(first == np.arange(p), n_alike + 1, 1)
        sizes = np.column_stack([np.ones(len(classes), np.int64), np.cumprod(radix, axis=1)])
        return arrays._replace(
            splits=splits,
            pattern=pattern.reshape(-1).astype(np.int64) + 1,
            rows=np.concatenate([[-1], rows]).astype(np.int64),
            begin=np.concatenate([[0], np.cumsum(sizes[:, -1])]),
            steps=np.take_along_axis(sizes[:, :-1], first, axis=1),
        )

    def _new_workspace(self) -> SharedWorkspace:
        p, n = self._p, self._n
        q = max(2, *self.lattice.plan.n_levels)
        return SharedWorkspace(*(
            np.zeros((p + 1, max(n, 1)), np.int32), np.zeros((p + 1, n // 2 + 2), np.int64),
            *np.zeros((2, p + 1), np.int64), np.zeros(self._arrays.rows.size, np.int64),
            np.full((p, n), -1, np.int32), np.ones((p, q + 1)), np.zeros((p, q + 1), np.int64),
            np.zeros(2), np.zeros(q, np.int64), np.zeros(q), np.zeros(q, np.int64),
            np.ones(self.lattice.plan.most + 1), np.zeros(self.lattice.plan.most + 1, np.int64),
            np.ones(1),
        ))  # fmt: skip

    def again(self) -> "SharedBoxes":
        """Return the same boxes with values of their own."""
        other = copy(self)
        other._values = no_values(0)
        return other

    # -- values ------------------------------------------------------------------------------------

    def run(
        self,
        maximize: bool = False,
        *,
        closed: int | None = None,
        tilt: float = 0.0,
        progress: Progress | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        """Evaluate all boxes; the parameters are those of `Recursion.run`."""
        if self.shapes is not self:
            self.shapes.run(maximize, closed=closed, tilt=tilt)
        if self._values.mantissa.size < self.n_boxes:
            self._values = no_values(self.n_boxes)
            self._arrays = self._arrays._replace(first=np.zeros(self.n_boxes, np.int32))
        if closed != self._how[1]:
            self._arrays = self._with_patterns(closed)
        self._how = maximize, closed, tilt
        arrays, terms = self._arrays, self._tilted_terms
        self._work = work = self._new_workspace()
        self._outside = no_values(self._n_worths)
        with sparing(self._n_worths * self._p**2):
            tabulate(arrays, terms, self._outside, self._values, work, maximize)

        watch = watch_in_use()

        def piece(top: int) -> int:
            watch.check()
            own = work if n_threads == 1 else self._new_workspace()
            with sparing(self.n_visits / self._n_tops):
                evaluate_sets(
                    arrays, terms, self._outside, self._values, own, top, self._n_low, maximize
                )
            first, last = top << self._n_low, top + 1 << self._n_low
            return int(arrays.set_start[last] - arrays.set_start[first])

        n_threads = n_threads_of(n_jobs) if self.n_visits > _MANY_VISITS else 1
        done = 0
        with ThreadPoolExecutor(n_threads) as pool:
            each = map if n_threads == 1 else pool.map
            tops = sorted(range(self._n_tops if self.n_boxes else 0), key=int.bit_count)[::-1]
            for _, wave in groupby(tops, int.bit_count):
                for n_boxes in each(piece, list(wave)):
                    done += n_boxes
                    if progress is not None:
                        progress(done / self.n_boxes)

    @property
    def _tilted_terms(self) -> TermArrays:
        return self.terms._replace(per_leaf=self.terms.per_leaf + self._how[2])

    def _weigh(self, digits: Sequence[int]) -> Scaled:
        """Return the value of a box as a leaf, and by splits of each column."""
        arrays, worth = self._arrays, no_values(self._columns.size + 1)
        of_columns = np.array(digits, np.int64)[self._columns]
        codes = np.where(of_columns < arrays.n_levels, of_columns, -1)
        with sparing(arrays.codes.size):
            weigh_splits(
                arrays, self._tilted_terms, self._outside, self._values, self._work, codes, worth
            )
        return worth

    def log_values(self, origin: int = 0) -> Floats:
        """Return the log of the sum over all trees, (1,) float64 nats; see `Recursion`."""
        worth = log_of(self._weigh(self.lattice.whole), slice(None), origin)
        return np.array([worth.max() if self._how[0] else logsumexp(worth)])

    @property
    def origin(self) -> int:
        """The approximate exponent of the sum over all trees."""
        return int(self._weigh(self.lattice.whole).exponent.max())

    def first_splits(self, origin: int, digits: Sequence[int] | None = None) -> Floats:
        """Return logs of no split, and of first splits of each column; see `Recursion`.

        digits: the box; by default the whole table.
        """
        worth = np.full((len(self.lattice.whole) + 1, 1), -np.inf)
        box = self.lattice.whole if digits is None else digits
        found = log_of(self._weigh(box), slice(None), origin)
        worth[np.concatenate([[0], self._columns + 1]), 0] = found
        return worth

    def choose(
        self, rng: np.random.Generator, digits: Integers, entries: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Choose a leaf or a split in each box; see `Recursion`."""
        boxes, box = np.unique(digits, axis=0, return_inverse=True)
        order = np.argsort(box.reshape(-1), kind="stable")
        bounds = np.searchsorted(box.reshape(-1)[order], np.arange(len(boxes) + 1))
        ways = np.empty(len(entries), np.int64)
        for own, low, high in zip(boxes.tolist(), bounds[:-1], bounds[1:], strict=True):
            worth = self._weigh(own)
            log_worth = log_of(worth, slice(None), int(worth.exponent.max()))
            shares = np.exp(log_worth - log_worth.max())
            if self._how[0]:
                ways[order[low:high]] = np.argmax(shares >= _AS_GOOD)
            else:
                chosen = rng.choice(shares.size, high - low, p=shares / shares.sum())
                ways[order[low:high]] = chosen
        parts = np.zeros((len(entries), 2, self.lattice.plan.most), np.int64)
        parts[:, 0] = np.arange(self.lattice.plan.most)  # each level has its own branch
        return self._way_columns[ways], self._way_branches[ways], parts


Boxes: TypeAlias = Recursion | SharedBoxes
"""Values of boxes, which determine trees; `Recursion` documents the common methods."""
