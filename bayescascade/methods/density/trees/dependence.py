"""Leaves with dependent columns: an average over all trees of dependences.

Inside such a leaf each column depends on at most one other, in any of the ``k^(k-2)`` ways to
connect its ``k`` columns by a tree, with equal prior probability. The prior has ``a`` =
`leaf_concentration` pseudo-rows in the leaf, spread evenly over the ``m_u`` remaining levels of a
column, and over the ``m_u m_v`` pairs of levels of two columns (the BDeu prior). With the rows'
counts ``n`` ::

    M_u  = G(a) / G(a + n)  prod_c   G(n_c  + a / m_u)       / G(a / m_u)        a column
    M_uv = G(a) / G(a + n)  prod_c,d G(n_cd + a / (m_u m_v)) / G(a / (m_u m_v))  a pair
    W_uv = M_uv / (M_u M_v)

The likelihood of a tree is a product over its edges, so the matrix-tree theorem sums over all
trees::

    likelihood = prod_u M_u  det Q(W) / k^(k-2)  prod_rows,j 1 / w_jc

with Q the Laplacian of the weighted graph without one row and column, and ``w_jc`` the widths of
levels, over which the density is uniform. Conjugacy makes a row's predictive density the ratio of
two such likelihoods, in which ``W_uv`` is multiplied by the ratio of the pair's posterior mean to
its columns'. A column with a single remaining level has no effect. One such leaf over a whole table
is the Bayesian average over Chow-Liu trees.

M. Meila and T. Jaakkola, Tractable Bayesian learning of tree belief networks, Statistics and
Computing 16 (2006), section 4; M. Meila and M. I. Jordan, Learning with mixtures of trees, JMLR 1
(2000). A departure: no determinant of the Laplacian is computed, because small weights would be
lost in the rounding of its diagonal. Instead columns are eliminated as in a network of
conductances: the star of a column is replaced by the mesh ``w_ui w_uj / sum_i w_ui`` between its
neighbors. This gives the same product of pivots by sums of positive numbers alone, and it works in
logs, which are necessary because weights differ by factors of ``exp(n)``.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, rel_entr

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import DataError
from bayescascade.base.jit import sparing
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.kernels.dependence import count_pairs, score_leaves
from bayescascade.methods.density.trees.kernels.drawing import draw_rows
from bayescascade.methods.density.trees.kernels.layout import TableArrays, new_dependence_workspace
from bayescascade.methods.density.trees.tree import level_starts, levels_left
from bayescascade.report.numbers import probability_text

Integers = NDArray[np.integer]

_MOST_FALSE = 0.05  # share of leaves with independent columns that show any pair as joined
_MOST_CELLS = 1 << 16  # for a row with missing cells, or for a leaf given evidence


class JoinedPair(NamedTuple):
    """Two columns that are joined inside a leaf, and their most associated levels."""

    columns: tuple[int, int]
    codes: tuple[int, int]
    probability: float  # probability that the columns are joined
    together: float  # probability of the two levels inside the leaf
    apart: float  # the same probability if the columns were independent

    def levels(self, schema: Schema) -> list[str]:
        """Return the two levels in words."""
        pairs = zip(self.columns, self.codes, strict=True)
        return [schema.columns[j].condition_words((code,)) for j, code in pairs]

    def words(self, schema: Schema, note: str = "") -> str:
        """Return it in words, such as "sky is grey with wind is gale 0.40 (0.12)", and a note."""
        together, apart = probability_text(self.together), probability_text(self.apart)
        return f"{' with '.join(self.levels(schema))} {together} ({apart}{note})"


class DependentLeaf:
    """The rows of one box; its columns are connected by a tree, averaged over all trees.

    box (p,) uint64: blocks, as in `Tree.boxes`; counts (L, L) float64 >= 0: `pair_counts` of the
    rows in the box; leaf_concentration > 0: number of pseudo-rows of the prior.

    columns (k,) int64: those with two or more remaining levels; log_weights (k, k) float64: ``ln
    W``, nats, the log Bayes factor of two columns' joint distribution against independence, 0 on
    the diagonal; log_evidence: log of the rows' marginal likelihood, nats, 0 without rows;
    level_probabilities (L,) float64: the posterior mean of every level, the same in all trees.
    """

    mass = 1.0  # for a leaf given evidence, the share that remains

    def __init__(
        self, schema: Schema, box: NDArray[np.uint64], counts: Floats, leaf_concentration: float
    ) -> None:
        self._starts = level_starts(schema)
        left = levels_left(schema, box[np.newaxis])[0]
        self._n_left = np.add.reduceat(left.astype(np.int64), self._starts[:-1])
        self.columns = np.flatnonzero(self._n_left > 1)
        self._counts, self._concentration = counts, leaf_concentration
        imagined = leaf_concentration * left / np.repeat(self._n_left, schema.n_levels)
        self._pairs = counts + np.outer(imagined, imagined) / leaf_concentration
        self._levels = counts.diagonal() + imagined
        self._total = float(self._levels[: self._starts[1]].sum())
        self.level_probabilities = self._levels / self._total
        self._log_widths = np.log(np.concatenate([column.widths for column in schema.columns]))
        log_evidence, _, logs = self._run(np.empty((schema.n_columns, 0), np.int32))
        self.log_weights = logs + logs.T
        self.log_evidence = log_evidence - float(counts.diagonal() @ self._log_widths)

    def score_codes(self, codes: Integers) -> Floats:
        """Return the log predictive density, nats, of (p, n) coded rows in the box, (n,)."""
        scores: Floats = self._run(codes)[1] - self.places_of(codes)[1]
        return scores

    def places_of(self, codes: Integers) -> tuple[Integers, Floats]:
        """Return the positions of (p, n) rows' levels among all levels, and their log widths."""
        places = codes + self._starts[:-1, np.newaxis]
        return places, self._log_widths[places].sum(axis=0)

    def _run(self, codes: Integers) -> tuple[float, Floats, Floats]:
        """Return the log evidence and rows' log densities, without widths, and half of ln W."""
        (p, n), log_evidence, k = codes.shape, np.empty(1), self.columns.size
        rows, scores = np.ascontiguousarray(codes.T, np.int32), np.empty(n)
        work = new_dependence_workspace(self._concentration, p)
        with sparing(self._log_widths.size**2 + (n + 1) * k**3 / 6):
            score_leaves(
                self._starts, work, self._n_left, self._counts[np.newaxis], rows, np.array([0, n]),
                log_evidence, scores,
            )  # fmt: skip
        return float(log_evidence[0]), scores, np.tril(work.logs[:k, :k], -1)

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (p, n) codes: for each row a tree of the columns, and the row given the tree."""
        codes = np.empty((self._starts.size - 1, n), np.int32)
        for j in range(codes.shape[0]):  # other columns have a single remaining level
            codes[j] = np.argmax(self._levels[self._starts[j] : self._starts[j + 1]])
        k = self.columns.size
        if k == 0:
            return codes
        log_shares, kept = self._stages
        rows = np.ascontiguousarray(codes.T)
        with sparing(n * (k**2 + self._log_widths.size)):
            draw_rows(
                rng, self._starts, self.columns, log_shares, kept, self._levels, self._pairs,
                np.empty((5, k), np.int64), np.empty(k), rows,
            )  # fmt: skip
        return rows.T

    @cached_property
    def _stages(self) -> tuple[Floats, Floats]:
        """The elimination for `draw_rows`, the first vertex first."""
        log_shares = np.zeros(self.log_weights.shape)
        stages = _eliminate(self.log_weights)[::-1]
        for last, (own, _) in enumerate(stages, start=1):
            log_shares[last, :last] = own
        return log_shares, np.concatenate([np.empty(0), *(kept.ravel() for _, kept in stages)])

    @property
    def joint_levels(self) -> Floats:
        """Posterior means of pairs of levels (L, L), each pair as if it was joined."""
        joint: Floats = self._pairs / self._total
        np.fill_diagonal(joint, self.level_probabilities)
        return joint

    @cached_property
    def strongest_pairs(self) -> list[JoinedPair]:
        """The pairs of columns that the rows join, the largest mutual information first.

        Every tree has edges, with any rows. So a pair must be joined in at least half of the trees,
        and its Bayes factor ``W_uv`` against independence must be at least 20 times the number of
        pairs. For independent columns ``W`` has the mean 1, because both ``M_uv`` and ``M_u M_v``
        sum to one over all tables. By Markov's inequality and the sum over pairs, at most one in 20
        such leaves then shows any pair, averaged over the prior. Given evidence there are no pairs.
        """
        found, joined = [], edge_probabilities(self.log_weights)
        n_pairs = max(1, joined.shape[0] * (joined.shape[0] - 1) // 2)
        is_backed = self.log_weights >= np.log(n_pairs / _MOST_FALSE)
        for s, t in zip(*np.nonzero(np.triu((joined >= 0.5) & is_backed, 1)), strict=True):
            one, other = int(self.columns[s]), int(self.columns[t])
            rows, columns = (slice(*self._starts[j : j + 2]) for j in (one, other))
            joint = self._pairs[rows, columns] / self._total
            apart = np.outer(self.level_probabilities[rows], self.level_probabilities[columns])
            worth = rel_entr(joint, apart)
            a, b = divmod(int(worth.argmax()), worth.shape[1])
            numbers = (float(x) for x in (joined[s, t], joint[a, b], apart[a, b]))
            found.append((float(worth.sum()), JoinedPair((one, other), (a, b), *numbers)))
        return [pair for _, pair in sorted(found, key=lambda item: -item[0])]

    def given(self, codes: Sequence[Sequence[int]]) -> "GivenLeaf":
        """Return the leaf given the remaining codes of each column; at most 65,536 cells."""
        n_cells = float(np.prod([len(own) for own in codes], dtype=float))
        if n_cells > _MOST_CELLS:
            raise DataError(
                f"conditions must leave at most {_MOST_CELLS:,} cells of a dependent leaf, "
                f"got {n_cells:,.0f}"
            )
        return GivenLeaf(self, np.array(list(product(*codes)), np.int32).T)


class GivenLeaf:
    """A dependent leaf restricted to some cells, which are listed one by one, (p, n)."""

    joint_levels: None = None  # it is shown under conditions only
    strongest_pairs: Sequence[JoinedPair] = ()  # the restricted leaf is not an average over trees

    def __init__(self, whole: DependentLeaf, cells: Codes) -> None:
        self._whole, self._cells = whole, cells
        self.log_evidence = whole.log_evidence
        places, log_volumes = whole.places_of(cells)
        self._masses = np.exp(whole.score_codes(cells) + log_volumes)
        self.mass = float(self._masses.sum())
        weights = np.broadcast_to(self._masses / self.mass, places.shape).ravel()
        n_levels = whole.level_probabilities.size
        self.level_probabilities = np.bincount(places.ravel(), weights, n_levels)

    def score_codes(self, codes: Integers) -> Floats:
        """Return the log predictive density, nats, of (p, n) coded rows in its cells, (n,)."""
        scores: Floats = self._whole.score_codes(codes) - np.log(self.mass)
        return scores

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (p, n) codes from the remaining cells."""
        return rng.choice(self._cells, n, p=self._masses / self.mass, axis=1)

    def given(self, codes: Sequence[Sequence[int]]) -> "GivenLeaf":
        """Return the leaf given fewer codes of each column."""
        return self._whole.given(codes)


def pair_counts(schema: Schema, table: TableArrays, boxes: NDArray[np.uint64]) -> Floats:
    """Return weights of pairs of levels in boxes (n, p): (n, L, L), levels on the diagonal."""
    places = table.codes + table.offsets[:-1, np.newaxis]
    left = levels_left(schema, boxes)
    rows = [np.flatnonzero(own[places].all(axis=0)) for own in left]
    edges = np.cumsum([0, *map(len, rows)])
    counts = np.zeros((*left.shape, left.shape[1]))
    work = new_dependence_workspace(1.0, boxes.shape[1])
    with sparing(edges[-1] * boxes.shape[1] ** 2):
        every = table.n_levels + 1  # column, including columns of a single level
        count_pairs(table, work, every, np.concatenate(rows), edges, counts)
    return counts + np.tril(counts, -1).swapaxes(1, 2)


def integrate_missing(score: Callable[[Codes], Floats], schema: Schema, codes: Codes) -> Floats:
    """Return log densities of (p, n) rows; missing cells, -1, have up to 65,536 completions."""
    is_missing = codes < 0
    n_ways = np.where(is_missing, schema.n_levels[:, np.newaxis].astype(float), 1.0).prod(axis=0)
    if n_ways.max(initial=0) > _MOST_CELLS:
        raise DataError(
            f"missing cells must be filled in by at most {_MOST_CELLS:,} ways where leaves are "
            f"dependent, got {n_ways.max():,.0f} in row {n_ways.argmax()}"
        )
    if not is_missing.any():
        distinct, at = np.unique(codes, axis=1, return_inverse=True)
        return score(distinct)[at.reshape(-1)]
    levels = [range(n) for n in schema.n_levels.tolist()]
    filled: list[tuple[int, ...]] = []
    for row in codes.T.tolist():
        filled += product(*((c,) if c >= 0 else own for c, own in zip(row, levels, strict=True)))
    rows = np.repeat(np.arange(n_ways.size), n_ways.astype(np.int64))
    cells = np.array(filled, np.int32).reshape(-1, len(levels)).T
    distinct, at = np.unique(cells, axis=1, return_inverse=True)
    log_widths = np.log(np.concatenate([column.widths for column in schema.columns]))
    log_widths = log_widths[cells + level_starts(schema)[:-1, np.newaxis]]
    scores = np.full(n_ways.size, -np.inf)
    parts = score(distinct)[at.reshape(-1)] + (log_widths * is_missing[:, rows]).sum(axis=0)
    np.logaddexp.at(scores, rows, parts)
    return scores


def edge_probabilities(log_weights: Floats) -> Floats:
    """Return the probability of each edge in a tree drawn in proportion to its edges' weights.

    Both are (k, k) float64 and symmetric; the diagonal of the log weights is not read. This is the
    derivative of the log of the sum over all trees by the edge's log weight, computed backward
    through the elimination. It is ``W_uv`` times the resistance between u and v, but without
    differences of entries of an inverse, which would cancel for a strong edge between weakly
    connected columns.
    """
    edges = np.zeros(log_weights.shape)
    for last, (log_shares, kept) in enumerate(reversed(_eliminate(log_weights)), start=1):
        passed = (1 - kept) * edges[:last, :last]
        edges[:last, :last] *= kept
        own = passed.sum(axis=1) + (1 - passed.sum() / 2) * np.exp(log_shares)
        edges[last, :last] = edges[:last, last] = own
        np.fill_diagonal(edges, 0.0)
    return np.clip(edges, 0.0, 1.0)


def _eliminate(log_weights: Floats) -> list[tuple[Floats, Floats]]:
    """Return the elimination of each vertex with m others remaining, the last one first.

    These are the logs of its edges' shares of its star, (m,), and the probability that an edge
    between two others, in a tree without it, is an original edge and not a path through it, (m, m).
    """
    stages, logs = [], log_weights
    for last in range(log_weights.shape[0] - 1, 0, -1):
        star, others = logs[last, :last], logs[:last, :last]
        log_shares = star - logsumexp(star)
        logs = np.logaddexp(others, star[:, np.newaxis] + log_shares)
        stages.append((log_shares, np.exp(others - logs)))
    return stages
