"""The moves on trees, each with its exact Hastings ratio, in slow and plain Python.

They are what `kernels.moves` says of them, and all that the compiled sweep must do: the same
proposals with the same probabilities. Each can list its own. `moves` makes those of a posterior.
"""

from collections.abc import Sequence
from itertools import combinations
from math import log
from typing import Any

import numpy as np

from bayescascade.methods.density.trees.tree import LEAF, Split, Tree, block_codes, root_box
from bayescascade.methods.density.trees.tree_posterior import CascadePosterior
from samplers.types import Proposal
from tests.methods.density.trees.slow_splits import SplitProposals
from tests.statistical.proposals import Listed

Weighted = list[tuple[Proposal[Tree], float]]


def moves(posterior: CascadePosterior) -> dict[str, "_CascadeMove"]:
    """Return the moves that the posterior tries, by name, each with its exact Hastings ratio."""
    return {name: _CLASSES[name](posterior) for name in posterior.move_weights()}


class _CascadeMove(Listed):
    """What the moves share; `proposals` returns each with its probability, summing to one."""

    def __init__(self, posterior: CascadePosterior) -> None:
        self.posterior = posterior
        self.is_nominal = posterior.is_nominal
        self.root_box = root_box(posterior.schema)

    def boxes(self, tree: Tree) -> list[list[tuple[int, ...]]]:
        """Return the codes of every column left at every node."""
        return tree.codes(self.is_nominal, self.root_box)

    def splits_at(self, box: Sequence[tuple[int, ...]]) -> SplitProposals:
        """Return the distribution of splits proposed for a node with these codes left."""
        return SplitProposals.at(self.posterior, box)

    def growable(self, tree: Tree, boxes: Sequence[Sequence[tuple[int, ...]]]) -> list[int]:
        """Return the leaves with a column that has two levels left."""
        return [int(leaf) for leaf in tree.leaves if any(len(c) > 1 for c in boxes[int(leaf)])]

    def twigs(self, tree: Tree) -> list[int]:
        """Return the inner nodes all of whose branches are leaves."""
        inner = np.flatnonzero(tree.feature != LEAF)
        return [
            int(n) for n in inner if all(tree.feature[c] == LEAF for c in tree.children(int(n)))
        ]

    def split_of(self, tree: Tree, node: int) -> Split:
        """Return the split in place at an inner node."""
        column = int(tree.feature[node])
        blocks = [int(tree.block[child]) for child in tree.children(node)]
        return column, tuple(block_codes(self.is_nominal[column], block) for block in blocks)

    def replaced(self, tree: Tree, node: int, subtree: Any) -> Tree:
        """Return the tree with another (nested) subtree at `node`."""
        return tree.replaced(self.is_nominal, node, subtree)

    def nested(self, tree: Tree, node: int) -> Any:
        """Return a subtree in nested form."""
        return tree.to_nested(self.is_nominal, node)


def _invalid(tree: Tree) -> Proposal[Tree]:
    return Proposal(tree, -np.inf)


def _leaves_for(blocks: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], None]]:
    return [(block, None) for block in blocks]


class Grow(_CascadeMove):
    """Split a leaf."""

    def proposals(self, state: Tree) -> Weighted:
        boxes = self.boxes(state)
        growable = self.growable(state, boxes)
        found: Weighted = [] if growable else [(_invalid(state), 1.0)]
        for leaf in growable:
            splits = self.splits_at(boxes[leaf])
            for split in splits.all():
                grown = self.replaced(state, leaf, (split[0], _leaves_for(split[1])))
                chance = splits.probability(split) / len(growable)
                ratio = -np.log(len(self.twigs(grown))) - np.log(chance)
                found.append((Proposal(grown, ratio), chance))
        return found


class Prune(_CascadeMove):
    """Take back a split whose branches are all leaves."""

    def proposals(self, state: Tree) -> Weighted:
        twigs = self.twigs(state)
        if not twigs:
            return [(_invalid(state), 1.0)]
        return [(self._proposal(state, twig, len(twigs)), 1 / len(twigs)) for twig in twigs]

    def _proposal(self, tree: Tree, twig: int, n_twigs: int) -> Proposal[Tree]:
        pruned = self.replaced(tree, twig, None)
        n_growable = len(self.growable(pruned, self.boxes(pruned)))
        splits = self.splits_at(self.boxes(tree)[twig])
        back = _log(splits.probability(self.split_of(tree, twig)) / n_growable)
        return Proposal(pruned, back + np.log(n_twigs))


class Change(_CascadeMove):
    """Put another split in the place of one."""

    def proposals(self, state: Tree) -> Weighted:
        inner = np.flatnonzero(state.feature != LEAF)
        found: Weighted = [] if inner.size else [(_invalid(state), 1.0)]
        boxes, twigs = self.boxes(state), self.twigs(state)
        for node in map(int, inner):
            splits = self.splits_at(boxes[node])
            if node in twigs:
                for split in splits.all():
                    proposal = self._over_leaves(state, node, splits, split)
                    found.append((proposal, splits.probability(split) / inner.size))
            else:
                n_branches = len(state.children(node))
                for split in splits.all_with_branches(n_branches):
                    probability = splits.probability_with_branches(split)
                    found.append(
                        (self._above(state, node, splits, split), probability / inner.size)
                    )
        return found

    def _over_leaves(self, tree, node, splits, split):
        changed = self.replaced(tree, node, (split[0], _leaves_for(split[1])))
        back = splits.probability(self.split_of(tree, node))
        return Proposal(changed, _log(back) - _log(splits.probability(split)))

    def _above(self, tree: Tree, node: int, splits: SplitProposals, split: Split) -> Proposal[Tree]:
        old = self.split_of(tree, node)
        below = [self.nested(tree, child) for child in tree.children(node)]
        for old_block, block, subtree in zip(old[1], split[1], below, strict=True):
            same = old[0] == split[0] and old_block == block
            used = _columns_of(subtree)
            if not same and (old[0] in used or split[0] in used):
                return _invalid(tree)
        changed = self.replaced(tree, node, (split[0], list(zip(split[1], below, strict=True))))
        back = splits.probability_with_branches(old)
        forward = splits.probability_with_branches(split)
        return Proposal(changed, float(np.log(back) - np.log(forward)))


class Swap(_CascadeMove):
    """Exchange a parent and its children, or parts of them."""

    def proposals(self, state: Tree) -> Weighted:
        inner = np.flatnonzero(state.feature != LEAF)[1:]
        found: Weighted = [] if inner.size else [(_invalid(state), 1.0)]
        for node in map(int, inner):
            ways = self._ways(state, node, inner.size)
            found.extend((way, 1 / (len(ways) * inner.size)) for way in ways)
        return found

    def _ways(self, tree: Tree, node: int, n_choices: int) -> list[Proposal[Tree]]:
        """Return the swaps at a node, all equally probable."""
        parent = int(tree.parent[node])
        siblings = tree.children(parent)
        column, blocks = self.split_of(tree, parent)
        own = self.split_of(tree, node)
        below = [self.nested(tree, sibling) for sibling in siblings]
        rank = siblings.index(node)
        if own[0] == column:
            return self._rotations(tree, parent, rank)
        if all(b is not None and (b[0], tuple(c for c, _ in b[1])) == own for b in below):
            turned = [
                (block, (column, [(blocks[i], below[i][1][k][1]) for i in range(len(blocks))]))
                for k, block in enumerate(own[1])
            ]
            # any of the children proposes this, before and after
            n_back = n_choices - len(blocks) + len(own[1])
            log_q_ratio = np.log(len(own[1]) / n_back) - np.log(len(blocks) / n_choices)
            swapped = self.replaced(tree, parent, (own[0], turned))
            return [Proposal(swapped, float(log_q_ratio))]
        if len(own[1]) != len(blocks):
            return [_invalid(tree)]
        grandchildren = [subtree for _, subtree in below[rank][1]]
        others = [b for i, b in enumerate(below) if i != rank]
        moved = [b for i, b in enumerate(grandchildren) if i != rank]
        if any({column, own[0]} & _columns_of(subtree) for subtree in others + moved):
            return [_invalid(tree)]
        below[rank] = (column, list(zip(blocks, grandchildren, strict=True)))
        exchanged = (own[0], list(zip(own[1], below, strict=True)))
        return [Proposal(self.replaced(tree, parent, exchanged), 0.0)]

    def _rotations(self, tree: Tree, parent: int, rank: int) -> list[Proposal[Tree]]:
        """Return the exchanges of a sibling with a child, where both split the same column."""
        column, branches = self.nested(tree, parent)
        _, inside = branches[rank][1]
        ways = []
        for i, sibling in enumerate(branches):
            for k, grandchild in enumerate(inside) if i != rank else ():
                within = [sibling if n == k else branch for n, branch in enumerate(inside)]
                codes = tuple(sorted(code for block, _ in within for code in block))
                if not self.is_nominal[column] and codes[-1] - codes[0] >= len(codes):
                    ways.append(_invalid(tree))
                    continue
                around = [grandchild if n == i else branch for n, branch in enumerate(branches)]
                around[rank] = (codes, (column, within))
                ways.append(Proposal(self.replaced(tree, parent, (column, around)), 0.0))
        return ways


class Regroup(_CascadeMove):
    """Nest some branches of a split under one of their own, or take that back."""

    def proposals(self, state: Tree) -> Weighted:
        inner = [int(node) for node in np.flatnonzero(state.feature != LEAF)]
        found: Weighted = []
        for node in inner:
            groups = self._groups(state, node)
            chance = 0.5 / len(inner) / max(1, len(groups))
            nested = [self._nest(state, node, group, len(groups)) for group in groups]
            found.extend((way, chance) for way in nested or [_invalid(state)])
        for node in inner[1:]:
            found.append((self._flatten(state, node), 0.5 / (len(inner) - 1)))
        return [*found, (_invalid(state), 1 - sum(chance for _, chance in found))]

    def _groups(self, tree: Tree, node: int) -> list[tuple[int, ...]]:
        """Return the groups of a node's branches that can be nested, as ranks."""
        b = len(tree.children(node))
        if self.is_nominal[int(tree.feature[node])]:
            return [g for size in range(2, b) for g in combinations(range(b), size)]
        return [tuple(range(i, i + size)) for size in range(2, b) for i in range(b - size + 1)]

    def _nest(self, tree: Tree, node: int, group: tuple[int, ...], n_groups: int) -> Proposal[Tree]:
        column, branches = self.nested(tree, node)
        inside = [branches[rank] for rank in group]
        outside = [branch for rank, branch in enumerate(branches) if rank not in group]
        codes = tuple(sorted(code for block, _ in inside for code in block))
        nested = (column, [*outside, (codes, (column, inside))])
        return Proposal(self.replaced(tree, node, nested), float(np.log(n_groups)))

    def _flatten(self, tree: Tree, node: int) -> Proposal[Tree]:
        parent = int(tree.parent[node])
        rank = tree.children(parent).index(node)
        column, branches = self.nested(tree, parent)
        if tree.feature[node] != column:
            return _invalid(tree)
        flat = [branch for i, branch in enumerate(branches) if i != rank]
        flat += branches[rank][1][1]
        if len(flat) > self.posterior.max_branches:
            return _invalid(tree)
        flattened = self.replaced(tree, parent, (column, flat))
        n_groups = len(self._groups(flattened, parent))
        return Proposal(flattened, -float(np.log(n_groups)))


class Graft(_CascadeMove):
    """Put a split above a subtree, or take it away."""

    def proposals(self, state: Tree) -> Weighted:
        inner = [int(node) for node in np.flatnonzero(state.feature != LEAF)]
        found: Weighted = [] if inner else [(_invalid(state), 1.0)]
        boxes = self.boxes(state)
        for node in inner:
            splits = self.splits_at(boxes[node])
            for split in splits.all():
                chance = 0.5 * splits.probability(split) / len(inner) / len(split[1])
                for keep in range(len(split[1])):
                    found.append((self._insert(state, node, splits, split, keep), chance))
            found.append((self._remove(state, node), 0.5 / len(inner)))
        return found

    def _insert(self, tree, node, splits, split, keep):
        column, blocks = split
        subtree = self.nested(tree, node)
        if column in _columns_of(subtree):
            return _invalid(tree)
        branches = [(block, subtree if i == keep else None) for i, block in enumerate(blocks)]
        n_inner = np.count_nonzero(tree.feature != LEAF)
        ratio = np.log(n_inner * len(blocks) / (n_inner + 1)) - np.log(splits.probability(split))
        return Proposal(self.replaced(tree, node, (column, branches)), float(ratio))

    def _remove(self, tree: Tree, node: int) -> Proposal[Tree]:
        column, branches = self.nested(tree, node)
        inside = [subtree for _, subtree in branches if subtree is not None]
        if len(inside) != 1 or column in _columns_of(inside[0]):
            return _invalid(tree)
        splits = self.splits_at(self.boxes(tree)[node])
        n_inner = np.count_nonzero(tree.feature != LEAF)
        back = splits.probability(self.split_of(tree, node)) / ((n_inner - 1) * len(branches))
        return Proposal(self.replaced(tree, node, inside[0]), _log(back * n_inner))


def _log(probability: float) -> float:
    return log(probability) if probability > 0 else -np.inf


def _columns_of(nested: Any) -> set[int]:
    """Return the columns split anywhere in a nested subtree."""
    if nested is None:
        return set()
    return {nested[0]}.union(*(_columns_of(child) for _, child in nested[1]))


_CLASSES: dict[str, type[_CascadeMove]] = {
    "grow": Grow,
    "prune": Prune,
    "change": Change,
    "swap": Swap,
    "regroup": Regroup,
    "graft": Graft,
}
