"""What the kernels of the exact recursion share, by name.

A *box* keeps one block of levels per column: its digits are the blocks' ids, ascending from small
blocks to the whole column. Columns stand in the lattice's order; those before the last are *outer*,
and boxes that differ only in the last column's block are a *line*. A box's *cost* is the least
number of leaves that any tree needs outside it: a tree of K leaves has at most K - cost inside.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

UNION = -1  # a value of `shift`: entries are sets of columns used, and join by union

Array = NDArray[Any]  # the docstrings give dtypes


class LatticeArrays(NamedTuple):
    """p columns, N blocks, M two-way partitions of blocks and L levels, column after column."""

    starts: Array  # (p + 1,) int64: where a column's blocks start
    costs: Array  # (p,) int64: cost of narrowing a column
    splits: Array  # (p,) bool: whether a column may be split at all
    by_levels: bool  # whether a split separates all levels
    sizes: Array  # (N,) int64: levels of a block
    log_width: Array  # (N, 2) float64: a sum, see `terms`
    shape: Array  # (N,) int64: its block in the lattice of shapes
    pair_start: Array  # (N + 1,) int64: where the partitions of a block in two start
    first: Array  # (M,) int32: the part with the lowest level
    rest: Array  # (M,) int32: the other part, ascending for each block
    times: Array  # (M,) float64: how many partitions stand behind one
    code_start: Array  # (N + 1,): where the levels of a block start
    codes: Array  # the levels of the blocks
    level_start: Array  # (p + 1,): where a column's levels start
    single: Array  # (L,) int64: the block of one level alone
    ways: Array  # (N,) float64: how many splits of its column a block allows


class IndexArrays(NamedTuple):
    """Where a box's entries start, the sum of columns' digit * step; beyond cost C all are 0."""

    step: Array  # (p, C + 2) int64: entries passed over by one digit, by the cost of columns before
    size: Array  # (C + 2,) int64: entries of a box by its cost


class TermArrays(NamedTuple):
    """The model, as the recursion reads it; sums of two floats: see `doubles`.

    shift: how entries of two parts join: 1: numbers of leaves less one add up, plus one; 0: the one
    entry there is; UNION: sets of columns used unite. B is the most branches, and Q the most
    levels; G = H = 1, none but n = 0, where weights are not whole.
    """

    shift: int
    is_branch: bool  # Dirichlet at every split
    is_generative: bool  # a split counts 1 / (number of splits of its box), to `power`
    has_factors: bool  # whether splits count anything but for their branches
    power: float
    log_stop: Array  # (2,): log of what a leaf counts if its box allows any split, a sum
    per_leaf: float  # log of what every leaf counts, whatever its rows
    alpha: float  # concentration
    independent: bool  # whether columns vary independently inside a leaf
    leaf_alpha: float  # concentration of the leaves' density
    most: int  # most branches of a split
    branches: Array  # ascending int64: the numbers of branches there can be
    log_split: Array  # (B + 1, 2): log of what b branches are worth without rows, a sum
    log_gamma: Array  # (B + 1, G, 2): lnG(b alpha + n) of whole weights n, a sum
    leaf_log_gamma: Array  # (Q + 1, H, 2): lnG(m leaf_alpha + n), a sum


class Tables(NamedTuple):
    """What the short way through a line looks up: see `lines`; G = 1 in the leaf model."""

    begin: Array  # (B + 1, N) int64: where partitions of a block into b blocks start in `children`
    end: Array  # (B + 1, N) int64: where they end
    children: Array  # int64: how far from a box's entry those of its children are
    leaf: Array  # (G, 2): log worth of n rows as a leaf, but for volume and `TermArrays.per_leaf`
    factor: (
        Array  # (B + 1, G): worth of a split of n rows, but for branches and `Workspace.per_way`
    )
    exponent: Array  # (B + 1, G): of `factor`


_NONE = np.zeros((0, 0), np.int64)

NO_TABLES = Tables(_NONE, _NONE, np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros((0, 0)), _NONE)
"""Those of boxes to which the short way does not lead."""


class Scaled(NamedTuple):
    """Numbers ``mantissa * 2**(512 * exponent)``: float64 and integer arrays of one length."""

    mantissa: Array
    exponent: Array


class Workspace(NamedTuple):
    """Scratch of one recursion."""

    digits: Array  # (p,) int64: the line's outer blocks
    cost: Array  # (p,) int64: cost of the columns before each
    base: Array  # (p,) int64: entries of a child: base + block * stride + inner digit * step
    stride: Array
    step: Array
    count_base: Array  # the same in the index of counts
    count_stride: Array
    count_step: Array
    factor: Array  # (B + 1,) float64, int64: what a split into b branches is worth
    factor_exponent: Array
    per_way: Array  # (1,) float64: one by the number of splits of the box; 0 if there is none
    total: Array  # (E,) float64, int64: a box's entries being summed
    total_exponent: Array
    sums: Array  # (R E,) float64, int64: sums over partitions, see `sums.row_of`
    sums_exponent: Array
    side: Array  # (1,) int64: first row of the sums that are not of the line
    places: Array  # (P,) int64: where a line's splits begin and end in `Tables.children`
    begins: Array  # (B + 1,) int64: where those into b branches begin and end
    ends: Array
    is_wrapped: Array  # (1,) bool: whether an exponent did not fit its type


def new_workspace(
    n_columns: int, most: int, n_entries: int, n_line: int, n_side: int, n_places: int
) -> Workspace:
    """Allocate scratch: `n_entries` a box at most, sums for `n_line` and `n_side` blocks."""
    row = most + 1
    n_sums = row * (n_line + n_side) * n_entries
    return Workspace(*(
        *np.zeros((8, n_columns), np.int64), np.ones(row), np.zeros(row, np.int64), np.ones(1),
        np.empty(n_entries), np.empty(n_entries, np.int64), np.empty(n_sums),
        np.empty(n_sums, np.int64), np.array([n_line * row]), np.empty(n_places, np.int64),
        *np.zeros((2, row), np.int64), np.zeros(1, np.bool_),
    ))  # fmt: skip
