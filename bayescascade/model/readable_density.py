"""Densities over rows: they read tables, score, sample, condition and explain rows.

An estimator inherits `ReadableDensity` and says how coded rows are scored.

*Unknown cells.* An undeclared level that no training row has is outside the domain over which a
density ``p`` sums to one; so is a number beyond the outer edges of a continuous column. With
`unknown` "rare", a row with such cells in the columns ``S`` gets ::

    p(its other cells) e^|S|,    e = 1 / (m (n + 1))

with ``m`` columns and ``n`` the weight of the training rows; the first factor is the exact marginal
density, as for missing cells. Rows within the domain keep their density. Give each counted column
one more level, for all unknown levels. Over all rows with unknown levels in exactly ``S``, the
marginal densities sum to one; hence over all nonempty sets ``S`` of such columns ::

    sum over S of e^|S| <= (1 + e)^m - 1 <= exp(m e) - 1 = exp(1 / (n + 1)) - 1

where the first two are equal if all columns are counted. This is about ``1 / (n + 1)``: the rule of
succession gives this probability to an event that ``n`` rows did not show. Numbers beyond the edges
of a continuous column are not a level but a half-line, over which a constant has no integral. For
such rows these are scores for comparison, not a proper density.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ParameterError, UnknownLevelError
from bayescascade.base.validation import check_integer, check_weights
from bayescascade.data.arrow_frames import as_frame
from bayescascade.data.cell_policy import UnknownCells, advised
from bayescascade.data.column import MISSING, UNKNOWN
from bayescascade.data.declarations import Bins, Levels, Names, declared
from bayescascade.data.given import GivenRows
from bayescascade.data.partitions import by_partitions
from bayescascade.data.schema import Rows, Schema
from bayescascade.data.table import Table, as_table
from bayescascade.model.conditionals import PredictedColumn, fill_missing, predict_given_others
from bayescascade.model.density_parts import DensityParts
from bayescascade.model.parameters import DensityParameters
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.view import AS_COMMON, OF_DENSITIES, OF_ROWS, View

D = TypeVar("D", bound=DensityParts)

_MEANINGS: Final[Mapping[str, str]] = {
    "rare": "multiplies the density by 1 / (columns x (rows learned from + 1)); "
    "declare all levels when fitting, or declare whole numbers as continuous",
    "ignore": "counts as missing",
    "error": "",
}
"""The treatment of an unknown cell in words, by `unknown`."""


@dataclass(eq=False, repr=False, kw_only=True)
class ReadableDensity(DensityMixin, ReadableModel, Generic[D]):  # type: ignore[misc] # untyped base
    """A density over the rows of a schema, whose readable form is D.

    Parameters
    ----------
    unknown : {"rare", "ignore", "error"}
        How to treat, in rows to score, a level that fit has not seen or a number beyond the outer
        edges. "rare": the row gets a very low density, see the module. "ignore": the cell counts as
        missing. "error": it is an error. The first two raise an `UnknownLevelWarning`.
    columns, drop, nominal, ordinal, continuous, missing
        See `bayescascade.data.table.Table`.
    """

    unknown: str = DensityParameters.unknown.default

    columns: Names = None
    drop: Names = None
    nominal: Levels = None
    ordinal: Levels = None
    continuous: Bins = None
    missing: str = "level"

    schema_: Schema = field(init=False)

    @property
    @abstractmethod
    def learned_(self) -> D:
        """The printed density; raises NotFittedError before fit."""

    @property
    @abstractmethod
    def _total_weight(self) -> float:
        """Weight of the training rows."""

    @abstractmethod
    def _learner(self) -> Callable[[Table], None]:
        """Return a function that learns from a table; ParameterError if a parameter is bad."""

    def fit(
        self,
        X: Rows | ArrayLike | Table,
        y: object = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn the density; if there is a posterior, search its best state and sample it.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping, array or Table
            Rows to learn from: a DataFrame or a table of polars, Arrow, DuckDB, Dask or narwhals;
            paths or URLs of CSV, Parquet or Arrow files; a mapping of columns; an (n_rows,
            n_columns) array or list of rows. A Table has its own columns and weights, so the
            estimator's `columns`, `drop`, `nominal`, `ordinal`, `continuous` and `missing` do not
            apply to it.
        y : ignored
            Not used; present by the convention of scikit-learn.
        sample_weight : (n_rows,) array of float >= 0, optional
            Number of rows that each row counts as. For tables and files it may be the name of a
            column.

        Returns
        -------
        self
            Ctrl-C ends a search early. Then the model is the best result so far, and
            ``run_.interrupted`` is true.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If the data cannot be used; the message names column, value and row.
        samplers.CheckpointError
            If the checkpoint belongs to another model or other data, is damaged, or cannot be
            written.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If chains do not agree (R-hat above 1.01) or give too few draws (effective sample size
            below 400). The warning says what to do.
        """
        del y
        learn = self._learner()
        learn(self._to_table(X, sample_weight))
        return self

    @by_partitions
    def score_samples(self, X: Rows) -> Floats:
        """Return the log density of each row, (n_rows,) float64, nats.

        Parameters
        ----------
        X : DataFrame or other table, paths, array, mapping, Series or Table
            DataFrames are matched by column name. Missing cells of columns without a missing level
            are integrated out exactly, so a row gets the density of its other cells. For unknown
            cells see `unknown`.

        Raises
        ------
        DataError
            If a column is missing, or a value is outside the domain of its column and `unknown` is
            "error". The message names column, value and row.
        """
        return self.score_codes(self.encode(X))

    def encode(self, X: Rows, *, first_row: int = 1, unknown: UnknownCells | None = None) -> Codes:
        """Return the codes of rows, (n_columns, n_rows), -1 where missing and -2 where unknown.

        `first_row` is the number of the first row, for messages. Rows with unknown cells are
        appended to `unknown` if it is given; otherwise there is a warning. The rest is as in
        `score_samples`.
        """
        check_is_fitted(self)
        how = DensityParameters.unknown.check(self.unknown)
        found = None if how == "error" else UnknownCells()
        try:
            codes = self.schema_.encode(X, first_row=first_row, unknown=found)
        except UnknownLevelError as error:
            raise advised(error, "rare") from None
        if found is not None:
            found.tell(_MEANINGS[how], unknown)
        if how == "ignore":
            codes[codes == UNKNOWN] = MISSING
        return codes

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of (n_columns, n_rows) coded rows, nats; see `encode`."""
        check_is_fitted(self)
        unknown = codes == UNKNOWN
        if not unknown.any():
            return self._score_known(codes)
        scores = self._score_known(np.where(unknown, np.int32(MISSING), codes))
        scores += unknown.sum(axis=0) * self._log_other
        return scores

    @property
    def _log_other(self) -> float:
        """Log of the factor for an unknown cell; see the module."""
        return -math.log(self.schema_.n_columns * (self._total_weight + 1.0))

    def score(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the (weighted) sum of the log densities of the rows, nats."""
        del y
        scores = np.asarray(self.score_samples(X))  # may be of Dask
        if isinstance(X, Table) and sample_weight is None:
            sample_weight = X.weights
        if sample_weight is None:
            return float(scores.sum())
        weights = check_weights("sample_weight", sample_weight, scores.shape[0])
        return float(np.dot(weights[weights > 0], scores[weights > 0]))

    def _to_table(
        self, X: Rows | ArrayLike | Table, sample_weight: ArrayLike | str | None
    ) -> Table:
        if isinstance(X, Table):
            return as_table(X, sample_weight)
        return self._read_rows(partial(Table.from_arrays, X, sample_weight=sample_weight))

    def _read_rows(self, read: Callable[..., Table]) -> Table:
        """Call `read` with the declarations of columns."""
        return read(**declared(self))

    def impute(
        self,
        X: Rows,
        how: str = "mode",
        random_state: int | np.random.Generator | None = None,
        *,
        first_row: int = 1,
        unknown: UnknownCells | None = None,
    ) -> pd.DataFrame:
        """Return rows with their missing cells imputed, given their other cells.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series or paths
            Rows as in `score_samples`. All columns of the model must exist.
        how : {"mode", "draw"}
            "mode": the most probable values. If a row has several missing cells, this is their most
            probable combination if there are at most 256 combinations, otherwise the most probable
            value of each cell. For continuous columns it is the middle of the most probable bin.
            "draw": values are drawn jointly from the conditional density, and uniformly within the
            bin of a continuous column. Repeat this with several seeds for multiple imputation.
        random_state : int, Generator or None
            Seed of the draws.
        first_row, unknown
            See `encode`.

        Returns
        -------
        DataFrame
            X with imputed cells, with the same types, index and additional columns. For an array,
            the columns are those of the model. Missing cells of columns with a missing level are
            also imputed, by another level. Unknown cells are imputed if they count as missing.

        Raises
        ------
        DataError
            If a column is missing, a value is outside the domain of its column, or the observed
            cells of a row have probability 0. The message names the row.
        """
        return fill_missing(self, X, how, random_state, first_row, unknown)

    def predict_proba(self, X: Rows, target: str) -> pd.DataFrame:
        """Return the probability of each level of a column, given the other cells of each row.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series, paths or Table
            Rows as in `score_samples`. Cells of the target are ignored, and its column may be
            missing. Other missing cells are integrated out.
        target : str
            Name of a column of the model.

        Returns
        -------
        (n_rows, n_levels) DataFrame
            Each row sums to 1. The columns are the levels of the target, in order, or the bins of a
            continuous column as text, such as "[0, 5)". If the target has a missing level, the last
            column is None.

        Raises
        ------
        DataError
            If the target is unknown, another column is missing, a value is outside the domain of
            its column, or the observed cells of a row have probability 0.
        """
        return predict_given_others(self, X, target).probabilities

    def predict(self, X: Rows, target: str, how: str = "mode") -> NDArray[np.generic]:
        """Return the most probable value of a column, given the other cells of each row.

        Parameters
        ----------
        X, target
            See `predict_proba`.
        how : {"mode", "mean"}
            "mode": the most probable level (among equals, the first one), or the middle of the most
            probable bin of a continuous column. "mean": the expected value, for columns of numbers.

        Returns
        -------
        (n_rows,) array
            Values of the type of the levels, or float64. A missing level is never predicted:
            predictions are conditional on the cell not being missing.

        Raises
        ------
        ParameterError
            If `how` is "mean" and levels are not numbers.
        DataError
            See `predict_proba`.
        """
        return predict_given_others(self, X, target, how).values

    def predict_column(
        self,
        X: Rows,
        target: str,
        how: str = "mode",
        *,
        first_row: int = 1,
        unknown: UnknownCells | None = None,
    ) -> PredictedColumn:
        """Return the results of `predict` and `predict_proba`, and score rows only once.

        For `first_row` and `unknown` see `encode`.
        """
        return predict_given_others(self, X, target, how, first_row, unknown)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> pd.DataFrame:
        """Draw rows from the density, as a DataFrame with the original types of levels."""
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(random_state)
        return self.schema_.decode(self._sample_codes(n_samples, rng), rng)

    def condition(self, conditions: Mapping[str, object]) -> D:
        """Return the printed density, given conditions; see its method `condition`."""
        return self.learned_.condition(conditions)

    def to_sql(self) -> str:
        """Return the log density of a row as standard SQL; see `DensityParts.to_sql`."""
        return self.learned_.to_sql()

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule of the printed density that applies to a row.

        Unknown levels of the row are named first, unless `unknown` is "error".
        """
        row = as_frame(row)
        if isinstance(row, pd.DataFrame):
            if len(row) != 1:
                raise ParameterError(f"row must be a single row, got {len(row)}")
            row = row.iloc[0]
        learned = self.learned_
        if self.unknown == "error":
            self.encode(dict(row))
        return learned.explain(row)

    def explain_rows(self, X: Any, *, first_row: int = 1) -> pd.DataFrame:
        """Return the log density of each row, with the reason.

        Parameters
        ----------
        X : DataFrame or other table, array, mapping or Series
            See `score_samples`.
        first_row : int
            Number of the first row, for messages.

        Returns
        -------
        DataFrame
            With the index of the rows: the `log_density`, nats, and the reason `because` in words;
            see `explain`.

        Raises
        ------
        DataError
            As `score_samples`.
        """
        frame = GivenRows.of(X, self.schema_.columns).frame(self.schema_.names, type(self).__name__)
        codes = self.encode(frame, first_row=first_row)
        record: dict[object, str] = {}  # equal for all rows with equal known codes
        because = []
        for own, row in zip(codes.T, frame.to_dict("records"), strict=True):
            key = own.tobytes() if (own >= 0).all() else repr(row)
            if key not in record:
                record[key] = self.explain(pd.Series(row))
            because.append(record[key])
        scores = self.score_codes(codes)
        return pd.DataFrame({"log_density": scores, "because": because}, frame.index)

    @property
    def _n_parts(self) -> float:
        """Number of leaves, rules including the else, classes or cells."""
        return self.learned_.n_parts

    def _decided(self) -> dict[str, float | str]:
        """Return settings that were chosen by the rows, by name."""
        return {}

    def _score_known(self, codes: Codes) -> Floats:
        """Return the result of `score_codes` for rows without unknown cells."""
        return self.learned_.score_codes(codes)

    def _sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (n_columns, n) codes."""
        return self.learned_.sample_codes(n, rng)

    def view(self) -> View:
        """Return what is shown of a density: its parts in words, and how to read it."""
        learned = self.learned_
        view = super().view()
        return view._replace(
            shown=learned.page(),
            lead=[AS_COMMON],
            words=learned.parts_in_words,
            terms=[*learned.how_to_read, *learned.columns_in_words()],
            limits=[*OF_DENSITIES, *OF_ROWS],
        )
