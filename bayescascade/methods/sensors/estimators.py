"""Classifier and regressor with gated sensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length, column_or_1d

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.store import Of, Saved, Within
from bayescascade.costs.choice import PurchaseChoice
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows, check_labels, label_codes
from bayescascade.methods.sensors.base import SHARES, Answers, GatedSensors
from bayescascade.methods.sensors.candidates import SOFT, TrainingPath
from bayescascade.methods.sensors.models import SOFTMAX, SQUARE, Weights, chances_of, within
from bayescascade.methods.sensors.parameters import (
    SensorClassifierParameters,
    SensorRegressorParameters,
)
from bayescascade.methods.sensors.training import (
    SensorProblem,
    alternated,
    opened,
    relaxed,
    trained,
)
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.roles import Predicted

_ROUNDS = 200
"""Rounds of alternating gradient descent: 50 steps for predictors, 50 for gates."""


@dataclass(eq=False, repr=False, kw_only=True)
class GatedSensorsClassifier(GatedSensors, MatrixClassifier):
    """Classifies rows by sensors with gates; a sensor sends only for rows that need it.

    A sensor sees only its own columns. By these, its gate decides whether it sends. If it sends,
    it sends one number for each class, and pays its cost. The cloud adds up the numbers of all
    sensors.

    Parameters
    ----------
    sensors : mapping of str to list of columns, or None
        Columns of each sensor, by names or positions. A column may be in at most one sensor.
        Columns without a sensor are not read. None: each column is a sensor.
    costs : mapping of str to float, sequence of float, or None
        Cost of each sensor if it sends. Sensors that are not in a mapping cost 1. None: 1 each.

    Attributes
    ----------
    sensor_names_ : list of str
    sensor_costs_, sensor_shares_ : (n_sensors,) float64
        Cost of each sensor if it sends, and share of the rows for which it sends.
    validation_cost_ : float
        Mean cost of the rows of `X_val`, otherwise of the training rows.
    held_out_error_, held_out_cost_ : float
        Error and mean cost of the chosen model, on the validation rows.
    always_sends_ : bool
        Whether a set of sensors that always send, or no sensor, was better than gates.
    gap_ : float or None
        Bound on how far predictors are from the optimum for these gates, nats per row. None if they
        were not fitted again after training.
    path_ : tuple of Candidate
        All candidates; not in saved models.
    posterior_ : GatePosterior
        Not in saved models.

    Notes
    -----
    Nan (2018), 7.1; `methods.sensors.models` has the formulas and the departures. Hard gates are
    trained with the slope of soft gates, for a path of tradeoffs. Sets of sensors that always send
    are also tried. Held-out rows choose among all candidates within the budget.

    References
    ----------
    Nan, F. (2018). Learning to predict under a budget. PhD thesis, Boston University, chapter 7.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import GatedSensorsClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = np.where(X[:, 0] > 0, X[:, 1] > 0, X[:, 3] > 0)
    >>> sensors = {"left": [0, 1], "right": [2, 3]}
    >>> model = GatedSensorsClassifier(sensors=sensors, budget=1.5, n_steps=200, random_state=0)
    >>> model = model.fit(X, y)
    >>> bool(model.activation_cost(X).mean() <= 1.5), model.sends(X).shape
    (True, (300, 2))
    """

    model_name: ClassVar[str] = "GatedSensorsClassifier"
    title: ClassVar[str] = "gated sensors"
    purpose: ClassVar[str] = "The class of a row, by sensors that send only if they are needed."
    few_rows_text: ClassVar[str] = "a held-out quarter of the rows"
    declares = SensorClassifierParameters

    method: str = SensorClassifierParameters.method.default
    activation: str = SensorClassifierParameters.activation.default

    choice_: PurchaseChoice | None = field(init=False, default=None)
    _shares: Annotated[Floats, Of("M", least=0), Saved("class_shares")] = field(init=False)

    def _answers(self, given: GivenRows) -> Answers:
        if self.activation == "relu" and self.method != "direct":
            raise ParameterError(f'activation must be "sigmoid" for {self.method}, got "relu"')
        training = TrainingRows.read(self._reader, given, owner=type(self).__name__)
        self.classes_, self.notes_ = training.classes, training.notes
        self._shares = np.bincount(training.labels) / len(training.labels)
        targets = np.eye(len(self.classes_))[training.labels]
        return Answers(training.rows, targets, training.labels, SOFTMAX)

    def _validating(self, given: GivenRows) -> Answers:
        owner = type(self).__name__
        rows = self._reader.transform(given, owner)
        labels = label_codes(check_labels(given.labels, "y_val", owner), self.classes_, "y_val")
        check_consistent_length(rows, labels)
        return Answers(rows, np.eye(len(self.classes_))[labels], labels, SOFTMAX)

    def _training_path(
        self, problem: SensorProblem, rng: np.random.Generator, start: Weights | None = None
    ) -> TrainingPath:
        del problem, start  # `train` takes both
        if self.method == "relaxed":
            return TrainingPath(relaxed, SHARES, is_price=False)
        kind = "straight_through" if self.method == "straight_through" else self.activation

        def train(problem: SensorProblem, tradeoff: float, start: Weights) -> Weights:
            return trained(problem, tradeoff, start, self._n_steps, kind, rng)

        return TrainingPath(train, self._tradeoffs(), "relu" if kind == "relu" else "step")

    # -- predicting --------------------------------------------------------------------------------

    def _probabilities(self, rows: Matrix) -> Floats:
        return chances_of(self._outputs(rows))

    def _reasons(self, X: Any) -> list[str]:
        return self._sending_words(self._matrix(X))

    def _block_words(self, rows: Matrix) -> Mapping[str, Sequence[object]]:
        return {"sends": self._sending_words(rows)}

    @property
    def commonest_class_(self) -> Any:  # a label
        """Most common class of the training rows."""
        return self.classes_.tolist()[int(self._shares.argmax())]

    # -- what is printed and saved -----------------------------------------------------------------

    @property
    def _method_text(self) -> str:
        return {
            "straight_through": "hard gates",
            "direct": f"soft gates ({self.activation})",
            "relaxed": "relaxed gates",
        }[self.method]

    @property
    def _tradeoff_word(self) -> str:
        return "share of costs" if self.method == "relaxed" else "tradeoff"

    @staticmethod
    def _error_text(error: float) -> str:
        return f"error {100 * error:.1f} %"

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "M": len(self.classes_)}


@dataclass(eq=False, repr=False, kw_only=True)
class GatedSensorsRegressor(RegressorMixin, GatedSensors):  # type: ignore[misc] # untyped base
    """Predicts numbers by sensors with gates; a sensor sends only for rows that need it.

    Sensors and budgets are as in `GatedSensorsClassifier`. If a sensor sends, it sends one number.

    Parameters
    ----------
    sensors : mapping of str to list of columns, or None
    costs : mapping of str to float, sequence of float, or None
        See `GatedSensorsClassifier`.

    Attributes
    ----------
    held_out_error_, held_out_cost_ : float
        Error (a share of the variance) and mean cost of the chosen model, on the validation rows.
    gap_ : float or None
        Bound on how far predictors are from the optimum for these gates, in half squared errors of
        numbers with variance 1.

    All other attributes are those of `GatedSensorsClassifier`.

    Notes
    -----
    Nan (2018), (7.1)-(7.3). With ``method="alternating"`` and no budget, the numbers of sensors are
    multiplied by sigmoid(z), as in (7.1). Then each sensor sends a little for each row, and the
    cost counts rows with z > 0, as in (7.2). With a budget, gates are hard for all methods.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import GatedSensorsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = np.where(X[:, 0] > 0, X[:, 1], 0.0) + np.where(X[:, 2] > 0, 0.0, X[:, 3])
    >>> sensors = {"left": [0, 1], "right": [2, 3]}
    >>> model = GatedSensorsRegressor(sensors=sensors, budget=1.2, n_steps=200, random_state=0)
    >>> model = model.fit(X, y)
    >>> bool(model.activation_cost(X).mean() <= 1.2), bool(model.score(X, y) > 0.8)
    (True, True)
    """

    model_name: ClassVar[str] = "GatedSensorsRegressor"
    title: ClassVar[str] = "gated sensors of numbers"
    purpose: ClassVar[str] = "A number for each row, by sensors that send only if they are needed."
    declares = SensorRegressorParameters

    method: str = SensorRegressorParameters.method.default

    _center: Annotated[float, Saved("center")] = field(init=False)
    _scale: Annotated[float, Within(above=0.0), Saved("scale")] = field(init=False)

    def _answers(self, given: GivenRows) -> Answers:
        rows = np.asarray(self._reader.transform(given, type(self).__name__))
        y = _numbers(given.labels, "y", type(self).__name__, rows)
        self._center, self._scale = float(y.mean()), float(y.std())
        if not self._scale > 1e-12 * (1 + abs(self._center)):
            self._scale = 1.0
        targets = ((y - self._center) / self._scale)[:, np.newaxis]
        return Answers(rows, targets, _halves(y), SQUARE)

    def _validating(self, given: GivenRows) -> Answers:
        rows = np.asarray(self._reader.transform(given, type(self).__name__))
        y = _numbers(given.labels, "y_val", type(self).__name__, rows)
        targets = ((y - self._center) / self._scale)[:, np.newaxis]
        return Answers(rows, targets, _halves(y), SQUARE)

    def _training_path(
        self, problem: SensorProblem, rng: np.random.Generator, start: Weights | None = None
    ) -> TrainingPath:
        if self.method == "straight_through":

            def train(problem: SensorProblem, tradeoff: float, start: Weights) -> Weights:
                return trained(problem, tradeoff, start, self._n_steps, "straight_through", rng)

            return TrainingPath(train, self._tradeoffs())
        if self.method == "projected":
            return TrainingPath(_projected, SHARES, is_price=False)
        start = start or opened(problem, rng)
        found = alternated(problem.signals, problem.targets[:, 0], start, _ROUNDS)
        soft = ((SOFT, found.weights),)
        return TrainingPath(partial(_closed, found.weights), SHARES, is_price=False, soft=soft)

    # -- predicting --------------------------------------------------------------------------------

    def predict(self, X: Any) -> Floats:
        """Return the expected number of each row, (n_rows,) float64.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array, list of rows, mapping, Series or Table
            DataFrames are matched by column name, in any order, and may have more columns.

        Raises
        ------
        DataError
            If a column is missing or a cell cannot be read. The message names column, value and
            row.
        """
        return self._values(self._matrix(X))

    def _values(self, rows: Matrix) -> Floats:
        return self._center + self._scale * self._outputs(rows)[:, 0]

    def _predicted(self, rows: Matrix, intervals: bool, explain: bool) -> Predicted:
        del intervals
        columns = {"sends": self._sending_words(rows)} if explain else {}
        return Predicted(columns, values=self._values(rows), costs=self._row_costs(rows))

    # -- what is printed and saved -----------------------------------------------------------------

    @property
    def _method_text(self) -> str:
        return {
            "straight_through": "hard gates",
            "alternating": "gates by alternating descent",
            "projected": "gates by projected descent",
        }[self.method] + (" (soft)" if self._net.activation == "sigmoid" else "")

    @property
    def _tradeoff_word(self) -> str:
        return "tradeoff" if self.method == "straight_through" else "share of costs"

    @staticmethod
    def _error_text(error: float) -> str:
        return f"error {100 * error:.1f} % of the variance"

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "M": 1}


def _closed(base: Weights, problem: SensorProblem, share: float, start: Weights) -> Weights:
    """Return gates that are closed until they cost a share of all, with the same predictors."""
    del start
    return within(base, problem.signals, problem.costs, share * float(problem.costs.sum()))


def _projected(problem: SensorProblem, share: float, start: Weights) -> Weights:
    budget = share * float(problem.costs.sum())
    return alternated(
        problem.signals, problem.targets[:, 0], start, _ROUNDS // 4, costs=problem.costs,
        budget=budget,
    ).weights  # fmt: skip


def _halves(y: Floats) -> Integers:
    """Return whether numbers are above the median, as groups for splitting rows."""
    return (y > np.median(y)).astype(np.int64)


def _numbers(y: Any, name: str, owner: str, rows: Matrix) -> Floats:
    """Return numbers of rows; DataError if they are not numbers."""
    if y is None:
        raise ParameterError(f"{owner} requires y to be passed, but the target y is None")
    try:
        numbers = np.asarray(column_or_1d(y, warn=True), np.float64)
    except (TypeError, ValueError) as error:
        if "1d" in str(error) or "shape" in str(error):
            raise
        raise DataError(f"{name} must hold numbers: {error}") from None
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise DataError(f"{name} must hold finite numbers, got {numbers[row]} in row {row + 1}")
    check_consistent_length(rows, numbers)
    return numbers
