"""OPT-Relax: shares q of who should send, and gates that follow them (Nan 2018, 7.1.5).

    min over V, a, w, b, q of  mean loss(sum_k q_k h_k) + kl_weight / n sum KL(q_k, sigmoid(z_k))
    with 0 <= q <= 1 and  mean of sum_k c_k q_k  <=  share sum_k c_k,

one part given the others in turn. Given q, predictors are those of `training`, and gates logistic
regressions of q. Given both, the problem in q is convex, and solved by Frank and Wolfe's algorithm.

Departure: only entries with a negative derivative become 1, the most negative for their cost first,
as long as the budget lasts; the printed step always spends all of it, and stops elsewhere. A dead
sensor's q is 0.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, xlogy

from bayescascade.base.watch import check_time
from bayescascade.methods.sensors.models import Loss, Weights, fast_scores
from bayescascade.methods.sensors.signals import Floats, Signals
from bayescascade.methods.sensors.training import Lesson, refitted

KL_WEIGHT = 0.1
_EDGE = 1e-6  # shares keep away from 0 and 1, where the divergence has no slope
_ROUNDS, _STEPS = 10, 20


class ShareProblem(NamedTuple):
    """The problem in q (n, K): messages h (n, K, M), scores z, targets, prices and their limit."""

    messages: Floats
    cloud: Floats
    scores: Floats
    targets: Floats
    loss: Loss
    costs: Floats
    limit: float  # of the sum over all rows of costs times q
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
        """Return the point of least inner product with a slope: who sends, perhaps one in part."""
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
    """Return shares after steps of Frank and Wolfe, each as long as is best."""
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
    """Return gates and predictors after rounds of all three parts, from where they were."""
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
        q = solved(ShareProblem(messages, weights.cloud, scores, *given), q, _STEPS)
    return _gates_of(q, signals, weights)


def _gates_of(q: Floats, signals: Signals, weights: Weights) -> Weights:
    """Return gates that follow shares: a logistic regression of each sensor's, slightly ridged."""
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
