"""Shared by posteriors with a compiled sweep of moves."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ModelFileError
from samplers.types import StepCounts

S = TypeVar("S")

_LARGEST_TABLE = 1 << 20  # entries, 8 MB


class CompiledPosterior(ABC, Generic[S]):
    """Common code around `advance`: selection and counts of moves, stored states, a fingerprint.

    Attributes
    ----------
    moves_compiled : tuple of str
        All moves, in the order in which the kernels number them.
    tries : mapping of str to float
        Selection weights of the moves, up to a common factor, if they are constant.
    state_name : str
        Name of a state in errors, such as "tree".
    """

    moves_compiled: ClassVar[tuple[str, ...]]
    tries: ClassVar[Mapping[str, float]]
    state_name: ClassVar[str]

    _parameter_names: ClassVar[tuple[str, ...]]

    @abstractmethod
    def log_prior(self, state: S) -> float:
        """Return the log prior, nats; -inf off the support."""

    @abstractmethod
    def log_likelihood(self, state: S) -> float:
        """Return the log likelihood, nats."""

    def log_density(self, state: S) -> float:
        """Return log prior plus log likelihood, nats."""
        log_prior = self.log_prior(state)
        return log_prior if log_prior == -np.inf else log_prior + self.log_likelihood(state)

    def move_weights(self) -> Mapping[str, float]:
        """Return the selection weights > 0 of the moves, up to a common factor."""
        return self.tries

    def parameters(self) -> Mapping[str, Any]:
        """Return the model's parameters by name."""
        return {name: getattr(self, name) for name in self._parameter_names}

    @cached_property
    def move_cdf(self) -> Floats:
        """Cumulative selection probabilities of the compiled moves, for the kernels."""
        weights = self.move_weights()
        shares = np.array([weights.get(name, 0.0) for name in self.moves_compiled])
        cdf = np.cumsum(shares / shares.sum())
        cdf[np.flatnonzero(shares)[-1] :] = np.inf  # the sum may have rounding errors
        return cdf

    def new_counts(self) -> Integers:
        """Return (2, n_moves) zeros, for the kernels to count steps tried and accepted."""
        return np.zeros((2, len(self.moves_compiled)), np.int64)

    def step_counts(
        self, counts: Integers, log_density: float, best: S, best_log_density: float
    ) -> StepCounts[S]:
        """Return statistics of a block of steps, by the names of the moves."""
        tried = self.move_weights()
        proposed, accepted = (
            {name: n for name, n in zip(self.moves_compiled, row, strict=True) if name in tried}
            for row in counts.tolist()
        )
        return StepCounts(proposed, accepted, float(log_density), best, float(best_log_density))

    @abstractmethod
    def encode_state(self, state: S) -> object:
        """Return a state as JSON-ready data."""

    def decode_state(self, encoded: Any) -> S:
        """Return the state of an encoding, after a check: a file may be forged."""
        try:
            state = self._read_state(encoded)
            problem = self._problem(state)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"a stored {self.state_name} cannot be read: {error}") from error
        if problem is not None:
            raise ModelFileError(f"a stored {self.state_name} is not valid: {problem}")
        return state

    @abstractmethod
    def _read_state(self, encoded: Any) -> S:
        """Return the state of an encoding; any exception means that it is damaged."""

    @abstractmethod
    def _problem(self, state: S) -> str | None:
        """Return why a state from a file is not valid for this posterior, or None."""

    def fingerprint(self) -> str:
        """Return a digest of model, parameters and data."""
        settings, arrays = self._identity()
        digest = hashlib.sha256(json.dumps([type(self).__name__, *settings]).encode())
        for array in arrays:
            digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()

    @abstractmethod
    def _identity(self) -> tuple[list[Any], Iterable[ArrayLike]]:
        """Return the data that identify the posterior: JSON-ready data, and arrays."""


def whole_weights(weights: Floats) -> Integers:
    """Return 0, 1, .. up to the sum of the weights, for tables of functions of sums of weights.

    There are at most about a million; the array is empty if weights are not integers.
    """
    is_whole = bool(np.all(weights == np.rint(weights)))
    return np.arange(int(min(weights.sum() + 1, _LARGEST_TABLE)) if is_whole else 0)
