"""The points that no list can part, as bits, in groups whose points are alike.

For labels a point is a distinct row of the features, whatever its labels: its weight is that of its
rows. For densities it is a cell of the domain, with or without rows: its weight is its volume. Two
points are of one group if their compositions are equal: the shares of the classes, or the weight of
the rows per volume. Whatever a bound looks at is linear in the weights of the groups; the columns
of `Points.features` are what a unit of weight of each group adds to

* labels: the weight of each class, the heaviest first; of it that of points of the first class
  alone, and of points without that class; the saturated values, ``sum_c n_c ln(n_c / n)`` over
  points, where all other classes are taken for one, and where they are not;
* densities: the weight of the rows; the volume; the saturated value, ``s ln(s / n v)``, with n the
  weight of all rows.

Groups are sorted by composition, the ratio of the first class to the others first: a line for
densities and for two classes.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.rules.excess import entropies
from bayescascade.methods.rules.kernels.layout import RowArrays
from bayescascade.methods.rules.mining import row_arrays
from bayescascade.methods.rules.posterior import (
    DensityListPosterior,
    LabelListPosterior,
    RuleListPosterior,
)

Codes = NDArray[np.unsignedinteger[Any]]
Floats = NDArray[np.float64]

_GIGABYTE = 1e9


@dataclass(frozen=True, slots=True)
class Points:
    """Points as kernels read them."""

    arrays: RowArrays  # points in place of rows, groups in place of classes
    features: Floats  # (n_groups, F): what a unit of weight of each group adds to the sums
    # (2,): of labels, least weight of a point of the first class alone, and of one without it, or 0
    least_pure: Floats


def points_of(posterior: RuleListPosterior, memory_limit: float) -> Points:
    """Return the points of a posterior.

    Raises TooLargeError if the cells of a density's domain take more than `memory_limit` bytes.
    """
    if isinstance(posterior, DensityListPosterior):
        codes, weights, rates = _cells(posterior, memory_limit)
        distinct, groups = np.unique(rates, return_inverse=True)  # with an axis, ten times as slow
        groups = groups.reshape(-1)
        shares = distinct[:, np.newaxis]
    else:
        assert isinstance(posterior, LabelListPosterior), "there are two likelihoods"
        codes, weights, compositions = _distinct_features(posterior)
        shares, groups = np.unique(compositions, axis=0, return_inverse=True)
        others = shares[:, 1:].sum(axis=1)
        # by their ratio: a share of 1 may be one of 1 - 1e-20
        with np.errstate(divide="ignore"):
            order = np.argsort(shares[:, 0] / others, kind="stable")
        shares, others, groups = shares[order], others[order], np.argsort(order)[groups.reshape(-1)]
        is_pure = others == 0.0, shares[:, 0] == 0.0
    items = posterior.antecedents.items
    arrays = row_arrays(codes, weights, groups, len(shares), items)
    first = shares[:, 0]
    if isinstance(posterior, DensityListPosterior):
        rates = xlogy(first, first / posterior.table.weights.sum())
        columns = [first, np.ones(len(first)), rates]
        least_pure = np.zeros(2)
    else:
        columns = [
            *shares.T,
            *is_pure,
            -entropies(np.column_stack([first, others])),
            -entropies(shares),
        ]
        pure = [weights[one[groups]] for one in is_pure]
        least_pure = np.array([of_one.min() if of_one.size else 0.0 for of_one in pure])
    return Points(arrays, np.column_stack(columns).astype(np.float64), least_pure)


def _distinct_features(posterior: LabelListPosterior) -> tuple[Codes, Floats, Floats]:
    """Return the codes of the points, their weights, and the shares of their classes."""
    table = posterior.table
    target = table.schema.names.index(posterior.target)
    features = np.delete(table.codes, target, axis=0)
    codes: Codes
    codes, points = np.unique(features, axis=1, return_inverse=True)
    counts = np.zeros((codes.shape[1], table.schema.columns[target].n_levels))
    np.add.at(counts, (points.reshape(-1), table.codes[target]), table.weights)
    counts = counts[:, np.argsort(-counts.sum(axis=0), kind="stable")]
    weights: Floats = counts.sum(axis=1)
    return codes, weights, counts / weights[:, np.newaxis]


def _cells(posterior: DensityListPosterior, memory_limit: float) -> tuple[Codes, Floats, Floats]:
    """Return the codes of all cells, their volumes, and the weight of rows per volume."""
    schema, table = posterior.schema, posterior.table
    shape = tuple(schema.n_levels.tolist())
    n_cells = prod(shape)
    # codes and their copy by column, volumes, rates, groups and their sorting; the conditions' bits
    needed = n_cells * (4 * len(shape) + 64 + len(posterior.antecedents.items) / 8)
    if needed > memory_limit:
        raise TooLargeError(
            f"memory_limit must be at least {needed:.2g} bytes for the {n_cells:,} cells of the "
            f"domain, got {memory_limit:.2g}: use fewer columns, levels or bins",
            f"{n_cells:,} cells, {needed / _GIGABYTE:,.2g} GB",
        )
    codes: Codes = np.indices(shape, np.uint16).reshape(len(shape), n_cells)
    volumes: Floats = np.ones(1)
    for column in schema.columns:
        volumes = np.multiply.outer(volumes, column.widths).reshape(-1)
    cells = np.ravel_multi_index(tuple(table.codes.astype(np.intp)), shape)
    rates = np.bincount(cells, table.weights, n_cells) / volumes
    return codes, volumes, rates
