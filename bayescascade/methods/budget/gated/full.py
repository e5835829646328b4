"""The full model of a gate: a forest, a budgeted classifier, any other classifier, or none."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.costs.acquisition import Walk, WholeWalk
from bayescascade.costs.classifier import BudgetedClassifier, budgeted_from_record
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.forests.forest import Forest, ForestWalk


class FullForest(NamedTuple):
    """A scikit-learn forest, whose trees read only the features on a row's paths."""

    forest: Forest
    source: Integers  # the feature of each column of the matrix

    @property
    def text(self) -> str:
        """Its name in texts."""
        return f"forest of {self.forest.n_trees} trees"

    def probabilities(self, rows: Matrix) -> Floats:
        """Return the probability of each class, (n, n_classes)."""
        return self.forest.predict_proba(rows)

    def used(self, rows: Matrix) -> Flags:
        """Return the features read for each row, (n, n_features)."""
        return features_of(self.forest.features_used(rows), self.source)

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row without known features."""
        return ForestWalk(self.forest, encoder)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"forest": self.forest.to_dict()}


class FullBudgeted(NamedTuple):
    """A budgeted classifier, which may itself have a gate."""

    model: BudgetedClassifier

    @property
    def text(self) -> str:
        """Its name in texts."""
        return self.model.title

    def probabilities(self, rows: Matrix) -> Floats:
        """Return the probability of each class, (n, n_classes)."""
        return self.model._probabilities(rows)

    def used(self, rows: Matrix) -> Flags:
        """Return the features read for each row, (n, n_features)."""
        return self.model._features_read(rows)

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row without known features."""
        return self.model._walk(encoder)()

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"model": self.model.to_record()}


class FullClassifier(NamedTuple):
    """Any other classifier, which reads every feature."""

    estimator: Any
    calibrator: Any  # for decision values; None if it has probabilities
    n_features: int

    @property
    def text(self) -> str:
        """Its name in texts."""
        last = self.estimator.steps[-1][1] if hasattr(self.estimator, "steps") else self.estimator
        return type(last).__name__

    def probabilities(self, rows: Matrix) -> Floats:
        """Return the probability of each class, (n, n_classes)."""
        if self.calibrator is None:
            return np.asarray(self.estimator.predict_proba(rows), np.float64)
        values = decisions(self.estimator, rows)
        return np.asarray(self.calibrator.predict_proba(values), np.float64)

    def used(self, rows: Matrix) -> Flags:
        """Return the features read for each row, (n, n_features)."""
        return np.ones((len(rows), self.n_features), np.bool_)

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row without known features."""
        return _AllFeaturesWalk(self, range(self.n_features), encoder)

    def to_record(self) -> dict[str, Any]:
        """Raise ParameterError, because files cannot contain such models."""
        raise ParameterError(
            "estimator must be a forest of scikit-learn or a classifier of bayescascade to be "
            f"saved as JSON, got {self.text}; joblib saves the whole model"
        )


class _AllFeaturesWalk(WholeWalk):
    """A row that waits for every feature, or for none."""

    def __init__(
        self, full: "FullClassifier | ClassShares", needed: Iterable[int], encoder: MatrixEncoder
    ) -> None:
        super().__init__(needed, encoder)
        self._full = full

    @property
    def probabilities(self) -> Floats:
        chances: Floats = self._full.probabilities(self.cells)[0]
        return chances


class ClassShares(NamedTuple):
    """No full model, for gates that send no row: the shares of the classes (n_classes,)."""

    shares: Floats
    n_features: int

    @property
    def text(self) -> str:
        """Its name in texts."""
        return "nobody"

    def probabilities(self, rows: Matrix) -> Floats:
        """Return the probability of each class, (n, n_classes)."""
        return np.repeat(self.shares[np.newaxis], len(rows), axis=0)

    def used(self, rows: Matrix) -> Flags:
        """Return the features read for each row, (n, n_features)."""
        return np.zeros((len(rows), self.n_features), np.bool_)

    def walk(self, encoder: MatrixEncoder) -> Walk:
        """Return a row that waits for nothing."""
        return _AllFeaturesWalk(self, (), encoder)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types; the shares are in the gate's record."""
        return {"nobody": True}


FullModel: TypeAlias = FullForest | FullBudgeted | FullClassifier | ClassShares
"""The model for hard rows; rows are those of the matrix."""


def full_from_record(record: Mapping[str, Any], source: Integers, n_classes: int) -> FullModel:
    """Rebuild a full model from its record; ModelFileError if its parts do not fit together."""
    if "forest" in record:
        return FullForest(Forest.from_dict(record["forest"], source.size, n_classes), source)
    model = budgeted_from_record(record["model"])
    if not np.array_equal(model._encoder.source, source) or len(model.classes_) != n_classes:
        raise ModelFileError("a saved full model must be of the columns and classes of all")
    return FullBudgeted(model)


def features_of(columns: Flags, source: Integers) -> Flags:
    """Return which features are read (n, n_features), given the columns of the matrix (n, p)."""
    used = np.zeros((len(columns), int(source[-1]) + 1), np.bool_)
    for column, feature in enumerate(source.tolist()):
        used[:, feature] |= columns[:, column]
    return used


def decisions(fitted: Any, rows: Matrix) -> Floats:
    """Return the decision values of rows, (n, k)."""
    return np.asarray(fitted.decision_function(rows), np.float64).reshape(len(rows), -1)
