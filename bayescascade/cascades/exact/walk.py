"""From the values of boxes to trees: the most probable one, and independent draws.

A tree is chosen from the root down. In a box, with the entry that its subtree must have: leaf or
split, which column, into how many branches; then, part by part, which block holds the lowest level
left and which entry its subtree has. Each choice is in proportion to the sum over the trees behind
it, or is that of the largest maximum.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.cascades.exact import kernels
from bayescascade.cascades.exact.kernels import UNION, Scaled
from bayescascade.cascades.exact.recursion import Recursion, log_of
from bayescascade.cascades.tree import Tree

__all__ = ["LEAF_OPTION", "Choose", "SplitOption", "Walk", "largest", "proportional"]

Digits = tuple[int, ...]
Floats = NDArray[np.float64]

Choose = Callable[[Floats], int]
"""Takes log weights, returns the index of the one chosen."""

LEAF_OPTION = -1
"""The column of the option not to split."""


class SplitOption(NamedTuple):
    """A way to go on in a box: split a column into so many branches, or not at all.

    `entry` is the entry that the branches have together.
    """

    column: int
    branches: int
    entry: int


class _Part(NamedTuple):
    """One branch, its subtree's entry, and what is left for the other branches."""

    block: int
    entry: int
    rest: int
    rest_entry: int


def largest(log_weights: Floats) -> int:
    """Choose the largest; of equal ones, the first."""
    return int(np.argmax(log_weights))


def proportional(rng: np.random.Generator) -> Choose:
    """Choose at random in proportion to the weights."""

    def choose(log_weights: Floats) -> int:
        if log_weights.size == 1:
            return 0
        cumulative = np.cumsum(np.exp(log_weights - log_weights.max()))
        return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))

    return choose


class Walk:
    """Chooses trees by the values of a recursion; remembers the choices there are."""

    def __init__(self, recursion: Recursion) -> None:
        self._recursion = recursion
        self._lattice = recursion.lattice
        self._plan = recursion.lattice.plan
        self._options: dict[object, tuple[Sequence[SplitOption], Floats]] = {}
        self._parts: dict[object, tuple[Sequence[_Part], Floats]] = {}
        self._is_nominal = _in_table_order(self._plan.columns, self._plan.is_nominal)

    def tree(self, entry: int, choose: Choose) -> Tree:
        """Return a tree with the root's `entry`."""
        nested = self._subtree(self._lattice.whole, entry, choose)
        return Tree.from_nested(nested, self._is_nominal)

    def _subtree(self, digits: Digits, entry: int, choose: Choose) -> Any:  # Any: see tree.Nested
        options, weights = self.options(digits, entry)
        column, n_branches, left = options[choose(weights)]
        if column == LEAF_OPTION:
            return None
        branches = []
        block = digits[column]
        for b in range(n_branches, 0, -1):
            parts, weights = self._parts_of(digits, column, block, b, left)
            part = parts[choose(weights)]
            codes = self._lattice.blocks[column].codes[part.block].tolist()
            below = (*digits[:column], part.block, *digits[column + 1 :])
            branches.append((codes, self._subtree(below, part.entry, choose)))
            block, left = part.rest, part.rest_entry
        return self._plan.columns[column], branches

    # -- choices and what they are worth -----------------------------------------------------------

    def options(self, digits: Digits, entry: int) -> tuple[Sequence[SplitOption], Floats]:
        """Return the ways to go on in a box whose subtree has `entry`, and their log weights."""
        key = digits, entry
        if key not in self._options:
            self._options[key] = self._find_options(digits, entry)
        return self._options[key]

    def _find_options(self, digits: Digits, entry: int) -> tuple[Sequence[SplitOption], Floats]:
        found, weights = [], []
        if entry == 0:
            found.append(SplitOption(LEAF_OPTION, 0, 0))
            weights.append(self._recursion.log_leaf(digits))
        for j in self._splittable(digits, entry):
            sums, entries = self._column_sums(digits, j), [entry]
            if self._plan.shift == UNION:
                if not entry >> j & 1:
                    continue
                entries = [entry, entry ^ 1 << j]
            for b in self._branch_numbers(digits, j):
                logs = log_of(sums, self._row(digits[j], b) + np.array(entries))
                found += [SplitOption(j, b, e) for e in entries]
                weights += (logs + self._recursion.log_factor(digits, b)).tolist()
        kept = [i for i, weight in enumerate(weights) if weight > -np.inf]
        return [found[i] for i in kept], np.array([weights[i] for i in kept])

    def _splittable(self, digits: Digits, entry: int) -> list[int]:
        """Return the columns that a subtree with this entry may split."""
        columns = [j for j, b in enumerate(digits) if self._lattice.blocks[j].codes[b].size > 1]
        if self._plan.shift != 1:
            return columns
        return [j for j in columns if self._branch_numbers(digits, j)[0] <= entry + 1]

    def _branch_numbers(self, digits: Digits, j: int) -> Sequence[int]:
        n_levels = self._lattice.blocks[j].codes[digits[j]].size
        if self._plan.partitions == "levels":
            return (n_levels,)
        return range(2, min(self._plan.max_branches, n_levels) + 1)

    def _parts_of(
        self, digits: Digits, j: int, block: int, b: int, entry: int
    ) -> tuple[Sequence[_Part], Floats]:
        """Return the choices of the first of b parts of what is left of a column."""
        by_levels = self._plan.partitions == "levels"
        if b == 1:
            last = int(self._lattice.blocks[j].single[-1]) if by_levels else block
            return [_Part(last, entry, -1, -1)], np.zeros(1)
        key = digits, j, block, b, entry
        if key not in self._parts:
            self._parts[key] = self._find_parts(digits, j, block, b, entry)
        return self._parts[key]

    def _find_parts(
        self, digits: Digits, j: int, block: int, b: int, entry: int
    ) -> tuple[Sequence[_Part], Floats]:
        blocks = self._lattice.blocks[j]
        if self._plan.partitions == "levels":
            first, rest = blocks.single[-b : -b + 1], blocks.single[-1:]
        else:
            pairs = slice(blocks.pair_start[block], blocks.pair_start[block + 1])
            large = blocks.sizes[blocks.rest[pairs]] >= b - 1
            first = blocks.first[pairs][large].astype(np.int64)
            rest = blocks.rest[pairs][large].astype(np.int64)
        base, stride = self._recursion.index.children(digits, j)
        values, joins = self._recursion.values, np.array(_joins(self._plan.shift, entry, b))
        firsts = log_of(values, (base + first * stride)[:, None] + joins[:, 0])
        if b == 2:
            rests = log_of(values, (base + rest * stride)[:, None] + joins[:, 1])
        else:
            rows = np.array([self._row(int(r), b - 1) for r in rest])
            rests = log_of(self._column_sums(digits, j), rows[:, None] + joins[:, 1])
        weights = firsts + rests
        pair, join = np.nonzero(weights > -np.inf)
        parts = [
            _Part(int(first[i]), int(joins[k, 0]), int(rest[i]), int(joins[k, 1]))
            for i, k in zip(pair, join, strict=True)
        ]
        return parts, weights[pair, join]

    def _row(self, block: int, b: int) -> int:
        """Return where the sums over partitions of a block into b blocks stand."""
        first = int(self._recursion.work.side[0])
        if not self._plan.keeps:
            block = 0
        return (first + block * (self._plan.most + 1) + b) * self._plan.n_entries(0)

    def _column_sums(self, digits: Digits, j: int) -> Scaled:
        """Return the sums over the splits of one column of a box; valid until the next call."""
        recursion = self._recursion
        base, stride = recursion.index.children(digits, j)
        _, limit = recursion.index.locate(digits)
        kernels.split_sums(
            self._lattice.arrays, recursion.terms, recursion.values, recursion.work, j, digits[j],
            base, stride, limit, recursion.maximize,
        )  # fmt: skip
        return Scaled(recursion.work.sums, recursion.work.sums_exponent)


def _joins(shift: int, entry: int, n_blocks: int) -> list[tuple[int, int]]:
    """Return the entries of a first block and the others that make `entry` of all."""
    if shift == UNION:
        subsets = [i for i in range(entry + 1) if i | entry == entry]
        return [(i, k) for i in subsets for k in subsets if i | k == entry]
    most = entry - shift * (n_blocks - 1)  # every other block has a leaf at least
    return [(i, entry - shift - i) for i in range(most + 1)]


def _in_table_order(columns: Sequence[int], flags: Sequence[bool]) -> list[bool]:
    return [flag for _, flag in sorted(zip(columns, flags, strict=True))]
