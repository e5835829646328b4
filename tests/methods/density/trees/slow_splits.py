"""The distribution of split proposals at a node, in slow and plain Python.

A split is drawn column first: ``(1 - EPS) * exp(score_j) / sum_k exp(score_k) + EPS / n_open``;
then its number of branches ``b`` in proportion to ``exp(branch_log_weights[b])``; then, with
probability ``1 - EPS``, a way to cut the levels in order of falling density (ordered columns:
their own order), else any partition uniformly. Two-way cuts are weighted by
``exp(cut score)``, half the log Bayes factor of the split of the node if it was all there is,
others equally; ``score_j`` is the log of the column's sum of two-way weights.

Where every level goes its own way only the column is drawn, ``score_j`` being half the log Bayes
factor of its one split.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.data.table import Table
from bayescascade.methods.density.trees.kernels.layout import EPS
from bayescascade.methods.density.trees.models import independent_log_inside
from bayescascade.methods.density.trees.tree import Split, pack_block
from bayescascade.methods.density.trees.tree_posterior import CascadePosterior
from tests.reference import partitions as set_partitions, runs

Blocks = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class SplitProposals:
    """The splits that may be proposed at a node.

    For every column with two or more levels left, `ordered` has their codes in order of falling
    density, ties by code (ordered columns: ascending), and `cut_scores` the score of the cut after
    each, or that of its one split if every level goes its own way.
    """

    posterior: CascadePosterior
    ordered: dict[int, tuple[int, ...]]
    cut_scores: dict[int, NDArray[np.float64]]

    @classmethod
    def at(cls, posterior: CascadePosterior, box: Sequence[tuple[int, ...]]) -> "SplitProposals":
        """Return the proposals for a node with these codes left of every column."""
        table, alpha = posterior.table, posterior.model.concentration
        is_here = np.ones(table.weights.shape[0], np.bool_)
        for codes, left in zip(table.codes, box, strict=True):
            is_here &= np.isin(codes, left)
        rows = np.flatnonzero(is_here)
        ordered: dict[int, tuple[int, ...]] = {}
        cut_scores: dict[int, NDArray[np.float64]] = {}
        for j, left in enumerate(box):
            if len(left) < 2:
                continue
            counts = np.bincount(table.codes[j][rows], table.weights[rows], max(left) + 1)
            order = tuple(left)
            if posterior.is_nominal[j]:
                order = tuple(sorted(left, key=lambda c: (-counts[c], c)))
            if posterior.partitions == "levels":
                partitions: list[Blocks] = [tuple((code,) for code in order)]
            else:
                partitions = [(order[:i], order[i:]) for i in range(1, len(order))]
            weights = np.array([[counts[list(b)].sum() for b in blocks] for blocks in partitions])
            inside = _log_inside(posterior, box, rows, j, partitions, weights)
            ordered[j] = order
            cut_scores[j] = 0.5 * _log_bayes_factors(weights, inside, alpha)
        return cls(posterior, ordered, cut_scores)

    @property
    def by_levels(self) -> bool:
        """Whether every level left goes its own way."""
        return self.posterior.partitions == "levels"

    def column_probability(self, j: int) -> float:
        """Return the probability that the split is on column `j`."""
        scores = {k: float(np.logaddexp.reduce(self.cut_scores[k])) for k in self.ordered}
        informed = np.exp(scores[j] - np.logaddexp.reduce(list(scores.values())))
        return float((1 - EPS) * informed + EPS / len(self.ordered))

    def branches(self, j: int) -> tuple[range, NDArray[np.float64]]:
        """Return the numbers of branches open to column `j` and their probabilities."""
        most = min(len(self.ordered[j]), self.posterior.max_proposed)
        fewest = most if self.by_levels else 2
        weights = self.posterior.branch_log_weights[fewest : most + 1]
        return range(fewest, most + 1), np.exp(weights - np.logaddexp.reduce(weights))

    def partition_probability(self, split: Split) -> float:
        """Return the probability of the partition, given column and number of branches."""
        if self.by_levels:
            return 1.0
        j, blocks = split
        order, b = self.ordered[j], len(blocks)
        branch_of = {code: index for index, block in enumerate(blocks) for code in block}
        cuts = [i for i in range(len(order) - 1) if branch_of[order[i]] != branch_of[order[i + 1]]]
        n_cuts = comb(len(order) - 1, b - 1)
        n_partitions = _stirling(len(order), b) if self.posterior.is_nominal[j] else n_cuts
        if len(cuts) != b - 1:
            informed = 0.0
        elif b == 2:
            scores = self.cut_scores[j]
            informed = float(np.exp(scores[cuts[0]] - np.logaddexp.reduce(scores)))
        else:
            informed = 1 / n_cuts
        return (1 - EPS) * informed + EPS / n_partitions

    def probability(self, split: Split) -> float:
        """Return the probability of a split; 0 if it has more branches than are proposed."""
        numbers, weights = self.branches(split[0])
        if len(split[1]) not in numbers:
            return 0.0
        of_branches = float(weights[numbers.index(len(split[1]))])
        return self.column_probability(split[0]) * of_branches * self.partition_probability(split)

    def probability_with_branches(self, split: Split) -> float:
        """Return the probability of a split when its number of branches is set beforehand.

        The column is then uniform among those with as many levels.
        """
        n_open = len(self._open_to(len(split[1])))
        return self.partition_probability(split) / n_open

    def all(self) -> Iterator[Split]:
        """Yield every split that has a positive probability."""
        for j in self.ordered:
            for b in self.branches(j)[0]:
                yield from self._all_of(j, b)

    def all_with_branches(self, n_branches: int) -> Iterator[Split]:
        """Yield every split with this number of branches."""
        for j in self._open_to(n_branches):
            yield from self._all_of(j, n_branches)

    def _all_of(self, j: int, n_branches: int) -> Iterator[Split]:
        codes = tuple(sorted(self.ordered[j]))
        for blocks in set_partitions(codes) if self.posterior.is_nominal[j] else runs(codes):
            if len(blocks) == n_branches:
                yield j, blocks

    def _open_to(self, n_branches: int) -> list[int]:
        if self.by_levels:
            return [j for j, codes in self.ordered.items() if len(codes) == n_branches]
        return [j for j, codes in self.ordered.items() if len(codes) >= n_branches]


def _log_bayes_factors(weights, log_inside, alpha):
    """Return those of splits with b branches each, given as (n, b), but for the node's constant."""
    b = weights.shape[1]
    branches = gammaln(weights + alpha) - gammaln(alpha) + log_inside
    normalizer = gammaln(b * alpha) - gammaln(weights.sum(axis=1) + b * alpha)
    bayes_factors: NDArray[np.float64] = branches.sum(axis=1) + normalizer
    return bayes_factors


def _log_inside(posterior, box, rows, j, partitions, weights):
    """Return what each branch of the splits of column `j` contributes as a leaf, (n, b) float64."""
    table, is_nominal = posterior.table, posterior.is_nominal
    blocks = [list(block) for partition in partitions for block in partition]
    if posterior.model.leaf != "independent":  # the other columns' widths are the same for all
        widths = table.schema.columns[j].widths
        shares = np.array([widths[block].sum() for block in blocks]) / widths[list(box[j])].sum()
        uniform: NDArray[np.float64] = -weights * np.log(shares.reshape(weights.shape))
        return uniform
    joint = np.hstack([_joint_counts(table, rows, j, k) for k in range(len(box))])
    words = [pack_block(nominal, codes) for nominal, codes in zip(is_nominal, box, strict=True)]
    boxes = np.tile(np.array(words, np.uint64), (len(blocks), 1))
    boxes[:, j] = [pack_block(is_nominal[j], block) for block in blocks]
    level_counts = np.array([joint[block].sum(axis=0) for block in blocks])
    log_inside = independent_log_inside(
        posterior.schema, boxes, level_counts, posterior.model.leaf_concentration
    )
    return log_inside.reshape(weights.shape)


def _joint_counts(table: Table, rows: NDArray[np.intp], j: int, k: int) -> NDArray[np.float64]:
    """Return the weight of every pair of levels of two columns among some rows."""
    n_j, n_k = (table.schema.columns[index].n_levels for index in (j, k))
    pairs = table.codes[j][rows].astype(np.intp) * n_k + table.codes[k][rows]
    counts = np.bincount(pairs, table.weights[rows], minlength=n_j * n_k)
    return counts.reshape(n_j, n_k).astype(np.float64)


@cache
def _stirling(m: int, b: int) -> int:
    """Return the number of partitions of `m` levels into `b` nonempty blocks."""
    return sum(len(blocks) == b for blocks in set_partitions(tuple(range(m))))
