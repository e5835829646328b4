"""Where a climb starts: prototypes from the rows, and the metric, chosen by rows held out.

A metric that is free to grow while prototypes move ends too large: every row is then taken right
by some prototype near it, and new rows by accident. One that is too small makes prototypes that are
right by vote, not each by itself. So it is chosen before, by how many rows are taken wrong of a
fifth of them that the prototypes have not seen, and held (Kusner 2016, 3.1.3, has a cross-validated
start).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from bayescascade.base.threads import single_threaded
from bayescascade.methods.neighbors.learned import Compressed
from bayescascade.methods.neighbors.neighborhoods import ClassedRows
from bayescascade.methods.neighbors.posterior import PrototypePosterior
from bayescascade.methods.neighbors.prototypes import Floats
from bayescascade.model.ascent import ascend

__all__ = ["STARTS", "Start", "shares_of_classes"]

STARTS = ("kmeans", "sample")

_HELD_OUT = 5  # every fifth row
_MOST_ROWS = 20_000  # that choose a metric
_MOST_PER_PROTOTYPE = 100  # rows that k-means looks at
_ITERATIONS = 25  # of climbs that are compared
_FACTORS = 2.0 ** np.arange(-3, 7)  # scales that are looked at first, times the reference
_STEP = 2.0**0.5  # between scales that are compared

Score = tuple[int, float]
"""Rows held out that are taken right, and their log likelihood, nats: the larger the better."""


def shares_of_classes(n_prototypes: int, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many prototypes each class has: its share of the rows, and at least one.

    Parameters
    ----------
    n_prototypes : int
        From the number of classes to that of the rows.
    sizes : (n_classes,) int64 >= 1
        Rows of each class.
    """
    wanted = n_prototypes * sizes / sizes.sum()
    counts: NDArray[np.int64] = np.clip(np.floor(wanted).astype(np.int64), 1, sizes)
    while (missing := n_prototypes - int(counts.sum())) != 0:
        can = counts < sizes if missing > 0 else counts > 1
        lack = np.where(can, wanted - counts, -np.inf if missing > 0 else np.inf)
        chosen = np.argsort(-lack if missing > 0 else lack, kind="stable")[: abs(missing)]
        counts[chosen[can[chosen]]] += np.sign(missing)
    return counts


class Start:
    """Where a climb starts, for rows of one scaling.

    Parameters
    ----------
    rows : (n_rows, n_columns) float64
    labels : (n_rows,) int64
        Position of each one's class; every class has rows.
    counts : (n_classes,) int64
        Prototypes of each class.
    how : {"kmeans", "sample"}
        Cluster centers of each class, or rows drawn from it.
    rng : Generator
    classified : callable
        Classes of rows: ``classified(model, rows)`` for a `Compressed` and (n_rows, n_columns) rows
        returns (n_rows,) int64.
    options : keywords
        Of `PrototypePosterior`: metric, rank, prior_scale, dtype, n_threads.

    Attributes
    ----------
    points : (n_prototypes, n_columns) float64
        Where the climb from the best metric had come to, once there is one.
    """

    def __init__(
        self,
        rows: Floats,
        labels: NDArray[np.int64],
        counts: NDArray[np.int64],
        how: str,
        rng: np.random.Generator,
        classified: Callable[[Compressed, Floats], NDArray[np.int64]],
        **options: Any,
    ) -> None:
        self._classified = classified
        self._rows, self._labels, self._counts, self._options = rows, labels, counts, options
        self._how, self._rng = how, rng
        self._seen, self._unseen = self._dealt()
        self.points = self.draw(self._seen)

    def draw(self, among: NDArray[np.int64] | None = None) -> Floats:
        """Return prototypes of each class, (n_prototypes, n_columns), of some of the rows."""
        found = []
        chosen = np.arange(len(self._rows)) if among is None else among
        for c, count in enumerate(self._counts.tolist()):
            own = chosen[self._labels[chosen] == c]
            if self._how == "sample" or len(np.unique(self._rows[own], axis=0)) <= count:
                found.append(self._rows[self._rng.choice(own, count, replace=False)])
                continue
            if own.size > _MOST_PER_PROTOTYPE * count:
                own = self._rng.choice(own, _MOST_PER_PROTOTYPE * count, replace=False)
            seed = int(self._rng.integers(2**31))
            with single_threaded():
                clusters = KMeans(count, n_init=1, random_state=seed).fit(self._rows[own])
            found.append(np.asarray(clusters.cluster_centers_, np.float64))
        return np.concatenate(found)

    def metric(self) -> tuple[Floats, Score]:
        """Return the metric's numbers that are best for rows held out, and how good they are."""
        posterior = self._posterior(self._seen)
        layout = posterior.layout
        unit = layout.metric_like(posterior.reference)

        def scaled(numbers: Floats, factor: float) -> Floats:
            is_linear = layout.metric == "linear"
            return numbers * factor if is_linear else numbers + np.log(factor)

        first = [scaled(unit, factor) for factor in _FACTORS]
        numbers = max(
            first, key=lambda one: posterior.log_likelihood(layout.state(self.points, one))
        )
        if layout.n_metric > 1:
            shaped = _Shape(posterior, self.points)
            numbers = ascend(shaped, [numbers], max_iter=_ITERATIONS).best_state
        if not self._unseen.size:
            return numbers, (0, 0.0)
        tried: dict[int, tuple[Score, Floats]] = {}

        def score(step: int) -> Score:
            if step not in tried:
                tried[step] = self._tried(scaled(numbers, _STEP**step))
            return tried[step][0]

        best = -1  # prototypes that have moved are best in a wider neighborhood than before
        for direction in (1, -1):
            while score(best + direction) > score(best):
                best += direction
        found, self.points = tried[best]
        return scaled(numbers, _STEP**best), found

    def _tried(self, metric: Floats) -> tuple[Score, Floats]:
        """Return how good a metric is after a short climb, and the prototypes there."""
        posterior = self._posterior(self._seen, metric)
        layout = posterior.layout
        start = layout.state(self.points, metric)
        state = ascend(posterior, [start], max_iter=_ITERATIONS).best_state
        found = Compressed(layout.points(state), layout.labels, layout.factor(metric))
        rows, labels = self._rows[self._unseen], self._labels[self._unseen]
        n_right = int(np.sum(self._classified(found, rows) == labels))
        unseen = ClassedRows.of(rows, labels, len(self._counts))
        pulls = unseen.pulls(posterior.weights(state), posterior.starts)
        return (n_right, pulls.log_likelihood), found.points

    def _posterior(
        self, chosen: NDArray[np.int64], held: Floats | None = None
    ) -> PrototypePosterior:
        return PrototypePosterior(
            self._rows[chosen], self._labels[chosen], self._counts, held=held, **self._options
        )

    def _dealt(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows that learn and those held out, of which each class leaves enough."""
        order = self._rng.permutation(len(self._rows))
        seen, unseen = [], []
        for own in _by_class(self._labels, order):
            count = int(self._counts[self._labels[own[0]]])
            most = max(count + 1, _MOST_ROWS * own.size // len(self._rows))
            n_unseen = min(own[:most].size // _HELD_OUT, own[:most].size - count)
            unseen.append(own[:n_unseen])
            seen.append(own[n_unseen:most])
        return np.sort(np.concatenate(seen)), np.sort(np.concatenate(unseen))


class _Shape:
    """The posterior of a metric whose prototypes stay where they are."""

    def __init__(self, posterior: PrototypePosterior, points: Floats) -> None:
        self._posterior, self._points = posterior, points

    def log_density_and_gradient(self, metric: Floats) -> tuple[float, Floats]:
        layout = self._posterior.layout
        state = layout.state(self._points, metric)
        log_density, gradient = self._posterior.log_density_and_gradient(state)
        return log_density, layout.metric_of(gradient)

    def describe(self, metric: Floats) -> dict[str, float]:
        del metric
        return {}


def _by_class(labels: NDArray[np.int64], order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    by_class = order[np.argsort(labels[order], kind="stable")]
    yield from np.split(by_class, np.cumsum(np.bincount(labels))[:-1])
