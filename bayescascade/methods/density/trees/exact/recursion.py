"""Running the recursion: it allocates the arrays of the plan, and runs kernels by `pieces`."""

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import TooLargeError
from bayescascade.base.jit import sparing
from bayescascade.methods.density.trees.exact.kernels.boxes import (
    count_boxes,
    count_rows,
    evaluate_boxes,
)
from bayescascade.methods.density.trees.exact.kernels.choices import (
    choose_splits,
    enter_node,
    sum_columns,
)
from bayescascade.methods.density.trees.exact.kernels.flows import share_out
from bayescascade.methods.density.trees.exact.kernels.layout import (
    NO_TABLES,
    RecursionWorkspace,
    Scaled,
    TermArrays,
)
from bayescascade.methods.density.trees.exact.kernels.lines import evaluate_lines
from bayescascade.methods.density.trees.exact.kernels.terms import UNIT
from bayescascade.methods.density.trees.exact.lattice import (
    Lattice,
    short_tables,
    term_arrays,
    weights_of,
)
from bayescascade.methods.density.trees.exact.pieces import (
    PiecewiseCalls,
    Progress,
    open_blocks,
    run_lines,
    workspace_of,
)
from bayescascade.methods.density.trees.exact.plan import SearchPlan

if TYPE_CHECKING:
    from bayescascade.data.table import Table
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior

Counts = NDArray[np.floating[Any]]

_SUBSETS = 256  # sets of columns counted at once
_FEW_TERMS = 20_000  # for all boxes; up to here, splits may be drawn without compiling


class Recursion:
    """The values of all boxes of a lattice.

    counts: weights in all boxes, float64 or uint16, at the places of
    ``lattice.plan.count_index()``; a single zero for shapes, whose `shapes` is None. `memory_limit`
    > 0, bytes, is for all arrays.
    """

    def __init__(
        self,
        lattice: Lattice,
        terms: TermArrays,
        counts: Counts,
        shapes: "Recursion | None",
        memory_limit: float = np.inf,
    ) -> None:
        plan = lattice.plan
        self.lattice, self.terms, self.counts, self.shapes = lattice, terms, counts, shapes
        self.count_index = plan.count_index()
        self.index = plan.index(are_shapes=shapes is None)
        is_short = shapes is not None and plan.is_short
        is_compact = is_short and plan.is_compact
        self._memory_limit = memory_limit
        exponents = np.int16 if is_compact else np.int64
        self.values = no_values(self.index.n_entries, exponents)
        self.tables = None
        if is_short:
            self.tables = short_tables(lattice, terms, weights_of(plan, counts))
        self.work = workspace_of(lattice)
        # arguments of the last run: maximize, closed, tilt
        self.how: tuple[bool, int | None, float] = (False, None, np.nan)

    @classmethod
    def of(
        cls,
        posterior: "CascadePosterior",
        plan: SearchPlan,
        n_jobs: int | None = 1,
        memory_limit: float = np.inf,
    ) -> "Recursion":
        """Return the counted boxes of a plan for a posterior."""
        lattice = Lattice.of(plan, posterior)
        counts = count_all(lattice, posterior.table, n_jobs)
        terms = term_arrays(plan, posterior.model, listed=weights_of(plan, counts))
        shapes = cls(lattice.shapes(), terms, np.zeros(1), None)
        return cls(lattice, terms, counts, shapes, memory_limit)

    def run(
        self,
        maximize: bool = False,
        closed: int | None = None,
        tilt: float = 0.0,
        progress: Progress | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        """Evaluate all boxes, or some; `n_jobs` counts workers as joblib does and changes no value.

        `closed`, a column in the lattice's order, is never split. `tilt` nats are added for each
        leaf. `progress` is called with finished shares. TooLargeError if longer exponents do not
        fit.
        """
        lattice, plan = self.lattice, self.lattice.plan
        index, count_index, arrays = self.index.arrays, self.count_index.arrays, lattice.arrays
        terms = self.terms._replace(per_leaf=self.terms.per_leaf + tilt)
        if closed is not None:
            arrays = arrays._replace(splits=np.arange(len(lattice.blocks)) != closed)
        how = (maximize, closed, tilt)
        shapes_index, shapes = index, no_values(0)
        if self.shapes is None:  # all counts are the single zero
            count_index = count_index._replace(step=np.zeros_like(count_index.step))
        else:
            shapes_index, shapes = self.shapes.index.arrays, self.shapes.values
            if self.shapes.how != how:
                self.shapes.run(maximize, closed=closed, tilt=tilt)
        self.how = how
        flags = open_blocks(lattice, closed)

        def piece(work: RecursionWorkspace, n_fixed: int, is_first: bool, n_lines: int) -> bool:
            if self.tables is not None:
                return evaluate_lines(
                    arrays, index, flags, terms, self.tables, count_index, self.counts,
                    self.values, shapes_index, shapes, work, maximize, n_fixed, is_first, n_lines,
                )  # fmt: skip
            return evaluate_boxes(
                arrays, index, flags, terms, count_index, self.counts, self.values,
                shapes_index, shapes, work, maximize, n_fixed, is_first, n_lines,
            )  # fmt: skip

        self.work.is_wrapped[0] = False
        with sparing(plan.n_terms):
            run_lines(piece, lattice, flags, self.work, progress, n_jobs)
        if self.work.is_wrapped[0]:  # with extreme priors
            self._lengthen()
            self.run(maximize, closed, tilt, progress, n_jobs)

    def _lengthen(self) -> None:
        """Allocate exponents of eight bytes, which take more memory than planned."""
        n_bytes = self.lattice.plan.memory_bytes + 8 * self.index.n_entries
        if n_bytes > self._memory_limit:
            needed = f"{n_bytes / 1e9:.3g} GB for long exponents, as values are extreme"
            raise TooLargeError(f"memory_limit must be at least {needed}", needed)
        self.values = self.values._replace(exponent=np.zeros(self.index.n_entries, np.int64))

    def log_values(self, origin: int = 0) -> Floats:
        """Return logs of the root's entries, -inf without trees; a near `origin` saves digits."""
        return log_of(self.values, self._whole, origin)

    @property
    def origin(self) -> int:
        """The exponent of the largest of the root's entries."""
        return int(self.values.exponent[self._whole].max())

    def _terms_of(self, digits: Integers, entries: Integers) -> float:
        """Return the approximate number of terms to split boxes for entries: half of the pairs."""
        lattice = self.lattice
        if lattice.plan.n_terms > _FEW_TERMS:  # several branches may repeat many terms
            return np.inf
        blocks = lattice.arrays.starts[:-1] + digits
        pairs = lattice.arrays.pair_start[blocks + 1] - lattice.arrays.pair_start[blocks]
        return float((pairs.sum(axis=-1) * (entries + 1)).sum()) / 2

    @property
    def _whole(self) -> slice:
        at, n = self.index.locate(self.lattice.whole)
        return slice(at, at + n)

    def choose(
        self, rng: np.random.Generator, digits: Integers, entries: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Choose a leaf or a split in each box: in proportion to sums, or the best by maxima.

        digits (n, p); entries (n,). Returned, int64: columns split (n,), -1 for a leaf; numbers of
        branches (n,); and blocks and entries of the branches (n, 2, most), by lowest level.
        """
        n, most = len(entries), self.lattice.plan.most
        maximize, _, tilt = self.how
        terms = self.terms._replace(per_leaf=self.terms.per_leaf + tilt)
        columns, n_branches = np.empty(n, np.int64), np.empty(n, np.int64)
        parts = np.empty((n, 2, most), np.int64)
        radix = np.cumprod([1, *(blocks.n_blocks for blocks in self.lattice.blocks[:-1])])
        order = np.argsort(digits @ radix, kind="stable")  # equal boxes in sequence
        with sparing(self._terms_of(digits, entries)):
            choose_splits(
                rng, self.lattice.arrays, self.index.arrays, terms, self.count_index.arrays,
                self.counts, self.values, self.work, maximize, digits[order], entries[order],
                columns, n_branches, parts,
            )  # fmt: skip
        back = np.argsort(order)
        return columns[back], n_branches[back], parts[back]

    def worth(self, digits: Sequence[int]) -> tuple[float, Floats]:
        """Return the log of a box's value as a leaf, and of the factor of b branches, by b."""
        work = self.work
        work.digits[:] = digits
        with sparing(self._terms_of(np.array(digits), np.zeros(1, np.int64))):
            enter_node(
                self.lattice.arrays, self.index.arrays, self.terms, self.count_index.arrays,
                self.counts, work,
            )  # fmt: skip
        (leaf,) = log_of(Scaled(work.total, work.total_exponent), slice(0, 1), 0).tolist()
        return leaf, log_of(Scaled(work.factor, work.factor_exponent), slice(None), 0)

    def again(self) -> "Recursion":
        """Return the same boxes with values of their own."""
        other = copy(self)
        other.values = no_values(self.index.n_entries, self.values.exponent.dtype.type)
        return other

    def share_out(self, root: Floats) -> Floats:
        """Return the part of a new row's probability that stays in each box as a leaf; see `flows`.

        root (n,) float64: the share of each entry of the whole table, divided by its weight plus
        concentrations. Returned (n_entries,) float64, in the first entry of every box.
        """
        lattice, index = self.lattice, self.index.arrays
        flows, row_flows = np.zeros(self.index.n_entries), np.zeros_like(self.work.sums)
        flows[self._whole] = root
        tables = NO_TABLES if self.tables is None else self.tables

        def piece(work: RecursionWorkspace, _: int, is_first: bool, n_lines: int) -> bool:
            return share_out(
                lattice.arrays, index, self.terms, tables, self.count_index.arrays, self.counts,
                self.values, work, lattice.is_alike, flows, row_flows, is_first, n_lines,
            )  # fmt: skip

        with sparing(lattice.plan.n_terms):
            PiecewiseCalls(piece, 1.0, 1.0, None).run(self.work, ())
        return flows

    def first_splits(self, origin: int) -> Floats:
        """Return logs, (p + 1, n_entries), of no split, and of first splits of each column."""
        whole = self.lattice.whole
        _, n = self.index.locate(whole)
        sums = no_values((len(whole) + 1) * n)
        self.work.digits[:] = whole
        with sparing(self._terms_of(np.array(whole), np.arange(n))):
            sum_columns(
                self.lattice.arrays, self.index.arrays, self.terms, self.count_index.arrays,
                self.counts, self.values, self.work, sums,
            )  # fmt: skip
        return log_of(sums, slice(None), origin).reshape(-1, n)


def log_of(numbers: Scaled, where: slice, origin: int) -> Floats:
    """Return the logs of some numbers, nats, minus that of a power with the exponent `origin`."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(numbers.mantissa[where])
    return logs + (numbers.exponent[where].astype(np.int64) - origin) * UNIT


def count_all(lattice: Lattice, table: "Table", n_jobs: int | None = 1) -> Counts:
    """Return the weight of the rows in every box that has counts."""
    plan = lattice.plan
    index = plan.count_index()
    counts: Counts = np.zeros(index.n_entries, np.uint16 if plan.is_compact else np.float64)
    row_codes = np.ascontiguousarray(table.codes[list(plan.columns)].T)
    subsets = _narrowest(plan.costs, plan.n_levels, len(index.sizes) - 2)
    while subset := list(islice(subsets, _SUBSETS)):
        with sparing(len(subset) * row_codes.size):
            count_rows(
                lattice.arrays, index.arrays, row_codes, table.weights, np.array(subset), counts
            )
    flags = open_blocks(lattice, None)

    def piece(work: RecursionWorkspace, n_fixed: int, is_first: bool, n_lines: int) -> bool:
        return count_boxes(
            lattice.arrays, index.arrays, flags, counts, work, n_fixed, is_first, n_lines
        )

    with sparing(plan.n_terms):
        run_lines(piece, lattice, flags, workspace_of(lattice), None, n_jobs)
    return counts


def _narrowest(
    costs: Sequence[int], n_levels: Sequence[int], largest: int
) -> Iterator[tuple[bool, ...]]:
    """Yield the maximal sets of columns that can be narrowed together."""
    behind = [sum(costs[j + 1 :]) for j in range(len(costs))]
    stack: list[tuple[tuple[bool, ...], int]] = [((), 0)]
    while stack:
        chosen, cost = stack.pop()
        j = len(chosen)
        if j == len(costs):
            if all(
                inside or q == 1 or cost + c > largest
                for inside, q, c in zip(chosen, n_levels, costs, strict=True)
            ):
                yield chosen
            continue
        if n_levels[j] == 1 or cost + costs[j] + behind[j] > largest:  # this column may not fit
            stack.append(((*chosen, False), cost))
        if n_levels[j] > 1 and cost + costs[j] <= largest:
            stack.append(((*chosen, True), cost + costs[j]))


def no_values(n: int, exponents: type = np.int64) -> Scaled:
    """Return n zeros."""
    return Scaled(np.zeros(n), np.zeros(n, exponents))
