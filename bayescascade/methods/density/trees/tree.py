"""The state of a cascade: a tree whose inner nodes split one column's remaining levels.

`Tree` is the structure alone: which column each inner node splits and which block of its levels
each branch keeps. Counts, volumes and probabilities belong to a learned density. Nodes stand
in preorder, siblings in the order of their blocks' lowest codes, so equal trees have equal arrays:
two trees differ exactly if some node's column or unordered partition differs.

A *block* is the set of levels that a branch keeps, packed into one 64-bit word: for a nominal
column a bit mask over at most 64 level codes, for an ordinal or continuous one the half-open range
of codes ``[low, high)`` as ``low + (high << 32)``. A *box* has one block for every column. Arrays
over levels have the levels of all columns one after the other, ``L`` in all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema

LEAF = -1

Split = tuple[int, tuple[tuple[int, ...], ...]]
"""A column's index and the partition of its remaining codes, blocks by lowest code."""

# None (a leaf), or (feature, [(codes, Nested), ...]); Any, as mypy knows no such recursive tuple
Nested = Any

_LOW_BITS = (1 << 32) - 1


def pack_block(is_nominal: bool, codes: Iterable[int]) -> int:
    """Return the word for a nonempty set of level codes; contiguous codes unless nominal."""
    members = sorted(codes)
    if is_nominal:
        return sum(1 << code for code in members)
    if members != list(range(members[0], members[-1] + 1)):
        raise ValueError(f"codes of an ordered column must be contiguous, got {members}")
    return members[0] | (members[-1] + 1) << 32


def block_codes(is_nominal: bool, block: int) -> tuple[int, ...]:
    """Return the level codes of a block, ascending."""
    word = int(block)
    if is_nominal:
        return tuple(code for code in range(word.bit_length()) if word >> code & 1)
    return tuple(range(word & _LOW_BITS, word >> 32))


def full_block(is_nominal: bool, n_levels: int) -> int:
    """Return the block of all `n_levels` codes of a column."""
    return (1 << n_levels) - 1 if is_nominal else n_levels << 32


@dataclass(frozen=True, eq=False)
class Tree:
    """An immutable cascade in flat arrays, its nodes in preorder."""

    feature: Codes  # (n_nodes,): index of the column that the node splits, -1 at a leaf
    parent: Codes  # (n_nodes,): index of the parent, -1 at the root
    block: NDArray[np.uint64]  # (n_nodes,): block of the parent's column, 0 at the root

    def __post_init__(self) -> None:
        for array in (self.feature, self.parent, self.block):
            array.flags.writeable = False

    @classmethod
    def root(cls) -> "Tree":
        """Return the tree that is a single leaf."""
        return cls.from_nodes([LEAF], [-1], [0])

    @classmethod
    def from_nodes(
        cls, feature: Sequence[int], parent: Sequence[int], block: Sequence[int]
    ) -> "Tree":
        """Build from lists in canonical order."""
        return cls(
            np.array(feature, np.int32), np.array(parent, np.int32), np.array(block, np.uint64)
        )

    @classmethod
    def from_nested(cls, nested: Nested, is_nominal: Sequence[bool]) -> "Tree":
        """Build from ``None`` (a leaf) or ``(feature, [(codes, nested), ...])``, in any order."""
        feature: list[int] = []
        parent: list[int] = []
        block: list[int] = []

        def add(node: Nested, parent_index: int, word: int) -> None:
            index = len(feature)
            feature.append(LEAF if node is None else node[0])
            parent.append(parent_index)
            block.append(word)
            if node is not None:
                column, branches = node
                for codes, child in sorted(branches, key=lambda branch: min(branch[0])):
                    add(child, index, pack_block(is_nominal[column], codes))

        add(nested, -1, 0)
        return cls.from_nodes(feature, parent, block)

    @classmethod
    def from_layers(cls, layers: Sequence[tuple[Integers, Integers, NDArray[np.uint64]]]) -> "Tree":
        """Build from the nodes of each depth, siblings together in the order of their parents.

        A layer has each node's column, or `LEAF`, number of children, and block.
        """
        starts, sizes = list[Integers](), np.empty(0, np.int64)  # of the layer below
        for _, n_children, _ in reversed(layers):
            before, ends = np.cumsum([0, *sizes]), np.cumsum(n_children)
            starts.append(before[:-1] - np.repeat(before[ends - n_children], n_children))
            sizes = 1 + before[ends] - before[ends - n_children]
        feature, parent = np.empty((2, *sizes), np.int32)
        block = np.empty(sizes, np.uint64)
        above, place = np.array([-1]), np.zeros(1, np.int64)
        for (column, n_children, own), start in zip(layers, reversed(starts), strict=True):
            feature[place], parent[place], block[place] = column, above, own
            above = np.repeat(place, n_children)
            place = above + 1 + start
        return cls(feature, parent, block)

    def to_nested(self, is_nominal: Sequence[bool], node: int = 0) -> Nested:
        """Return the subtree at `node` in the form of `from_nested`."""
        return self._nested(is_nominal, node, {})

    def replaced(self, is_nominal: Sequence[bool], node: int, subtree: Nested) -> "Tree":
        """Return the tree with another subtree, in the form of `from_nested`, at `node`."""
        return Tree.from_nested(self._nested(is_nominal, 0, {node: subtree}), is_nominal)

    def _nested(
        self, is_nominal: Sequence[bool], node: int, others: Mapping[int, Nested]
    ) -> Nested:
        column = int(self.feature[node])
        if node in others or column == LEAF:
            return others.get(node)
        children = self.children(node)
        codes = [block_codes(is_nominal[column], int(self.block[child])) for child in children]
        below = [self._nested(is_nominal, child, others) for child in children]
        return column, list(zip(codes, below, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> bytes:
        """Return bytes that are equal exactly for equal trees."""
        return self.feature.tobytes() + self.parent.tobytes() + self.block.tobytes()

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return int(self.feature.shape[0])

    @property
    def leaves(self) -> NDArray[np.intp]:
        """Indices of the leaves, ascending (left to right)."""
        return np.flatnonzero(self.feature == LEAF)

    @property
    def n_leaves(self) -> int:
        """Number of leaves, >= 1."""
        return int(np.count_nonzero(self.feature == LEAF))

    @property
    def features_used(self) -> Codes:
        """Indices of the columns split anywhere in the tree, ascending."""
        return np.unique(self.feature[self.feature != LEAF])

    @cached_property
    def depths(self) -> Integers:
        """Splits above every node, (n_nodes,) int64."""
        depths = [0] * self.n_nodes
        for node, above in enumerate(self.parent.tolist()[1:], start=1):
            depths[node] = depths[above] + 1
        return np.array(depths, np.int64)

    @property
    def depth(self) -> int:
        """Splits on the longest path from the root to a leaf, >= 0."""
        return int(self.depths.max())

    def lowest_codes(self, is_nominal: Sequence[bool]) -> Integers:
        """Return the lowest code of each node's block, (n_nodes,); 0 at the root."""
        block = np.maximum(self.block, 1)
        of_mask = np.frexp(block & -block)[1] - 1  # of the lowest bit
        of_range = (self.block & np.uint64(_LOW_BITS)).astype(np.int64)
        is_mask = np.asarray(is_nominal)[self.feature[self.parent]]
        codes: Integers = np.where(is_mask, of_mask, of_range)
        codes[0] = 0
        return codes

    def children(self, node: int) -> list[int]:
        """Return the indices of a node's children, by lowest code of their blocks."""
        return self._children[node]

    @cached_property
    def _children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for node, above in enumerate(self.parent.tolist()[1:], start=1):
            children[above].append(node)
        return children

    def summed(self, of_leaves: Floats) -> Floats:
        """Return the sums of leaves' values below each node, (n_nodes, ..) float64."""
        sums = np.zeros((self.n_nodes, *of_leaves.shape[1:]))
        sums[self.leaves] = of_leaves
        added = sums.tolist() if sums.ndim == 1 else sums  # for numbers, a list is faster
        parent = self.parent.tolist()
        for node in range(self.n_nodes - 1, 0, -1):
            added[parent[node]] += added[node]
        return np.array(added)

    def boxes(self, root: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the (n_nodes, p) remaining blocks of each column at each node below `root`."""
        boxes = np.empty((self.n_nodes, root.shape[0]), np.uint64)
        boxes[0] = root
        depths = self.depths
        for depth in range(1, int(depths.max()) + 1):
            nodes = np.flatnonzero(depths == depth)
            above = self.parent[nodes]
            boxes[nodes] = boxes[above]
            boxes[nodes, self.feature[above]] = self.block[nodes]
        return boxes

    def codes(
        self, is_nominal: Sequence[bool], root: NDArray[np.uint64]
    ) -> list[list[tuple[int, ...]]]:
        """Return the same as `boxes`, as the codes of each column."""
        return [
            [block_codes(nominal, int(word)) for nominal, word in zip(is_nominal, box, strict=True)]
            for box in self.boxes(root)
        ]

    def problems(self, schema: Schema) -> Iterator[str]:
        """Yield, in words, why it is not a valid tree over a schema; nothing if it is valid."""
        broken = next(self._broken_arrays(schema.n_columns), None)
        if broken is not None:  # no further checks are possible
            yield broken
            return
        boxes = self.boxes(root_box(schema))
        for node, feature in enumerate(self.feature.tolist()):
            children = self.children(node)
            if (feature == LEAF) != (not children):
                yield f"node {node} must be a leaf exactly if it has no branches"
            elif children:
                blocks, left = self.block[children].tolist(), int(boxes[node, feature])
                yield from _split_problems(node, blocks, left, schema.columns[feature])
        preorder, stack = [], [0]
        while stack:
            preorder.append(stack.pop())
            stack.extend(reversed(self.children(preorder[-1])))
        if preorder != list(range(self.n_nodes)):
            yield "nodes must stand in preorder"

    def _broken_arrays(self, n_columns: int) -> Iterator[str]:
        n_nodes = self.n_nodes
        if not n_nodes == self.parent.shape[0] == self.block.shape[0]:
            yield "a tree's arrays must be of one length"
        elif n_nodes == 0 or self.parent[0] != -1:
            yield "the first node must be the root"
        elif not np.all((self.parent[1:] >= 0) & (self.parent[1:] < np.arange(1, n_nodes))):
            yield "a node's parent must come before it"
        elif not np.all((self.feature >= LEAF) & (self.feature < n_columns)):
            yield f"a split's column must be below {n_columns}"
        elif np.any(self.feature[self.parent[1:]] == LEAF):
            yield "a node's parent must split a column"

    def to_flat(self) -> dict[str, list[int]]:
        """Return the arrays as JSON-ready lists."""
        return {
            "feature": self.feature.tolist(),
            "parent": self.parent.tolist(),
            "block": [int(word) for word in self.block],
        }

    @classmethod
    def from_flat(cls, flat: Mapping[str, Any]) -> "Tree":
        """Build from the result of `to_flat`; `problems` checks whether it is a valid tree."""
        for name, limit in (("feature", 2**31), ("parent", 2**31), ("block", 2**64)):
            numbers = flat[name]
            if not isinstance(numbers, list) or not all(
                type(number) is int and -1 <= number < limit for number in numbers
            ):
                raise ValueError(f"a tree's {name} must be a list of integers from -1 to {limit}")
        if any(word < 0 for word in flat["block"]):
            raise ValueError("a tree's block must be a list of integers >= 0")
        return cls.from_nodes(flat["feature"], flat["parent"], flat["block"])


def _split_problems(
    node: int, blocks: Sequence[int], remaining: int, column: Column
) -> Iterator[str]:
    """Yield the problems of a node's branches, given the block of levels that reach it."""
    is_nominal = column.kind == "nominal"
    if is_nominal:
        in_range = all(0 < word < 1 << column.n_levels for word in blocks)
    else:  # before blocks are unpacked: a forged one may be long
        in_range = all(word & _LOW_BITS < word >> 32 <= column.n_levels for word in blocks)
    if len(blocks) < 2 or not in_range:
        yield f"node {node} must have two or more nonempty branches of its column's levels"
        return
    kept = [block_codes(is_nominal, word) for word in blocks]
    if sorted(code for codes in kept for code in codes) != list(block_codes(is_nominal, remaining)):
        yield f"the branches of node {node} must share out its remaining levels"
    elif kept != sorted(kept, key=min):
        yield f"the branches of node {node} must stand by their lowest level"


def root_box(schema: Schema) -> NDArray[np.uint64]:
    """Return the block of all levels of every column, (p,) uint64."""
    blocks = [full_block(c.kind == "nominal", c.n_levels) for c in schema.columns]
    return np.array(blocks, np.uint64)


def leaf_boxes(schema: Schema, tree: Tree) -> NDArray[np.uint64]:
    """Return the remaining blocks of each column in a tree's leaves, (n_leaves, p) uint64."""
    return tree.boxes(root_box(schema))[tree.leaves]


def level_starts(schema: Schema) -> Integers:
    """Return the start of each column's levels among all levels, and their number, (p + 1,)."""
    return np.concatenate([[0], np.cumsum(schema.n_levels)]).astype(np.int64)


def levels_left(schema: Schema, boxes: NDArray[np.uint64]) -> Flags:
    """Return whether each level of each column is in (n, p) blocks, (n, L) bool."""
    left = np.empty((boxes.shape[0], int(schema.n_levels.sum())), np.bool_)
    starts = level_starts(schema)
    for j, column in enumerate(schema.columns):
        codes, block = np.arange(column.n_levels, dtype=np.uint64), boxes[:, j, np.newaxis]
        if column.kind == "nominal":
            inside = (block >> codes) & np.uint64(1) == 1
        else:
            inside = (codes >= (block & np.uint64(_LOW_BITS))) & (codes < (block >> np.uint64(32)))
        left[:, starts[j] : starts[j + 1]] = inside
    return left


def n_levels_left(schema: Schema, boxes: NDArray[np.uint64]) -> Integers:
    """Return the number of levels in (n, p) blocks, (n, p) int64."""
    in_range = (boxes >> np.uint64(32)) - (boxes & np.uint64(_LOW_BITS))
    is_nominal = [column.kind == "nominal" for column in schema.columns]
    return np.where(is_nominal, np.bitwise_count(boxes), in_range).astype(np.int64)
