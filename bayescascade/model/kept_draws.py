"""Draws of a posterior that a model keeps: distinct states with their counts."""

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bayescascade.base.arrays import Integers
from bayescascade.base.errors import ModelFileError, ParameterError

MAX_KEPT_DRAWS = 1000  # states for `predictive="average"` and in a saved model

_MAX_TIMES = 1 << 53


class CountedState(Protocol):
    """A state with the weights of the rows in its parts, which replace the data."""

    @property
    def total(self) -> float:
        """Weight of all rows."""

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types, without the key "times"."""


C = TypeVar("C", bound=CountedState)
State = TypeVar("State")


class Draws(NamedTuple, Generic[C]):
    """Distinct states drawn from the posterior, with their weights and counts."""

    counted: Sequence[C]
    times: Sequence[int]


class Readables:
    """The readable forms of the draws, and the parameters that they depend on.

    A model has this object from its fit, because scikit-learn forbids new attributes in
    predictions.
    """

    parameters: Sequence[Any] = ()
    draws: Sequence[Any] = ()
    typical: int | None = None  # position of the typical draw, once computed


def even_places(n: int, most: int) -> Integers:
    """Return positions among `n` >= 0 at even distances, at most `most` of them, ascending."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)


def thinned(chains: Sequence[Sequence[State]], most: int = MAX_KEPT_DRAWS) -> list[State]:
    """Return at most `most` draws of all chains, one chain after the other, at even distances."""
    drawn = [state for chain in chains for state in chain]
    return [drawn[place] for place in even_places(len(drawn), most)]


def none_drawn() -> ParameterError:
    """Return the error for an average without draws."""
    return ParameterError('predictive must be "map" for a model without draws, got "average"')


def check_times(times: object) -> int:
    """Return a saved state's number of draws; ModelFileError if it is none."""
    if type(times) is not int or not 1 <= times <= _MAX_TIMES:
        raise ModelFileError(f"a draw's times must be an integer >= 1, got {times!r}")
    return times
