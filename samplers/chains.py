"""The loop around every engine: chains in parallel, traces, progress, checkpoints, Ctrl-C.

Each chain owns a generator spawned from the seed. The loop works in rounds: a round takes every
chain the same number of blocks forward, in joblib's workers, and brings back snapshots and
records. How many blocks a round has is chosen so that it lasts about half a second; this decides
how often progress is shown, and nothing else (see `samplers.blocks`).
"""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import joblib
import numpy as np

from samplers.archive import Archive, History
from samplers.blocks import Chunk, Program, Snapshot, describe, run_blocks
from samplers.checkpoint import CheckpointSection, open_section
from samplers.parameters import (
    SamplerValueError,
    Seed,
    check_initial_states,
    check_integer,
    check_n_jobs,
    seed_root,
)
from samplers.run import Progress, Run
from samplers.types import ProvidesInitialState

__all__ = ["ChainOptions", "run_chains"]

S = TypeVar("S")

ROUND_SECONDS = 0.5
ROUND_GROWTH = 10  # a first block may be far cheaper than those that follow
RESERVED_TRACES = ("log_density", "acceptance_rate", "inverse_temperature", "best_log_density")


@dataclass(frozen=True, slots=True)
class ChainOptions(Generic[S]):
    """What all engines let the user say about their chains; see `samplers.metropolis`."""

    n_chains: int
    n_jobs: int | None
    seed: Seed
    initial_states: Sequence[S] | None
    progress: Callable[[Progress], object] | None
    checkpoint: str | Path | CheckpointSection | None
    resume: bool
    time_limit: float = math.inf  # seconds after which no round is begun


def run_chains(program: Program[S], options: ChainOptions[S]) -> Run[S]:
    """Run an engine's chains to the end, or until Ctrl-C or the end of their time."""
    clock = _Clock(options.time_limit)
    n_chains = check_integer("n_chains", options.n_chains, 1)
    n_jobs = check_n_jobs(options.n_jobs)
    if options.progress is not None and not callable(options.progress):
        raise SamplerValueError(f"progress must be callable or None, got {options.progress!r}")
    states = check_initial_states(options.initial_states, n_chains)
    root = seed_root(options.seed)
    section = open_section(options.checkpoint, options.resume)
    archive = None
    if section is not None:
        has_seed = options.seed is not None
        archive = Archive(section, program, n_chains, root if has_seed else None, states)
    history = archive.load() if archive else None
    if history is None:
        history = _begin(program, root, n_chains, states)
    elif history.block == program.plan.n_blocks:
        archive = None  # a finished run is in its file already
    interrupted = False
    try:
        if archive:
            archive.save(history)
        while history.block < program.plan.n_blocks and clock.seconds_left > 0.0:
            chunks = _run_round(program, history, n_jobs, clock)
            history = history.extended(chunks)
            if options.progress is not None:
                options.progress(_report(program, history, chunks))
            if archive:
                archive.save_if_due(history)
        if archive:
            archive.save(history)
    except KeyboardInterrupt:
        interrupted = history.block < program.plan.n_blocks
        if archive:
            archive.save(history)
    return _collect(program, history, clock, interrupted)


class _Clock:
    """Seconds spent per phase, and how many blocks fill a round."""

    def __init__(self, time_limit: float) -> None:
        self.seconds: dict[str, float] = {}
        self.n_blocks = 1
        self._end = time.perf_counter() + time_limit

    @property
    def seconds_left(self) -> float:
        return self._end - time.perf_counter()

    def add_round(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        wanted = max(0.0, min(ROUND_SECONDS, self.seconds_left))
        fitting = int(self.n_blocks * wanted / max(seconds, 1e-9))
        self.n_blocks = min(max(1, fitting), ROUND_GROWTH * self.n_blocks)


def _begin(
    program: Program[S], root: np.random.SeedSequence, n_chains: int, states: tuple[S, ...] | None
) -> History[S]:
    target = program.target
    snapshots = []
    for index, sequence in enumerate(root.spawn(n_chains)):
        rng = np.random.Generator(np.random.PCG64(sequence))
        if states is not None:
            state = states[index]
        elif isinstance(target, ProvidesInitialState):
            state = target.initial_state(rng)
        else:
            raise SamplerValueError(
                "initial_states must be given when the target has no initial_state(), got None"
            )
        replicas, memory = program.start(state)
        snapshots.append(Snapshot(rng.bit_generator.state, replicas, replicas[0], memory, 0))
    for name in describe(target, snapshots[0].best.state):
        if name in RESERVED_TRACES:
            raise SamplerValueError(f"describe() must not use the name of a trace, got {name!r}")
    return History(tuple(snapshots), ((),) * n_chains)


def _run_round(
    program: Program[S], history: History[S], n_jobs: int | None, clock: _Clock
) -> list[Chunk[S]]:
    index, number = program.plan.locate(history.block)
    phase = program.plan.phases[index]
    clock.n_blocks = min(clock.n_blocks, phase.n_blocks - number)
    started = time.perf_counter()
    chunks = _run_chunks(program, history.snapshots, clock.n_blocks, n_jobs)
    clock.add_round(phase.name, time.perf_counter() - started)
    return chunks


def _run_chunks(
    program: Program[S], snapshots: tuple[Snapshot[S], ...], n_blocks: int, n_jobs: int | None
) -> list[Chunk[S]]:
    if n_jobs == 1:
        return [run_blocks(program, snapshot, n_blocks) for snapshot in snapshots]
    parallel = joblib.Parallel(
        n_jobs=n_jobs, prefer="threads" if program.choice.moves is None else None
    )
    parent = os.getpid()
    return list(
        parallel(
            joblib.delayed(_run_in_worker)(program, snapshot, n_blocks, parent)
            for snapshot in snapshots
        )
    )


def _run_in_worker(
    program: Program[S], snapshot: Snapshot[S], n_blocks: int, parent: int
) -> Chunk[S]:
    # Ctrl-C reaches every process of the terminal; only the parent is to act on it, which ends
    # the workers. Signals are handled in main threads, and a remote worker's is not ours.
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return run_blocks(program, snapshot, n_blocks)


def _report(program: Program[S], history: History[S], chunks: Sequence[Chunk[S]]) -> Progress:
    index, _ = program.plan.locate(history.block - 1)
    n_chains = len(chunks)
    current = [chunk.snapshot.replicas[0].log_density for chunk in chunks]
    n_proposed = sum(chunk.n_proposed for chunk in chunks)
    return Progress(
        phase=program.plan.phases[index].name,
        done=program.plan.steps_before(history.block),
        total=program.plan.n_steps,
        best_log_density=max(chunk.snapshot.best.log_density for chunk in chunks),
        log_density=sum(current) / n_chains,
        acceptance_rate=sum(chunk.n_accepted for chunk in chunks) / max(1, n_proposed),
        described={
            name: sum(chunk.described[name] for chunk in chunks) / n_chains
            for name in chunks[0].described
        },
    )


def _collect(program: Program[S], history: History[S], clock: _Clock, interrupted: bool) -> Run[S]:
    snapshots, records = history
    best = max((snapshot.best for snapshot in snapshots), key=lambda chain: chain.log_density)
    if records[0]:
        trace_names, move_names = tuple(records[0][0].values), tuple(records[0][0].proposed)
    else:
        described = describe(program.target, snapshots[0].replicas[0].state)
        trace_names, move_names = (*program.trace_names, *described), program.choice.names
    return Run(
        method=program.method,
        best_state=best.state,
        best_log_density=best.log_density,
        traces={
            name: np.array([[one.values[name] for one in chain] for chain in records], np.float64)
            for name in trace_names
        },
        draws=tuple(
            tuple(one.state for one in chain if one.state is not None) for chain in records
        ),
        final_states=tuple(snapshot.replicas[0].state for snapshot in snapshots),
        proposed={
            name: np.array([[one.proposed[name] for one in chain] for chain in records], np.int64)
            for name in move_names
        },
        accepted={
            name: np.array([[one.accepted[name] for one in chain] for chain in records], np.int64)
            for name in move_names
        },
        seconds=clock.seconds,
        interrupted=interrupted,
        extras=program.extras(snapshots),
    )
