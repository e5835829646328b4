"""Whether a move draws what it lists: the exact tests see the listing, chains see the draws."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

from samplers.types import Proposal
from tests.statistical.chi_square import fits

State = TypeVar("State")


class ListedMove(Protocol[State]):
    """A move that also lists its proposals."""

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]: ...

    def proposals(self, state: State) -> Sequence[tuple[Proposal[State], float]]: ...


def draws_as_listed(
    move: ListedMove[State], state: State, rng: np.random.Generator, n_draws: int = 400
) -> bool:
    """Whether drawn proposals have the probabilities and the Hastings ratios that are listed."""
    chances: dict[State, float] = {}
    log_ratios: dict[State, float] = {}
    for proposal, probability in move.proposals(state):
        chances[proposal.state] = chances.get(proposal.state, 0.0) + probability
        log_ratios[proposal.state] = proposal.log_q_ratio
    drawn = [move.propose(rng, state) for _ in range(n_draws)]
    if any(log_ratios.get(one.state) != one.log_q_ratio for one in drawn):
        return False
    place = {one: number for number, one in enumerate(chances)}
    return fits([place[one.state] for one in drawn], np.array(list(chances.values())))
