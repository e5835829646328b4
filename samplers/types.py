"""The contract between a search problem and the engines that explore it.

A *target* gives the log density of a state; a *move* proposes another state with the ratio that
makes the step reversible. Nothing more is required. States are opaque to the engines, which never
change them: a move returns a new state.

A target may have more methods, by the small `Provides...` protocols below. The engines check each
protocol separately, so a target has only the hooks that it needs.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
S_contra = TypeVar("S_contra", contravariant=True)

Vector = npt.NDArray[np.float64]  # (d,)


class Proposal(NamedTuple, Generic[S]):
    """A state proposed by a move.

    Attributes
    ----------
    state : S
        The proposed state; not used if the proposal is invalid.
    log_q_ratio : float < inf, nats
        log q(current | proposed) - log q(proposed | current), the Hastings term; 0 for a
        symmetric move, -inf for an invalid proposal, which is counted and rejected.
    """

    state: S
    log_q_ratio: float


class ChainState(NamedTuple, Generic[S]):
    """The current state of a chain.

    Attributes
    ----------
    state : S
    log_density : float, nats
        The target's log density of `state`, at inverse temperature 1; finite.
    """

    state: S
    log_density: float


class StepInfo(NamedTuple, Generic[S]):
    """The result of one step for diagnostics; the next step does not need it.

    Attributes
    ----------
    proposed : S
        The proposed state, whether or not it was accepted.
    log_density : float, nats
        The target's log density of `proposed`, at inverse temperature 1; -inf, without a call of
        the target, if the proposal was invalid.
    log_q_ratio : float, nats
        The proposal's Hastings term.
    accepted : bool
        Whether the chain is now in `proposed`.
    """

    proposed: S
    log_density: float
    log_q_ratio: float
    accepted: bool


class StepCounts(NamedTuple, Generic[S]):
    """The counts of a block of steps.

    Attributes
    ----------
    proposed : Mapping[str, int]
        Number of times each move was tried, including invalid proposals; the same names in every
        block.
    accepted : Mapping[str, int]
        Number of times each move was accepted; the names are those of `proposed`.
    log_density : float, nats
        Log density, at inverse temperature 1, of the final state of the block.
    best_state : S
        The most probable state visited in the block, including its start; the first among ties.
    best_log_density : float, nats
        Log density of `best_state`, at inverse temperature 1.
    """

    proposed: Mapping[str, int]
    accepted: Mapping[str, int]
    log_density: float
    best_state: S
    best_log_density: float


class Exchanged(NamedTuple, Generic[S]):
    """The result of steps of several replicas with exchanges; coldest first."""

    states: tuple[S, ...]  # state of the replica at each temperature
    log_densities: tuple[float, ...]  # nats, at inverse temperature 1
    # moves of the coldest replica, and the best state visited by any replica
    counts: StepCounts[S]
    # for each pair of neighbors, the sum of the swap probabilities over all rounds of swaps,
    # including rounds in which this pair did not try to swap
    probabilities: tuple[float, ...]
    tried: tuple[float, ...]  # number of tried swaps of each pair
    accepted: tuple[float, ...]  # number of accepted swaps of each pair


class Target(Protocol[S_contra]):
    """An unnormalized density over states."""

    def log_density(self, state: S_contra, /) -> float:
        """Return the log density in nats, up to a constant: -inf off the support, never NaN."""
        ...


class Move(Protocol[S]):
    """A way to propose another state."""

    def propose(self, rng: np.random.Generator, state: S, /) -> Proposal[S]:
        """Return a proposal drawn with `rng`; `state` is not changed."""
        ...


class FiniteMove(Move[S], Protocol[S]):
    """A move whose proposals can be listed, for exact tests of a chain."""

    def proposals(self, state: S, /) -> Sequence[tuple[Proposal[S], float]]:
        """Return every proposal with its probability; the probabilities sum to one.

        A state may be listed more than once; invalid proposals are listed too.
        """
        ...


@runtime_checkable
class ProvidesMoves(Protocol[S]):
    """A target that has its own moves, so that none need be given to an engine."""

    def moves(self) -> Mapping[str, Move[S]]:
        """Return the moves by their names in reports."""
        ...


@runtime_checkable
class ProvidesMoveWeights(Protocol):
    """A target with selection probabilities of its moves; without it, they are equal.

    A move's ratio assumes that its reverse is selected with the same weight, so a move and its
    reverse need equal weights.
    """

    def move_weights(self) -> Mapping[str, float]:
        """Return each move's selection probability, up to a common factor; >= 0."""
        ...


@runtime_checkable
class ProvidesInitialState(Protocol[S_co]):
    """A target that can start a chain, so that no initial states need be given to an engine."""

    def initial_state(self, rng: np.random.Generator, /) -> S_co:
        """Return a state with a finite log density."""
        ...


@runtime_checkable
class ProvidesDescription(Protocol[S_contra]):
    """A target that describes its states by scalars."""

    def describe(self, state: S_contra, /) -> Mapping[str, float]:
        """Return the scalars traced for each draw; the same names for every state."""
        ...


@runtime_checkable
class ProvidesAdvance(Protocol[S]):
    """A target with its own, usually compiled, block of steps.

    It is used instead of moves, unless moves are given to an engine explicitly. The target then
    needs no moves; `move_weights` has the names. Chains run in threads, so it must not change the
    target and should release the GIL.
    """

    def advance(
        self, rng: np.random.Generator, state: S, n_steps: int, inverse_temperature: float, /
    ) -> tuple[S, StepCounts[S]]:
        """Take `n_steps` >= 1 steps with the target exp(inverse_temperature * log_density).

        Below 1, it may be another density between the target and one in which chains move freely.
        """
        ...


@runtime_checkable
class ProvidesExchange(Protocol[S]):
    """A target with its own, usually compiled, replica exchange; see also `ProvidesAdvance`.

    It may define its own densities at each temperature, such as a power of the likelihood only, if
    inverse temperature 1 is the density itself.
    """

    def exchange(
        self,
        rng: np.random.Generator,
        states: Sequence[S],
        n_steps: int,
        between: int,
        inverse_temperatures: Sequence[float],
        n_rounds: int,
        /,
    ) -> Exchanged[S]:
        """Take `n_steps` >= 1 steps of each replica, and swap neighbors after every `between`.

        Rounds of swaps with an even number try the pairs with an even number; odd rounds try the
        odd pairs. `n_rounds` is the number of the first round.
        """
        ...


@runtime_checkable
class ProvidesGradient(Protocol):
    """A target over vectors with a gradient, for `samplers.langevin`.

    Its states are arrays of shape (d,), float64, d >= 1. Chains run in threads, so it must not
    change the target and should release the GIL.
    """

    def log_density_and_gradient(self, state: Vector, /) -> tuple[float, Vector]:
        """Return `log_density(state)` and its derivatives by each component of the state.

        The gradient has shape (d,), float64, and is finite wherever the density is; it is not used
        where that is -inf. The engine copies it.
        """
        ...


@runtime_checkable
class ProvidesStateCodec(Protocol[S]):
    """A target that can write its states to checkpoints.

    Without it, only states made of None, bool, int, float, str, list, tuple, dict, frozenset, NumPy
    arrays and NumPy scalars can be written, exactly; others are refused.
    """

    def encode_state(self, state: S, /) -> object:
        """Return `state` as JSON-ready data."""
        ...

    def decode_state(self, encoded: object, /) -> S:
        """Return the state with this encoding, read from JSON; raise if there is none."""
        ...


@runtime_checkable
class ProvidesFingerprint(Protocol):
    """A target with a fingerprint, so that a checkpoint is not resumed on other data."""

    def fingerprint(self) -> str:
        """Return a string that identifies the target and its data, the same in every process."""
        ...
