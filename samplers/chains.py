"""The loop around every engine: chains in parallel, traces, progress, checkpoints, Ctrl-C.

Each chain owns a generator spawned from the seed. The loop works in rounds: a round runs the same
number of blocks of every chain in joblib's workers, and collects snapshots and records. The number
of blocks in a round is chosen so that it lasts about half a second, on a cluster up to some
seconds. It determines how often progress is shown, and nothing else (see `samplers.blocks`).
"""

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import joblib
import numpy as np
import numpy.typing as npt

from samplers.archive import Archive, History
from samplers.blocks import Chunk, Program, Snapshot, describe, run_blocks
from samplers.checkpoint import CheckpointSection, open_section
from samplers.cluster import results_of_workers, shared_on_cluster
from samplers.parameters import (
    SamplerValueError,
    Seed,
    check_initial_states,
    check_integer,
    check_n_jobs,
    check_real,
    seed_root,
)
from samplers.run import Progress, Run
from samplers.types import ProvidesInitialState

S = TypeVar("S")

Enough: TypeAlias = Callable[[int, Mapping[str, npt.NDArray[np.float64]]], bool]
"""Whether a run may stop, by the round's number, from 1, and traces (n_chains, n_draws)."""

ROUND_SECONDS = 0.5
LONGEST_ROUND = 4.0  # seconds, on a cluster: rounds double until then, as each costs messages
ROUND_GROWTH = 10  # a first block may be much cheaper than later ones
RESERVED_TRACES = ("log_density", "acceptance_rate", "inverse_temperature", "best_log_density")


def run_chains(
    program: Program[S],
    n_chains: int,
    n_jobs: int | None,
    seed: Seed,
    initial_states: Sequence[S] | None,
    progress: Callable[[Progress], object] | None,
    checkpoint: str | Path | CheckpointSection | None,
    resume: bool,
    time_limit: float = math.inf,
    enough: Enough | None = None,
) -> Run[S]:
    """Run an engine's chains to the end, Ctrl-C or `time_limit`; see `samplers.metropolis`."""
    time_limit = check_real("time_limit", time_limit, "a number of seconds >= 0", lambda s: s >= 0)
    end = time.perf_counter() + time_limit
    n_chains = check_integer("n_chains", n_chains, 1)
    n_jobs = check_n_jobs(n_jobs)
    if progress is not None and not callable(progress):
        raise SamplerValueError(f"progress must be callable or None, got {progress!r}")
    states = check_initial_states(initial_states, n_chains)
    root = seed_root(seed)
    section = open_section(checkpoint, resume)
    archive = None
    if section is not None:
        archive = Archive(section, program, n_chains, None if seed is None else root, states)
    history = archive.load() if archive else None
    if history is None:
        history = _begin(program, root, n_chains, states)
    elif _is_over(program, history, enough):
        if archive and history.block < program.plan.n_blocks:
            archive.save(history, is_finished=True)  # the file may not say so yet
        archive = None  # a finished run is in its file already
    workers = _Workers(program, n_jobs)
    clock = _Clock(end, LONGEST_ROUND if workers.shared else ROUND_SECONDS)
    interrupted = is_over = False
    try:
        if archive:
            archive.save(history)
        while not (is_over := _is_over(program, history, enough)) and clock.has_time:
            due = archive.seconds_until_due if archive else math.inf
            chunks = _run_round(program, history, workers, clock, due)
            history = history.extended(chunks)
            if progress is not None:
                progress(_report(program, history, chunks))
            if archive and archive.seconds_until_due <= 0.0:
                archive.save(history)
        if archive:
            archive.save(history, is_finished=is_over)
    except KeyboardInterrupt:
        is_over = is_over or _is_over(program, history, enough)
        interrupted = not is_over
        if archive:
            archive.save(history, is_finished=is_over)
    timed_out = not (interrupted or is_over)
    return _collect(program, history, clock, interrupted, timed_out)


def _is_over(program: Program[S], history: History[S], enough: Enough | None) -> bool:
    """Whether the run is at the plan's end, or at the end of a round that is enough."""
    if history.block == program.plan.n_blocks:
        return True
    if enough is None or history.block not in program.plan.ends_of_rounds():
        return False
    n_before, _ = program.plan.drawn(history.block)
    return bool(enough(n_before + 1, _traces(program, history)))


class _Clock:
    """Seconds spent per phase, and the number of blocks in a round."""

    def __init__(self, end: float, longest_round: float) -> None:
        self.seconds: dict[str, float] = {}
        self._end = end  # of `time.perf_counter`
        self._longest_round, self._round_seconds = longest_round, ROUND_SECONDS
        self._n_blocks, self._took = 1, math.inf  # last round's

    @property
    def seconds_left(self) -> float:
        return self._end - time.perf_counter()

    @property
    def has_time(self) -> bool:
        """Whether a block as long as the last ones would end approximately in time."""
        each = 0.0 if self._took == math.inf else self._took / self._n_blocks
        return 0.0 < self.seconds_left > each - ROUND_SECONDS

    def blocks_of_round(self, due: float) -> int:
        """Return the number of blocks for a round that ends about when a checkpoint is due."""
        wanted = min(self._round_seconds, max(due, ROUND_SECONDS), max(self.seconds_left, 0.0))
        fitting = int(self._n_blocks * wanted / max(self._took, 1e-9))
        return min(max(1, fitting), ROUND_GROWTH * self._n_blocks)

    def add_round(self, phase: str, n_blocks: int, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        self._n_blocks, self._took = n_blocks, seconds
        self._round_seconds = min(2.0 * self._round_seconds, self._longest_round)


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
    program: Program[S], history: History[S], workers: "_Workers[S]", clock: _Clock, due: float
) -> list[Chunk[S]]:
    phase, number = program.plan.locate(history.block)
    n_blocks = min(clock.blocks_of_round(due), phase.n_blocks - number)
    started = time.perf_counter()
    chunks = workers.run(history.snapshots, n_blocks)
    clock.add_round(phase.name, n_blocks, time.perf_counter() - started)
    return chunks


class _Workers(Generic[S]):
    """Workers for chains: this thread, joblib's threads or processes, or a cluster."""

    def __init__(self, program: Program[S], n_jobs: int | None) -> None:
        self._program, self._n_jobs = program, n_jobs
        self.shared = None if n_jobs == 1 else shared_on_cluster(program)

    def run(self, snapshots: tuple[Snapshot[S], ...], n_blocks: int) -> list[Chunk[S]]:
        """Run blocks of every chain."""
        program = self._program
        if self.shared is not None:
            return list(self.shared.map(_run_on_cluster, ((s, n_blocks) for s in snapshots)))
        if self._n_jobs == 1:
            return [run_blocks(program, snapshot, n_blocks) for snapshot in snapshots]
        calls = [(program, snapshot, n_blocks) for snapshot in snapshots]
        if program.choice.moves is not None:
            return list(results_of_workers(run_blocks, calls, self._n_jobs))
        parallel = joblib.Parallel(n_jobs=self._n_jobs, prefer="threads")
        return list(parallel(joblib.delayed(run_blocks)(*call) for call in calls))


def _run_on_cluster(program: Program[S], snapshot: Snapshot[S], n_blocks: int) -> Chunk[S]:
    # Compiled blocks may run in threads, but moves need not be thread-safe.
    if program.choice.moves is not None:
        program = copy.deepcopy(program)
    return run_blocks(program, snapshot, n_blocks)


def _report(program: Program[S], history: History[S], chunks: Sequence[Chunk[S]]) -> Progress:
    phase, _ = program.plan.locate(history.block - 1)
    n_chains = len(chunks)
    current = [chunk.snapshot.replicas[0].log_density for chunk in chunks]
    n_proposed = sum(chunk.n_proposed for chunk in chunks)
    return Progress(
        phase=phase.name,
        done=program.plan.steps_before(history.block),
        total=program.plan.steps_through(history.block - 1),
        best_log_density=max(chunk.snapshot.best.log_density for chunk in chunks),
        log_density=sum(current) / n_chains,
        acceptance_rate=sum(chunk.n_accepted for chunk in chunks) / max(1, n_proposed),
        described={
            name: sum(chunk.described[name] for chunk in chunks) / n_chains
            for name in chunks[0].described
        },
    )


def _collect(
    program: Program[S], history: History[S], clock: _Clock, interrupted: bool, timed_out: bool
) -> Run[S]:
    snapshots = history.snapshots
    best = max((snapshot.best for snapshot in snapshots), key=lambda chain: chain.log_density)
    n_before, counted = program.plan.drawn(history.block)
    records = tuple(chain[counted] for chain in history.records)
    move_names = tuple(records[0][0].proposed) if records[0] else program.choice.names
    proposed, accepted = (
        {name: np.array([[getattr(record, kind)[name] for record in c] for c in records], np.int64)
         for name in move_names}
        for kind in ("proposed", "accepted")
    )  # fmt: skip
    return Run(
        method=program.method,
        best_state=best.state,
        best_log_density=best.log_density,
        traces=_traces(program, history),
        draws=tuple(
            tuple(record.state for record in chain if record.state is not None) for chain in records
        ),
        final_states=tuple(snapshot.replicas[0].state for snapshot in snapshots),
        proposed=proposed,
        accepted=accepted,
        seconds=clock.seconds,
        interrupted=interrupted,
        extras=program.extras(snapshots) | ({"n_rounds": n_before + 1} if n_before else {}),
        timed_out=timed_out,
    )


def _traces(program: Program[S], history: History[S]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the traces of the draws that count, (n_chains, n_draws) each."""
    _, counted = program.plan.drawn(history.block)
    records = [chain[counted] for chain in history.records]
    if records[0]:
        names = tuple(records[0][0].values)
    else:
        described = describe(program.target, history.snapshots[0].replicas[0].state)
        names = (*program.trace_names, *described)
    return {
        name: np.array([[record.values[name] for record in chain] for chain in records], np.float64)
        for name in names
    }
