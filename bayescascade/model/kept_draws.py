"""Draws of a posterior that a model keeps: distinct states, and how often each was drawn."""

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError, ParameterError

MAX_KEPT_DRAWS = 1000  # states that `predictive="average"` averages over and a saved model holds

_MAX_TIMES = 1 << 53


class CountedState(Protocol):
    """A state with the weights of the rows in its parts: what is kept of it without the data."""

    @property
    def total(self) -> float:
        """Weight of all rows."""

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types, without the key "times"."""


C = TypeVar("C", bound=CountedState)
State = TypeVar("State")


class Draws(NamedTuple, Generic[C]):
    """Distinct states drawn from the posterior with their weights, and how often each was drawn."""

    counted: Sequence[C]
    times: Sequence[int]


class Readables:
    """What a user sees of the draws, once it was made, and the parameters that it was made by.

    A model has one from its fit on: by scikit-learn's rule it does not change when it predicts.
    """

    parameters: Sequence[Any] = ()
    draws: Sequence[Any] = ()
    typical: int | None = None  # which of them that is, once it was asked for


def even_places(n: int, most: int) -> NDArray[np.int64]:
    """Return positions among `n` >= 0 at even distances, at most `most` of them, ascending."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)


def thinned(chains: Sequence[Sequence[State]], most: int = MAX_KEPT_DRAWS) -> list[State]:
    """Return draws of all chains, one chain after the other, at even distances, at most `most`."""
    drawn = [state for chain in chains for state in chain]
    return [drawn[place] for place in even_places(len(drawn), most)]


def none_drawn() -> ParameterError:
    """Return what is raised where there are no draws to average over."""
    return ParameterError('predictive must be "map" for a model without draws, got "average"')


def check_times(times: object) -> int:
    """Return how often a state was drawn, as a saved model has it; raises ModelFileError."""
    if type(times) is not int or not 1 <= times <= _MAX_TIMES:
        raise ModelFileError(f"a draw's times must be an integer >= 1, got {times!r}")
    return times
