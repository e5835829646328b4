"""Posteriors over linear classifiers, given rados or rows.

The log likelihood of coefficients theta is minus m times the logistic loss, or rado-risk (Nock and
others, 2015, equations 1 and 4):

    rows:   - sum_i log(1 + exp(-y_i theta x_i)),
    rados:  - m log 2 - log mean_j exp(-theta pi_j).

**Over all 2^m rados the two are the same** (lemma 2); the prior is normal around 0. For a sample of
rados, they are close if theta is small, sd(theta pi) well below sqrt(2 log n). Beyond that, the few
worst rados dominate the mean. Usually there is a theta with theta pi > 0 for all rados. Then the
likelihood grows without bound along it, and only the prior limits its length: the direction of the
maximum is meaningful, and intervals are those for the sample of rados, not for the rows.

``approximation="moments"`` uses the first two terms of the logarithm's expansion, with mean u and
covariance C of the rados,

    - m log 2 + theta u - theta C theta / 2.

With independent fair coins u is sum_i y_i x_i / 2 and C is sum_i x_i x_i' / 4, up to chance, and
this is the logistic log likelihood to second order around theta = 0: its maximum is twice the
coefficients of least squares for labels -1 and 1. It depends on all rados, not on the few worst.
For rados with a fixed support s, u is 2 s / m times as large, and C lacks a multiple of u u' and
has another unit. Apart from the prior, this changes the length of the maximum, but not its
direction.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.model.continuous import ContinuousPosterior
from bayescascade.model.draws import TraceLegend


class _LinearPosterior(ContinuousPosterior):
    """Coefficients with a normal prior with deviations `scales`; subclasses have the likelihood."""

    def __init__(self, vectors: Floats, prior_scale: ArrayLike, names: Sequence[str]) -> None:
        n_columns = vectors.shape[1]
        scales = np.array(prior_scale, np.float64)
        is_fine = scales.shape in ((), (n_columns,)) and np.isfinite(scales).all()
        if not is_fine or (scales <= 0.0).any():
            raise ParameterError(
                f"prior_scale must be a number > 0, or one for each of {n_columns} columns, "
                f"got {prior_scale!r}"
            )
        self._vectors = vectors
        self.scales: Floats = np.broadcast_to(scales, (n_columns,)).copy()
        self.names = list(names) or [f"x{k}" for k in range(n_columns)]

    @abstractmethod
    def _likelihood(self, state: Floats) -> tuple[float, Floats]:
        """Return the log likelihood, nats, and its gradient, (n_columns,)."""

    def log_prior(self, state: Floats) -> float:
        """Return the log prior, nats, up to a constant."""
        return -0.5 * float(np.sum((state / self.scales) ** 2))

    def log_likelihood(self, state: Floats) -> float:
        """Return the log likelihood, nats."""
        return self._likelihood(np.asarray(state, np.float64))[0]

    def log_density_and_gradient(self, state: Floats) -> tuple[float, Floats]:
        """Return the log density, nats, and its gradient, (n_columns,) float64."""
        log_likelihood, gradient = self._likelihood(state)
        return self.log_prior(state) + log_likelihood, gradient - state / self.scales / self.scales

    def initial_state(self, rng: np.random.Generator) -> Floats:
        """Return a tenth of coefficients drawn from the prior."""
        return 0.1 * self.scales * rng.normal(size=len(self.scales))

    def describe(self, state: Floats) -> Mapping[str, float]:
        """Return the log prior and the coefficients."""
        return {"log_prior": self.log_prior(state)} | dict(
            zip(self.names, np.asarray(state).tolist(), strict=True)
        )

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        return TraceLegend(words={name: f"coefficient of {name}" for name in self.names})

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters by name."""
        scales = sorted(set(self.scales.tolist()))
        return {"prior_scale": scales[0] if len(scales) == 1 else "by column"}

    def _blocks(self) -> tuple[Floats, ArrayLike]:
        return self.scales, (0, len(self.scales))

    def _identity(self) -> tuple[Sequence[Floats], object]:
        settings = (type(self).__name__, self._vectors.shape, self._settings())
        return (self._vectors, self.scales), settings

    def _settings(self) -> object:
        return None


class RadoPosterior(_LinearPosterior):
    """Posterior over the coefficients of a linear classifier, given rados.

    Parameters
    ----------
    rados : (n_rados, n_columns) array of float
    n_rows : int >= 1
        Number of rows from which the rados were made.
    prior_scale : float > 0 or (n_columns,) array
        Standard deviations of the prior.
    approximation : {"none", "moments"}
        Approximation of the likelihood; see the module.
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import RadoPosterior, explore
    >>> rng = np.random.default_rng(0)
    >>> edges = rng.normal(0.5, 1.0, size=(40, 2))
    >>> rados = rng.integers(0, 2, size=(500, 40)) @ edges
    >>> found = explore(RadoPosterior(rados, 40), "ascent", n_chains=1, random_state=0)
    >>> bool((found.state > 0).all())
    True
    """

    def __init__(
        self,
        rados: ArrayLike,
        n_rows: int,
        *,
        prior_scale: ArrayLike = 1.0,
        approximation: str = "none",
        names: Sequence[str] = (),
    ) -> None:
        self.n_rows = check_integer("n_rows", n_rows, 1)
        self.approximation = check_choice("approximation", approximation, ("none", "moments"))
        super().__init__(_checked("rados", rados), prior_scale, names)
        # in units of the prior, in which squares and their inverses do not overflow
        scaled = self._vectors * self.scales
        self._mean = scaled.mean(axis=0)
        centered = scaled - self._mean
        self._covariance = centered.T @ centered / len(centered)

    def peak(self) -> Floats:
        """Return the maximum of the approximation by moments, (n_columns,) float64."""
        precision = np.eye(len(self._mean)) + self._covariance
        return self.scales * np.linalg.solve(precision, self._mean)

    def _likelihood(self, state: Floats) -> tuple[float, Floats]:
        if self.approximation == "moments":
            scaled = state / self.scales
            pull = self._mean - self._covariance @ scaled
            log_mean = -0.5 * float((self._mean + pull) @ scaled)
            return -self.n_rows * math.log(2.0) - log_mean, pull / self.scales
        away = -(self._vectors @ state)
        highest = float(away.max())
        weights = np.exp(away - highest)
        total = float(weights.sum())
        log_mean = highest + math.log(total / len(weights))
        return -self.n_rows * math.log(2.0) - log_mean, (weights / total) @ self._vectors

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters by name."""
        return {**super().parameters(), "approximation": self.approximation}

    def _settings(self) -> object:
        return self.n_rows, self.approximation


class LogisticPosterior(_LinearPosterior):
    """Posterior over the coefficients of a linear classifier, given rows: logistic regression.

    Parameters
    ----------
    X : (n_rows, n_columns) array of float
    y : (n_rows,) array
        Labels -1 and 1, or two others. The second one in order counts as 1.
    prior_scale : float > 0 or (n_columns,) array
    names : sequence of str, optional
    """

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *, prior_scale: ArrayLike = 1.0, names: Sequence[str] = ()
    ) -> None:
        rows, labels = _checked("X", X), np.asarray(y)
        classes = np.unique(labels)
        if labels.shape != (len(rows),) or not 1 <= len(classes) <= 2:
            raise DataError(
                f"y must have a label of two per row of X, {len(rows)}, got shape {labels.shape} "
                f"and {len(classes)} classes"
            )
        is_negative = (labels == classes[0]) & (len(classes) == 2 or classes[0] == -1)
        super().__init__(rows * np.where(is_negative, -1.0, 1.0)[:, None], prior_scale, names)

    def _likelihood(self, state: Floats) -> tuple[float, Floats]:
        margins = self._vectors @ state
        return -float(np.logaddexp(0.0, -margins).sum()), expit(-margins) @ self._vectors


def _checked(name: str, vectors: ArrayLike) -> Floats:
    matrix = np.ascontiguousarray(vectors, np.float64)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise DataError(f"{name} must be a matrix of finite numbers, got shape {matrix.shape}")
    return matrix
