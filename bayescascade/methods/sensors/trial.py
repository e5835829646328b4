"""What was tried of gated sensors, and how what is chosen of it is trained on with all rows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayescascade.base.watch import Watch
from bayescascade.data.cell_policy import Matrix
from bayescascade.methods.sensors.models import Bools, GatedNet, Weights, fast_sends, within
from bayescascade.methods.sensors.static import sent
from bayescascade.methods.sensors.training import Lesson, refitted
from bayescascade.methods.sensors.trying import NEAR, Candidate, Train

_AGAIN = 3  # times that what was chosen is trained on, at most

SOFT = "soft gates"
"""The kind of candidates whose messages are multiplied by sigmoid(z)."""


class Ways(NamedTuple):
    """How gates are tried: their training, numbers of thrift, and candidates beside."""

    train: Train
    thrifts: Sequence[float]
    activation: str = "step"
    is_price: bool = True  # whether numbers of thrift are prices, or else shares of all costs
    beside: tuple[tuple[str, Weights], ...] = ()  # kinds of gates that take no thrift


WaysOf = Callable[[Lesson, np.random.Generator, Weights], Ways]
"""How gates of a lesson are trained on from a start."""


class Trial(NamedTuple):
    """What `fit` tried, and on what."""

    candidates: list[Candidate]
    learns: Bools  # (n_rows,), which did not judge
    everything: Lesson
    validation: Matrix | None
    watch: Watch
    seed: int

    def finished(self, best: Candidate, budget: float | None, ways_of: WaysOf) -> Candidate:
        """Return a candidate trained on from there with all rows, its mean cost in the budget."""
        lesson = self.everything
        weights, activation = best.net.weights, best.net.activation
        if best.kind == SOFT:
            weights = dict(self._again(best, ways_of).beside)[SOFT]
            return replace(best, net=replace(best.net, weights=weights))
        if best.kind == "always":
            found = refitted(lesson, sent(weights, lesson.signals.alive), weights.theta)
        else:
            if not math.isnan(best.thrift):
                weights = self._trained_on(best, self._again(best, ways_of))
            if budget is not None:
                weights = within(weights, lesson.signals, lesson.costs, budget)
            if best.kind == "gates":
                return replace(best, net=replace(best.net, weights=weights))
            net = GatedNet(weights, best.net.sensor_of, activation)
            found = refitted(lesson, net.gates(lesson.signals), weights.theta)
        net = replace(best.net, weights=weights.with_theta(found.theta))
        return replace(best, net=net, gap=found.gap)

    def _trained_on(self, best: Candidate, ways: Ways) -> Weights:
        """Return gates trained on with all rows, less thrifty where they send too seldom then.

        More steps make gates more silent at the same tradeoff; aimed at is what a row cost before.
        """
        lesson, thrift = self.everything, best.thrift
        for _ in range(_AGAIN):
            weights = ways.train(lesson, thrift, best.net.weights)
            cost = float((fast_sends(weights, lesson.signals) @ lesson.costs).mean())
            if cost >= NEAR * best.cost or cost == 0.0:
                break
            thrift *= (cost / best.cost) ** 2 if ways.is_price else best.cost / cost
        return weights

    def _again(self, best: Candidate, ways_of: WaysOf) -> Ways:
        """Return how gates are trained on, the same whenever they are."""
        return ways_of(self.everything, np.random.default_rng([self.seed, 1]), best.net.weights)
