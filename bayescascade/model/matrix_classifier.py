"""Classifiers: costs of errors, and classifiers over a matrix."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from bayescascade.base.arrays import Floats
from bayescascade.data.cell_policy import Matrix, UnknownCells
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows, classes_record, read_classes
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.partitions import are_partitions, by_partitions
from bayescascade.data.table import Table
from bayescascade.model.decisions import Decision
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.roles import Predicted
from bayescascade.model.view import View
from bayescascade.report.page import count_of


class LabeledFiles(ClassifierMixin):  # type: ignore[misc] # untyped base
    """A scikit-learn classifier with costs of errors, and with scores on files."""

    classes_: NDArray[Any]
    predict_block: Callable[..., Predicted]  # see `bayescascade.model.roles.Predictor`

    @abstractmethod
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes) float64."""

    def decision(self, threshold: Any = None, class_costs: Any = None) -> Decision:
        """Return the rule by which `predict` chooses a class, given its arguments."""
        return Decision.of(self.classes_, threshold, class_costs)

    @by_partitions
    def predict(self, X: Any, *, threshold: Any = None, class_costs: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row, or the class of least cost, (n_rows,).

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array, list of rows, mapping, Series or Table
            DataFrames are matched by column name, in any order, and may have additional columns. A
            Series or a mapping of single values is one row. A Table gives its distinct rows, if the
            model accepts a Table. Missing cells, if allowed, are NaN or None.
        threshold : float in [0, 1], optional
            For two classes: the second of `classes_` is predicted if its probability is at least
            this.
        class_costs : mapping, or (n_classes, n_classes) array, optional
            Costs of errors. The class with the smallest expected cost is predicted; among equals,
            the first one. ``{"yes": 5}``: predicting another class for a row of "yes" costs 5,
            other errors 1. ``{"yes": {"no": 5}}``: predicting "no" for "yes" costs 5. An array has
            a row for each true class and a column for each predicted class, in the order of
            `classes_`, like a confusion matrix in scikit-learn.

        Raises
        ------
        ParameterError
            If both are given, or one is out of its range.
        DataError
            If a column is missing or a cell cannot be read. The message names column, value and
            row.
        """
        probabilities = self.predict_proba(X)  # raises NotFittedError
        chosen = self.decision(threshold, class_costs).choose(probabilities)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    @abstractmethod
    def _reasons(self, X: Any) -> list[str]:
        """Return the reasons for the probabilities of some rows, in words."""

    def explain_rows(
        self, X: Any, *, threshold: Any = None, class_costs: Any = None, first_row: int = 1
    ) -> pd.DataFrame:
        """Return the prediction for each row, with the reason.

        Parameters
        ----------
        X, threshold, class_costs
            See `predict`.
        first_row : int
            Number of the first row, for messages.

        Returns
        -------
        DataFrame
            With the index of the rows: the class `predicted`, its `probability`, and the reason
            `because` in words, such as the rule that applies or the path in a tree.

        Raises
        ------
        ParameterError, DataError
            As `predict`.
        """
        rows = X if _is_read(X) else GivenRows.of(X, self.learned_columns)
        probabilities = self.predict_block(rows, first_row, unknown=UnknownCells()).probabilities
        assert probabilities is not None
        chosen = self.decision(threshold, class_costs).choose(probabilities)
        record = {
            "predicted": self.classes_[chosen],
            "probability": probabilities[range(len(chosen)), chosen],
            "because": self._reasons(rows),
        }
        return pd.DataFrame(record, getattr(rows, "index", None))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows, by weight, with a correct prediction.

        Parameters
        ----------
        X : as for `predict`
            May also be files.
        y : (n_rows,) array, or str
            Labels. For files it may be the name of a column, which is then not a feature.
        sample_weight : (n_rows,) array or str, optional
            Number of rows that each row counts as. For files it may be the name of a column.

        Raises
        ------
        ParameterError
            If files do not have a named column.
        DataError
            See `predict`.
        """
        if _is_read(X):
            return float(super().score(X, y, sample_weight))
        rows = GivenRows.labeled(X, y, sample_weight)
        return float(super().score(rows, rows.labels, rows.weights))


class MatrixClassifier(LabeledFiles, MatrixEstimator):
    """A classifier over a matrix; subclasses have `_probabilities` and `_reasons`.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels, sorted.

    All other attributes are those of `MatrixEstimator`.
    """

    def _read_rows(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingRows:
        """Learn columns and classes, and return the rows as a matrix; see `TrainingRows.read`."""
        given = GivenRows.labeled(X, y, sample_weight)
        self._set_encoder(MatrixEncoder.learn(given, self._policy()))
        training = TrainingRows.read(self._encoder, given, owner=type(self).__name__)
        self.classes_, self.n_rows_ = training.classes, len(training.rows)
        self.notes_ = training.notes
        return training

    @by_partitions
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes) float64.

        Parameters and errors: see `predict`.
        """
        return self._probabilities(self._matrix(X))

    def _predicted(self, rows: Matrix, intervals: bool, explain: bool) -> Predicted:
        del intervals  # no intervals yet
        texts = self._block_words(rows) if explain else {}
        return Predicted(texts, self._probabilities(rows), costs=self._row_costs(rows))

    @abstractmethod
    def _probabilities(self, rows: Matrix) -> Floats:
        """Return the probability of each class for rows of the matrix, (n_rows, n_classes)."""

    def _block_words(self, rows: Matrix) -> Mapping[str, Sequence[object]]:
        """Return the reasons for rows of the matrix, in columns by heading."""
        del rows
        return {}

    def _row_costs(self, rows: Matrix) -> Floats | None:
        """Return the cost of features for each row of the matrix, (n_rows,); None without costs."""
        del rows
        return None

    def view(self) -> View:
        """Return what is shown, with the number of classes among the facts."""
        view = super().view()
        facts = [*view.facts, count_of(len(self.classes_), "class", "classes")]
        return view._replace(heading=[self.title, *facts], facts=facts)

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "classes": len(self.classes_)}

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "classes": classes_record(self.classes_)}

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        super()._read_columns(record)
        self.classes_ = read_classes(record["classes"])


def _is_read(X: Any) -> bool:
    """Whether rows are read elsewhere: a Table is already read, and Dask reads partitions."""
    return isinstance(X, Table) or are_partitions(X)
