"""The full model of a gate: a forest read by path, a budgeted classifier, or any other one."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.watch import check_time
from bayescascade.costs.acquisition import ChoosingWalk, Walk
from bayescascade.costs.choice import fold_of_rows
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.walk import ForestWalk
from bayescascade.model.record import model_class

Numbers = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEAST = 1e-3
"""What a probability of the full model counts as at least: a forest's may be 0."""


class FullModel(Protocol):
    """What rows that are hard go to; rows are those of the matrix."""

    @property
    def text(self) -> str:
        """What it is called."""

    def probabilities(self, rows: Matrix) -> Numbers:
        """Return the probability of each class, (n, n_classes)."""

    def used(self, rows: Matrix) -> Bools:
        """Return which features it reads for each row, (n, n_features)."""

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row of which nothing is known."""

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types; ParameterError if it cannot be in a file."""


class OfForest(NamedTuple):
    """A forest of scikit-learn, whose trees read what their paths need."""

    forest: Forest
    source: NDArray[np.int64]  # the feature of each column of the matrix

    @property
    def text(self) -> str:
        """What it is called."""
        return f"forest of {self.forest.n_trees} trees"

    def probabilities(self, rows: Matrix) -> Numbers:
        """Return the probability of each class, (n, n_classes)."""
        return self.forest.predict_proba(rows)

    def used(self, rows: Matrix) -> Bools:
        """Return which features it reads for each row, (n, n_features)."""
        of_columns = self.forest.features_used(rows)
        used = np.zeros((len(rows), int(self.source[-1]) + 1), np.bool_)
        for column, feature in enumerate(self.source.tolist()):
            used[:, feature] |= of_columns[:, column]
        return used

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row of which nothing is known."""
        return ForestWalk(self.forest, encoder)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"forest": self.forest.to_dict()}


class OfBudgeted(NamedTuple):
    """A classifier that pays for what it reads, perhaps itself behind a gate."""

    model: BudgetedClassifier

    @property
    def text(self) -> str:
        """What it is called."""
        return self.model.title

    def probabilities(self, rows: Matrix) -> Numbers:
        """Return the probability of each class, (n, n_classes)."""
        return self.model._probabilities(rows)

    def used(self, rows: Matrix) -> Bools:
        """Return which features it reads for each row, (n, n_features)."""
        return self.model._features_read(rows)

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row of which nothing is known."""
        return self.model._walk(encoder)()

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"model": self.model.to_record()}


class OfAny(NamedTuple):
    """Any other classifier, which reads every feature."""

    estimator: Any
    calibrator: Any  # of decision values, None where it has probabilities
    n_features: int

    @property
    def text(self) -> str:
        """What it is called."""
        return type(self.estimator).__name__

    def probabilities(self, rows: Matrix) -> Numbers:
        """Return the probability of each class, (n, n_classes)."""
        if self.calibrator is None:
            return np.asarray(self.estimator.predict_proba(rows), np.float64)
        values = _decisions(self.estimator, rows)
        return np.asarray(self.calibrator.predict_proba(values), np.float64)

    def used(self, rows: Matrix) -> Bools:
        """Return which features it reads for each row, (n, n_features)."""
        return np.ones((len(rows), self.n_features), np.bool_)

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row of which nothing is known."""
        return _WholeRow(self, encoder)

    def to_record(self) -> dict[str, Any]:
        """Raise ParameterError: files hold no such objects."""
        raise ParameterError(
            "estimator must be a forest of scikit-learn or a classifier of bayescascade to be "
            f"saved as JSON, got {self.text}; joblib saves the whole model"
        )


class _WholeRow:
    """A row that waits for every feature."""

    def __init__(self, full: OfAny, encoder: MatrixEncoder) -> None:
        self._full, self._encoder = full, encoder
        self._cells = np.zeros((1, encoder.source.size))
        self._known = np.zeros(full.n_features, np.bool_)

    @property
    def waiting(self) -> dict[int, int]:
        return dict.fromkeys(np.flatnonzero(~self._known).tolist(), 1)

    @property
    def probabilities(self) -> Numbers:
        chances: Numbers = self._full.probabilities(self._cells)[0]
        return chances

    def learn(self, column: int, value: object) -> None:
        self._cells[0, self._encoder.source == column] = self._encoder.read_cell(column, value)
        self._known[column] = True


class Fitted(NamedTuple):
    """A full model, and what it says of the rows that gate and local model learn from."""

    model: FullModel
    chances: Numbers  # (n_rows, n_classes)


def fit_budgeted(
    fitted: BudgetedClassifier, training: TrainingRows, X: Any, labels: Any, in_sample: bool
) -> Fitted:
    """Return a fitted classifier of ours, and what clones say of rows X of other folds."""
    if not np.array_equal(fitted.classes_, training.classes):
        raise _other_classes(fitted.classes_, training.classes)
    if isinstance(fitted._walk(fitted._encoder)(), ChoosingWalk):
        raise ParameterError(
            f"estimator must not choose features by what is known, got {type(fitted).__name__}"
        )
    full = OfBudgeted(fitted)
    chances = full.probabilities(training.rows)
    if not in_sample:
        folds = fold_of_rows(training.labels)
        for fold in np.unique(folds).tolist():
            check_time()
            others, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            if np.unique(training.labels[others]).size < training.n_classes:
                continue
            part = clone(fitted).fit(_safe_indexing(X, others), labels[others])
            chances[inside] = part.predict_proba(_safe_indexing(X, inside))
    return Fitted(full, chances)


def fit_any(
    estimator: Any, training: TrainingRows, source: NDArray[np.int64], in_sample: bool
) -> Fitted:
    """Return a classifier of scikit-learn, fitted if it is not, and what it says of the rows.

    Out of bag where its trees have bags, else of five folds, each by the others.
    """
    if not is_classifier(estimator):
        raise ParameterError(f"estimator must be a classifier, got {type(estimator).__name__}")
    if not (hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")):
        raise ParameterError(
            f"estimator must have probabilities or decision values, got {type(estimator).__name__}"
        )
    rows, n_features = training.rows, int(source[-1]) + 1
    is_forest = isinstance(estimator, (RandomForestClassifier, ExtraTreesClassifier))
    if hasattr(estimator, "classes_"):
        fitted = estimator
        width = getattr(fitted, "n_features_in_", rows.shape[1])
        if width != rows.shape[1]:
            raise ParameterError(
                f"estimator must be fitted on the {rows.shape[1]} columns of the rows, got {width}"
            )
        if not np.array_equal(fitted.classes_, training.classes):
            raise _other_classes(fitted.classes_, training.classes)
    else:
        fitted = clone(estimator)
        if is_forest and fitted.bootstrap and not in_sample:
            fitted.set_params(oob_score=True)
        fitted = _learned(fitted, training, np.arange(len(rows)))
    calibrator = None
    if not hasattr(fitted, "predict_proba"):
        values = _decisions(fitted, rows)
        if not in_sample:
            values = _by_folds(estimator, training, values, _decisions)
        calibrator = LogisticRegression(C=1e3, max_iter=1000)
        calibrator.fit(values, training.classes[training.labels], training.weights)
    full: FullModel = OfAny(fitted, calibrator, n_features)
    if is_forest:
        full = OfForest(Forest.from_sklearn(fitted), source)
    if in_sample:
        chances = full.probabilities(rows)
    elif calibrator is not None:
        chances = np.asarray(calibrator.predict_proba(values))
    elif len(getattr(fitted, "oob_decision_function_", ())) == len(rows):
        chances = np.asarray(fitted.oob_decision_function_, np.float64)
        shares = np.bincount(training.labels, training.weights) / training.weights.sum()
        chances = np.where(np.isnan(chances), shares, chances)
    else:
        chances = _by_folds(estimator, training, full.probabilities(rows), _chances)
    return Fitted(full, chances)


def losses_of(chances: Numbers, labels: NDArray[np.int64]) -> Numbers:
    """Return the loss of each row, nats, by probabilities (n, n_classes)."""
    losses: Numbers = -np.log(np.clip(chances[np.arange(len(labels)), labels], LEAST, 1.0))
    return losses


def full_from_record(
    record: Mapping[str, Any], source: NDArray[np.int64], n_classes: int
) -> FullModel:
    """Return what `to_record` of a full model returned; ModelFileError if its parts do not fit."""
    if "forest" in record:
        return OfForest(Forest.from_dict(record["forest"], source.size, n_classes), source)
    model = budgeted_from_record(record)
    if not np.array_equal(model._encoder.source, source) or len(model.classes_) != n_classes:
        raise ModelFileError("a saved full model must be of the columns and classes of all")
    return OfBudgeted(model)


def budgeted_from_record(record: Mapping[str, Any]) -> BudgetedClassifier:
    """Return the classifier that a full model's record has; ModelFileError if it is none."""
    found = model_class(record["model"].get("model"))
    if found is None or not issubclass(found, BudgetedClassifier):
        raise ModelFileError("a saved full model must be a classifier that pays for features")
    model: BudgetedClassifier = found.from_record(record["model"])
    return model


def _by_folds(
    estimator: Any, training: TrainingRows, chances: Numbers, says: Callable[[Any, Matrix], Numbers]
) -> Numbers:
    """Return what is said of each row by a clone fitted to other folds.

    A fold without which a class is missing keeps what is said of it.
    """
    folds, said = fold_of_rows(training.labels), chances.copy()
    for fold in np.unique(folds).tolist():
        check_time()
        others, inside = np.flatnonzero(folds != fold), folds == fold
        if np.unique(training.labels[others]).size == training.n_classes:
            said[inside] = says(_learned(clone(estimator), training, others), training.rows[inside])
    return said


def _learned(estimator: Any, training: TrainingRows, chosen: NDArray[np.int64]) -> Any:
    weights = training.weights[chosen]
    given = {} if (weights == weights[0]).all() else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
        return estimator.fit(
            training.rows[chosen], training.classes[training.labels[chosen]], **given
        )


def _chances(fitted: Any, rows: Matrix) -> Numbers:
    return np.asarray(fitted.predict_proba(rows), np.float64)


def _decisions(fitted: Any, rows: Matrix) -> Numbers:
    return np.asarray(fitted.decision_function(rows), np.float64).reshape(len(rows), -1)


def _other_classes(own: Any, classes: Any) -> ParameterError:
    return ParameterError(
        f"estimator must be fitted on the classes of y, {classes.tolist()}, got {own.tolist()}"
    )
