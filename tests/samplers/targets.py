"""Small targets and moves whose exact answers are known, and twins of them that are broken."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import samplers

WEIGHTS = (1.0, 4.0, 2.0, 0.5, 6.0, 3.0)


class Ring:
    """States 0 .. 5 with the probabilities of WEIGHTS; only a log density."""

    def __init__(self, weights: Sequence[float] = WEIGHTS) -> None:
        self.weights = tuple(weights)

    def log_density(self, state: int) -> float:
        return math.log(self.weights[state])


@dataclass(frozen=True)
class Turn:
    """Go one state up with probability 0.8, else one down; its own reverse."""

    n_states: int = len(WEIGHTS)

    def proposals(self, state: int) -> list[tuple[samplers.Proposal[int], float]]:
        ratio = math.log(0.8 / 0.2)
        up, down = (state + 1) % self.n_states, (state - 1) % self.n_states
        return [(samplers.Proposal(up, -ratio), 0.8), (samplers.Proposal(down, ratio), 0.2)]

    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        (up, probability), (down, _) = self.proposals(state)
        return up if rng.random() < probability else down


@dataclass(frozen=True)
class Jump:
    """Go anywhere, to state j with a probability proportional to j; state 0 is out of reach."""

    n_states: int = len(WEIGHTS)

    def proposals(self, state: int) -> list[tuple[samplers.Proposal[int], float]]:
        total = self.n_states * (self.n_states - 1) / 2
        return [(self._proposal(state, other), other / total) for other in range(self.n_states)]

    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        total = self.n_states * (self.n_states - 1) / 2
        probabilities = np.arange(self.n_states) / total
        return self._proposal(state, int(rng.choice(self.n_states, p=probabilities)))

    def _proposal(self, state: int, other: int) -> samplers.Proposal[int]:
        if state == 0 or other == 0:  # the way back does not exist
            return samplers.Proposal(other, -math.inf)
        return samplers.Proposal(other, math.log(state / other))


@dataclass(frozen=True)
class WithoutHastings:
    """The broken twin of a move: every proposal claims to be symmetric."""

    move: samplers.FiniteMove[int]

    def proposals(self, state: int) -> list[tuple[samplers.Proposal[int], float]]:
        return [
            (proposal._replace(log_q_ratio=0.0), probability)
            for proposal, probability in self.move.proposals(state)
        ]

    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        return self.move.propose(rng, state)._replace(log_q_ratio=0.0)


MOVES: dict[str, samplers.FiniteMove[int]] = {"turn": Turn(), "jump": Jump()}
BROKEN: dict[str, samplers.FiniteMove[int]] = {
    name: WithoutHastings(move) for name, move in MOVES.items()
}


ENGINES: dict[str, tuple[Callable[..., samplers.Run[Any]], dict[str, int]]] = {
    "metropolis": (samplers.metropolis, {"n_draws": 20}),
    "anneal": (samplers.anneal, {"n_restarts": 2}),
    "tempering": (samplers.tempering, {"n_draws": 20, "n_temperatures": 3}),
}


class FullRing(Ring):
    """The ring with every hook but `advance`."""

    def moves(self) -> Mapping[str, samplers.Move[int]]:
        return dict(MOVES)

    def move_weights(self) -> Mapping[str, float]:
        return {"turn": 3.0, "jump": 1.0}

    def initial_state(self, rng: np.random.Generator) -> int:
        return int(rng.integers(len(self.weights)))

    def describe(self, state: int) -> Mapping[str, float]:
        return {"state": state, "square": float(state**2)}

    def fingerprint(self) -> str:
        return f"ring {self.weights}"


class FastRing(FullRing):
    """The ring with a block of steps of its own, written without the engines' code."""

    def advance(
        self, rng: np.random.Generator, state: int, n_steps: int, inverse_temperature: float
    ) -> tuple[int, samplers.StepCounts[int]]:
        proposed, accepted, best = {"redraw": n_steps}, {"redraw": 0}, state
        for uniform in rng.random((n_steps, 2)):
            other = int(uniform[0] * len(self.weights))
            if uniform[1] < (self.weights[other] / self.weights[state]) ** inverse_temperature:
                state = other
                accepted["redraw"] += 1
            best = max(best, state, key=self.log_density)
        counts = samplers.StepCounts(
            proposed, accepted, self.log_density(state), best, self.log_density(best)
        )
        return state, counts


class Normal:
    """A normal density over vectors of shape (d,), with every hook of such targets."""

    def __init__(self, covariance: Sequence[Sequence[float]] = ((1.0,),)) -> None:
        self.covariance = np.asarray(covariance, np.float64)
        self.precision = np.linalg.inv(self.covariance)

    def log_density(self, state: np.ndarray) -> float:
        return -0.5 * float(state @ self.precision @ state)

    def log_density_and_gradient(self, state: np.ndarray) -> tuple[float, np.ndarray]:
        return self.log_density(state), -self.precision @ state

    def initial_state(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=len(self.covariance))

    def describe(self, state: np.ndarray) -> Mapping[str, float]:
        return {"state": float(state[0]), "square": float(state[0] ** 2)}

    def fingerprint(self) -> str:
        return f"normal {self.covariance.tolist()}"


class Modes:
    """States 0 .. 20, two modes with next to nothing in between; the upper one is likelier."""

    def log_density(self, state: int) -> float:
        if not 0 <= state <= 20:
            return -math.inf
        return float(np.logaddexp(-2.0 * state, -2.0 * (20 - state) + 1.0))


class Walk:
    """One up or one down."""

    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        return samplers.Proposal(state + (1 if rng.random() < 0.5 else -1), 0.0)


def all_draws(run: samplers.Run[int]) -> list[int]:
    return [state for chain in run.draws for state in chain]
