"""Exact answers on spaces small enough to list: what the samplers are tested against."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from samplers.blocks import move_weights
from samplers.parameters import SamplerError, SamplerValueError
from samplers.types import FiniteMove, Target

S = TypeVar("S")

PROBABILITY_TOLERANCE = 1e-9


def enumerate_states(
    target: Target[S],
    start: S,
    moves: Mapping[str, FiniteMove[S]],
    key: Callable[[S], Hashable] | None = None,
) -> list[S]:
    """List every state that moves lead to from `start`, breadth first; the space must be finite.

    Parameters
    ----------
    target : Target
    start : S
        Comes first in the result.
    moves : Mapping of str to FiniteMove
    key : callable or None
        Maps equal states to equal hashable values; None takes the states themselves.

    Returns
    -------
    list of S
        The states with a log density above -inf.
    """
    states = [start]
    found = {_hashable(key, start)}
    for state in states:  # which grows
        for move in moves.values():
            for proposal, probability in move.proposals(state):
                if probability == 0.0 or proposal.log_q_ratio == -math.inf:
                    continue
                name = _hashable(key, proposal.state)
                if name not in found and target.log_density(proposal.state) > -math.inf:
                    found.add(name)
                    states.append(proposal.state)
    return states


def normalize(target: Target[S], states: Sequence[S]) -> npt.NDArray[np.float64]:
    """Return the probabilities of `states`, which are taken to be the whole space: (n,) float64."""
    log_densities = np.array([target.log_density(state) for state in states], dtype=np.float64)
    probabilities = np.exp(log_densities - np.logaddexp.reduce(log_densities))
    return np.asarray(probabilities / probabilities.sum())


def transition_matrix(
    moves: FiniteMove[S] | Mapping[str, FiniteMove[S]],
    target: Target[S],
    states: Sequence[S],
    key: Callable[[S], Hashable] | None = None,
    inverse_temperature: float = 1.0,
    *,
    weights: Mapping[str, float] | None = None,
) -> npt.NDArray[np.float64]:
    """Return the exact Metropolis-Hastings kernel on a finite space.

    Parameters
    ----------
    moves : FiniteMove or Mapping of str to FiniteMove
        One move, or several of which each step selects one.
    target : Target
    states : sequence of S, length n
        The whole space, without repeats.
    key : callable or None
        Maps equal states to equal hashable values; None takes the states themselves.
    inverse_temperature : float >= 0
    weights : Mapping of str to float >= 0, or None
        Selection probabilities up to a common factor; None takes the target's `move_weights`,
        or equal ones.

    Returns
    -------
    (n, n) float64
        Entry [i, j] is the probability of a step from `states[i]` to `states[j]`.

    Raises
    ------
    SamplerError
        If a move's probabilities do not sum to one, or an accepted state is not in `states`.
    """
    named = moves if isinstance(moves, Mapping) else {"move": moves}
    weights = move_weights(target, named) if weights is None else weights
    total = sum(weights[name] for name in named)
    index = {_hashable(key, state): number for number, state in enumerate(states)}
    if len(index) != len(states):
        raise SamplerValueError(f"states must not repeat, got {len(states) - len(index)} repeats")
    log_densities = [float(target.log_density(state)) for state in states]
    matrix = np.zeros((len(states), len(states)))
    for row, state in enumerate(states):
        for name, move in named.items():
            proposals = move.proposals(state)
            probabilities = [probability for _, probability in proposals]
            in_all = math.fsum(probabilities)
            if min(probabilities, default=0.0) < 0.0 or abs(in_all - 1.0) > PROBABILITY_TOLERANCE:
                raise SamplerError(
                    f"the proposals of move {name!r} must sum to probability 1, got {in_all}"
                )
            for proposal, probability in proposals:
                if probability == 0.0 or proposal.log_q_ratio == -math.inf:
                    continue
                column = index.get(_hashable(key, proposal.state))
                if column is None:
                    if target.log_density(proposal.state) == -math.inf:
                        continue
                    raise SamplerError(f"states must be closed under {name!r}, got another state")
                difference = log_densities[column] - log_densities[row]
                log_ratio = inverse_temperature * difference + proposal.log_q_ratio
                matrix[row, column] += (
                    weights[name] / total * probability * math.exp(min(0.0, log_ratio))
                )
        matrix[row, row] += max(0.0, 1.0 - matrix[row].sum())
    return matrix


def _hashable(key: Callable[[S], Hashable] | None, state: S) -> Hashable:
    name = state if key is None else key(state)
    try:
        hash(name)
    except TypeError:
        raise SamplerValueError(
            f"key must map states to hashable values, got a {type(name).__name__}"
        ) from None
    return name
