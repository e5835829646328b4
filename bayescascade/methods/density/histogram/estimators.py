"""The full smoothed histogram: each cell is a bin, with a Dirichlet over all of them.

With ``n`` rows, ``n_x`` in cell ``x`` of ``C``, a cell has the posterior-mean probability ::

    (n_x + a) / (n + C a)

with the pseudo-count ``a``; within a cell of continuous columns the density is uniform. By default,
``a`` maximizes the evidence, with cells' probabilities integrated out::

    lnG(C a) - lnG(n + C a) + sum over cells of [lnG(n_x + a) - lnG(a)]

which has at most one maximum (Levin and Reeds, *Compound Multinomial Likelihood Functions Are
Unimodal*, Annals of Statistics 5(1), 1977); if it increases without bound, as for rows spread more
evenly than by chance, the histogram is nearly uniform. Only cells with rows are stored.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ModelFileError
from bayescascade.base.store import Of, Saved
from bayescascade.data.table import Table
from bayescascade.methods.density.histogram.cells import CellDensity
from bayescascade.methods.density.histogram.parameters import HistogramParameters
from bayescascade.model.baseline import Baseline
from bayescascade.model.view import View, joined
from bayescascade.report.numbers import cells_text, significant_text
from bayescascade.report.page import Page, Pieces

_LEAST_TOTAL = 1e-6  # total pseudo-rows
_TOLERANCE = 1e-6  # between a file's numbers and those from its counts
_CODES = Of("cells", None, kind=np.int32, least=0, most=2**31 - 1)
_MOST_TIMES_ROWS = 1e6  # times the rows; beyond, the rows do not matter


@dataclass(eq=False, repr=False)
class SmoothedHistogram(Baseline[CellDensity]):
    """Density that smooths the counts of all combinations of levels by a pseudo-count.

    Parameters
    ----------
    pseudo_count
        Number of pseudo-rows in each cell. None: the number with the largest evidence.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.

    Attributes
    ----------
    cells_, learned_ : CellDensity
        The cells with rows, and all other cells together.
    log_n_cells_ : float
        Logarithm of the number of cells.
    pseudo_count_ : float
        The pseudo-count of a cell, given or chosen; 0 if it is too small for a float.
    log_total_ : float
        Logarithm of the total number of pseudo-rows.
    log_evidence_ : float
        Log evidence, nats: log density of all rows, with cell probabilities integrated out. It is
        comparable with the evidence of other densities for the same table.
    schema_ : Schema
        Columns and levels.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import SmoothedHistogram
    >>> frame = pd.DataFrame({"sky": ["grey", "grey", "blue"], "wind": ["yes", "no", "yes"]})
    >>> model = SmoothedHistogram(pseudo_count=1).fit(frame)
    >>> float(round(np.exp(model.score_samples({"sky": "blue", "wind": "no"}))[0], 4))
    0.1429
    """

    model_name: ClassVar[str] = "SmoothedHistogram"
    title: ClassVar[str] = "smoothed histogram"
    purpose: ClassVar[str] = (
        "How common each single combination of levels is. Other models are compared with this one."
    )

    declares = HistogramParameters

    pseudo_count: float | None = HistogramParameters.pseudo_count.default

    log_total_: Annotated[float, Saved("log_total")] = field(init=False)
    log_evidence_: Annotated[float, Saved("log_evidence")] = field(init=False)
    # cells with rows, and the weight of the rows in each
    _cells: Annotated[Codes, _CODES, Saved("cells")] = field(init=False)
    _weights: Annotated[Floats, Of("cells", above=0), Saved("counts")] = field(init=False)

    @property
    def learned_(self) -> CellDensity:
        """The cells with rows, and all other cells together."""
        check_is_fitted(self, "_weights")
        log_pseudo_count = self.log_total_ - self.log_n_cells_
        return CellDensity.of(self.schema_, self._cells.T, self._weights, log_pseudo_count)

    cells_ = learned_

    @property
    def _n_parts(self) -> float:
        """Number of cells; infinite beyond 1.8e308."""
        with np.errstate(over="ignore"):
            return float(np.rint(np.exp(self.log_n_cells_)))

    def _decided(self) -> dict[str, float | str]:
        return {"pseudo_count": self.pseudo_count_}

    @property
    def _total_weight(self) -> float:
        return math.fsum(self._weights)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `bayescascade.load` reads it back.

        The file contains all combinations of levels that occur, with their counts. So for a table
        without continuous columns it contains the whole table, except for the order of rows.
        Writing is atomic: after an error, the old file is unchanged.
        """
        super().save(path)

    def _fit_table(self, table: Table) -> None:
        has_rows = table.weights > 0
        self._learn_cells(table.codes[:, has_rows].astype(np.int32), table.weights[has_rows])

    def _learn_cells(self, codes: Codes, weights: Floats) -> None:
        """Learn from cells, (n_columns, n_cells), and the weight > 0 of the rows in each."""
        self._cells, self._weights = codes.T, weights
        self.log_n_cells_ = math.fsum(math.log(n) for n in self.schema_.n_levels)
        if self.pseudo_count is None:
            most = _MOST_TIMES_ROWS * max(1.0, float(weights.sum()))
            found = minimize_scalar(
                lambda log_total: -self._log_evidence(log_total),
                bounds=(math.log(_LEAST_TOTAL), math.log(most)),
                method="bounded",
                options={"xatol": 1e-6},
            )
            self.log_total_ = float(found.x)
        else:
            self.log_total_ = math.log(self.pseudo_count) + self.log_n_cells_
        self._tell_evidence()

    def _tell_evidence(self) -> None:
        """Set the attributes that follow from the cells and the pseudo-rows."""
        self.pseudo_count_ = math.exp(self.log_total_ - self.log_n_cells_)
        columns = zip(self.schema_.columns, self._cells.T, strict=True)
        volumes = sum(self._weights @ np.log(each.widths)[codes] for each, codes in columns)
        self.log_evidence_ = self._log_evidence(self.log_total_) - float(volumes)

    def _log_evidence(self, log_total: float) -> float:
        """Return the log probability of the rows for a number of pseudo-rows, nats."""
        total, n = math.exp(log_total), self._weights.sum()
        log_each = log_total - self.log_n_cells_  # its exponential may be 0
        each = math.exp(log_each)
        # lnG(a) = lnG(1 + a) - ln a, which works for more cells than a float can count
        cells = gammaln(self._weights + each) - gammaln(1.0 + each) + log_each
        return float(gammaln(total) - gammaln(n + total) + cells.sum())

    def _own_dict(self) -> dict[str, Any]:
        names = ("log_n_cells", "pseudo_count", "log_total", "log_evidence")
        return {name: getattr(self, f"{name}_") for name in names}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        cells, log_evidence = self._cells, self.log_evidence_
        is_each_new = cells.size and np.unique(cells, axis=0).shape == cells.shape
        if not is_each_new or not (cells < self.schema_.n_levels).all():
            raise ModelFileError("saved cells must be different, and of codes of levels")
        self.log_n_cells_ = math.fsum(math.log(n) for n in self.schema_.n_levels)
        with np.errstate(over="ignore", invalid="ignore"):  # absurd counts give NaN, unequal
            self._tell_evidence()
        self._check_equal("log evidence", log_evidence, self.log_evidence_)
        self.log_evidence_ = log_evidence
        if self.pseudo_count is not None:
            expected = math.log(self.pseudo_count) + self.log_n_cells_
            self._check_equal("log_total", self.log_total_, expected)

    @staticmethod
    def _check_equal(name: str, saved: float, expected: float) -> None:
        if not abs(expected - saved) <= _TOLERANCE * (1 + abs(expected)):
            raise ModelFileError(f"a saved {name} must be about {expected!r}, got {saved!r}")

    def view(self) -> View:
        """Return the number of cells, the number of cells with rows, and the pseudo-count."""
        view = super().view()
        return view._replace(shown=joined(self.page(), view.shown), more=())

    def page(self) -> Page:
        """Return the first line of the view, as there is nothing to read in many cells."""
        check_is_fitted(self)
        text = (
            f"{self.title} of {cells_text(self.log_n_cells_)} cells, "
            f"{self._weights.size:,} of them with rows, "
            f"pseudo-count {significant_text(self.log_total_ - self.log_n_cells_)}"
        )
        return (Pieces([text]),)
