"""Alternation over the shares of the full model, and gate and local model (algorithm 4, Adapt-Lin).

Each round finds the best shares q (`objective.best_split`) and then lowers, at these q,

    sum_i w_i [(1 - q_i)(l_1i + log(1 + exp(g_i))) + q_i log(1 + exp(-g_i))] + Omega

over g and f_1. No term has both, so each takes Newton steps of a logistic regression: g with labels
q, and f_1 on rows weighted by 1 - q (with a bound of the curvature for several classes). Each step
is shortened until the sum has fallen. With the group norm of (OPT2), they are proximal gradient
steps instead. So no round raises J. With the distance of log odds, the gate is fitted to the log
odds by least squares (OPT6).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_expit

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.watch import check_time
from bayescascade.costs.items import CostNorms
from bayescascade.methods.budget.gated.kernels.logistic import logistic_loss, logistic_slopes
from bayescascade.methods.budget.gated.objective import (
    GateProblem,
    Split,
    State,
    class_chances,
    local_losses,
)

ROUNDS = 50
"""Maximum number of rounds, as in the thesis's experiments."""

_LEAST_GAIN = 1e-5  # nats per row: rounds end below this gain
_N_STARTING = 20
_SAME = 1e-6  # maximum change of coefficients when a start has converged
_N_PROXIMAL = 20
_FLOOR = 1e-9  # minimum curvature


@dataclass(frozen=True, slots=True, eq=False)
class GroupNorm:
    """The group norm of (OPT2), with costs: gamma sum_a c_a |(g_a, f_1a)|."""

    norms: CostNorms
    gamma: float

    def total(self, state: State) -> float:
        """Return Omega."""
        return self.gamma * self.norms.total(_joined(state))


def alternated(
    problem: GateProblem,
    start: State,
    columns: Flags,
    penalty: GroupNorm | None = None,
    seen: Callable[[float], object] | None = None,
) -> tuple[State, float]:
    """Return the state after all rounds from a start, and J; columns (p,) may have coefficients."""
    part = replace(problem, rows=np.ascontiguousarray(problem.rows[:, columns]))
    state = State(start.gate[columns], start.local[columns])
    if penalty is not None:
        part = replace(part, ridge=0.0)
        penalty = replace(penalty, norms=penalty.norms.among(np.flatnonzero(columns)))
    before = np.inf
    value, split = _judged(part, state, penalty)
    for _ in range(ROUNDS):
        check_time()
        if seen is not None:
            seen(value)
        if before - value < _LEAST_GAIN:
            break
        if penalty is None:
            state = _newton(part, state, split)
        else:
            state = _proximal(part, state, split.shares, penalty)
        before = value
        value, split = _judged(part, state, penalty)
    whole = State(np.zeros_like(start.gate), np.zeros_like(start.local))
    whole.gate[columns], whole.local[columns] = state.gate, state.local
    return whole, value


def fitted_local(problem: GateProblem, start: State, columns: Flags) -> State:
    """Return a start with the local model fitted to all rows and these columns (A.2.3)."""
    part = replace(problem, rows=np.ascontiguousarray(problem.rows[:, columns]))
    nobody = np.zeros(len(part.rows))
    local = _settled(lambda local: _local_step(part, local, nobody), start.local[columns])
    state = State(np.zeros_like(start.gate), np.zeros_like(start.local))
    state.local[columns] = local
    return state


def fitted_gate(problem: GateProblem, start: State, columns: Flags) -> State:
    """Return a start with the gate fitted to the local model's errors (its pseudo labels)."""
    part = replace(problem, rows=np.ascontiguousarray(problem.rows[:, columns]))
    said = class_chances(part.rows @ start.local[columns]).argmax(axis=1)
    wrong = (said != part.labels).astype(np.float64)
    nothing = np.zeros(part.rows.shape[1])
    state = State(np.zeros_like(start.gate), start.local)
    state.gate[columns] = _settled(lambda gate: _gate_step(part, gate, wrong), nothing)
    return state


def _settled(step: Callable[[Floats], Floats], here: Floats) -> Floats:
    """Return coefficients after steps until they hardly change."""
    for _ in range(_N_STARTING):
        before, here = here, step(here)
        if np.abs(here - before).max(initial=0.0) <= _SAME:
            break
    return here


def _judged(part: GateProblem, state: State, penalty: GroupNorm | None) -> tuple[float, Split]:
    """Return J, with the group norm if there is one, and the best shares."""
    value, split = part.value_and_split(state)
    return value + (0.0 if penalty is None else penalty.total(state)), split


def _newton(part: GateProblem, state: State, split: Split) -> State:
    """Return the coefficients after a Newton step of each, or least squares to log odds."""
    gate, local = state
    if part.distance == "log_odds":
        gate = _least_squares(part, split.logits)
    else:
        gate = _gate_step(part, gate, split.shares)
    return State(gate, _local_step(part, local, split.shares))


def _least_squares(part: GateProblem, logits: Floats) -> Floats:
    """Return the gate (p,) fitted to log odds (n,) by least squares with ridge (OPT6)."""
    doubled = 2.0 * part.weights / part.total
    squares = (part.rows.T * doubled) @ part.rows
    return _solved(squares, _shrinks(part), part.rows.T @ (doubled * logits))


def _gate_step(part: GateProblem, gate: Floats, shares: Floats) -> Floats:
    """Return the gate (p,) after a step towards the labels q (n,) in [0, 1]."""
    return _logistic_step(part, gate, shares, part.weights / part.total)


def _logistic_step(part: GateProblem, here: Floats, targets: Floats, sizes: Floats) -> Floats:
    """Return coefficients (p,) after a step towards targets (n,) in [0, 1]; rows have sizes."""
    shrinks = _shrinks(part)

    def value(tried: Floats) -> float:
        return logistic_loss(part.rows @ tried, targets, sizes) + float(0.5 * shrinks @ tried**2)

    slopes, bends = np.empty(len(sizes)), np.empty(len(sizes))
    before = logistic_slopes(part.rows @ here, targets, sizes, slopes, bends)
    before += float(0.5 * shrinks @ here**2)
    gradient = part.rows.T @ slopes + shrinks * here
    step = _solved((part.rows.T * bends) @ part.rows, shrinks, gradient)
    return _shortened(value, here, step, before)


def _local_step(part: GateProblem, local: Floats, shares: Floats) -> Floats:
    """Return the local model (p, c) after a step on rows with weights 1 - q (n,)."""
    sizes, shrinks = part.weights * (1 - shares) / part.total, _shrinks(part)
    if part.n_outputs == 1:
        targets = part.labels.astype(np.float64)
        return _logistic_step(part, local[:, 0], targets, sizes)[:, np.newaxis]

    def value(tried: Floats) -> float:
        losses = local_losses(part.rows @ tried, part.labels)
        return float(sizes @ losses + 0.5 * (shrinks @ tried**2).sum())

    outputs = part.rows @ local
    pulls = sizes[:, np.newaxis] * part.pulls(outputs)
    gradient = part.rows.T @ pulls + shrinks[:, np.newaxis] * local
    own = class_chances(outputs)
    step = np.empty(local.shape)
    for k in range(part.n_outputs):
        spread = 2.0 * sizes * own[:, k] * (1 - own[:, k])  # an upper bound of diag(p) - p p'
        step[:, k] = _solved((part.rows.T * spread) @ part.rows, shrinks, gradient[:, k])
    return _shortened(value, local, step, value(local))


def _shrinks(part: GateProblem) -> Floats:
    shrinks = np.full(part.rows.shape[1], part.ridge / part.total)
    shrinks[-1] = 0.0
    return shrinks


def _solved(curvature: Floats, shrinks: Floats, gradient: Floats) -> Floats:
    square = curvature + np.diag(shrinks + _FLOOR)
    return np.asarray(np.linalg.solve(square, gradient), np.float64)


def _shortened(
    value: Callable[[Floats], float], here: Floats, step: Floats, before: float
) -> Floats:
    """Return the end of a step, halved until the value has fallen, or else its start."""
    length = 1.0
    while length > 1e-6:
        there: Floats = here - length * step
        if value(there) < before:
            return there
        length /= 2
    return here


def _proximal(part: GateProblem, state: State, shares: Floats, penalty: GroupNorm) -> State:
    """Return the coefficients after proximal gradient steps at fixed shares."""
    sizes = part.weights / part.total
    here, length = _joined(state), 1.0

    def smooth(joined: Floats) -> float:
        scores, outputs = part.rows @ joined[:, 0], part.rows @ joined[:, 1:]
        local = local_losses(outputs, part.labels)
        losses = (1 - shares) * (local - log_expit(-scores)) - shares * log_expit(scores)
        return float(sizes @ losses)

    before = smooth(here)
    for _ in range(_N_PROXIMAL):
        scores, outputs = part.rows @ here[:, 0], part.rows @ here[:, 1:]
        pulls = (sizes * (1 - shares))[:, np.newaxis] * part.pulls(outputs)
        both = np.column_stack([sizes * (expit(scores) - shares), pulls])
        gradient = part.rows.T @ both
        while True:
            there, _ = penalty.norms.split(here - length * gradient, length * penalty.gamma)
            moved = there - here
            bound = before + np.sum(gradient * moved) + np.sum(moved**2) / (2 * length)
            after = smooth(there)
            if after <= bound + 1e-14 * abs(bound) or length < 1e-8:
                break
            length /= 2
        here, before = there, after
        length *= 1.5
    return State(here[:, 0].copy(), here[:, 1:].copy())


def _joined(state: State) -> Floats:
    """Return the coefficients of gate and local model side by side, (p, 1 + c)."""
    return np.column_stack([state.gate, state.local])
