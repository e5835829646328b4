"""EM for mixtures whose classes have independent columns, or a tree of dependences.

A row x has the density ``sum_k pi_k p_k(x)``. Inside class k a forest T_k joins columns ::

    p_k(x) = prod_u P_k(x_u)  prod_uv in T_k  P_k(x_u, x_v) / (P_k(x_u) P_k(x_v))

Without edges this is latent class analysis. A column that is joined to all others is a cascade of
depth 1 above independent leaves; two classes that differ only in one column are the two branches of
a split. The prior has ``a`` = `smoothing` pseudo-rows in each class. Their columns are independent,
with the levels' shares q halfway between those of all rows and equal ones. It also has one
pseudo-row for the share of each class. Each step increases the log posterior density, up to a
constant::

    sum_rows w ln sum_k pi_k p_k(x)  +  sum_k [ln pi_k + a E_q ln p_k]

The E step computes each row's class probabilities. The M step counts rows with these weights, and
the pseudo-rows. Then ``P_k`` are shares of counts, and T_k is the spanning tree of the largest
mutual information: no forest explains the counts better. M. Meila and M. I. Jordan, Learning with
mixtures of trees, JMLR 1 (2000); a departure is the prior, theirs is of the tree.

Both steps are products of matrices. Their rows have a 1, and indicators of each column's levels
except the first, which follows by differences, because the levels of a column sum to one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Lock
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.store import Within, Words
from bayescascade.data.table import Table

KINDS = ("independent", "dependent")

_SHARES = 1.0  # pseudo-rows for the share of each class
_BEFORE = 20  # steps with independent columns before those with trees
_SPARSE_FROM = 256  # levels; beyond, pairs of levels are sparse


_FLOAT32_FROM = 100_000  # dense codes; beyond, products take half the time


@lru_cache
def parents_first(parents: tuple[int, ...]) -> list[int]:
    """Return columns, parents before their children, by each one's parent; circles are left out."""
    below: dict[int, list[int]] = {}
    for j, parent in enumerate(parents):
        below.setdefault(parent, []).append(j)
    order = below.get(-1, [])[:]
    for j in order:
        order.extend(below.get(j, ()))
    return order


def log_cells(table: Table) -> Floats:
    """Return the log volume of each row's cell, (n,) nats."""
    widths = [np.log(column.widths) for column in table.schema.columns]
    return sum(
        (own[codes] for own, codes in zip(widths, table.codes, strict=True)),
        np.zeros(table.n_distinct),
    )


@dataclass(frozen=True, eq=False)
class Indicators:
    """Distinct rows as dense codes."""

    codes: Integers  # (p, n)
    weights: Floats  # (n,)
    starts: Integers  # (p,), the place of each column's first level
    column: Integers  # (L,), each level's column
    dense: NDArray[np.floating]  # (n, D) float32 or float64
    expand: Floats  # (L, D): ``dense @ expand.T`` are the levels, one-hot
    prior: Floats  # (L,), levels' shares of the pseudo-rows
    # boxes for starts of EM, grown so far: each row's box among the first 1, 2, ..; best splits
    grown: list[Integers] = field(default_factory=list)
    splits: dict[int, tuple[float, int]] = field(default_factory=dict)
    growing: Lock = field(default_factory=Lock)  # threads grow the same boxes

    @classmethod
    def of(cls, table: Table) -> "Indicators":
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
    def is_within(self) -> Flags:
        """Whether two levels are in one column, (L, L)."""
        is_within: Flags = self.column[:, np.newaxis] == self.column
        return is_within

    @cached_property
    def prior_pairs(self) -> Floats:
        """Pairs' shares of the pseudo-rows, (L, L)."""
        return np.where(self.is_within, np.diag(self.prior), np.outer(self.prior, self.prior))

    def pairs(self, weights: Floats) -> Floats:
        """Return the weight of each pair of levels, (L, L), for rows with these weights."""
        dense, is_in = self.dense, weights > 0
        if 2 * np.count_nonzero(is_in) < weights.size:  # such as a box: most rows are elsewhere
            dense, weights = dense[is_in], weights[is_in]
        weighted = dense * weights[:, np.newaxis].astype(dense.dtype)
        counts: Floats = self.expand @ (weighted.T @ dense).astype(np.float64) @ self.expand.T
        return counts.clip(min=0.0)

    def sums(self, levels: Floats) -> Floats:
        """Return sums over the levels of each column, on the last axis."""
        return np.add.reduceat(levels, self.starts, axis=-1)


class EMSettings(NamedTuple):
    """The settings of a mixture: kind, smoothing and number of its classes."""

    kind: Annotated[str, Words(*KINDS, "hidden", "continuous", "cascade")]
    smoothing: Annotated[float, Within(above=0, null=math.nan)]  # NaN for the last two
    n_components: Annotated[int, Within(1)]


class Components(NamedTuple):
    """A mixture's classes; parents and log ratios are None for independent columns.

    For a joined pair of columns, the log ratio of two levels is ``ln P_uv / (P_u P_v)``, in the row
    of the parent's level; elsewhere it is 0.
    """

    log_shares: Floats  # (K,)
    log_levels: Floats  # (K, L)
    parents: Integers | None  # (K, p), -1 for none
    log_ratios: tuple[Any, ...] | None  # K arrays (L, L), sparse if there are many levels

    def log_joint(self, rows: Indicators) -> Floats:
        """Return the log of share times density, without widths, of rows in classes, (n, K)."""
        dense, expand = rows.dense, rows.expand
        width = dense.dtype
        joint = (dense @ (self.log_levels @ expand).T.astype(width)).astype(np.float64)
        for k, ratios in enumerate(self.log_ratios or ()):
            of_pairs = dense @ (expand.T @ (ratios @ expand)).astype(width)
            joint[:, k] += np.einsum("nd,nd->n", of_pairs, dense)
        joint += self.log_shares
        return joint

    def log_prior(self, rows: Indicators, smoothing: float) -> float:
        """Return the log prior density, up to a constant."""
        imagined = float((self.log_levels @ rows.prior).sum())
        for ratios in self.log_ratios or ():
            imagined += float(rows.prior @ (ratios @ rows.prior))
        return _SHARES * float(self.log_shares.sum()) + smoothing * imagined


class Climb(NamedTuple):
    """The result of EM, and the log posterior density after each step."""

    components: Components
    objective: tuple[float, ...]


def memberships(log_joint: Floats) -> tuple[Floats, Floats]:
    """Return class probabilities, (n, K), and log densities of rows, (n,)."""
    most = log_joint.max(axis=1, keepdims=True)
    belongs = np.exp(log_joint - most)
    totals = belongs.sum(axis=1, keepdims=True)
    return belongs / totals, (most + np.log(totals))[:, 0]


def climb(
    rows: Indicators,
    settings: EMSettings,
    belongs: Floats,
    max_iter: int,
    tol: float,
    is_over: Callable[[], bool],
) -> Climb:
    """Return the result of EM from (n, K) shares, by `tol` nats a row, `max_iter` or `is_over`."""

    def run(settings: EMSettings, belongs: Floats, max_iter: int, tol: float) -> Climb:
        values, gain = list[float](), np.inf
        while gain >= tol * rows.weights.sum() and len(values) < max_iter:
            components = maximized(rows, settings, belongs)
            belongs, log_densities = memberships(components.log_joint(rows))
            value = float(rows.weights @ log_densities)
            values.append(value + components.log_prior(rows, settings.smoothing))
            gain = values[-1] - values[-2] if len(values) > 1 else np.inf
            if is_over():
                break
        return Climb(components, tuple(values))

    if settings.kind == "dependent" and settings.n_components > 1:
        before = settings._replace(kind="independent")
        found = run(before, belongs, min(_BEFORE, max_iter), 10 * tol)
        belongs, _ = memberships(found.components.log_joint(rows))
    return run(settings, belongs, max_iter, tol)


def maximized(rows: Indicators, settings: EMSettings, belongs: Floats) -> Components:
    """Return the classes that explain rows best, given these memberships (n, K)."""
    weighted, a = belongs * rows.weights[:, np.newaxis], settings.smoothing
    totals = weighted.sum(axis=0)
    log_shares = np.log((totals + _SHARES) / (totals + _SHARES).sum())
    if settings.kind == "independent":
        counts = (weighted.T.astype(rows.dense.dtype) @ rows.dense) @ rows.expand.T
        shares = (counts.clip(min=0.0) + a * rows.prior) / (totals + a)[:, np.newaxis]
        return Components(log_shares, np.log(shares), None, None)
    trees = [_tree(rows, own, a) for own in weighted.T]
    log_levels, parents, log_ratios = zip(*trees, strict=True)
    return Components(log_shares, np.array(log_levels), np.array(parents), log_ratios)


def _tree(rows: Indicators, weights: Floats, a: float) -> tuple[Floats, Integers, Any]:
    """Return log shares of levels (L,), parents (p,), and log ratios of pairs (L, L)."""
    column, is_within = rows.column, rows.is_within
    counts = rows.pairs(weights) + a * rows.prior_pairs
    shares = counts / counts.diagonal()[: np.count_nonzero(column == 0)].sum()
    log_levels = np.log(shares.diagonal())
    log_ratios = np.log(np.where(is_within, 1.0, shares))
    log_ratios -= np.where(is_within, 0.0, log_levels[:, np.newaxis] + log_levels)
    parents = _spanning_tree(rows.sums(rows.sums(shares * log_ratios).T))
    is_joined = parents[column] == column[:, np.newaxis]
    log_ratios = np.where(is_joined, log_ratios, 0.0)
    return log_levels, parents, csr_array(log_ratios) if column.size > _SPARSE_FROM else log_ratios


def _spanning_tree(worth: Floats) -> Integers:
    """Return the parents (p,) in the spanning tree of the largest worth (p, p) from column 0."""
    parents, best = np.zeros(len(worth), np.int64), worth[0].copy()
    parents[0], best[0] = -1, -np.inf
    is_out = np.ones(len(worth), bool)
    is_out[0] = False
    for _ in range(len(worth) - 1):  # Prim's algorithm
        j = int(best.argmax())
        is_out[j], best[j] = False, -np.inf
        is_better = is_out & (worth[j] > best)
        best[is_better], parents[is_better] = worth[j, is_better], j
    return parents
