"""Fitting the full model of a gate, and its predictions for rows that it was not fitted to."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.timed_fit import fit_in_time
from bayescascade.base.watch import watch_in_use
from bayescascade.costs.acquisition import ChoosingWalk
from bayescascade.costs.choice import fold_of_rows
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.gated.full import (
    FullBudgeted,
    FullClassifier,
    FullForest,
    FullModel,
    decisions,
)

_LEAST_TIME = 1e-3  # seconds

LEAST = 1e-3
"""Lower limit of a probability of the full model: one of a forest may be 0."""


class FullFit(NamedTuple):
    """A full model, and its probabilities for the rows that gate and local model learn from."""

    model: FullModel
    chances: Floats  # (n_rows, n_classes)


def fit_budgeted(
    fitted: BudgetedClassifier, training: TrainingRows, X: Any, labels: Any, in_sample: bool
) -> FullFit:
    """Return a fitted budgeted classifier, with out-of-fold probabilities for rows X."""
    if not np.array_equal(fitted.classes_, training.classes):
        raise _other_classes(fitted.classes_, training.classes)
    if isinstance(fitted._walk(fitted._encoder)(), ChoosingWalk):
        raise ParameterError(
            "estimator must not be one that chooses features row by row, got "
            f"{type(fitted).__name__}"
        )
    full = FullBudgeted(fitted)
    chances = full.probabilities(training.rows)
    if not in_sample:
        folds = fold_of_rows(training.labels)
        for fold in _in_time(folds):
            others, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            if np.unique(training.labels[others]).size < training.n_classes:
                continue
            part = _within_limit(clone(fitted)).fit(_safe_indexing(X, others), labels[others])
            chances[inside] = part.predict_proba(_safe_indexing(X, inside))
    return FullFit(full, chances)


def fit_any(estimator: Any, training: TrainingRows, source: Integers, in_sample: bool) -> FullFit:
    """Return a scikit-learn classifier, fitted if necessary, with its probabilities for the rows.

    They are out-of-bag if its trees have bags, and otherwise from 5-fold cross-validation.
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
        values = decisions(fitted, rows)
        if not in_sample:
            values = _by_folds(estimator, training, values, decisions)
        calibrator = LogisticRegression(C=1e3, max_iter=1000)
        calibrator.fit(values, training.classes[training.labels], training.weights)
    full: FullModel = FullClassifier(fitted, calibrator, n_features)
    if is_forest:
        full = FullForest(Forest.from_sklearn(fitted), source)
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
    return FullFit(full, chances)


def losses_of(chances: Floats, labels: Integers) -> Floats:
    """Return the loss of each row, nats, from probabilities (n, n_classes)."""
    return -np.log(np.clip(chances[np.arange(len(labels)), labels], LEAST, 1.0))


def own_estimator(estimator: Any, given: GivenRows) -> BudgetedClassifier | None:
    """Return the full model, fitted, if it is budgeted; it must have the columns of the rows."""
    if not isinstance(estimator, BudgetedClassifier):
        return None
    own: BudgetedClassifier = estimator
    if not own.__sklearn_is_fitted__():
        own = _within_limit(clone(own)).fit(given.plain(), given.labels)
    known = list(own._encoder.columns)
    columns = list(MatrixEncoder.learn(given, own._encoder.policy).columns)
    if known != columns:
        raise ParameterError(f"estimator must be fitted on the columns {columns}, got {known}")
    return own


def _by_folds(
    estimator: Any, training: TrainingRows, chances: Floats, says: Callable[[Any, Matrix], Floats]
) -> Floats:
    """Return out-of-fold predictions of clones; the given ones if a fold lacks a class."""
    folds, said = fold_of_rows(training.labels), chances.copy()
    for fold in _in_time(folds):
        others, inside = np.flatnonzero(folds != fold), folds == fold
        if np.unique(training.labels[others]).size == training.n_classes:
            said[inside] = says(_learned(clone(estimator), training, others), training.rows[inside])
    return said


def _learned(estimator: Any, training: TrainingRows, chosen: Integers) -> Any:
    weights = training.weights[chosen]
    given = {} if (weights == weights[0]).all() else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
        return fit_in_time(
            estimator, training.rows[chosen], training.classes[training.labels[chosen]], **given
        )


def _in_time(folds: Integers) -> Iterator[int]:
    """Yield the folds that begin before the time is up, and share it."""
    numbers, watch = np.unique(folds).tolist(), watch_in_use()
    for place, fold in enumerate(numbers):
        if watch.is_over():
            return
        with watch.part(1.0 / (len(numbers) - place), is_final=True):
            yield fold


def _within_limit(model: BudgetedClassifier) -> BudgetedClassifier:
    """Return an unfitted model, which takes at most the time left if it has no limit of its own."""
    left = watch_in_use().left
    if left < np.inf and model.time_limit is None:
        model.set_params(time_limit=max(left, _LEAST_TIME))
    return model


def _chances(fitted: Any, rows: Matrix) -> Floats:
    return np.asarray(fitted.predict_proba(rows), np.float64)


def _other_classes(own: Any, classes: Any) -> ParameterError:
    return ParameterError(
        f"estimator must be fitted on the classes of y, {classes.tolist()}, got {own.tolist()}"
    )
