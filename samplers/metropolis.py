"""Metropolis-Hastings: the step that all engines use, and the plain engine.

A proposal x' drawn from q(. | x) is accepted with probability

    min(1, exp(beta (log p(x') - log p(x)) + log q(x | x') - log q(x' | x))),

beta = `inverse_temperature`, which leaves p^beta invariant (Metropolis et al. 1953; Hastings 1970,
equation 6). Annealing and tempering use the same step at other temperatures.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import numpy as np

from samplers.blocks import (
    BlockEnd,
    Memory,
    MoveChoice,
    Program,
    Record,
    Snapshot,
    choose_moves,
    sampling_plan,
)
from samplers.chains import Enough, run_chains
from samplers.checkpoint import CheckpointSection
from samplers.parameters import SamplerError, Seed
from samplers.run import Progress, Run
from samplers.types import ChainState, Move, StepCounts, StepInfo, Target

S = TypeVar("S")


def init(state: S, target: Target[S]) -> ChainState[S]:
    """Return a chain that starts in `state`.

    Raises
    ------
    SamplerError
        If the log density of `state` is not finite.
    """
    log_density = checked_density(target.log_density(state))
    if log_density == -math.inf:
        raise SamplerError("the log density of an initial state must be finite, got -inf")
    return ChainState(state, log_density)


def step(
    rng: np.random.Generator,
    chain: ChainState[S],
    target: Target[S],
    move: Move[S],
    inverse_temperature: float = 1.0,
) -> tuple[ChainState[S], StepInfo[S]]:
    """Take one Metropolis-Hastings step.

    Parameters
    ----------
    rng : Generator
    chain : ChainState
        The current state.
    target : Target
    move : Move
        The move of this step.
    inverse_temperature : float >= 0
        The step leaves exp(inverse_temperature * log_density) invariant.

    Returns
    -------
    chain : ChainState
        The proposed state or, after a rejection, the argument itself.
    info : StepInfo

    Raises
    ------
    SamplerError
        If the target's log density or the move's ratio is NaN or +inf.
    """
    proposal = move.propose(rng, chain.state)
    if proposal.log_q_ratio == -math.inf:
        return chain, StepInfo(proposal.state, -math.inf, -math.inf, False)
    if not proposal.log_q_ratio < math.inf:
        raise SamplerError(f"log_q_ratio must be a number or -inf, got {proposal.log_q_ratio}")
    log_density = checked_density(target.log_density(proposal.state))
    accepted = False  # also at inverse temperature 0: the difference would be NaN
    if log_density > -math.inf:
        log_ratio = inverse_temperature * (log_density - chain.log_density) + proposal.log_q_ratio
        u = rng.random()  # always drawn: rounding near 0 must not change later draws
        accepted = log_ratio >= 0.0 or u < math.exp(log_ratio)
    info = StepInfo(proposal.state, log_density, float(proposal.log_q_ratio), accepted)
    return (ChainState(proposal.state, log_density) if accepted else chain), info


def advance_block(
    rng: np.random.Generator,
    chain: ChainState[S],
    target: Target[S],
    choice: MoveChoice[S],
    n_steps: int,
    inverse_temperature: float,
) -> tuple[ChainState[S], StepCounts[S]]:
    """Take `n_steps` >= 1 random moves by `step`; without moves, by the target's `advance`."""
    moves, weights = choice.moves, choice.weights
    if moves is None:
        counts: StepCounts[S]
        state, counts = target.advance(rng, chain.state, n_steps, inverse_temperature)  # type: ignore[attr-defined] # see `choose_moves`
        checked_density(counts.best_log_density)
        return ChainState(state, checked_density(counts.log_density)), counts
    names = list(moves)
    cumulative = list(accumulate(1.0 if weights is None else weights[name] for name in names))
    total = cumulative.pop()  # rounding cannot select beyond the end without it
    proposed = dict.fromkeys(names, 0)
    accepted = dict.fromkeys(names, 0)
    best = chain
    for _ in range(n_steps):
        name = names[bisect_right(cumulative, rng.random() * total)]
        chain, info = step(rng, chain, target, moves[name], inverse_temperature)
        proposed[name] += 1
        accepted[name] += info.accepted
        if chain.log_density > best.log_density:
            best = chain
    return chain, StepCounts(proposed, accepted, chain.log_density, best.state, best.log_density)


def metropolis(
    target: Target[S],
    *,
    n_steps: int,
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
    """Draw from a target by Metropolis-Hastings.

    Parameters
    ----------
    target : Target
        The density, with any of the hooks in `samplers.types`.
    n_steps : int >= 1
        Steps per chain, warm-up included.
    warmup : float in [0, 1)
        Share of the steps discarded at the start. It also gets the steps that do not divide evenly
        among the draws.
    n_draws : int >= 1
        Draws kept per chain, evenly spaced; fewer when there are fewer steps.
    n_chains : int >= 1
    n_jobs : int or None
        Number of workers, as in joblib; None: as set by `joblib.parallel_config`. The result does
        not depend on it.
    seed : int, SeedSequence, Generator or None
        The result is a function of the seed and the settings.
    initial_states : sequence of S, one per chain, or None
        None: from the target's `initial_state`.
    moves : Mapping of str to Move, or None
        None: the target's `advance` or, without one, its `moves`. Weights are those of the target's
        `move_weights` if it names the moves, and equal otherwise.
    keep_states : bool
        Whether `Run.draws` holds the states.
    progress : callable or None
        Called with a `Progress` about twice a second, in this process.
    checkpoint : str, Path, CheckpointSection or None
        Where to save the run every few seconds; see `samplers.checkpoint`.
    resume : bool
        Whether to continue the run in `checkpoint`, if there is one.
    time_limit : float >= 0, seconds
        Time after which to stop before the last draw; the number of draws then depends on the
        machine. All chains finish the work in progress, about half a second.
    n_rounds : int >= 1
        Maximum number of rounds. Each round after the first continues the chains. It takes as many
        steps as all earlier ones, which become its warm-up, and gives as many draws. The draws are
        those of the last round.
    enough : callable or None
        Called after each round with its number, from 1, and its traces; returns whether the run may
        stop. None: all rounds are run. The result depends on it, but checkpoints do not record it.

    Returns
    -------
    Run
        After Ctrl-C or the time limit, it has the results so far.

    Raises
    ------
    SamplerValueError
        If a parameter is out of range.
    SamplerError
        If the target or a move breaks its contract.
    CheckpointError
        If the checkpoint cannot be written at the start, or cannot be resumed.
    """
    plan, choice = sampling_plan(n_steps, warmup, n_draws, n_rounds), choose_moves(target, moves)
    program = _Metropolis(target=target, plan=plan, choice=choice, keep_states=bool(keep_states))
    return run_chains(
        program, n_chains, n_jobs, seed, initial_states, progress, checkpoint, resume, time_limit,
        enough,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Metropolis(Program[S]):
    """The plain engine as a `Program`."""

    method = "metropolis"
    keep_states: bool

    def settings(self) -> Mapping[str, object]:
        return {**sampling_settings(self), "keep_states": self.keep_states}

    def start(self, state: S) -> tuple[tuple[ChainState[S], ...], Memory]:
        return (init(state, self.target),), {}

    def run_block(self, rng: np.random.Generator, snapshot: Snapshot[S]) -> BlockEnd[S]:
        (chain,), n_steps = snapshot.replicas, self.plan.n_steps_of(snapshot.block)
        chain, counts = advance_block(rng, chain, self.target, self.choice, n_steps, 1.0)
        record = trace_block(chain, counts, self.keep_states)
        return (chain,), better_of(snapshot.best, counts), {}, record


def sampling_settings(program: Program[S]) -> dict[str, object]:
    """Return the settings that draws depend on, for comparison on resume."""
    traced = [phase for phase in program.plan.phases if phase.is_traced]
    n_steps = sum(phase.n_steps for phase in program.plan.phases if phase not in traced[1:])
    rounds = {"n_rounds": len(traced)} if len(traced) > 1 else {}  # not in older files
    return {
        "n_steps": n_steps,
        "n_draws": traced[0].n_blocks,
        "n_warmup": n_steps - traced[0].n_steps,
        **rounds,
        "moves": program.choice.settings(),
    }


def trace_block(chain: ChainState[S], counts: StepCounts[S], keep_states: bool) -> Record[S]:
    """Return the record of a block that ended in `chain`."""
    n_proposed = sum(counts.proposed.values())
    values = {
        "log_density": chain.log_density,
        "acceptance_rate": float(sum(counts.accepted.values()) / max(1, n_proposed)),
    }
    state = chain.state if keep_states else None
    return Record(values, counts.proposed, counts.accepted, state)


def better_of(best: ChainState[S], counts: StepCounts[S]) -> ChainState[S]:
    """Return the better of the best so far and a block's best; the former in a tie."""
    if counts.best_log_density > best.log_density:
        return ChainState(counts.best_state, float(counts.best_log_density))
    return best


def checked_density(log_density: float) -> float:
    """Return a target's log density as a float; SamplerError if it is NaN or +inf."""
    value = float(log_density)
    if not value < math.inf:
        raise SamplerError(f"the target's log density must be a number or -inf, got {value}")
    return value
