"""What any density over rows does: read tables, score, draw, condition and explain rows.

An estimator inherits `ReadableDensity` and says how coded rows are scored.

*Unknown cells.* A level that no row had which was learned from, and that was not declared, lies
outside the domain over which a density ``p`` sums to one, as does a number beyond the outer edges
of a continuous column. With `unknown` "rare", a row whose cells in the columns ``S`` are such gets
::

    p(its other cells) e^|S|,    e = 1 / (m (n + 1))

with ``m`` columns and ``n`` the weight of the rows learned from; the first factor is the exact
marginal density, as where cells are missing. Rows within the domain keep theirs. Give each counted
column one more level, for whatever is none of its own. Over all rows with others in exactly ``S``
the marginal densities sum to one, hence over all sets ``S`` of such columns but the empty one ::

    sum over S of e^|S| <= (1 + e)^m - 1 <= exp(m e) - 1 = exp(1 / (n + 1)) - 1

where the first two are equal if all columns are counted. That is about ``1 / (n + 1)``: by the rule
of succession, what rows are worth of which ``n`` showed none. Numbers beyond the edges of a
continuous column are no level but a half-line, over which a constant has no integral: of such rows
these are scores, to be compared, not a proper density.
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

from bayescascade.base.errors import ParameterError, UnknownLevelError
from bayescascade.base.validation import check_integer, check_weights
from bayescascade.data.arrow_frames import as_frame
from bayescascade.data.column import MISSING, UNKNOWN
from bayescascade.data.declarations import Bins, Levels, Names, declared
from bayescascade.data.given import GivenRows
from bayescascade.data.partitions import by_partitions
from bayescascade.data.schema import Rows, Schema
from bayescascade.data.table import Table, as_table
from bayescascade.data.unknown import UnknownCells
from bayescascade.model.conditionals import PredictedColumn, fill_missing, predict_given_others
from bayescascade.model.density_parts import DensityParts
from bayescascade.model.parameters import DensityParameters
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.reporting import AS_COMMON, OF_DENSITIES, OF_ROWS

D = TypeVar("D", bound=DensityParts)

_MEANINGS: Final[Mapping[str, str]] = {
    "rare": "multiplies the density by 1 / (columns x (rows learned from + 1)); "
    "declare all levels when fitting, or whole numbers as continuous",
    "ignore": "counts as missing",
    "error": "",
}
"""What an unknown cell is taken for, by `unknown`."""


@dataclass(eq=False, repr=False, kw_only=True)
class ReadableDensity(DensityMixin, ReadableModel, Generic[D]):  # type: ignore[misc] # untyped base
    """A density over the rows of a schema, that a user reads as a D.

    Parameters
    ----------
    unknown : {"rare", "ignore", "error"}
        What a cell of a row to be scored is whose level fit has not seen, or whose number is beyond
        the outer edges: outside the domain, which gives the row a very low density
        (the module says how rare); missing; or an error. The first two are said in an
        `UnknownLevelWarning`.
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
        """The density that is shown; raises NotFittedError where there is none yet."""

    @property
    @abstractmethod
    def _total_weight(self) -> float:
        """Weight of the rows that were learned from."""

    @abstractmethod
    def _learner(self) -> Callable[[Table], None]:
        """Return what learns from a table; raise ParameterError if any parameter is bad."""

    def fit(
        self,
        X: Rows | ArrayLike | Table,
        y: object = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Learn the density: where there is a posterior, search for its best state and sample it.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping, array or Table
            Rows to learn from: tables of polars, Arrow, DuckDB, Dask or narwhals, too; paths or
            URLs of CSV, Parquet or Arrow files; a mapping of columns; an (n_rows, n_columns) array
            or list of rows. A Table brings its own columns and weights, so the estimator's
            `columns`, `drop`, `nominal`, `ordinal`, `continuous` and `missing` do not apply to it.
        y : ignored
            There are no labels; the parameter is scikit-learn's convention.
        sample_weight : (n_rows,) array of float >= 0, optional
            How many rows each row stands for; of tables and files, perhaps a column's name.

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

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If chains have not come to agree, or drew too little: R-hat above 1.01, or an effective
            sample size below 400. It says what to do.
        """
        del y
        learn = self._learner()
        learn(self._to_table(X, sample_weight))
        return self

    @by_partitions
    def score_samples(self, X: Rows) -> NDArray[np.float64]:
        """Return the log density of each row, (n_rows,) float64, nats.

        Parameters
        ----------
        X : DataFrame or other table, paths, array, mapping, Series or Table
            DataFrames are matched by column name. Missing cells of columns that have no level for
            them are integrated out exactly: a row gets the density of the others. What an unknown
            cell is, `unknown` says.

        Raises
        ------
        DataError
            If a column is missing, or a value is outside its column's domain and that is an error;
            the message names column, value and row.
        """
        return self.score_codes(self.encode(X))

    def encode(
        self, X: Rows, *, first_row: int = 1, unknown: UnknownCells | None = None
    ) -> NDArray[np.int32]:
        """Return the codes of rows, (n_columns, n_rows), -1 where missing and -2 where unknown.

        `first_row` is the number of the first row, for messages; rows with unknown cells are
        appended to `unknown`, else warned of; the rest is as in `score_samples`.
        """
        check_is_fitted(self)
        how = DensityParameters.unknown.check(self.unknown)
        found = None if how == "error" else UnknownCells()
        try:
            codes = self.schema_.encode(X, first_row=first_row, unknown=found)
        except UnknownLevelError as error:
            raise error.advising(
                "give all its levels when fitting (nominal=, ordinal=), or let unknown ones pass "
                'with unknown="rare" (--unknown rare)'
            ) from None
        if found is not None:
            found.tell(_MEANINGS[how], unknown)
        if how == "ignore":
            codes[codes == UNKNOWN] = MISSING
        return codes

    def score_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
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
        """Log of what an unknown cell multiplies a density by; see the module."""
        return -math.log(self.schema_.n_columns * (self._total_weight + 1.0))

    def score(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the (weighted) sum of the rows' log densities, nats."""
        del y
        scores = np.asarray(self.score_samples(X))  # which may be Dask's
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
        """Return what `read` makes of rows with the declarations of columns."""
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
        """Return rows with their missing cells filled, given the cells that they have.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series or paths
            Rows as for `score_samples`; all columns of the model must be there.
        how : {"mode", "draw"}
            "mode": the most probable values. Of several missing cells in a row these are the ones
            most probable together, if there are at most 256 combinations of them; else each
            cell's own most probable. Of continuous columns, the middle of the most probable bin.
            "draw": values drawn together from the density given the row, and within a continuous
            column's bin uniformly: repeated with several seeds, this is multiple imputation.
        random_state : int, Generator or None
            Seed of the draws.
        first_row, unknown
            See `encode`.

        Returns
        -------
        DataFrame
            As X, of types that X's columns have, with its index and its other columns. Of an array,
            the columns are the model's. A missing cell of a column that has a level for these is
            filled as well, by another level; an unknown cell, where it counts as missing.

        Raises
        ------
        DataError
            If a column is missing, a value is outside its column's domain, or what a row has is of
            probability 0; the message names the row.
        """
        return fill_missing(self, X, how, random_state, first_row, unknown)

    def predict_proba(self, X: Rows, target: str) -> pd.DataFrame:
        """Return the probability of each level of a column, given the other cells of each row.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series, paths or Table
            Rows as for `score_samples`. The target's own cells are ignored, and its column may be
            left out. Other missing cells are integrated out.
        target : str
            Name of a column of the model.

        Returns
        -------
        (n_rows, n_levels) DataFrame
            Rows sum up to 1. Its columns are the target's levels, in their order; of a continuous
            column its bins as text, such as "[0, 5)"; and last, if there is a level for missing
            cells, None.

        Raises
        ------
        DataError
            If the target is unknown, another column is missing, a value is outside its column's
            domain, or what a row has is of probability 0.
        """
        return predict_given_others(self, X, target).probabilities

    def predict(self, X: Rows, target: str, how: str = "mode") -> NDArray[np.generic]:
        """Return what a column is most probably, given the other cells of each row.

        Parameters
        ----------
        X, target
            See `predict_proba`.
        how : {"mode", "mean"}
            "mode": the most probable level, the first of equals; of a continuous column the middle
            of the most probable bin. "mean": the expected value, of columns of numbers.

        Returns
        -------
        (n_rows,) array
            Of the levels' type, or float64. A level for missing cells is never predicted: what is
            returned is given that the cell is there.

        Raises
        ------
        ParameterError
            If `how` is "mean", and levels are no numbers.
        DataError
            As of `predict_proba`.
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
        """Return what `predict` and `predict_proba` do, of rows that are scored once for both.

        For `first_row` and `unknown` see `encode`.
        """
        return predict_given_others(self, X, target, how, first_row, unknown)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> pd.DataFrame:
        """Draw rows from the density, as a DataFrame with the levels' original types."""
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(random_state)
        return self.schema_.decode(self._sample_codes(n_samples, rng), rng)

    def condition(self, conditions: Mapping[str, object]) -> D:
        """Return the density that is shown, given conditions; see its own `condition`."""
        return self.learned_.condition(conditions)

    def to_sql(self) -> str:
        """Return the log density of a row as standard SQL; see `DensityParts.to_sql`."""
        return self.learned_.to_sql()

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule that holds for a row, by the density that is shown.

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
        """Return how common each of many rows is, and why.

        Parameters
        ----------
        X : DataFrame or other table, array, mapping or Series
            See `score_samples`.
        first_row : int
            Number of the first row, for messages.

        Returns
        -------
        DataFrame
            With the rows' index: the `log_density`, nats, and what that is `because` of, in words:
            see `explain`.

        Raises
        ------
        DataError
            As `score_samples`.
        """
        frame = GivenRows.of(X).frame(self.schema_.names, type(self).__name__)
        codes = self.encode(frame, first_row=first_row)
        told: dict[object, str] = {}  # the same of all rows whose cells are known and coded alike
        because = []
        for own, row in zip(codes.T, frame.to_dict("records"), strict=True):
            key = own.tobytes() if (own >= 0).all() else repr(row)
            if key not in told:
                told[key] = self.explain(pd.Series(row))
            because.append(told[key])
        scores = self.score_codes(codes)
        return pd.DataFrame({"log_density": scores, "because": because}, frame.index)

    @property
    def _n_parts(self) -> float:
        """How many leaves, rules with the else, classes or cells there are."""
        return self.learned_.n_parts

    def _decided(self) -> dict[str, float | str]:
        """Return what the rows decided of what the density is, by name."""
        return {}

    def _score_known(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return what `score_codes` does, of rows of which no cell is unknown."""
        return self.learned_.score_codes(codes)

    def _sample_codes(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw (n_columns, n) codes."""
        return self.learned_.sample_codes(n, rng)

    def _words_lead(self) -> list[str]:
        return [AS_COMMON]

    def _in_words(self) -> list[tuple[str, str]]:
        return self.learned_.parts_in_words()

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [*self.learned_.how_to_read, *self.learned_.columns_in_words()]

    def _cannot_tell(self) -> list[str]:
        return [*OF_DENSITIES, *OF_ROWS]
