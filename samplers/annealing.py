"""Simulated annealing: steps at a falling temperature (Kirkpatrick, Gelatt and Vecchi 1983).

A chain runs one cooling cycle or several; each cycle after the first starts again hot, from the
best state that the chain has visited. The result is the best state ever visited, not the last.

At temperature T a chain is at log_density / T. A cooling schedule gives the temperature of each
block of a cycle. It has no state, so a cycle can be interrupted and resumed exactly.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from samplers.blocks import BlockEnd, ChainPlan, Memory, Phase, Program, Snapshot, choose_moves
from samplers.chains import run_chains
from samplers.checkpoint import CheckpointSection
from samplers.metropolis import advance_block, better_of, init, trace_block
from samplers.parameters import SamplerValueError, Seed, check_integer, check_positive
from samplers.run import Progress, Run
from samplers.types import ChainState, Move, Target

S = TypeVar("S")
N_TEMPERATURES = 1000  # per cycle; more would only cost calls of compiled blocks


@dataclass(frozen=True, slots=True)
class GeometricSchedule:
    """Cool by the same factor from block to block; subclasses may cool differently.

    Parameters
    ----------
    initial_temperature, final_temperature : float > 0
        Temperatures of a cycle's first and last block; the final one may not be higher. A cycle
        of one block has the final temperature.
    """

    initial_temperature: float = 10.0
    final_temperature: float = 0.1

    def __post_init__(self) -> None:
        initial = check_positive("initial_temperature", self.initial_temperature)
        if check_positive("final_temperature", self.final_temperature) > initial:
            raise SamplerValueError(
                f"final_temperature must be <= initial_temperature, {initial:g}, "
                f"got {self.final_temperature:g}"
            )

    def temperature(self, block: int, n_blocks: int) -> float:
        """Return initial^(1 - x) final^x, with x = block / (n_blocks - 1)."""
        if block == n_blocks - 1:
            return self.final_temperature
        ratio = self.final_temperature / self.initial_temperature
        return float(self.initial_temperature * ratio ** (block / (n_blocks - 1)))


def anneal(
    target: Target[S],
    *,
    n_steps: int,
    schedule: GeometricSchedule = GeometricSchedule(),
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
    """Search for the most probable state of a target.

    Parameters
    ----------
    target : Target
        The density, with any of the hooks in `samplers.types`.
    n_steps : int >= 1
        Steps per chain, over all cycles.
    schedule : GeometricSchedule
        How a cycle cools.
    n_restarts : int >= 1, <= n_steps
        Number of cooling cycles per chain.
    n_temperatures : int >= 1
        Temperatures of a cycle; fewer when there are fewer steps.
    n_chains, n_jobs, seed, initial_states, moves, progress, checkpoint, resume
        As for `samplers.metropolis`.
    time_limit : float >= 0, seconds
        Time after which to stop before the last temperature; the number of temperatures then
        depends on the machine. All chains finish the current temperature.

    Returns
    -------
    Run
        Its traces have one value per temperature; `draws` is empty. After Ctrl-C or the time limit,
        it has the results so far.

    Raises
    ------
    SamplerValueError, SamplerError, CheckpointError
        As `samplers.metropolis` does.
    """
    if not isinstance(schedule, GeometricSchedule):
        raise SamplerValueError(f"schedule must be a GeometricSchedule, got {schedule!r}")
    n_steps = check_integer("n_steps", n_steps, 1)
    n_restarts = check_integer("n_restarts", n_restarts, 1)
    n_temperatures = check_integer("n_temperatures", n_temperatures, 1)
    if n_restarts > n_steps:
        raise SamplerValueError(f"n_restarts must be <= n_steps, {n_steps}, got {n_restarts}")
    ends = [cycle * n_steps // n_restarts for cycle in range(n_restarts + 1)]
    lengths = [end - start for start, end in pairwise(ends)]
    phases = (Phase("annealing", n, min(n, n_temperatures), is_traced=True) for n in lengths)
    plan, choice = ChainPlan(tuple(phases)), choose_moves(target, moves)
    program = _Annealing(target=target, plan=plan, choice=choice, schedule=schedule)
    return run_chains(
        program, n_chains, n_jobs, seed, initial_states, progress, checkpoint, resume, time_limit
    )


@dataclass(frozen=True, slots=True)
class _Annealing(Program[S]):
    """Annealing as a `Program`; every phase of its plan is one cycle."""

    method = "anneal"
    trace_names = ("log_density", "acceptance_rate", "inverse_temperature", "best_log_density")
    schedule: GeometricSchedule

    def settings(self) -> Mapping[str, object]:
        return {
            "n_steps": self.plan.n_steps,
            "n_restarts": len(self.plan.phases),
            "n_temperatures": self.plan.phases[0].n_blocks,
            "schedule": {"name": type(self.schedule).__name__, **asdict(self.schedule)},
            "moves": self.choice.settings(),
        }

    def start(self, state: S) -> tuple[tuple[ChainState[S], ...], Memory]:
        return (init(state, self.target),), {}

    def run_block(self, rng: np.random.Generator, snapshot: Snapshot[S]) -> BlockEnd[S]:
        cycle, block = self.plan.locate(snapshot.block)
        reheated = block == 0 and snapshot.block > 0
        chain = snapshot.best if reheated else snapshot.replicas[0]
        temperature = self.schedule.temperature(block, cycle.n_blocks)
        inverse_temperature = 1.0 / check_positive("a schedule's temperature", temperature)
        n_steps = self.plan.n_steps_of(snapshot.block)
        chain, counts = advance_block(
            rng, chain, self.target, self.choice, n_steps, inverse_temperature
        )
        best = better_of(snapshot.best, counts)
        record = trace_block(chain, counts, keep_states=False)
        own = {"inverse_temperature": inverse_temperature, "best_log_density": best.log_density}
        return (chain,), best, {}, record._replace(values={**record.values, **own})
