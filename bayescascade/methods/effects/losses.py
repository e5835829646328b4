"""What a wrong sign of an effect costs, and the convex losses that bound it.

Outcomes are y = +1 (good) or -1, h(x) > 0 says that treating helps. Of a row both outcomes would be
needed; a surrogate l with l(z) >= 1[z >= 0] + 1[z >= 1] needs one. With u = y of treated rows and
-y of others, and weights that sum to one in each arm and turn both into one population,

    R_T = sum of w_i l(-h(x_i) u_i) over treated rows, R_C the same over the others.

Goh (2018), Theorems 1 and 2, bounds the expected loss by max(R_T, R_C); its proof (1497-1569) gives
(R_T + R_C) / 2, which is less: where y_T = y_C, the two losses sum to at least 2 where |h| >= 1;
where they differ, the two are equal, and at least 1 where the sign is wrong.

The scaled logistic loss is 2 log(1 + e^z) / log(1 + e): the thesis's (1249).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_real

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SCALE = 2.0 / np.log1p(np.e)  # of the logistic loss
_LARGEST = 30.0  # argument from which the exponential goes on as its tangent


class Surrogate(NamedTuple):
    """A loss l(z) of z = -h u, its derivative, and the effect where P(u | x) is fitted."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats] | None  # None where there is none to climb along
    effect: Callable[[Floats], Floats] | None  # of h; None where h has the sign alone


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
"""By name; all but the last, the least of all, are convex."""


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
    """What rows say of the sign of the effect, and how much each counts in its arm, (n,) each."""

    signs: Floats  # u, +1 or -1
    weights: Floats  # > 0, of sum one in each arm
    treatment: Flags

    @classmethod
    def of(cls, y: Flags, treatment: Flags, weights: Floats) -> "Arms":
        """Weigh rows by arms; y is whether the outcome is good."""
        sums = np.array([weights[~treatment].sum(), weights[treatment].sum()])
        signs = np.where(y == treatment, 1.0, -1.0)
        return cls(signs, weights / sums[treatment.astype(int)], treatment)

    def mixed(self, alpha: float) -> Floats:
        """Return the weights with which the sum of losses is alpha R_T + (1 - alpha) R_C."""
        return np.asarray(self.weights * np.where(self.treatment, alpha, 1.0 - alpha))

    def risks(self, h: Floats, surrogate: Surrogate) -> tuple[float, float]:
        """Return R_T and R_C."""
        losses = self.weights * surrogate.value(-h * self.signs)
        return float(losses[self.treatment].sum()), float(losses[~self.treatment].sum())


def of_target(target: str, propensity: Floats) -> Floats:
    """Return how the population `target` counts rows by what is known of them alone, (n,)."""
    return {
        "treated": propensity,
        "population": np.ones_like(propensity),
        "overlap": propensity * (1.0 - propensity),
    }[target]


def target_weights(target: str, propensity: Floats, treatment: Flags) -> Floats:
    """Return weights that turn either arm into the population `target`, (n,).

    Of "treated" they are mu_T / mu_C = e / (1 - e), but for a constant.
    """
    arm = np.where(treatment, propensity, 1.0 - propensity)
    return np.asarray(of_target(target, propensity) / arm)


def effective_size(weights: Floats) -> float:
    """Return how many rows of equal weights would say as much: (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights @ weights))
