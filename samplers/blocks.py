"""Runs cut into blocks: the records that pass between a chain and its keeper.

A *block* is a fixed number of steps, set by the run's parameters and never by the clock. A chain
between two blocks is a `Snapshot`: plain data that holds everything its future depends on. Taking
a chain forward is a pure function of its snapshot (`run_blocks`), so a piece of work that was
interrupted can be thrown away, and where or in which portions the work is done cannot be seen in
the result.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from samplers.parameters import check_fraction, check_integer
from samplers.types import ChainState, ProvidesDescription, Target

__all__ = [
    "BitGeneratorState",
    "Chunk",
    "Memory",
    "Phase",
    "Plan",
    "Program",
    "Record",
    "Snapshot",
    "describe",
    "restore_generator",
    "run_blocks",
    "sampling_plan",
]

S = TypeVar("S")

BitGeneratorState = Mapping[str, Any]  # Any: NumPy nests strings, integers and dicts in it
Memory = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a run: `n_steps` steps per chain divided into `n_blocks` even blocks."""

    name: str
    n_steps: int
    n_blocks: int
    is_traced: bool

    def steps_before(self, block: int) -> int:
        """Return how many of the phase's steps precede its block number `block`."""
        return block * self.n_steps // self.n_blocks


@dataclass(frozen=True, slots=True)
class Plan:
    """All phases of a run, in order."""

    phases: tuple[Phase, ...]

    @property
    def n_blocks(self) -> int:
        """Number of blocks per chain."""
        return sum(phase.n_blocks for phase in self.phases)

    @property
    def n_steps(self) -> int:
        """Number of steps per chain."""
        return sum(phase.n_steps for phase in self.phases)

    def locate(self, block: int) -> tuple[int, int]:
        """Return the index of the phase that `block` lies in, and the block's number there."""
        for index, phase in enumerate(self.phases):
            if block < phase.n_blocks:
                return index, block
            block -= phase.n_blocks
        raise IndexError("block is beyond the end of the plan")

    def n_steps_of(self, block: int) -> int:
        """Return how many steps `block` has."""
        index, number = self.locate(block)
        phase = self.phases[index]
        return phase.steps_before(number + 1) - phase.steps_before(number)

    def steps_before(self, block: int) -> int:
        """Return how many of all steps precede `block`, which may be the plan's end."""
        if block == self.n_blocks:
            return self.n_steps
        index, number = self.locate(block)
        earlier = sum(phase.n_steps for phase in self.phases[:index])
        return earlier + self.phases[index].steps_before(number)

    def n_traced_before(self, block: int) -> int:
        """Return how many of the blocks before `block` leave a record."""
        n_traced = 0
        for phase in self.phases:
            n_inside = min(max(block, 0), phase.n_blocks)
            n_traced += n_inside if phase.is_traced else 0
            block -= phase.n_blocks
        return n_traced


def sampling_plan(n_steps: int, warmup: float, n_draws: int) -> Plan:
    """Return the blocks of a warm-up followed by one block for each draw."""
    n_steps = check_integer("n_steps", n_steps, 1)
    n_draws = check_integer("n_draws", n_draws, 1)
    n_sampling = n_steps - int(check_fraction("warmup", warmup) * n_steps)
    thin = max(1, n_sampling // n_draws)
    n_draws = min(n_draws, n_sampling)
    n_warmup = n_steps - n_draws * thin
    sampling = Phase("sampling", n_draws * thin, n_draws, is_traced=True)
    if n_warmup == 0:
        return Plan((sampling,))
    return Plan((Phase("warmup", n_warmup, math.ceil(n_warmup / thin), is_traced=False), sampling))


class Snapshot(NamedTuple, Generic[S]):
    """A chain between two blocks.

    Attributes
    ----------
    bit_generator : Mapping
        State of the chain's PCG64, as NumPy gives it.
    replicas : tuple of ChainState
        One for a plain chain; a ladder, coldest first, for tempering.
    best : ChainState
        The first of the most probable states visited so far, by any replica.
    memory : Mapping of str to tuple of float
        What the engine itself carries on, finite numbers: a schedule's or ladder's state.
    block : int
        Number of blocks done.
    """

    bit_generator: BitGeneratorState
    replicas: tuple[ChainState[S], ...]
    best: ChainState[S]
    memory: Memory
    block: int


class Record(NamedTuple, Generic[S]):
    """What one block leaves in the traces.

    Attributes
    ----------
    values : Mapping of str to float
        The traced scalars.
    proposed, accepted : Mapping of str to int
        Counts per move in the block.
    state : S or None
        The state at the end of the block, or None if it is not kept.
    """

    values: Mapping[str, float]
    proposed: Mapping[str, int]
    accepted: Mapping[str, int]
    state: S | None


class Chunk(NamedTuple, Generic[S]):
    """What successive blocks of one chain gave.

    Attributes
    ----------
    snapshot : Snapshot
        The chain after the last block.
    records : tuple of Record
        One per block of a phase whose records are kept.
    n_proposed, n_accepted : int
        Sums over all blocks and moves.
    described : Mapping of str to float
        The target's description of the current state; empty without `describe`.
    """

    snapshot: Snapshot[S]
    records: tuple[Record[S], ...]
    n_proposed: int
    n_accepted: int
    described: Mapping[str, float]


class Program(Protocol[S]):
    """An engine with its settings: how a chain starts and what it does in one block."""

    @property
    def method(self) -> str:
        """Name of the engine, as in `Run.method`."""
        ...

    @property
    def target(self) -> Target[S]:
        """The density explored."""
        ...

    @property
    def plan(self) -> Plan:
        """The run's blocks."""
        ...

    @property
    def uses_advance(self) -> bool:
        """Whether blocks run in the target's own `advance`."""
        ...

    @property
    def trace_names(self) -> tuple[str, ...]:
        """Names of a record's values, without those of the target's description."""
        ...

    @property
    def move_names(self) -> tuple[str, ...]:
        """Names of the moves, as far as they are known before the first block."""
        ...

    def settings(self) -> Mapping[str, object]:
        """Return everything that the result depends on, for comparison on resume; JSON."""
        ...

    def start(self, state: S) -> tuple[tuple[ChainState[S], ...], Memory]:
        """Return the replicas and the memory of a chain that starts in `state`."""
        ...

    def run_block(
        self, rng: np.random.Generator, snapshot: Snapshot[S]
    ) -> tuple[tuple[ChainState[S], ...], ChainState[S], Memory, Record[S]]:
        """Take one block; return replicas, best, memory, and the record without description."""
        ...

    def extras(self, snapshots: tuple[Snapshot[S], ...]) -> dict[str, Any]:
        """Return `Run.extras` of chains that ended in `snapshots`."""
        ...


def run_blocks(program: Program[S], snapshot: Snapshot[S], n_blocks: int) -> Chunk[S]:
    """Take a chain `n_blocks` >= 1 blocks forward; nothing outside the result is changed."""
    rng = restore_generator(snapshot.bit_generator)
    records: list[Record[S]] = []
    n_proposed = n_accepted = 0
    described: Mapping[str, float] = {}
    end = snapshot.block + n_blocks
    for block in range(snapshot.block, end):
        replicas, best, memory, record = program.run_block(rng, snapshot)
        snapshot = Snapshot(rng.bit_generator.state, replicas, best, memory, block + 1)
        n_proposed += sum(record.proposed.values())
        n_accepted += sum(record.accepted.values())
        phase, _ = program.plan.locate(block)
        is_traced = program.plan.phases[phase].is_traced
        if is_traced or block + 1 == end:
            described = describe(program.target, replicas[0].state)
        if is_traced:
            records.append(record._replace(values={**record.values, **described}))
    return Chunk(snapshot, tuple(records), n_proposed, n_accepted, described)


def describe(target: Target[S], state: S) -> Mapping[str, float]:
    """Return the target's description of `state`, empty if it has none."""
    if not isinstance(target, ProvidesDescription):
        return {}
    return {name: float(value) for name, value in target.describe(state).items()}


def restore_generator(state: BitGeneratorState) -> np.random.Generator:
    """Return a generator that goes on from `state`."""
    bit_generator = np.random.PCG64()
    bit_generator.state = dict(state)  # type: ignore[assignment]  # NumPy checks it
    return np.random.Generator(bit_generator)
