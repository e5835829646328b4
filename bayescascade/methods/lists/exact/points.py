"""The points that no list can separate, as bits, in groups of equal composition.

For labels a point is a distinct row of the features, with any labels; its weight is that of its
rows. For densities it is a cell of the domain, with or without rows; its weight is its volume. Two
points are in one group if their compositions are equal: the shares of the classes, or the weight of
the rows per volume. All sums in the bounds are linear in the weights of the groups; the columns of
`Points.features` are the contributions of a unit of weight of each group to

* labels: the weight of each class, the heaviest first; the weight of points of the first class
  only, and of points without it; the saturated values, ``sum_c n_c ln(n_c / n)`` over points, with
  all other classes taken as one, and with all classes;
* densities: the weight of the rows; the volume; the saturated value, ``s ln(s / n v)``, with n the
  weight of all rows.

Groups are sorted by composition, the ratio of the first class to the others first: a line for
densities and for two classes.

**Rounding**: its effect on the sums of a search, and what is proved in spite of it. Let r bound the
rounding error of every log density, of a list or of a bound on lists, that the search adds up. Let
p bound that of the posterior's own log density of the returned list.

* A list replaces the best one only if it appears better by more than 2 r. So lists of the same
  density, added up in different ways, do not replace each other.
* Lists are excluded if their bound appears at most 2 r above the best value: none of them has a log
  density above that value by more than 3 r.
* A prefix that leaves the same points as another one has equivalent continuations, and is not
  followed if its value appears at most 2 r / K above the other's. Both continue by adding the same
  numbers, and rounding is monotone: in the search's own numbers a list loses no more by this. The
  list is longer each time that this happens, so all times together cost 2 r. Comparing these
  numbers with the bound above takes r twice more: 7 r.
* The best list's value is off by r, and the posterior's log density of it by p: no list is more
  probable than the returned one by more than `proved` = 8 r + p, once the search has ended.

*The bound r.* A value or bound adds up the terms of up to K = M + 1 parts and of the prior, whose
sizes `methods.lists.models` bounds; saturated values are at most E, or ``E + N V``, in total, and a
path over the stairs costs at most as much as ending at once. Each has an error of `OPERATIONS`
`UNIT` of its size; the sums over C classes, four numbers for each of K parts, and G groups add ``C
+ 4 K + G`` further ones. Sums of weights, over P points in G groups of equal composition, have an
error of ``(P + G + 4) UNIT``, and so have volumes. If all weights are whole, and that share of
their sum is below 1/4, sums are rounded to the exact whole numbers, and the share is 0.
"""

from dataclasses import dataclass
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import TooLargeError
from bayescascade.base.watch import OutOfTime
from bayescascade.data.distinct_rows import distinct_places
from bayescascade.methods.lists.antecedents import row_arrays
from bayescascade.methods.lists.excess import OPERATIONS, entropies
from bayescascade.methods.lists.kernels.layout import MAX_RULES, RowArrays
from bayescascade.methods.lists.models import density_sizes, label_sizes, prior_sizes
from bayescascade.methods.lists.posterior import (
    DensityListPosterior,
    LabelListPosterior,
    RuleListPosterior,
)
from bayescascade.model.guard import UNIT

Codes = NDArray[np.unsignedinteger[Any]]

_GIGABYTE = 1e9
_LISTING = 15.0  # time for the bits of cells, in multiples of that for their codes
_SOON = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Points:
    """Points as arrays for kernels."""

    arrays: RowArrays  # points as rows, groups as classes
    features: Floats  # (n_groups, F): contribution of a unit of weight of each group to the sums
    # (2,): for labels, least weight of a point of the first class only, and of one without it, or 0
    least_pure: Floats


def points_of(posterior: RuleListPosterior, memory_limit: float, end: float = np.inf) -> Points:
    """Return a posterior's points; TooLargeError if a domain's cells exceed `memory_limit`.

    OutOfTime if listing a domain's cells would take until after `end`, of `perf_counter`, and more
    than a second.
    """
    if isinstance(posterior, DensityListPosterior):
        started = perf_counter()
        codes, weights, rates = listed_cells(posterior, memory_limit)
        now = perf_counter()
        if _LISTING * (now - started) > max(end - now, _SOON):
            raise OutOfTime
        occupied = np.flatnonzero(rates)  # the others are one group
        distinct, of_occupied = np.unique(rates[occupied], return_inverse=True)
        n_empty = int(occupied.size < rates.size)
        groups = np.zeros(rates.size, np.intp)
        groups[occupied] = of_occupied.reshape(-1) + n_empty
        shares = np.concatenate([np.zeros(n_empty), distinct])[:, np.newaxis]
    else:
        assert isinstance(posterior, LabelListPosterior), "there are two likelihoods"
        codes, weights, compositions = _distinct_features(posterior)
        shares, groups = np.unique(compositions, axis=0, return_inverse=True)
        others = shares[:, 1:].sum(axis=1)
        # by the ratio: a share of 1 may be a rounded 1 - 1e-20
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
        pure = [weights[pure[groups]] for pure in is_pure]
        least_pure = np.array([of_one.min() if of_one.size else 0.0 for of_one in pure])
    return Points(arrays, np.column_stack(columns).astype(np.float64), least_pure)


def _distinct_features(posterior: LabelListPosterior) -> tuple[Codes, Floats, Floats]:
    """Return the codes of the points, their weights, and the shares of their classes."""
    table = posterior.table
    target = table.schema.names.index(posterior.target)
    features = np.delete(table.codes, target, axis=0)
    n_levels = np.delete(table.schema.n_levels, target).tolist()
    first, points = distinct_places(features, n_levels)
    codes: Codes = features[:, first]
    counts = np.zeros((first.size, table.schema.columns[target].n_levels))
    np.add.at(counts, (points, table.codes[target]), table.weights)
    counts = counts[:, np.argsort(-counts.sum(axis=0), kind="stable")]
    weights: Floats = counts.sum(axis=1)
    return codes, weights, counts / weights[:, np.newaxis]


def listed_cells(
    posterior: DensityListPosterior, memory_limit: float
) -> tuple[Codes, Floats, Floats]:
    """Return the codes of all cells, their volumes, and the weight of rows per volume."""
    schema, table = posterior.schema, posterior.table
    shape = tuple(schema.n_levels.tolist())
    n_cells = prod(shape)
    # codes and their copy by column, volumes, rates, groups and their sorting; bits of conditions
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


@dataclass(frozen=True, slots=True)
class SearchRounding:
    """The rounding of a search's own numbers."""

    bound: float  # > 0, nats: maximum rounding error of a value or bound of lists
    is_whole: bool  # whether sums of weights can be rounded to whole numbers
    n_parts: int = MAX_RULES + 1  # maximum number of parts of a list

    @classmethod
    def of(
        cls, posterior: RuleListPosterior, n_points: int, shape: tuple[int, ...], n_parts: int
    ) -> "SearchRounding":
        """Return the rounding for lists of at most `n_parts` parts; shape: of `Points.features`."""
        weights, alpha = posterior.table.weights, posterior.concentration
        n_groups, n_features = shape
        share = (n_points + n_groups + 4) * UNIT
        has_whole = bool(np.all(weights == np.rint(weights)))
        is_whole = has_whole and float(weights.sum()) * share < 0.25
        of_sums = 0.0 if is_whole else share
        if isinstance(posterior, DensityListPosterior):
            n_classes = 1
            sizes = density_sizes(weights, n_parts, alpha, posterior.schema)
            has_cells = all(np.all(column.widths == 1.0) for column in posterior.schema.columns)
            of_sums = max(of_sums, 0.0 if has_cells else share + posterior.schema.n_columns * UNIT)
        else:
            n_classes = n_features - 4
            sizes = label_sizes(posterior.class_weights, n_parts, alpha)
        n_added = OPERATIONS + n_classes + 4 * n_parts + n_groups
        of_prior = prior_sizes(posterior.prior, posterior.antecedents.n_of_size, n_parts)
        bound = (n_added * UNIT + of_sums) * (sizes + of_prior)
        return cls(float(bound), is_whole, n_parts)

    @property
    def enough(self) -> float:
        """The difference by which a list must appear better to replace the best, nats."""
        return 2.0 * self.bound

    @property
    def alike(self) -> float:
        """The difference by which a prefix must appear better than an equivalent one, nats."""
        return self.enough / self.n_parts

    def proved(self, of_posterior: float) -> float:
        """Return how much better another list may be although the search ended, nats."""
        return 8.0 * self.bound + of_posterior
