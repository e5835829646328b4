"""What every density over rows does, whatever it learned: read tables, and score rows of any form.

An estimator inherits `RowDensities` and says how coded rows are scored; a `Baseline`, which others
are compared with, is fitted in closed form.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_weights
from bayescascade.data.declarations import Columns, declared
from bayescascade.data.schema import Rows, Schema
from bayescascade.data.table import Table
from bayescascade.report.printed import PrintedModel

__all__ = ["Baseline", "RowDensities"]


class RowDensities(DensityMixin, Columns):  # type: ignore[misc] # untyped base
    """A density over the rows of a schema; its parameters say how to read columns."""

    schema_: Schema

    @abstractmethod
    def score_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log density of (n_columns, n_rows) coded rows, nats; see `Schema.encode`."""

    @abstractmethod
    def _learner(self) -> Callable[[Table], None]:
        """Return what learns from a table; raise ParameterError if any parameter is bad."""

    def fit(
        self,
        X: pd.DataFrame | ArrayLike | Table,
        y: object = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the density: where there is a posterior, search for its best state and sample it.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_columns) array or Table
            Rows to learn from. A Table brings its own columns and weights, so the estimator's
            `columns`, `drop`, `nominal`, `ordinal`, `continuous` and `missing` do not apply to it.
        y : ignored
            There are no labels; the parameter is scikit-learn's convention.
        sample_weight : (n_rows,) array of float >= 0, optional
            How many rows each row stands for.

        Returns
        -------
        self
            Ctrl-C ends a search early: the model is then what had been found, and
            ``run_.interrupted`` says so.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If the data cannot be used; the message names column, value and row.
        samplers.CheckpointError
            If the checkpoint is of another model or data, is damaged, or cannot be written.
        """
        del y
        learn = self._learner()
        learn(self._to_table(X, sample_weight))
        return self

    def score_samples(self, X: Rows) -> NDArray[np.float64]:
        """Return the log density of each row, (n_rows,) float64, nats.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series or Table
            DataFrames are matched by column name. Missing cells are integrated out exactly: a row
            gets the density of the cells that it has.

        Raises
        ------
        DataError
            If a column is missing or a value is outside its column's domain; the message names
            column, value and row.
        """
        check_is_fitted(self)
        return self.score_codes(self.schema_.encode(X))

    def score(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the (weighted) sum of the rows' log densities, nats."""
        del y
        scores = self.score_samples(X)
        if isinstance(X, Table) and sample_weight is None:
            sample_weight = X.weights
        if sample_weight is None:
            return float(scores.sum())
        weights = check_weights("sample_weight", sample_weight, scores.shape[0])
        return float(np.dot(weights[weights > 0], scores[weights > 0]))

    def _to_table(
        self, X: pd.DataFrame | ArrayLike | Table, sample_weight: ArrayLike | None
    ) -> Table:
        if isinstance(X, Table):
            if sample_weight is not None:
                raise ParameterError("sample_weight must be None with a Table, which has weights")
            return X
        return Table.from_arrays(X, sample_weight=sample_weight, **declared(self))


class Baseline(PrintedModel, RowDensities, BaseEstimator, ABC):  # type: ignore[misc] # untyped base
    """A density without a posterior; subclasses document their parameters.

    Attributes
    ----------
    model_name, title : str
        Its name in comparisons, and what it is called.
    """

    model_name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ParameterError if a parameter of the model itself is out of its range."""

    @abstractmethod
    def _fit_table(self, table: Table) -> None:
        """Learn from a table; `schema_` is set already."""

    def _learner(self) -> Callable[[Table], None]:
        self._check_parameters()
        check_choice("missing", self.missing, ("error", "level"))
        return self._learn

    def _learn(self, table: Table) -> None:
        self.schema_ = table.schema
        self._fit_table(table)
        self.n_features_in_ = table.schema.n_columns
        self.feature_names_in_ = np.array(table.schema.names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_names_in_")
