"""A density tree restricted to evidence: decided splits dropped, cut leaves scaled down."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.evidence import Evidence
from bayescascade.methods.cascades.tree import LEAF, Tree, block_codes, level_starts, pack_block
from bayescascade.methods.cascades.tree_parts import TreeParts

__all__ = ["Restricted", "restricted"]


class Restricted(NamedTuple):
    """What evidence leaves of a density tree.

    Parameters
    ----------
    tree : Tree
        Without the splits that the evidence decides.
    counts, probabilities : (n_nodes,) float64
        Those before, scaled by what is left of each leaf; the root's is the evidence's probability.
    level_probabilities : (n_leaves, L) float64 or None
        Of independent leaves: those before, of the levels left, summing up to 1 again.
    """

    tree: Tree
    counts: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    level_probabilities: NDArray[np.float64] | None


def restricted(density: TreeParts, evidence: Evidence) -> Restricted:
    """Return what is left of a density given evidence, which includes what it was given before."""
    kept = _restrict(density, evidence, 0)
    flat = _Flat()
    flat.add(kept, -1, 0, density.is_nominal)
    levels = [inside for inside in flat.inside if inside is not None]
    return Restricted(
        Tree.from_nodes(flat.feature, flat.parent, flat.block),
        np.array(flat.counts),
        np.array(flat.probabilities),
        np.array(levels) if levels else None,
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """A subtree restricted to evidence."""

    feature: int
    branches: Sequence[tuple[tuple[int, ...], "_Kept"]]
    count: float
    probability: float
    inside: NDArray[np.float64] | None = None  # of an independent leaf, (L,)


def _restrict(density: TreeParts, evidence: Evidence, node: int) -> _Kept:
    children = density.tree.children(node)
    if not children:
        return _restrict_leaf(density, evidence, node)
    column = int(density.tree.feature[node])
    open_codes = evidence.get(column)
    branches = []
    for child in children:
        codes = block_codes(density.is_nominal[column], int(density.tree.block[child]))
        if open_codes is not None:
            codes = tuple(code for code in codes if code in open_codes)
        if codes:
            branches.append((codes, _restrict(density, evidence, child)))
    if len(branches) == 1:
        return branches[0][1]
    branches.sort(key=lambda branch: branch[0][0])
    return _Kept(
        column,
        tuple(branches),
        sum(kept.count for _, kept in branches),
        sum(kept.probability for _, kept in branches),
    )


def _restrict_leaf(density: TreeParts, evidence: Evidence, leaf: int) -> _Kept:
    share, inside = 1.0, None
    if density.level_probabilities is not None:
        inside = density.level_probabilities[density.leaf_rows[leaf]].copy()
    starts = level_starts(density.schema)
    for j, allowed in evidence.items():
        widths = density.schema.columns[j].widths
        left = [code for code in density.boxes[leaf][j] if code in allowed]
        if inside is None:
            share *= widths[left].sum() / density.box_widths[leaf, j]
            continue
        levels = inside[starts[j] : starts[j + 1]]
        chosen = levels[left]
        levels[:] = 0.0
        total = chosen.sum()
        # where only levels of probability 0 are left, the leaf has none and any spread is right
        levels[left] = chosen / total if total > 0 else widths[left] / widths[left].sum()
        share *= total
    count, probability = density.counts[leaf] * share, density.probabilities[leaf] * share
    return _Kept(LEAF, (), count, probability, inside)


class _Flat:
    """Arrays of a tree under construction, in preorder."""

    def __init__(self) -> None:
        self.feature: list[int] = []
        self.parent: list[int] = []
        self.block: list[int] = []
        self.counts: list[float] = []
        self.probabilities: list[float] = []
        self.inside: list[NDArray[np.float64] | None] = []

    def add(self, kept: _Kept, parent: int, block: int, is_nominal: Sequence[bool]) -> None:
        index = len(self.feature)
        self.feature.append(kept.feature)
        self.parent.append(parent)
        self.block.append(block)
        self.counts.append(kept.count)
        self.probabilities.append(kept.probability)
        self.inside.append(kept.inside)
        for codes, child in kept.branches:
            self.add(child, index, pack_block(is_nominal[kept.feature], codes), is_nominal)
