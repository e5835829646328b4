"""Base of gated sensors for classes and numbers: fit, budgets, sending, page and file."""

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.store import Of, Saved
from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import Watch
from bayescascade.costs.within_budgets import WithinBudgets
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.sensors.candidates import (
    SensorCandidate,
    SensorCandidates,
    SensorSplit,
    TrainingPath,
    best_within,
    train_candidates,
)
from bayescascade.methods.sensors.models import GatedNet, Loss, Weights
from bayescascade.methods.sensors.parameters import SILENT, SensorParameters
from bayescascade.methods.sensors.posterior import GatePosterior
from bayescascade.methods.sensors.reports import (
    HOW_TO_READ,
    found_texts,
    plot_sensors,
    sensor_table,
    silent_text,
)
from bayescascade.methods.sensors.signals import Sensors, SensorScaling, Signals
from bayescascade.methods.sensors.training import SensorProblem
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.rounds import STEPS
from bayescascade.model.view import View
from bayescascade.report.page import Pieces, count_of, warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POLICIES = {SILENT: CellPolicy("nan", "missing"), "error": CellPolicy("error", "error")}
_TRADEOFFS = tuple((0.01 * 1.5 ** np.arange(16)).tolist())  # nats per row, for mean cost
_STEPS = 800  # at each tradeoff, with normal effort
_MOST_CELLS, _LEAST_ROWS = 2**25, 1000  # more rows times features are not learned from
SHARES = (0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05)
"""Shares of the cost of all sensors, to try if gates are trained for a budget."""


class Answers(NamedTuple):
    """Training rows: matrix, targets (n, M), and groups for splitting."""

    rows: Matrix
    targets: Floats
    groups: NDArray[Any]
    loss: Loss

    def sampled(self, n_rows: int, seed: int) -> "Answers":
        """Return these rows, or about `n_rows` random ones, stratified by group."""
        if len(self.rows) <= n_rows:
            return self
        shares, rng = np.array([n_rows, len(self.rows) - n_rows]), np.random.default_rng([seed, 2])
        kept = split_by_class(self.groups, shares / shares.sum(), rng) == 0
        return Answers(self.rows[kept], self.targets[kept], self.groups[kept], self.loss)


@dataclass(eq=False, repr=False, kw_only=True)
class GatedSensors(WithinBudgets, MatrixEstimator):
    """Sensors with gates; subclasses have `_answers`, `_validating` and `_training_path`."""

    cells: ClassVar[CellPolicy] = _POLICIES[SILENT]
    ignored: ClassVar[str] = "missing"
    learned_word: ClassVar[str] = "gates"
    declares = SensorParameters
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "sensors", "costs")

    sensors: Any = SensorParameters.sensors.default
    costs: Any = SensorParameters.costs.default
    budget: float | None = SensorParameters.budget.default
    features: str = SensorParameters.features.default
    n_fourier: int = SensorParameters.n_fourier.default
    tradeoff: float | None = SensorParameters.tradeoff.default
    ridge: float | None = SensorParameters.ridge.default
    n_steps: int | None = SensorParameters.n_steps.default
    missing: str = SensorParameters.missing.default
    unknown: str = SensorParameters.unknown.default
    time_limit: float | None = SensorParameters.time_limit.default
    effort: str = SensorParameters.effort.default
    random_state: Any = SensorParameters.random_state.default

    validation_cost_: float = field(init=False)
    _sensors: Annotated[Sensors, Saved("sensors")] = field(init=False)
    _scaling: Annotated[SensorScaling, Saved("signals")] = field(init=False)
    _net: Annotated[GatedNet, Saved("net")] = field(init=False)
    sensor_shares_: Annotated[Floats, Of("K", least=0, most=1), Saved("sensor_shares")] = field(
        init=False
    )
    _found: Annotated[SensorCandidate, Saved("chosen")] = field(init=False)
    is_interrupted_: Annotated[bool, Saved("is_interrupted")] = field(init=False)
    stopped_after_: Annotated[float | None, Saved("stopped_after")] = field(init=False)
    _trial: SensorCandidates = field(init=False)

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _answers(self, given: GivenRows) -> Answers:
        """Learn classes or scale of the given rows, and return their answers."""

    @abstractmethod
    def _validating(self, given: GivenRows) -> Answers:
        """Return validation rows with labels, in the learned classes or scale."""

    @abstractmethod
    def _training_path(
        self, problem: SensorProblem, rng: np.random.Generator, start: Weights | None = None
    ) -> TrainingPath:
        """Return how gates of a problem are tried, or trained further from a start."""

    # -- fitting -----------------------------------------------------------------------------------

    def fit(  # type: ignore[override] # it has no weights
        self, X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Train gates at several costs, and sets of sensors that always send; keep the best.

        One of these sets is empty, so that there is a result for each budget.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables may be of polars, Arrow, DuckDB, Dask or narwhals. Paths or URLs may be of CSV,
            Parquet or Arrow files; `y` then names the column to predict. Cells are numbers, truth
            values, text or categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels of at least two classes, or numbers.
        X_val : as X, optional
            Validation rows, which choose among the candidates.
        y_val : (n_validation_rows,) array, optional
            Their labels or numbers. Without them, a random quarter of the rows is held out to
            choose, and the chosen model is then trained further on all rows.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, such as sensors with an unknown column or with the
            same column twice.
        DataError
            If rows or labels cannot be used.
        KeyboardInterrupt
            If Ctrl-C comes before the first candidate is finished. Later, the finished candidates
            are kept.
        """
        return super().fit(X, y, X_val, y_val)

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> SensorCandidates:  # fmt: skip
        del sample_weight
        self.declares.check(self)
        watch = Watch(self.time_limit)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        rng = np.random.default_rng(seed)
        given = GivenRows.labeled(X, y)
        validation = GivenRows.validating(X_val, y_val)
        self._set_encoder(MatrixEncoder.learn(given, self._policy()))
        self._sensors = Sensors.of(self.sensors, self.costs, self._encoder)
        self.notes_ = ()
        answers = self._answers(given)
        self.n_rows_ = len(answers.rows)
        n_waves = self.n_fourier if self.features == "fourier" else 0
        columns = self._sensors.in_matrix(self._encoder.source)
        self._scaling = SensorScaling.of(answers.rows, columns, n_waves, seed)
        n_features = self._signals(answers.rows[:1]).sensor_of.size
        most = max(_LEAST_ROWS, _MOST_CELLS // n_features)
        answers = answers.sampled(most, seed)
        if len(answers.rows) < self.n_rows_:
            text = f"learned from {len(answers.rows):,} random rows, as each has {n_features:,}"
            self.notes_ += (f"{text} features",)
        problem = self._problem(answers)._replace(ridge=self.ridge or 1.0)
        rows, scoring = None, None
        if validation is not None and validation.labels is not None:
            held_out = self._validating(validation)
            rows, scoring = held_out.rows, self._problem(held_out.sampled(most, seed))
        elif validation is not None:
            rows = self._reader.transform(validation, type(self).__name__)
        roles = SensorSplit.of(problem, answers.groups, scoring, rng)
        found = train_candidates(roles, self.ridge, self._training_path, budgets, watch, rng)
        self.is_interrupted_ = found.is_interrupted
        problem = problem._replace(ridge=found.ridge)
        return SensorCandidates(found.candidates, roles.learns, problem, rows, watch, seed)

    def _problem(self, answers: Answers) -> SensorProblem:
        signals, costs = self._signals(answers.rows), self._sensors.costs
        return SensorProblem(signals, answers.targets, answers.loss, costs, 1.0)

    @property
    def _n_steps(self) -> int:
        return self.n_steps or int(STEPS[self.effort] * _STEPS)

    def _tradeoffs(self) -> list[float]:
        if self.tradeoff is not None:
            return [float(self.tradeoff)]
        mean = float(self._sensors.costs.mean())
        return [tradeoff / (mean if mean > 0 else 1.0) for tradeoff in _TRADEOFFS]

    def _chosen(self, budget: float | None) -> Self:
        trial = self._trial
        model = copy.copy(self)
        model.budget = budget
        best = best_within(trial.candidates, budget)
        if not trial.learns.all() and not trial.watch.is_up:
            with single_threaded():
                best = trial.finished(best, budget, self._training_path)
        model._found, model._net = best, best.net
        model.stopped_after_ = trial.watch.seconds if trial.watch.is_up else None
        if trial.validation is None:
            model._measure(model._net.sends(trial.everything.signals))
        else:
            model._measure(model._sent(trial.validation))
        return model

    # -- the candidates ----------------------------------------------------------------------------

    @property
    def path_(self) -> tuple[SensorCandidate, ...]:
        """All candidates; not in saved models."""
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        return tuple(self._trial.candidates)

    @property
    def posterior_(self) -> GatePosterior:
        """The Gibbs posterior over gates and predictors, with the chosen tradeoff.

        If sensors always send, the tradeoff is 0. Not in saved models.
        """
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        tradeoff = 0.0 if math.isnan(self._found.tradeoff) else self._found.tradeoff
        return GatePosterior.of(self._trial.everything, tradeoff)

    def state(self) -> Floats:
        """Return the learned gates and predictors, as a state of `posterior_`."""
        check_is_fitted(self)
        return self.posterior_.joined(self._net.weights)

    # -- rows --------------------------------------------------------------------------------------

    def _policy(self) -> CellPolicy:
        return _POLICIES[self.missing]

    def _unknown_policy(self) -> str:
        how = self.declares.declared()["unknown"].check(self.unknown)
        if how == "error":
            return "error"
        return "missing" if self.missing == SILENT else "mean"

    @property
    def _means(self) -> Floats | None:
        return self._scaling.means if "_scaling" in self.__dict__ else None

    def _measure(self, sends: Flags) -> None:
        self.sensor_shares_ = sends.mean(axis=0)
        self.validation_cost_ = float(self.sensor_shares_ @ self._sensors.costs)

    # -- sending -----------------------------------------------------------------------------------

    def _signals(self, rows: Matrix) -> Signals:
        columns = self._sensors.in_matrix(self._encoder.source)
        return self._scaling.signals(rows, self.features, columns)

    def _blocks(self, rows: Matrix) -> Iterator[Signals]:
        columns = self._sensors.in_matrix(self._encoder.source)
        return self._scaling.blocks(rows, self.features, columns)

    def _sent(self, rows: Matrix) -> Flags:
        return np.concatenate([self._net.sends(block) for block in self._blocks(rows)])

    def _outputs(self, rows: Matrix) -> Floats:
        return np.concatenate([self._net.outputs(block) for block in self._blocks(rows)])

    def sends(self, X: Any) -> pd.DataFrame | Flags:
        """Return which sensors send for each row, (n_rows, n_sensors) bool.

        The result is a DataFrame with a column per sensor if the columns of `X` have names.

        Parameters
        ----------
        X : as `predict` takes it

        Raises
        ------
        DataError
            If a column is missing or a cell cannot be read. The message names column, value and
            row.
        """
        rows = GivenRows.of(X, self.learned_columns)
        sends = self._sent(self._matrix(rows))
        if not self._encoder.is_named:
            return sends
        return pd.DataFrame(sends, index=rows.index, columns=list(self._sensors.names))

    def activation_cost(self, X: Any) -> Floats:
        """Return the cost of the sensors that send for each row, (n_rows,) float64.

        Parameters and errors: see `sends`.
        """
        return self._row_costs(self._matrix(X))

    def acquisition_cost(self, X: Any) -> Floats:
        """Return `activation_cost`, under the name that `cost_accuracy_curve` uses."""
        return self.activation_cost(X)

    def _row_costs(self, rows: Matrix) -> Floats:
        return self._sent(rows) @ self._sensors.costs

    def _sending_words(self, rows: Matrix) -> list[str]:
        names = self._sensors.names
        found = (list(compress(names, row)) for row in self._sent(rows).tolist())
        return [
            f"{', '.join(sensors)} {'send' if sensors[1:] else 'sends'}"
            if sensors
            else "all are silent"
            for sensors in found
        ]

    # -- what was learned --------------------------------------------------------------------------

    @property
    def sensor_names_(self) -> list[str]:
        """The names of the sensors."""
        check_is_fitted(self)
        return list(self._sensors.names)

    @property
    def sensor_costs_(self) -> Floats:
        """The cost of each sensor if it sends, (n_sensors,)."""
        check_is_fitted(self)
        return self._sensors.costs

    @property
    def always_sends_(self) -> bool:
        """Whether a set of sensors that always send, or no sensor, was better than gates."""
        check_is_fitted(self)
        return self._found.kind == "always"

    @property
    def nothing_read_text(self) -> str:
        """The line of the print if no sensor ever sends; otherwise empty."""
        check_is_fitted(self)
        return silent_text(self)

    @property
    def tradeoff_(self) -> float | None:
        """The chosen tradeoff or, for the relaxation, the share of all costs; or None."""
        check_is_fitted(self)
        return None if math.isnan(self._found.tradeoff) else self._found.tradeoff

    @property
    def gap_(self) -> float | None:
        """Bound on how far predictors are from the optimum for these gates, nats per row.

        None if predictors were not fitted again after they were trained together with the gates.
        """
        check_is_fitted(self)
        return None if math.isnan(self._found.gap) else self._found.gap

    @property
    def held_out_error_(self) -> float:
        """Error rate of the chosen model on validation rows, or its share of the variance."""
        check_is_fitted(self)
        return self._found.error

    @property
    def held_out_cost_(self) -> float:
        """Mean cost of the chosen model on validation rows."""
        check_is_fitted(self)
        return self._found.cost

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_net")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == SILENT
        return tags

    # -- what a user sees --------------------------------------------------------------------------

    def view(self) -> View:
        """Return what is shown: the sensors with their costs and shares of rows."""
        view, silent = super().view(), self.nothing_read_text
        return view._replace(
            heading=[self.title, count_of(len(self._sensors), "sensor"), *view.facts],
            made=(*map(Pieces, found_texts(self)), *((warning(silent),) if silent else ())),
            shown=sensor_table(self._sensors, self.sensor_shares_),
            terms=HOW_TO_READ,
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a bar for the mean cost of each sensor, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        """
        check_is_fitted(self)
        return plot_sensors(self._sensors, self.sensor_shares_, ax)

    # -- files -------------------------------------------------------------------------------------

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        columns, own = record["encoding"]["columns"], record["sensors"]
        sensors = {
            name: [columns[place] for place in places]
            for name, places in zip(own["names"], own["columns"], strict=True)
        }
        costs = dict(zip(own["names"], own["costs"], strict=True))
        return {**super()._read_parameters(record), "sensors": sensors, "costs": costs}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        n_waves = len(self._sensors) if self.features == "fourier" else 0
        signals = self._signals(np.zeros((1, len(self._encoder.source))))  # errors if they misfit
        if len(self._scaling.waves) != n_waves:
            raise ValueError(f"waves must be of {n_waves} sensors, got {len(self._scaling.waves)}")
        if signals.sensor_of.size != self._net.weights.gates.size:
            raise ValueError(f"gates must have {signals.sensor_of.size} weights, one per feature")
        self._found = replace(self._found, net=self._net)
        self.validation_cost_ = float(self.sensor_shares_ @ self._sensors.costs)
