"""Checks of the parameters of engines, and the errors of the package.

A message has the name of the parameter, the rule that it breaks, and its value.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

Seed = int | np.random.SeedSequence | np.random.Generator | None


class SamplerError(Exception):
    """Base class; raised itself if a target or a move breaks its contract."""


class SamplerValueError(SamplerError, ValueError):
    """A parameter is out of its range or of the wrong type."""


class CheckpointError(SamplerError):
    """A checkpoint cannot be written, cannot be read, or belongs to another run."""


def check_integer(name: str, value: object, minimum: int) -> int:
    """Return `value` as an int; SamplerValueError if it is not an integer >= `minimum`."""
    message = f"{name} must be an integer >= {minimum}, got {value!r}"
    if isinstance(value, bool):
        raise SamplerValueError(message)
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # the TypeError is the check
    except TypeError:
        raise SamplerValueError(message) from None
    if number < minimum:
        raise SamplerValueError(message)
    return number


def check_real(name: str, value: object, rule: str, is_met: Callable[[float], bool]) -> float:
    """Return `value` as a float; SamplerValueError if it is not a number that meets the rule."""
    number = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        number = float(value)
    if not is_met(number):
        raise SamplerValueError(f"{name} must be {rule}, got {value!r}")
    return number


def check_positive(name: str, value: object, below: float = math.inf) -> float:
    """Return `value` as a float; SamplerValueError if not in the open interval (0, `below`)."""
    rule = "a finite number > 0" if below == math.inf else f"a number > 0 and < {below:g}"
    return check_real(name, value, rule, lambda number: 0.0 < number < below)


def check_n_jobs(value: object) -> int | None:
    """Return joblib's number of workers: None, or an integer other than 0."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value == 0:
        raise SamplerValueError(f"n_jobs must be None or an integer other than 0, got {value!r}")
    return int(value)


def check_initial_states(states: Sequence[T] | None, n_chains: int) -> tuple[T, ...] | None:
    """Return one initial state per chain, or None if the target makes them."""
    if states is None:
        return None
    try:
        given = tuple(states)
    except TypeError:
        raise SamplerValueError(
            f"initial_states must be a sequence of states or None, got {states!r}"
        ) from None
    if len(given) != n_chains:
        raise SamplerValueError(
            f"initial_states must hold one state per chain, {n_chains}, got {len(given)}"
        )
    return given


def seed_root(seed: Seed) -> np.random.SeedSequence:
    """Return the root of the chains' seeds; a generator used twice gives two runs, as in NumPy."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        sequence = seed.bit_generator.seed_seq
        if isinstance(sequence, np.random.SeedSequence):
            return sequence
        raise SamplerValueError("seed must be a Generator with a SeedSequence, got one without")
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SamplerValueError(
            f"seed must be an integer >= 0, a SeedSequence, a Generator or None, got {seed!r}"
        )
    return np.random.SeedSequence(int(seed))
