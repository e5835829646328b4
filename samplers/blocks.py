"""Runs divided into blocks, and the records that a chain passes to the loop around it.

A *block* is a fixed number of steps, set by the run's parameters and never by the clock. A chain
between two blocks is a `Snapshot`: plain data with everything that its future depends on. Running a
chain is a pure function of its snapshot (`run_blocks`). So interrupted work can be discarded, and
the result does not depend on where or in which portions the work is done.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from samplers.parameters import SamplerValueError, check_integer, check_real
from samplers.types import (
    ChainState,
    Move,
    ProvidesAdvance,
    ProvidesMoves,
    ProvidesMoveWeights,
    Target,
)

S = TypeVar("S")

BitGeneratorState = Mapping[str, Any]  # Any: NumPy nests strings, integers and dicts in it
Memory = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of a run: `n_steps` steps per chain divided into `n_blocks` even blocks."""

    name: str
    n_steps: int
    n_blocks: int
    is_traced: bool


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """All phases of a run, in order; a run in rounds may stop after each traced phase."""

    phases: tuple[Phase, ...]
    is_in_rounds: bool = False

    @property
    def n_blocks(self) -> int:
        """Number of blocks per chain."""
        return sum(phase.n_blocks for phase in self.phases)

    @property
    def n_steps(self) -> int:
        """Number of steps per chain."""
        return sum(phase.n_steps for phase in self.phases)

    def locate(self, block: int) -> tuple[Phase, int]:
        """Return the phase of `block`, and the block's number within it."""
        for phase in self.phases:
            if block < phase.n_blocks:
                return phase, block
            block -= phase.n_blocks
        raise IndexError("block is beyond the end of the plan")

    def n_steps_of(self, block: int) -> int:
        """Return the number of steps of `block`."""
        phase, number = self.locate(block)
        n, of = phase.n_steps, phase.n_blocks
        return (number + 1) * n // of - number * n // of

    def steps_before(self, block: int) -> int:
        """Return the number of steps before `block`, which may be the plan's end."""
        begun = self._begun(block)
        return sum(n * phase.n_steps // phase.n_blocks for phase, n in begun)

    def steps_through(self, block: int) -> int:
        """Return the number of steps until the round of `block` ends; for annealing, all."""
        end = next((end for end in self.ends_of_rounds() if block < end), self.n_blocks)
        return self.steps_before(end)

    def n_traced_before(self, block: int) -> int:
        """Return the number of blocks before `block` that leave a record."""
        return sum(n for phase, n in self._begun(block) if phase.is_traced)

    def ends_of_rounds(self) -> list[int]:
        """Return the number of blocks at the end of each round."""
        if not self.is_in_rounds:
            return [self.n_blocks]
        ends = accumulate(phase.n_blocks for phase in self.phases)
        return [end for phase, end in zip(self.phases, ends, strict=True) if phase.is_traced]

    def drawn(self, block: int) -> tuple[int, slice]:
        """Return the round, from 0, whose records count after a number of blocks, and their slice.

        This is the last round, unless it was stopped before it was as long as the previous one.
        """
        n_records = self.n_traced_before(block)
        if not self.is_in_rounds:
            return 0, slice(0, n_records)
        traced = [phase for phase in self.phases if phase.is_traced]
        starts = list(accumulate((phase.n_blocks for phase in traced), initial=0))
        number = max(0, bisect_left(starts, n_records) - 1)
        n_steps = (n_records - starts[number]) * traced[number].n_steps // traced[number].n_blocks
        if number > 0 and n_steps < traced[number - 1].n_steps:
            number -= 1
        return number, slice(starts[number], min(n_records, starts[number + 1]))

    def _begun(self, block: int) -> Iterator[tuple[Phase, int]]:
        """Yield each phase and the number of its blocks before `block`."""
        for phase in self.phases:
            yield phase, min(max(block, 0), phase.n_blocks)
            block -= phase.n_blocks


def sampling_plan(n_steps: int, warmup: float, n_draws: int, n_rounds: int = 1) -> ChainPlan:
    """Return the plan of warm-up and draws; each further round doubles the total of steps."""
    n_steps = check_integer("n_steps", n_steps, 1)
    n_draws = check_integer("n_draws", n_draws, 1)
    n_rounds = check_integer("n_rounds", n_rounds, 1)
    warmup = check_real("warmup", warmup, "a number >= 0 and < 1", lambda share: 0.0 <= share < 1.0)
    n_sampling = n_steps - int(warmup * n_steps)
    thin = max(1, n_sampling // n_draws)
    n_draws = min(n_draws, n_sampling)
    n_warmup = n_steps - n_draws * thin
    phases = [Phase("warmup", n_warmup, math.ceil(n_warmup / thin), is_traced=False)][:n_warmup]
    phases.append(Phase("sampling", n_draws * thin, n_draws, is_traced=True))
    for number in range(1, n_rounds):
        n_more = math.ceil(2 ** (number - 1) * n_steps / n_draws) * n_draws
        phases.append(Phase(f"round {number + 1}", n_more, n_draws, is_traced=True))
    return ChainPlan(tuple(phases), is_in_rounds=n_rounds > 1)


class Snapshot(NamedTuple, Generic[S]):
    """A chain between two blocks."""

    bit_generator: BitGeneratorState  # state of its PCG64
    replicas: tuple[ChainState[S], ...]  # one for a plain chain; all for tempering, coldest first
    best: ChainState[S]  # the most probable state so far, of any replica; the first among ties
    memory: Memory  # the engine's finite numbers: state of a schedule or ladder
    block: int  # number of blocks done


class Record(NamedTuple, Generic[S]):
    """The contribution of one block to the traces."""

    values: Mapping[str, float]  # the traced scalars
    proposed: Mapping[str, int]  # per move
    accepted: Mapping[str, int]
    state: S | None  # state at the end of the block, or None if not kept


BlockEnd: TypeAlias = tuple[tuple[ChainState[S], ...], ChainState[S], Memory, Record[S]]
"""Replicas, best and memory after a block, and its record without the target's description."""


class Chunk(NamedTuple, Generic[S]):
    """The result of successive blocks of one chain."""

    snapshot: Snapshot[S]  # after the last block
    records: tuple[Record[S], ...]  # one per block of a traced phase
    n_proposed: int  # over all blocks and moves
    n_accepted: int
    described: Mapping[str, float]  # current state's description; empty without `describe`


@dataclass(frozen=True, slots=True)
class MoveChoice(Generic[S]):
    """The moves of an engine, or the target's `advance` if `moves` is None."""

    moves: Mapping[str, Move[S]] | None
    weights: Mapping[str, float] | None  # > 0, by the names of `moves`
    names: tuple[str, ...]  # names of the moves in reports, if the target has them

    def settings(self) -> object:
        """Return the record of the choice in checkpoints."""
        return "advance" if self.weights is None else dict(self.weights)


def choose_moves(target: Target[S], moves: Mapping[str, Move[S]] | None) -> MoveChoice[S]:
    """Return the given moves or the target's; SamplerValueError for wrong methods or weights."""
    if not callable(getattr(target, "log_density", None)):
        raise SamplerValueError(f"target must have a log_density method, got {target!r}")
    if moves is None:
        if isinstance(target, ProvidesAdvance):
            by_move = target.move_weights() if isinstance(target, ProvidesMoveWeights) else {}
            return MoveChoice(None, None, tuple(by_move))
        if not isinstance(target, ProvidesMoves):
            raise SamplerValueError("moves must be given when the target has no moves(), got None")
        moves = target.moves()
    if not isinstance(moves, Mapping) or not moves:
        raise SamplerValueError(f"moves must be a mapping of one name or more, got {moves!r}")
    for name, move in moves.items():
        if not callable(getattr(move, "propose", None)):
            raise SamplerValueError(f"move {name!r} must have a propose method, got {move!r}")
    weights = move_weights(target, moves)
    used = {name: move for name, move in moves.items() if weights[name] > 0.0}
    return MoveChoice(used, {name: weights[name] for name in used}, tuple(used))


def move_weights(target: Target[S], moves: Mapping[str, Move[S]]) -> dict[str, float]:
    """Return the weight of each move: the target's, or 1 if it names none of them."""
    given = target.move_weights() if isinstance(target, ProvidesMoveWeights) else {}
    if not any(name in given for name in moves):
        return dict.fromkeys(moves, 1.0)
    missing = [name for name in moves if name not in given]
    if missing:
        raise SamplerValueError(f"move_weights must name every move, got none for {missing[0]!r}")
    weights = {name: float(given[name]) for name in moves}
    for name, weight in weights.items():
        if not 0.0 <= weight < math.inf:
            raise SamplerValueError(f"the weight of move {name!r} must be >= 0, got {weight}")
    if not any(weights.values()):
        raise SamplerValueError("move_weights must have one weight > 0 or more, got only zeros")
    return weights


@dataclass(frozen=True, slots=True)
class Program(ABC, Generic[S]):
    """An engine with its settings: how a chain starts and what it does in one block."""

    method: ClassVar[str]  # as in `Run.method`
    # names of a record's values, without those of the target's description
    trace_names: ClassVar[tuple[str, ...]] = ("log_density", "acceptance_rate")

    target: Target[S]
    plan: ChainPlan
    choice: MoveChoice[S]

    @abstractmethod
    def settings(self) -> Mapping[str, object]:
        """Return all settings that the result depends on, as JSON, for comparison on resume."""

    @abstractmethod
    def start(self, state: S) -> tuple[tuple[ChainState[S], ...], Memory]:
        """Return the replicas and the memory of a chain that starts in `state`."""

    @abstractmethod
    def run_block(self, rng: np.random.Generator, snapshot: Snapshot[S]) -> BlockEnd[S]:
        """Run one block."""

    def extras(self, snapshots: tuple[Snapshot[S], ...]) -> dict[str, Any]:  # noqa: ARG002
        """Return `Run.extras` for chains that ended in `snapshots`."""
        return {}


def run_blocks(program: Program[S], snapshot: Snapshot[S], n_blocks: int) -> Chunk[S]:
    """Run `n_blocks` >= 1 blocks of a chain, without side effects."""
    rng = restore_generator(snapshot.bit_generator)
    records: list[Record[S]] = []
    n_proposed = n_accepted = 0
    described: Mapping[str, float] = {}
    end = snapshot.block + n_blocks
    for block in range(snapshot.block, end):
        replicas, best, memory, record = program.run_block(rng, snapshot)
        snapshot = Snapshot(snapshot.bit_generator, replicas, best, memory, block + 1)
        n_proposed += sum(record.proposed.values())
        n_accepted += sum(record.accepted.values())
        phase, _ = program.plan.locate(block)
        if phase.is_traced or block + 1 == end:
            described = describe(program.target, replicas[0].state)
        if phase.is_traced:
            records.append(record._replace(values={**record.values, **described}))
    snapshot = snapshot._replace(bit_generator=rng.bit_generator.state)
    return Chunk(snapshot, tuple(records), n_proposed, n_accepted, described)


def describe(target: Target[S], state: S) -> Mapping[str, float]:
    """Return the target's description of `state`, empty if it has none."""
    described = getattr(target, "describe", None)  # isinstance of a protocol is slow
    return (
        {}
        if described is None
        else {name: float(value) for name, value in described(state).items()}
    )


def restore_generator(state: BitGeneratorState) -> np.random.Generator:
    """Return a generator that continues from `state`."""
    bit_generator = np.random.PCG64()
    bit_generator.state = dict(state)  # type: ignore[assignment]  # NumPy checks it
    return np.random.Generator(bit_generator)
