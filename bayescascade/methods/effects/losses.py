"""The loss of a wrong sign of an effect, and convex losses that bound it.

Outcomes are y = +1 (good) or -1, h(x) > 0 says that treatment helps. The loss needs both outcomes
of a row; a surrogate l with l(z) >= 1[z >= 0] + 1[z >= 1] needs one. With u = y for treated rows
and -y for others, and weights that sum to one in each arm and turn both into one population,

    R_T = sum of w_i l(-h(x_i) u_i) over treated rows, R_C the same over the others.

Goh (2018), Theorems 1 and 2, bounds the expected loss by max(R_T, R_C); its proof (1497-1569) gives
(R_T + R_C) / 2, which is smaller: if y_T = y_C, the two losses sum to at least 2 if |h| >= 1; if
they differ, the two losses are equal, and at least 1 if the sign is wrong.

The scaled logistic loss is 2 log(1 + e^z) / log(1 + e): the thesis's (1249).

**Theorem 3** bounds the risk in a population by the risks on rows. With probability 1 - delta,
simultaneously for all h of a class, with losses in [0, M],

    E l_1 <= max(R_T, R_C) + M max(Delta_T(delta / 2), Delta_C(delta / 2)),
    Delta_T(d) = 2 sqrt(2 (log S(2 n_T) + log(4 / d)) / n_T),
    Delta_C(d) = 2^(5/4) sqrt(d_2) ((p log(2 e n_C / p) + log(4 / d)) / n_C)^(3/8).

d_2 = E_{mu_T}[mu_T / mu_C] is the exponentiated Renyi divergence of order 2, as in Cortes, Mansour
and Mohri (2010), whose Theorem 3 the proof uses. The thesis prints 2 to the power of the
Kullback-Leibler divergence, which is smaller, so the printed bound is not proved; its root is a
power of 3/8.
"""

from collections.abc import Callable
from math import e, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_integer, check_probability, check_real

_SCALE = 2.0 / np.log1p(e)  # factor of the logistic loss
_LARGEST = 30.0  # beyond this argument the exponential is replaced by its tangent


class Surrogate(NamedTuple):
    """A loss l(z) of z = -h u, its derivative, and the effect if P(u | x) is fitted."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats] | None  # None if there is no useful one
    effect: Callable[[Floats], Floats] | None  # from h; None if h gives only the sign


def _exponential(z: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(z, _LARGEST)) * (1.0 + np.maximum(z - _LARGEST, 0.0)))


SURROGATES = {
    "square": Surrogate(lambda z: (1.0 + z) ** 2, lambda z: 2.0 * (1.0 + z), lambda h: h),
    "logistic": Surrogate(
        lambda z: _SCALE * np.logaddexp(0.0, z),
        lambda z: _SCALE * expit(z),
        lambda h: np.asarray(np.tanh(h / 2.0)),
    ),
    "exponential": Surrogate(_exponential, lambda z: np.exp(np.minimum(z, _LARGEST)), np.tanh),
    "hinge": Surrogate(
        lambda z: np.maximum(1.0 + z, 0.0), lambda z: np.where(z > -1.0, 1.0, 0.0), None
    ),
    "zero_one": Surrogate(lambda z: np.where(z >= 0.0, 1.0, 0.0) + (z >= 1.0), None, None),
}
"""Surrogates by name; all are convex except the last, which is the smallest."""


def conditional_difference_loss(
    h: ArrayLike, y_treated: ArrayLike, y_control: ArrayLike, theta: float = 1.0
) -> Floats:
    """Return the loss of each row, 0 or 1; both outcomes of each row must be known.

    Parameters
    ----------
    h : (n_rows,) array of float
        Estimated function, positive if treatment is estimated to help.
    y_treated, y_control : (n_rows,) array of -1 and 1
        Both outcomes, 1 the good one.
    theta : float >= 0
        Threshold on ``|h|``. For a row without an effect, ``|h| >= theta`` is an error. For a row
        with an effect, h beyond theta on the wrong side is an error. 0 gives the loss l_{0-1}: for
        a row without an effect, ``|h| >= 1`` is an error, and for a row with an effect, h = 0 or
        the wrong sign is an error.

    Raises
    ------
    ParameterError
        If theta is not a number >= 0.
    DataError
        If lengths differ, or outcomes are not -1 or 1.
    """
    theta = check_real("theta", theta, minimum=0.0)
    said, treated, control = (np.asarray(each, np.float64) for each in (h, y_treated, y_control))
    if said.ndim != 1 or not said.shape == treated.shape == control.shape:
        raise DataError(
            "h, y_treated and y_control must have the same length, "
            f"got shapes {said.shape}, {treated.shape}, {control.shape}"
        )
    if not np.isin(np.concatenate([treated, control]), (-1.0, 1.0)).all():
        raise DataError("y_treated and y_control must be -1 or 1 in every row")
    helps = (treated - control) / 2.0
    return np.where(helps == 0.0, np.abs(said) >= (theta or 1.0), said * helps <= -theta).astype(
        np.float64
    )


class Arms(NamedTuple):
    """Labels of rows for the sign of the effect, and their weights in their arms, (n,) each."""

    signs: Floats  # u, +1 or -1
    weights: Floats  # > 0, with sum one in each arm
    treatment: Flags

    @classmethod
    def of(cls, y: Flags, treatment: Flags, weights: Floats) -> "Arms":
        """Return normalized weights and labels; y is whether the outcome is good."""
        sums = np.array([weights[~treatment].sum(), weights[treatment].sum()])
        signs = np.where(y == treatment, 1.0, -1.0)
        return cls(signs, weights / sums[treatment.astype(int)], treatment)

    def mixed(self, alpha: float) -> Floats:
        """Return weights for which the sum of losses is alpha R_T + (1 - alpha) R_C."""
        return np.asarray(self.weights * np.where(self.treatment, alpha, 1.0 - alpha))

    def risks(self, h: Floats, surrogate: Surrogate) -> tuple[float, float]:
        """Return R_T and R_C."""
        losses = self.weights * surrogate.value(-h * self.signs)
        return float(losses[self.treatment].sum()), float(losses[~self.treatment].sum())


def of_target(target: str, propensity: Floats) -> Floats:
    """Return the weights of rows in the population `target`, without regard to arms, (n,)."""
    return {
        "treated": propensity,
        "population": np.ones_like(propensity),
        "overlap": propensity * (1.0 - propensity),
    }[target]


def target_weights(target: str, propensity: Floats, treatment: Flags) -> Floats:
    """Return weights that turn each arm into the population `target`, (n,).

    For "treated", those of untreated rows are mu_T / mu_C = e / (1 - e), up to a constant.
    """
    arm = np.where(treatment, propensity, 1.0 - propensity)
    return np.asarray(of_target(target, propensity) / arm)


def effective_size(weights: Floats) -> float:
    """Return the effective number of rows, (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights @ weights))


def effect_bound(
    risks: tuple[float, float],
    n_rows: tuple[int, int],
    *,
    log_growth: float,
    pseudo_dimension: float,
    divergence: float,
    largest_loss: float = 1.0,
    delta: float = 0.05,
) -> float:
    """Return a bound on the expected conditional-difference loss in the treated population.

    Parameters
    ----------
    risks : (float, float)
        R_T and R_C on the rows, with known weights mu_T / mu_C.
    n_rows : (int, int)
        Numbers of treated and of untreated rows.
    log_growth : float >= 0
        Logarithm of the growth function at twice the number of treated rows.
    pseudo_dimension : float > 0
        Pseudo-dimension of the class of functions.
    divergence : float >= 1
        d_2, the mean of mu_T / mu_C over the treated population.
    largest_loss : float > 0
        M, the maximum of the surrogate loss.
    delta : float in (0, 1)
        Probability that the bound does not hold.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Examples
    --------
    >>> from bayescascade import effect_bound
    >>> given = {"log_growth": 20.0, "pseudo_dimension": 3.0, "divergence": 1.0}
    >>> round(effect_bound((0.2, 0.25), (10**6, 10**6), **given), 3)
    0.307
    """
    treated, others = (check_real("risks", risk, minimum=0.0) for risk in risks)
    n_treated, n_others = (check_integer("n_rows", n, 1) for n in n_rows)
    log_growth = check_real("log_growth", log_growth, minimum=0.0)
    dimension = check_real("pseudo_dimension", pseudo_dimension, above=0.0, maximum=n_others)
    divergence = check_real("divergence", divergence, minimum=1.0)
    largest = check_real("largest_loss", largest_loss, above=0.0)
    doubt = log(4.0 / (check_probability("delta", delta, strict=True) / 2.0))
    of_treated = 2.0 * sqrt(2.0 * (log_growth + doubt) / n_treated)
    size = dimension * log(2.0 * e * n_others / dimension) + doubt
    of_others = 2.0**1.25 * sqrt(divergence) * (size / n_others) ** 0.375
    return float(max(treated, others) + largest * max(of_treated, of_others))
