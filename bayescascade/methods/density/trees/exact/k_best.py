"""The most probable trees, in order (Huang & Chiang, 2005, algorithm 3).

The recursion's boxes are an AND-OR graph. A *node* is a box, or a block of a column of a box that
is to be divided into b parts. A *way* of a box is to be a leaf, or to split a column into b
branches; a way of a division is a first part, and the rest. A tree is a way at each of its nodes,
and no tree has two descriptions, because the first part has the lowest level.

Let ``best(v)`` be the largest value of a node, which the pass over all boxes knows. A way whose
nodes below have the trees of ranks r has the value ``value(way) - sum of [best(v) - value(v, r)]``.
Each node keeps a heap of ways with ranks. If the largest is taken, those with one rank more are
added. Only a position from the last rank above 0 on is raised, so that each vector of ranks is
added once. Nodes are opened when the order first needs them.
"""

from collections.abc import Iterator
from functools import cached_property
from heapq import heapify, heappop, heappush
from math import exp, inf
from typing import Any, NamedTuple

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import TooLargeError
from bayescascade.base.watch import check_time
from bayescascade.methods.density.trees.exact.recursion import Recursion, log_of
from bayescascade.methods.density.trees.exact.shared import Boxes, SharedBoxes
from bayescascade.methods.density.trees.tree import Tree

_BYTES = 400  # of a way in a heap
_LEAF = -1


class BoxNode(NamedTuple):
    """A box, or one whose column `j` is divided into `b` parts; `entry` as in `Recursion`."""

    digits: tuple[int, ...]
    entry: int
    j: int = _LEAF
    b: int = 0


class _Way(NamedTuple):
    value: float  # of the best tree, nats
    j: int  # column that is split, -1 for a leaf
    below: tuple[BoxNode, ...]


class _Ranked(NamedTuple):
    """The trees below a node, in order, as far as they are known."""

    ways: list[_Way]
    found: list[tuple[float, int, tuple[int, ...]]]  # minus the value, way, ranks below
    heap: list[tuple[float, int, tuple[int, ...]]]


class RankedTree:
    """A tree in the order of probability; `log_density`, nats, and `probability` are exact."""

    def __init__(
        self, order: "TreeOrder", node: BoxNode, rank: int, log_density: float, probability: float
    ) -> None:
        self.log_density, self.probability = log_density, probability
        self._order, self._node, self._rank = order, node, rank

    @cached_property
    def tree(self) -> Tree:
        """The tree."""
        return Tree.from_nested(self._order.nested(self._node, self._rank), self._order.is_nominal)

    @property
    def leaves(self) -> frozenset[tuple[int, ...]]:
        """The boxes of the leaves; equal for trees with the same leaves."""
        return frozenset(self._order.leaves(self._node, self._rank))


class TreeOrder:
    """All trees over boxes with maximal values, the most probable first.

    boxes: after a run with `maximize`; root (n_entries,) float64: log factor of each entry of the
    whole table, nats; log_sum: log of the sum over all trees, nats; memory_limit > 0, bytes.
    """

    def __init__(
        self, boxes: Boxes, root: Floats, log_sum: float, n_columns: int, memory_limit: float
    ) -> None:
        self._boxes, self._root, self._log_sum = boxes, root, log_sum
        self._columns, blocks = boxes.lattice.plan.columns, boxes.lattice.blocks
        nominal = dict(zip(self._columns, boxes.lattice.plan.is_nominal, strict=True))
        self.is_nominal = tuple(nominal.get(j, True) for j in range(n_columns))
        self._codes = [[tuple(codes.tolist()) for codes in each.codes] for each in blocks]
        self._known: dict[BoxNode, _Ranked] = {}
        self._bests: dict[tuple[int, ...], list[float]] = {}  # of boxes, by entry
        self._worth: dict[tuple[int, ...], tuple[float, Floats]] = {}  # as leaves, and of splits
        self._room = memory_limit / _BYTES  # number of ways

    def __iter__(self) -> Iterator[RankedTree]:
        """Yield the trees. TooLargeError if the limit `memory_limit` is exceeded."""
        heap: list[tuple[float, int, int]] = []
        whole = tuple(self._boxes.lattice.whole)

        def push(entry: int, rank: int) -> None:
            value = self._value(BoxNode(whole, entry), rank)
            if value > -inf:
                heappush(heap, (-value - self._root[entry], entry, rank))

        for entry in range(self._root.size):
            push(entry, 0)
        while heap:
            check_time()
            minus, entry, rank = heappop(heap)
            share = exp(min(0.0, -minus - self._log_sum))
            yield RankedTree(self, BoxNode(whole, entry), rank, -minus, share)
            push(entry, rank + 1)

    def nested(self, node: BoxNode, rank: int) -> Any:
        """Return the tree of a rank below a box, for `Tree.from_nested`."""
        way, ranks = self._way(node, rank)
        if way.j == _LEAF:
            return None
        parts = self._parts(way, ranks)
        codes = self._codes[way.j]
        return self._columns[way.j], [
            (codes[part.digits[way.j]], self.nested(part, r)) for part, r in parts
        ]

    def leaves(self, node: BoxNode, rank: int) -> list[tuple[int, ...]]:
        """Return the boxes of the leaves of this tree."""
        way, ranks = self._way(node, rank)
        if way.j == _LEAF:
            return [node.digits]
        return [leaf for part, r in self._parts(way, ranks) for leaf in self.leaves(part, r)]

    def _way(self, node: BoxNode, rank: int) -> tuple[_Way, tuple[int, ...]]:
        assert self._value(node, rank) > -inf
        ranked = self._known[node]
        _, i, ranks = ranked.found[rank]
        return ranked.ways[i], ranks

    def _parts(self, way: _Way, ranks: tuple[int, ...]) -> Iterator[tuple[BoxNode, int]]:
        """Yield the branches of a split, with their ranks."""
        for node, rank in zip(way.below, ranks, strict=True):
            if node.j == _LEAF:
                yield node, rank
            else:
                yield from self._parts(*self._way(node, rank))

    # -- the order below a node --------------------------------------------------------------------

    def _value(self, node: BoxNode, rank: int) -> float:
        """Return the value of the tree of this rank below a node, -inf if there are fewer."""
        ranked = self._known.get(node)
        if ranked is None:
            ways = [way for way in self._ways(node) if way.value > -inf]
            heap = [(-way.value, i, (0,) * len(way.below)) for i, way in enumerate(ways)]
            heapify(heap)
            self._take(2 * len(ways) + 1)
            ranked = self._known[node] = _Ranked(ways, [], heap)
        while len(ranked.found) <= rank:
            if ranked.found:
                self._push_next(ranked)
            if not ranked.heap:
                return -inf
            ranked.found.append(heappop(ranked.heap))
        return -ranked.found[rank][0]

    def _push_next(self, ranked: _Ranked) -> None:
        """Add the ways after the last one found to the heap."""
        minus, i, ranks = ranked.found[-1]
        below = ranked.ways[i].below
        start = max((a for a, rank in enumerate(ranks) if rank), default=0)
        for a in range(start, len(below)):
            rank = ranks[a]
            value = self._value(below[a], rank + 1)
            if value > -inf:
                lost = self._value(below[a], rank) - value
                heappush(ranked.heap, (minus + lost, i, (*ranks[:a], rank + 1, *ranks[a + 1 :])))
                self._take(1)

    def _take(self, n: int) -> None:
        self._room -= n
        if self._room < 0:
            needed = "more memory for trees in order"
            raise TooLargeError(f"memory_limit must allow {needed}", needed)

    # -- ways --------------------------------------------------------------------------------------

    def _ways(self, node: BoxNode) -> list[_Way]:
        if isinstance(self._boxes, SharedBoxes):
            return self._shared_ways(self._boxes, node)
        if node.j == _LEAF:
            return self._box_ways(self._boxes, node)
        return self._division_ways(self._boxes, node)

    @staticmethod
    def _shared_ways(boxes: SharedBoxes, node: BoxNode) -> list[_Way]:
        ways = []
        for j, value in enumerate(boxes.first_splits(0, node.digits)[:, 0].tolist(), start=-1):
            below: tuple[BoxNode, ...] = ()
            if j != _LEAF:
                single = boxes.lattice.blocks[j].single.tolist()
                below = tuple(BoxNode(_replaced(node.digits, j, block), 0) for block in single)
            ways.append(_Way(value, j, below))
        return ways

    def _box_ways(self, boxes: Recursion, node: BoxNode) -> list[_Way]:
        """Return the leaf, and the numbers of branches of each column."""
        digits, entry, plan = node.digits, node.entry, boxes.lattice.plan
        if digits not in self._worth:
            self._worth[digits] = boxes.worth(digits)
        leaf, factors = self._worth[digits]
        ways = [_Way(leaf, _LEAF, ())] if entry == 0 else []
        most = entry + 1 if plan.shift else plan.most
        for j, digit in enumerate(digits):
            size, numbers = len(self._codes[j][digit]), plan.branches
            if plan.partitions == "levels":
                numbers = (size,) if size > 1 else ()
            for b in numbers:
                if b <= min(size, most):
                    below = BoxNode(digits, entry, j, b)
                    ways.append(_Way(float(factors[b]) + self._value(below, 0), j, (below,)))
        return ways

    def _division_ways(self, boxes: Recursion, node: BoxNode) -> list[_Way]:
        """Return the first parts, and what is left, of a block that is divided into `b`."""
        digits, entry, j, b = node
        plan, blocks = boxes.lattice.plan, boxes.lattice.blocks[j]
        if plan.partitions == "levels":
            single = blocks.single.tolist()
            pairs = [(single[-b], single[-1] if b == 2 else digits[j])]
        else:
            own = slice(blocks.pair_start[digits[j]], blocks.pair_start[digits[j] + 1])
            pairs = list(zip(blocks.first[own].tolist(), blocks.rest[own].tolist(), strict=True))
        ways = []
        for first, rest in pairs:
            if len(self._codes[j][rest]) < b - 1:
                continue
            for k in range(entry - b + 2) if plan.shift else (0,):  # entry of the first part
                one = BoxNode(_replaced(digits, j, first), k)
                left = entry - 1 - k if plan.shift else 0
                other = BoxNode(_replaced(digits, j, rest), left, *((j, b - 1) if b > 2 else ()))
                value = self._best(boxes, one)
                if value > -inf:
                    ways.append(_Way(value + self._best(boxes, other), _LEAF, (one, other)))
        return ways

    def _best(self, boxes: Recursion, node: BoxNode) -> float:
        """Return the value of the best tree below a node, -inf for none."""
        if node.j != _LEAF:
            return self._value(node, 0)
        if node.digits not in self._bests:
            at, n = boxes.index.locate(node.digits)
            self._bests[node.digits] = log_of(boxes.values, slice(at, at + n), 0).tolist()
        bests = self._bests[node.digits]
        return bests[node.entry] if node.entry < len(bests) else -inf


def _replaced(digits: tuple[int, ...], j: int, block: int) -> tuple[int, ...]:
    return (*digits[:j], block, *digits[j + 1 :])
