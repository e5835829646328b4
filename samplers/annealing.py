"""Simulated annealing: steps at a falling temperature (Kirkpatrick, Gelatt and Vecchi 1983).

A chain runs one cooling cycle or several; each cycle after the first is reheated from the best
state that the chain has visited. What is returned is the best state ever visited, not the last.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from samplers.blocks import Memory, Phase, Plan, Program, Record, Snapshot, choose_moves
from samplers.chains import ChainOptions, run_chains
from samplers.checkpoint import CheckpointSection
from samplers.errors import SamplerValueError
from samplers.metropolis import (
    advance_block,
    better_of,
    init,
    trace_block,
)
from samplers.parameters import Seed, check_integer, check_positive, check_seconds
from samplers.run import Progress, Run
from samplers.schedules import AdaptiveSchedule, GeometricSchedule, Schedule
from samplers.types import ChainState, Move, Target

__all__ = ["AdaptiveSchedule", "GeometricSchedule", "Schedule", "anneal"]

S = TypeVar("S")

N_TEMPERATURES = 1000  # per cycle; more would only cost calls of a compiled block


def anneal(
    target: Target[S],
    *,
    n_steps: int,
    schedule: Schedule = GeometricSchedule(),  # noqa: B008  # immutable
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
    SamplerValueError
        If a parameter is out of range.
    SamplerError
        If the target or a move breaks its contract.
    CheckpointError
        If the checkpoint cannot be written at the start, or cannot be resumed.
    """
    if not isinstance(schedule, Schedule):
        raise SamplerValueError(f"schedule must be one with a Schedule's methods, got {schedule!r}")
    program = _Annealing(
        target=target,
        plan=_cycles(n_steps, n_restarts, n_temperatures),
        choice=choose_moves(target, moves),
        schedule=schedule,
    )
    seconds = check_seconds("time_limit", time_limit)
    options = ChainOptions(
        n_chains, n_jobs, seed, initial_states, progress, checkpoint, resume, seconds
    )
    return run_chains(program, options)


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
        n_blocks = self.plan.phases[cycle].n_blocks
        chain, memory = snapshot.replicas[0], snapshot.memory["schedule"]
        if block == 0 and cycle > 0:
            chain, memory = snapshot.best, self.schedule.start()
        temperature = self.schedule.temperature(memory, block, n_blocks)
        inverse_temperature = 1.0 / check_positive("a schedule's temperature", temperature)
        chain, counts = advance_block(
            rng,
            chain,
            self.target,
            self.choice,
            self.plan.n_steps_of(snapshot.block),
            inverse_temperature,
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
