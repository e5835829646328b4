"""The full histogram, smoothed: every cell its own bin, and a Dirichlet over all of them.

Of ``n`` rows, ``n_x`` of them in cell ``x`` of ``C``, a cell has the posterior-mean probability ::

    (n_x + a) / (n + C a)

with the pseudo-count ``a``; within a cell of continuous columns the density is uniform. Unless it
is given, ``a`` is what makes the rows most probable, cells' probabilities integrated out::

    lnG(C a) - lnG(n + C a) + sum over cells of [lnG(n_x + a) - lnG(a)]

which has at most one maximum (Levin and Reeds, *Compound Multinomial Likelihood Functions Are
Unimodal*, Annals of Statistics 5(1), 1977); where it grows without end, as for rows spread more
evenly than by chance, the histogram is all but uniform. Only cells with rows are stored.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from bayescascade.base.validation import check_real
from bayescascade.data.table import Table
from bayescascade.model.row_densities import Baseline
from bayescascade.report.numbers import cells_text, significant_text
from bayescascade.report.page import Page, Pieces

__all__ = ["SmoothedHistogram"]

Floats = NDArray[np.float64]

_LEAST_TOTAL = 1e-6  # pseudo-rows in all
_MOST_TIMES_ROWS = 1e6  # beyond so many times the rows, these no longer matter


@dataclass(eq=False, repr=False)
class SmoothedHistogram(Baseline):
    """Density of every combination of levels by its rows and a pseudo-count.

    Parameters
    ----------
    pseudo_count : float > 0 or None
        As if that many rows had been seen in every cell; None for the number under which the rows
        are most probable.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    unknown : {"other", "missing", "error"}
        What a level unseen in fit is; as in `LeafCascade`.

    Attributes
    ----------
    log_n_cells_ : float
        Logarithm of the number of cells.
    pseudo_count_ : float
        The pseudo-count of a cell that was given or found; 0 if it is below what a float can say.
    log_total_ : float
        Logarithm of the pseudo-rows in all cells together.
    log_evidence_ : float
        Log density of all rows, cells' probabilities integrated out, nats: comparable with the
        evidence of other densities of the same table.
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

    model_name: ClassVar[str] = "histogram"
    title: ClassVar[str] = "smoothed histogram"
    purpose: ClassVar[str] = (
        "How common every combination of levels is, each by itself: what other models are "
        "compared with."
    )

    pseudo_count: float | None = None

    def _score_known(self, codes: NDArray[np.int32]) -> Floats:
        scores = np.empty(codes.shape[1])
        patterns, members = np.unique(codes >= 0, axis=1, return_inverse=True)
        for number, is_there in enumerate(patterns.T):
            rows = np.flatnonzero(members.ravel() == number)
            known = np.flatnonzero(is_there)
            scores[rows] = self._log_densities(known, codes[known][:, rows])
        return scores

    def _log_densities(self, known: NDArray[np.intp], codes: NDArray[np.int32]) -> Floats:
        """Return the log density of rows of which the columns `known` are there."""
        columns = [self.schema_.columns[j] for j in known]
        log_total = self.log_total_
        log_each = log_total - math.fsum(math.log(column.n_levels) for column in columns)
        weights = _weights_of(codes, self._codes[known], self._weights)
        with np.errstate(divide="ignore"):  # a cell without rows
            log_weights = np.log(weights)
        log_mass: Floats = np.logaddexp(log_weights, log_each)
        log_mass -= np.logaddexp(math.log(self._weights.sum()), log_total)
        for column, column_codes in zip(columns, codes, strict=True):
            log_mass -= np.log(column.widths)[column_codes]
        return log_mass

    def _check_parameters(self) -> None:
        if self.pseudo_count is not None:
            check_real("pseudo_count", self.pseudo_count, above=0.0)

    def _fit_table(self, table: Table) -> None:
        self._codes = table.codes
        self._weights = table.weights
        self.log_n_cells_ = math.fsum(math.log(n) for n in table.schema.n_levels)
        if self.pseudo_count is None:
            most = _MOST_TIMES_ROWS * max(1.0, float(self._weights.sum()))
            found = minimize_scalar(
                lambda log_total: -self._log_evidence(log_total),
                bounds=(math.log(_LEAST_TOTAL), math.log(most)),
                method="bounded",
                options={"xatol": 1e-6},
            )
            self.log_total_ = float(found.x)
        else:
            self.log_total_ = math.log(self.pseudo_count) + self.log_n_cells_
        self.pseudo_count_ = math.exp(self.log_total_ - self.log_n_cells_)
        columns = zip(table.schema.columns, table.codes, strict=True)
        volumes = sum(table.weights @ np.log(each.widths)[codes] for each, codes in columns)
        self.log_evidence_ = self._log_evidence(self.log_total_) - float(volumes)

    def _log_evidence(self, log_total: float) -> float:
        """Return the log probability of the rows for so many pseudo-rows, nats."""
        total, n = math.exp(log_total), self._weights.sum()
        log_each = log_total - self.log_n_cells_  # its exponential may be 0
        each = math.exp(log_each)
        # lnG(a) = lnG(1 + a) - ln a, which holds where there are too many cells for a float
        cells = gammaln(self._weights + each) - gammaln(1.0 + each) + log_each
        return float(gammaln(total) - gammaln(n + total) + cells.sum())

    def _own_dict(self) -> dict[str, Any]:
        names = ("log_n_cells", "pseudo_count", "log_total", "log_evidence")
        return {name: getattr(self, f"{name}_") for name in names}

    def page(self) -> Page:
        """Return how many cells there are, how many have rows, and the pseudo-count."""
        told = (
            f"{self.title} of {cells_text(self.log_n_cells_)} cells, "
            f"{self._weights.size:,} of them with rows, "
            f"pseudo-count {significant_text(self.log_total_ - self.log_n_cells_)}"
        )
        return (Pieces([told]),)


def _weights_of(
    codes: NDArray[np.int32], known_codes: NDArray[np.integer], weights: Floats
) -> Floats:
    """Return the weight of the known rows that equal each row; rows are columns of the arrays."""
    together = np.concatenate([known_codes.astype(np.int32), codes], axis=1)
    _, groups = np.unique(together, axis=1, return_inverse=True)
    groups = groups.ravel()
    sums = np.zeros(groups.max() + 1)
    sums += np.bincount(groups[: weights.size], weights, sums.size)
    found: Floats = sums[groups[weights.size :]]
    return found
