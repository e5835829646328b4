"""The contract between a search problem and the engines that explore it.

A *target* gives the log density of a state; a *move* proposes another state and the ratio that
makes the step reversible. Nothing more is asked. States are opaque to the engines, which never
change them: a move returns a new state.

A target may offer more through the small `Provides...` protocols below; the engines look for each
of them separately, so a target has exactly the hooks it needs.
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
    """A state that a move suggests.

    Attributes
    ----------
    state : S
        The proposed state; never looked at when the proposal is invalid.
    log_q_ratio : float < inf, nats
        log q(current | proposed) - log q(proposed | current), the Hastings term; 0 for a
        symmetric move, -inf for an invalid proposal, which is counted and rejected.
    """

    state: S
    log_q_ratio: float


class ChainState(NamedTuple, Generic[S]):
    """What the next step needs: where a chain is.

    Attributes
    ----------
    state : S
    log_density : float, nats
        The target's log density of `state`, at inverse temperature 1; finite.
    """

    state: S
    log_density: float


class StepInfo(NamedTuple, Generic[S]):
    """What one step did: what diagnostics need and the next step does not.

    Attributes
    ----------
    proposed : S
        The proposed state, whether or not it was accepted.
    log_density : float, nats
        The target's log density of `proposed`, at inverse temperature 1; -inf when the proposal
        was invalid, in which case the target was not asked.
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
    """What a block of steps did.

    Attributes
    ----------
    proposed : Mapping[str, int]
        How often each move was tried, invalid proposals included; the same names in every block.
    accepted : Mapping[str, int]
        How often each move was accepted; the names of `proposed`.
    log_density : float, nats
        Log density, at inverse temperature 1, of the state returned with these counts.
    best_state : S
        The first of the most probable states visited in the block, its start included.
    best_log_density : float, nats
        Log density of `best_state`, at inverse temperature 1.
    """

    proposed: Mapping[str, int]
    accepted: Mapping[str, int]
    log_density: float
    best_state: S
    best_log_density: float


class Exchanged(NamedTuple, Generic[S]):
    """What steps of several replicas did that exchanged temperatures; coldest first."""

    states: tuple[S, ...]  # where the replica at each temperature is
    log_densities: tuple[float, ...]  # nats, at inverse temperature 1
    # moves of the coldest replica, and the best state that any replica visited
    counts: StepCounts[S]
    # of each pair of neighbors, the probabilities of a swap summed over all rounds of swaps, those
    # included in which it was not this pair's turn
    probabilities: tuple[float, ...]
    tried: tuple[float, ...]  # how often each pair tried to swap
    accepted: tuple[float, ...]  # how often each pair did


class Target(Protocol[S_contra]):
    """An unnormalized density over states."""

    def log_density(self, state: S_contra, /) -> float:
        """Return the log density in nats, up to a constant: -inf off the support, never NaN."""
        ...


class Move(Protocol[S]):
    """A way to propose another state."""

    def propose(self, rng: np.random.Generator, state: S, /) -> Proposal[S]:
        """Return a proposal drawn with `rng`; `state` is left as it is."""
        ...


class FiniteMove(Move[S], Protocol[S]):
    """A move whose proposals can be listed, as exact tests of a chain need them."""

    def proposals(self, state: S, /) -> Sequence[tuple[Proposal[S], float]]:
        """Return every proposal with its probability; the probabilities sum to one.

        A state may be listed more than once; invalid proposals are listed too.
        """
        ...


@runtime_checkable
class ProvidesMoves(Protocol[S]):
    """A target that knows its moves, so that an engine need not be given any."""

    def moves(self) -> Mapping[str, Move[S]]:
        """Return the moves by the name under which their acceptance is reported."""
        ...


@runtime_checkable
class ProvidesMoveWeights(Protocol):
    """A target that says how often each of its moves is tried; without it, all equally often.

    A move's ratio accounts for its reverse being selected with the same weight, so a move and
    its reverse need equal weights.
    """

    def move_weights(self) -> Mapping[str, float]:
        """Return each move's selection probability, up to a common factor; >= 0."""
        ...


@runtime_checkable
class ProvidesInitialState(Protocol[S_co]):
    """A target that can start a chain, so that an engine need not be given initial states."""

    def initial_state(self, rng: np.random.Generator, /) -> S_co:
        """Return a state of finite log density."""
        ...


@runtime_checkable
class ProvidesDescription(Protocol[S_contra]):
    """A target that names scalars worth following."""

    def describe(self, state: S_contra, /) -> Mapping[str, float]:
        """Return the scalars traced for each draw; the same names for every state."""
        ...


@runtime_checkable
class ProvidesAdvance(Protocol[S]):
    """A target with its own, usually compiled, block of steps.

    It is used in place of the moves, which a target then need not have, unless an engine is given
    moves explicitly; `move_weights` then tells their names. Chains run in threads, so it must not
    change the target and should release the GIL.
    """

    def advance(
        self, rng: np.random.Generator, state: S, n_steps: int, inverse_temperature: float, /
    ) -> tuple[S, StepCounts[S]]:
        """Take `n_steps` >= 1 steps whose target is exp(inverse_temperature * log_density).

        Below 1 another will do, if it is between the density and one that chains move in freely.
        """
        ...


@runtime_checkable
class ProvidesExchange(Protocol[S]):
    """A target with its own, usually compiled, steps of a replica exchange; else as `advance`.

    It may choose what a temperature does, such as to raise only the likelihood to a power, as long
    as inverse temperature 1 is the density itself.
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

        Of the rounds of swaps, those of an even number, `n_rounds` before the first one, try the
        pairs of an even number, and the others the others.
        """
        ...


@runtime_checkable
class ProvidesGradient(Protocol):
    """A target over vectors that knows its slope, for `samplers.langevin`.

    Its states are arrays of shape (d,), float64, d >= 1. Chains run in threads, so it must not
    change the target and should release the GIL.
    """

    def log_density_and_gradient(self, state: Vector, /) -> tuple[float, Vector]:
        """Return `log_density(state)` and its derivatives by each component of the state.

        The gradient has shape (d,), float64, and is finite wherever the density is; it is not
        looked at where that is -inf. The engine copies it.
        """
        ...


@runtime_checkable
class ProvidesStateCodec(Protocol[S]):
    """A target that can write its states to checkpoints.

    Without it, states made of None, bool, int, float, str, list, tuple, dict, frozenset, NumPy
    arrays and NumPy scalars are written exactly, and others are refused.
    """

    def encode_state(self, state: S, /) -> object:
        """Return `state` as an object that the json module writes."""
        ...

    def decode_state(self, encoded: object, /) -> S:
        """Return the state of which `encoded` was read back from JSON; raise if there is none."""
        ...


@runtime_checkable
class ProvidesFingerprint(Protocol):
    """A target with a fingerprint, so that no checkpoint is resumed on other data."""

    def fingerprint(self) -> str:
        """Return a string that identifies the target and its data, the same in every process."""
        ...
