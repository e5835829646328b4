"""Private releases: Laplace, Gaussian and exponential mechanism, and propose-test-release.

Each adds noise on a grid, as `bayescascade.privacy.grid` says, and raises a ParameterError if a
parameter is out of its range or a value is not finite, before any noise is drawn. Sensitivities and
distances are what the caller has proved; how long a release took, and what is logged beside it, is
the caller's, too.

References
----------
Balle and Wang (2018), Improving the Gaussian Mechanism for Differential Privacy.
Canonne, Kamath and Steinke (2020), The Discrete Gaussian for Differential Privacy.
Cesar and Rogers (2021), Bounding, Concentrating, and Truncating.
Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer, check_probability, check_real
from bayescascade.privacy.accounting import Cost
from bayescascade.privacy.grid import MOST_STEPS, UP, at_least, grid_for
from bayescascade.privacy.noise import NoiseSource

TEST_SHARE = 0.5
"""Of epsilon, that a test of stability has."""

_BLUR = 3.0  # tau in the proof of `gaussian`


@dataclass(frozen=True, slots=True, eq=False)
class NoisyValues:
    """What was released, and nothing else: no true value, no distance, no noise."""

    values: NDArray[np.float64]  # (k,)
    scale: float  # of each value's noise, in its units: Laplace's b, Gauss's sigma, 0 for none
    cost: Cost
    is_private: bool  # the noise was private, not simulated


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen by its private score."""

    index: int  # place of what was chosen
    cost: Cost
    is_private: bool  # the noise was private, not simulated


def laplace(
    values: ArrayLike, sensitivity: float, epsilon: float, noise: NoiseSource, *, error: float = 0.0
) -> NoisyValues:
    """Release values with Laplace noise: (epsilon, 0)-private.

    Proof: on the grid neighbors are at most D apart in L1. With noise of scale D / epsilon,
    P(r + noise = o) / P(r' + noise = o) = prod_i exp((abs(o_i - r'_i) - abs(o_i - r_i)) epsilon /
    D) <= exp(epsilon).

    values (k,) float, clipped at 2**60 steps of the grid, which is beyond 2**14 noise scales;
    sensitivity > 0: the most that neighbors' values differ by together, sum_i abs(x_i - x'_i);
    epsilon from 1e-9 to 1e6; error >= 0: the floating-point error that each value may have.
    """
    numbers, epsilon = _numbers("values", values), _check_epsilon(epsilon)
    grid = grid_for(sensitivity, error, numbers.size, 1.0 / epsilon)
    scale = at_least(Fraction(grid.moves) / Fraction(epsilon))
    drawn = grid.units(grid.rounded(numbers) + noise.laplace(scale, numbers.size))
    return NoisyValues(drawn, grid.length(scale), Cost(epsilon), noise.is_private)


def gaussian(
    values: ArrayLike,
    sensitivity: float,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
    *,
    error: float = 0.0,
) -> NoisyValues:
    """Release values with Gaussian noise: (epsilon, delta)-private, and rho-concentrated.

    With k values at most D apart in L2 on the grid, continuous noise of deviation sigma would be
    (epsilon, delta)-private if and only if (Balle and Wang, Theorem 8)

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

    sensitivity > 0: the most that neighbors' values differ by together, sqrt(sum_i (x_i -
    x'_i)**2); delta in (0, 1); values, epsilon and error as in `laplace`.
    """
    numbers, epsilon = _numbers("values", values), _check_epsilon(epsilon)
    delta = check_probability("delta", delta, strict=True)
    deviation = _deviation(epsilon, delta)
    grid = grid_for(sensitivity, error, math.sqrt(numbers.size) * UP, deviation)
    scale = math.hypot(deviation * grid.moves, _BLUR) * UP
    drawn = grid.units(grid.rounded(numbers) + noise.gaussian(scale, numbers.size))
    cost = Cost(epsilon, delta, UP * (grid.moves / scale) ** 2 / 2.0)
    return NoisyValues(drawn, grid.length(scale), cost, noise.is_private)


def exponential(
    scores: ArrayLike, sensitivity: float, epsilon: float, noise: NoiseSource, *, error: float = 0.0
) -> Choice:
    """Choose a place by its score: (epsilon, 0)-private, and epsilon**2 / 8-concentrated.

    P(i) is proportional to exp(epsilon score_i / (2 sensitivity)), the exponential mechanism.
    Proof: on the grid, a score moves by at most D steps between neighbors; with scale 2 D / epsilon
    the weight of i changes by a factor of at most exp(epsilon / 2), and so does the sum of all.
    The privacy loss has a range of epsilon, hence rho (Cesar and Rogers).

    scores (n,) float; sensitivity > 0: the most that any one score differs by between neighbors;
    epsilon and error as in `laplace`.
    """
    numbers, epsilon = _numbers("scores", scores), _check_epsilon(epsilon)
    grid = grid_for(sensitivity, error, 1.0, 2.0 / epsilon)
    scale = at_least(2 * Fraction(grid.moves) / Fraction(epsilon))
    index = noise.choose(grid.rounded(numbers), scale)
    cost = Cost(epsilon, rho=epsilon * epsilon / 8.0)
    return Choice(index, cost, noise.is_private)


def propose_test_release(
    distance: int,
    values: ArrayLike,
    proposed: float,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
    *,
    error: float = 0.0,
) -> NoisyValues | None:
    """Release values with noise for a proposed sensitivity, if the data are stable enough, or None.

    Tested is whether `distance` with Laplace noise of scale 1 / epsilon_1 reaches
    `stability_threshold`; then the values are released as by `laplace` with epsilon_2, each half of
    epsilon. Both together are (epsilon, delta)-private, which is spent whether or not something is
    released (Dwork and Roth, Section 7.3).

    Proof, for neighbors x and x'. If the distance of one of them is not 0, the values differ by at
    most `proposed` in L1. The test is epsilon_1-private, for the distances differ by at most 1, and
    what follows is epsilon_2-private. If both distances are 0, the tests have the same law and pass
    with probability at most delta, so that P(M(x) in E) <= P(M(x) fails, in E) + delta = P(M(x')
    fails, in E) + delta.

    distance >= 0: at most the number of rows to substitute until there are neighbors whose values
    differ by more than `proposed` in L1, one of them the data then: 0 if there are such now. It
    must itself change by at most 1 between neighbors. proposed > 0 is a public number; delta in (0,
    1); values, epsilon and error as in `laplace`.
    """
    distance, epsilon = check_integer("distance", distance, 0), _check_epsilon(epsilon)
    delta = check_probability("delta", delta, strict=True)
    proposed = check_real("proposed", proposed, above=0.0)
    for_test = _check_epsilon(epsilon * TEST_SHARE)
    rest = math.nextafter(epsilon - for_test, 0.0)
    # drawn before the test, lest time or an error tells how that ended
    release = laplace(values, proposed, rest, noise, error=error)
    drawn = noise.laplace(at_least(1 / Fraction(for_test)), 1).item()
    is_stable = min(distance, MOST_STEPS) + drawn >= stability_threshold(for_test, delta)
    return replace(release, cost=Cost(epsilon, delta)) if is_stable else None


def stability_threshold(epsilon: float, delta: float) -> int:
    """Return the smallest integer T >= 1 with P(noise >= T) <= delta.

    Discrete Laplace noise of scale 1 / epsilon, epsilon > 0 of the test alone, reaches T with
    probability q**T / (1 + q), q = exp(-epsilon), so T is log(1 / (delta (1 + q))) / epsilon,
    rounded up. (Kusner's thesis prints 1 + log(1 / delta), which for epsilon < 1 is passed far too
    often.)
    """
    needed = -(math.log(delta) + math.log1p(math.exp(-epsilon))) / epsilon
    return max(1, math.ceil(needed * (1.0 + 1e-12)))


@lru_cache
def _deviation(epsilon: float, delta: float) -> float:
    """Return the least sigma / D that Balle and Wang's condition allows, rounded up."""
    low, high = -30.0, 60.0  # logarithms to base 2
    for _ in range(64):
        middle = 0.5 * (low + high)
        if _delta_of(2.0**middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return math.exp2(high) * UP


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
