"""Sensors that always send: greedy sets, against which gates have to be better.

Starting from none, the sensor is added that lowers the loss on the rows that judge most for what it
costs. Least squares, of which any set takes the same sums, name the few that are worth a fit.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bayescascade.base.watch import check_time
from bayescascade.methods.sensors.models import Bools, Weights, designed
from bayescascade.methods.sensors.signals import Floats
from bayescascade.methods.sensors.training import Lesson, Refit, refitted

_RIDGE = 1e-6  # of the largest entry of the squares, beside the lesson's own
_FITTED = 3  # sensors of which each is tried by a fit, of classes
_ITERATIONS = 40


def greedy_sets(lesson: Lesson, judging: Lesson) -> Iterator[tuple[Weights, Refit]]:
    """Yield sensors that always send and their predictors, each time one sensor more."""
    n_sensors, alive = lesson.costs.size, lesson.signals.alive
    weights = Weights.zeros(lesson.signals.sensor_of.size, n_sensors, lesson.targets.shape[1])
    named = _Named(lesson, judging)
    floor, chosen = 1e-9 + lesson.costs, list[int]()
    loss = named.error([])
    while len(chosen) < n_sensors:
        left = [k for k in range(n_sensors) if k not in chosen]
        errors = {k: named.error([*chosen, k]) for k in left}
        worst = max(errors.values())
        left.sort(key=lambda k, e=errors, w=worst: (e[k] - w) / floor[k])  # type: ignore[misc]
        fits = {}
        for k in left[: _FITTED if lesson.loss.is_of_classes else 1]:
            tried = always([*chosen, k], weights)
            found = refitted(lesson, sent(tried, alive), weights.theta, _ITERATIONS)
            tests = designed(judging.signals, sent(tried, judging.signals.alive)) @ found.theta
            fits[k] = tried, found, float(judging.loss.rows(tests, judging.targets).mean())
        added = min(fits, key=lambda k, f=fits, at=loss: (f[k][2] - at) / floor[k])  # type: ignore[misc]
        tried, found, loss = fits[added]
        chosen, weights = [*chosen, added], tried.with_theta(found.theta)
        yield weights, found


class _Named:
    """Errors of least squares of sets of sensors, from sums that are made once."""

    def __init__(self, lesson: Lesson, judging: Lesson) -> None:
        design, self._tests = (
            np.concatenate([one.signals.features, np.ones((len(one.targets), 1))], axis=1)
            for one in (lesson, judging)
        )
        self._squares, self._products = design.T @ design, design.T @ lesson.targets
        ridge = lesson.ridge + _RIDGE * self._squares.max()
        self._squares[np.diag_indices_from(self._squares)] += ridge
        self._targets = judging.targets
        self._sensor_of = np.append(lesson.signals.sensor_of, -1)  # of the constant

    def error(self, chosen: list[int]) -> float:
        """Return the mean squared error on the rows that judge."""
        check_time()
        used = np.flatnonzero(np.isin(self._sensor_of, [*chosen, -1]))
        theta = cho_solve(cho_factor(self._squares[np.ix_(used, used)]), self._products[used])
        return float(((self._tests[:, used] @ theta - self._targets) ** 2).mean())


def always(chosen: list[int], start: Weights) -> Weights:
    """Return gates of which those of a set are open to all rows, and the others to none."""
    offsets = np.full(start.offsets.size, -1.0)
    offsets[chosen] = 1.0
    return start._replace(gates=np.zeros_like(start.gates), offsets=offsets)


def sent(weights: Weights, alive: Bools) -> Floats:
    """Return the gates of rows, (n, K), of sensors that always send."""
    return ((weights.offsets > 0) & alive).astype(np.float64)
