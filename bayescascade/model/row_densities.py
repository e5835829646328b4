"""What every density over rows does, whatever it learned: read tables, and score rows of any form.

An estimator inherits `RowDensities` and says how coded rows are scored.

*Unknown cells.* A level that no row had which was learned from, and that was not declared, lies
outside the domain over which a density ``p`` sums to one, as does a number beyond the outer edges
of a continuous column. With `unknown` "other", a row whose cells in the columns ``S`` are such gets
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
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError, UnknownLevelError
from bayescascade.base.validation import check_choice, check_weights
from bayescascade.data.column import MISSING, UNKNOWN
from bayescascade.data.declarations import Columns, declared
from bayescascade.data.partitions import by_partitions
from bayescascade.data.schema import Rows, Schema
from bayescascade.data.table import Table
from bayescascade.data.unknown import UnknownCells
from bayescascade.model.conditionals import Conditionals

_MEANINGS: Final[Mapping[str, str]] = {
    "other": "makes its row rarer, by 1 / (columns x (rows learned from + 1)); "
    "when fitting, declare all levels, or whole numbers continuous",
    "missing": "counts as missing",
    "error": "",
}
"""What an unknown cell is taken for, by `unknown`."""


@dataclass(eq=False, repr=False, kw_only=True)
class RowDensities(Conditionals, DensityMixin, Columns):  # type: ignore[misc] # untyped base
    """A density over the rows of a schema; its parameters say how to read columns.

    Parameters
    ----------
    unknown : {"other", "missing", "error"}
        What a cell of a row to be scored is whose level fit has not seen, or whose number is beyond
        the outer edges: outside the domain, which makes the row as rare as that none such was seen
        (the module says how rare); missing; or an error. The first two are said in an
        `UnknownLevelWarning`.
    columns, drop, nominal, ordinal, continuous, missing
        See `bayescascade.data.table.Table`.

    Attributes
    ----------
    unknowns : tuple of str
        What the parameter `unknown` may be.
    """

    unknowns: ClassVar[tuple[str, ...]] = tuple(_MEANINGS)

    unknown: str = "other"

    schema_: Schema = field(init=False)

    @property
    @abstractmethod
    def _total_weight(self) -> float:
        """Weight of the rows that were learned from."""

    @abstractmethod
    def _score_known(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return what `score_codes` does, of rows of which no cell is unknown."""

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

    def encode(self, X: Rows, *, first_row: int = 1) -> NDArray[np.int32]:
        """Return the codes of rows, (n_columns, n_rows), -1 where missing and -2 where unknown.

        `first_row` is the number of the first row, for messages; the rest is as in `score_samples`.
        """
        check_is_fitted(self)
        how = check_choice("unknown", self.unknown, _MEANINGS)
        unknown = None if how == "error" else UnknownCells()
        try:
            codes = self.schema_.encode(X, first_row=first_row, unknown=unknown)
        except UnknownLevelError as error:
            raise error.advising(
                "give all its levels when fitting (nominal=, ordinal=), or let unknown ones pass "
                'with unknown="other" (--unknown other)'
            ) from None
        if unknown is not None:
            unknown.warn(_MEANINGS[how])
        if how == "missing":
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
            if sample_weight is not None:
                raise ParameterError("sample_weight must be None with a Table, which has weights")
            return X
        return self._read_rows(partial(Table.from_arrays, X, sample_weight=sample_weight))

    def _read_rows(self, read: Callable[..., Table]) -> Table:
        """Return what `read` makes of rows with the declarations of columns."""
        return read(**declared(self))
