"""Leaves whose columns depend on each other: an average over all trees of dependences.

Inside such a leaf each column depends on at most one other, in any of the ``k^(k-2)`` ways to
connect its ``k`` columns by a tree, each as probable before seeing rows. With ``a`` =
`leaf_concentration` rows imagined in the leaf, spread evenly over the levels left of a column, and
over the ``m_u m_v`` pairs of levels of two (the BDeu prior), the rows' counts ``n`` give ::

    M_u  = G(a) / G(a + n)  prod_c   G(n_c  + a / m_u)       / G(a / m_u)        a column
    M_uv = G(a) / G(a + n)  prod_c,d G(n_cd + a / (m_u m_v)) / G(a / (m_u m_v))  a pair
    W_uv = M_uv / (M_u M_v)

and, as every tree's likelihood is a product over its edges, the matrix-tree theorem sums them all::

    likelihood = prod_u M_u  det Q(W) / k^(k-2)  prod_rows,j 1 / w_jc

with Q the Laplacian of the weighted graph without one row and column, and ``w_jc`` the widths of
levels, over which the density is even. Conjugacy makes a row's predictive density the ratio of two
such likelihoods, in which ``W_uv`` is multiplied by the ratio of the pair's posterior mean to its
columns'. A column with a single level left has one cell: it drops out. One such leaf over a whole
table is the Bayesian average over Chow-Liu trees.

M. Meila and T. Jaakkola, Tractable Bayesian learning of tree belief networks, Statistics and
Computing 16 (2006), section 4; M. Meila and M. I. Jordan, Learning with mixtures of trees, JMLR 1
(2000). A departure: no determinant is taken of the Laplacian, whose diagonal would swallow the
small weights. Eliminating a column as an electrician does, its star of conductances replaced by the
mesh ``w_ui w_uj / sum_i w_ui`` between its neighbors, gives the same product of pivots from sums of
positive numbers alone, and in logs, as weights differ by factors of ``exp(n)``.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp, rel_entr

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_real
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import level_starts, levels_left
from bayescascade.report.numbers import probability_text

__all__ = [
    "DependentLeaf",
    "JoinedPair",
    "dependent_leaves",
    "edge_probabilities",
    "integrate_missing",
    "log_tree_sum",
    "pair_counts",
]

Floats = NDArray[np.float64]

_CELLS_AT_ONCE = 1 << 22  # entries of matrices that rows are scored by, at a time
_LEAST_TOTAL = 3.0  # nats of mutual information over a leaf's rows, of a pair that is told
_MOST_WAYS = 1 << 16  # to fill in a row's missing cells


class JoinedPair(NamedTuple):
    """Two columns that are probably joined inside a leaf, and the levels that go together most.

    Parameters
    ----------
    columns, codes : (int, int)
    probability : float in [0, 1]
        That the columns are joined.
    together, apart : float in [0, 1]
        Probability of the two levels inside the leaf, and if the columns were independent.
    """

    columns: tuple[int, int]
    probability: float
    codes: tuple[int, int]
    together: float
    apart: float

    def words(self, schema: Schema) -> str:
        """Return it in words, such as "sky is grey with wind is gale 0.40, apart 0.12"."""
        one, other = (
            schema.columns[j].condition_words((code,))
            for j, code in zip(self.columns, self.codes, strict=True)
        )
        together, apart = probability_text(self.together), probability_text(self.apart)
        return f"{one} with {other} {together}, apart {apart}"


class DependentLeaf:
    """The rows of one box, its columns connected by a tree that is averaged over.

    Parameters
    ----------
    schema : Schema
    box : (p,) uint64
        Blocks, as `Tree.boxes` has them.
    counts : (L, L) float64 >= 0
        `pair_counts` of the rows in the box.
    leaf_concentration : float > 0
        How many rows the prior is worth.

    Attributes
    ----------
    columns : (k,) int64
        Those with two or more levels left.
    log_weights : (k, k) float64
        ``ln W``, nats: by how much two columns' joint distribution explains the rows better than
        one for each; 0 on the diagonal.
    log_evidence : float
        Log of the rows' marginal likelihood, nats; 0 without rows.
    """

    def __init__(
        self,
        schema: Schema,
        box: NDArray[np.uint64],
        counts: Floats,
        leaf_concentration: float = 1.0,
    ) -> None:
        check_real("leaf_concentration", leaf_concentration, above=0.0)
        starts = level_starts(schema)
        left = levels_left(schema, box[np.newaxis])[0]
        n_left = np.add.reduceat(left.astype(np.int64), starts[:-1])
        self.columns = np.flatnonzero(n_left > 1)
        widths = np.concatenate([column.widths for column in schema.columns])
        self._left, self._log_widths, self._starts = left, np.log(widths), starts

        shares = 1 / np.repeat(n_left, schema.n_levels)
        level_counts, level_imagined = counts.diagonal(), leaf_concentration * shares
        imagined, both_left = level_imagined[:, np.newaxis] * shares, np.outer(left, left)
        self._pairs = np.where(both_left, counts + imagined, 0.0)
        self._levels = np.where(left, level_counts + level_imagined, 0.0)
        self._total = float(level_counts[: starts[1]].sum()) + leaf_concentration

        norm = gammaln(leaf_concentration) - gammaln(self._total)
        of_levels = np.where(left, _log_rise(level_counts, level_imagined), 0.0)
        log_columns = norm + np.add.reduceat(of_levels, starts[:-1])[self.columns]
        of_pairs = np.where(both_left, _log_rise(counts, imagined), 0.0)
        log_pairs = np.add.reduceat(np.add.reduceat(of_pairs, starts[:-1], 0), starts[:-1], 1)
        log_pairs = norm + log_pairs[np.ix_(self.columns, self.columns)]
        self.log_weights = log_pairs - log_columns[:, np.newaxis] - log_columns
        np.fill_diagonal(self.log_weights, 0.0)

        k = self.columns.size
        self._log_sum = float(log_tree_sum(self.log_weights))
        log_average = self._log_sum - (k - 2) * np.log(max(k, 1))
        log_volume = float(level_counts @ self._log_widths)
        self.log_evidence = float(log_columns.sum() + log_average - log_volume)

    @property
    def level_probabilities(self) -> Floats:
        """The posterior mean of every level, (L,) float64; the same in all trees."""
        totals = np.add.reduceat(self._levels, self._starts[:-1])
        probabilities: Floats = self._levels / np.repeat(totals, np.diff(self._starts))
        return probabilities

    def score_codes(self, codes: NDArray[np.integer]) -> Floats:
        """Return the log predictive density of rows in the box, nats.

        Parameters
        ----------
        codes : (p, n) integers
            Rows, column by column; of levels that are left.

        Returns
        -------
        (n,) float64
        """
        places = codes + self._starts[:-1, np.newaxis]
        scores: Floats = -self._log_widths[places].sum(axis=0)
        k = self.columns.size
        if k == 0:
            return scores
        at = places[self.columns].T  # (n, k)
        scores += (np.log(self._levels[at]) - np.log(self._total)).sum(axis=1)
        n_at_once = max(1, _CELLS_AT_ONCE // k**2)
        for first in range(0, at.shape[0], n_at_once):
            part = at[first : first + n_at_once]
            logs = np.log(self._pairs[part[:, :, np.newaxis], part[:, np.newaxis, :]])
            levels = np.log(self._levels[part])
            logs += np.log(self._total) - levels[:, :, np.newaxis] - levels[:, np.newaxis, :]
            after = log_tree_sum(self.log_weights + logs)
            scores[first : first + n_at_once] += after - self._log_sum
        return scores

    def sample_codes(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw (p, n) codes: for each row a tree of the columns, and the row from that."""
        codes = np.empty((self._starts.size - 1, n), np.int32)
        for j in range(codes.shape[0]):  # of columns that are not left only one level is
            codes[j] = np.argmax(self._levels[self._starts[j] : self._starts[j + 1]])
        stages = _eliminate(self.log_weights)
        for row in range(n if self.columns.size else 0):
            neighbors: list[list[int]] = [[] for _ in self.columns]
            for s, t in _draw_tree(stages, rng):
                neighbors[s].append(t)
                neighbors[t].append(s)
            stack = [(0, -1)]
            while stack:
                s, above = stack.pop()
                u, shares = int(self.columns[s]), self._levels
                if above >= 0:
                    v = int(self.columns[above])
                    shares = self._pairs[self._starts[v] + codes[v, row]]
                sums = np.cumsum(shares[self._starts[u] : self._starts[u + 1]])
                codes[u, row] = np.searchsorted(sums, rng.random() * sums[-1], side="right")
                stack.extend((t, s) for t in neighbors[s] if t != above)
        return codes

    @cached_property
    def edge_probabilities(self) -> Floats:
        """The posterior probability that two of `columns` are joined directly, (k, k) float64."""
        return edge_probabilities(self.log_weights)

    def strongest_pairs(self) -> list[JoinedPair]:
        """Return the pairs of columns more probably joined than not, the most telling first.

        That is, those with the largest mutual information, where all rows together have 3 nats of
        it, as few rows may be alike by chance.
        """
        found = []
        for s, t in zip(*np.nonzero(np.triu(self.edge_probabilities >= 0.5, 1)), strict=True):
            one, other = int(self.columns[s]), int(self.columns[t])
            joint = self.joint(one, other)
            apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
            worth = rel_entr(joint, apart)
            if worth.sum() * self._total >= _LEAST_TOTAL:
                at = np.unravel_index(np.argmax(worth), worth.shape)
                pair = JoinedPair(
                    columns=(one, other),
                    probability=float(self.edge_probabilities[s, t]),
                    codes=(int(at[0]), int(at[1])),
                    together=float(joint[at]),
                    apart=float(apart[at]),
                )
                found.append((float(worth.sum()), pair))
        return [pair for _, pair in sorted(found, key=lambda item: -item[0])]

    def joint(self, one: int, other: int) -> Floats:
        """Return the posterior mean of two columns' joint distribution were they joined.

        Parameters
        ----------
        one, other : int
            Columns of the schema, not the same.

        Returns
        -------
        (n_levels of one, n_levels of other) float64
            0 for levels not left; sums to 1.
        """
        rows, columns = (slice(*self._starts[j : j + 2]) for j in (one, other))
        probabilities: Floats = self._pairs[rows, columns] / self._total
        return probabilities


def pair_counts(schema: Schema, codes: NDArray[np.integer], weights: Floats) -> Floats:
    """Return the weight of the rows with every pair of levels, (L, L) float64.

    Parameters
    ----------
    schema : Schema
    codes : (p, n) integers
        Rows, column by column.
    weights : (n,) float64 >= 0

    Returns
    -------
    (L, L) float64
        Symmetric, the levels of one column after those of the one before; each level's own weight
        on the diagonal.
    """
    starts = level_starts(schema)
    p, n = codes.shape
    places = (codes + starts[:-1, np.newaxis]).T.ravel()
    bounds, shape = np.arange(n + 1) * p, (n, int(starts[-1]))
    rows = csr_array((np.ones(n * p), places, bounds), shape=shape)
    weighted = csr_array((np.repeat(weights, p), places, bounds), shape=shape)
    counts: Floats = (rows.T @ weighted).toarray()
    return counts


def dependent_leaves(
    schema: Schema, boxes: NDArray[np.uint64], counts: Floats, leaf_concentration: float
) -> list[DependentLeaf]:
    """Return leaves from their boxes, (n, p) uint64, and `pair_counts`, (n, L, L) float64."""
    return [
        DependentLeaf(schema, box, own, leaf_concentration)
        for box, own in zip(boxes, counts, strict=True)
    ]


def integrate_missing(
    score: Callable[[NDArray[np.int32]], Floats], schema: Schema, codes: NDArray[np.int32]
) -> Floats:
    """Return log densities of rows by a function of complete ones, missing cells integrated out.

    Parameters
    ----------
    score : callable
        From (p, m) codes to (m,) log densities, nats.
    schema : Schema
    codes : (p, n) int32
        -1 where a cell is missing.

    Returns
    -------
    (n,) float64

    Raises
    ------
    DataError
        If there are more than 65,536 ways to fill in a row's missing cells.
    """
    is_missing = codes < 0
    if not is_missing.any():
        return score(codes)
    rows, complete, log_widths = [], [], []
    for row in range(codes.shape[1]):
        holes = np.flatnonzero(is_missing[:, row])
        n_ways = float(np.prod(np.array(schema.n_levels, float)[holes]))
        if n_ways > _MOST_WAYS:
            raise DataError(
                f"missing cells must be filled in by at most {_MOST_WAYS:,} ways where leaves are "
                f"dependent, got {n_ways:,.0f} in row {row}"
            )
        ways = np.indices(tuple(schema.n_levels[holes])).reshape(holes.size, int(n_ways))
        filled = np.repeat(codes[:, row : row + 1], ways.shape[1], axis=1)
        filled[holes] = ways
        widths = [schema.columns[j].widths[way] for j, way in zip(holes, ways, strict=True)]
        log_widths.append(np.log(np.array(widths)).sum(axis=0) * np.ones(ways.shape[1]))
        complete.append(filled)
        rows.append(np.full(ways.shape[1], row))
    scores = np.full(codes.shape[1], -np.inf)
    parts = score(np.concatenate(complete, axis=1)) + np.concatenate(log_widths)
    np.logaddexp.at(scores, np.concatenate(rows), parts)
    return scores


def log_tree_sum(log_weights: Floats) -> NDArray[np.float64]:
    """Return the log of the sum over all spanning trees of the products of their edges' weights.

    Parameters
    ----------
    log_weights : (..., k, k) float64
        Logs of the weights > 0 between any two of k vertices, symmetric; the diagonal is not read.

    Returns
    -------
    (...) float64
        0 for fewer than two vertices, whose one tree has no edge.
    """
    logs, total = log_weights, np.zeros(log_weights.shape[:-2])
    for last in range(log_weights.shape[-1] - 1, 0, -1):
        star = logs[..., last, :last]
        sums = logsumexp(star, axis=-1, keepdims=True)
        mesh = star[..., :, np.newaxis] + (star - sums)[..., np.newaxis, :]
        logs = np.logaddexp(logs[..., :last, :last], mesh)
        total = total + sums[..., 0]
    return total


def edge_probabilities(log_weights: Floats) -> Floats:
    """Return the probability of each edge in a tree drawn in proportion to its edges' weights.

    That is the derivative of `log_tree_sum` by the edge's log weight, here taken backward through
    the elimination: ``W_uv`` times the resistance between u and v, without the differences of
    entries of an inverse that a strong edge between weakly connected columns would drown in.

    Parameters
    ----------
    log_weights : (k, k) float64
        As in `log_tree_sum`.

    Returns
    -------
    (k, k) float64
        Symmetric; 0 on the diagonal; sums to 2 (k - 1).
    """
    k, stages = log_weights.shape[0], _eliminate(log_weights)
    edges = np.zeros((k, k))
    for last in range(1, k):
        stage = stages[-last]
        passed = np.exp(stage.log_passed) * edges[:last, :last]
        edges[:last, :last] *= np.exp(stage.log_kept)
        own = passed.sum(axis=1) + (1 - passed.sum() / 2) * np.exp(stage.log_shares)
        edges[last, :last] = edges[:last, last] = own
        np.fill_diagonal(edges, 0.0)
    return np.clip(edges, 0.0, 1.0)


class _Stage(NamedTuple):
    """How the last vertex was eliminated, before which there are m: logs of probabilities.

    log_shares (m,): its edges' shares of its star; log_kept and log_passed (m, m): that an edge
    between others, of a tree without it, was there before, or stands for a path through it.
    """

    log_shares: Floats
    log_kept: Floats
    log_passed: Floats


def _eliminate(log_weights: Floats) -> list[_Stage]:
    stages, logs = [], log_weights
    for last in range(log_weights.shape[0] - 1, 0, -1):
        star = logs[last, :last]
        shares = star - logsumexp(star)
        through = star[:, np.newaxis] + shares
        together = np.logaddexp(logs[:last, :last], through)
        stages.append(_Stage(shares, logs[:last, :last] - together, through - together))
        logs = together
    return stages


def _draw_tree(stages: Sequence[_Stage], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return the edges of a tree in proportion to its weight, vertices put back one by one.

    Edges that stood for paths through the vertex go; it is joined to each part that is then left,
    by one edge in proportion to its share, so that nothing goes round.
    """
    edges: list[tuple[int, int]] = []
    for last, stage in enumerate(reversed(stages), start=1):
        edges = [edge for edge in edges if np.log(rng.random()) < stage.log_kept[edge]]
        part = np.arange(last)
        for s, t in edges:
            part[part == part[t]] = part[s]
        drawn = stage.log_shares + rng.gumbel(size=last)
        for label in np.unique(part):
            inside = np.flatnonzero(part == label)
            edges.append((int(inside[np.argmax(drawn[inside])]), last))
    return edges


def _log_rise(counts: Floats, imagined: Floats) -> Floats:
    """Return ``lnG(n + a) - lnG(a)``."""
    rise: Floats = gammaln(counts + imagined) - gammaln(imagined)
    return rise
