"""Exact answers on spaces small enough to list: what the samplers are tested against."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from samplers.blocks import move_weights
from samplers.parameters import SamplerError, SamplerValueError
from samplers.types import FiniteMove, Target

S = TypeVar("S", bound=Hashable)

PROBABILITY_TOLERANCE = 1e-9


def enumerate_states(target: Target[S], start: S, moves: Mapping[str, FiniteMove[S]]) -> list[S]:
    """List every state of positive density that moves lead to, from `start`, breadth first."""
    states, found = [start], {start}
    for state in states:  # which grows
        for move in moves.values():
            for (other, ratio), probability in move.proposals(state):
                if probability == 0.0 or ratio == -math.inf or other in found:
                    continue
                if target.log_density(other) > -math.inf:
                    found.add(other)
                    states.append(other)
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
    inverse_temperature: float = 1.0,
) -> npt.NDArray[np.float64]:
    """Return the exact Metropolis-Hastings kernel on a finite space, of one move or several.

    Entry [i, j] is the probability of a step from `states[i]` to `states[j]`, which are the whole
    space, without repeats. It is an error if a move's probabilities do not sum to one, or if it
    leads to another state that has a density.
    """
    named = moves if isinstance(moves, Mapping) else {"move": moves}
    weights = move_weights(target, named)
    total = sum(weights[name] for name in named)
    index = {state: number for number, state in enumerate(states)}
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
            for (other, log_q_ratio), probability in proposals:
                if probability == 0.0 or log_q_ratio == -math.inf:
                    continue
                column = index.get(other)
                if column is None:
                    if target.log_density(other) == -math.inf:
                        continue
                    raise SamplerError(f"states must be closed under {name!r}, got another state")
                difference = log_densities[column] - log_densities[row]
                accepted = math.exp(min(0.0, inverse_temperature * difference + log_q_ratio))
                matrix[row, column] += weights[name] / total * probability * accepted
        matrix[row, row] += max(0.0, 1.0 - matrix[row].sum())
    return matrix
