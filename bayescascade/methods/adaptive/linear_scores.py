"""Linear scores of rows, and the scale of the columns that they are learned on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.saved_arrays import read_array
from bayescascade.costs.acquisition import WholeWalk
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.adaptive.objective import Numbers

Bools = NDArray[np.bool_]


class Scaling(NamedTuple):
    """Means (p,) of columns, and one over their deviations, 0 of constant ones."""

    means: Numbers
    scales: Numbers

    @classmethod
    def of(cls, rows: Matrix, weights: Numbers) -> Self:
        """Return that of rows (n, p); NaN is left out."""
        sizes = np.where(np.isnan(rows), 0.0, weights[:, np.newaxis])
        totals = np.maximum(sizes.sum(axis=0), np.finfo(np.float64).tiny)
        cells = np.nan_to_num(rows.astype(np.float64))
        means = (sizes * cells).sum(axis=0) / totals
        deviations = np.sqrt((sizes * (cells - means) ** 2).sum(axis=0) / totals)
        varies = deviations > 1e-12 * (1 + np.abs(means))
        return cls(means, np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0))

    def scaled(self, rows: Matrix) -> Numbers:
        """Return columns of mean 0 and variance 1, and one of 1; NaN counts as the mean."""
        cells = np.nan_to_num((rows.astype(np.float64) - self.means) * self.scales)
        return np.column_stack([cells, np.ones(len(rows))])


@dataclass(frozen=True, slots=True, eq=False)
class LinearScores:
    """Linear scores of rows.

    Attributes
    ----------
    coef_ : (c, p) float64
        Coefficients in the units of the columns of the matrix; 0 if a column is not read.
    intercept_ : (c,) float64
    """

    coef_: Numbers
    intercept_: Numbers

    @classmethod
    def of_scaled(cls, part: Numbers, scaling: Scaling) -> Self:
        """Return scores from coefficients (p + 1, c) of scaled columns; the last are intercepts."""
        coef = (part[:-1] * scaling.scales[:, np.newaxis]).T
        return cls(coef, part[-1] - coef @ scaling.means)

    @classmethod
    def constant(cls, starts: Numbers, n_columns: int) -> Self:
        """Return constant scores (c,), which read no column."""
        return cls(np.zeros((len(starts), n_columns)), starts)

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns of the matrix that are read."""
        return np.flatnonzero(self.coef_.any(axis=0))

    def of(self, rows: Matrix, means: Numbers) -> Numbers:
        """Return the scores (n, c), summed by column, so scores do not depend on other rows."""
        scores = np.repeat(self.intercept_[np.newaxis], len(rows), axis=0)
        for column in self.columns:
            cells = rows[:, column].astype(np.float64)
            cells = np.where(np.isnan(cells), means[column], cells)
            scores += cells[:, np.newaxis] * self.coef_[:, column]
        return scores

    @property
    def is_constant(self) -> bool:
        """Whether no column is read."""
        return not self.coef_.any()

    def read(self, rows: Matrix) -> Bools:
        """Return which columns are read for each row, (n, p)."""
        read = np.zeros((len(rows), self.coef_.shape[1]), np.bool_)
        read[:, self.columns] = True
        return read

    def walk(self, means: Numbers, encoder: MatrixEncoder) -> "LinearWalk":
        """Return a row without known columns."""
        return LinearWalk(self, means, encoder)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"coef": self.coef_.tolist(), "intercept": self.intercept_.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_outputs: int, n_columns: int) -> Self:
        """Rebuild scores from `to_record`; ModelFileError if the record is malformed."""
        coef = read_array(record, "coef", (n_outputs, n_columns))
        return cls(coef, read_array(record, "intercept", (n_outputs,)))


class LinearWalk(WholeWalk):
    """A row on its way to linear scores: it waits for every feature that they weigh."""

    def __init__(self, scores: LinearScores, means: Numbers, encoder: MatrixEncoder) -> None:
        super().__init__(encoder.source[scores.columns].tolist(), encoder)
        self._scores, self._means = scores, means

    @property
    def scores(self) -> Numbers:
        """What they come to, once nothing is waited for, (c,)."""
        found: Numbers = self._scores.of(self.cells, self._means)[0]
        return found
