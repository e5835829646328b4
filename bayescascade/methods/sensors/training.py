"""Gates trained with predictors: by Adam, by gradient descent on soft gates, or by shares.

**Adam** trains hard gates with the slope of soft ones, or soft ones.
"straight_through": in the forward pass a gate is a Bernoulli draw with probability sigmoid(z); in
the backward pass the derivative by the gate is used for that by sigmoid(z) (Bengio and others,
2013). "direct" is OPT-Direct: the gate is sigmoid(z), or max(z, 0), itself. The penalty is tradeoff
times the mean of sum_k c_k sigmoid(z_k), for "relu" of the gate itself, as printed.

OPT-Direct is degenerate: gates sigmoid(z - t) with predictors h e^t have the same outputs as t
grows, and their penalty goes to 0, while the counted cost, of z > t, goes to 0, too. Therefore
gates are hard.

**Predictors for fixed gates** are a convex problem, with a bound on the distance to its minimum.
The objective is F(theta) = mean loss + ridge / (2 n) |theta|^2, theta all predictors and constants.
F - (m / 2) |theta|^2 is convex for m = ridge / n, so F(theta) - min F <= |grad F(theta)|^2 / (2 m):
minimize the two sides of F(u) >= F(theta) + grad F' (u - theta) + (m / 2) |u - theta|^2 over u.

**Sums of soft gates**, (7.1), by gradient descent:

    y = sum_k (v_k' x_k + a_k) sigmoid(w_k' x_k + b_k)   (+ a constant)

`alternated` is the thesis's alternating gradient descent, and `projected` its descent for (7.3), by
`models.within` after each projection.

**OPT-Relax** (Nan 2018, 7.1.5): shares q of sending, and gates that follow them.

    min over V, a, w, b, q of  mean loss(sum_k q_k h_k) + kl_weight / n sum KL(q_k, sigmoid(z_k))
    with 0 <= q <= 1 and  mean of sum_k c_k q_k  <=  share sum_k c_k,

alternating over the parts. Given q, predictors are those of `refitted`, and gates are logistic
regressions of q. Given both, the problem in q is convex, and is solved by the Frank-Wolfe
algorithm.

Departure: only entries with a negative derivative become 1, within the budget, the most negative
per cost first; the printed step always spends the whole budget, and stops at another point. A dead
sensor's q is 0.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, xlogy

from bayescascade.base.arrays import Floats
from bayescascade.base.watch import check_time
from bayescascade.methods.sensors.models import (
    Loss,
    Weights,
    designed,
    fast_scores,
    squared,
    within,
)
from bayescascade.methods.sensors.signals import Signals

BATCH = 256
RATE = 0.005
GATE_RATE = 3.0
"""Multiple of `RATE`: for images of digits, gates are better by .5 % of rows than with 1."""

_OPEN = 2.0  # initial offset of gates: nearly all send


class SensorProblem(NamedTuple):
    """Rows, targets (n, M), their loss, costs (K,) and the ridge for all rows."""

    signals: Signals
    targets: Floats
    loss: Loss
    costs: Floats
    ridge: float

    def among(self, rows: Any) -> "SensorProblem":
        """Return some rows, with the same ridge."""
        return self._replace(signals=self.signals.among(rows), targets=self.targets[rows])


def error_of(problem: SensorProblem, outputs: Floats) -> float:
    """Return the error rate of classes, or the mean squared error of numbers."""
    if problem.loss.is_of_classes:
        return float((outputs.argmax(axis=1) != problem.targets.argmax(axis=1)).mean())
    return float(((outputs - problem.targets) ** 2).mean())


def opened(problem: SensorProblem, rng: np.random.Generator) -> Weights:
    """Return gates that are nearly always open, and predictors that are 0."""
    p, n_sensors = problem.signals.sensor_of.size, problem.costs.size
    start = Weights.zeros(p, n_sensors, problem.targets.shape[1])
    return start._replace(gates=0.01 * rng.normal(size=p), offsets=np.full(n_sensors, _OPEN))


def trained(
    problem: SensorProblem, tradeoff: float, start: Weights, n_steps: int, kind: str,
    rng: np.random.Generator,
) -> Weights:  # fmt: skip
    """Return weights after Adam; kind is "straight_through", or OPT-Direct's "sigmoid", "relu"."""
    weights = Weights(*(np.array(part, np.float32) for part in start))  # type: ignore[arg-type]
    rates = Weights(GATE_RATE, GATE_RATE, 1.0, 1.0, 1.0)  # type: ignore[arg-type] # for each part
    firsts, seconds = ([np.zeros_like(part) for part in weights] for _ in range(2))
    slopes = _Slopes(problem, np.float32(tradeoff), kind, rng)
    for step, places in enumerate(_batches(len(problem.targets), n_steps, rng), start=1):
        if step % 20 == 0:
            check_time()
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / n_steps))
        found = slopes.at(weights, places)
        for part, slope, first, second, times in zip(
            weights, found, firsts, seconds, rates, strict=True
        ):
            first += np.float32(0.1) * (slope - first)
            second += np.float32(0.001) * (slope * slope - second)
            size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            part -= np.float32(times * rate) * (first / (1 - 0.9**step)) / size
    return Weights(*(part.astype(np.float64) for part in weights))


class _Slopes:
    """Explicit derivatives of the mean loss and penalty of some rows."""

    def __init__(
        self, problem: SensorProblem, tradeoff: np.float32, kind: str, rng: np.random.Generator
    ) -> None:
        signals = problem.signals
        self._features = signals.features.astype(np.float32)
        self._alive = signals.alive.astype(np.float32)
        self._targets = problem.targets.astype(np.float32)
        self._sensor_of, self._starts = signals.sensor_of, signals.starts
        self._loss, self._kind, self._rng = problem.loss, kind, rng
        self._prices = tradeoff * problem.costs.astype(np.float32)
        self._ridge = np.float32(problem.ridge / len(self._targets))

    def at(self, weights: Weights, places: Any) -> Weights:
        """Return the derivatives by all parts."""
        x, alive, n = self._features[places], self._alive[places], np.float32(len(places))
        gates, offsets, predictors, constants, cloud = weights
        z = np.add.reduceat(x * gates, self._starts, axis=1) + offsets
        soft = expit(z)
        if self._kind == "relu":
            open_, rise = np.maximum(z, 0), (z > 0).astype(np.float32)
        else:
            open_, rise = soft, soft * (1 - soft)
        if self._kind == "straight_through":
            open_ = (self._rng.random(z.shape, np.float32) < soft).astype(np.float32)
        open_, rise = open_ * alive, rise * alive
        sent = x * open_[:, self._sensor_of]
        errors = self._loss.slope(
            sent @ predictors + open_ @ constants + cloud, self._targets[places]
        )
        errors = errors.astype(np.float32) / n
        by_gate = np.add.reduceat(x * (errors @ predictors.T), self._starts, axis=1)
        by_score = (by_gate + errors @ constants.T + self._prices / n) * rise
        return Weights(
            (x * by_score[:, self._sensor_of]).sum(axis=0),
            by_score.sum(axis=0),
            sent.T @ errors + self._ridge * predictors,
            open_.T @ errors + self._ridge * constants,
            errors.sum(axis=0),
        )


def _batches(n_rows: int, n_steps: int, rng: np.random.Generator) -> Iterator[Any]:
    """Yield batches of row indices, in a new random order for each pass."""
    done = 0
    while True:
        order = rng.permutation(n_rows)
        for first in range(0, n_rows, BATCH):
            if done == n_steps:
                return
            done += 1
            yield order[first : first + BATCH]


class Refit(NamedTuple):
    """Predictors and constants (p + K + 1, M), their F, and a bound on F minus its minimum."""

    theta: Floats
    value: float
    gap: float  # nats per row


def refitted(problem: SensorProblem, gates: Floats, start: Floats, max_iter: int = 500) -> Refit:
    """Return the best predictors for gates (n, K): in closed form for squares, else by L-BFGS.

    Features that no row sends have coefficients 0, as required by the ridge.
    """
    design = designed(problem.signals, gates)
    used = design.any(axis=0)
    matrix, n = np.ascontiguousarray(design[:, used]), len(design)
    shape, modulus = (matrix.shape[1], problem.targets.shape[1]), problem.ridge / n
    begin = start[used]

    def value(flat: Floats) -> tuple[float, Floats]:
        check_time()
        theta = flat.reshape(shape)
        outputs = matrix @ theta
        loss = float(problem.loss.rows(outputs, problem.targets).mean())
        slope = matrix.T @ (problem.loss.slope(outputs, problem.targets) / n) + modulus * theta
        return loss + 0.5 * modulus * float(np.sum(theta**2)), slope.ravel()

    if not problem.loss.is_of_classes:
        squares = squared(matrix) / n
        squares[np.diag_indices_from(squares)] += modulus
        best = cho_solve(cho_factor(squares), matrix.T @ problem.targets / n)
    else:
        found = minimize(
            value, begin.ravel(), jac=True, method="L-BFGS-B",
            options={"maxiter": max_iter, "gtol": 1e-6, "ftol": 1e-9},
        )  # fmt: skip
        best = found.x.reshape(shape)
    reached, slope = value(best.ravel())
    theta = np.zeros_like(start)
    theta[used] = best
    return Refit(theta, reached, float(slope @ slope) / (2 * modulus))


_STEPS, _RATE = 50, 0.1  # steps and rate of descent per round

KL_WEIGHT = 0.1
_EDGE = 1e-6  # distance of shares from 0 and 1, where the divergence has no slope
_ROUNDS, _SHARE_STEPS = 10, 20


class SoftGates(NamedTuple):
    """Gates and predictors of soft gates, and their mean squared error."""

    weights: Weights
    error: float


def alternated(
    signals: Signals, y: Floats, start: Weights, n_rounds: int, costs: Floats | None = None,
    budget: float | None = None,
) -> SoftGates:  # fmt: skip
    """Return the result of alternating gradient descent: rounds of predictors, then gates.

    `projected` and `within` keep the budget after each round; costs (K,).
    """
    weights, n, of = start, len(y), signals.sensor_of
    for _ in range(n_rounds):
        check_time()
        soft = expit(fast_scores(weights, signals)) * signals.alive
        design, theta = designed(signals, soft), weights.theta[:, 0]
        squares, products = squared(design) / n, design.T @ y / n
        for _ in range(_STEPS):
            theta = theta - _RATE * (squares @ theta - products)
        weights = weights.with_theta(theta[:, np.newaxis])
        messages = signals.features * weights.predictors[:, 0]
        messages = np.add.reduceat(messages, signals.starts, axis=1) + weights.constants[:, 0]
        for _ in range(_STEPS):
            check_time()
            soft = expit(fast_scores(weights, signals)) * signals.alive
            errors = (soft * messages).sum(axis=1) + weights.cloud[0] - y
            by_score = errors[:, np.newaxis] * messages * soft * (1 - soft) / n
            by_gate = (signals.features * by_score[:, of]).sum(axis=0)
            weights = weights._replace(
                gates=weights.gates - _RATE * by_gate,
                offsets=weights.offsets - _RATE * by_score.sum(axis=0),
            )
        if budget is not None and costs is not None:
            weights = within(projected(weights, signals, costs, budget), signals, costs, budget)
    soft = expit(fast_scores(weights, signals)) * signals.alive
    left = (designed(signals, soft) @ weights.theta)[:, 0] - y
    return SoftGates(weights, float(left @ left) / n)


def projected(weights: Weights, signals: Signals, costs: Floats, budget: float) -> Weights:
    """Return the thesis's step: scores by (7.5), then gates by least squares, before `within`."""
    z = fast_scores(weights, signals)
    closed = fast_scores(within(weights, signals, costs, budget), signals) <= 0
    target = np.where((z > 0) & closed, 0.0, z)
    gates, offsets = weights.gates.copy(), weights.offsets.copy()
    for k in range(offsets.size):
        check_time()
        own = signals.sensor_of == k
        columns = np.column_stack([signals.features[:, own], np.ones(len(z))])
        *gates[own], offsets[k] = np.linalg.lstsq(columns, target[:, k], rcond=None)[0]
    return weights._replace(gates=gates, offsets=offsets)


class ShareProblem(NamedTuple):
    """The problem in q (n, K): messages h (n, K, M), scores z, targets, costs and their limit."""

    messages: Floats
    cloud: Floats
    scores: Floats
    targets: Floats
    loss: Loss
    costs: Floats
    limit: float  # limit of the sum over all rows of costs times q
    kl_weight: float
    alive: Floats

    def value(self, q: Floats) -> float:
        """Return the sum over the rows."""
        outputs = np.einsum("nk,nkm->nm", q, self.messages) + self.cloud
        losses = float(self.loss.rows(outputs, self.targets).sum())
        return losses + self.kl_weight * float(divergence(q, self.scores).sum())

    def slope(self, q: Floats) -> Floats:
        """Return its derivative."""
        outputs = np.einsum("nk,nkm->nm", q, self.messages) + self.cloud
        errors = self.loss.slope(outputs, self.targets)
        inside = np.clip(q, _EDGE, 1 - _EDGE)
        logits = np.log(inside) - np.log1p(-inside)
        found: Floats = np.einsum("nm,nkm->nk", errors, self.messages)
        return found + self.kl_weight * (logits - self.scores)

    def vertex(self, slope: Floats) -> Floats:
        """Return the point of least inner product with a slope, with at most one partial share."""
        gains = np.where(self.alive > 0, -slope, 0.0)
        costs = np.broadcast_to(self.costs, slope.shape)
        worth = np.where(gains > 0, gains / np.maximum(costs, 1e-300), 0.0).ravel()
        order = np.argsort(-worth, kind="stable")
        order = order[worth[order] > 0]
        spent = np.cumsum(costs.ravel()[order])
        shares = np.zeros(slope.size)
        left = self.limit - (spent - costs.ravel()[order])
        shares[order] = np.clip(left / np.maximum(costs.ravel()[order], 1e-300), 0.0, 1.0)
        return shares.reshape(slope.shape)


def divergence(q: Floats, scores: Floats) -> Floats:
    """Return KL(q, sigmoid(scores)), nats."""
    own = xlogy(q, q) + xlogy(1 - q, 1 - q)
    found: Floats = own + q * np.logaddexp(0, -scores) + (1 - q) * np.logaddexp(0, scores)
    return found


def solved(problem: ShareProblem, start: Floats, n_steps: int) -> Floats:
    """Return shares after Frank-Wolfe steps with line search."""
    q = start
    for _ in range(n_steps):
        check_time()
        towards = problem.vertex(problem.slope(q)) - q
        found = minimize_scalar(
            lambda t, q=q, towards=towards: problem.value(q + t * towards),
            bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-6},
        )  # fmt: skip
        if found.fun >= problem.value(q):
            break
        q = q + found.x * towards
    return q


def relaxed(problem: SensorProblem, share: float, start: Weights) -> Weights:
    """Return gates and predictors after rounds of all three parts, from a start."""
    signals, (n, n_sensors) = problem.signals, problem.signals.alive.shape
    alive = signals.alive.astype(np.float64)
    limit, weights = share * float(problem.costs.sum()) * n, start
    q = expit(fast_scores(weights, signals)) * alive
    q *= min(1.0, limit / max(float((q @ problem.costs).sum()), 1e-300))
    for _ in range(_ROUNDS):
        weights = weights.with_theta(refitted(problem, q, weights.theta, max_iter=30).theta)
        weights = _gates_of(q, signals, weights)
        messages = np.empty((n, n_sensors, problem.targets.shape[1]))
        for k in range(n_sensors):
            own = signals.sensor_of == k
            messages[:, k] = signals.features[:, own] @ weights.predictors[own]
        messages += weights.constants
        scores = fast_scores(weights, signals)
        given = problem.targets, problem.loss, problem.costs, limit, KL_WEIGHT, alive
        q = solved(ShareProblem(messages, weights.cloud, scores, *given), q, _SHARE_STEPS)
    return _gates_of(q, signals, weights)


def _gates_of(q: Floats, signals: Signals, weights: Weights) -> Weights:
    """Return gates that follow shares: a slightly ridged logistic regression per sensor."""
    p = weights.gates.size

    def value(flat: Floats) -> tuple[float, Floats]:
        check_time()
        z = fast_scores(weights._replace(gates=flat[:p], offsets=flat[p:]), signals)
        losses = (np.logaddexp(0, z) - q * z) * signals.alive
        errors = (expit(z) - q) * signals.alive
        by_gate = (signals.features * errors[:, signals.sensor_of]).sum(axis=0)
        slope = np.concatenate([by_gate, errors.sum(axis=0)]) + flat
        return float(losses.sum() + 0.5 * flat @ flat), slope

    flat = np.concatenate([weights.gates, weights.offsets])
    found = minimize(value, flat, jac=True, method="L-BFGS-B", options={"maxiter": 30})
    return weights._replace(gates=found.x[:p], offsets=found.x[p:])
