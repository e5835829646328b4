"""Candidates for some budgets: sets that always send, and gates along a path of tradeoffs.

The path begins with gates that nearly always send. Each is trained from the previous one, until the
mean cost is almost 0, so the path serves any later budget. Each gives two candidates: predictors as
trained, and refitted. If no candidate is just below a budget, gates between its neighbors on the
path are trained, too. Validation rows are not learned from.

**Sets that always send.** The first is empty, and costs nothing: the cloud says the class shares or
the mean. Then the sensor is added that lowers the loss on the validation rows most per cost; if
none lowers it, the sensor that raises it least. Least squares, which use the same sums for all
sets, select the few that are worth a fit.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.store import SKIPPED, Within
from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import OutOfTime, Watch, check_time
from bayescascade.costs.limits import is_within
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.sensors.models import (
    GatedNet,
    Weights,
    designed,
    fast_sends,
    squared,
    within,
)
from bayescascade.methods.sensors.training import Refit, SensorProblem, error_of, opened, refitted

_RIDGE = 1e-6  # share of the largest entry of the squares, in addition to the problem's ridge
_FITTED = 3  # number of sensors to try by a fit, for classes
_ITERATIONS = 40

NEAR = 0.95
"""A candidate that costs less than this share of a budget is not near it."""

_LEAST = 0.02  # share of the cost of all sensors at the end of a path
_QUICK = 60  # iterations of fits for comparisons only
_BETWEEN = 3  # maximum number of gates trained between two of the path, for a budget
RIDGES = (1.0, 3.0, 10.0, 30.0)
Train = Callable[[SensorProblem, float, Weights], Weights]
"""It trains gates and predictors of a problem at a tradeoff, from a start."""

_AGAIN = 3  # maximum number of further trainings of the chosen candidate
SOFT = "soft gates"
"""The kind of candidates with messages multiplied by sigmoid(z)."""

_HELD_OUT = 0.25  # share of the rows, if no validation rows are given


def greedy_sets(
    problem: SensorProblem, validation: SensorProblem
) -> Iterator[tuple[Weights, Refit]]:
    """Yield growing sets of sensors that always send, from none on, with their predictors."""
    n_sensors = problem.costs.size
    weights = Weights.zeros(problem.signals.sensor_of.size, n_sensors, problem.targets.shape[1])
    named = _Named(problem, validation)
    costs, chosen = 1e-9 + problem.costs, list[int]()
    found, loss = _fitted(problem, validation, weights)
    weights = weights.with_theta(found.theta)
    yield weights, found
    while len(chosen) < n_sensors:
        left = [k for k in range(n_sensors) if k not in chosen]
        before = named.error(chosen)
        ranks = {k: _rank(named.error([*chosen, k]) - before, costs[k]) for k in left}
        left.sort(key=ranks.__getitem__)
        fits = {}
        for k in left[: _FITTED if problem.loss.is_of_classes else 1]:
            tried = always([*chosen, k], weights)
            fits[k] = tried, *_fitted(problem, validation, tried)
        ranks = {k: _rank(reached - loss, costs[k]) for k, (_, _, reached) in fits.items()}
        added = min(ranks, key=ranks.__getitem__)
        tried, found, loss = fits[added]
        chosen, weights = [*chosen, added], tried.with_theta(found.theta)
        yield weights, found


def _rank(change: float, cost: float) -> tuple[bool, float, float]:
    """Return a sort key: decreases of a loss first, by their rate; then the least increases."""
    return (False, change / cost, cost) if change < 0 else (True, change, cost)


def _fitted(
    problem: SensorProblem, validation: SensorProblem, weights: Weights
) -> tuple[Refit, float]:
    """Return predictors of sensors that always send, and their loss on the validation rows."""
    found = refitted(problem, sent(weights, problem.signals.alive), weights.theta, _ITERATIONS)
    outputs = designed(validation.signals, sent(weights, validation.signals.alive)) @ found.theta
    return found, float(validation.loss.rows(outputs, validation.targets).mean())


class _Named:
    """Errors of least squares for sets of sensors, from shared sums."""

    def __init__(self, problem: SensorProblem, validation: SensorProblem) -> None:
        design, self._tests = (
            np.concatenate([part.signals.features, np.ones((len(part.targets), 1))], axis=1)
            for part in (problem, validation)
        )
        self._squares, self._products = squared(design), design.T @ problem.targets
        ridge = problem.ridge + _RIDGE * self._squares.max()
        self._squares[np.diag_indices_from(self._squares)] += ridge
        self._targets = validation.targets
        self._sensor_of = np.append(problem.signals.sensor_of, -1)  # for the constant

    def error(self, chosen: list[int]) -> float:
        """Return the mean squared error on the validation rows."""
        check_time()
        used = np.flatnonzero(np.isin(self._sensor_of, [*chosen, -1]))
        theta = cho_solve(cho_factor(self._squares[np.ix_(used, used)]), self._products[used])
        return float(((self._tests[:, used] @ theta - self._targets) ** 2).mean())


def always(chosen: list[int], start: Weights) -> Weights:
    """Return gates that are open for a set of sensors, and closed for the others."""
    offsets = np.full(start.offsets.size, -1.0)
    offsets[chosen] = 1.0
    return start._replace(gates=np.zeros_like(start.gates), offsets=offsets)


def sent(weights: Weights, alive: Flags) -> Floats:
    """Return the gates of rows, (n, K), for sensors that always send."""
    return ((weights.offsets > 0) & alive).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class SensorCandidate:
    """A candidate, with its error and cost on validation rows."""

    kind: str  # "gates", "gates, fitted anew" or "always"
    # tradeoff, or share of all costs if relaxed; NaN if sensors always send
    tradeoff: Annotated[float, Within(null=math.nan)]
    error: Annotated[float, Within(0)]  # error rate, or mean squared error
    cost: Annotated[float, Within(0)]  # mean of a row
    # bound on distance to the best predictors, nats; NaN if not refitted
    gap: Annotated[float, Within(null=math.nan)]
    # not in saved models: the net, and its mean loss per row, nats, which breaks ties of errors
    net: Annotated[Any, SKIPPED] = None
    loss: Annotated[float, SKIPPED] = math.nan

    @property
    def is_silent(self) -> bool:
        """Whether no sensor can send, whatever its readings are."""
        gates, offsets = self.net.weights.gates, self.net.weights.offsets
        return not gates.any() and bool((offsets <= 0).all())


class GateTraining(NamedTuple):
    """How candidates of a problem are made, and the problem of the validation rows."""

    problem: SensorProblem
    validation: SensorProblem
    activation: str
    train: Train

    def scored(self, kind: str, weights: Weights, tradeoff: float, gap: float) -> SensorCandidate:
        """Return a candidate with its error and cost."""
        validation = self.validation
        activation = "step" if kind == "always" else self.activation
        net = GatedNet(weights, activation)
        sends = fast_sends(weights, validation.signals)
        outputs = designed(validation.signals, net.gates(validation.signals)) @ weights.theta
        cost = float((sends @ validation.costs).mean())
        loss = float(validation.loss.rows(outputs, validation.targets).mean())
        return SensorCandidate(kind, tradeoff, error_of(validation, outputs), cost, gap, net, loss)

    def static(self) -> Iterator[SensorCandidate]:
        """Yield greedy sets that always send."""
        for weights, found in greedy_sets(self.problem, self.validation):
            yield self.scored("always", weights, math.nan, found.gap)

    def at(self, tradeoff: float, start: Weights) -> list[SensorCandidate]:
        """Return the candidates at a tradeoff."""
        weights = self.train(self.problem, tradeoff, start)
        signals = self.problem.signals
        gates = GatedNet(weights, self.activation).gates(signals)
        found = refitted(self.problem, gates, weights.theta, _QUICK)
        anew = weights.with_theta(found.theta)
        return [
            self.scored("gates", weights, tradeoff, math.nan),
            self.scored("gates, fitted anew", anew, tradeoff, found.gap),
        ]

    def along(
        self, tradeoffs: Sequence[float], start: Weights, budgets: Sequence[float | None]
    ) -> Iterator[list[SensorCandidate]]:
        """Yield the candidates of a path, and of points between for budgets."""
        amounts = [budget for budget in budgets if budget is not None]
        least = min([*amounts, _LEAST * float(self.problem.costs.sum())])
        found: list[list[SensorCandidate]] = []
        for tradeoff in tradeoffs:
            found.append(self.at(tradeoff, start))
            start = found[-1][0].net.weights
            yield found[-1]
            if is_within(found[-1][0].cost, least):
                break
        for amount in amounts if len(tradeoffs) > 1 else ():
            for _ in range(_BETWEEN):
                above = [portion for portion in found if portion[0].cost > amount]
                below = [portion for portion in found if portion[0].cost <= amount]
                if (
                    not above
                    or not below
                    or max(portion[0].cost for portion in below) >= NEAR * amount
                ):
                    break
                costlier = min(above, key=lambda portion: portion[0].cost)[0]
                cheaper = max(below, key=lambda portion: portion[0].cost)[0]
                between = float(np.sqrt(costlier.tradeoff * cheaper.tradeoff))
                found.append(self.at(between, costlier.net.weights))
                yield found[-1]


def best_within(candidates: Sequence[SensorCandidate], budget: float | None) -> SensorCandidate:
    """Return the candidate of least error within a budget, and of least loss among ties.

    With few validation rows, many candidates tie, and a cheaper one of them is not better. The
    candidate that is silent is within every budget.
    """
    possible = [
        candidate for candidate in candidates if budget is None or is_within(candidate.cost, budget)
    ]
    return min(possible, key=lambda candidate: (candidate.error, candidate.loss, candidate.cost))


def best_ridge(problem: SensorProblem, validation: SensorProblem) -> float:
    """Return the ridge with the best predictors on the validation rows if all sensors send."""
    alive = problem.signals.alive.astype(np.float64)
    start = Weights.zeros(
        problem.signals.sensor_of.size, problem.costs.size, problem.targets.shape[1]
    )
    theta, found = start.theta, {}
    tests = designed(validation.signals, validation.signals.alive.astype(np.float64))
    for ridge in RIDGES[::-1]:
        theta = refitted(problem._replace(ridge=ridge), alive, theta, _QUICK).theta
        found[ridge] = float(problem.loss.rows(tests @ theta, validation.targets).mean())
    return min(found, key=lambda ridge: found[ridge])


class TrainingPath(NamedTuple):
    """How gates are tried: their training, values of tradeoff, and further candidates."""

    train: Train
    tradeoffs: Sequence[float]
    activation: str = "step"
    is_price: bool = True  # whether tradeoffs are prices, or otherwise shares of all costs
    soft: tuple[tuple[str, Weights], ...] = ()  # kinds of gates without a tradeoff


TrainingPathOf = Callable[[SensorProblem, np.random.Generator, Weights], TrainingPath]
"""It returns how gates of a problem are trained further from a start."""


class SensorCandidates(NamedTuple):
    """Candidates of `fit`, and the rows."""

    candidates: list[SensorCandidate]
    learns: Flags  # (n_rows,), the rows that did not judge
    everything: SensorProblem
    validation: Matrix | None
    watch: Watch
    seed: int

    def finished(
        self, best: SensorCandidate, budget: float | None, path_of: TrainingPathOf
    ) -> SensorCandidate:
        """Return a candidate after further training on all rows, still within the budget."""
        problem = self.everything
        weights, activation = best.net.weights, best.net.activation
        if best.kind == SOFT:
            weights = dict(self._again(best, path_of).soft)[SOFT]
            return replace(best, net=replace(best.net, weights=weights))
        if best.kind == "always":
            found = refitted(problem, sent(weights, problem.signals.alive), weights.theta)
        else:
            if not math.isnan(best.tradeoff):
                weights = self._trained_on(best, self._again(best, path_of))
            if budget is not None:
                weights = within(weights, problem.signals, problem.costs, budget)
            if best.kind == "gates":
                return replace(best, net=replace(best.net, weights=weights))
            net = GatedNet(weights, activation)
            found = refitted(problem, net.gates(problem.signals), weights.theta)
        net = replace(best.net, weights=weights.with_theta(found.theta))
        return replace(best, net=net, gap=found.gap)

    def _trained_on(self, best: SensorCandidate, path: TrainingPath) -> Weights:
        """Return gates after further training on all rows, less thrifty if they send too rarely.

        More steps make gates more silent at the same tradeoff; the aim is the mean cost before.
        """
        problem, tradeoff = self.everything, best.tradeoff
        for _ in range(_AGAIN):
            weights = path.train(problem, tradeoff, best.net.weights)
            cost = float((fast_sends(weights, problem.signals) @ problem.costs).mean())
            if cost >= NEAR * best.cost or cost == 0.0:
                break
            tradeoff *= (cost / best.cost) ** 2 if path.is_price else best.cost / cost
        return weights

    def _again(self, best: SensorCandidate, path_of: TrainingPathOf) -> TrainingPath:
        return path_of(self.everything, np.random.default_rng([self.seed, 1]), best.net.weights)


class SensorSplit(NamedTuple):
    """Lessons of the training rows and of the validation rows."""

    learned: SensorProblem
    validation: SensorProblem
    learns: Flags  # (n_rows,)

    @classmethod
    def of(
        cls,
        problem: SensorProblem,
        groups: NDArray[Any],
        validation: SensorProblem | None,
        rng: np.random.Generator,
    ) -> "SensorSplit":
        """Hold out rows of a problem, by their groups, if no other rows judge."""
        all_rows = np.ones(len(problem.targets), np.bool_)
        if validation is not None:
            return cls(problem, validation, all_rows)
        learns = split_by_class(groups, [1 - _HELD_OUT, _HELD_OUT], rng) == 0
        if learns.all() or len(np.unique(groups[learns])) < 2:
            return cls(problem, problem, all_rows)
        learned = problem.among(learns)._replace(ridge=problem.ridge)
        return cls(learned, problem.among(~learns), learns)


class TrainedGates(NamedTuple):
    """Candidates, at least one, and the ridge of their training."""

    candidates: list[SensorCandidate]
    ridge: float
    is_interrupted: bool


def train_candidates(
    roles: SensorSplit,
    ridge: float | None,
    path_of: Callable[[SensorProblem, np.random.Generator], TrainingPath],
    budgets: Sequence[float | None],
    watch: Watch,
    rng: np.random.Generator,
) -> TrainedGates:
    """Return the candidates until time is up or Ctrl-C, at least one."""
    learned = roles.learned
    candidates: list[SensorCandidate] = []
    trying = GateTraining(learned, roles.validation, "step", lambda *_: opened(learned, rng))
    is_interrupted = False
    try:
        with watch.watching(), single_threaded():
            if ridge is None:
                learned = learned._replace(ridge=best_ridge(learned, roles.validation))
                trying = trying._replace(problem=learned)
            candidates.extend(trying.static())
            path = path_of(learned, rng)
            trying = trying._replace(train=path.train, activation=path.activation)
            for kind, weights in path.soft if budgets == [None] else ():
                soft = trying._replace(activation="sigmoid")
                candidates.append(soft.scored(kind, weights, math.nan, math.nan))
            start = path.train(learned, path.tradeoffs[0], opened(learned, rng))
            for portion in trying.along(path.tradeoffs, start, budgets):
                candidates += portion
    except OutOfTime:
        pass  # candidates so far are kept
    except KeyboardInterrupt:
        if not candidates:
            raise
        is_interrupted = True
    if not candidates:  # there was no time for one
        sizes = learned.signals.sensor_of.size, learned.costs.size, learned.targets.shape[1]
        candidates = [trying.scored("always", Weights.zeros(*sizes), math.nan, math.nan)]
    return TrainedGates(candidates, learned.ridge, is_interrupted)
