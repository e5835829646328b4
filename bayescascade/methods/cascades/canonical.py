"""One tree to stand for all that have the same leaves.

Under the leaf posterior trees with the same leaves are equally probable, so a search ends in any of
them. `strongest_splits_first` picks the one that is read most easily: at every node the split that
gains the most log likelihood, ``sum_b n_b ln[(n_b / n) / (w_b / w)]`` for branches with weight
``n_b`` and share ``w_b / w`` of the node's volume; of equal ones the earliest column. It is taken
to be that of uniform branches even where leaves are not: it only chooses among equals.

It is a function of the set of leaves alone. At a node, two levels of a column must stay together
if some leaf holds both, so the column's levels fall into groups, and any way of sharing out whole
groups can be completed to a tree with the given leaves (a tree's split, restricted to one side of
the cut, still splits it or drops out). The gain is convex in the shares, so of the two-way cuts the
best sets off the densest groups, as with any sum of a convex function over two sides.
"""

from collections.abc import Iterator, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import Tree, root_box


class _Leaf(NamedTuple):
    box: tuple[tuple[int, ...], ...]  # codes of every column
    weight: float


class _Group(NamedTuple):
    codes: tuple[int, ...]
    weight: float
    width: float


def strongest_splits_first(
    tree: Tree, counts: NDArray[np.float64], schema: Schema, max_branches: int
) -> Tree:
    """Return the tree of the same leaves whose splits gain most from the root, by nodes' counts."""
    is_nominal = [column.kind == "nominal" for column in schema.columns]
    boxes = tree.codes(is_nominal, root_box(schema))
    leaves = sorted(_Leaf(tuple(boxes[leaf]), float(counts[leaf])) for leaf in tree.leaves)
    return Tree.from_nested(_build(leaves, schema, max_branches), is_nominal)


def _build(leaves: Sequence[_Leaf], schema: Schema, max_branches: int) -> Any:
    """Return the nested tree over these leaves."""
    if len(leaves) == 1:
        return None
    best_gain, best = -np.inf, None
    for j, split_column in enumerate(schema.columns):
        for blocks in _partitions(_groups(leaves, j, split_column), split_column, max_branches):
            gain = _gain(blocks)
            if gain > best_gain + 1e-9 * (1 + abs(best_gain)) or best is None:
                best_gain, best = gain, (j, blocks)
    assert best is not None, "the leaves of a tree can be split"
    column, blocks = best
    branches = []
    for block in blocks:
        inside = [leaf for leaf in leaves if leaf.box[column][0] in block.codes]
        branches.append((block.codes, _build(inside, schema, max_branches)))
    return column, branches


def _gain(blocks: Sequence[_Group]) -> float:
    weight, width = sum(b.weight for b in blocks), sum(b.width for b in blocks)
    gains = (
        b.weight * log((b.weight / weight) / (b.width / width)) for b in blocks if b.weight > 0
    )
    return sum(gains)


def _partitions(groups: list[_Group], column: Column, max_branches: int) -> Iterator[list[_Group]]:
    """Yield the candidate ways to share out a column: each group apart, or two sides."""
    if len(groups) < 2:
        return
    if 2 < len(groups) <= max_branches:
        yield groups
        return
    if column.kind == "nominal":
        groups.sort(key=lambda group: (-group.weight / group.width, group.codes))
    for cut in range(1, len(groups)):
        yield [_merge(groups[:cut]), _merge(groups[cut:])]


def _merge(groups: Sequence[_Group]) -> _Group:
    codes = tuple(sorted(code for group in groups for code in group.codes))
    return _Group(codes, sum(g.weight for g in groups), sum(g.width for g in groups))


def _groups(leaves: Sequence[_Leaf], j: int, column: Column) -> list[_Group]:
    """Return the finest groups of column `j`'s levels that no leaf straddles, by lowest code."""
    parts: list[set[int]] = []
    for codes in {leaf.box[j] for leaf in leaves}:
        touching = [part for part in parts if not part.isdisjoint(codes)]
        parts = [part for part in parts if part.isdisjoint(codes)]
        parts.append(set(codes).union(*touching))
    groups = []
    for part in sorted(parts, key=min):
        count = sum(leaf.weight for leaf in leaves if leaf.box[j][0] in part)
        groups.append(_Group(tuple(sorted(part)), count, float(column.widths[sorted(part)].sum())))
    return groups
