"""The shared arrays of the kernels of the exact recursion.

A *box* keeps one block of levels per column: its digits are the blocks' ids, ascending from small
blocks to the whole column. Columns are in the lattice's order. Those before the last are *outer*,
and boxes that differ only in the last column's block are a *line*. The *cost* of a box is the least
number of leaves outside it: a tree of K leaves has at most K - cost leaves inside.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

UNION = -1  # a value of `shift`: entries are sets of used columns, and join by union

Array = NDArray[Any]  # the docstrings give dtypes


class LatticeArrays(NamedTuple):
    """p columns, N blocks, M two-way partitions of blocks and L levels, column after column."""

    starts: Array  # (p + 1,) int64: where a column's blocks start
    costs: Array  # (p,) int64: cost of narrowing a column
    splits: Array  # (p,) bool: whether a column may be split at all
    by_levels: bool  # whether a split separates all levels
    sizes: Array  # (N,) int64: levels of a block
    log_width: Array  # (N, 2) float64: a sum, see `terms`
    shape: Array  # (N,) int64: the same block in the lattice of shapes
    pair_start: Array  # (N + 1,) int64: where the two-way partitions of a block start
    first: Array  # (M,) int32: the part with the lowest level
    rest: Array  # (M,) int32: the other part, ascending for each block
    times: Array  # (M,) float64: number of partitions that this one represents
    code_start: Array  # (N + 1,): where the levels of a block start
    codes: Array  # the levels of the blocks
    level_start: Array  # (p + 1,): where a column's levels start
    single: Array  # (L,) int64: the block of a single level
    ways: Array  # (N,) float64: number of splits of its column that a block allows


class IndexArrays(NamedTuple):
    """Starts of boxes' entries: sums of digit * step over columns; beyond cost C, steps are 0."""

    step: Array  # (p, C + 2) int64: entries per digit, by the cost of the columns before
    size: Array  # (C + 2,) int64: entries of a box by its cost


class TermArrays(NamedTuple):
    """The model for the recursion; a "sum" is a sum of two floats, see `doubles`.

    shift: how entries of two parts join. 1: entry k has k + 1 leaves, which add up; 0: there is one
    entry; UNION: sets of used columns unite. B is the most branches, and Q the most levels. If
    weights are not integers, G = H = 1, for n = 0 alone.
    """

    shift: int
    is_branch: bool  # Dirichlet at every split
    is_generative: bool  # a split has the factor (number of splits of its box)**-power
    has_factors: bool  # whether splits have factors besides their branches
    power: float
    log_stop: Array  # (2,): log factor of a leaf if its box allows any split, a sum
    per_leaf: float  # log factor of each leaf, independent of its rows
    alpha: float  # concentration
    independent: bool  # whether columns vary independently inside a leaf
    leaf_alpha: float  # concentration inside leaves
    most: int  # most branches of a split
    branches: Array  # ascending int64: the possible numbers of branches
    log_split: Array  # (B + 1, 2): log factor of b branches without rows, a sum
    log_gamma: Array  # (B + 1, G, 2): lnG(b alpha + n) for integer weights n, a sum
    leaf_log_gamma: Array  # (Q + 1, H, 2): lnG(m leaf_alpha + n), a sum


class Tables(NamedTuple):
    """Tables of the short way through a line, see `lines`; G = 1 in the leaf model."""

    begin: Array  # (B + 1, N) int64: where partitions of a block into b blocks start in `children`
    end: Array  # (B + 1, N) int64: where they end
    children: Array  # int64: distances of the children's entries from the box's entry
    leaf: Array  # (G, 2): log value of n rows as a leaf, without volume and `TermArrays.per_leaf`
    factor: Array  # (B + 1, G): of a split of n rows, without branches and `per_way`
    exponent: Array  # (B + 1, G): of `factor`


_NONE = np.zeros((0, 0), np.int64)

NO_TABLES = Tables(_NONE, _NONE, np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros((0, 0)), _NONE)
"""The tables if the short way does not apply."""


class Scaled(NamedTuple):
    """Numbers ``mantissa * 2**(512 * exponent)``: float64 and integer arrays of one length."""

    mantissa: Array
    exponent: Array


class RecursionWorkspace(NamedTuple):
    """Scratch of one recursion."""

    digits: Array  # (p,) int64: the line's outer blocks
    cost: Array  # (p,) int64: cost of the columns before each
    base: Array  # (p,) int64: entries of a child: base + block * stride + inner digit * step
    stride: Array
    step: Array
    count_base: Array  # the same in the index of counts
    count_stride: Array
    count_step: Array
    factor: Array  # (B + 1,) float64, int64: factor of a split into b branches
    factor_exponent: Array
    per_way: Array  # (1,) float64: one over the number of splits of the box; 0 if there is none
    total: Array  # (E,) float64, int64: a box's entries during summation
    total_exponent: Array
    sums: Array  # (R E,) float64, int64: sums over partitions, see `sums.row_of`
    sums_exponent: Array
    side: Array  # (1,) int64: first row of the sums outside the line
    places: Array  # (P,) int64: where a line's splits begin and end in `Tables.children`
    begins: Array  # (B + 1,) int64: where the splits into b branches begin and end
    ends: Array
    is_wrapped: Array  # (1,) bool: whether an exponent did not fit its type


def new_workspace(
    n_columns: int, most: int, n_entries: int, n_line: int, n_side: int, n_places: int
) -> RecursionWorkspace:
    """Allocate scratch: at most `n_entries` per box, sums for `n_line` and `n_side` blocks."""
    row = most + 1
    n_sums = row * (n_line + n_side) * n_entries
    return RecursionWorkspace(*(
        *np.zeros((8, n_columns), np.int64), np.ones(row), np.zeros(row, np.int64), np.ones(1),
        np.empty(n_entries), np.empty(n_entries, np.int64), np.empty(n_sums),
        np.empty(n_sums, np.int64), np.array([n_line * row]), np.empty(n_places, np.int64),
        *np.zeros((2, row), np.int64), np.zeros(1, np.bool_),
    ))  # fmt: skip
