"""Many uniform or independent leaves at once, weighed by the levels of the rows inside each.

All leaves fix the same columns. Inside a leaf, each of the columns that are left is independent of
the others: its levels follow a Dirichlet-multinomial in an independent leaf, and are as probable as
they are wide in a uniform one. As for dependent leaves, the widths of levels are left to the
caller: what is returned is about levels, not about what is inside them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

if TYPE_CHECKING:
    from bayescascade.data.table import Table
    from bayescascade.methods.cascades.models import CascadeModel

__all__ = ["weigh_products"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def weigh_products(
    table: "Table",
    model: "CascadeModel",
    left: Sequence[int],
    learned: tuple[Integers, Integers],
    scored: tuple[NDArray[np.int32], Integers],
) -> tuple[Floats, Floats]:
    """Return log evidences of leaves (n,), and log densities of rows (m,), but for the widths.

    Leaf i holds the table's ``rows[edges[i]:edges[i + 1]]`` of learned, (rows, edges), and likewise
    the columns of scored, (codes (p, m), edges); `left` are the columns that they do not fix.
    """
    (rows, edges), (codes, code_edges) = learned, scored
    rows = rows[edges[0] : edges[-1]]  # those before are in none of the leaves
    n_leaves, a, weights = edges.size - 1, model.leaf_concentration, table.weights[rows]
    leaf = np.repeat(np.arange(n_leaves), np.diff(edges))
    at = np.repeat(np.arange(n_leaves), np.diff(code_edges))
    evidences, densities = np.zeros(n_leaves), np.zeros(at.size)
    for j in left:
        column = table.schema.columns[j]
        b = column.n_levels
        counts = np.bincount(leaf * b + table.codes[j, rows], weights, n_leaves * b)
        counts = counts.reshape(n_leaves, b)
        if model.leaf == "uniform":
            log_shares = np.log(column.widths) - np.log(column.widths.sum())
            evidences += counts @ log_shares
            densities += log_shares[codes[j]]
            continue
        totals = counts.sum(axis=1)
        evidences += (gammaln(counts + a) - gammaln(a)).sum(axis=1)
        evidences += gammaln(a * b) - gammaln(totals + a * b)
        densities += np.log((counts[at, codes[j]] + a) / (totals[at] + a * b))
    return evidences, densities
