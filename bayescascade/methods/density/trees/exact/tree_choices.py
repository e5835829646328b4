"""Trees from the values of boxes: the most probable one or independent draws.

All trees are made together, from the root down, generation by generation.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Integers
from bayescascade.base.watch import check_time
from bayescascade.methods.density.trees.exact.shared import Boxes
from bayescascade.methods.density.trees.tree import LEAF, Tree


def choose_trees(recursion: Boxes, entries: Sequence[int], rng: np.random.Generator) -> list[Tree]:
    """Return a tree for each of the root's `entries`: drawn by sums, or the best by maxima."""
    lattice = recursion.lattice
    words = np.concatenate([blocks.words for blocks in lattice.blocks])
    starts, columns_of = lattice.arrays.starts, np.array([*lattice.plan.columns, LEAF], np.int32)
    n, below = len(entries), np.array(entries, np.int64)
    digits, word, above = np.tile(lattice.whole, (n, 1)), np.zeros(n, np.uint64), np.zeros(n, int)
    generations = []
    while above.size > 0:
        check_time()
        columns, n_branches, parts = recursion.choose(rng, digits, below)
        generations.append(_Generation(columns_of[columns], word, above))
        above = np.repeat(np.arange(columns.size), n_branches)
        branch = np.arange(above.size) - np.repeat(np.cumsum(n_branches) - n_branches, n_branches)
        blocks, below = parts[above, 0, branch], parts[above, 1, branch]
        digits, word = digits[above], words[starts[columns[above]] + blocks]
        digits[np.arange(above.size), columns[above]] = blocks
    return _trees(generations)


class _Generation(NamedTuple):
    """The nodes of many trees at one depth; branches are ordered by lowest level."""

    feature: Codes
    word: NDArray[np.uint64]
    above: Integers  # parent in the generation before, ascending


def _trees(generations: list[_Generation]) -> list[Tree]:
    """Put the nodes of all generations into preorder, tree by tree."""
    sizes = [np.ones(g.above.size, np.int64) for g in generations]  # sizes of subtrees
    for i in range(len(sizes) - 1, 0, -1):
        np.add.at(sizes[i - 1], generations[i].above, sizes[i])
    n_nodes = int(sizes[0].sum()) if sizes else 0
    feature, parent = np.empty((2, n_nodes), np.int32)
    block = np.empty(n_nodes, np.uint64)
    at = tree = np.cumsum(sizes[0]) - sizes[0] if sizes else np.empty(0, np.int64)
    roots = tree.tolist()
    for i, (g, size) in enumerate(zip(generations, sizes, strict=True)):
        if i == 0:
            parent[at] = -1
        else:
            before = np.cumsum(size) - size
            first = np.searchsorted(g.above, g.above)  # the first sibling
            tree, above = tree[g.above], at[g.above]
            at = above + 1 + before - before[first]
            parent[at] = above - tree
        feature[at], block[at] = g.feature, g.word
    bounds = [*roots, n_nodes]
    return [
        Tree(feature[low:high].copy(), parent[low:high].copy(), block[low:high].copy())
        for low, high in pairwise(bounds)
    ]
