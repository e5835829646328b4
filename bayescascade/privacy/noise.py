"""Source of the noise: OpenDP's exact samplers, or NumPy's for tests and studies of utility.

All noise is whole numbers, drawn from discrete distributions: with continuous floating-point noise,
the last bits reveal the value without noise (Mironov, 2012). OpenDP samples by exact arithmetic
from the operating system's randomness, without a seed. The simulated source has the same
distributions, up to rounding, and can be seeded: with the seed, anyone can subtract the noise.
"""

from functools import cache
from types import ModuleType
from typing import Protocol

import numpy as np

from bayescascade.base.arrays import Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice


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
