"""Estimators whose posterior is over densities: they score and sample by one density, or by all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ParameterError
from bayescascade.data.table import Table
from bayescascade.model.density_parts import VOLUME_WORDS, DensityParts
from bayescascade.model.estimator import C, PosteriorEstimator, S
from bayescascade.model.parameters import LearnedDensityParameters, SearchParameters
from bayescascade.model.readable_density import ReadableDensity
from bayescascade.model.view import View
from bayescascade.report.page import Pieces

DENSITIES = {"posterior_mean": "posterior mean probability", "empirical": "part of all rows"}

D = TypeVar("D", bound=DensityParts)


@dataclass(eq=False, repr=False, kw_only=True)
class DensityEstimator(ReadableDensity[D], PosteriorEstimator[S, C, D], Generic[S, C, D]):
    """An estimator that learns a readable density D over rows.

    Subclasses have a parameter `density`: "posterior_mean", or "empirical" for shares of the rows.
    """

    density: str = LearnedDensityParameters.density.default

    @property
    def learned_(self) -> D:
        """The most probable state found; the model also has it under a specific name."""
        check_is_fitted(self, "_best")
        return self._readable(self._best)

    @property
    def _total_weight(self) -> float:
        return self.summary_.total_weight

    def view(self) -> View:
        """Return what is shown of a posterior and a density, with the key of its numbers."""
        view = super().view()
        size = "cells" if self.schema_.n_cells is not None else "volume"
        key = [f"share: {DENSITIES[self.density]}", f"density: share / {size}"]
        if self.schema_.n_cells is None:
            key.append(VOLUME_WORDS)
        key += self.learned_.key
        return view._replace(key=(Pieces(key, "dim", is_key=True),))

    def _learner(self) -> Callable[[Table], None]:
        return partial(self._fit_table, search=self.check_parameters())

    def _score_known(self, codes: Codes) -> Floats:
        SearchParameters.predictive.check(self.predictive)
        if self.predictive == "map":
            return super()._score_known(codes)
        densities, shares = self._drawn()
        # each of hundreds of densities scores all rows, and most rows occur many times
        distinct, places = np.unique(codes, axis=1, return_inverse=True)
        scores = np.array([density.score_codes(distinct) for density in densities])
        averaged: Floats = logsumexp(scores, axis=0, b=shares[:, np.newaxis])
        return averaged[places.ravel()]

    def _sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        if self.predictive == "map":
            return super()._sample_codes(n, rng)
        densities, shares = self._drawn()
        drawn = [
            density.sample_codes(int(times), rng)
            for density, times in zip(densities, rng.multinomial(n, shares), strict=True)
            if times > 0
        ]
        return rng.permutation(np.concatenate(drawn, axis=1), axis=1)

    def to_sql(self) -> str:
        """Return the log density of a row as standard SQL; see `DensityParts.to_sql`.

        Raises
        ------
        ParameterError
            If `predictive` is "average", or leaves are dependent.
        """
        learned = self.learned_  # raises NotFittedError
        if self.predictive == "average":
            raise ParameterError('predictive must be "map" for SQL, got "average"')
        return learned.to_sql()
