"""Checks that trees from a file are valid, and that their counts of rows agree; many at once.

Nodes are in preorder, tree after tree. Depths are those of a tree if they begin with 0 and increase
by at most 1.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ModelFileError
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.tree import level_starts, root_box

Words = NDArray[np.uint64]
Numbers = NDArray[Any]  # integers of any width, or float64

_TOLERANCE = 1e-6  # for sums of counts, which may be rounded
_MOST_NUMBERS = 1 << 22  # for leaves that are unpacked at once
_LOW, _HIGH = np.uint64((1 << 32) - 1), np.uint64(32)


def parents_of(depth: Numbers) -> Integers:
    """Return each node's parent, the last node before it with depth one less; -1 for roots."""
    n = depth.size
    keys = depth.astype(np.int64) * n + np.arange(n)
    order = np.argsort(keys)
    above = order[np.searchsorted(keys[order], keys - n) - 1]
    return np.where(depth == 0, -1, above)


def check_boxes(
    schema: Schema, starts: Numbers, feature: Numbers, depth: Numbers, block: Words
) -> Words:
    """Return the boxes of the leaves of valid trees, (n_leaves, p).

    starts (n_trees,): the roots; feature (n,) int64: the column of the split, -1 at leaves; depth
    (n,) int64; block (n,) uint64: 0 at roots. Raises ModelFileError if these are not trees over the
    schema's columns.
    """
    deepest = int(schema.n_levels.sum())
    if feature.max() >= schema.n_columns or depth.max() > deepest:
        raise ModelFileError(
            f"a saved tree must have columns below {schema.n_columns} and depths up to {deepest}"
        )
    is_root = np.zeros(depth.size, np.bool_)
    is_root[starts] = True
    rises = np.diff(depth, prepend=0)
    if not np.where(is_root, (depth == 0) & (block == 0), (depth > 0) & (rises <= 1)).all():
        raise ModelFileError("a saved tree must be a valid one: nodes must stand in preorder")
    parent = parents_of(depth)
    below = np.flatnonzero(~is_root)
    n_branches = np.bincount(parent[below], minlength=depth.size)
    if not np.where(feature < 0, n_branches == 0, n_branches >= 2).all():
        raise ModelFileError(
            "a saved tree must be a valid one: a node must have two or more branches if it splits"
        )
    boxes = np.empty((depth.size, schema.n_columns), np.uint64)
    boxes[starts] = root_box(schema)
    left = np.zeros(depth.size, np.uint64)  # levels of the parent's column before the split
    column = feature[parent]
    by_depth = below[np.argsort(depth[below], kind="stable")]
    for nodes in np.split(by_depth, np.cumsum(np.bincount(depth[below])[:-1])):
        boxes[nodes] = boxes[parent[nodes]]
        left[nodes], boxes[nodes, column[nodes]] = boxes[nodes, column[nodes]], block[nodes]
    siblings = below[np.argsort(parent[below], kind="stable")]
    is_nominal = np.array([column.kind == "nominal" for column in schema.columns], np.bool_)
    is_first = np.diff(parent[siblings], prepend=-1) != 0
    nominal = is_nominal[column[siblings]]
    for chosen, shares_out in ((nominal, _share_out_sets), (~nominal, _share_out_ranges)):
        own = siblings[chosen]
        if own.size and not shares_out(block[own], left[own], is_first[chosen]):
            raise ModelFileError(
                "a saved tree must be a valid one: the branches of a node must share out its "
                "remaining levels, by their lowest"
            )
    return boxes[feature < 0]


def _share_out_sets(block: Words, left: Words, is_first: Flags) -> bool:
    """Whether the sets of levels of siblings, in order, are a partition of the parent's set."""
    firsts = np.flatnonzero(is_first)
    sizes = np.bitwise_count(block).astype(np.int64)
    lowest = block & (~block + np.uint64(1))
    return bool(
        (block != 0).all()
        and (np.bitwise_or.reduceat(block, firsts) == left[firsts]).all()
        and (np.add.reduceat(sizes, firsts) == np.bitwise_count(left[firsts])).all()
        and (is_first[1:] | (lowest[1:] > lowest[:-1])).all()
    )


def _share_out_ranges(block: Words, left: Words, is_first: Flags) -> bool:
    """Whether the ranges of levels of siblings, in order, are a partition of the parent's range."""
    low, high = block & _LOW, block >> _HIGH
    is_last = np.append(is_first[1:], True)
    return bool(
        (low < high).all()
        and (low[is_first] == (left & _LOW)[is_first]).all()
        and (high[is_last] == (left >> _HIGH)[is_last]).all()
        and (is_first[1:] | (low[1:] == high[:-1])).all()
    )


class Inside(NamedTuple):
    """The content of each distinct leaf: the levels with rows, by column, and their weights."""

    blocks: Words  # (n, p): narrowest block that holds all levels with rows; 0 if none has rows
    least: Floats  # (n,): least of the columns' sums of weights
    most: Floats  # (n,): largest of them

    @classmethod
    def of(cls, schema: Schema, inside: Numbers, is_pairs: bool) -> "Inside":
        """Read counts of levels, (n, L), or lower triangles of counts of pairs; all must agree."""
        starts, n_levels = level_starts(schema), int(schema.n_levels.sum())
        at_once = max(1, _MOST_NUMBERS // (n_levels**2 if is_pairs else n_levels))
        parts = [cls._of(schema, starts, inside[:0].astype(np.float64).reshape(0, n_levels))]
        for begin in range(0, len(inside), at_once):
            counts = inside[begin : begin + at_once].astype(np.float64)
            if is_pairs:
                pairs = pairs_of_lower(counts, n_levels)
                _check_pair_sums(schema, pairs)
                counts = np.diagonal(pairs, axis1=1, axis2=2)
            parts.append(cls._of(schema, starts, counts))
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def of_rows(self, rows: Numbers) -> "Inside":
        """Return the entries at some places, in this order."""
        return Inside(self.blocks[rows], self.least[rows], self.most[rows])

    @classmethod
    def _of(cls, schema: Schema, starts: Integers, counts: Floats) -> "Inside":
        blocks = np.zeros((len(counts), schema.n_columns), np.uint64)
        for j, column in enumerate(schema.columns):
            has = counts[:, starts[j] : starts[j + 1]] > 0
            if column.kind == "nominal":
                bits = np.uint64(1) << np.arange(column.n_levels, dtype=np.uint64)
                blocks[:, j] = np.where(has, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64)
            else:
                low, high = has.argmax(axis=1), column.n_levels - has[:, ::-1].argmax(axis=1)
                words = low.astype(np.uint64) | high.astype(np.uint64) << _HIGH
                blocks[:, j] = np.where(has.any(axis=1), words, np.uint64(0))
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(counts, starts[:-1], axis=1)
        return cls(blocks, sums.min(axis=1), sums.max(axis=1))


def check_leaves(schema: Schema, boxes: Words, counts: Floats, inside: Inside) -> None:
    """Raise ModelFileError unless levels are in their leaves' boxes and sum to their counts."""
    is_nominal = np.array([column.kind == "nominal" for column in schema.columns], np.bool_)
    held = inside.blocks
    within = (held & _LOW >= boxes & _LOW) & (held >> _HIGH <= boxes >> _HIGH)
    if not np.where(is_nominal, held & ~boxes == 0, within | (held == 0)).all():
        raise ModelFileError("a saved tree's counts of levels must be 0 for levels not in the leaf")
    is_near = [np.abs(sums - counts) <= _TOLERANCE * counts for sums in (inside.least, inside.most)]
    if not np.all(is_near):
        raise ModelFileError("a saved tree's counts of levels must sum up to those of its leaves")


def _check_pair_sums(schema: Schema, pairs: Floats) -> None:
    """Raise ModelFileError unless (n, L, L) counts of pairs add up to the counts of levels."""
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(pairs, level_starts(schema)[:-1], axis=2)
    expected = np.diagonal(pairs, axis1=1, axis2=2)[:, :, np.newaxis]
    if not (np.abs(sums - expected) <= _TOLERANCE * expected).all():
        raise ModelFileError("a saved tree's counts of pairs must sum up to those of its levels")


def lower_of_pairs(pairs: Floats) -> Floats:
    """Return the lower triangles of (n, L, L) symmetric counts, row by row, (n, L (L + 1) / 2)."""
    return pairs[:, *np.tril_indices(pairs.shape[1])]


def pairs_of_lower(lower: Floats, n_levels: int) -> Floats:
    """Return the symmetric counts with these lower triangles."""
    places = np.tril_indices(n_levels)
    pairs = np.zeros((len(lower), n_levels, n_levels))
    pairs[:, *places] = pairs[:, *places[::-1]] = lower
    return pairs
