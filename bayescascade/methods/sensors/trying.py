"""What is tried for some budgets: sets that always send, and gates along a path of thrift.

The path goes on from gates that nearly all send, each trained from the one before, until the mean
cost is next to nothing, so that any budget can be asked for later. Of each two candidates are kept:
predictors as they were trained, and fitted anew. Where none is near below a budget, gates between
its neighbors on the path are trained, too. Rows that nothing is learned from judge.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayescascade.base.errors import ModelFileError
from bayescascade.base.notices import noticed
from bayescascade.base.validation import check_real
from bayescascade.costs.limits import is_within, too_low
from bayescascade.methods.sensors.models import GatedNet, Weights, designed, fast_sends
from bayescascade.methods.sensors.static import greedy_sets
from bayescascade.methods.sensors.training import Lesson, error_of, refitted

NEAR = 0.95
"""A candidate that costs less than this part of a budget leaves some of it unused."""

_LEAST = 0.02  # of the cost of all sensors: where a path ends
_QUICK = 60  # iterations of fits that only compare
_BETWEEN = 3  # most gates that are trained between two of the path, for a budget

RIDGES = (1.0, 3.0, 10.0, 30.0)

Train = Callable[[Lesson, float, Weights], Weights]
"""Gates and predictors of a lesson by a number of thrift, from where they were."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A candidate, with its error and cost on validation rows.

    Attributes
    ----------
    kind : {"gates", "gates, fitted anew", "always"}
    net : GatedNet
    thrift : float
        The tradeoff or, for the relaxation, the share of all costs. NaN if sensors always send.
    error, cost : float
        Error rate or mean squared error, and mean cost of a row.
    gap : float
        Bound on how far predictors are from the optimum for these gates, nats. NaN if they were not
        fitted again after training.
    loss : float
        Mean loss of a row, nats, which breaks ties of errors. NaN in saved models.
    """

    kind: str
    net: GatedNet
    thrift: float
    error: float
    cost: float
    gap: float
    loss: float = float("nan")

    def to_record(self) -> dict[str, Any]:
        """Return all but the net and the loss as plain data."""
        thrift, gap = (None if math.isnan(one) else one for one in (self.thrift, self.gap))
        told = {"kind": self.kind, "error": self.error, "cost": self.cost}
        return {**told, "thrift": thrift, "gap": gap}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], net: GatedNet) -> "Candidate":
        """Return a candidate of a file."""
        thrift, gap = (
            math.nan if record[name] is None else check_real(name, record[name])
            for name in ("thrift", "gap")
        )
        error, cost = (check_real(name, record[name], minimum=0.0) for name in ("error", "cost"))
        if not isinstance(record["kind"], str):
            raise ModelFileError("saved sensors must say what was chosen")
        return cls(record["kind"], net, thrift, error, cost, gap)


class Trying(NamedTuple):
    """How candidates of a lesson are made, and the lesson of the rows that judge them."""

    lesson: Lesson
    judging: Lesson
    activation: str
    train: Train

    def judged(self, kind: str, weights: Weights, thrift: float, gap: float) -> Candidate:
        """Return a candidate with its error and cost."""
        judging = self.judging
        activation = "step" if kind == "always" else self.activation
        net = GatedNet(weights, judging.signals.sensor_of, activation)
        sends = fast_sends(weights, judging.signals)
        outputs = designed(judging.signals, net.gates(judging.signals)) @ weights.theta
        cost = float((sends @ judging.costs).mean())
        loss = float(judging.loss.rows(outputs, judging.targets).mean())
        return Candidate(kind, net, thrift, error_of(judging, outputs), cost, gap, loss)

    def static(self) -> Iterator[Candidate]:
        """Yield greedy sets that always send."""
        for weights, found in greedy_sets(self.lesson, self.judging):
            yield self.judged("always", weights, math.nan, found.gap)

    def at(self, thrift: float, start: Weights) -> list[Candidate]:
        """Return the candidates of a number of thrift."""
        weights = self.train(self.lesson, thrift, start)
        signals = self.lesson.signals
        gates = GatedNet(weights, signals.sensor_of, self.activation).gates(signals)
        found = refitted(self.lesson, gates, weights.theta, _QUICK)
        anew = weights.with_theta(found.theta)
        return [
            self.judged("gates", weights, thrift, math.nan),
            self.judged("gates, fitted anew", anew, thrift, found.gap),
        ]

    def along(
        self, thrifts: Sequence[float], start: Weights, budgets: Sequence[float | None]
    ) -> Iterator[list[Candidate]]:
        """Yield the candidates of a path, and of points between for budgets."""
        amounts = [one for one in budgets if one is not None]
        least = min([*amounts, _LEAST * float(self.lesson.costs.sum())])
        found: list[list[Candidate]] = []
        for thrift in noticed(thrifts, len(thrifts), "the training of further gates"):
            found.append(self.at(thrift, start))
            start = found[-1][0].net.weights
            yield found[-1]
            if is_within(found[-1][0].cost, least):
                break
        for amount in amounts if len(thrifts) > 1 else ():
            for _ in range(_BETWEEN):
                above = [one for one in found if one[0].cost > amount]
                below = [one for one in found if one[0].cost <= amount]
                if not above or not below or max(one[0].cost for one in below) >= NEAR * amount:
                    break
                dear = min(above, key=lambda one: one[0].cost)[0]
                cheap = max(below, key=lambda one: one[0].cost)[0]
                between = float(np.sqrt(dear.thrift * cheap.thrift))
                found.append(self.at(between, dear.net.weights))
                yield found[-1]


def best_within(candidates: Sequence[Candidate], budget: float | None) -> Candidate:
    """Return the candidate of least error within a budget, of equals that of least loss.

    Few rows judge many candidates alike, and a cheaper one of them is no better for that.
    """
    possible = [one for one in candidates if budget is None or is_within(one.cost, budget)]
    if not possible:
        least = min(one.cost for one in candidates)
        assert budget is not None, "without one all are possible"
        raise too_low(budget, least, "the mean cost of the cheapest gates that were tried")
    return min(possible, key=lambda one: (one.error, one.loss, one.cost))


def best_ridge(lesson: Lesson, judging: Lesson) -> float:
    """Return the ridge by which predictors do best on rows that judge where all sensors send."""
    alive = lesson.signals.alive.astype(np.float64)
    start = Weights.zeros(lesson.signals.sensor_of.size, lesson.costs.size, lesson.targets.shape[1])
    theta, found = start.theta, {}
    tests = designed(judging.signals, judging.signals.alive.astype(np.float64))
    for ridge in RIDGES[::-1]:
        theta = refitted(lesson._replace(ridge=ridge), alive, theta, _QUICK).theta
        found[ridge] = float(lesson.loss.rows(tests @ theta, judging.targets).mean())
    return min(found, key=lambda ridge: found[ridge])
