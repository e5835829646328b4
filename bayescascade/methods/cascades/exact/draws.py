"""From the values of boxes to trees: the most probable one, and independent draws.

Trees are made from the root down, all of them together: a box's choices are made for every tree
that comes through it, before those of any smaller box, so that what they need is computed once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from bayescascade.methods.cascades.exact.recursion import Recursion
from bayescascade.methods.cascades.tree import LEAF, Tree

__all__ = ["choose_trees"]

Digits = tuple[int, ...]


@dataclass(slots=True)
class _Node:
    """A node of a tree being made: the block that leads to it, its column and its branches."""

    word: int
    column: int = LEAF
    branches: "list[_Node]" = field(default_factory=list)


def choose_trees(
    recursion: Recursion, entries: Sequence[int], rng: np.random.Generator
) -> list[Tree]:
    """Return a tree for each of the root's `entries`: drawn by sums, or the best by maxima."""
    lattice = recursion.lattice
    words = [blocks.words.tolist() for blocks in lattice.blocks]
    roots = [_Node(0) for _ in entries]
    waiting = {lattice.whole: list(zip(roots, entries, strict=True))}
    order = [_later(lattice.whole)]
    while order:
        digits = _later(heappop(order))  # the largest box: no other can lead to it
        nodes = waiting.pop(digits)
        chosen = recursion.choose(rng, digits, [entry for _, entry in nodes])
        for (node, _), (j, blocks, below) in zip(nodes, chosen, strict=True):
            if j < 0:
                continue
            node.column = lattice.plan.columns[j]
            for block, entry in zip(blocks, below, strict=True):
                node.branches.append(_Node(words[j][block]))
                box = (*digits[:j], block, *digits[j + 1 :])
                if box not in waiting:
                    waiting[box] = []
                    heappush(order, _later(box))
                waiting[box].append((node.branches[-1], entry))
    return [_tree(root) for root in roots]


def _later(digits: Digits) -> Digits:
    """Return digits that sort the other way round; its own inverse."""
    return tuple(-digit for digit in digits)


def _tree(root: _Node) -> Tree:
    feature: list[int] = []
    parent: list[int] = []
    block: list[int] = []
    stack = [(root, -1)]
    while stack:
        node, above = stack.pop()
        stack.extend((branch, len(feature)) for branch in reversed(node.branches))
        feature.append(node.column)
        parent.append(above)
        block.append(node.word)
    return Tree.from_nodes(feature, parent, block)
