"""What moves written in Python list: held to their draws, and made to single steps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from samplers.types import Proposal

State = TypeVar("State")


class ListedMove(Protocol[State]):
    """A move that also lists its proposals."""

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]: ...

    def proposals(self, state: State) -> Sequence[tuple[Proposal[State], float]]: ...


class Listed:
    """A move that draws among the proposals that it lists."""

    def propose(self, rng: np.random.Generator, state):
        """Return one of them, as often as it is probable."""
        proposals, chances = zip(*self.proposals(state), strict=True)
        return proposals[int(rng.choice(len(proposals), p=np.array(chances) / sum(chances)))]


class _WithoutHastings:
    def __init__(self, move) -> None:
        self.move = move

    def proposals(self, state):
        return [
            (Proposal(p.state, 0.0 if p.log_q_ratio > -np.inf else -np.inf), probability)
            for p, probability in self.move.proposals(state)
        ]


def without_hastings(moves: Mapping[str, ListedMove[State]]) -> dict[str, _WithoutHastings]:
    """Return the broken twins of moves: every valid proposal claims to be symmetric."""
    return {name: _WithoutHastings(move) for name, move in moves.items()}


def one_step(
    moves: Mapping[str, ListedMove[State]],
    weights: Mapping[str, float],
    log_density: Callable[[State], float],
    state: State,
    inverse_temperature: float = 1.0,
) -> tuple[list[State], np.ndarray]:
    """Return the states that one plain step leads to, and their exact probabilities."""
    here, total = log_density(state), sum(weights[name] for name in moves)
    probabilities = {state: 0.0}
    for name, move in moves.items():
        for proposal, probability in move.proposals(state):
            there = -np.inf if proposal.log_q_ratio == -np.inf else log_density(proposal.state)
            if there == -np.inf:
                continue  # also at inverse temperature 0
            log_ratio = inverse_temperature * (there - here) + proposal.log_q_ratio
            moved = probability * np.exp(min(0.0, log_ratio))
            before = probabilities.get(proposal.state, 0.0)
            probabilities[proposal.state] = before + weights[name] / total * moved
    probabilities[state] += 1.0 - sum(probabilities.values())
    return list(probabilities), np.array(list(probabilities.values()))
