"""The Metropolis-adjusted Langevin algorithm: steps that follow the gradient of the density.

From x, where the log density has the gradient g(x), a chain proposes

    x' = x + (h^2 / 2) S^2 g(x) + h S xi,    xi standard normal,

h = `step_size`, S = the diagonal matrix of `scales`, and accepts x' by Metropolis-Hastings, which
leaves the density invariant for any h, S and even g (Roberts and Tweedie 1996).

During warm-up, each chain adapts its own h and S; see `samplers.adaptation`. h is adapted to a mean
acceptance probability of 0.574, the most efficient in many dimensions (Roberts and Rosenthal 1998),
and S to the standard deviations of the components. After warm-up both are fixed, so that the draws
are those of a Markov chain.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samplers.adaptation import Spread, StepSize, window_ends
from samplers.archive import TOLERANCE
from samplers.blocks import BlockEnd, Memory, MoveChoice, Program, Snapshot, sampling_plan
from samplers.chains import Enough, run_chains
from samplers.checkpoint import CheckpointSection
from samplers.metropolis import better_of, checked_density, init, sampling_settings, trace_block
from samplers.parameters import SamplerError, SamplerValueError, Seed, check_positive
from samplers.run import Progress, Run
from samplers.types import ChainState, StepCounts, StepInfo, Target, Vector

MOVE = "langevin"  # name of the move in reports

ACCEPTANCE = 0.574
MOST_DOUBLINGS = 100


class Point(NamedTuple):
    """A state with its log density and gradient."""

    state: Vector  # (d,) float64
    log_density: float  # nats
    gradient: Vector  # (d,) float64, of the log density; zero where that is -inf


def evaluate(target: Any, state: Vector) -> Point:  # Any: a Target that ProvidesGradient
    """Return density and gradient; SamplerError for NaN, +inf, or a gradient of another shape."""
    log_density, gradient = target.log_density_and_gradient(state)
    log_density = checked_density(log_density)
    if log_density == -math.inf:
        return Point(state, log_density, np.zeros_like(state))
    gradient = np.array(gradient, np.float64)  # a copy, because the target may reuse its array
    if gradient.shape != state.shape:
        raise SamplerError(
            f"the target's gradient must have the state's shape, {state.shape}, "
            f"got {gradient.shape}"
        )
    if not np.isfinite(gradient).all():
        raise SamplerError(
            "the target's gradient must be finite where its log density is, got "
            f"{gradient[~np.isfinite(gradient)][0]}"
        )
    return Point(state, log_density, gradient)


def step(
    rng: np.random.Generator, point: Point, target: Any, lengths: Vector
) -> tuple[Point, StepInfo[Vector]]:
    """Take one step from `point`; evaluates the target once, at the proposed state.

    lengths (d,) float64 > 0: the step size times the scales. The returned point is the proposed one
    or, after a rejection, the argument itself. Errors: see `evaluate`.
    """
    noise = rng.standard_normal(point.state.size)
    u = rng.random()
    state = point.state + lengths * (noise + 0.5 * lengths * point.gradient)
    if not np.isfinite(state).all():  # overflow: no density there
        return point, StepInfo(state, -math.inf, -math.inf, False)
    proposed = evaluate(target, state)
    ratio = log_q_ratio(noise, point.gradient + proposed.gradient, lengths)
    info = StepInfo(state, proposed.log_density, ratio, False)
    if u < acceptance_probability(point, info):
        return proposed, info._replace(accepted=True)
    return point, info


def log_q_ratio(noise: Vector, gradients: Vector, lengths: Vector) -> float:
    """Return log q(current | proposed) - log q(proposed | current), nats.

    The reverse step has the noise -(noise + shift), shift = lengths (g(current) + g(proposed)) / 2.
    So the ratio is (|noise|^2 - |noise + shift|^2) / 2, computed without cancellation.

    noise (d,) float64: standard normal noise of the step from the current to the proposed state;
    gradients (d,) float64: sum of the gradients at both; lengths (d,) float64 > 0.
    """
    shift = 0.5 * lengths * gradients
    return -float(shift @ (noise + 0.5 * shift))


def acceptance_probability(point: Point, info: StepInfo[Vector]) -> float:
    """Return the acceptance probability of a step from `point`."""
    if info.log_density == -math.inf:
        return 0.0
    return math.exp(min(0.0, info.log_density - point.log_density + info.log_q_ratio))


def langevin(
    target: Target[Vector],
    *,
    n_steps: int,
    warmup: float = 0.25,
    n_draws: int = 1000,
    n_chains: int = 4,
    n_jobs: int | None = 1,
    seed: Seed = None,
    initial_states: Sequence[Vector] | None = None,
    step_size: float | None = None,
    scales: npt.ArrayLike | None = None,
    keep_states: bool = True,
    progress: Callable[[Progress], object] | None = None,
    checkpoint: str | Path | CheckpointSection | None = None,
    resume: bool = False,
    time_limit: float = math.inf,
    n_rounds: int = 1,
    enough: Enough | None = None,
) -> Run[Vector]:
    """Draw vectors from a density whose gradient is known.

    Parameters
    ----------
    target : Target that ProvidesGradient
        A density over arrays of shape (d,), float64, with any of the other hooks in
        `samplers.types` but moves.
    n_steps : int >= 1
        Steps per chain, warm-up included. Each step evaluates the target once; the search for the
        initial step size needs a few more evaluations.
    step_size : float > 0, optional
        Initial step size of the adaptation, or the step size itself if there is no warm-up. By
        default 1.65 d^(-1/6), the best for independent normal components whose standard deviations
        are the scales.
    scales : (d,) array of float > 0, optional
        Factor of the steps of each component, such as its standard deviation. By default they are
        adapted during warm-up, or are 1 if warm-up has fewer than 200 steps.
    warmup, n_draws, n_chains, n_jobs, seed, initial_states, keep_states, progress, checkpoint, \
resume, time_limit, n_rounds, enough
        As for `samplers.metropolis`.

    Returns
    -------
    Run
        Its one move is called "langevin"; `extras` has "step_sizes" and "scales". After Ctrl-C or
        the time limit, it has the results so far.

    Raises
    ------
    SamplerValueError
        If a parameter is out of range, the target has no gradient, or an initial state is not of
        shape (d,).
    SamplerError
        If the target breaks its contract, or its two methods for the log density disagree.
    CheckpointError
        As `samplers.metropolis` does.

    References
    ----------
    Roberts and Tweedie (1996), Bernoulli 2. Roberts and Rosenthal (1998), JRSS B 60. Hoffman and
    Gelman (2014), JMLR 15.

    Examples
    --------
    >>> class Normal:
    ...     def log_density(self, x):
    ...         return -0.5 * float(x @ x)
    ...     def log_density_and_gradient(self, x):
    ...         return self.log_density(x), -x
    >>> run = langevin(Normal(), n_steps=2000, initial_states=[np.zeros(3)] * 4, seed=1)
    >>> np.array(run.draws).shape
    (4, 1000, 3)
    """
    for name in ("log_density", "log_density_and_gradient"):
        if not callable(getattr(target, name, None)):
            raise SamplerValueError(f"target must have a {name} method, got {target!r}")
    if scales is not None:
        rule = "finite numbers > 0"
        scales = _checked_vector("scales", scales, rule, lambda v: np.isfinite(v) & (v > 0.0))
    program = _Langevin(
        target=target,
        plan=sampling_plan(n_steps, warmup, n_draws, n_rounds),
        choice=MoveChoice(None, {MOVE: 1.0}, (MOVE,)),
        keep_states=bool(keep_states),
        step_size=None if step_size is None else check_positive("step_size", step_size),
        scales=scales,
    )
    return run_chains(
        program, n_chains, n_jobs, seed, initial_states, progress, checkpoint, resume, time_limit,
        enough,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Langevin(Program[Vector]):
    """The engine as a `Program`.

    Its memory: "gradient", of the current state; "step_size", a `StepSize`; "scales"; and "mean",
    "squares" and "n_seen" of the window's `Spread`.
    """

    method = "langevin"
    keep_states: bool
    step_size: float | None
    scales: Vector | None

    def settings(self) -> Mapping[str, object]:
        scales = None if self.scales is None else self.scales.tolist()
        own = {"keep_states": self.keep_states, "step_size": self.step_size, "scales": scales}
        return {**sampling_settings(self), **own}

    def start(self, state: Vector) -> tuple[tuple[ChainState[Vector], ...], Memory]:
        state = self._checked_state(state)
        log_density = init(state, self.target).log_density
        point = evaluate(self.target, state)
        if not math.isclose(point.log_density, log_density, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise SamplerError(
                "log_density_and_gradient() must return the same log density as log_density(), "
                f"{log_density!r}, got {point.log_density!r}"
            )
        d = state.size
        step_size = StepSize.begun(
            _usual_log_step(d) if self.step_size is None else math.log(self.step_size)
        )
        scales = np.ones(d) if self.scales is None else self.scales
        memory = _memory(point, step_size, scales, Spread.empty(d))
        return (ChainState(state, point.log_density),), memory

    def run_block(self, rng: np.random.Generator, snapshot: Snapshot[Vector]) -> BlockEnd[Vector]:
        phase, _ = self.plan.locate(snapshot.block)
        is_sampling = phase.is_traced
        n_warmup = 0 if is_sampling else phase.n_steps
        ends = window_ends(n_warmup) if self.scales is None else []
        point, step_size, scales, spread = _remembered(snapshot)
        best, n_accepted = point, 0
        first = self.plan.steps_before(snapshot.block)
        n_steps = self.plan.n_steps_of(snapshot.block)
        for number in range(first, first + n_steps):
            if number == 0 and not is_sampling:
                step_size = self._crossing(rng, point, step_size.log_step, scales)
            if number in ends:
                scales, spread = spread.deviations(otherwise=scales), Spread.empty(scales.size)
                step_size = self._crossing(rng, point, _usual_log_step(scales.size), scales)
            log_step = step_size.log_mean if is_sampling else step_size.log_step
            before = point
            point, info = step(rng, point, self.target, math.exp(log_step) * scales)
            n_accepted += info.accepted
            if point.log_density > best.log_density:
                best = point
            if not is_sampling:
                step_size = step_size.adapted(ACCEPTANCE - acceptance_probability(before, info))
            if ends and number < ends[-1]:
                spread = spread.joined_by(point.state)
        chain = ChainState(point.state, point.log_density)
        counts = StepCounts(
            {MOVE: n_steps}, {MOVE: n_accepted}, point.log_density, best.state, best.log_density
        )
        record = trace_block(chain, counts, self.keep_states)
        memory = _memory(point, step_size, scales, spread)
        return (chain,), better_of(snapshot.best, counts), memory, record

    def extras(self, snapshots: tuple[Snapshot[Vector], ...]) -> dict[str, Any]:
        ends = [_remembered(snapshot) for snapshot in snapshots]
        return {
            "step_sizes": np.exp([step_size.log_mean for _, step_size, _, _ in ends]),
            "scales": np.array([scales for _, _, scales, _ in ends]),
        }

    def _crossing(
        self, rng: np.random.Generator, point: Point, log_step: float, scales: Vector
    ) -> StepSize:
        """Return the step size at which single steps from `point` cross the target acceptance.

        The drift of the first step is at most its diffusion, so that a start on a steep slope does
        not lead to states where the density overflows.
        """
        drift = float(np.linalg.norm(scales * point.gradient))
        if drift > 0.0:
            log_step = min(log_step, math.log(2.0 * math.sqrt(scales.size) / drift))
        is_short: bool | None = None
        for _ in range(MOST_DOUBLINGS):
            _, info = step(rng, point, self.target, math.exp(log_step) * scales)
            was_short, is_short = is_short, acceptance_probability(point, info) >= ACCEPTANCE
            if was_short not in (None, is_short):
                break
            log_step += math.log(2.0) if is_short else -math.log(2.0)
        return StepSize.begun(log_step)

    def _checked_state(self, given: npt.ArrayLike) -> Vector:
        """Return a copy of a state, checked."""
        state = _checked_vector("an initial state", given, "finite numbers", np.isfinite)
        if self.scales is not None and self.scales.shape != state.shape:
            raise SamplerValueError(
                f"scales must have the shape of a state, {state.shape}, got {self.scales.shape}"
            )
        return state


def _usual_log_step(d: int) -> float:
    """Return the log of the best step size for a normal density with these scales."""
    return math.log(1.65) - math.log(d) / 6.0


def _memory(point: Point, step_size: StepSize, scales: Vector, spread: Spread) -> Memory:
    return {
        "gradient": tuple(point.gradient.tolist()),
        "step_size": tuple(step_size),
        "scales": tuple(scales.tolist()),
        "n_seen": (float(spread.n_seen),),
        "mean": tuple(spread.mean.tolist()),
        "squares": tuple(spread.squares.tolist()),
    }


def _remembered(snapshot: Snapshot[Vector]) -> tuple[Point, StepSize, Vector, Spread]:
    (chain,), memory = snapshot.replicas, snapshot.memory
    gradient, scales, mean, squares = (
        np.array(memory[name]) for name in ("gradient", "scales", "mean", "squares")
    )
    spread = Spread(int(memory["n_seen"][0]), mean, squares)
    return Point(*chain, gradient), StepSize(*memory["step_size"]), scales, spread


def _checked_vector(
    name: str, given: npt.ArrayLike, rule: str, is_met: Callable[[Vector], npt.NDArray[np.bool_]]
) -> Vector:
    try:
        vector = np.array(given, np.float64)
    except (TypeError, ValueError):
        vector = np.empty(())
    if vector.ndim != 1 or vector.size == 0 or not is_met(vector).all():
        raise SamplerValueError(
            f"{name} must be an array of shape (d,), d >= 1, of {rule}, got {given!r}"
        )
    return vector
