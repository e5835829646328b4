"""Random splits of a table's rows: halves to compare models, folds to choose by.

A row's weight is its number of rows. A distinct row of weight 5 may be split into three and two,
exactly as if all rows were shuffled and cut. The fractional part of a weight goes to one part as a
whole.
"""

import dataclasses
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.data.table import Table

_N_FOLDS, _MOST_HELD = 5, 3_000
_MOST_EXACT = 10**9  # rows that NumPy draws from without replacement


class SplitRows(NamedTuple):
    """Labeled rows, split into parts: the first for training, the last for the test."""

    source: str  # name of their file
    X: tuple[pd.DataFrame, ...]  # the features in each part
    y: tuple[NDArray[np.generic], ...]  # the labels
    seed: int  # the seed of the split

    @property
    def n_rows(self) -> list[int]:
        """Rows in each part."""
        return [len(labels) for labels in self.y]

    @property
    def learning(self) -> tuple[Any, ...]:
        """The arguments of `fit`: rows and labels of all parts but the last."""
        return tuple(chain.from_iterable(zip(self.X[:-1], self.y[:-1], strict=True)))

    def undivided(self) -> "SplitRows":
        """Return the rows in two parts: training rows and test rows."""
        X = pd.concat(self.X[:-1], ignore_index=True)
        return self._replace(X=(X, self.X[-1]), y=(np.concatenate(self.y[:-1]), self.y[-1]))


def split_rows(weights: Floats, n_parts: int, rng: np.random.Generator) -> Floats:
    """Split the rows that weights stand for into parts of equal size, to within one row.

    weights (n_distinct,) float64 >= 0; what is returned (n_parts, n_distinct) float64 >= 0, the
    weights in each part, which sum to `weights`. For a billion rows or more, each row goes to any
    part with the same probability, so sizes are only about equal.
    """
    left = np.floor(weights).astype(np.int64)
    fractions = weights - left
    total = int(left.sum())
    ends = [total * (part + 1) // n_parts for part in range(n_parts)]
    split = np.empty((n_parts, weights.shape[0]))
    for part in range(n_parts - 1):
        size = ends[part] - (total - int(left.sum()))
        taken = _draw(left, size, rng)
        split[part] = taken
        left -= taken
    split[-1] = left
    for row in np.flatnonzero(fractions):
        split[rng.integers(n_parts), row] += fractions[row]
    return split


def split_by_class(
    labels: NDArray[Any], shares: Sequence[float], rng: np.random.Generator
) -> Integers:
    """Return the part of each row, (n_rows,), at random, stratified by class.

    labels (n_rows,); shares (n_parts,) > 0 of sum 1. If a class has few rows, these fill the first
    parts.
    """
    parts = np.empty(len(labels), np.int64)
    ends = np.cumsum(shares)[:-1]
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        parts[rows] = np.searchsorted(ends, np.arange(len(rows)) / len(rows), side="right")
    return parts


def with_weights(table: Table, weights: Floats) -> Table:
    """Return the part of a table with these weights, (n_distinct,) >= 0, and its schema."""
    is_kept = weights > 0
    codes = table.codes[:, is_kept].copy()
    kept = weights[is_kept]
    codes.flags.writeable = kept.flags.writeable = False
    total = math.fsum(kept)
    return dataclasses.replace(
        table, codes=codes, weights=kept, n_rows=math.ceil(total), total_weight=total
    )


def n_hold_outs(table: Table) -> int:
    """Return into how many parts a table is split if one of them is to be held out."""
    return max(_N_FOLDS, table.n_distinct // _MOST_HELD)


def hold_out(table: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    """Return a table without some of its rows, and these: a fifth, at most about 3,000."""
    held = split_rows(table.weights, n_hold_outs(table), rng)[0]
    return with_weights(table, table.weights - held), with_weights(table, held)


def _draw(left: Integers, size: int, rng: np.random.Generator) -> Integers:
    """Draw `size` rows without replacement; return the number of each, (n_distinct,) int64."""
    total = int(left.sum())
    if total < _MOST_EXACT:
        return rng.multivariate_hypergeometric(left, size, method="marginals")
    return rng.binomial(left, size / total)
