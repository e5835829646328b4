"""EM for mixtures whose classes are independent columns, or a tree of dependences each.

A row x has the density ``sum_k pi_k p_k(x)``, and inside class k a forest T_k joins columns ::

    p_k(x) = prod_u P_k(x_u)  prod_uv in T_k  P_k(x_u, x_v) / (P_k(x_u) P_k(x_v))

Without edges that is latent class analysis. A column that is joined to all others is a cascade of
depth 1 above independent leaves; two classes that differ in one column alone are the two branches
of a split. The prior imagines ``a`` = `smoothing` rows in each class, whose columns are independent
and have the levels' shares q, halfway between those of all rows and equal ones, and a row for
every class. What climbs at each step is the log posterior density but for a constant::

    sum_rows w ln sum_k pi_k p_k(x)  +  sum_k [ln pi_k + a E_q ln p_k]

The E step gives each row its probabilities to be of each class; the M step counts rows weighted by
these and the imagined ones, so that ``P_k`` are shares of counts, and T_k is the spanning tree of
the largest mutual information: no forest explains the counts better. M. Meila and M. I. Jordan,
Learning with mixtures of trees, JMLR 1 (2000); a departure is the prior, theirs is of the tree.

Both steps are products of matrices of dense codes: a one, and of each column all levels but the
first, from which the rest follows by differences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import gammaln, logsumexp

from bayescascade.data.table import Table

__all__ = ["KINDS", "STARTS", "Climb", "Components", "Rows", "Settings", "climb", "memberships"]

KINDS = ("independent", "dependent")

_FLOAT32_FROM = 100_000  # dense codes, whose products then take half the time
_SHARES = 1.0  # rows imagined for the share of each class
_CERTAIN = 0.9  # of a row's class where EM starts from clusters
_BEFORE = 20  # steps of independent columns before those of trees

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Settings(NamedTuple):
    """What a mixture is: the kind of its classes, their smoothing, and how many there are."""

    kind: str
    smoothing: float
    n_components: int


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows as dense codes.

    Attributes
    ----------
    codes : (p, n) int64
    weights : (n,) float64
    starts, column : (p,) and (L,) int64
        Of each column the place of its first level; of each level its column.
    dense : (n, D) float32 or float64
    expand : (L, D) float64
        ``dense @ expand.T`` are the levels, one-hot.
    prior : (L,) float64
        Levels' shares of the imagined rows.
    """

    codes: Integers
    weights: Floats
    starts: Integers
    column: Integers
    dense: NDArray[np.floating]
    expand: Floats
    prior: Floats

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

    def pairs(self, weights: Floats) -> Floats:
        """Return the weight of every pair of levels, (L, L), of rows with these weights."""
        weighted = self.dense * weights[:, np.newaxis].astype(self.dense.dtype)
        counts: Floats = self.expand @ (weighted.T @ self.dense).astype(np.float64) @ self.expand.T
        return counts.clip(min=0.0)

    def sums(self, levels: Floats) -> Floats:
        """Return sums over the levels of each column, by the last axis."""
        summed: Floats = np.add.reduceat(levels, self.starts, axis=-1)
        return summed


class Components(NamedTuple):
    """A mixture's classes; parents and log ratios are None of independent columns.

    The log ratio of two levels, of a joined pair of columns, is ``ln P_uv / (P_u P_v)``, at the row
    of the parent's level; elsewhere 0.
    """

    log_shares: Floats  # (K,)
    log_levels: Floats  # (K, L)
    parents: Integers | None  # (K, p), -1 for none
    log_ratios: Floats | None  # (K, L, L)

    def log_joint(self, rows: Rows) -> Floats:
        """Return the log of share times density, but for widths, of rows in classes, (n, K)."""
        dense, expand = rows.dense, rows.expand
        width = dense.dtype
        joint = (dense @ (self.log_levels @ expand).T.astype(width)).astype(np.float64)
        for k, ratios in enumerate(() if self.log_ratios is None else self.log_ratios):
            of_pairs = dense @ (expand.T @ ratios @ expand).astype(width)
            joint[:, k] += np.einsum("nd,nd->n", of_pairs, dense)
        joint += self.log_shares
        return joint

    def log_prior(self, rows: Rows, smoothing: float) -> float:
        """Return the log prior density, but for a constant."""
        imagined = float((self.log_levels @ rows.prior).sum())
        if self.log_ratios is not None:
            imagined += float(np.einsum("u,kuv,v->", rows.prior, self.log_ratios, rows.prior))
        return _SHARES * float(self.log_shares.sum()) + smoothing * imagined


class Climb(NamedTuple):
    """Where EM arrived, and the log posterior density after each step."""

    components: Components
    objective: tuple[float, ...]


def memberships(log_joint: Floats) -> tuple[Floats, Floats]:
    """Return probabilities of the classes, (n, K), and log densities of rows, (n,)."""
    log_densities = logsumexp(log_joint, axis=1)
    return np.exp(log_joint - log_densities[:, np.newaxis]), log_densities


def climb(
    rows: Rows,
    settings: Settings,
    start: str,
    seed: np.random.SeedSequence,
    max_iter: int,
    tol: float,
    is_over: Callable[[], bool],
) -> Climb:
    """Return where EM arrives from a start, one of `STARTS`.

    It ends where a step wins less than `tol` nats a row, after `max_iter` steps, or at the first
    after which `is_over`.
    """
    belongs = STARTS[start](rows, settings.n_components, np.random.default_rng(seed))
    if settings.kind == "dependent" and settings.n_components > 1:
        before = settings._replace(kind="independent")
        found = _climb(rows, before, belongs, min(_BEFORE, max_iter), 10 * tol, is_over)
        belongs, _ = memberships(found.components.log_joint(rows))
    return _climb(rows, settings, belongs, max_iter, tol, is_over)


def _climb(
    rows: Rows,
    settings: Settings,
    belongs: Floats,
    max_iter: int,
    tol: float,
    is_over: Callable[[], bool],
) -> Climb:
    """Return where EM arrives from rows that belong to classes so, (n, K)."""
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


def maximized(rows: Rows, settings: Settings, belongs: Floats) -> Components:
    """Return the classes that explain rows best that belong to them so, (n, K)."""
    weighted, a = belongs * rows.weights[:, np.newaxis], settings.smoothing
    totals = weighted.sum(axis=0)
    log_shares = np.log((totals + _SHARES) / (totals + _SHARES).sum())
    if settings.kind == "independent":
        counts = (weighted.T.astype(rows.dense.dtype) @ rows.dense) @ rows.expand.T
        shares = (counts.clip(min=0.0) + a * rows.prior) / (totals + a)[:, np.newaxis]
        return Components(log_shares, np.log(shares), None, None)
    trees = [_tree(rows, own, a) for own in weighted.T]
    log_levels, parents, log_ratios = (np.array(part) for part in zip(*trees, strict=True))
    return Components(log_shares, log_levels, parents, log_ratios)


def _tree(rows: Rows, weights: Floats, a: float) -> tuple[Floats, Integers, Floats]:
    """Return log shares of levels (L,), parents (p,), and log ratios of pairs (L, L)."""
    counts, column = rows.pairs(weights), rows.column
    is_within = column[:, np.newaxis] == column
    counts += a * np.where(is_within, np.diag(rows.prior), np.outer(rows.prior, rows.prior))
    shares = counts / counts.diagonal()[: np.count_nonzero(column == 0)].sum()
    log_levels = np.log(shares.diagonal())
    log_ratios = np.log(np.where(is_within, 1.0, shares)) - np.where(
        is_within, 0.0, log_levels[:, np.newaxis] + log_levels
    )
    worth = rows.sums(rows.sums(shares * log_ratios).T)
    # 0 is no edge to scipy; one more each changes no spanning tree
    tree = minimum_spanning_tree(-np.triu(worth.clip(min=0.0) + 1.0, 1))
    _, parents = breadth_first_order(tree, 0, directed=False)
    parents = np.where(parents < 0, -1, parents).astype(np.int64)
    is_joined = parents[column] == column[:, np.newaxis]
    return log_levels, parents, np.where(is_joined, log_ratios, 0.0)


# -- starts ----------------------------------------------------------------------------------------


def _grown(rows: Rows, n_components: int, _: np.random.Generator) -> Floats:
    """Start from boxes: of all, a level that explains most is split from its box, and so on.

    What splits explain is the evidence of independent leaves, whose priors are worth a row.
    """
    alpha, place = 1.0 / np.bincount(rows.column)[rows.column], np.zeros(rows.weights.size, int)
    best = {0: _best_split(rows, place == 0, alpha)}
    while len(best) < n_components:
        box = max(best, key=lambda one: best[one][0])
        gain, level = best[box]
        if gain == -np.inf:
            break
        j = rows.column[level]
        is_split = (place == box) & (rows.codes[j] == level - rows.starts[j])
        place[is_split] = len(best)
        for one in (box, len(best)):
            best[one] = _best_split(rows, place == one, alpha)
    return _clustered(place, n_components)


def _best_split(rows: Rows, inside: NDArray[np.bool_], alpha: Floats) -> tuple[float, int]:
    """Return the largest gain, -inf if there is none, and the level that is split off."""
    pairs = rows.pairs(np.where(inside, rows.weights, 0.0))
    counts = pairs.diagonal()

    def evidence(counts: Floats) -> Floats:
        terms: Floats = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=-1)
        terms -= gammaln(rows.sums(counts) + 1.0).sum(axis=-1)
        return terms

    gains = evidence(pairs) + evidence((counts - pairs).clip(min=0.0)) - evidence(counts)
    total = float(rows.sums(counts)[0])
    gains[(counts < 1e-6 * total) | (counts > (1 - 1e-6) * total)] = -np.inf
    return float(gains.max()), int(gains.argmax())


def _near(rows: Rows, n_components: int, rng: np.random.Generator) -> Floats:
    """Start from rows far from each other, drawn as by k-means++, and those nearest to each."""
    nearest, place = np.ones(rows.weights.size), np.zeros(rows.weights.size, int)
    for k in range(n_components):
        chances = nearest * rows.weights
        if not chances.sum() > 0:
            break
        row = rng.choice(chances.size, p=chances / chances.sum())
        distances = (rows.codes != rows.codes[:, [row]]).sum(axis=0).astype(float)
        place = np.where(distances < nearest, k, place) if k else place
        nearest = np.minimum(nearest, distances) if k else distances
    return _clustered(place, n_components)


def _random(rows: Rows, n_components: int, rng: np.random.Generator) -> Floats:
    """Start from random classes."""
    belongs: Floats = rng.dirichlet(np.full(n_components, 0.5), size=rows.weights.size)
    return belongs


def _clustered(place: NDArray[np.integer], n_components: int) -> Floats:
    belongs = np.full((place.size, n_components), (1 - _CERTAIN) / n_components)
    belongs[np.arange(place.size), place] += _CERTAIN
    return belongs


STARTS: dict[str, Callable[[Rows, int, np.random.Generator], Floats]] = {
    "grown": _grown,
    "near": _near,
    "random": _random,
}
"""How EM starts."""
