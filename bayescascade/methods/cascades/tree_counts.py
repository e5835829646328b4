"""The number of splits of a box, and the number of trees with each number of leaves.

The generative prior draws from the splits. A column with m >= 2 remaining levels has one split by
"levels". By "subsets" it has as many splits as partitions of its levels into 2 .. B blocks: the sum
over b of Stirling numbers of the second kind, S(m, b), or of C(m - 1, b - 1) if levels are ordered.
The order of blocks does not matter.

The prior "size" divides by the numbers of trees. Without rows a box is a *shape*: the kinds of its
columns, and their numbers of remaining levels. ``N_K(S)`` trees below a shape S have K leaves: one
tree is a single leaf, and in any other the leaves of the branches add up. The partitions of a
column's m levels into 2 .. b blocks give, with N(a) for the shape with a of these levels left, ::

    Q_b(m) = sum over the size a < m of the block that holds the lowest level of
             C(m - 1, a - 1) N(a) (N(m - a) + Q_(b-1)(m - a)),

and ordered columns have 1 instead of the binomial. The order of columns does not matter, so there
are few shapes. Below a shape, the number of relevant leaves is the allowed number minus one for
each other branch.

**Rounding.** No term is negative. A split into b branches has b - 1 multiplications, and an entry
of K leaves has at most K additions for each term of its shape, so ``ln N_K`` is off by as many
units of rounding for each leaf. Sums and chains all use the computed numbers, which define the
prior. So their error matters only to its sum over all trees.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from heapq import heappop, heappush
from itertools import groupby
from math import comb, log, prod

import numpy as np
from scipy.special import gammaln, logsumexp

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import TooLargeError
from bayescascade.base.jit import sparing
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.kernels.products import ZERO, add_products
from bayescascade.methods.cascades.tree import Tree, level_starts, levels_left, root_box
from bayescascade.model.guard import EVALUATED, UNIT, log_gamma_sizes

Column = tuple[bool, int]  # whether its levels are unordered, and the number of remaining levels
Shape = tuple[Column, ...]  # sorted, without columns of one remaining level
Scaled = tuple[Floats, Integers]  # entries by leaves from one on: mantissas and powers

_MOST_LISTED = 1 << 16  # numbers of leaves
_MOST_JOINS = 100_000  # joins of two shapes, or powers of one
_MOST_PRODUCTS = 4e9  # some ten seconds
_MOST_NUMBERS = 3e7  # stored numbers of 16 bytes
_HALVES = np.ldexp(1.0, -np.arange(1000))


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
        left = levels_left(self.schema, tree.boxes(root_box(self.schema)))
        starts = level_starts(self.schema)[:-1]
        n_left = np.add.reduceat(left.astype(np.int64), starts, axis=1)
        ways = self.log_ways[np.arange(starts.size), n_left]
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


@dataclass(frozen=True, eq=False)
class TreeCounts:
    """The numbers of trees of 1, 2, .. leaves."""

    logs: Floats  # (most,), nats; interpolated if there is no tree
    is_possible: Flags  # (most,): whether a tree can have that number of leaves
    n_terms: int  # most terms in the sum for a shape

    def log_prior_sum(self, rate: float) -> tuple[float, float]:
        """Return the log total of the prior "size" over numbers of leaves, and its error, nats."""
        k = np.flatnonzero(self.is_possible).astype(np.float64) + 1.0
        logs = -rate + k * np.log(rate) - gammaln(k + 1.0)
        sizes = rate + k * abs(np.log(rate)) + log_gamma_sizes(k + 1.0)
        off = UNIT * (EVALUATED * (sizes + self.logs[self.is_possible]) + self.n_terms * k * k)
        found = float(logsumexp(logs))
        return found, float(logsumexp(logs + off)) - found


def count_trees(
    schema: Schema, partitions: str, max_branches: int | None, max_leaves: int | None
) -> TreeCounts:
    """Return the numbers of trees that a table's columns allow.

    The parameters are those of `LeafPosterior`; without `max_leaves`, up to as many leaves as
    cells.
    """
    by_levels = partitions == "levels"
    whole, levels = _whole(schema, by_levels), _whole(schema, True)
    widest = max((q for _, q in whole), default=1)
    branches = 0 if by_levels or max_branches is None or max_branches >= widest else max_branches
    most = min(prod(q for _, q in whole), max_leaves or 1 << 62)
    if _fits(whole, by_levels, branches, most):
        return _count(whole, by_levels, branches, most)
    fitting = _largest(lambda k: _fits(whole, by_levels, branches, k), most)
    would = [f"max_leaves={fitting}"] if fitting > 1 else []
    if not by_levels and _fits(levels, True, 0, most):
        would.append('partitions="levels"')
    would.append('prior="generative"')
    needed = f"the numbers of trees of up to {most:,} leaves"
    raise TooLargeError(
        f'prior must not be "size" if there are too many trees to count, got "size", '
        f"which needs {needed}; what would fit: {'; '.join(would)}",
        needed,
    )


def _whole(schema: Schema, by_levels: bool) -> Shape:
    """Return the shape of all columns."""
    return _shape((by_levels or c.kind == "nominal", c.n_levels) for c in schema.columns)


def _shape(columns: Iterable[Column]) -> Shape:
    """Return the shape of some columns; the order of two levels does not matter."""
    return tuple(sorted((free or n == 2, n) for free, n in columns if n > 1))


def _with(others: Shape, column: Column, n_levels: int) -> Shape:
    """Return a shape with one more column, of the same kind, with some remaining levels."""
    return _shape([*others, (column[0], n_levels)])


def _columns(shape: Shape) -> Iterator[tuple[Column, int, Shape]]:
    """Yield each distinct column of a shape, its multiplicity, and the shape of the others."""
    at = 0
    for column, alike in groupby(shape):
        yield column, (n := sum(1 for _ in alike)), shape[:at] + shape[at + 1 :]
        at += n


# -- what it takes ---------------------------------------------------------------------------------


def _limits(whole: Shape, by_levels: bool, most: int) -> dict[Shape, int]:
    """Return shapes, larger ones first, with their relevant leaves; empty if there are too many."""
    limits, found, n_joins, n_numbers = {whole: most}, dict[Shape, int](), 0, 0
    queue = [(0, whole)]
    while queue:
        _, shape = heappop(queue)
        found[shape] = limit = min(limits[shape], prod(q for _, q in shape))
        n_joins += sum(m - 1 for (_, m), _, _ in _columns(shape))
        n_numbers += limit * (1 + len(shape))
        if n_joins > _MOST_JOINS or n_numbers > _MOST_NUMBERS:
            return {}
        for column, _, others in _columns(shape):
            left = limit - (column[1] - 1 if by_levels else 1)  # each other branch has a leaf
            sizes = range(1, 2 if by_levels else column[1])
            for child in (_with(others, column, n) for n in sizes if left > 0):
                if child not in limits:
                    heappush(queue, (-sum(q for _, q in child), child))
                limits[child] = max(limits.get(child, 0), left)
    return found


def _fits(whole: Shape, by_levels: bool, branches: int, most: int) -> bool:
    """Whether trees of up to `most` leaves can be counted; branches 0: any number of branches."""
    most = min(most, prod(q for _, q in whole))
    if most > _MOST_LISTED:
        return False
    limits = _limits(whole, by_levels, most)
    return len(limits) > 0 and _n_products(limits, by_levels, branches) <= _MOST_PRODUCTS


def _n_products(limits: dict[Shape, int], by_levels: bool, branches: int) -> float:
    """Return a bound on the number of products of entries."""
    n_products = 0.0
    for shape, limit in limits.items():
        for column, _, others in _columns(shape):
            m = column[1]
            if by_levels:
                own = limits.get(others, 0)
                pairs = [(own, min(b * own, limit)) for b in range(1, m)]
            else:
                sizes = [limits.get(_with(others, column, n), 0) for n in range(1, m)]
                pairs = list(zip(sizes, sizes[::-1], strict=True)) * len(_keys(m, branches))
            n_products += sum(min(float(n) * k, limit * limit / 2.0) for n, k in pairs)
    return n_products


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the approximate largest number of leaves that fits, at least 1."""
    low, high = 1, 2
    while high < most and fits(high):
        low, high = high, 2 * high
    while high - low > 1 + low // 20:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


# -- counting --------------------------------------------------------------------------------------


@lru_cache(8)
def _count(whole: Shape, by_levels: bool, branches: int, most: int) -> TreeCounts:
    limits = _limits(whole, by_levels, most)
    numbers: dict[Shape, Scaled] = {}
    shared: dict[tuple[Shape, Column, int], Scaled] = {}  # N + Q_b, by others, column and b
    with sparing(_n_products(limits, by_levels, branches)):
        for shape, limit in reversed(limits.items()):
            own = _zeros(limit)
            own[0][0], own[1][0] = 1.0, 0  # a leaf
            sums = []
            for column, n_alike, others in _columns(shape):
                if limit < 2 or (by_levels and others not in limits):
                    continue
                if by_levels:
                    found = {0: _power(numbers[others], column[1], limit)}
                else:
                    found = _partitioned(numbers, shared, column, others, branches, limit)
                sums.append((column, others, found))
                own = _plus(own, found[_keys(column[1], branches)[-1]], n_alike)
            numbers[shape] = own
            if branches != 2 and not by_levels:
                for column, others, found in sums:
                    shared.update({(others, column, b): _plus(own, q) for b, q in found.items()})
    mantissas, powers = numbers[whole]
    is_possible = mantissas > 0.0
    k = np.flatnonzero(is_possible)
    logs = np.interp(np.arange(most), k, np.log(mantissas[k]) + powers[k] * np.log(2.0))
    return TreeCounts(logs, is_possible, 8 + sum(q for _, q in whole))


def _keys(n_levels: int, branches: int) -> range:
    """Return the b of the necessary ``Q_b`` of a column, its own last; 0: for any number."""
    return range(2, min(branches, n_levels) + 1) if branches else range(1)


def _partitioned(
    numbers: dict[Shape, Scaled],
    shared: dict[tuple[Shape, Column, int], Scaled],
    column: Column,
    others: Shape,
    branches: int,
    limit: int,
) -> dict[int, Scaled]:
    """Return the ``Q_b`` of a column's levels, given the other columns' shape."""
    (is_nominal, m), found = column, {}
    for b in _keys(m, branches):
        found[b] = total = _zeros(limit)
        for a in range(1, m):
            mantissas, powers = numbers[_with(others, column, a)]
            rest = _with(others, column, m - a)
            right = numbers[rest]
            key = min(b - 1, m - a) if branches else 0
            if m - a > 1 and key != 1:
                part = (is_nominal or m - a == 2, m - a)
                right = shared.get((others, part, key), right)  # if it has two leaves or more
            times = float(comb(m - 1, a - 1)) if is_nominal else 1.0
            add_products(mantissas * times, powers, *right, _HALVES, *total)
    return found


def _power(base: Scaled, exponent: int, limit: int) -> Scaled:
    """Return the product of this many equal entries."""
    found = base
    for _ in range(exponent - 1):
        product = _zeros(limit)
        add_products(*base, *found, _HALVES, *product)
        found = product
    return found


def _zeros(n: int) -> Scaled:
    return np.zeros(n), np.full(n, ZERO)


def _plus(one: Scaled, other: Scaled, times: int = 1) -> Scaled:
    """Return the sum of entries, with a factor for the others."""
    powers = np.maximum(one[1], other[1])
    lower = [np.maximum(p - powers, -_HALVES.size).astype(np.int32) for p in (one[1], other[1])]
    return np.ldexp(one[0], lower[0]) + times * np.ldexp(other[0], lower[1]), powers
