"""Evidences of many uniform or independent leaves at once, from the levels of their rows.

All leaves fix the same columns. Inside a leaf, the other columns are independent of each other. The
levels of each follow a Dirichlet-multinomial in an independent leaf, and have probabilities
proportional to their widths in a uniform one. As for dependent leaves, the caller adds the widths
of levels: results are probabilities of levels, not densities inside them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from bayescascade.base.arrays import Codes, Floats, Integers

if TYPE_CHECKING:
    from bayescascade.data.table import Table
    from bayescascade.methods.density.trees.models import CascadeModel


_MOST_COUNTS = 1 << 20  # counts of levels in leaves, at once


def weigh_products(
    table: "Table",
    model: "CascadeModel",
    left: Sequence[int],
    learned: tuple[Integers, Integers],
    scored: tuple[Codes, Integers],
) -> tuple[Floats, Floats]:
    """Return log evidences of leaves (n,), and log densities of rows (m,), without widths.

    `learned` is (rows, edges): leaf i holds the table's ``rows[edges[i]:edges[i + 1]]``. `scored`
    is (codes, edges), with its columns in the same way. `left` are the columns that the leaves do
    not fix.
    """
    (rows, edges), (codes, code_edges) = learned, scored
    rows = rows[edges[0] : edges[-1]]  # earlier rows are in none of the leaves
    n_leaves, a, weights = edges.size - 1, model.leaf_concentration, table.weights[rows]
    leaf = np.repeat(np.arange(n_leaves), np.diff(edges))
    at = np.repeat(np.arange(n_leaves), np.diff(code_edges))
    totals = np.bincount(leaf, weights, n_leaves)[:, np.newaxis]
    evidences, densities = np.zeros(n_leaves), np.zeros(at.size)
    for columns in _together(left, table.schema.n_levels, n_leaves):
        b = table.schema.n_levels[columns]
        starts, n_levels = np.cumsum(b) - b, int(b.sum())
        places = leaf * n_levels + starts[:, np.newaxis] + table.codes[columns][:, rows]
        counts = np.bincount(places.reshape(-1), np.tile(weights, b.size), n_leaves * n_levels)
        counts = counts.reshape(n_leaves, n_levels)
        own = starts[:, np.newaxis] + codes[columns]
        if model.leaf == "uniform":
            widths = [table.schema.columns[j].widths for j in columns]
            log_shares = np.concatenate([np.log(width) - np.log(width.sum()) for width in widths])
            evidences += counts @ log_shares
            densities += log_shares[own].sum(axis=0)
            continue
        is_filled = counts > 0
        rises = np.zeros_like(counts)
        rises[is_filled] = gammaln(counts[is_filled] + a) - gammaln(a)
        evidences += rises.sum(axis=1)
        evidences += (gammaln(a * b) - gammaln(totals + a * b)).sum(axis=1)
        shares = (counts[at, own] + a) / (totals[at, 0] + a * b[:, np.newaxis])
        densities += np.log(shares).sum(axis=0)
    return evidences, densities


def _together(left: Sequence[int], n_levels: Integers, n_leaves: int) -> list[list[int]]:
    """Return the columns in parts with few enough levels to count all leaves at once."""
    columns = np.array(left, np.int64)
    parts = np.cumsum(n_levels[columns] * n_leaves) // _MOST_COUNTS
    return [columns[parts == part].tolist() for part in np.unique(parts)]
