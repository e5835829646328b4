"""Classifiers whose rows are a matrix: their columns and classes, learned, told apart and saved."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.parameters import Parameters
from bayescascade.base.validation import check_choice
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import classes_record, read_classes
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.partitions import are_partitions, by_partitions
from bayescascade.data.table import Table
from bayescascade.data.unknown import UnknownCells
from bayescascade.model.decisions import Decision
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.roles import Predicted
from bayescascade.report.page import BLANK, Page, counted

MISSING = ("level", "error")
"""What missing cells may be to those that need a number in every cell of the matrix."""


class LabeledFiles(ClassifierMixin):  # type: ignore[misc] # untyped base
    """A classifier of scikit-learn's that weighs errors, and tells its accuracy of files, too."""

    classes_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class for each row, (n_rows, n_classes) float64."""

    @by_partitions
    def predict(self, X: Any, *, threshold: Any = None, class_costs: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row, (n_rows,), or the one that costs least.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array, list of rows, mapping, Series or Table
            DataFrames are matched by column name, in any order, and may have more columns; a Series
            or a mapping of single values is one row; a Table, of those that take one, gives its
            distinct rows. Missing cells, where they are allowed, are NaN or None.
        threshold : float in [0, 1], optional
            Of two classes, the second of `classes_` is predicted where it is at least so probable.
        class_costs : mapping, or (n_classes, n_classes) array, optional
            What errors cost; the class of least expected cost is predicted, of equals the first.
            ``{"yes": 5}``: naming another class for a row of "yes" costs 5, other errors 1;
            ``{"yes": {"no": 5}}``: that of one pair; an array has true classes downward, named ones
            across, both in the order of `classes_`, as scikit-learn's confusion matrix has.

        Raises
        ------
        ParameterError
            If both are given, or one is out of its range.
        DataError
            If a column is missing or a cell cannot be read; names column, value and row.
        """
        probabilities = self.predict_proba(X)  # which says if nothing is fitted
        decision = Decision.of(self.classes_, threshold, class_costs)
        labels: NDArray[Any] = self.classes_[decision.choose(probabilities)]
        return labels

    @abstractmethod
    def predict_block(
        self,
        cells: Any,
        first_row: int,
        *,
        intervals: bool = False,
        explain: bool = False,
        unknown: UnknownCells | None = None,
    ) -> Predicted:
        """Return what is predicted of rows; see `bayescascade.model.roles.Predictor`."""

    @abstractmethod
    def _reasons(self, X: Any) -> list[str]:
        """Return in words why each of some rows gets its probabilities."""

    def explain_rows(
        self, X: Any, *, threshold: Any = None, class_costs: Any = None, first_row: int = 1
    ) -> pd.DataFrame:
        """Return what is predicted of each of many rows, and why.

        Parameters
        ----------
        X, threshold, class_costs
            See `predict`.
        first_row : int
            Number of the first row, for messages.

        Returns
        -------
        DataFrame
            With the rows' index: the class `predicted`, its `probability`, and what that is
            `because` of, in words: the rule that fires, a tree's path, or what else decided.

        Raises
        ------
        ParameterError, DataError
            As `predict`.
        """
        rows = X if _is_read(X) else GivenRows.of(X)
        probabilities = self.predict_block(rows, first_row, unknown=UnknownCells()).probabilities
        assert probabilities is not None
        chosen = Decision.of(self.classes_, threshold, class_costs).choose(probabilities)
        told = {
            "predicted": self.classes_[chosen],
            "probability": probabilities[range(len(chosen)), chosen],
            "because": self._reasons(rows),
        }
        return pd.DataFrame(told, getattr(rows, "index", None))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows, by weight, whose class is predicted rightly.

        Parameters
        ----------
        X : as of `predict`
            Files, too.
        y : (n_rows,) array, or str
            Labels; of files, perhaps the column that holds them, which is then no feature.
        sample_weight : (n_rows,) array or str, optional
            How many rows each row stands for; of files, perhaps a column.

        Raises
        ------
        ParameterError
            If a column of files is named that they do not have.
        DataError
            As of `predict`.
        """
        if _is_read(X):
            return float(super().score(X, y, sample_weight))
        rows = GivenRows.labeled(X, y, sample_weight)
        return float(super().score(rows, rows.labels, rows.weights))


class MatrixClassifier(LabeledFiles, ReadableModel):
    """A classifier that reads rows by a `MatrixEncoder`; a `Predictor` but for `predict_block`.

    Subclasses set `_encoder` by `_set_encoder`, `classes_`, and have ``predict_proba(X)``.

    Attributes
    ----------
    title : str
        What it is called, such as "budgeted forest".
    cells : CellPolicy
        What it takes for a cell; of unknown levels, what older files did.
    ignored : {"mean", "missing"}
        What an unknown level counts as where `unknown` is "ignore"; see `CellPolicy`.
    classes_ : (n_classes,) array
        The labels, sorted.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    title: ClassVar[str]
    cells: ClassVar[CellPolicy] = CellPolicy()
    ignored: ClassVar[str] = "mean"
    declares: ClassVar[type[Parameters]]
    takes_texts: ClassVar[bool] = False

    _later_parameters: ClassVar[Mapping[str, Any]] = {"unknown": "error", "missing": "error"}

    unknown: str
    missing: str  # of those that have `MISSING` to choose from

    _encoder: MatrixEncoder

    def _set_encoder(self, encoder: MatrixEncoder) -> None:
        self._encoder = encoder
        self.n_features_in_ = len(encoder.columns)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if encoder.is_named:
            self.feature_names_in_ = np.array(encoder.columns, dtype=object)

    def _policy(self) -> CellPolicy:
        """Return what a cell is in rows to learn from, as the parameter `missing` says."""
        return replace(self.cells, missing=check_choice("missing", self.missing, MISSING))

    def _matrix(self, X: Any, unknown: UnknownCells | None = None) -> Matrix:
        """Return rows as a matrix; raises NotFittedError, or as `MatrixEncoder.transform`."""
        check_is_fitted(self)
        return self._reader.transform(GivenRows.of(X), type(self).__name__, self._means, unknown)

    @property
    def _reader(self) -> MatrixEncoder:
        """What reads rows, unknown levels as the parameter says."""
        return self._encoder.treating(self._unknown_policy())

    def _unknown_policy(self) -> str:
        """Return what an unknown level is, as `CellPolicy` calls it; ParameterError if nothing."""
        how = self.declares.declared()["unknown"].check(self.unknown)
        return self.ignored if how == "ignore" else "error"

    @property
    def _means(self) -> NDArray[np.float64] | None:
        """What unknown levels become where `unknown` is "mean", (n_matrix_columns,)."""
        return None

    @property
    def feature_texts(self) -> list[str]:
        """What the features are called in text: their names, or "x3"."""
        return self._encoder.names

    def _facts(self) -> list[str]:
        return [
            counted(self.n_features_in_, "column"),
            counted(len(self.classes_), "class", "classes"),
        ]

    def _column_names(self) -> list[str]:
        return self.feature_texts

    def _shown(self) -> Page:
        page = self.page()
        return page[page.index(BLANK) + 1 :]

    def _details(self) -> Page:
        page = self.page()
        return page[: page.index(BLANK)]

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted model as plain data, at full precision, as `save` writes it."""
        return self.to_record()

    def _encoding_fields(self) -> dict[str, Any]:
        """Return what a saved file holds of columns and classes."""
        return {"encoding": self._encoder.to_dict(), "classes": classes_record(self.classes_)}

    def _read_encoding(self, record: Mapping[str, Any]) -> None:
        """Become what `_encoding_fields` told; checks as `_restore`."""
        self._unknown_policy()
        self._set_encoder(MatrixEncoder.from_dict(record["encoding"], self.cells))
        self.classes_ = read_classes(record["classes"])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        is_let_pass = self.cells.missing == "nan" or getattr(self, "missing", "error") == "level"
        tags.input_tags.allow_nan = is_let_pass
        return tags


def _is_read(X: Any) -> bool:
    """Whether rows are read elsewhere: those of a Table have been, Dask reads its own by parts."""
    return isinstance(X, Table) or are_partitions(X)
