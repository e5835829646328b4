"""Sums of soft gates, (7.1), with least-squares predictors; and gates that follow shares.

    y = sum_k (v_k' x_k + a_k) sigmoid(w_k' x_k + b_k)   (+ a constant)

Given gates (w, b), the best v are least squares, so the search is over gates only, by
Levenberg-Marquardt (variable projection, Golub and Pereyra, 1973; derivatives as in Kaufman, 1975,
without a term that vanishes with the residuals). The error is not a convex function of the gates,
so starts are drawn until one leaves no error, or until there were enough. `alternated` is the
thesis's alternating gradient descent, and `projected` its descent for (7.3), by `models.within`
after each projection.

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
from scipy.optimize import least_squares, minimize, minimize_scalar
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
from bayescascade.methods.sensors.training import Lesson, refitted

_ENOUGH = 1e-10  # share of the mean square: below it there is no error
_MOST_CALLS = 200  # for a start
_RANK = 1e-8  # share of the largest direction of a design: smaller ones are noise
_FAR = 1e3
_PENALTY = 1e-9  # for gates' squared weights, in variances of y; without it hard gates grow forever
_EXACT = 1e-6  # share of the mean square: below it soft gates are exact, and need no penalty
_STEPS, _RATE = 50, 0.1  # steps and rate of descent per round

KL_WEIGHT = 0.1
_EDGE = 1e-6  # distance of shares from 0 and 1, where the divergence has no slope
_ROUNDS, _SHARE_STEPS = 10, 20


class Smooth(NamedTuple):
    """Gates and predictors of soft gates, and their mean squared error."""

    weights: Weights
    error: float


class _Projected:
    """Least squares given gates, and the derivatives of the residuals by gates."""

    residuals: Floats  # (n,)

    def __init__(self, signals: Signals, y: Floats, has_constants: bool) -> None:
        self.signals, self.y = signals, y
        self.p, self.n_sensors = signals.sensor_of.size, signals.alive.shape[1]
        self.strength = 0.0
        self._kept = np.full(self.p + self.n_sensors + 1, has_constants)
        self._kept[: self.p] = True
        self._at: Floats | None = None

    def _solve(self, flat: Floats) -> None:
        if self._at is not None and np.array_equal(flat, self._at):
            return
        check_time()
        gates = Weights.zeros(self.p, self.n_sensors, 1)._replace(
            gates=flat[: self.p], offsets=flat[self.p :]
        )
        self._soft = expit(fast_scores(gates, self.signals)) * self.signals.alive
        design = designed(self.signals, self._soft)[:, self._kept]
        if not np.isfinite(design).all():  # an infinite step, which is not taken
            self._at, self.residuals = flat.copy(), _FAR * np.abs(self.y).max() + 0 * self.y
            return
        basis, triangle = np.linalg.qr(design)
        size = np.abs(np.diag(triangle)).max()
        if np.abs(np.diag(triangle)).min() > _RANK * size:
            best = np.linalg.solve(triangle, basis.T @ self.y)
        else:
            best = np.linalg.lstsq(design, self.y, rcond=_RANK)[0]
        self._basis, self._at = basis, flat.copy()
        self.theta = np.zeros(self._kept.size)
        self.theta[self._kept] = best
        self.residuals = design @ best - self.y

    def of(self, flat: Floats) -> Floats:
        """Return the residuals for gates, and their weights times the strength of the penalty."""
        self._solve(flat)
        return np.concatenate([self.residuals, self.strength * np.nan_to_num(flat)])

    def descended(self, at: Floats, penalty: float) -> tuple[Floats, float]:
        """Return the result of the search from gates, and its mean squared error."""
        self.strength = float(np.sqrt(penalty))
        found = least_squares(
            self.of, at, self.slopes, method="lm", max_nfev=_MOST_CALLS,
            xtol=1e-12, ftol=1e-12, gtol=1e-12,
        ).x  # fmt: skip
        self.of(found)
        return found, float(np.mean(self.residuals**2))

    def slopes(self, flat: Floats) -> Floats:
        """Return the derivatives of `of`."""
        self._solve(flat)
        p, of = self.p, self.signals.sensor_of
        messages = np.add.reduceat(
            self.signals.features * self.theta[:p], self.signals.starts, axis=1
        )
        messages += self.theta[p : p + self.n_sensors]
        rise = self._soft * (1 - self._soft) * messages
        slopes = np.concatenate([self.signals.features * rise[:, of], rise], axis=1)
        slopes -= self._basis @ (self._basis.T @ slopes)
        return np.concatenate([slopes, self.strength * np.eye(flat.size)])


def smooth(
    signals: Signals, y: Floats, n_starts: int, rng: np.random.Generator,
    has_constants: bool = True, start: Weights | None = None,
) -> Smooth:  # fmt: skip
    """Return the best result from given gates, or from some random starts; y (n,).

    Without constants it is (7.1) as printed.
    """
    problem, best = _Projected(signals, y, has_constants), None
    size, penalty = problem.p + problem.n_sensors, _PENALTY * float(np.sum((y - y.mean()) ** 2))
    for _ in range(n_starts if start is None else 1):
        at = rng.normal(size=size) if start is None else np.hstack([start.gates, start.offsets])
        found, error = problem.descended(at, penalty)
        if error <= _EXACT * float(np.mean(y**2)):
            free, left = problem.descended(found, 0.0)
            if np.abs(free).max() <= 2.0 * np.abs(found).max():  # otherwise it grows forever
                found, error = free, left
        if best is None or error < best[0]:
            best = error, found
        if best[0] <= _ENOUGH * float(np.mean(y**2)):
            break
    assert best is not None, "there is at least one start"
    problem.of(best[1])
    gates = Weights.zeros(problem.p, problem.n_sensors, 1)
    gates = gates._replace(gates=best[1][: problem.p], offsets=best[1][problem.p :])
    return Smooth(gates.with_theta(problem.theta[:, np.newaxis]), best[0])


def alternated(
    signals: Signals, y: Floats, start: Weights, n_rounds: int, costs: Floats | None = None,
    budget: float | None = None,
) -> Smooth:  # fmt: skip
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
    return Smooth(weights, float(left @ left) / n)


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


def relaxed(lesson: Lesson, share: float, start: Weights) -> Weights:
    """Return gates and predictors after rounds of all three parts, from a start."""
    signals, (n, n_sensors) = lesson.signals, lesson.signals.alive.shape
    alive = signals.alive.astype(np.float64)
    limit, weights = share * float(lesson.costs.sum()) * n, start
    q = expit(fast_scores(weights, signals)) * alive
    q *= min(1.0, limit / max(float((q @ lesson.costs).sum()), 1e-300))
    for _ in range(_ROUNDS):
        weights = weights.with_theta(refitted(lesson, q, weights.theta, max_iter=30).theta)
        weights = _gates_of(q, signals, weights)
        messages = np.empty((n, n_sensors, lesson.targets.shape[1]))
        for k in range(n_sensors):
            own = signals.sensor_of == k
            messages[:, k] = signals.features[:, own] @ weights.predictors[own]
        messages += weights.constants
        scores = fast_scores(weights, signals)
        given = lesson.targets, lesson.loss, lesson.costs, limit, KL_WEIGHT, alive
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
