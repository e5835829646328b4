"""Running the recursion: allocates what the plan announced, in pieces that can be interrupted."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.cascades.exact import kernels
from bayescascade.cascades.exact.kernels import UNIT, Scaled
from bayescascade.cascades.exact.lattice import Lattice

if TYPE_CHECKING:
    from bayescascade.table import Table

__all__ = ["Progress", "Recursion", "count_all"]

Flags = NDArray[np.bool_]
Progress = Callable[[float], None]

_PIECE = 0.2  # seconds between looks for an interrupt
_FIRST_LINES = 64  # of the first piece, before it is known how long lines take
_SUBSETS = 256  # sets of columns counted at once


class Recursion:
    """The values of all boxes of a lattice.

    Parameters
    ----------
    lattice : Lattice
    terms : TermArrays
    counts : float64
        Of all boxes, at the places of ``lattice.plan.count_index()``; one zero for shapes.
    shapes : Recursion or None
        The values of the boxes' shapes; None if this lattice is one of shapes.
    """

    def __init__(
        self,
        lattice: Lattice,
        terms: kernels.TermArrays,
        counts: NDArray[np.float64],
        shapes: "Recursion | None",
    ) -> None:
        plan = lattice.plan
        self.lattice = lattice
        self.terms = terms
        self.counts = counts
        self.shapes = shapes
        self.count_index = plan.count_index()
        is_shape = shapes is None
        self.index = plan.shape_index(lattice.closed) if is_shape else plan.index(lattice.closed)
        self.values = _no_values(self.index.n_entries)
        self.work = new_work(lattice)
        self.maximize = False

    def run(
        self,
        maximize: bool = False,
        is_open: Sequence[Flags] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Evaluate all boxes, or those of open blocks; progress is told shares done in [0, 1]."""
        self.maximize = maximize
        lattice, index, count_index = self.lattice, self.index.arrays, self.count_index.arrays
        shapes_index, shapes = index, _no_values(0)
        if self.shapes is None:  # all counts are the one zero
            count_index = count_index._replace(step=np.zeros_like(count_index.step))
        else:
            shapes_index, shapes = self.shapes.index.arrays, self.shapes.values
            if self.shapes.maximize != maximize:
                self.shapes.run(maximize)
        flags = _open_blocks(lattice, is_open)

        def piece(is_first: bool, n_lines: int) -> bool:
            return kernels.evaluate_boxes(
                lattice.arrays, index, flags, self.terms, count_index, self.counts, self.values,
                shapes_index, shapes, self.work, maximize, is_first, n_lines,
            )  # fmt: skip

        _in_pieces(piece, _n_lines(lattice), progress)

    def log_values(self, digits: Sequence[int]) -> NDArray[np.float64]:
        """Return the logs of a box's entries, nats; -inf where there is no tree."""
        at, n = self.index.locate(digits)
        return log_of(self.values, slice(at, at + n))

    def count(self, digits: Sequence[int]) -> float:
        """Return the weight of the rows in a box."""
        return float(self.counts[self.count_index.locate(digits)[0]])

    def log_leaf(self, digits: Sequence[int]) -> float:
        """Return the log of what a box is worth as a leaf, nats."""
        arrays, terms, count = self.lattice.arrays, self.terms, self.count(digits)
        value = self._log_share(count) - (terms.rate if terms.is_branch else 0.0)
        if not terms.independent:
            blocks = arrays.starts[:-1] + np.array(digits)
            return value - count * float(arrays.log_width[blocks].sum())
        alpha = terms.leaf_alpha
        for j, (blocks, widths) in enumerate(
            zip(self.lattice.blocks, self.lattice.widths, strict=True)
        ):
            codes = blocks.codes[digits[j]]
            inside = np.array([count])
            if codes.size > 1:
                base, stride = self.count_index.children(digits, j)
                inside = self.counts[base + blocks.single[codes] * stride]
            value += gammaln(codes.size * alpha) - gammaln(codes.size * alpha + count)
            value += float(np.sum(gammaln(inside + alpha) - gammaln(alpha)))
            value -= float(np.dot(inside, np.log(widths[codes])))
        return float(value)

    def log_factor(self, digits: Sequence[int], branches: int) -> float:
        """Return the log of what a split of a box is worth, but for its branches, nats."""
        if not self.terms.is_branch:
            return 0.0
        count = self.count(digits)
        value = self._log_share(count) + self.terms.log_split[branches]
        return float(value - gammaln(branches * self.terms.alpha + count))

    def _log_share(self, count: float) -> float:
        return float(gammaln(count + self.terms.alpha) - gammaln(self.terms.alpha))


def log_of(numbers: Scaled, where: slice | NDArray[np.int64]) -> NDArray[np.float64]:
    """Return logs, nats, of some scaled numbers."""
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(numbers.mantissa[where])
    return logs + numbers.exponent[where] * UNIT


def new_work(lattice: Lattice) -> kernels.Work:
    """Allocate the scratch of a recursion."""
    plan, n_blocks = lattice.plan, [blocks.n_blocks for blocks in lattice.blocks]
    line = n_blocks[-1] if plan.keeps else 1
    side = max(n_blocks) if plan.keeps else 1
    return kernels.new_work(len(n_blocks), plan.most, plan.n_entries(0), line, side)


def count_all(lattice: Lattice, table: "Table") -> NDArray[np.float64]:
    """Return the weight of the rows in every box that has counts."""
    plan = lattice.plan
    index = plan.count_index()
    counts = np.zeros(index.n_entries)
    row_codes = np.ascontiguousarray(table.codes[list(plan.columns)].T)
    subsets = _narrowest(plan.costs, plan.n_levels, len(index.sizes) - 2)
    while subset := list(islice(subsets, _SUBSETS)):
        kernels.count_rows(
            lattice.arrays, index.arrays, row_codes, table.weights, np.array(subset), counts
        )
    flags, work = _open_blocks(lattice, None), new_work(lattice)

    def piece(is_first: bool, n_lines: int) -> bool:
        return kernels.count_boxes(
            lattice.arrays, index.arrays, flags, counts, work, is_first, n_lines
        )

    _in_pieces(piece, _n_lines(lattice), None)
    return counts


def _narrowest(
    costs: Sequence[int], n_levels: Sequence[int], largest: int
) -> Iterator[tuple[bool, ...]]:
    """Yield the sets of columns that can be narrowed together, to which no column can be added."""
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
        if n_levels[j] == 1 or cost + costs[j] + behind[j] > largest:  # may have to be left out
            stack.append(((*chosen, False), cost))
        if n_levels[j] > 1 and cost + costs[j] <= largest:
            stack.append(((*chosen, True), cost + costs[j]))


def _open_blocks(lattice: Lattice, is_open: Sequence[Flags] | None) -> Flags:
    if is_open is not None:
        return np.concatenate(is_open)
    whole = [blocks.n_blocks - 1 for blocks in lattice.blocks]
    flags = (np.arange(w + 1) >= (w if j in lattice.closed else 0) for j, w in enumerate(whole))
    return np.fromiter(chain.from_iterable(flags), np.bool_)


def _n_lines(lattice: Lattice) -> int:
    """Return how many lines there are at most."""
    n = 1
    for j, blocks in enumerate(lattice.blocks[:-1]):
        n *= 1 if j in lattice.closed else blocks.n_blocks
    return n


def _in_pieces(piece: Callable[[bool, int], bool], n_lines: int, progress: Progress | None) -> None:
    """Call a kernel for as many lines at a time as take a fraction of a second."""
    done, size, is_first, is_left = 0, _FIRST_LINES, True, True
    while is_left:
        started = perf_counter()
        is_left = piece(is_first, size)
        seconds = perf_counter() - started
        done += size
        is_first = False
        if progress is not None:
            progress(min(done / n_lines, 1.0) if is_left else 1.0)
        if seconds < _PIECE / 2:
            size *= 2
        elif seconds > 2 * _PIECE:
            size = max(1, size // 2)


def _no_values(n: int) -> Scaled:
    return Scaled(np.zeros(n), np.zeros(n, np.int32))
