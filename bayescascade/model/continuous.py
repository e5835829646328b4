"""Shared by posteriors over vectors: the contract of a gradient, one move, and a fingerprint."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import samplers
from bayescascade.base.arrays import Floats

_SHIFT = 0.1  # of a move, in units of the posterior's own lengths


class ContinuousPosterior(ABC):
    """A posterior whose states are (n,) float64; subclasses have the formulas.

    Searches use `log_density_and_gradient`. The move is for engines without a gradient.
    """

    @abstractmethod
    def log_prior(self, state: Floats) -> float:
        """Return the log prior, nats, up to a constant."""

    @abstractmethod
    def log_likelihood(self, state: Floats) -> float:
        """Return the log likelihood, nats."""

    @abstractmethod
    def log_density_and_gradient(self, state: Floats) -> tuple[float, Floats]:
        """Return the log density, nats, and its gradient, (n,) float64."""

    def log_density(self, state: Floats) -> float:
        """Return the sum of log prior and log likelihood, nats."""
        return self.log_prior(state) + self.log_likelihood(state)

    def moves(self) -> Mapping[str, "Shift"]:
        """Return one move: a random shift of a block of the numbers."""
        return {"shift": Shift(*self._blocks())}

    def fingerprint(self) -> str:
        """Return a string that identifies data and parameters."""
        arrays, settings = self._identity()
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(array.tobytes())
        digest.update(repr(settings).encode())
        return digest.hexdigest()

    @abstractmethod
    def _blocks(self) -> tuple[Floats, ArrayLike]:
        """Return the length scale of each number, (n,), and the limits of blocks."""

    @abstractmethod
    def _identity(self) -> tuple[Sequence[NDArray[Any]], object]:
        """Return the data and the settings that identify the posterior, with a complete `repr`."""


class Shift:
    """Shifts a uniformly chosen block of numbers by normal steps; symmetric."""

    def __init__(self, lengths: Floats, bounds: ArrayLike) -> None:
        self._steps = _SHIFT * lengths
        self._bounds = np.asarray(bounds)

    def propose(self, rng: np.random.Generator, state: Floats) -> samplers.Proposal[Floats]:
        """Return a shifted copy."""
        block = int(rng.integers(len(self._bounds) - 1))
        begin, end = self._bounds[block : block + 2]
        shifted = np.array(state, np.float64)
        shifted[begin:end] += self._steps[begin:end] * rng.normal(size=end - begin)
        return samplers.Proposal(shifted, 0.0)
