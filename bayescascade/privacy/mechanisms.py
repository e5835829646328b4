"""Private releases: Laplace, Gaussian and exponential mechanism, and propose-test-release.

Each adds noise on a grid. Each raises a ParameterError, before any noise is drawn, if a parameter
is out of its range or a value is not finite. The caller must prove the sensitivities and distances,
and is responsible for the time of a release and for logs.

**The grid.** Values are rounded to multiples of a step, a power of two that depends only on public
numbers: sensitivity, epsilon, delta, number of values. Noise is a whole number of steps, so every
release is a multiple of the step, for any data. No properties of floating point are assumed: a
value x is computed as c with abs(c - x) <= error, clipped to 2**60 steps in both directions (which
increases no distance), divided by the step (exact), and rounded to r with abs(r - c) <= 1/2 step.
For neighbors,

    abs(r - r') <= abs(x - x') + 2 error + 1,        in steps,

so k values of L1 sensitivity S move by at most S + k (2 error + 1), and, by the triangle inequality
of the L2 norm, values of L2 sensitivity S by at most S + sqrt(k) (2 error + 1). The noise is scaled
to these distances. The step is at most 2**-20 noise scales and 2**-10 S / k (or S / sqrt(k)),
whichever is less.

**The source of noise** is OpenDP's exact samplers, or NumPy's for tests and studies of utility. All
noise is whole numbers, drawn from discrete distributions: with continuous floating-point noise, the
last bits reveal the value without noise (Mironov, 2012). OpenDP samples by exact arithmetic from
the operating system's randomness, without a seed. The simulated source has the same distributions,
up to rounding, and can be seeded: with the seed, anyone can subtract the noise.

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
from functools import cache, lru_cache
from types import ModuleType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_integer, check_probability, check_real
from bayescascade.privacy.accounting import Cost


class NoiseSource(Protocol):
    """Draws of whole numbers; scales are positive, at most 2**46 for the range of int64."""

    @property
    def is_private(self) -> bool:
        """Whether the noise protects anything: nobody can draw it again."""

    def laplace(self, scale: float, n: int) -> Integers:
        """Return (n,) draws, P(k) proportional to exp(-abs(k) / scale)."""

    def gaussian(self, scale: float, n: int) -> Integers:
        """Return (n,) draws, P(k) proportional to exp(-k**2 / (2 scale**2))."""

    def choose(self, scores: Integers, scale: float) -> int:
        """Return an index into (n,) scores, P(i) proportional to exp(scores[i] / scale)."""


def noise_source(name: str, seed: int | np.random.Generator | None = None) -> NoiseSource:
    """Return the source of noise "opendp" or "simulated"; "simulated" is not private.

    OpenDP's noise has no seed by design, so `seed` is for simulated noise only. Raises
    ParameterError if there is no such source, or OpenDP is not installed.
    """
    if check_choice("noise", name, ("opendp", "simulated")) == "simulated":
        return _Simulated(np.random.default_rng(seed))
    _opendp()
    return _OpenDP()


class _OpenDP:
    """The samplers of Canonne, Kamath and Steinke (2020), compiled, by OpenDP."""

    is_private = True

    def laplace(self, scale: float, n: int) -> Integers:
        dp = _opendp()
        measurement = dp.m.make_laplace(_vectors(), dp.l1_distance(T="i64"), scale=scale)
        return np.array(measurement([0] * n), np.int64)

    def gaussian(self, scale: float, n: int) -> Integers:
        dp = _opendp()
        measurement = dp.m.make_gaussian(_vectors(), dp.l2_distance(T="i64"), scale=scale)
        return np.array(measurement([0] * n), np.int64)

    def choose(self, scores: Integers, scale: float) -> int:
        # The largest score with Gumbel noise: the exponential mechanism. With OpenDP's other
        # measure, max_divergence, the noise is exponential, which is another distribution.
        dp = _opendp()
        measurement = dp.m.make_noisy_max(
            _vectors(), dp.linf_distance(T="i64"), dp.zero_concentrated_divergence(), scale=scale
        )
        return int(measurement(scores.tolist()))


class _Simulated:
    """The same distributions by a seeded generator, in floating point."""

    is_private = False

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def laplace(self, scale: float, n: int) -> Integers:
        first, second = self._rng.geometric(-np.expm1(-1.0 / scale), (2, n))
        difference: Integers = first - second
        return difference

    def gaussian(self, scale: float, n: int) -> Integers:
        # Canonne, Kamath and Steinke (2020), Algorithm 3: rejection from discrete Laplace noise
        width = np.floor(scale) + 1.0
        kept = np.empty(0, np.int64)
        while kept.size < n:
            drawn = self.laplace(width, n - kept.size)
            excess = (np.abs(drawn) - scale * scale / width) / scale
            accepted = self._rng.random(drawn.size) < np.exp(-0.5 * excess * excess)
            kept = np.concatenate([kept, drawn[accepted]])
        return kept

    def choose(self, scores: Integers, scale: float) -> int:
        relative = (scores - scores.max()) / scale
        return int(np.argmax(relative + self._rng.gumbel(size=scores.size)))


@cache
def _opendp() -> ModuleType:
    """Return OpenDP, imported at its first use, because the import takes seconds."""
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "opendp":
            raise
        raise ParameterError(
            "noise must be 'simulated', which is not private, where OpenDP is not installed "
            "(pip install 'bayescascade[privacy]'), got 'opendp'"
        ) from None
    dp.enable_features("contrib")
    return dp


@cache
def _vectors() -> object:
    """Return the domain of vectors of int64; OpenDP's int has 32 bits."""
    dp = _opendp()
    return dp.vector_domain(dp.atom_domain(T="i64"))


MOST_STEPS = 2**60
"""The largest size of a value, in steps."""
UP = 1.0 + 2.0**-40
"""A factor that exceeds the rounding of a few operations."""

_FINE, _FINE_TO_ROUNDING = 2.0**20, 2.0**10  # steps per noise scale, and per S for each rounding
_MOST_FINE, _MOST_NOISE = 2.0**44, 2.0**46  # steps per noise scale, for the range of int64


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of step 2**exponent, on which rounded neighbors are at most `moves` > 0 steps apart.

    That distance is in the norm of the sensitivity.
    """

    exponent: int
    moves: float

    def rounded(self, numbers: Floats) -> Integers:
        """Return numbers in steps, rounded and clipped."""
        with np.errstate(over="ignore", under="ignore"):
            steps = np.rint(np.ldexp(numbers, -self.exponent))
        return np.clip(steps, -MOST_STEPS, MOST_STEPS).astype(np.int64)

    def units(self, steps: Integers) -> Floats:
        """Return steps in the units of the values."""
        return np.ldexp(steps.astype(np.float64), self.exponent)

    def length(self, steps: float) -> float:
        """Return a number of steps in the units of the values."""
        return math.ldexp(steps, self.exponent)


def grid_for(sensitivity: float, error: float, roundings: float, scales: float) -> Grid:
    """Return the grid for values of a sensitivity; ParameterError if noise would exceed integers.

    sensitivity from 1e-100 to 1e100; error >= 0: the maximum error of each value; roundings >= 1:
    the norm of a vector of ones, one for each value; scales > 0: the scale of the noise for a
    sensitivity of 1.
    """
    sensitivity = check_real("sensitivity", sensitivity, minimum=1e-100, maximum=1e100)
    error = check_real("error", error, minimum=0.0, maximum=1e100)
    apart = at_least(Fraction(sensitivity) + 2 * Fraction(roundings) * Fraction(error))
    step = min(scales * apart / _FINE, apart / roundings / _FINE_TO_ROUNDING)
    exponent = math.frexp(max(step, scales * apart / _MOST_FINE))[1] - 1
    moves = at_least(Fraction(apart) / Fraction(2) ** exponent + Fraction(roundings))
    if scales * moves > _MOST_NOISE:
        raise ParameterError(
            f"epsilon must be larger: the scale of the noise must be <= {_MOST_NOISE:.0f} steps of "
            f"its grid, got {scales * moves:.3g} steps"
        )
    return Grid(exponent, moves)


def at_least(number: Fraction) -> float:
    """Return the smallest float that is at least a number."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


TEST_SHARE = 0.5
"""Share of epsilon for a test of stability."""

_BLUR = 3.0  # tau in the proof of `gaussian`


@dataclass(frozen=True, slots=True, eq=False)
class NoisyValues:
    """The released values, and nothing else: no true value, no distance, no noise."""

    values: Floats  # (k,)
    scale: float  # of the noise, in the values' units: Laplace b, Gauss sigma, 0 without
    cost: Cost
    is_private: bool  # the noise was private, not simulated


@dataclass(frozen=True, slots=True)
class PrivateChoice:
    """A choice by private scores."""

    index: int  # index of the choice
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
    sensitivity > 0: the maximum difference between neighbors' values, sum_i abs(x_i - x'_i);
    epsilon from 1e-9 to 1e6; error >= 0: the maximum floating-point error of each value.
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

    The noise is discrete, with scale s, s**2 = sigma**2 + tau**2, tau = 3 steps. Proof: let Y be
    the values r with continuous noise, and W whole numbers drawn given Y with P(w) proportional to
    g(w - Y), g(t) = exp(-t**2 / (2 tau**2)). W is as private as Y. By Poisson's summation, sum_w
    g(w - y) is within 1 +- eta of tau sqrt(2 pi), eta = 2 sum_{m >= 1} exp(-2 pi**2 tau**2 m**2) <
    1e-76, so in each coordinate P(W = w) is the normal density of variance s**2 at w - r, up to a
    factor 1 +- eta; and so, for s > tau, is the discrete Gaussian. For all k coordinates, the
    probabilities of W and of the release differ by a factor of at most exp(+-3 k eta). This changes
    epsilon by 6 k eta and delta by a factor exp(3 k eta), which is less than the rounding up, for k
    < 1e30. rho = D**2 / (2 s**2): divergences of coordinates add, and the divergence of order a
    between the discrete Gaussian and its shift by d_i is at most a d_i**2 / (2 s**2) (Canonne,
    Kamath and Steinke).

    sensitivity > 0: the maximum difference between neighbors' values, sqrt(sum_i (x_i - x'_i)**2);
    delta in (0, 1); values, epsilon and error as in `laplace`.
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
) -> PrivateChoice:
    """Choose an index by its score: (epsilon, 0)-private, and epsilon**2 / 8-concentrated.

    P(i) is proportional to exp(epsilon score_i / (2 sensitivity)), the exponential mechanism.
    Proof: on the grid, a score moves by at most D steps between neighbors; with scale 2 D / epsilon
    the weight of i changes by a factor of at most exp(epsilon / 2), and so does the sum of the
    weights. The range of the privacy loss is epsilon, which gives rho (Cesar and Rogers).

    scores (n,) float; sensitivity > 0: the maximum difference of one score between neighbors;
    epsilon and error as in `laplace`.
    """
    numbers, epsilon = _numbers("scores", scores), _check_epsilon(epsilon)
    grid = grid_for(sensitivity, error, 1.0, 2.0 / epsilon)
    scale = at_least(2 * Fraction(grid.moves) / Fraction(epsilon))
    index = noise.choose(grid.rounded(numbers), scale)
    cost = Cost(epsilon, rho=epsilon * epsilon / 8.0)
    return PrivateChoice(index, cost, noise.is_private)


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
    """Release values with noise for a proposed sensitivity, or None if the data are not stable.

    The test is whether `distance` plus Laplace noise of scale 1 / epsilon_1 reaches
    `stability_threshold`; if so, the values are released as by `laplace` with epsilon_2. Each is
    half of epsilon. Both together are (epsilon, delta)-private; this is spent whether or not
    something is released (Dwork and Roth, Section 7.3).

    Proof, for neighbors x and x'. If the distance of one of them is not 0, the values differ by at
    most `proposed` in L1. The test is epsilon_1-private, because the distances differ by at most 1,
    and the release is epsilon_2-private. If both distances are 0, the tests have the same
    distribution and pass with probability at most delta, so P(M(x) in E) <= P(M(x) fails, in E) +
    delta = P(M(x') fails, in E) + delta.

    distance >= 0: at most the number of substitutions of rows after which the data have a neighbor
    whose values differ by more than `proposed` in L1; 0 if they have one now. It must change by at
    most 1 between neighbors. proposed > 0 is a public number; delta in (0, 1); values, epsilon and
    error as in `laplace`.
    """
    distance, epsilon = check_integer("distance", distance, 0), _check_epsilon(epsilon)
    delta = check_probability("delta", delta, strict=True)
    proposed = check_real("proposed", proposed, above=0.0)
    for_test = _check_epsilon(epsilon * TEST_SHARE)
    rest = math.nextafter(epsilon - for_test, 0.0)
    # drawn before the test, so that neither time nor an error reveals its result
    release = laplace(values, proposed, rest, noise, error=error)
    drawn = noise.laplace(at_least(1 / Fraction(for_test)), 1).item()
    is_stable = min(distance, MOST_STEPS) + drawn >= stability_threshold(for_test, delta)
    return replace(release, cost=Cost(epsilon, delta)) if is_stable else None


def stability_threshold(epsilon: float, delta: float) -> int:
    """Return the smallest integer T >= 1 with P(noise >= T) <= delta.

    Discrete Laplace noise of scale 1 / epsilon, with epsilon > 0 that of the test alone, reaches T
    with probability q**T / (1 + q), q = exp(-epsilon). So T is log(1 / (delta (1 + q))) / epsilon,
    rounded up. (Kusner's thesis has 1 + log(1 / delta), which is passed much too often for epsilon
    < 1.)
    """
    needed = -(math.log(delta) + math.log1p(math.exp(-epsilon))) / epsilon
    return max(1, math.ceil(needed * (1.0 + 1e-12)))


@lru_cache
def _deviation(epsilon: float, delta: float) -> float:
    """Return the smallest sigma / D allowed by Balle and Wang's condition, rounded up."""
    low, high = -30.0, 60.0  # logarithms to base 2
    for _ in range(64):
        middle = 0.5 * (low + high)
        if _delta_of(2.0**middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return math.exp2(high) * UP


def _delta_of(ratio: float, epsilon: float) -> float:
    """Return delta at sigma / D = ratio, plus a bound on its rounding error."""
    shift, tilt = 0.5 / ratio, epsilon * ratio
    above, below = float(log_ndtr(shift - tilt)), float(log_ndtr(-shift - tilt))
    slack = 1e-14 * (1.0 + epsilon - above - below)
    return math.exp(above) * (slack - math.expm1(min(0.0, epsilon + below - above)))


def _check_epsilon(epsilon: float) -> float:
    return check_real("epsilon", epsilon, minimum=1e-9, maximum=1e6)


def _numbers(name: str, values: ArrayLike) -> Floats:
    """Return numbers as a (k,) array; error messages do not show finite values."""
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
