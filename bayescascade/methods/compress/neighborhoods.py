"""Probabilities that neighbors have the class of their row: likelihood and gradients, by blocks.

Prototype z_j is the neighbor of a row x with probability p_j = exp(-|A (x - z_j)|^2) over the sum
of these. The row is classified correctly with probability p = sum of p_j over the prototypes of its
class (Kusner 2016, equations 3.3 and 3.7). Up to a term that is the same for all j, minus the
squared distance is 2 x'Bz - z'Bz, B = A'A: a product of rows and weights, by BLAS for a block of
rows at a time, which needs memory of (block, n_prototypes). The rows of a block have one class, and
prototypes are sorted by class; the order of sums does not depend on the number of threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.threads import single_threaded

Rows = NDArray[np.floating[Any]]

BLOCK = 256  # rows: with a thousand prototypes, two megabytes
_N_PARTS = 8  # separate sums, for as many cores
_LEAST_THREADED = 1 << 20  # minimum number of distances for threads


class Pulls(NamedTuple):
    """Sums of rows for gradients of prototypes, with w_ij = p_ij (1[same class] / p_i - 1)."""

    log_likelihood: float  # sum of log p, nats
    weighted_rows: Floats  # (n_prototypes, n_columns): sum over rows of w_ij x_i
    weights: Floats  # (n_prototypes,): sum over rows of w_ij


@dataclass(frozen=True, slots=True, eq=False)
class ClassedRows:
    """Rows sorted by class."""

    rows: Rows  # (n_rows, n_columns + 1) float32 or float64: the rows, and ones
    # (n_classes + 1,): starts of the rows of each class, and the end
    ends: Integers
    counts: Rows | None = None  # (n_rows,) > 0: how many rows each one counts as; None: 1 each

    @classmethod
    def of(
        cls,
        rows: Rows,
        labels: Integers,
        n_classes: int,
        dtype: Any = np.float64,
        weights: Floats | None = None,
    ) -> "ClassedRows":
        """Return rows (n_rows, n_columns) sorted by the positions of their classes."""
        order = np.argsort(labels, kind="stable")
        sorted_rows = np.ones((len(rows), rows.shape[1] + 1), dtype)
        sorted_rows[:, :-1] = rows[order]
        counts = None if weights is None else weights[order].astype(dtype)
        return cls(sorted_rows, np.searchsorted(labels[order], np.arange(n_classes + 1)), counts)

    def part(self, chosen: Integers) -> "ClassedRows":
        """Return the rows in some places, which are sorted."""
        counts = None if self.counts is None else self.counts[chosen]
        return ClassedRows(self.rows[chosen], np.searchsorted(chosen, self.ends), counts)

    @property
    def total(self) -> float:
        """Number of rows that these count as."""
        return float(len(self.rows) if self.counts is None else self.counts.sum())

    def pulls(self, weights: Floats, starts: Integers, n_threads: int = 1) -> Pulls:
        """Return log likelihood and pulls; the result does not depend on `n_threads`.

        weights (n_columns + 1, n_prototypes): 2 B z, and -z'Bz in the last row, sorted by class;
        starts (n_classes + 1,) int64: starts of the prototypes of each class.
        """
        given = weights.astype(self.rows.dtype)
        blocks = [
            (c, begin, min(begin + BLOCK, end))
            for c, (first, end) in enumerate(zip(self.ends[:-1], self.ends[1:], strict=True))
            for begin in range(first, end, BLOCK)
        ]
        parts = [blocks[k::_N_PARTS] for k in range(min(_N_PARTS, len(blocks)))]

        def add(part: Sequence[tuple[int, int, int]]) -> tuple[float, Floats]:
            return self._add_up(part, given, starts)

        # the last bits of a product depend on BLAS threads, and these threads use the cores better
        with single_threaded():
            if n_threads == 1 or len(self.rows) * given.shape[1] < _LEAST_THREADED:
                found = list(map(add, parts))
            else:
                with ThreadPoolExecutor(n_threads) as threads:
                    found = list(threads.map(add, parts))
        pulled = sum(pull for _, pull in found)
        assert isinstance(pulled, np.ndarray), "there are rows"
        return Pulls(sum(value for value, _ in found), pulled[:, :-1], pulled[:, -1])

    def _add_up(
        self, blocks: Sequence[tuple[int, int, int]], weights: Rows, starts: Integers
    ) -> tuple[float, Floats]:
        n_prototypes = weights.shape[1]
        log_likelihood = 0.0
        pulled = np.zeros((n_prototypes, self.rows.shape[1]))
        whole = np.empty((BLOCK, n_prototypes), weights.dtype)
        for c, begin, end in blocks:
            rows, near = self.rows[begin:end], whole[: end - begin]
            np.matmul(rows, weights, out=near)
            own = near[:, starts[c] : starts[c + 1]]
            # with a separate peak, because a row may be far from the prototypes of its class
            own_peak = own.max(axis=1)
            own_share = np.exp(own - own_peak[:, np.newaxis])
            own_sum = own_share.sum(axis=1)
            peak = near.max(axis=1)
            near -= peak[:, np.newaxis]
            np.exp(near, out=near)
            total = near.sum(axis=1)
            log_p = own_peak - peak + np.log(own_sum) - np.log(total)
            if self.counts is not None:
                log_p *= self.counts[begin:end]
                rows = rows * self.counts[begin:end, np.newaxis]
            log_likelihood += float(log_p.sum(dtype=np.float64))
            pulled -= near.T @ (rows / total[:, np.newaxis])
            pulled[starts[c] : starts[c + 1]] += own_share.T @ (rows / own_sum[:, np.newaxis])
        return log_likelihood, pulled


def class_probabilities(rows: Rows, weights: Floats, starts: Integers) -> Floats:
    """Return the probability that each row's neighbor is of each class, (n_rows, n_classes).

    rows (n_rows, n_columns); weights and starts are those of `ClassedRows.pulls`.
    """
    shares = np.empty((len(rows), len(starts) - 1))
    for begin in range(0, len(rows), BLOCK):
        near = rows[begin : begin + BLOCK] @ weights[:-1] + weights[-1]
        near -= near.max(axis=1, keepdims=True)
        np.exp(near, out=near)
        shares[begin : begin + BLOCK] = np.add.reduceat(near, starts[:-1], axis=1)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def nearest_prototypes(rows: Rows, weights: Floats) -> Integers:
    """Return the position of the prototype nearest to each row, (n_rows,); the first in a tie.

    rows (n_rows, n_columns); weights are those of `ClassedRows.pulls`.
    """
    found = np.empty(len(rows), np.int64)
    with single_threaded():  # blocks are too small for threads
        for begin in range(0, len(rows), BLOCK):
            near = rows[begin : begin + BLOCK] @ weights[:-1]
            near += weights[-1]
            found[begin : begin + BLOCK] = near.argmax(axis=1)
    return found
