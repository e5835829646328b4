"""The draws of a cascade in few arrays: in memory after a fit, and in files.

Nodes are in preorder, tree after tree. For each node, the arrays have the column of its split, its
depth, which determines the parents, and the block that leads to it. For each leaf, they have its
weight and, unless leaves are uniform, the index of its counts of levels or of pairs of levels.
Draws share most boxes, and boxes with the same rows share counts; each is stored once.

If draws still take more than their share of memory, every second one is dropped until the others
fit.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.checked_trees import (
    Inside,
    check_boxes,
    check_leaves,
    lower_of_pairs,
    pairs_of_lower,
    parents_of,
)
from bayescascade.methods.density.trees.counted_tree import CountedTree
from bayescascade.methods.density.trees.tree import Tree, leaf_boxes
from bayescascade.model.draws import MAX_KEPT_DRAWS, Draws, check_times
from bayescascade.model.packing import MOST_BYTES, Unpacked, narrow, pack

_NODE_BYTES = 32  # for a node, during packing
_AT_ONCE, _LARGEST = 1 << 22, 1 << 26  # words of boxes checked at once, and of the largest tree
_WORDS = 16  # words checked for a node, in addition to its box
_TOLERANCE = 1e-6  # between the weights of trees
_FIELDS = ("n_nodes", "feature", "depth", "block", "blocks", "counts", "rows")
_INSIDE = {"independent": "level_counts", "dependent": "pair_counts"}
_KINDS = {1: "|u1", 2: "<u2", 4: "<u4", 8: "<f8"}  # floats' types in `narrow`, by bytes

Narrow = NDArray[Any]  # in the type that `narrow` returns

_SHARE = 1 / 8  # of the memory limit
_MOST_COUNTS = 1 << 21  # counts of pairs of levels in all distinct leaves
Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class PackedTrees(Sequence[CountedTree]):
    """Trees with the weights of their leaves; each is built on access."""

    leaf: str
    n_levels: int  # total number of levels
    n_nodes: Narrow  # (n_trees,)
    feature: Narrow  # (n,) for the nodes of all trees: column of the split plus 1, 0 at leaves
    depth: Narrow  # (n,)
    block: Narrow  # (n,): position in `blocks`
    blocks: Narrow  # (n_blocks,)
    counts: Narrow  # (n_leaves,) for the leaves of all trees
    rows: Narrow  # (n_leaves,): the leaf's row of `inside`; empty for uniform leaves
    inside: Narrow  # (n_distinct, width): counts of levels, or lower triangles of counts of pairs

    @cached_property
    def _ends(self) -> list[list[int]]:
        """Where the nodes and leaves of each tree begin, and where the last ones end."""
        nodes = np.concatenate([[0], np.cumsum(self.n_nodes, dtype=np.int64)])
        leaves = np.concatenate([[0], np.cumsum(self.feature == 0)])[nodes]
        ends: list[list[int]] = np.stack([nodes, leaves], axis=1).tolist()
        return ends

    @classmethod
    def of(
        cls,
        trees: Iterable[CountedTree],
        schema: Schema,
        leaf: str,
        most_bytes: float = np.inf,
        most_boxes: float = np.inf,
    ) -> "PackedTrees | None":
        """Pack one tree or more; None if over `most_bytes` or `most_boxes` (of all leaves)."""
        parts: list[tuple[Narrow, ...]] = []
        distinct: dict[bytes, int] = {}
        boxes = set[bytes]()
        n_bytes = 0
        for counted in trees:
            tree, places = counted.tree, list[int]()
            for row in _inside(counted):
                key = row.tobytes()
                n_bytes += 0 if key in distinct else 2 * len(key)
                places.append(distinct.setdefault(key, len(distinct)))
            n_bytes += _NODE_BYTES * tree.n_nodes
            if most_boxes < np.inf:
                boxes.update(box.tobytes() for box in leaf_boxes(schema, tree))
            if n_bytes > most_bytes or len(boxes) > most_boxes:
                return None
            parts.append((
                np.array([tree.n_nodes]), narrow(tree.feature + 1), narrow(tree.depths),
                tree.block, narrow(counted.counts[tree.leaves]), np.array(places, np.uint32),
            ))  # fmt: skip
        n_nodes, feature, depth, block, counts, rows = (
            np.concatenate(own) for own in zip(*parts, strict=True)
        )
        del parts
        blocks, block = np.unique(block, return_inverse=True)
        n_levels = int(schema.n_levels.sum())
        width = _width(leaf, n_levels)
        kept = [np.frombuffer(key, _KINDS[len(key) // width]) for key in distinct]
        packed = cls(
            leaf, n_levels, narrow(n_nodes), feature, depth, narrow(block), narrow(blocks), counts,
            narrow(rows), np.stack(kept) if kept else np.empty((0, width), np.uint8),
        )  # fmt: skip
        return packed if packed.n_bytes <= most_bytes else None

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(getattr(self, name).nbytes) for name in (*_FIELDS, "inside"))

    def __len__(self) -> int:
        return self.n_nodes.size

    def __getitem__(self, index: Any) -> Any:  # Any: a tree, or a list of them by a slice
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        (begin, first), (end, last) = self._ends[place : place + 2]
        nodes, leaves = slice(begin, end), slice(first, last)
        tree = Tree(
            self.feature[nodes].astype(np.int32) - np.int32(1),
            parents_of(self.depth[nodes]).astype(np.int32),
            self.blocks[self.block[nodes]].astype(np.uint64),
        )
        counts = tree.summed(self.counts[leaves].astype(np.float64))
        if self.leaf == "uniform":
            return CountedTree(tree, counts)
        inside = self.inside[self.rows[leaves]].astype(np.float64)
        if self.leaf == "independent":
            return CountedTree(tree, counts, level_counts=inside)
        return CountedTree(tree, counts, pair_counts=pairs_of_lower(inside, self.n_levels))

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        record = {name: pack(getattr(self, name)) for name in _FIELDS}
        if self.leaf in _INSIDE:
            record[_INSIDE[self.leaf]] = pack(self.inside.reshape(-1))
        return record

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], n_trees: int, total: float, schema: Schema, leaf: str
    ) -> "PackedTrees":
        """Rebuild `n_trees` >= 1 trees from the result of `to_record`.

        `total` is the weight of all rows, the sum over each tree's leaves. Raises ModelFileError if
        they are not trees over the schema's columns, or the counts do not agree with their leaves;
        KeyError, TypeError or ValueError if a field is missing or of a wrong type.
        """
        if set(record) != {*_FIELDS, *([_INSIDE[leaf]] if leaf in _INSIDE else [])}:
            raise ModelFileError(f"a saved model's draws must be trees with {leaf} leaves")
        arrays, n_levels = Unpacked(record), int(schema.n_levels.sum())
        n_nodes = arrays.whole("n_nodes", n_trees)
        most = _LARGEST // (schema.n_columns + _WORDS)
        if not ((n_nodes >= 1) & (n_nodes <= most)).all():
            raise ModelFileError(f"a saved tree must have 1 to {most:,} nodes")
        n = int(n_nodes.sum(dtype=np.int64))
        feature, depth, block = (arrays.whole(name, n) for name in ("feature", "depth", "block"))
        blocks, n_leaves = arrays.whole("blocks"), n - int(np.count_nonzero(feature))
        counts = arrays.numbers("counts", n_leaves)
        rows = arrays.whole("rows", 0 if leaf == "uniform" else n_leaves)
        inside = np.empty(0, np.uint8) if leaf == "uniform" else arrays.numbers(_INSIDE[leaf])
        width = _width(leaf, n_levels)
        if inside.size % width or blocks.size <= block.max(initial=0):
            raise ModelFileError("a saved tree's blocks and counts must be among those kept")
        if rows.size and inside.size <= width * int(rows.max()):
            raise ModelFileError("a saved tree's counts of levels must be among those kept")
        trees = cls(
            leaf, n_levels, n_nodes, feature, depth, block, blocks, counts, rows,
            inside.reshape(-1, width),
        )  # fmt: skip
        trees._check(schema, total)
        return trees

    def _check(self, schema: Schema, total: float) -> None:
        """Raise ModelFileError unless all trees are valid; checked in parts, as boxes are large."""
        held = None
        if self.leaf != "uniform":
            held = Inside.of(schema, self.inside, self.leaf == "dependent")
        begin, at_once = 0, _AT_ONCE // (schema.n_columns + _WORDS)
        for end in range(1, len(self) + 1):
            n_next = self._ends[min(end + 1, len(self))][0] - self._ends[begin][0]
            if end < len(self) and n_next <= at_once:
                continue
            (first_node, first_leaf), (last_node, last_leaf) = self._ends[begin], self._ends[end]
            nodes, leaves = slice(first_node, last_node), slice(first_leaf, last_leaf)
            starts = np.array(self._ends[begin:end], np.int64) - self._ends[begin]
            feature, depth = (x[nodes].astype(np.int64) for x in (self.feature, self.depth))
            block = self.blocks[self.block[nodes]].astype(np.uint64)
            boxes = check_boxes(schema, starts[:, 0], feature - 1, depth, block)
            counts = self.counts[leaves].astype(np.float64)
            with np.errstate(over="ignore"):
                sums = np.add.reduceat(counts, starts[:, 1].tolist())
            if not (np.abs(sums - total) <= _TOLERANCE * total).all():
                raise ModelFileError(f"a draw's counts must sum up to {total!r}")
            if held is not None:
                check_leaves(schema, boxes, counts, held.of_rows(self.rows[leaves]))
            begin = end


def _width(leaf: str, n_levels: int) -> int:
    """Return the number of counts for a leaf."""
    return n_levels * (n_levels + 1) // 2 if leaf == "dependent" else n_levels


def _inside(one: CountedTree) -> Narrow:
    """Return the counts of each leaf; empty for uniform ones."""
    if one.pair_counts is not None:
        return narrow(lower_of_pairs(one.pair_counts))
    return np.empty((0, 0)) if one.level_counts is None else narrow(one.level_counts)


def keep_draws(
    drawn: Sequence[Tree],
    count: Callable[[Tree], CountedTree],
    schema: Schema,
    leaf: str,
    memory_limit: float,
) -> Draws[CountedTree]:
    """Return draws and weights: all, or every 2nd, 4th, .., to fit an eighth of `memory_limit`."""
    most_bytes, most_boxes = min(MOST_BYTES, _SHARE * memory_limit), np.inf
    if leaf == "dependent":
        most_boxes = _MOST_COUNTS // int(schema.n_levels.sum()) ** 2
    while drawn:
        times = Counter(drawn)
        if len(drawn) == 1:
            most_bytes = most_boxes = np.inf
        packed = PackedTrees.of(map(count, times), schema, leaf, most_bytes, most_boxes)
        if packed is not None:
            return Draws(packed, list(times.values()))
        drawn = drawn[::2]
    return Draws([], [])


def read_draws(
    record: Mapping[str, Any], total: float, schema: Schema, leaf: str
) -> Draws[CountedTree]:
    """Return the draws of a file; see `PackedTrees.from_record`."""
    of_trees = dict(record)
    times = [check_times(n) for n in of_trees.pop("times")]
    if not 1 <= len(times) <= MAX_KEPT_DRAWS:
        raise ModelFileError(f"draws must be 1 to {MAX_KEPT_DRAWS}, got {len(times)}")
    return Draws(PackedTrees.from_record(of_trees, len(times), total, schema, leaf), times)


def are_large(counted: Sequence[CountedTree], memory_limit: float) -> bool:
    """Whether readable trees of all draws would take more than their share of memory."""
    if not isinstance(counted, PackedTrees) or counted.leaf != "independent":
        return False  # dependent leaves are shared
    return 8 * counted.rows.size * counted.n_levels > _SHARE * memory_limit


class MappedSequence(Sequence[Made], Generic[Item, Made]):
    """The results of `make` for each of `items`, computed on each access."""

    def __init__(self, make: Callable[[Item], Made], items: Sequence[Item]) -> None:
        self._make, self._items = make, items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:  # Any: one, or a list of them by a slice
        if isinstance(index, slice):
            return [self._make(item) for item in self._items[index]]
        return self._make(self._items[index])
