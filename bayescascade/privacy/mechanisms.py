"""Private releases: Laplace, Gaussian and exponential mechanism, and propose-test-release.

The grid. Values are rounded to multiples of a step, a power of two that depends on public numbers
alone: sensitivity, epsilon, delta, how many values. Noise is whole steps, so a release is a
multiple of the step whatever it was of. Nothing about floating point is assumed: a value x is
computed as c with abs(c - x) <= error, clipped to 2**60 steps either way (which moves no two values
apart), divided by the step (exact), and rounded to r with abs(r - c) <= 1/2 step. For neighbors,

    abs(r - r') <= abs(x - x') + 2 error + 1,        in steps,

so k values of L1 sensitivity S move by at most S + k (2 error + 1), and by the triangle inequality
of the other norm, those of L2 sensitivity S by at most S + sqrt(k) (2 error + 1). The noise is for
that. The step is at most 2**-20 noise scales and 2**-10 S / k (or S / sqrt(k)), whichever is less.

What is released must not be told by how long it took, by what was logged, or by errors that were
raised: that is not in a mechanism's hands. Sensitivities are what its caller has proved.

References
----------
Balle and Wang (2018), Improving the Gaussian Mechanism for Differential Privacy.
Bun and Steinke (2016), Concentrated Differential Privacy.
Canonne, Kamath and Steinke (2020), The Discrete Gaussian for Differential Privacy.
Cesar and Rogers (2021), Bounding, Concentrating, and Truncating.
Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy.
Micciancio and Peikert (2013), Hardness of SIS and LWE with Small Parameters.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer, check_probability, check_real
from bayescascade.privacy.accounting import Cost
from bayescascade.privacy.noise import NoiseSource

__all__ = [
    "Choice",
    "Release",
    "exponential",
    "gaussian",
    "laplace",
    "propose_test_release",
    "stability_threshold",
]

_MOST_STEPS = 2.0**60  # of a value on the grid
_FINE, _FINE_TO_ROUNDING = 2.0**20, 2.0**10  # steps of a noise scale; of S for each rounding
_MOST_FINE, _MOST_NOISE = 2.0**44, 2.0**46  # steps of a noise scale, for the room of int64
_BLUR = 3.0  # tau in the proof of `gaussian`
_UP = 1.0 + 2.0**-40  # what is computed in floating point is rounded up by that


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What was released, and nothing else: no true value, no distance, no noise.

    Parameters
    ----------
    values : (k,) float64 array
    scale : float >= 0
        Of the noise of each value, in its units: Laplace's b, Gauss's sigma, 0 for none.
    distribution : {"Laplace", "Gaussian", "none"}
        Of the noise.
    cost : Cost
    is_private : bool
        Whether the noise was; else it was simulated.
    """

    values: NDArray[np.float64]
    scale: float
    distribution: str
    cost: Cost
    is_private: bool

    @property
    def value(self) -> float:
        """The only value."""
        return float(self.values.item())

    @property
    def text(self) -> str:
        """How it was released, as in "Laplace noise of scale 0.5, epsilon 1"."""
        noise = f"{self.distribution} noise of scale {self.scale:.3g}"
        return _told("exact, stability tested" if self.scale == 0.0 else noise, self)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen by its private score.

    Parameters
    ----------
    index : int
        Its place.
    scale : float > 0
        A score greater by this is e times as probable.
    cost : Cost
    is_private : bool
        Whether the noise was; else it was simulated.
    """

    index: int
    scale: float
    cost: Cost
    is_private: bool

    @property
    def text(self) -> str:
        """How it was chosen, as in "chosen by scores at scale 0.5, epsilon 1"."""
        return _told(f"chosen by scores at scale {self.scale:.3g}", self)


def laplace(
    values: ArrayLike,
    sensitivity: float,
    epsilon: float,
    noise: NoiseSource,
    *,
    error: float = 0.0,
) -> Release:
    """Release values with Laplace noise: (epsilon, 0)-private.

    Proof: on the grid neighbors are D apart in L1, D a whole number of steps, as the module says.
    With scale D / epsilon, P(r + noise = o) / P(r' + noise = o) = prod_i exp((abs(o_i - r'_i) -
    abs(o_i - r_i)) epsilon / D) <= exp(epsilon).

    Parameters
    ----------
    values : float or (k,) floats
        Clipped at 2**60 steps of the grid, which is beyond 2**14 noise scales.
    sensitivity : float > 0
        By how much the values may change together, sum_i abs(x_i - x'_i), between neighbors.
    epsilon : float from 1e-9 to 1e6
    noise : NoiseSource
    error : float >= 0
        By how much each value, as it was computed, may be wrong: its floating-point error.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or a value is not finite.
    """
    numbers, epsilon = _numbers("values", values), _check_epsilon(epsilon)
    spread = _spread(sensitivity, error, numbers.size)
    exponent = _grid(spread, spread / epsilon, numbers.size)
    moves = _moves(spread, exponent, numbers.size)
    scale = _room(_above(moves / Fraction(epsilon)))
    drawn = _on_grid(numbers, exponent) + noise.laplace(scale, numbers.size)
    return _release(drawn, scale, exponent, "Laplace", Cost(epsilon), noise)


def gaussian(
    values: ArrayLike,
    sensitivity: float,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
    *,
    error: float = 0.0,
) -> Release:
    """Release values with Gaussian noise: (epsilon, delta)-private, and rho-concentrated.

    With k values D apart in L2 on the grid, continuous noise of deviation sigma would be (epsilon,
    delta)-private if and only if (Balle and Wang, Theorem 8)

        Phi(D/(2 sigma) - epsilon sigma/D) - exp(epsilon) Phi(-D/(2 sigma) - epsilon sigma/D)
            <= delta.

    The noise is discrete, of scale s with s**2 = sigma**2 + tau**2, tau = 3 steps. Proof: let Y be
    the values r with continuous noise, and W whole numbers drawn given Y with P(w) proportional to
    g(w - Y), g(t) = exp(-t**2 / (2 tau**2)): as private as Y. By Poisson's summation, sum_w
    g(w - y) is within 1 +- eta of tau sqrt(2 pi), eta = 2 sum_{m >= 1} exp(-2 pi**2 tau**2 m**2) <
    1e-76, so in each coordinate P(W = w) is the normal density of variance s**2 at w - r, up to a
    factor 1 +- eta; and so, for s > tau, is the discrete Gaussian. For all k, the probabilities of
    W and of what is released differ by at most exp(+-3 k eta), and what that changes, epsilon by
    6 k eta and delta by a factor exp(3 k eta), is less than what is rounded up, for k < 1e30.
    rho = D**2 / (2 s**2): divergences of coordinates add, and that of order a between the discrete
    Gaussian and itself d_i away is at most a d_i**2 / (2 s**2) (Canonne, Kamath and Steinke).

    Parameters
    ----------
    values : float or (k,) floats
        Clipped at 2**60 steps of the grid, which is beyond 2**14 noise scales.
    sensitivity : float > 0
        By how much the values may change together, sqrt(sum_i (x_i - x'_i)**2), between neighbors.
    epsilon : float from 1e-9 to 1e6
    delta : float in (0, 1)
    noise : NoiseSource
    error : float >= 0
        By how much each value, as it was computed, may be wrong: its floating-point error.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or a value is not finite.
    """
    numbers, epsilon = _numbers("values", values), _check_epsilon(epsilon)
    delta = check_probability("delta", delta, strict=True)
    roundings = math.sqrt(numbers.size) * _UP
    ratio = _deviation(epsilon, delta)
    spread = _spread(sensitivity, error, roundings)
    exponent = _grid(spread, ratio * spread, roundings)
    moves = (math.ldexp(spread, -exponent) + roundings) * _UP
    scale = _room(math.hypot(ratio * moves, _BLUR) * _UP)
    drawn = _on_grid(numbers, exponent) + noise.gaussian(scale, numbers.size)
    cost = Cost(epsilon, delta, _UP * (moves / scale) ** 2 / 2.0)
    return _release(drawn, scale, exponent, "Gaussian", cost, noise)


def exponential(
    scores: ArrayLike,
    sensitivity: float,
    epsilon: float,
    noise: NoiseSource,
    *,
    error: float = 0.0,
) -> Choice:
    """Choose a place by its score: (epsilon, 0)-private, and epsilon**2 / 8-concentrated.

    P(i) is proportional to exp(epsilon score_i / (2 sensitivity)), the exponential mechanism.
    Proof: on the grid, a score moves by at most D steps between neighbors; with scale 2 D / epsilon
    the weight of i changes by a factor of at most exp(epsilon / 2), and so does the sum of all.
    The privacy loss has a range of epsilon, hence rho (Cesar and Rogers).

    Parameters
    ----------
    scores : (n,) floats
        High ones are good.
    sensitivity : float > 0
        By how much any one of them may change between neighbors.
    epsilon : float from 1e-9 to 1e6
    noise : NoiseSource
    error : float >= 0
        By how much each score, as it was computed, may be wrong: its floating-point error.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or a score is not finite.
    """
    numbers, epsilon = _numbers("scores", scores), _check_epsilon(epsilon)
    spread = _spread(sensitivity, error, 1)
    exponent = _grid(spread, 2.0 * spread / epsilon, 1)
    moves = _moves(spread, exponent, 1)
    scale = _room(_above(2 * moves / Fraction(epsilon)))
    index = noise.choose(_on_grid(numbers, exponent), scale)
    cost = Cost(epsilon, rho=epsilon * epsilon / 8.0)
    return Choice(index, math.ldexp(scale, exponent), cost, noise.is_private)


def propose_test_release(
    distance: int,
    values: ArrayLike,
    proposed: float,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
    *,
    error: float = 0.0,
    test_share: float = 0.5,
) -> Release | None:
    """Release values with noise for a proposed sensitivity, if the data are stable enough.

    Tested is whether `distance` with Laplace noise of scale 1 / epsilon_1 reaches
    `stability_threshold`; then the values are released as by `laplace` with epsilon_2, where
    epsilon_1 + epsilon_2 = epsilon. Both together are (epsilon, delta)-private, which is spent
    whether or not something is released (Dwork and Roth, Section 7.3; Algorithm 13 for proposed=0,
    where the values are released as they are and epsilon_1 = epsilon).

    Proof, for neighbors x and x'. If the distance of one of them is not 0, the values differ by at
    most `proposed` in L1. The test is epsilon_1-private, for the distances differ by at most 1, and
    what follows is epsilon_2-private (or the same for both, if they differ by nothing). If both
    distances are 0, the tests have the same law and pass with probability at most delta, so that
    P(M(x) in E) <= P(M(x) fails, in E) + delta = P(M(x') fails, in E) + delta.

    Parameters
    ----------
    distance : int >= 0
        At most the number of rows to substitute until there are neighbors whose values differ by
        more than `proposed` in L1, one of them the data then: 0 if there are such now. It must
        itself change by at most 1 between neighbors.
    values : float or (k,) floats
    proposed : float >= 0
        A public number. If it is 0, values of neighbors must be equal to the last bit where
        distances say that they are.
    epsilon : float from 1e-9 to 1e6
    delta : float in (0, 1)
    noise : NoiseSource
    error : float >= 0
        As of `laplace`; must be 0 if `proposed` is.
    test_share : float in (0, 1)
        Share of epsilon that the test has; of no effect if `proposed` is 0.

    Returns
    -------
    Release or None
        None if the test failed.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or a value is not finite.
    """
    distance, epsilon = check_integer("distance", distance, 0), _check_epsilon(epsilon)
    delta = check_probability("delta", delta, strict=True)
    share = check_probability("test_share", test_share, strict=True)
    proposed = check_real("proposed", proposed, minimum=0.0)
    error = check_real("error", error, minimum=0.0, maximum=0.0 if proposed == 0.0 else None)
    numbers = _numbers("values", values)
    for_test = epsilon if proposed == 0.0 else epsilon * share
    cost = Cost(epsilon, delta)
    if proposed == 0.0:
        release = Release(numbers.copy(), 0.0, "none", cost, noise.is_private)
    else:  # drawn before the test, lest time or an error tells how that ended
        rest = math.nextafter(epsilon - for_test, 0.0)
        release = replace(laplace(numbers, proposed, rest, noise, error=error), cost=cost)
    drawn = noise.laplace(_room(_above(1 / Fraction(for_test))), 1).item()
    is_stable = min(distance, int(_MOST_STEPS)) + drawn >= stability_threshold(for_test, delta)
    return release if is_stable else None


def stability_threshold(epsilon: float, delta: float) -> int:
    """Return the smallest integer T >= 1 with P(noise >= T) <= delta.

    Discrete Laplace noise of scale 1 / epsilon reaches T with probability q**T / (1 + q), q =
    exp(-epsilon), so T is log(1 / (delta (1 + q))) / epsilon, rounded up. (Kusner's thesis prints
    1 + log(1 / delta), which for epsilon < 1 is passed far too often.)

    Parameters
    ----------
    epsilon : float > 0
        Of the test alone.
    delta : float in (0, 1)
    """
    needed = -(math.log(delta) + math.log1p(math.exp(-epsilon))) / epsilon
    return max(1, math.ceil(needed * (1.0 + 1e-12)))


def _deviation(epsilon: float, delta: float) -> float:
    """Return the least sigma / D that Balle and Wang's condition allows, rounded up."""
    low, high = -30.0, 60.0  # logarithms to base 2
    for _ in range(64):
        middle = 0.5 * (low + high)
        if _delta_of(2.0**middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return math.exp2(high) * _UP


def _delta_of(ratio: float, epsilon: float) -> float:
    """Return delta at sigma / D = ratio, and above it as much as rounding may have taken away."""
    shift, tilt = 0.5 / ratio, epsilon * ratio
    above, below = float(log_ndtr(shift - tilt)), float(log_ndtr(-shift - tilt))
    slack = 1e-14 * (1.0 + epsilon - above - below)
    return math.exp(above) * (slack - math.expm1(min(0.0, epsilon + below - above)))


def _check_epsilon(epsilon: float) -> float:
    return check_real("epsilon", epsilon, minimum=1e-9, maximum=1e6)


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return numbers as a (k,) array; no message tells what they are."""
    try:
        numbers = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be numbers, got {type(values).__name__}") from None
    if numbers.ndim != 1 or numbers.size == 0:
        raise ParameterError(f"{name} must be one number or a list, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        place = int(np.argmin(np.isfinite(numbers)))
        raise ParameterError(f"{name} must be finite, got {numbers[place]} at place {place}")
    return numbers


def _spread(sensitivity: float, error: float, n: float) -> float:
    """Return how far computed values of neighbors may be apart, before they are rounded."""
    sensitivity = check_real("sensitivity", sensitivity, minimum=1e-100, maximum=1e100)
    error = check_real("error", error, minimum=0.0, maximum=1e100)
    if error == 0.0:
        return sensitivity
    return _above(Fraction(sensitivity) + 2 * Fraction(n) * Fraction(error))


def _grid(spread: float, scale: float, roundings: float) -> int:
    """Return the step's logarithm to base 2, by the spread and the noise that it would need."""
    step = min(scale / _FINE, spread / roundings / _FINE_TO_ROUNDING)
    return math.frexp(max(step, scale / _MOST_FINE))[1] - 1


def _moves(spread: float, exponent: int, n: int) -> int:
    """Return by how many steps, all together, rounded values of neighbors differ at most."""
    return math.floor(Fraction(spread) / Fraction(2) ** exponent) + n


def _on_grid(numbers: NDArray[np.float64], exponent: int) -> NDArray[np.int64]:
    """Return values in steps of the grid, rounded and clipped."""
    with np.errstate(over="ignore", under="ignore"):
        steps = np.rint(np.ldexp(numbers, -exponent))
    return np.clip(steps, -_MOST_STEPS, _MOST_STEPS).astype(np.int64)


def _above(number: Fraction) -> float:
    """Return the least float that is not below a number."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def _room(scale: float) -> float:
    """Return a scale in steps, if integers have room for the noise."""
    if scale > _MOST_NOISE:
        raise ParameterError(
            f"epsilon must be so large that the noise's scale is <= {_MOST_NOISE:.0f} steps of its "
            f"grid, got a scale of {scale:.3g} steps"
        )
    return scale


def _release(
    drawn: NDArray[np.int64],
    scale: float,
    exponent: int,
    distribution: str,
    cost: Cost,
    noise: NoiseSource,
) -> Release:
    values = np.ldexp(drawn.astype(np.float64), exponent)
    return Release(values, math.ldexp(scale, exponent), distribution, cost, noise.is_private)


def _told(how: str, released: Release | Choice) -> str:
    stamp = "" if released.is_private else " (simulated, not private)"
    return f"{how}, {released.cost.text}{stamp}"
