"""Gated sensors: sending, the outputs of the cloud, and the losses (Nan 2018, 7.1).

Sensor k sees features x_k. Its gate's score is z_k = w_k' x_k + b_k. If z_k > 0, it sends h_k =
V_k' x_k + a_k, one number for each output; otherwise one bit. The cloud adds up:

    s = a_0 + sum_k phi(z_k) h_k,

with phi the step from 0 to 1 ("step"). With "sigmoid" gates are soft as in (7.1), with "relu"
phi(z) is max(z, 0) (page 1635 of the text). The cost of a row is sum_k c_k 1[z_k > 0], as in (7.3).
The loss of a row, nats: for classes, minus the log of the softmax of s at its class
(OPT-Direct-Clf); for numbers of variance 1, half the squared error.

Departures: the cloud has a constant a_0, so it has an output if all are silent, and sensors for
numbers have constants a_k, too. A sensor with a missing cell is silent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, logsumexp

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.store import INLINE, Of, Words
from bayescascade.base.watch import check_time
from bayescascade.methods.sensors.signals import Signals

_BLOCK = 2**23  # cells of a design that are multiplied at a time

ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "step": lambda z: (z > 0).astype(np.float64),
    "sigmoid": expit,
    "relu": lambda z: np.maximum(z, 0.0),
}


class Weights(NamedTuple):
    """Gates w, b; predictors V, a; the cloud's constant."""

    gates: Annotated[Floats, Of("p")]
    offsets: Annotated[Floats, Of("K")]
    predictors: Annotated[Floats, Of("p", "M")]
    constants: Annotated[Floats, Of("K", "M")]
    cloud: Annotated[Floats, Of("M")]

    @property
    def theta(self) -> Floats:
        """Predictors, constants and the cloud's constant, stacked, (p + K + 1, M)."""
        return np.concatenate([self.predictors, self.constants, self.cloud[np.newaxis]])

    def with_theta(self, theta: Floats) -> "Weights":
        """Return the same gates with other predictors."""
        p, n_sensors = self.gates.size, self.offsets.size
        return Weights(
            self.gates, self.offsets, theta[:p], theta[p : p + n_sensors], theta[p + n_sensors]
        )

    @classmethod
    def zeros(cls, p: int, n_sensors: int, n_outputs: int) -> Self:
        """Return silent gates, and predictors that are 0."""
        return cls(
            np.zeros(p), np.full(n_sensors, -1.0), np.zeros((p, n_outputs)),
            np.zeros((n_sensors, n_outputs)), np.zeros(n_outputs),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class GatedNet:
    """Weights, and the effect of gates on messages."""

    weights: Annotated[Weights, INLINE]
    activation: Annotated[str, Words(*ACTIVATIONS)] = "step"

    def scores(self, signals: Signals) -> Floats:
        """Return z, (n, K), summed column by column, so a score does not depend on other rows."""
        gates, offsets = self.weights.gates, self.weights.offsets
        z = np.repeat(offsets[np.newaxis], len(signals.features), axis=0)
        for j in np.flatnonzero(gates):
            z[:, signals.sensor_of[j]] += signals.features[:, j] * gates[j]
        return z

    def sends(self, signals: Signals) -> Flags:
        """Return which sensors send, (n, K)."""
        return (self.scores(signals) > 0) & signals.alive

    def gates(self, signals: Signals) -> Floats:
        """Return the factors of messages, (n, K)."""
        return ACTIVATIONS[self.activation](self.scores(signals)) * signals.alive

    def outputs(self, signals: Signals) -> Floats:
        """Return s, (n, M), summed column by column."""
        gates, weights = self.gates(signals), self.weights
        s = np.repeat(weights.cloud[np.newaxis], len(gates), axis=0)
        for k in range(gates.shape[1]):
            s += gates[:, k, np.newaxis] * weights.constants[k]
        for j in np.flatnonzero(weights.predictors.any(axis=1)):
            sent = signals.features[:, j] * gates[:, signals.sensor_of[j]]
            s += sent[:, np.newaxis] * weights.predictors[j]
        return s


def designed(signals: Signals, gates: Floats) -> Floats:
    """Return the design matrix of outputs, given gates (n, K): (n, p + K + 1)."""
    p, n_sensors = signals.sensor_of.size, gates.shape[1]
    design = np.empty((len(gates), p + n_sensors + 1))
    np.multiply(signals.features, gates[:, signals.sensor_of], out=design[:, :p])
    design[:, p:-1], design[:, -1] = gates, 1.0
    return design


def squared(design: Floats) -> Floats:
    """Return design' design, with a look at the time after each block of rows."""
    size = max(1, _BLOCK // design.shape[1])
    squares = np.zeros((design.shape[1],) * 2)
    for first in range(0, len(design), size):
        check_time()
        squares += design[first : first + size].T @ design[first : first + size]
    return squares


def chances_of(outputs: Floats) -> Floats:
    """Return the softmax of each row."""
    exponents = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    chances: Floats = exponents / exponents.sum(axis=1, keepdims=True)
    return chances


class Loss(NamedTuple):
    """A loss of outputs and targets: for rows (n,), nats, and its derivative by outputs (n, M)."""

    is_of_classes: bool
    rows: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]


def _softmax(outputs: Any, targets: Any) -> Any:
    return logsumexp(outputs, axis=1) - (outputs * targets).sum(axis=1)


def _softmax_slope(outputs: Any, targets: Any) -> Any:
    return chances_of(outputs) - targets


def _square(outputs: Any, targets: Any) -> Any:
    return 0.5 * ((outputs - targets) ** 2).sum(axis=1)


SOFTMAX = Loss(True, _softmax, _softmax_slope)
"""Targets are indicators of classes."""

SQUARE = Loss(False, _square, np.subtract)
"""Targets are numbers of mean 0 and variance 1."""


def fast_scores(weights: Weights, signals: Signals) -> Floats:
    """Return z (n, K), summed in another order than `GatedNet.scores`."""
    products = signals.features * weights.gates
    return np.add.reduceat(products, signals.starts, axis=1) + weights.offsets


def fast_sends(weights: Weights, signals: Signals) -> Flags:
    """Return which sensors send, (n, K), by `fast_scores`."""
    return (fast_scores(weights, signals) > 0) & signals.alive


def within(weights: Weights, signals: Signals, costs: Floats, budget: float) -> Weights:
    """Return gates with a mean cost within a budget, after the least common decrease of offsets.

    The smallest positive scores are silenced first, as in the projection (7.5). Unlike least
    squares from projected scores, this keeps the budget.
    """
    z = fast_scores(weights, signals)
    sends = (z > 0) & signals.alive
    excess = float((sends @ costs).sum()) - budget * len(z)
    if excess <= 1e-9 * max(budget, 1.0) * len(z):
        return weights
    rows, sensors = np.nonzero(sends)
    scores = z[rows, sensors]
    order = np.argsort(scores, kind="stable")
    saved = np.cumsum(costs[sensors[order]])
    last = min(int(np.searchsorted(saved, excess * (1 - 1e-12))), order.size - 1)
    shift = scores[order[last]]
    return weights._replace(offsets=weights.offsets - shift * (1 + 1e-9) - 1e-12)
