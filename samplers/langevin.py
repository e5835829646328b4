"""The Metropolis-adjusted Langevin algorithm: steps that follow the gradient of the density.

From x, where the log density has the gradient g(x), a chain proposes

    x' = x + (h^2 / 2) S^2 g(x) + h S xi,    xi standard normal,

h = `step_size`, S = the diagonal matrix of `scales`, and accepts x' as Metropolis-Hastings does,
which leaves the density invariant whatever h, S and even g are (Roberts and Tweedie 1996).

During warm-up h is adapted, for each chain by itself, until the mean acceptance probability is
0.574, which is the most efficient for many dimensions (Roberts and Rosenthal 1998): first doubled
or halved until that is crossed, then by dual averaging (Hoffman and Gelman 2014, algorithms 4
and 5). After it, h is frozen, so that the draws are those of a Markov chain. Departures: dual
averaging is drawn towards where it began, not towards ten times as much, for larger steps save
nothing here, and four times as strongly, for the acceptance of single steps is noisier than that
of trajectories; and the search for where to begin takes steps that drift no farther than they
diffuse, so that a start on a steep slope does not throw it to where a density overflows.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samplers.archive import TOLERANCE
from samplers.blocks import Memory, MoveChoice, Program, Record, Snapshot, sampling_plan
from samplers.chains import Progress, Run, run_chains
from samplers.checkpoint import CheckpointSection
from samplers.metropolis import (
    better_of,
    checked_density,
    init,
    sampling_settings,
    trace_block,
)
from samplers.parameters import SamplerError, SamplerValueError, Seed, check_positive
from samplers.types import ChainState, StepCounts, StepInfo, Target, Vector

__all__ = ["Point", "acceptance_probability", "evaluate", "langevin", "log_q_ratio", "step"]

MOVE = "langevin"  # under which acceptance is reported

ACCEPTANCE = 0.574
# dual averaging, in the letters of Hoffman and Gelman: gamma, t0, kappa
SHRINKAGE, DELAY, FORGETTING = 0.2, 10.0, 0.75
MOST_DOUBLINGS = 100
LOG_STEP_BOUND = 100.0  # only a density that cannot be normalized comes that far


class Point(NamedTuple):
    """A state with what the next step needs to know there.

    Attributes
    ----------
    state : (d,) float64
    log_density : float, nats
    gradient : (d,) float64
        Of the log density; zero where that is -inf.
    """

    state: Vector
    log_density: float
    gradient: Vector


def evaluate(target: Any, state: Vector) -> Point:  # Any: a Target that ProvidesGradient
    """Return the density and gradient of `state`.

    Raises
    ------
    SamplerError
        If the log density is NaN or +inf, or is finite where the gradient is not, or the gradient
        has another shape than the state.
    """
    log_density, gradient = target.log_density_and_gradient(state)
    log_density = checked_density(log_density)
    if log_density == -math.inf:
        return Point(state, log_density, np.zeros_like(state))
    gradient = np.array(gradient, np.float64)  # a copy, for the target may use its array again
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
    rng: np.random.Generator, point: Point, target: Any, lengths: float | Vector
) -> tuple[Point, StepInfo[Vector]]:
    """Take one step; evaluates the target once, at the proposed state.

    Parameters
    ----------
    rng : Generator
    point : Point
        Where the chain is.
    target : Target that ProvidesGradient
    lengths : float or (d,) float64, > 0
        The step size times the scales.

    Returns
    -------
    point : Point
        The proposed one or, after a rejection, the argument itself.
    info : StepInfo

    Raises
    ------
    SamplerError
        As `evaluate` does.
    """
    noise = rng.standard_normal(point.state.size)
    u = rng.random()
    state = point.state + lengths * (noise + 0.5 * lengths * point.gradient)
    if not np.isfinite(state).all():  # beyond the largest number there is no density
        return point, StepInfo(state, -math.inf, -math.inf, False)
    proposed = evaluate(target, state)
    ratio = log_q_ratio(noise, point.gradient + proposed.gradient, lengths)
    info = StepInfo(state, proposed.log_density, ratio, False)
    if u < acceptance_probability(point, info):
        return proposed, info._replace(accepted=True)
    return point, info


def log_q_ratio(noise: Vector, gradients: Vector, lengths: float | Vector) -> float:
    """Return log q(current | proposed) - log q(proposed | current), nats.

    The way back takes the noise -(noise + shift), shift = lengths (g(current) + g(proposed)) / 2,
    so that the ratio is (|noise|^2 - |noise + shift|^2) / 2, here without cancellation.

    Parameters
    ----------
    noise : (d,) float64
        Standard normal; what led from the current state to the proposed one.
    gradients : (d,) float64
        Sum of the gradients at the two.
    lengths : float or (d,) float64, > 0
    """
    shift = 0.5 * lengths * gradients
    return -float(shift @ (noise + 0.5 * shift))


def acceptance_probability(point: Point, info: StepInfo[Vector]) -> float:
    """Return the probability with which the step from `point` was accepted."""
    if info.log_density == -math.inf:
        return 0.0
    return math.exp(min(0.0, info.log_density - point.log_density + info.log_q_ratio))


class _StepSize(NamedTuple):
    """What dual averaging remembers."""

    log_step: float  # of the next step of the warm-up
    log_mean: float  # weighted mean so far, with which a chain samples
    error: float  # mean shortfall of the acceptance
    log_anchor: float  # where it began, towards which it is drawn
    n_seen: float

    @classmethod
    def begun(cls, step_size: float) -> "_StepSize":
        log_step = math.log(step_size)
        return cls(log_step, log_step, 0.0, log_step, 0.0)

    def adapted(self, probability: float) -> "_StepSize":
        """Return the memory after a step that was accepted with this probability."""
        n_seen = self.n_seen + 1.0
        error = self.error + (ACCEPTANCE - probability - self.error) / (n_seen + DELAY)
        log_step = self.log_anchor - math.sqrt(n_seen) / SHRINKAGE * error
        log_step = min(max(log_step, -LOG_STEP_BOUND), LOG_STEP_BOUND)
        log_mean = self.log_mean + n_seen**-FORGETTING * (log_step - self.log_mean)
        return _StepSize(log_step, log_mean, error, self.log_anchor, n_seen)


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
) -> Run[Vector]:
    """Draw vectors from a density whose gradient is known.

    Parameters
    ----------
    target : Target that ProvidesGradient
        A density over arrays of shape (d,), float64, with any of the other hooks in
        `samplers.types` but moves.
    n_steps : int >= 1
        Steps per chain, warm-up included; each evaluates the target once, and the search for where
        the adaptation begins a few times more.
    step_size : float > 0, optional
        Where its adaptation begins, or the step size itself if there is no warm-up. By default
        1.65 d^(-1/6), which is right for independent components whose standard deviations are
        `scales`.
    scales : (d,) array of float > 0, optional
        By what the steps of each component are multiplied, such as its standard deviation; 1 by
        default.
    warmup, n_draws, n_chains, n_jobs, seed, initial_states, keep_states, progress, checkpoint, \
resume
        As for `samplers.metropolis`.

    Returns
    -------
    Run
        Its one move is called "langevin"; `extras` has "step_sizes". What was found so far if the
        run was interrupted by Ctrl-C.

    Raises
    ------
    SamplerValueError
        If a parameter is out of range, the target has no gradient, or an initial state is not of
        shape (d,).
    SamplerError
        If the target breaks its contract, or its two ways to tell a log density disagree.
    CheckpointError
        As `samplers.metropolis` does.

    References
    ----------
    Roberts and Tweedie (1996), Bernoulli 2. Roberts and Rosenthal (1998), JRSS B 60. Hoffman and
    Gelman (2014), JMLR 15.
    """
    for name in ("log_density", "log_density_and_gradient"):
        if not callable(getattr(target, name, None)):
            raise SamplerValueError(f"target must have a {name} method, got {target!r}")
    program = _Langevin(
        target=target,
        plan=sampling_plan(n_steps, warmup, n_draws),
        choice=MoveChoice(None, {MOVE: 1.0}, (MOVE,)),
        keep_states=bool(keep_states),
        step_size=None if step_size is None else check_positive("step_size", step_size),
        scales=None if scales is None else _checked_scales(scales),
    )
    return run_chains(program, n_chains, n_jobs, seed, initial_states, progress, checkpoint, resume)


@dataclass(frozen=True, slots=True)
class _Langevin(Program[Vector]):
    """The engine as a `Program`; its memory is the current state's gradient, and a `_StepSize`."""

    method = "langevin"
    keep_states: bool
    step_size: float | None
    scales: Vector | None

    def settings(self) -> Mapping[str, object]:
        return {
            **sampling_settings(self),
            "keep_states": self.keep_states,
            "step_size": self.step_size,
            "scales": None if self.scales is None else self.scales.tolist(),
        }

    def start(self, state: Vector) -> tuple[tuple[ChainState[Vector], ...], Memory]:
        state = self._checked_state(state)
        log_density = init(state, self.target).log_density
        point = evaluate(self.target, state)
        if not math.isclose(point.log_density, log_density, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise SamplerError(
                "log_density_and_gradient() must tell the log_density() of a state, "
                f"{log_density!r}, got {point.log_density!r}"
            )
        step_size = self.step_size or 1.65 * state.size ** (-1.0 / 6.0)
        return (ChainState(state, point.log_density),), _memory(point, _StepSize.begun(step_size))

    def run_block(
        self, rng: np.random.Generator, snapshot: Snapshot[Vector]
    ) -> tuple[tuple[ChainState[Vector], ...], ChainState[Vector], Memory, Record[Vector]]:
        phase, _ = self.plan.locate(snapshot.block)
        chain, memory = snapshot.replicas[0], snapshot.memory
        best = point = Point(*chain, np.array(memory["gradient"]))
        step_size = _StepSize(*memory["step_size"])
        if snapshot.block == 0 and not phase.is_traced:
            step_size = self._crossing(rng, point, step_size)
        n_steps, n_accepted = self.plan.n_steps_of(snapshot.block), 0
        for _ in range(n_steps):
            log_step = step_size.log_mean if phase.is_traced else step_size.log_step
            before = point
            point, info = step(rng, point, self.target, self._lengths(log_step))
            n_accepted += info.accepted
            if point.log_density > best.log_density:
                best = point
            if not phase.is_traced:
                step_size = step_size.adapted(acceptance_probability(before, info))
        chain = ChainState(point.state, point.log_density)
        counts = StepCounts(
            {MOVE: n_steps}, {MOVE: n_accepted}, point.log_density, best.state, best.log_density
        )
        record = trace_block(chain, counts, self.keep_states)
        return (chain,), better_of(snapshot.best, counts), _memory(point, step_size), record

    def extras(self, snapshots: tuple[Snapshot[Vector], ...]) -> dict[str, Any]:
        kept = [_StepSize(*snapshot.memory["step_size"]) for snapshot in snapshots]
        return {"step_sizes": np.exp([one.log_mean for one in kept])}

    def _lengths(self, log_step: float) -> float | Vector:
        step_size = math.exp(log_step)
        return step_size if self.scales is None else step_size * self.scales

    def _crossing(self, rng: np.random.Generator, point: Point, given: _StepSize) -> _StepSize:
        """Return where single steps from `point` cross the acceptance that is aimed at."""
        drift = float(np.linalg.norm(self._lengths(0.0) * point.gradient))
        log_step = given.log_step
        if drift > 0.0:  # as far as it diffuses, the square root of d
            log_step = min(log_step, math.log(2.0 * math.sqrt(point.state.size) / drift))
        is_short: bool | None = None
        for _ in range(MOST_DOUBLINGS):
            _, info = step(rng, point, self.target, self._lengths(log_step))
            was_short, is_short = is_short, acceptance_probability(point, info) >= ACCEPTANCE
            if was_short not in (None, is_short):
                break
            log_step += math.log(2.0) if is_short else -math.log(2.0)
        return _StepSize.begun(math.exp(log_step))

    def _checked_state(self, given: npt.ArrayLike) -> Vector:
        """Return a state as an array of its own."""
        try:
            state = np.array(given, np.float64)
        except (TypeError, ValueError):
            state = np.empty(())
        if state.ndim != 1 or state.size == 0 or not np.isfinite(state).all():
            raise SamplerValueError(
                f"an initial state must be an array of shape (d,) of finite numbers, got {given!r}"
            )
        if self.scales is not None and self.scales.shape != state.shape:
            raise SamplerValueError(
                f"scales must have the shape of a state, {state.shape}, got {self.scales.shape}"
            )
        return state


def _memory(point: Point, step_size: _StepSize) -> Memory:
    return {"gradient": tuple(point.gradient.tolist()), "step_size": tuple(step_size)}


def _checked_scales(given: npt.ArrayLike) -> Vector:
    try:
        scales = np.array(given, np.float64)
    except (TypeError, ValueError):
        scales = np.empty(())
    if scales.ndim != 1 or not (np.isfinite(scales) & (scales > 0.0)).all():
        raise SamplerValueError(
            f"scales must be an array of shape (d,) of finite numbers > 0, got {given!r}"
        )
    return scales
