"""What the densities that are compared with have in common: they are fitted in closed form."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from bayescascade.base.validation import check_choice
from bayescascade.data.table import Table
from bayescascade.model.row_densities import RowDensities
from bayescascade.report.printed import PrintedModel

__all__ = ["Baseline"]


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

    def fit(
        self,
        X: pd.DataFrame | ArrayLike | Table,
        y: object = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the density.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_columns) array or Table
            Rows to learn from. A Table brings its own columns and weights, so the parameters that
            say how to read columns do not apply to it.
        y : ignored
            There are no labels; the parameter is scikit-learn's convention.
        sample_weight : (n_rows,) array of float >= 0, optional
            How many rows each row stands for.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If the data cannot be used; the message names column, value and row.
        """
        del y
        self._check_parameters()
        check_choice("missing", self.missing, ("error", "level"))
        table = self._to_table(X, sample_weight)
        self.schema_ = table.schema
        self._fit_table(table)
        self.n_features_in_ = table.schema.n_columns
        self.feature_names_in_ = np.array(table.schema.names, dtype=object)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_names_in_")
