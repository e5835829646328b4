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

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

from bayescascade.base.validation import check_real
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import level_starts, levels_left

__all__ = ["DependentLeaf", "edge_probabilities", "log_tree_sum"]

Floats = NDArray[np.float64]

_CELLS_AT_ONCE = 1 << 22  # entries of matrices that rows are scored by, at a time


class DependentLeaf:
    """The rows of one box, its columns connected by a tree that is averaged over.

    Parameters
    ----------
    schema : Schema
    box : (p,) uint64
        Blocks, as `Tree.boxes` has them.
    codes : (p, n) integers
        The rows in the box, column by column; there may be none.
    weights : (n,) float64 >= 0
        Their weights.
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
        codes: NDArray[np.integer],
        weights: Floats,
        leaf_concentration: float = 1.0,
    ) -> None:
        check_real("leaf_concentration", leaf_concentration, above=0.0)
        starts = level_starts(schema)
        left = levels_left(schema, box[np.newaxis])[0]
        n_left = np.add.reduceat(left.astype(np.int64), starts[:-1])
        self.columns = np.flatnonzero(n_left > 1)
        widths = np.concatenate([column.widths for column in schema.columns])
        self._log_widths, self._starts, total = np.log(widths), starts[:-1], float(weights.sum())

        shares = 1 / np.repeat(n_left, schema.n_levels)
        imagined = leaf_concentration * np.outer(shares, shares)
        level_imagined = leaf_concentration * shares
        counts = self._pair_counts(codes, weights)
        self._pairs = np.where(np.outer(left, left), counts + imagined, 0.0)
        level_counts = counts.diagonal()
        self._levels = np.where(left, level_counts + level_imagined, 0.0)
        self._total = total + leaf_concentration

        norm = gammaln(leaf_concentration) - gammaln(self._total)
        of_levels = np.where(left, _log_rise(level_counts, level_imagined), 0.0)
        log_columns = norm + np.add.reduceat(of_levels, self._starts)[self.columns]
        of_pairs = np.where(np.outer(left, left), _log_rise(counts, imagined), 0.0)
        log_pairs = np.add.reduceat(np.add.reduceat(of_pairs, self._starts, 0), self._starts, 1)
        log_pairs = norm + log_pairs[np.ix_(self.columns, self.columns)]
        self.log_weights = log_pairs - log_columns[:, np.newaxis] - log_columns
        np.fill_diagonal(self.log_weights, 0.0)

        k = self.columns.size
        self._log_sum = float(log_tree_sum(self.log_weights))
        log_average = self._log_sum - (k - 2) * np.log(max(k, 1))
        log_volume = float(level_counts @ self._log_widths)
        self.log_evidence = float(log_columns.sum() + log_average - log_volume)

    def _pair_counts(self, codes: NDArray[np.integer], weights: Floats) -> Floats:
        """Return the weight of every pair of levels, (L, L); each level's own on the diagonal."""
        p, n = codes.shape
        places = (codes + self._starts[:, np.newaxis]).T.ravel()
        shape = (n, self._log_widths.size)
        rows = csr_array((np.ones(n * p), places, np.arange(n + 1) * p), shape=shape)
        weighted = csr_array((np.repeat(weights, p), places, np.arange(n + 1) * p), shape=shape)
        counts: Floats = (rows.T @ weighted).toarray()
        return counts

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
        places = codes + self._starts[:, np.newaxis]
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

    @cached_property
    def edge_probabilities(self) -> Floats:
        """The posterior probability that two of `columns` are joined directly, (k, k) float64."""
        return edge_probabilities(self.log_weights)

    def strongest_pairs(self, most: int) -> Sequence[tuple[int, int, float]]:
        """Return the pairs of columns most probably joined, with their probability.

        Parameters
        ----------
        most : int >= 0
            How many pairs at most.

        Returns
        -------
        list of (int, int, float)
            Columns of the schema, the earlier first; the most probable pair first.
        """
        first, second = np.triu_indices(self.columns.size, 1)
        probabilities = self.edge_probabilities[first, second]
        order = np.argsort(-probabilities, kind="stable")[:most]
        return [
            (int(self.columns[first[i]]), int(self.columns[second[i]]), float(probabilities[i]))
            for i in order
        ]

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
        ends = np.append(self._starts[1:], self._log_widths.size)
        rows, columns = slice(self._starts[one], ends[one]), slice(self._starts[other], ends[other])
        probabilities: Floats = self._pairs[rows, columns] / self._total
        return probabilities


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
    k = log_weights.shape[0]
    stages, logs = [], log_weights
    for last in range(k - 1, 0, -1):
        star = logs[last, :last]
        shares = star - logsumexp(star)
        through = star[:, np.newaxis] + shares
        together = np.logaddexp(logs[:last, :last], through)
        stages.append((np.exp(shares), np.exp(logs[:last, :last] - together), through - together))
        logs = together
    edges = np.zeros((k, k))
    for last in range(1, k):
        shares, kept, log_passed = stages[-last]
        inner = edges[:last, :last]
        passed = np.exp(log_passed) * inner
        edges[:last, :last] = kept * inner
        edges[last, :last] = passed.sum(axis=1) + (1 - passed.sum() / 2) * shares
        edges[:last, last] = edges[last, :last]
        np.fill_diagonal(edges, 0.0)
    return np.clip(edges, 0.0, 1.0)


def _log_rise(counts: Floats, imagined: Floats) -> Floats:
    """Return ``lnG(n + a) - lnG(a)``."""
    rise: Floats = gammaln(counts + imagined) - gammaln(imagined)
    return rise
