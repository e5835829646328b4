"""The depth and columns for a sum over all trees; its cost is computed first."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.special import rel_entr

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.methods.density.trees.dependence import pair_counts
from bayescascade.methods.density.trees.tree import root_box

if TYPE_CHECKING:
    from bayescascade.data.schema import Schema
    from bayescascade.data.table import Table
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior


_QUICK = 8e9  # steps, some seconds
_MOST_STEPS = 1e13  # hours
_OF_SUBSET = 4e5  # steps for a set of columns, even with few rows
_OF_ROW, _OF_BOX = 60.0, 300.0  # steps for its rows and boxes, even with few other columns
_OF_FILLED = 10.0  # steps for a pair of levels with rows in a box
_MOST_PAIRED = 5_000  # rows to count pairs of levels
_NEAR_BYTES = 32e3  # of pairs of levels that fit into the fastest cache
_DEEP = 3  # depth that is preferred to more columns


def extent_of(posterior: "CascadePosterior", max_depth: int | None) -> tuple[float, float, float]:
    """Return steps, bytes and sets of columns for the trees that `fitting_trees` would choose."""
    table = posterior.table
    depth, columns = max_depth, np.flatnonzero(table.schema.n_levels > 1)
    if depth is None:
        depth, chosen = fitting_trees(posterior, None, np.inf)
        columns = np.array(chosen, np.int64)
    depth = min(depth, columns.size)
    steps, n_bytes = next(islice(_extents(table, columns), depth, None))
    return steps, n_bytes, float(sum(comb(columns.size, size) for size in range(depth + 1)))


def steps_a_row(schema: "Schema", n_subsets: float) -> float:
    """Return the approximate steps to score a row by dependent leaves."""
    return n_subsets * float((schema.n_levels > 1).sum()) ** 3 / 6


def fitting_trees(
    posterior: "CascadePosterior", max_depth: int | None, memory_limit: float
) -> tuple[int, list[int]]:
    """Return the number of columns that paths may fix, and these columns, to take some seconds.

    These are all columns; or, if paths could then fix fewer than three, the columns with the
    largest mutual information with others, so that paths may fix three. A given `max_depth` is used
    with all columns.
    """
    table = posterior.table
    can_split = np.flatnonzero(table.schema.n_levels > 1)
    if max_depth is not None:
        deepest, steps, n_bytes = _fitting_depth(table, can_split, _MOST_STEPS, memory_limit)
        if deepest < min(max_depth, can_split.size):
            raise ParameterError(
                f"max_depth must be at most {deepest} for all trees over this table to fit, got "
                f"{max_depth}: {deepest + 1} takes {n_bytes / 1e9:,.1f} GB and {steps:.0e} steps"
            )
        return max_depth, can_split.tolist()
    depth, *_ = _fitting_depth(table, can_split, _QUICK, memory_limit)
    if depth >= min(_DEEP, can_split.size):
        return depth, can_split.tolist()
    order = np.argsort(-_information(posterior)[can_split], kind="stable")
    for n_columns in range(can_split.size - 1, 0, -1):
        columns = can_split[np.sort(order[:n_columns])]
        if _fitting_depth(table, columns, _QUICK, memory_limit)[0] >= min(_DEEP, n_columns):
            return min(_DEEP, n_columns), columns.tolist()
    return depth, can_split.tolist()


def _fitting_depth(
    table: "Table", columns: Integers, most_steps: float, memory_limit: float
) -> tuple[int, float, float]:
    """Return how many of some columns may be fixed, and steps and bytes for one more."""
    steps = n_bytes = 0.0
    for size, (steps, n_bytes) in enumerate(_extents(table, columns)):
        if steps > most_steps or n_bytes > memory_limit:
            return max(size - 1, 0), steps, n_bytes
    return columns.size, steps, n_bytes


def _extents(table: "Table", columns: Integers) -> Iterator[tuple[float, float]]:
    """Yield steps and bytes for all trees that fix up to 0, 1, 2, ... of some columns."""
    levels = table.schema.n_levels[columns].astype(np.float64)
    n, n_levels = table.n_distinct, int(table.schema.n_levels.sum())
    products = np.atleast_1d(np.poly(-levels))  # sums over subsets of each size
    n_joined = np.maximum(np.arange(levels.size + 1) - 1, 0)
    products *= _share_of_pairs(table) ** n_joined  # estimated boxes with rows, by pairs
    n_open = int((table.schema.n_levels > 1).sum())
    of_pair = min(1.0 + 8.0 * n_levels**2 / _NEAR_BYTES, 2.5)
    steps = n_bytes = 0.0
    for size in range(levels.size + 1):
        k, n_subsets = n_open - size, float(comb(levels.size, size))
        n_boxes, n_pairs = min(float(products[size]), n_subsets * n), k**2 / 2
        n_cells = (n_levels * k / max(n_open, 1)) ** 2 / 2
        n_filled = min(n_cells, n_pairs * n * n_subsets / n_boxes)
        steps += n_subsets * (n * (of_pair * n_pairs + _OF_ROW) + _OF_SUBSET)
        steps += n_boxes * (k**3 / 3 + 10 * k**2 + n_cells + _OF_FILLED * n_filled + _OF_BOX)
        n_bytes += (n_boxes + n_subsets) * (24.0 * n_levels + 40) + n_subsets * n * 8.0
        yield steps, n_bytes


@lru_cache(8)
def _share_of_pairs(table: "Table") -> float:
    """Return the share of pairs of levels of two columns that some thousands of rows have."""
    codes = table.codes[:, :: -(-max(table.n_distinct, 1) // _MOST_PAIRED)]
    n_rows, starts = codes.shape[1], np.cumsum([0, *table.schema.n_levels[:-1]])
    is_known = codes >= 0
    rows = np.broadcast_to(np.arange(n_rows), codes.shape)[is_known]
    at = rows, (codes + starts[:, None])[is_known]
    indicators = csr_array(
        (np.ones(at[0].size), at), shape=(n_rows, int(table.schema.n_levels.sum()))
    )
    n_found = (indicators.T @ indicators).nnz - np.unique(at[1]).size
    n_pairs = table.schema.n_levels.sum() ** 2 - (table.schema.n_levels**2).sum()
    return float(n_found / n_pairs) if n_found else 1.0


def _information(posterior: "CascadePosterior") -> Floats:
    """Return the sum of each column's mutual information with the others, (p,) float64, nats."""
    schema = posterior.schema
    (pairs,) = pair_counts(schema, posterior.arrays, root_box(schema)[np.newaxis])
    starts = posterior.arrays.offsets[:-1]
    shares = pairs / pairs.diagonal().sum() * schema.n_columns
    single = shares.diagonal()
    worth = rel_entr(shares, np.outer(single, single))
    sums = np.add.reduceat(np.add.reduceat(worth, starts, axis=0), starts, axis=1)
    np.fill_diagonal(sums, 0.0)
    total: Floats = sums.sum(axis=0)
    return total
