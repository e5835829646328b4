"""Runs the engines of an estimator's `search` one after the other, with one checkpoint."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, nan
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

import samplers
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.model.ascent import OPTIMIZERS, ascend
from bayescascade.model.diagnostics import fallen_chains
from bayescascade.model.pace import run_in_time
from bayescascade.model.parameters import SAMPLED, SEARCHES, SearchParameters
from bayescascade.model.rounds import OF_CHAINS, STEPS, Rounds, are_apart, has_room
from samplers.types import ProvidesGradient

S = TypeVar("S")

BY_GRADIENT = ("langevin", "ascent", "ascent+langevin")
"""Searches of posteriors over vectors that have ``log_density_and_gradient``."""

SCHEDULE = samplers.GeometricSchedule(initial_temperature=2.0, final_temperature=0.1)
"""For posteriors without their own. Hotter starts would first grow thousands of parts."""

DEFAULT_STEPS = 50_000
"""Default steps per chain and phase for few rows."""

MOST_BLOCKS, _LEAST_BLOCKS = 1000, 125
_FEW_ROWS, _MANY_ROWS = 1_000, 40_000
_ROWS_OF_STEP = 250  # rows that are sorted in the time of a step

_ITERATIONS = 100  # of an ascent, with normal effort
_GRADIENTS_OF_START = 10  # of a chain: of its state, and for its first step size
_OF_CHAINS, _OF_POLISHING = 0.9, 30.0  # share of the time for chains, maximum seconds for polishing

Seed: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None


@dataclass(frozen=True, slots=True)
class Search:
    """The settings of a search, from an estimator; ParameterError if one is out of range."""

    search: str
    n_steps: int | None
    n_chains: int
    n_jobs: int | None
    random_state: Seed
    checkpoint: str | Path | None
    resume: bool
    progress: Callable[[samplers.Progress], object] | None
    time_limit: float | None = None  # seconds; `watch` has the time left
    until: str = "steps"  # or "agreed", if n_steps is None
    effort: str = "normal"  # of the default steps and rounds
    optimizer: str = "lbfgs"  # of an ascent
    max_iter: int | None = None  # iterations of an ascent; None: by effort
    watch: Watch = field(default_factory=lambda: Watch(None))  # one of `time_limit` if not given
    part: str = ""  # prefix of the sections of this search, if several share a checkpoint
    is_last: bool = True  # of them

    def __post_init__(self) -> None:
        check_choice("search", self.search, (*SEARCHES, *BY_GRADIENT))
        for name in ("n_steps", "n_chains", "n_jobs", "until", "effort"):
            SearchParameters.declared()[name].check(getattr(self, name))
        check_choice("optimizer", self.optimizer, tuple(OPTIMIZERS))
        if self.max_iter is not None:
            check_integer("max_iter", self.max_iter, minimum=0)
        if not isinstance(self.random_state, np.random.Generator):
            seed_sequence(self.random_state)
        if not isinstance(self.checkpoint, str | PathLike | None):
            raise ParameterError(f"checkpoint must be a path or None, got {self.checkpoint!r}")
        if self.progress is not None and not callable(self.progress):
            raise ParameterError(f"progress must be callable or None, got {self.progress!r}")
        if self.resume and self.checkpoint is None:
            raise ParameterError("resume must be False without a checkpoint, got True")
        if self.watch.seconds != self.time_limit:
            object.__setattr__(self, "watch", Watch(self.time_limit))

    def report(self, stage: str, share: float | None = None, **described: float) -> None:
        """Report the running stage and its finished share, None if unknown."""
        if self.progress is not None:
            done, total = (0, 0) if share is None else (round(1000 * share), 1000)
            self.progress(samplers.Progress(stage, done, total, nan, nan, nan, described))

    def run(
        self,
        posterior: samplers.Target[S],
        *,
        default_steps: int,
        n_blocks: int = MOST_BLOCKS,
        n_replicas: int = 6,
        rounds: Rounds = OF_CHAINS,
        starts: Sequence[S] | None = None,
    ) -> samplers.Run[S]:
        """Anneal or climb, sample, or both, as `search` says.

        Ctrl-C and the time limit end it with the best result so far. Before sampling, annealing or
        climbing takes up to half of the time. Chains take fewer steps if not all fit.

        A chain samples from the end of its own annealing, so R-hat compares chains that may have
        found different states. If the posterior has ``polished(state)``, which returns a state of
        at least the same probability, each chain's end is polished before sampling, and the best
        state at the end. If it has a ``schedule`` or a maximum of ``n_temperatures``, annealing
        uses them. If it has ``release()``, this is called at the end, to free its caches.

        With normal effort, each chain takes default_steps >= 1 in its first round, and as many, or
        those of `rounds.annealing` times as many, before; see `steps`. It keeps
        n_blocks >= 1 draws; an annealing has n_blocks temperatures, a replica exchange n_replicas
        >= 2. `rounds` limits chains that do not agree, unless `n_steps` or `until` is given. Chains
        start at `starts`, or at the posterior's own starts. ParameterError if the search needs a
        gradient that the posterior does not have.
        """
        assert self.search in (*SAMPLED, *BY_GRADIENT), "exact searches are each family's own"
        try:
            limits = rounds.by(self.effort)
            return self._run(posterior, default_steps, n_blocks, n_replicas, limits, starts)
        finally:
            release = getattr(posterior, "release", None)
            if release is not None:
                release()

    def _run(
        self,
        posterior: samplers.Target[S],
        default_steps: int,
        n_blocks: int,
        n_replicas: int,
        rounds: Rounds,
        starts: Sequence[S] | None,
    ) -> samplers.Run[S]:
        if self.search in BY_GRADIENT and not isinstance(posterior, ProvidesGradient):
            raise ParameterError(
                "search must not need a gradient for a posterior without "
                f"log_density_and_gradient, {type(posterior).__name__}, got {self.search!r}"
            )
        # the third is that of folds: see `cli.classify`
        annealing_seed, of_chains, _, of_replicas = seed_sequence(self.random_state).spawn(4)
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = samplers.Checkpoint(self.checkpoint, resume=self.resume)
        common: dict[str, Any] = {
            "n_steps": self.steps(default_steps),
            "n_blocks": n_blocks,
            "n_chains": self.n_chains,
            "n_jobs": self.n_jobs,
            "progress": self.progress,
        }

        def section(name: str) -> samplers.CheckpointSection | None:
            return None if checkpoint is None else checkpoint.section(self.part + name)

        run: samplers.Run[S] | None = None
        last = _OF_CHAINS if hasattr(posterior, "polished") else 1.0
        is_last = self.search in ("anneal", "ascent")
        if "anneal" in self.search:
            with self.watch.part(last if is_last else 0.5, _OF_POLISHING if is_last else inf):
                schedule = getattr(posterior, "schedule", SCHEDULE)
                n_temperatures = getattr(posterior, "n_temperatures", n_blocks)
                of_annealing = {
                    "n_steps": self.steps(rounds.annealing * default_steps),
                    "n_blocks": min(n_blocks, n_temperatures),
                }
                run = run_in_time(
                    partial(samplers.anneal, schedule=schedule),
                    posterior,
                    self.watch,
                    initial_states=starts,
                    blocks="n_temperatures",
                    seed=annealing_seed,
                    checkpoint=section("first"),
                    **(common | of_annealing),
                )
            run, starts = self._polished(posterior, run, run.final_states)
        if "ascent" in self.search:
            climbing: Any = posterior  # whose states are vectors
            rngs = map(np.random.default_rng, annealing_seed.spawn(self.n_chains))
            if starts is None:
                starts = [climbing.initial_state(rng) for rng in rngs]
            with self.watch.part(1.0 if is_last else 0.5), self.watch.watching():
                climbed: Any = ascend(
                    climbing,
                    cast(Any, starts),
                    max_iter=self.n_iterations,
                    optimizer=self.optimizer,
                    progress=self.progress,
                    section=section("first"),
                    also={"search": self.search, "n_steps": common["n_steps"]},
                )
            run, starts = climbed, climbed.final_states
            if not is_last and not run.interrupted and not self._has_time_for_chains(run):
                run, is_last = replace(run, timed_out=True), True
        if not is_last and not (run and run.interrupted):
            # the first engine has the same section in all searches, so a resumed run of another
            # search is detected; a start from half of a run would not fit the whole run
            own = None if run and run.timed_out else section("last" if run else "first")
            seeds = (of_chains, of_replicas)
            sample = partial(self._sample, posterior, rounds, n_replicas, seeds, common)
            try:
                with self.watch.part(last, _OF_POLISHING):
                    sampled = sample(starts, own, None if own is None else section("exchange"))
                run = sampled if run is None else _best_of(run, sampled)
                run, _ = self._polished(posterior, run, (run.best_state,))
            except KeyboardInterrupt:
                if run is None:
                    raise
                run = replace(run, interrupted=True)
        assert run is not None, "every search runs an engine"
        if checkpoint is not None and self.is_last and not run.is_partial:
            checkpoint.finish()
        return run

    def _has_time_for_chains(self, run: samplers.Run[Any]) -> bool:
        """Return whether the starts of chains fit the time left, by the time of the ascent."""
        n_gradients = 1 + sum(run.extras["n_iterations"])
        each = run.seconds["ascent"] / n_gradients
        return bool(_GRADIENTS_OF_START * self.n_chains * each < self.watch.left)

    def _sample(
        self,
        posterior: samplers.Target[S],
        rounds: Rounds,
        n_replicas: int,
        seeds: Sequence[np.random.SeedSequence],  # of chains, and of replicas
        common: dict[str, Any],
        starts: Sequence[S] | None,
        own: samplers.CheckpointSection | None,
        joined: samplers.CheckpointSection | None,
    ) -> samplers.Run[S]:
        """Sample by chains, in rounds until they agree, or for the given steps."""
        goes_on = self.n_steps is None and self.until == "agreed"
        engine: Callable[..., samplers.Run[Any]] = samplers.metropolis  # Any: or of vectors
        how = {}
        if goes_on:
            how = rounds.of_chains(posterior, common["n_steps"], n_replicas, common["n_blocks"])
        if "langevin" in self.search:
            engine = samplers.langevin
        elif self.search == "tempering":
            engine, how = samplers.tempering, {"n_temperatures": n_replicas}
            if goes_on and rounds.exchange > 0:
                how |= rounds.of_replicas(posterior)
        run_of = partial(run_in_time, posterior=posterior, watch=self.watch, blocks="n_draws")
        run: samplers.Run[S] = run_of(
            engine, initial_states=starts, seed=seeds[0], checkpoint=own, **common, **how
        )
        if (
            not goes_on
            or rounds.exchange == 0
            or engine is not samplers.metropolis
            or run.is_partial
            or not has_room(run.traces)
        ):
            return run
        n_steps, most_rounds = rounds.steps_of_replicas(
            posterior, run, common["n_steps"], n_replicas, common["n_blocks"]
        )
        fewer = {
            "n_steps": n_steps,
            "progress": None if self.progress is None else self._of_replicas,
        }
        try:
            if most_rounds == 0 or not are_apart(posterior, run):
                return run
            of_replicas: samplers.Run[S] = run_of(
                samplers.tempering, initial_states=run.final_states, seed=seeds[1],
                checkpoint=joined, n_temperatures=n_replicas, **(common | fewer),
                **replace(rounds, exchange=most_rounds).of_replicas(posterior),
            )  # fmt: skip
        except KeyboardInterrupt:
            return replace(run, interrupted=True)
        if run.traces["log_density"].size > of_replicas.traces["log_density"].size:  # ended early
            ended = {"interrupted": of_replicas.interrupted, "timed_out": of_replicas.timed_out}
            return replace(_best_of(of_replicas, run), **ended)  # type: ignore[arg-type] # of bool
        n_rounds = {"n_rounds": of_replicas.extras.get("n_rounds", 1)}  # only of replicas
        run = _best_of(run, of_replicas)
        return replace(run, extras=run.extras | n_rounds)

    def _of_replicas(self, report: samplers.Progress) -> None:
        """Report the progress of replicas."""
        assert self.progress is not None, "only asked for where there is one"
        self.progress(report._replace(phase=f"replicas: {report.phase}"))

    def _polished(
        self, posterior: samplers.Target[S], run: samplers.Run[S], states: tuple[S, ...]
    ) -> tuple[samplers.Run[S], tuple[S, ...]]:
        """Return the run and some of its states after polishing."""
        polished = getattr(posterior, "polished", None)
        if polished is None or run.interrupted:
            return run, states
        better: tuple[S, ...] = ()
        try:
            with self.watch.watching():
                for state in states:
                    self.report("polishing", len(better) / len(states))
                    better = (*better, polished(state))
        except OutOfTime:
            run = replace(run, timed_out=True)
        except KeyboardInterrupt:
            return replace(run, interrupted=True), states
        for state, before in zip(better, states, strict=False):
            log_density = -inf if state is before else float(posterior.log_density(state))
            if log_density > run.best_log_density:
                run = replace(run, best_state=state, best_log_density=log_density)
        return run, better + states[len(better) :]

    def steps(self, default: float) -> int:
        """Return `n_steps`, or the steps of a chain by effort, given those of normal effort."""
        return self.n_steps or max(1, int(STEPS[self.effort] * default))

    @property
    def n_iterations(self) -> int:
        """The largest number of iterations of an ascent."""
        return int(STEPS[self.effort] * _ITERATIONS) if self.max_iter is None else self.max_iter

    def rng(self) -> np.random.Generator:
        """Return the generator for draws without a chain."""
        return np.random.default_rng(seed_sequence(self.random_state).spawn(2)[1])

    def sampled(self) -> "Search":
        """Return the sampling search of "auto"."""
        return replace(self, search=SAMPLED[0])


def default_steps(n_distinct: int) -> int:
    """Return the default steps: more for more rows, until each step takes longer."""
    n = n_distinct
    return int(max(50_000, min(max(200_000, 1000 * n), 1_000_000, 40_000_000_000 / max(n, 1))))


def most_blocks(n_distinct: int, n_steps: int | None = None) -> int:
    """Return the maximum number of blocks: fewer for more rows, or for few steps.

    Each block begins by sorting all rows into a state's parts, which takes as long as 100 steps or
    more.
    """
    n = max(n_distinct, 1)
    most = min(MOST_BLOCKS, MOST_BLOCKS * _MANY_ROWS // n)
    if n_steps is not None and n > _FEW_ROWS:
        most = min(most, n_steps * _ROWS_OF_STEP // n)
    return max(_LEAST_BLOCKS, most)


def seed_sequence(random_state: Seed) -> np.random.SeedSequence:
    """Return the seed sequence of `random_state`; ParameterError if it is not a seed."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        (child,) = random_state.spawn(1)
        return np.random.SeedSequence(child.integers(2**63, size=4).tolist())
    if random_state is not None:
        random_state = check_integer("random_state", random_state, minimum=0)
    return np.random.SeedSequence(random_state)


def _best_of(first: samplers.Run[S], second: samplers.Run[S]) -> samplers.Run[S]:
    """Return the second run with the better of both best states, and times and extras of both."""
    better = first if first.best_log_density >= second.best_log_density else second
    known = (run.extras.get("fallen", 0) for run in (first, second))
    fallen = max(fallen_chains(first.traces), *known)
    return replace(
        second,
        best_state=better.best_state,
        best_log_density=better.best_log_density,
        timed_out=first.timed_out or second.timed_out,
        seconds=dict(Counter(first.seconds) + Counter(second.seconds)),
        extras={**first.extras, **second.extras, "fallen": fallen},
    )
