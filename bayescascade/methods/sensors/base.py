"""What gated sensors do, of classes and of numbers: fit, budgets, who speaks, page and file."""

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.costs.tried import WithinBudgets
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.sensors.devices import Sensors
from bayescascade.methods.sensors.learned import LearnedSensors
from bayescascade.methods.sensors.models import Bools, GatedNet, Loss, Weights
from bayescascade.methods.sensors.posterior import GatePosterior
from bayescascade.methods.sensors.refitting import refitted
from bayescascade.methods.sensors.signals import Floats, SignalMaker
from bayescascade.methods.sensors.static import spoken
from bayescascade.methods.sensors.thrift import fast_speaks, within
from bayescascade.methods.sensors.training import Lesson, opened
from bayescascade.methods.sensors.trying import (
    NEAR,
    Candidate,
    Judge,
    Train,
    Trying,
    best_ridge,
    best_within,
)

if TYPE_CHECKING:
    pass

_AGAIN = 3  # times that what was chosen is trained on, at most
_HELD_OUT = 0.25  # of the rows, where none are given to choose by
_TRADEOFFS = tuple((0.01 * 1.5 ** np.arange(16)).tolist())  # of a sensor of mean cost, nats a row
SHARES = (0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05)
"""Of the cost of all sensors: what is tried where gates are trained for a budget."""

SOFT = "soft gates"
"""The kind of candidates whose messages are multiplied by sigmoid(z)."""


class Answers(NamedTuple):
    """What rows are learned from: their matrix, targets (n, M), and classes to split them by."""

    rows: Matrix
    targets: Floats
    groups: NDArray[Any]
    loss: Loss


class Ways(NamedTuple):
    """How gates are tried: their training, numbers of thrift, and candidates beside."""

    train: Train
    thrifts: Sequence[float]
    activation: str = "step"
    is_price: bool = True  # whether numbers of thrift are prices, or else shares of all costs
    beside: tuple[tuple[str, Weights], ...] = ()  # kinds of gates that take no thrift


class _Trial(NamedTuple):
    """What `fit` tried, and on what."""

    candidates: list[Candidate]
    learns: Bools  # (n_rows,), which did not judge
    everything: Lesson
    validation: Matrix | None
    watch: Watch
    seed: int


@dataclass(eq=False, repr=False, kw_only=True)
class GatedSensors(WithinBudgets, LearnedSensors):
    """Sensors with gates; a family has `_answers`, `_validating` and `_ways`."""

    _trial: _Trial = field(init=False)

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _answers(self, given: GivenRows) -> Answers:
        """Learn classes or scale of what is given, and return it."""

    @abstractmethod
    def _validating(self, given: GivenRows) -> Answers:
        """Return rows with labels that choose, in the classes or scale that were learned."""

    @abstractmethod
    def _ways(self, lesson: Lesson, rng: np.random.Generator, start: Weights | None = None) -> Ways:
        """Return how gates of a lesson are tried, or trained on from a start."""

    # -- fitting -----------------------------------------------------------------------------------

    def fit(  # type: ignore[override] # it takes no weights
        self, X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Try gates of several costs, and sets of sensors that always speak; keep the best.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables of polars, Arrow, DuckDB, Dask or narwhals, too; paths or URLs of CSV, Parquet or
            Arrow files, whose column `y` names.
            Numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            What is predicted: labels, of at least two classes, or numbers.
        X_val : as X, optional
            Rows that choose, with `y_val`.
        y_val : (n_validation_rows,) array, optional
            Without them, a quarter of the rows chooses, by `random_state`, and what is chosen is
            trained on from there with all rows.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, such as sensors of columns that there are not, or
            that have a column twice.
        BudgetError
            If nothing that was tried is within the budget on the rows that choose; it has the least
            budget that is possible, `least`.
        DataError
            If rows or labels cannot be used.
        KeyboardInterrupt
            If Ctrl-C comes before anything has been tried; later, it leaves what has.
        """
        return super().fit(X, y, X_val, y_val)

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> _Trial:  # fmt: skip
        """Return what is tried for some budgets, as the rows that judge found it."""
        del sample_weight
        self.declares.check(self)
        watch = Watch(self.time_limit)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        rng = np.random.default_rng(seed)
        given = GivenRows.labeled(X, y)
        validation = GivenRows.validating(X_val, y_val)
        answers = self._read_rows(given, None)
        source = np.asarray(self._encoder.source, np.int64)
        self._maker = SignalMaker.of(
            self.features, self.n_fourier, self._sensors, source, answers.rows, seed
        )
        costs = self._sensors.costs
        lesson = Lesson(
            self._maker.made(answers.rows), answers.targets, answers.loss, costs, self.ridge or 1.0
        )
        judge, learned, rows = self._judge(lesson, answers, validation, rng)
        candidates: list[Candidate] = []
        trying = Trying(learned, judge, "step", lambda *_: opened(learned, rng))
        self.is_interrupted_ = False
        try:
            with watch.watching(), single_threaded():
                if self.ridge is None:
                    ridge = best_ridge(learned, judge.lesson)
                    learned, lesson = learned._replace(ridge=ridge), lesson._replace(ridge=ridge)
                    trying = trying._replace(lesson=learned)
                candidates.extend(trying.static())
                ways = self._ways(learned, rng)
                trying = trying._replace(train=ways.train, activation=ways.activation)
                for kind, weights in ways.beside if budgets == [None] else ():
                    soft = trying._replace(activation="sigmoid")
                    candidates.append(soft.judged(kind, weights, math.nan, math.nan))
                start = ways.train(learned, ways.thrifts[0], opened(learned, rng))
                for portion in trying.along(ways.thrifts, start, budgets):
                    candidates += portion
        except OutOfTime:
            pass  # what has been tried is kept
        except KeyboardInterrupt:
            if not candidates:
                raise
            self.is_interrupted_ = True
        if not candidates:  # there was no time for any
            silent = Weights.zeros(
                lesson.signals.sensor_of.size, costs.size, lesson.targets.shape[1]
            )
            candidates = [trying.judged("always", silent, math.nan, math.nan)]
        return _Trial(candidates, judge.learns, lesson, rows, watch, seed)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        given = GivenRows.labeled(X, X.labels if isinstance(X, GivenRows) else y, sample_weight)
        self._set_encoder(MatrixEncoder.learn(given, self._policy()))
        self._sensors = Sensors.of(self.sensors, self.costs, self._encoder)
        answers = self._answers(given)
        self.n_rows_ = len(answers.rows)
        return answers

    def _judge(
        self, lesson: Lesson, answers: Answers, validation: GivenRows | None, rng: Any
    ) -> tuple[Judge, Lesson, Matrix | None]:
        """Return the rows that judge, the lesson of those that learn, and validation rows."""
        learns = np.ones(len(answers.rows), np.bool_)
        rows = None
        if validation is not None:
            owner = type(self).__name__
            if validation.labels is not None:
                judged = self._validating(validation)
                judging = Lesson(
                    self._maker.made(judged.rows), judged.targets, lesson.loss, lesson.costs, 1.0
                )
                return Judge(judging, "validation rows", learns), lesson, judged.rows
            rows = self._reader.transform(validation, owner)
        parts = split_by_class(answers.groups, [1 - _HELD_OUT, _HELD_OUT], rng)
        learns = parts == 0
        if learns.all() or len(np.unique(answers.groups[learns])) < 2:
            return Judge(lesson, "rows", np.ones_like(learns)), lesson, rows
        learned = lesson.among(learns)._replace(ridge=lesson.ridge)
        return Judge(lesson.among(~learns), "held-out rows", learns), learned, rows

    def _thrifts(self) -> list[float]:
        """Return the tradeoffs that are tried."""
        if self.tradeoff is not None:
            return [float(self.tradeoff)]
        mean = float(self._sensors.costs.mean())
        return [one / (mean if mean > 0 else 1.0) for one in _TRADEOFFS]

    def _chosen(self, budget: float | None) -> Self:
        """Return the best of what was tried within a budget; BudgetError if there is nothing."""
        trial = self._trial
        model = copy.copy(self)
        model.budget = budget
        best = best_within(trial.candidates, budget)
        if not trial.learns.all() and not trial.watch.is_up:
            with single_threaded():
                best = self._finished(best, budget)
        model._found, model._net = best, best.net
        model.stopped_after_ = trial.watch.seconds if trial.watch.is_up else None
        signals = trial.everything.signals
        if trial.validation is not None:
            signals = self._maker.made(trial.validation)
        model._measure(model._net.speaks(signals))
        return model

    def _finished(self, best: Candidate, budget: float | None) -> Candidate:
        """Return a candidate trained on from there with all rows, its mean cost in the budget."""
        lesson = self._trial.everything
        weights, activation = best.net.weights, best.net.activation
        if best.kind == SOFT:
            weights = dict(self._again(lesson, weights).beside)[SOFT]
            return replace(best, net=replace(best.net, weights=weights))
        if best.kind == "always":
            found = refitted(lesson, spoken(weights, lesson.signals.alive), weights.theta)
        else:
            if not math.isnan(best.thrift):
                weights = self._trained_on(best)
            if budget is not None:
                weights = within(weights, lesson.signals, lesson.costs, budget)
            if best.kind == "gates":
                return replace(best, net=replace(best.net, weights=weights))
            net = GatedNet(weights, best.net.sensor_of, activation)
            found = refitted(lesson, net.gates(lesson.signals), weights.theta)
        net = replace(best.net, weights=weights.with_theta(found.theta))
        return replace(best, net=net, gap=found.gap)

    def _trained_on(self, best: Candidate) -> Weights:
        """Return gates trained on with all rows, less thrifty where they speak too seldom then.

        More steps make gates more silent at the same tradeoff; aimed at is what a row cost before.
        """
        lesson, thrift = self._trial.everything, best.thrift
        ways = self._again(lesson, best.net.weights)
        for _ in range(_AGAIN):
            weights = ways.train(lesson, thrift, best.net.weights)
            cost = float((fast_speaks(weights, lesson.signals) @ lesson.costs).mean())
            if cost >= NEAR * best.cost or cost == 0.0:
                break
            thrift *= (cost / best.cost) ** 2 if ways.is_price else best.cost / cost
        return weights

    def _again(self, lesson: Lesson, start: Weights) -> Ways:
        """Return how gates are trained on, the same whenever they are."""
        return self._ways(lesson, np.random.default_rng([self._trial.seed, 1]), start)

    # -- what was tried ----------------------------------------------------------------------------

    @property
    def path_(self) -> tuple[Candidate, ...]:
        """What was tried; not in saved models."""
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        return tuple(self._trial.candidates)

    @property
    def posterior_(self) -> GatePosterior:
        """The Gibbs posterior over gates and predictors of the tradeoff that was chosen.

        Of sensors that always speak the tradeoff is 0. Not in saved models.
        """
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        tradeoff = 0.0 if math.isnan(self._found.thrift) else self._found.thrift
        return GatePosterior.of(self._trial.everything, tradeoff)

    def state(self) -> Floats:
        """Return what was learned, as a state of `posterior_`."""
        check_is_fitted(self)
        return self.posterior_.joined(self._net.weights)
