"""What any estimator does whose readable state is a density: score, draw and explain rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.data.sources import as_frame
from bayescascade.data.table import Table
from bayescascade.model.density_parts import DensityParts
from bayescascade.model.estimator import PREDICTIVES, C, PosteriorEstimator, S
from bayescascade.model.reporting import AS_COMMON, OF_DENSITIES, OF_ROWS
from bayescascade.model.row_densities import RowDensities
from bayescascade.model.search import Search
from bayescascade.report.page import Page, Pieces

__all__ = ["DENSITIES", "DensityEstimator"]

DENSITIES = {"posterior_mean": "posterior mean probability", "empirical": "part of all rows"}

D = TypeVar("D", bound=DensityParts)


@dataclass(eq=False, repr=False, kw_only=True)
class DensityEstimator(RowDensities, PosteriorEstimator[S, C, D]):
    """An estimator whose readable state is a density D over rows.

    Subclasses take a parameter `density`: "posterior_mean", or "empirical" for shares of the rows.
    """

    _later_parameters: ClassVar[Mapping[str, Any]] = {"unknown": "error"}

    density: str = "posterior_mean"

    def check_parameters(self) -> Search:
        """Return how to search; raises ParameterError if any parameter is out of its range."""
        search = super().check_parameters()
        check_choice("density", self.density, DENSITIES)
        check_choice("unknown", self.unknown, self.unknowns)
        return search

    @property
    def _total_weight(self) -> float:
        return self.summary_.total_weight

    def _legend(self, learned: D) -> Page:
        size = "cells" if self.schema_.n_cells is not None else "volume"
        legend = [f"share: {DENSITIES[self.density]}", f"density: share / {size}"]
        return (Pieces([*legend, *learned.legend], "dim"),)

    def _words_lead(self) -> list[str]:
        return [AS_COMMON]

    def _in_words(self) -> list[tuple[str, str]]:
        return self.learned_.parts_in_words()

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [*self.learned_.how_to_read, *self.learned_.columns_in_words()]

    def _cannot_tell(self) -> list[str]:
        return [*OF_DENSITIES, *OF_ROWS]

    def _learner(self) -> Callable[[Table], None]:
        return partial(self._fit_table, search=self.check_parameters())

    def _score_known(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        check_choice("predictive", self.predictive, PREDICTIVES)
        if self.predictive == "map":
            return self.learned_.score_codes(codes)
        densities, shares = self._drawn()
        # each of hundreds of densities is asked for every row, and most rows occur many times
        distinct, places = np.unique(codes, axis=1, return_inverse=True)
        scores = np.array([density.score_codes(distinct) for density in densities])
        averaged: NDArray[np.float64] = logsumexp(scores, axis=0, b=shares[:, np.newaxis])
        return averaged[places.ravel()]

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> pd.DataFrame:
        """Draw rows from the density, as a DataFrame with the levels' original types."""
        check_is_fitted(self, "_best")
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(random_state)
        if self.predictive == "map":
            return self.schema_.decode(self.learned_.sample_codes(n_samples, rng), rng)
        densities, shares = self._drawn()
        drawn = [
            density.sample_codes(int(n), rng)
            for density, n in zip(densities, rng.multinomial(n_samples, shares), strict=True)
            if n > 0
        ]
        codes = rng.permutation(np.concatenate(drawn, axis=1), axis=1)
        return self.schema_.decode(codes, rng)

    def condition(self, evidence: Mapping[str, object]) -> D:
        """Return the most probable density given evidence; see its own `condition`."""
        return self.learned_.condition(evidence)

    def to_sql(self) -> str:
        """Return the log density of a row as standard SQL; see `DensityParts.to_sql`.

        Raises
        ------
        ParameterError
            If `predictive` is "average", or leaves are dependent.
        """
        learned = self.learned_  # which says if nothing is fitted
        if self.predictive == "average":
            raise ParameterError('predictive must be "map" for SQL, got "average"')
        return learned.to_sql()

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule that holds for a row, by the most probable density.

        What is unknown of the row is told first, unless `unknown` is "error".
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
