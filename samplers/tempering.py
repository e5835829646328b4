"""Replica exchange: a ladder of chains at falling inverse temperatures that swap their states.

Replica k explores p^beta_k, 1 = beta_0 > beta_1 > ...; neighbors k and k + 1 swap states with
probability min(1, exp((beta_k - beta_{k+1}) (log p(x_{k+1}) - log p(x_k)))), even and odd pairs in
turn (Geyer 1991; the deterministic alternation of Okabe et al. 2001). The draws are those at
beta_0 = 1.

During warm-up the gaps between the logarithms of neighboring inverse temperatures are adapted by
Robbins-Monro steps to the target swap rate (Miasojedow et al. 2013). After warm-up they are fixed,
so that the draws are those of a Markov chain.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from samplers.blocks import BlockEnd, Memory, Program, Snapshot, choose_moves, sampling_plan
from samplers.chains import Enough, run_chains
from samplers.checkpoint import CheckpointSection
from samplers.metropolis import advance_block, better_of, init, sampling_settings, trace_block
from samplers.parameters import Seed, check_integer, check_positive
from samplers.run import Progress, Run
from samplers.types import ChainState, Exchanged, Move, ProvidesExchange, StepCounts, Target

S = TypeVar("S")

STEPS_BETWEEN_SWAPS = 50
STEPS_OF_ADAPTATION = 1_000  # per replica, between two adaptations of the ladder
ADAPTATION_DECAY = 0.6  # the n-th Robbins-Monro step is n^-0.6
LOG_GAP_BOUNDS = (-7.0, 1.5)  # neighbors' inverse temperatures differ by a factor of at most 88


def tempering(
    target: Target[S],
    *,
    n_steps: int,
    n_temperatures: int = 6,
    min_inverse_temperature: float = 0.1,
    swap_target: float = 0.3,
    warmup: float = 0.25,
    n_draws: int = 1000,
    n_chains: int = 4,
    n_jobs: int | None = 1,
    seed: Seed = None,
    initial_states: Sequence[S] | None = None,
    moves: Mapping[str, Move[S]] | None = None,
    keep_states: bool = True,
    progress: Callable[[Progress], object] | None = None,
    checkpoint: str | Path | CheckpointSection | None = None,
    resume: bool = False,
    time_limit: float = math.inf,
    n_rounds: int = 1,
    enough: Enough | None = None,
) -> Run[S]:
    """Draw from a target with modes that a plain chain does not leave.

    Parameters
    ----------
    target : Target
        The density, with any of the hooks in `samplers.types`.
    n_steps : int >= 1
        Steps per replica, warm-up included.
    n_temperatures : int >= 2
        Replicas per chain.
    min_inverse_temperature : float in (0, 1)
        Hottest end of the initial geometric ladder; the adaptation never makes it hotter.
    swap_target : float in (0, 1)
        Target share of accepted swaps. The actual share is higher, and the same for all pairs, if
        the ladder reaches its hottest end.
    warmup, n_draws, n_chains, n_jobs, seed, initial_states, moves, keep_states, progress, \
checkpoint, resume, time_limit, n_rounds, enough
        As for `samplers.metropolis`. All replicas of a chain start in its initial state.

    Returns
    -------
    Run
        Draws, traces and acceptance of the replicas at inverse temperature 1; `extras` has
        "inverse_temperatures" and "swap_acceptance". After Ctrl-C or the time limit, it has the
        results so far.

    Raises
    ------
    SamplerValueError, SamplerError, CheckpointError
        As `samplers.metropolis` does.
    """
    program = _Tempering(
        target=target,
        plan=sampling_plan(n_steps, warmup, n_draws, n_rounds),
        choice=choose_moves(target, moves),
        keep_states=bool(keep_states),
        n_temperatures=check_integer("n_temperatures", n_temperatures, 2),
        min_inverse_temperature=check_positive(
            "min_inverse_temperature", min_inverse_temperature, below=1.0
        ),
        swap_target=check_positive("swap_target", swap_target, below=1.0),
    )
    return run_chains(
        program, n_chains, n_jobs, seed, initial_states, progress, checkpoint, resume, time_limit,
        enough,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Tempering(Program[S]):
    """Replica exchange as a `Program`.

    Its memory has "log_gaps", the logarithms of log(beta_k / beta_{k+1}); "tried" and "accepted",
    swaps per pair of neighbors during sampling; "n_rounds", rounds of swaps so far.
    """

    method = "tempering"
    keep_states: bool
    n_temperatures: int
    min_inverse_temperature: float
    swap_target: float

    def settings(self) -> Mapping[str, object]:
        own = ("n_temperatures", "min_inverse_temperature", "swap_target", "keep_states")
        return {**sampling_settings(self), **{name: getattr(self, name) for name in own}}

    def start(self, state: S) -> tuple[tuple[ChainState[S], ...], Memory]:
        n_gaps = self.n_temperatures - 1
        gap = -math.log(self.min_inverse_temperature) / n_gaps
        memory: Memory = {
            "log_gaps": (math.log(gap),) * n_gaps,
            "tried": (0.0,) * n_gaps,
            "accepted": (0.0,) * n_gaps,
            "n_rounds": (0.0,),
        }
        return (init(state, self.target),) * self.n_temperatures, memory

    def run_block(self, rng: np.random.Generator, snapshot: Snapshot[S]) -> BlockEnd[S]:
        n_left = self.plan.n_steps_of(snapshot.block)
        phase, _ = self.plan.locate(snapshot.block)
        replicas, best, memory = snapshot.replicas, snapshot.best, snapshot.memory
        cold: list[StepCounts[S]] = []
        while n_left > 0:
            # the ladder is adapted between calls only, so that compiled calls take many steps
            n_steps = n_left if phase.is_traced else min(n_left, STEPS_OF_ADAPTATION)
            n_left -= n_steps
            n_rounds = int(memory["n_rounds"][0])
            done = self._exchange(rng, replicas, n_steps, _ladder(memory), n_rounds)
            best = better_of(best, done.counts)
            cold.append(done.counts)
            replicas = tuple(map(ChainState, done.states, done.log_densities))
            memory = self._remembered(memory, done, n_steps, phase.is_traced)
        record = trace_block(replicas[0], _total(cold), self.keep_states)
        return replicas, best, memory, record

    def extras(self, snapshots: tuple[Snapshot[S], ...]) -> dict[str, Any]:
        tried = np.array([snapshot.memory["tried"] for snapshot in snapshots])
        accepted = np.array([snapshot.memory["accepted"] for snapshot in snapshots])
        swap_acceptance = np.full(tried.shape, np.nan)
        np.divide(accepted, tried, out=swap_acceptance, where=tried > 0.0)
        return {
            "inverse_temperatures": np.array([_ladder(snapshot.memory) for snapshot in snapshots]),
            "swap_acceptance": swap_acceptance,
        }

    def _exchange(
        self,
        rng: np.random.Generator,
        replicas: tuple[ChainState[S], ...],
        n_steps: int,
        ladder: tuple[float, ...],
        n_rounds: int,
    ) -> Exchanged[S]:
        """Take steps of all replicas, with swaps, by the target's `exchange` if it has one."""
        target = self.target
        if self.choice.moves is None and isinstance(target, ProvidesExchange):
            states = [replica.state for replica in replicas]
            return target.exchange(rng, states, n_steps, STEPS_BETWEEN_SWAPS, ladder, n_rounds)
        cold: list[StepCounts[S]] = []
        best = replicas[0]
        swaps = np.zeros((3, len(replicas) - 1))
        for begun in range(0, n_steps, STEPS_BETWEEN_SWAPS):
            n_now = min(n_steps - begun, STEPS_BETWEEN_SWAPS)
            advanced = [
                advance_block(rng, replica, target, self.choice, n_now, inverse_temperature)
                for replica, inverse_temperature in zip(replicas, ladder, strict=True)
            ]
            for _, counts in advanced:
                best = better_of(best, counts)
            cold.append(advanced[0][1])
            replicas = _swapped(rng, [chain for chain, _ in advanced], ladder, n_rounds, swaps)
            n_rounds += 1
        total = _total(cold)._replace(best_state=best.state, best_log_density=best.log_density)
        of_replicas, log_densities = zip(*replicas, strict=True)
        return Exchanged(of_replicas, log_densities, total, *map(tuple, swaps.tolist()))

    def _remembered(
        self, memory: Memory, done: Exchanged[S], n_steps: int, is_sampling: bool
    ) -> Memory:
        """Return the memory after some steps: ladder adapted or, in sampling, swaps counted."""
        n_before, n_new = memory["n_rounds"][0], math.ceil(n_steps / STEPS_BETWEEN_SWAPS)
        log_gaps, tried, accepted = (memory[name] for name in ("log_gaps", "tried", "accepted"))
        if is_sampling:
            tried = tuple(map(float.__add__, tried, done.tried))
            accepted = tuple(map(float.__add__, accepted, done.accepted))
        else:
            n_adapted = n_before * STEPS_BETWEEN_SWAPS / STEPS_OF_ADAPTATION
            rates = [probability / n_new for probability in done.probabilities]
            log_gaps = self._adapted(log_gaps, rates, n_adapted)
        n_rounds = (n_before + n_new,)
        return {"log_gaps": log_gaps, "tried": tried, "accepted": accepted, "n_rounds": n_rounds}

    def _adapted(
        self, log_gaps: tuple[float, ...], rates: list[float], n_adapted: float
    ) -> tuple[float, ...]:
        """Widen the gaps between neighbors that would swap too often, and narrow the others.

        The rates of all pairs are used, also of those that do not swap in a round. If the ladder
        would become too hot, all gaps shrink by one factor, so that rates become equal.
        """
        gain = (n_adapted + 1.0) ** -ADAPTATION_DECAY
        low, high = LOG_GAP_BOUNDS
        moved = [
            min(max(log_gap + gain * (rate - self.swap_target), low), high)
            for log_gap, rate in zip(log_gaps, rates, strict=True)
        ]
        longest = -math.log(self.min_inverse_temperature)
        excess = max(0.0, math.log(sum(map(math.exp, moved)) / longest))
        return tuple(log_gap - excess for log_gap in moved)


def _ladder(memory: Memory) -> tuple[float, ...]:
    """Return the inverse temperatures, coldest first."""
    inverse_temperatures = [1.0]
    for log_gap in memory["log_gaps"]:
        inverse_temperatures.append(inverse_temperatures[-1] * math.exp(-math.exp(log_gap)))
    return tuple(inverse_temperatures)


def _swapped(
    rng: np.random.Generator,
    replicas: list[ChainState[S]],
    ladder: tuple[float, ...],
    n_rounds: int,
    swaps: NDArray[np.float64],
) -> tuple[ChainState[S], ...]:
    """Try every second pair of neighbors, and add to `swaps` (3, K - 1), as in `Exchanged`."""
    for pair, (cold, hot) in enumerate(pairwise(ladder)):
        gain = replicas[pair + 1].log_density - replicas[pair].log_density
        probability = math.exp(min(0.0, (cold - hot) * gain))
        swaps[0, pair] += probability
        if pair % 2 == n_rounds % 2:
            swaps[1, pair] += 1.0
            if rng.random() < probability:
                swaps[2, pair] += 1.0
                replicas[pair : pair + 2] = replicas[pair + 1], replicas[pair]
    return tuple(replicas)


def _total(parts: Sequence[StepCounts[S]]) -> StepCounts[S]:
    """Return the sum of successive counts of the cold replica, with the last part's state."""
    last = parts[-1]
    return last._replace(
        proposed={name: sum(part.proposed[name] for part in parts) for name in last.proposed},
        accepted={name: sum(part.accepted[name] for part in parts) for name in last.accepted},
    )
