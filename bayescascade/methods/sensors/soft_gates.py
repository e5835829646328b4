"""Sums of soft gates, (7.1), by gradient descent; and gates that follow shares.

    y = sum_k (v_k' x_k + a_k) sigmoid(w_k' x_k + b_k)   (+ a constant)

`alternated` is the thesis's alternating gradient descent, and `projected` its descent for (7.3), by
`models.within` after each projection.

**OPT-Relax** (Nan 2018, 7.1.5): shares q of sending, and gates that follow them.

    min over V, a, w, b, q of  mean loss(sum_k q_k h_k) + kl_weight / n sum KL(q_k, sigmoid(z_k))
    with 0 <= q <= 1 and  mean of sum_k c_k q_k  <=  share sum_k c_k,

alternating over the parts. Given q, predictors are those of `training`, and gates are logistic
regressions of q. Given both, the problem in q is convex, and is solved by the Frank-Wolfe
algorithm.

Departure: only entries with a negative derivative become 1, within the budget, the most negative
per cost first; the printed step always spends the whole budget, and stops at another point. A dead
sensor's q is 0.
"""

from typing import NamedTuple

import numpy as np
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
from bayescascade.methods.sensors.training import SensorProblem, refitted

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
