"""The objective of a gate and a local classifier beside a full one, and its gradient.

Nan ("Learning to predict under a budget", 2018), (OPT) and (OPT1) of chapter 5. Of row i, with
weight w_i (sum 1), gate g_i = g(x_i), local outputs f_i = f_1(x_i) and the full model's loss l_0i:

    A_i = l_1(f_i, y_i) + log(1 + exp(g_i)),      B_i = l_0i + log(1 + exp(-g_i)),
    J = min_q sum_i w_i [(1 - q_i) A_i + q_i B_i - H(q_i)] + Omega,       sum_i w_i q_i <= P_full,

q_i the share of row i that goes to the full model, H the entropy, l_1 the logistic loss (of more
than two classes softmax). The minimum over q is q_i = sigma(A_i - B_i - beta), beta >= 0 the least
that meets the limit. With it

    J = -sum_i w_i log[exp(-A_i) + exp(-B_i - beta)] - beta P_full + Omega,

since exp(-A_i) = sigma(-g_i) p_1(y_i | x_i) and exp(-B_i) = sigma(g_i) p_0(y_i | x_i): with P_full
= 1 beta is 0, and J is the negative log likelihood of gate and both models together. The gradient
of J over g and f_1 is that of the sum at fixed q (envelope theorem).

Omega is `ridge` / (2 n) times the squares of the coefficients of columns of variance 1, without
intercepts, n the weight of all rows. Costs are no part of J: sets of features are compared by J and
what they cost.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

Numbers = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_STEPS = 200
_ENOUGH = 1e-14  # of the mean of q


class Split(NamedTuple):
    """Shares q (n,) of rows that go to the full model, and the price beta of doing so."""

    shares: Numbers
    beta: float


class State(NamedTuple):
    """Coefficients of the gate (p,) and of the local model (p, c), the last row intercepts."""

    gate: Numbers
    local: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Rows (n, p), the last column 1, labels (n,), weights (n,) > 0, the full model's losses (n,).

    full_share in [0, 1] limits the mean of q; ridge >= 0.
    """

    rows: Numbers
    labels: Ints
    n_classes: int
    weights: Numbers
    full_losses: Numbers
    full_share: float
    ridge: float

    @property
    def n_outputs(self) -> int:
        """Outputs of the local model: of two classes one, the log odds of the second."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())

    def losses(self, state: State) -> tuple[Numbers, Numbers]:
        """Return A and B, (n,) each."""
        gates = self.rows @ state.gate
        local = local_losses(self.rows @ state.local, self.labels)
        return local - log_expit(-gates), self.full_losses - log_expit(gates)

    def split(self, state: State) -> Split:
        """Return the best shares of the full model."""
        kept, sent = self.losses(state)
        return best_split(kept - sent, self.weights / self.total, self.full_share)

    def value(self, state: State) -> float:
        """Return J, nats a row."""
        return self.value_and_gradient(state)[0]

    def penalty(self, state: State) -> float:
        """Return Omega."""
        squares = (state.gate[:-1] ** 2).sum() + (state.local[:-1] ** 2).sum()
        return float(0.5 * self.ridge / self.total * squares)

    def value_and_gradient(self, state: State) -> tuple[float, State]:
        """Return J, nats a row, and its gradient."""
        gates, outputs = self.rows @ state.gate, self.rows @ state.local
        kept = local_losses(outputs, self.labels) - log_expit(-gates)
        sent = self.full_losses - log_expit(gates)
        sizes = self.weights / self.total
        q, beta = best_split(kept - sent, sizes, self.full_share)
        both = kept if np.isinf(beta) else -np.logaddexp(-kept, -sent - beta)
        price = 0.0 if np.isinf(beta) else beta * self.full_share
        value = float(sizes @ both) - price + self.penalty(state)
        of_gate = self.rows.T @ (sizes * (expit(gates) - q))
        of_local = self.rows.T @ ((sizes * (1 - q))[:, np.newaxis] * self.pulls(outputs))
        shrinks = np.full(len(state.gate), self.ridge / self.total)
        shrinks[-1] = 0.0
        gradient = State(
            of_gate + shrinks * state.gate, of_local + shrinks[:, np.newaxis] * state.local
        )
        return value, gradient

    def pulls(self, outputs: Numbers) -> Numbers:
        """Return the derivatives of the local loss by outputs (n, c)."""
        if outputs.shape[1] == 1:
            pulled: Numbers = expit(outputs) - self.labels[:, np.newaxis]
            return pulled
        chances = class_chances(outputs)
        chances[np.arange(len(outputs)), self.labels] -= 1.0
        return chances


def best_split(gaps: Numbers, sizes: Numbers, limit: float) -> Split:
    """Return q_i = sigma(gap_i - beta) with the least beta >= 0 such that sum w q <= limit.

    By Newton's method within a bracket that bisection halves where a step would leave it; gaps are
    A - B (n,), sizes w (n,) of sum 1.
    """
    if limit <= 0.0:
        return Split(np.zeros_like(gaps), np.inf)
    q = expit(gaps)
    if limit >= 1.0 or float(sizes @ q) <= limit:
        return Split(q, 0.0)
    low, high = 0.0, float(max(gaps.max() - logit(limit), 0.0))  # there all q are at most the limit
    beta = low
    for _ in range(_MOST_STEPS):
        q = expit(gaps - beta)
        excess = float(sizes @ q) - limit
        if abs(excess) <= _ENOUGH or high - low <= 1e-15 * high:
            break
        low, high = (beta, high) if excess > 0 else (low, beta)
        slope = float(sizes @ (q * (1 - q)))
        step = beta + excess / slope if slope > 0 else low
        beta = step if low < step < high else 0.5 * (low + high)
    return Split(q, beta)


def local_losses(outputs: Numbers, labels: Ints) -> Numbers:
    """Return the loss of each row, nats, by outputs (n, c)."""
    if outputs.shape[1] == 1:
        losses: Numbers = -log_expit(np.where(labels > 0, 1.0, -1.0) * outputs[:, 0])
        return losses
    largest = outputs.max(axis=1)
    away = np.log(np.exp(outputs - largest[:, np.newaxis]).sum(axis=1)) + largest
    own = outputs[np.arange(len(outputs)), labels]
    rest: Numbers = away - own
    return rest


def class_chances(outputs: Numbers) -> Numbers:
    """Return a probability of each class, (n, n_classes), by outputs (n, c)."""
    if outputs.shape[1] == 1:
        return np.column_stack([expit(-outputs[:, 0]), expit(outputs[:, 0])])
    shares = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    chances: Numbers = shares / shares.sum(axis=1, keepdims=True)
    return chances
