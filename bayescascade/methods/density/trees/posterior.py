"""The posteriors of cascades, of leaves and of branches; `models` has the formulas.

Under the leaf posterior, trees with the same leaves are equally probable, so a search returns any
of them. `strongest_splits_first` chooses the most readable one. Each node has the split that gains
the most log likelihood, ``sum_b n_b ln[(n_b / n) / (w_b / w)]`` for branches with weight ``n_b``
and share ``w_b / w`` of the node's volume; ties go to the earliest column. The gain is that of
uniform branches even for other leaves, because it only chooses between equally probable trees.

It is a function of the set of leaves alone. At a node, two levels of a column must stay together if
some leaf holds both. So the column's levels form groups, and any partition of whole groups can be
completed to a tree with the given leaves (a tree's split, restricted to one side of the cut, still
splits it or drops out). The gain is convex in the shares, so the best two-way cut separates the
densest groups, as for any sum of a convex function over two sides.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.models import BranchModel, LeafModel
from bayescascade.methods.density.trees.tree import Tree, root_box
from bayescascade.methods.density.trees.tree_posterior import CascadePosterior

if TYPE_CHECKING:
    from bayescascade.data.table import Table


class LeafPosterior(CascadePosterior):
    """The posterior of `LeafModel`.

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    expected_leaves, concentration, max_leaves, leaf, leaf_concentration, prior, stop
        As in `LeafModel`.
    max_branches, move_weights, partitions
        As in `CascadePosterior`.
    """

    def __init__(
        self,
        table: "Table",
        expected_leaves: float = 8.0,
        concentration: float = 2.0,
        max_branches: int | None = 2,
        move_weights: Mapping[str, float] | None = None,
        *,
        max_leaves: int | None = None,
        partitions: str = "subsets",
        leaf: str = "uniform",
        leaf_concentration: float = 1.0,
        prior: str = "poisson",
        stop: float = 0.5,
    ) -> None:
        model = LeafModel(
            expected_leaves, concentration, max_leaves, leaf, leaf_concentration, prior, stop
        )
        super().__init__(table, model, max_branches, move_weights, partitions=partitions)

    def canonical(self, state: Tree) -> Tree:
        """Return the tree, among those with the same leaves, whose first splits gain the most.

        Trees with the same leaves have the same posterior density under this model, so a search
        returns a random one of them. If two splits gain the same, the earlier column is taken. With
        the generative prior such trees have different densities, so the tree is returned unchanged.
        """
        if self.model.is_generative:
            return state
        counts, _ = self.node_statistics(state)
        return strongest_splits_first(state, counts, self.schema, self.max_branches)


class BranchPosterior(CascadePosterior):
    """The posterior of `BranchModel`.

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    expected_branches, concentration, feature_inclusion, leaf, leaf_concentration, prior, stop
        As in `BranchModel`.
    max_branches, move_weights, partitions, max_depth
        As in `CascadePosterior`.
    """

    def __init__(
        self,
        table: "Table",
        expected_branches: float = 2.0,
        concentration: float = 2.0,
        max_branches: int | None = None,
        feature_inclusion: float | None = None,
        move_weights: Mapping[str, float] | None = None,
        *,
        partitions: str = "subsets",
        leaf: str = "uniform",
        leaf_concentration: float = 1.0,
        prior: str = "poisson",
        stop: float = 0.5,
        max_depth: int | None = None,
    ) -> None:
        model = BranchModel(
            expected_branches, concentration, feature_inclusion, leaf, leaf_concentration, prior,
            stop,
        )  # fmt: skip
        super().__init__(
            table, model, max_branches, move_weights, partitions=partitions, max_depth=max_depth
        )


class _Leaf(NamedTuple):
    box: tuple[tuple[int, ...], ...]  # codes of every column
    weight: float


class _LevelGroup(NamedTuple):
    codes: tuple[int, ...]
    weight: float
    width: float


def strongest_splits_first(tree: Tree, counts: Floats, schema: Schema, max_branches: int) -> Tree:
    """Return the tree with the same leaves whose first splits gain most, by nodes' counts."""
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


def _gain(blocks: Sequence[_LevelGroup]) -> float:
    weight, width = sum(b.weight for b in blocks), sum(b.width for b in blocks)
    gains = (
        b.weight * log((b.weight / weight) / (b.width / width)) for b in blocks if b.weight > 0
    )
    return sum(gains)


def _partitions(
    groups: list[_LevelGroup], column: Column, max_branches: int
) -> Iterator[list[_LevelGroup]]:
    """Yield the candidate partitions of a column: single groups, or two sides."""
    if len(groups) < 2:
        return
    if 2 < len(groups) <= max_branches:
        yield groups
        return
    if column.kind == "nominal":
        groups.sort(key=lambda group: (-group.weight / group.width, group.codes))
    for cut in range(1, len(groups)):
        yield [_merge(groups[:cut]), _merge(groups[cut:])]


def _merge(groups: Sequence[_LevelGroup]) -> _LevelGroup:
    codes = tuple(sorted(code for group in groups for code in group.codes))
    return _LevelGroup(codes, sum(g.weight for g in groups), sum(g.width for g in groups))


def _groups(leaves: Sequence[_Leaf], j: int, column: Column) -> list[_LevelGroup]:
    """Return the finest groups of column `j`'s levels such that no leaf has parts of two groups."""
    parts: list[set[int]] = []
    for codes in {leaf.box[j] for leaf in leaves}:
        touching = [part for part in parts if not part.isdisjoint(codes)]
        parts = [part for part in parts if part.isdisjoint(codes)]
        parts.append(set(codes).union(*touching))
    groups = []
    for part in sorted(parts, key=min):
        count = sum(leaf.weight for leaf in leaves if leaf.box[j][0] in part)
        groups.append(
            _LevelGroup(tuple(sorted(part)), count, float(column.widths[sorted(part)].sum()))
        )
    return groups
