"""The forest to prune: given as fitted, or fitted here to the rows."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.timed_fit import fit_in_time
from bayescascade.base.validation import check_integer
from bayescascade.base.watch import check_time
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.forests.bags import Fold, has_bags, out_of_bag
from bayescascade.methods.budget.forests.base import ForestClassifier
from bayescascade.methods.budget.forests.forest import SKLEARN_FORESTS, Forest
from bayescascade.model.search import seed_sequence

_N_TREES = 40  # as in the thesis
_ENCODING = "_bayescascade_encoding"
"""An attribute of forests fitted here: the encoder of their columns."""


@dataclass(frozen=True, eq=False)
class GivenForest:
    """A fitted forest, its trees and rows; `grown` has the forests of folds, for all copies."""

    estimator: Any  # several types of estimators
    trees: Forest
    training: TrainingRows
    template: Any
    grown: list[Any] = field(default_factory=list)

    @classmethod
    def of(
        cls, model: Any, forest: Any, training: TrainingRows, given: tuple[Any, ...]
    ) -> "GivenForest":
        """Fit the forest of a pruner if needed; `given` are the arguments of its `fit`."""
        if _is_fitted(forest):
            estimator = forest
            _check_columns(forest, model._encoder)
            training = _with_classes(forest, training)
        else:
            estimator = _fitted(model, forest, training, given)
        if isinstance(estimator, ForestClassifier):
            return cls(estimator, estimator.forest_, training, forest)
        return cls(estimator, Forest.from_sklearn(estimator), training, forest)

    @property
    def may_grow(self) -> bool:
        """Whether such a forest can be fitted to other rows."""
        return not isinstance(self.template, ForestClassifier) and not _is_fitted(self.template)

    def folds(self, folds: Iterable[Fold[Any]]) -> list[Fold[Any]]:
        """Return folds whose pruners have their own forests, which are fitted only once."""
        if not self.grown:
            grown = []
            for other, part, held in folds:
                check_time()
                other.estimator_ = _fitted(other, self.template, part, ())
                other.whole_forest_ = Forest.from_sklearn(other.estimator_)
                other._validation_rows = part.rows
                other._prepare(part)
                grown.append((other, part, held))
            self.grown.extend(grown)
        return self.grown

    def outside(self) -> Flags | None:
        """Return the out-of-bag rows of each tree, if there are bags and no validation labels."""
        n_rows = len(self.training.rows)
        if self.training.validation_labels is not None or not has_bags(self.estimator):
            return None
        if self.estimator._n_samples != n_rows:
            return None
        return out_of_bag(self.estimator, n_rows, "budget")


def counts_by(errors: str, estimator: Any, forest: Forest, training: TrainingRows) -> Floats | None:
    """Return counts, by node and class, of the rows for the errors; None if in bag."""
    if errors == "in_bag":
        return None
    if errors == "validation":
        labels = training.needed_validation_labels('errors="validation"')
        return count_classes(forest, training.validation_rows, labels)
    outside = out_of_bag(estimator, len(training.rows), 'errors="out_of_bag"')
    return count_classes(forest, training.rows, training.labels, outside)


def features_begun_with(forest: Forest, encoder: MatrixEncoder) -> Integers:
    """Return the features of the first splits of trees, ascending."""
    first = forest.feature[forest.roots]
    return np.unique(encoder.source[first[first >= 0]])


def read_features_begun_with(record: Any, n_features: int) -> Integers:
    """Return the same from a file; TypeError or ParameterError if invalid."""
    if not isinstance(record, list):
        raise TypeError(f"first_features must be a list, got {record!r}")
    checked = [check_integer("first_features", place, 0, n_features - 1) for place in record]
    return np.array(checked, np.int64)


def _is_fitted(forest: Any) -> bool:
    return hasattr(forest, "classes_")


def plain_forest(forest: Any) -> Any:
    """Return a given forest without a `FrozenEstimator`; ParameterError if it is no forest."""
    forest = forest.estimator if isinstance(forest, FrozenEstimator) else forest
    if forest is not None and not isinstance(forest, (*SKLEARN_FORESTS, ForestClassifier)):
        raise ParameterError(
            "forest must be a RandomForestClassifier, an ExtraTreesClassifier, a "
            "DecisionTreeClassifier or a budgeted classifier, "
            f"got {type(forest).__name__}"
        )
    return forest


def _fitted(
    model: Any, forest: Any, training: TrainingRows, given: tuple[Any, ...]
) -> Any:  # several types of estimators
    """Return a fitted clone of a forest; missing costs, seed and jobs are those of the model."""
    if forest is None:
        forest = RandomForestClassifier(_N_TREES, criterion="entropy", max_features=None)
    forest = clone(forest)
    known = forest.get_params(deep=False)
    if model.random_state is not None and known["random_state"] is None:
        (seed,) = seed_sequence(model.random_state).generate_state(1)
        forest.set_params(random_state=int(seed))
    if model.n_jobs is not None and known.get("n_jobs", 1) is None:
        forest.set_params(n_jobs=model.n_jobs)
    if isinstance(forest, ForestClassifier):
        if forest.costs is None:
            forest.set_params(costs=model.costs)
        X, y, X_val, y_val = given
        return forest.fit(X, y, X_val=X_val, y_val=y_val)
    fit_in_time(forest, training.rows, training.classes[training.labels])
    setattr(forest, _ENCODING, model._encoder)
    return forest


def _check_columns(forest: Any, encoder: MatrixEncoder) -> None:
    """Check that a fitted forest matches the matrix of the rows."""
    columns = encoder.columns
    encoding = _encoding_of(forest)
    if encoding is not None:
        if encoding.to_dict() != encoder.to_dict():
            raise ParameterError(
                "forest must be fitted to columns of the same names and levels, "
                f"got one of {_listed(encoding.columns)} for {_listed(columns)}"
            )
        return
    if not encoder.is_numeric:
        names = zip(encoder.names, encoder.levels, strict=True)
        text = next(name for name, levels in names if levels is not None)
        raise ParameterError(
            "forest must not be fitted if columns hold text or categories, because fit encodes "
            f"these, got a fitted {type(forest).__name__} and column {text!r}"
        )
    known = tuple(getattr(forest, "feature_names_in_", columns))
    if forest.n_features_in_ != len(columns) or (encoder.is_named and known != columns):
        shown = known if len(known) == forest.n_features_in_ else range(forest.n_features_in_)
        raise ParameterError(
            "forest must be fitted to the columns of X in their order, "
            f"got one of {_listed(shown)} for {_listed(columns)}"
        )


def _with_classes(forest: Any, training: TrainingRows) -> TrainingRows:
    """Return rows with the classes of a fitted forest, which may have more classes."""
    classes = np.asarray(forest.classes_)
    known = set(classes.tolist())
    for name in training.classes.tolist():
        if name not in known:
            raise DataError(
                f"y must have labels of the forest's classes {_listed(classes.tolist())}, "
                f"got {name!r}"
            )
    place = np.searchsorted(classes, training.classes)
    validation = training.validation_labels
    return replace(
        training,
        labels=place[training.labels],
        classes=classes,
        validation_labels=None if validation is None else place[validation],
    )


def count_classes(
    forest: Forest, rows: NDArray[np.float32], labels: Integers, is_counted: Flags | None = None
) -> Floats:
    """Return the number of rows of each class at each node, (n_nodes, n_classes) float64."""
    leaves = forest.apply(rows)
    cell = leaves * np.int64(forest.n_classes) + labels[:, np.newaxis]
    if is_counted is not None:
        cell = cell[is_counted]
    at_leaves = np.bincount(cell.ravel(), minlength=forest.counts.size)
    # A subtree is a range of nodes: the count at its root is the sum over its leaves.
    below = np.zeros((forest.n_nodes + 1, forest.n_classes))
    np.cumsum(at_leaves.reshape(forest.counts.shape), axis=0, out=below[1:])
    return below[forest.ends] - below[:-1]


def _encoding_of(forest: Any) -> MatrixEncoder | None:
    """Return the encoder of the columns of a forest fitted here; None for other forests."""
    if isinstance(forest, ForestClassifier):
        return forest._encoder
    encoding: MatrixEncoder | None = getattr(forest, _ENCODING, None)
    if encoding is None or hasattr(forest, "feature_names_in_"):  # fitted again by the user
        return None
    return encoding if forest.n_features_in_ == len(encoding.source) else None


def _listed(values: Any) -> str:
    shown = [repr(value) for value in values]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
