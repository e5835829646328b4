"""What a function of effects is learned from, labels and weights of rows, and what comes of it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_weights
from bayescascade.methods.effects.adjustment import Nuisance, doubly_robust, nuisance, propensities
from bayescascade.methods.effects.losses import Arms, effective_size, of_target, target_weights
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.methods.effects.reading import TreatedRows

Floats = NDArray[np.float64]


class Problem(NamedTuple):
    """Labels and weights of rows, in arms or, of pseudo-outcomes, together."""

    rows: Floats  # (n, d)
    labels: Floats  # (n,)
    weights: Floats  # (n,) > 0
    treatment: NDArray[np.bool_]
    is_adjusted: bool
    surrogate: str
    combine: str

    @property
    def is_least_squares(self) -> bool:
        """Whether the risk is a mean of squares."""
        return self.surrogate == "square" and self.combine == "mean"

    @property
    def arms(self) -> Arms:
        """The rows by arms, where labels are signs."""
        return Arms.of((self.labels > 0) == self.treatment, self.treatment, self.weights)

    @property
    def even_weights(self) -> Floats:
        """Weights of mean one, by which each arm counts a half, (n,)."""
        weights = self.weights
        if not self.is_adjusted:
            sums = np.bincount(self.treatment, weights, 2)
            weights = weights / sums[self.treatment.astype(int)]
        return np.asarray(weights / weights.mean())

    def part(self, chosen: NDArray[Any]) -> "Problem":
        """Return some of the rows."""
        names = ("rows", "labels", "weights", "treatment")
        return self._replace(**{name: getattr(self, name)[chosen] for name in names})

    def posterior(self, features: Floats, penalty: float, strength: float | None) -> Any:
        """Return the density over functions."""
        treatment = None if self.is_adjusted else self.treatment
        return EffectPosterior(
            features, self.labels, self.weights, treatment, surrogate=self.surrogate,
            combine=self.combine, penalty=penalty, strength=strength,
        )  # fmt: skip

    def risk(self, h: Floats) -> float:
        """Return the mean or maximum of risks."""
        risks = self.posterior(np.zeros((len(h), 0)), 1.0, 1.0).risks(h)
        return float(risks.max() if self.combine == "max" else risks.mean())


class Fitted(NamedTuple):
    """A function, and what is known of it."""

    function: Any  # of `learned.FUNCTIONS`, or one of scikit-learn's
    posterior: EffectPosterior | None
    objective: float
    exact: Any  # with a gap; None where nothing is proved
    penalty: float | None
    length: float | None
    held_out: Floats | None = None  # h of rows left out


class Posed(NamedTuple):
    """A problem, as how many rows the arms count (not treated, treated), and the mean effect."""

    problem: Problem
    sizes: Floats  # (2,)
    average: float | None  # None without pseudo-outcomes


def compared(
    training: TreatedRows, known: Any, adjust: str, target: Any, seed: int, n_jobs: int | None
) -> Nuisance:
    """Return what an adjustment and a target need to compare arms."""
    X, y, treatment = training
    if adjust != "none":
        return nuisance(X, y, treatment, known, seed, n_jobs)
    e = np.full(len(y), 0.5)
    if isinstance(target, str):
        e = propensities(X, treatment, known, seed, n_jobs)
    return Nuisance(e, np.zeros(0), np.zeros(0))


def posed(
    training: TreatedRows, found: Nuisance, adjust: str, target: Any, surrogate: str, combine: str
) -> Posed:
    """Return labels and weights by an adjustment, and by a target's name or weights (n,)."""
    y, treatment, e = training.y, training.treatment, found.propensity
    is_named = isinstance(target, str)
    if is_named:
        weights = target_weights(target, e, treatment)
    else:
        weights = check_weights("target", target, len(y))
        if not (weights > 0.0).all():
            raise DataError("target must be > 0 in every row")
    sizes = np.array([effective_size(weights[arm]) for arm in (~treatment, treatment)])
    labels, average = np.where(y == treatment, 1.0, -1.0), None
    if adjust != "none":
        weights = of_target(target, e) if is_named else weights
        labels = doubly_robust(y, treatment, *found)
        average = float(np.average(labels, weights=weights))
    if adjust == "residuals":
        mean = found.untreated + e * (found.treated - found.untreated)
        labels = (y - mean) / (treatment - e)
        weights = (treatment - e) ** 2 * (np.ones(len(y)) if is_named else weights)
    given = training.rows, labels, weights, treatment
    return Posed(Problem(*given, adjust != "none", surrogate, combine), sizes, average)
