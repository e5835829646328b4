"""Simulated annealing: steps at a falling temperature (Kirkpatrick, Gelatt and Vecchi 1983).

A chain runs one cooling cycle or several; each cycle after the first is reheated from the best
state that the chain has visited. What is returned is the best state ever visited, not the last.

At temperature T a chain is at log_density / T. A cooling schedule says how a cycle goes from its
initial to its final temperature: it is asked for the temperature of each block in turn, and shown
the log density at the end of each; what it remembers in between is plain data that belongs to the
chain, so a cycle can be interrupted and resumed exactly.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from samplers.blocks import Memory, Phase, Plan, Program, Record, Snapshot, choose_moves
from samplers.chains import Progress, Run, run_chains
from samplers.checkpoint import CheckpointSection
from samplers.metropolis import advance_block, better_of, init, trace_block
from samplers.parameters import (
    SamplerValueError,
    Seed,
    check_integer,
    check_positive,
)
from samplers.types import ChainState, Move, Target

__all__ = ["AdaptiveSchedule", "GeometricSchedule", "Schedule", "anneal"]

MAX_PACE = 4.0  # an adaptive step is at most this many times longer or shorter than a uniform one

S = TypeVar("S")
N_TEMPERATURES = 1000  # per cycle; more would only cost calls of a compiled block


@runtime_checkable
class Schedule(Protocol):
    """A way to cool; a dataclass, so that a checkpoint can tell its settings.

    What extends it remembers nothing, unless it says otherwise.
    """

    def start(self) -> tuple[float, ...]:
        """Return the memory at the start of a cycle: finite numbers, always as many."""
        return ()

    def temperature(self, memory: tuple[float, ...], block: int, n_blocks: int) -> float:
        """Return the temperature of a block, 0 <= `block` < `n_blocks`; > 0."""
        ...

    def observe(
        self, memory: tuple[float, ...], block: int, n_blocks: int, log_density: float
    ) -> tuple[float, ...]:
        """Return the memory after `block`, which ended at `log_density`."""
        del block, n_blocks, log_density
        return memory


@dataclass(frozen=True, slots=True)
class GeometricSchedule(Schedule):
    """Cool by the same factor from block to block.

    Parameters
    ----------
    initial_temperature, final_temperature : float > 0
        Temperatures of a cycle's first and last block; the final one may not be higher. A cycle
        of one block has the final temperature.
    """

    initial_temperature: float = 10.0
    final_temperature: float = 0.1

    def __post_init__(self) -> None:
        _check_temperatures(self.initial_temperature, self.final_temperature)

    def temperature(self, memory: tuple[float, ...], block: int, n_blocks: int) -> float:
        """Return initial^(1 - x) final^x, x being the share of the blocks before the last done."""
        del memory
        if block == n_blocks - 1:
            return self.final_temperature
        ratio = self.final_temperature / self.initial_temperature
        return float(self.initial_temperature * ratio ** (block / (n_blocks - 1)))


@dataclass(frozen=True, slots=True)
class AdaptiveSchedule:
    """Cool slowly where the log density fluctuates most, at constant thermodynamic speed.

    Between temperatures T and T + dT lies a thermodynamic length of sd(T) dT / T^2, where sd(T)
    is the standard deviation of the log density at T (Salamon and Berry 1983). The schedule
    estimates it from the ends of recent blocks and gives every length the same time: the step in
    log T is uniform over what remains, times the mean of sd / T so far over sd / T now. The budget
    rules: the last block always has the final temperature.

    Parameters
    ----------
    initial_temperature, final_temperature : float > 0
        Temperatures of a cycle's first and last block; the final one may not be higher.
    n_remembered : int >= 2
        How many blocks the estimate of the standard deviation looks back.
    """

    initial_temperature: float = 10.0
    final_temperature: float = 0.1
    n_remembered: int = 30

    def __post_init__(self) -> None:
        _check_temperatures(self.initial_temperature, self.final_temperature)
        check_integer("n_remembered", self.n_remembered, 2)

    def start(self) -> tuple[float, ...]:
        """Return the memory of a cycle that has seen nothing."""
        return _Pace(math.log(self.initial_temperature), 0.0, 0.0, 0.0, 0.0)

    def temperature(self, memory: tuple[float, ...], block: int, n_blocks: int) -> float:
        """Return the temperature that the blocks before have led to."""
        if block == n_blocks - 1:
            return self.final_temperature
        return math.exp(_Pace(*memory).log_temperature)

    def observe(
        self, memory: tuple[float, ...], block: int, n_blocks: int, log_density: float
    ) -> tuple[float, ...]:
        """Return the memory with the temperature of the next block."""
        pace = _Pace(*memory)
        n_seen = pace.n_seen + 1.0
        rate = 1.0 / min(n_seen, self.n_remembered)
        deviation = log_density - pace.mean
        mean = pace.mean + rate * deviation
        variance = (1.0 - rate) * (pace.variance + rate * deviation**2)
        length = math.sqrt(variance) / math.exp(pace.log_temperature)  # per unit of log T
        mean_length = pace.mean_length + (length - pace.mean_length) / n_seen
        n_left = max(1, n_blocks - 1 - block)
        uniform = (pace.log_temperature - math.log(self.final_temperature)) / n_left
        log_temperature = pace.log_temperature - min(
            uniform * _ratio(mean_length, length), uniform * n_left
        )
        return _Pace(log_temperature, mean, variance, mean_length, n_seen)


class _Pace(NamedTuple):
    """What an adaptive cycle remembers; moments are of the log density at the ends of blocks."""

    log_temperature: float
    mean: float
    variance: float
    mean_length: float
    n_seen: float


def _ratio(mean_length: float, length: float) -> float:
    """Return how much longer than a uniform step the next one is."""
    if mean_length == 0.0:
        return 1.0
    if length * MAX_PACE <= mean_length:
        return MAX_PACE
    return max(mean_length / length, 1.0 / MAX_PACE)


def _check_temperatures(initial: float, final: float) -> None:
    initial = check_positive("initial_temperature", initial)
    if check_positive("final_temperature", final) > initial:
        raise SamplerValueError(
            f"final_temperature must be <= initial_temperature, {initial:g}, got {final:g}"
        )


def anneal(
    target: Target[S],
    *,
    n_steps: int,
    schedule: Schedule = GeometricSchedule(),
    n_restarts: int = 1,
    n_temperatures: int = N_TEMPERATURES,
    n_chains: int = 4,
    n_jobs: int | None = 1,
    seed: Seed = None,
    initial_states: Sequence[S] | None = None,
    moves: Mapping[str, Move[S]] | None = None,
    progress: Callable[[Progress], object] | None = None,
    checkpoint: str | Path | CheckpointSection | None = None,
    resume: bool = False,
    time_limit: float = math.inf,
) -> Run[S]:
    """Look for the most probable state of a target.

    Parameters
    ----------
    target : Target
        The density, with any of the hooks in `samplers.types`.
    n_steps : int >= 1
        Steps per chain, all cycles together.
    schedule : GeometricSchedule, AdaptiveSchedule or another Schedule
        How a cycle cools.
    n_restarts : int >= 1, <= n_steps
        Number of cooling cycles per chain.
    n_temperatures : int >= 1
        Temperatures of a cycle; fewer when there are fewer steps.
    n_chains, n_jobs, seed, initial_states, moves, progress, checkpoint, resume
        As for `samplers.metropolis`.
    time_limit : float >= 0, seconds
        When to stop before the last temperature; how far chains are then depends on the machine. A
        temperature that was begun is finished by all chains.

    Returns
    -------
    Run
        Its traces have one value per temperature; `draws` is empty. What was found so far if the
        run was interrupted by Ctrl-C or out of time.

    Raises
    ------
    SamplerValueError, SamplerError, CheckpointError
        As `samplers.metropolis` does.
    """
    if not isinstance(schedule, Schedule):
        raise SamplerValueError(f"schedule must be one with a Schedule's methods, got {schedule!r}")
    program = _Annealing(
        target=target,
        plan=_cycles(n_steps, n_restarts, n_temperatures),
        choice=choose_moves(target, moves),
        schedule=schedule,
    )
    return run_chains(
        program, n_chains, n_jobs, seed, initial_states, progress, checkpoint, resume, time_limit
    )


def _cycles(n_steps: int, n_restarts: int, n_temperatures: int) -> Plan:
    n_steps = check_integer("n_steps", n_steps, 1)
    n_restarts = check_integer("n_restarts", n_restarts, 1)
    n_temperatures = check_integer("n_temperatures", n_temperatures, 1)
    if n_restarts > n_steps:
        raise SamplerValueError(f"n_restarts must be <= n_steps, {n_steps}, got {n_restarts}")
    ends = [cycle * n_steps // n_restarts for cycle in range(n_restarts + 1)]
    lengths = [end - start for start, end in pairwise(ends)]
    return Plan(
        tuple(
            Phase("annealing", length, min(length, n_temperatures), is_traced=True)
            for length in lengths
        )
    )


@dataclass(frozen=True, slots=True)
class _Annealing(Program[S]):
    """Annealing as a `Program`; every phase of its plan is one cycle."""

    method = "anneal"
    trace_names = ("log_density", "acceptance_rate", "inverse_temperature", "best_log_density")
    schedule: Schedule

    def settings(self) -> Mapping[str, object]:
        return {
            "n_steps": self.plan.n_steps,
            "n_restarts": len(self.plan.phases),
            "n_temperatures": self.plan.phases[0].n_blocks,
            "schedule": _schedule_settings(self.schedule),
            "moves": self.choice.settings(),
        }

    def start(self, state: S) -> tuple[tuple[ChainState[S], ...], Memory]:
        return (init(state, self.target),), {"schedule": tuple(self.schedule.start())}

    def run_block(
        self, rng: np.random.Generator, snapshot: Snapshot[S]
    ) -> tuple[tuple[ChainState[S], ...], ChainState[S], Memory, Record[S]]:
        cycle, block = self.plan.locate(snapshot.block)
        n_blocks = cycle.n_blocks
        chain, memory = snapshot.replicas[0], snapshot.memory["schedule"]
        if block == 0 and snapshot.block > 0:
            chain, memory = snapshot.best, self.schedule.start()
        temperature = self.schedule.temperature(memory, block, n_blocks)
        inverse_temperature = 1.0 / check_positive("a schedule's temperature", temperature)
        n_steps = self.plan.n_steps_of(snapshot.block)
        chain, counts = advance_block(
            rng, chain, self.target, self.choice, n_steps, inverse_temperature
        )
        memory = self.schedule.observe(memory, block, n_blocks, chain.log_density)
        best = better_of(snapshot.best, counts)
        record = trace_block(chain, counts, keep_states=False)
        values = {
            **record.values,
            "inverse_temperature": inverse_temperature,
            "best_log_density": best.log_density,
        }
        return (chain,), best, {"schedule": tuple(memory)}, record._replace(values=values)


def _schedule_settings(schedule: Schedule) -> Mapping[str, object]:
    parts: Mapping[str, object] = {}
    if dataclasses.is_dataclass(schedule) and not isinstance(schedule, type):
        parts = dataclasses.asdict(schedule)
    return {"name": type(schedule).__name__, **parts}
