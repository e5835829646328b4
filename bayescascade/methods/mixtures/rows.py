"""Rows as EM takes products of them: a one, and of each column all levels but the first.

What that leaves out follows by differences, as the levels of a column sum up to one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.table import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FLOAT32_FROM = 100_000  # dense codes, whose products then take half the time


def log_cells(table: Table) -> Floats:
    """Return the log volume of each row's cell, (n,) nats."""
    widths = [np.log(column.widths) for column in table.schema.columns]
    found: Floats = sum(
        (own[codes] for own, codes in zip(widths, table.codes, strict=True)),
        np.zeros(table.n_distinct),
    )
    return found


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows as dense codes."""

    codes: Integers  # (p, n)
    weights: Floats  # (n,)
    starts: Integers  # (p,), the place of each column's first level
    column: Integers  # (L,), each level's column
    dense: NDArray[np.floating]  # (n, D) float32 or float64
    expand: Floats  # (L, D): ``dense @ expand.T`` are the levels, one-hot
    prior: Floats  # (L,), levels' shares of the imagined rows

    @classmethod
    def of(cls, table: Table) -> "Rows":
        """Return a table's rows."""
        sizes, codes = table.schema.n_levels, table.codes.astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        column, n_levels = np.repeat(np.arange(sizes.size), sizes), int(sizes.sum())
        is_coded = np.ones(n_levels, bool)
        is_coded[starts] = False
        n_dense = 1 + int(is_coded.sum())
        expand = np.zeros((n_levels, n_dense))
        expand[is_coded, 1:] = np.eye(n_dense - 1)
        expand[starts, 0] = 1.0
        expand[starts[column[is_coded]], np.arange(1, n_dense)] = -1.0
        width = np.float32 if n_dense * codes.shape[1] > _FLOAT32_FROM else np.float64
        levels = np.zeros((codes.shape[1], n_levels), width)
        levels[np.arange(codes.shape[1])[:, np.newaxis], (codes + starts[:, np.newaxis]).T] = 1.0
        dense = np.concatenate([np.ones((codes.shape[1], 1), width), levels[:, is_coded]], axis=1)
        counts, equal = table.weights @ levels, 1 / sizes[column]
        prior = 0.5 * counts / table.weights.sum() + 0.5 * equal
        return cls(codes, table.weights, starts, column, dense, expand, prior)

    @cached_property
    def is_within(self) -> NDArray[np.bool_]:
        """Whether two levels are of one column, (L, L)."""
        is_within: NDArray[np.bool_] = self.column[:, np.newaxis] == self.column
        return is_within

    @cached_property
    def prior_pairs(self) -> Floats:
        """Pairs' shares of the imagined rows, (L, L)."""
        return np.where(self.is_within, np.diag(self.prior), np.outer(self.prior, self.prior))

    def pairs(self, weights: Floats) -> Floats:
        """Return the weight of every pair of levels, (L, L), of rows with these weights."""
        dense, is_in = self.dense, weights > 0
        if 2 * np.count_nonzero(is_in) < weights.size:  # as of a box: most rows are elsewhere
            dense, weights = dense[is_in], weights[is_in]
        weighted = dense * weights[:, np.newaxis].astype(dense.dtype)
        counts: Floats = self.expand @ (weighted.T @ dense).astype(np.float64) @ self.expand.T
        return counts.clip(min=0.0)

    def sums(self, levels: Floats) -> Floats:
        """Return sums over the levels of each column, by the last axis."""
        summed: Floats = np.add.reduceat(levels, self.starts, axis=-1)
        return summed
