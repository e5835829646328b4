"""The objective of a gate and a local classifier for a full model, and its gradient.

Nan ("Learning to predict under a budget", 2018), (OPT) and (OPT1) of chapter 5. For row i, with
weight w_i (sum 1), gate g_i = g(x_i), local outputs f_i = f_1(x_i) and the full model's loss l_0i:

    A_i = l_1(f_i, y_i) + log(1 + exp(g_i)),      B_i = l_0i + log(1 + exp(-g_i)),
    J = min_q sum_i w_i [(1 - q_i) A_i + q_i B_i - H(q_i)] + Omega,       sum_i w_i q_i <= P_full,

where q_i is the share of row i that goes to the full model, H the entropy, and l_1 the logistic
loss (softmax loss for more than two classes). The minimum over q is q_i = sigma(A_i - B_i - beta),
with the least beta >= 0 that meets the limit. Then

    J = -sum_i w_i log[exp(-A_i) + exp(-B_i - beta)] - beta P_full + Omega,

since exp(-A_i) = sigma(-g_i) p_1(y_i | x_i) and exp(-B_i) = sigma(g_i) p_0(y_i | x_i): with P_full
= 1 beta is 0, and J is the negative log likelihood of gate and both models together. The gradient
of J over g and f_1 is that of the sum at fixed q (envelope theorem).

With ``distance="log_odds"`` the gate is fitted to the log odds of q instead (Adapt-LstSq, A.1):
    J = min_q sum_i w_i [(1 - q_i) l_1i + q_i l_0i + (logit q_i - g_i)^2] + Omega.

Omega is `ridge` / (2 n) times the sum of squared coefficients of columns of variance 1, without
intercepts; n is the weight of all rows. J does not include costs: sets of features are compared by
J and by cost.

`best_split` is (OPT1), in closed form except for the price beta. `best_log_odds` is for a gate
fitted to the log odds of q: (OPT5) of A.1, corrected as in the errata of the documentation: over
s_i = logit(q_i), with a_i = l_1i - l_0i,

    sum_i w_i [(1 - q_i) l_1i + q_i l_0i + (s_i - g_i)^2],      sum_i w_i q_i <= P_full.

At a price beta >= 0 of a share each row minimizes ``h(s) = (a - beta) sigma(-s) + (s - g)^2`` by
itself. Its derivative ``2 (s - g) - (a - beta) sigma(s) sigma(-s)`` has all its roots between g and
g + (a - beta) / 8, and a single one where ``|a - beta| < 12 sqrt 3``, since the derivative of
sigma(s) sigma(-s) is at most 1 / (6 sqrt 3). Otherwise the best of the roots that a grid separates
is taken.

The price is found by Newton's method in a bracket, because q falls as it grows. If all rows have a
single root, q is continuous in the price, so the limit is met with equality, and no other shares
within the limit have a smaller sum. Otherwise q of a row may jump, and the returned shares are the
best among those whose mean is at most their own.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.methods.budget.gated.kernels.logistic import (
    gated_losses,
    least_objective,
    price_of_limit,
    signed_losses,
)

_SINGLE = 12.0 * math.sqrt(3.0)
_N_STEPS = 60
_N_GRID = 33
_NEAR = 1e-10  # how far below the limit the mean of q may be


class Split(NamedTuple):
    """Shares q (n,) of rows that go to the full model, their price beta, and logit q."""

    shares: Floats
    beta: float
    logits: Floats


def best_split(gaps: Floats, sizes: Floats, limit: float) -> Split:
    """Return q_i = sigma(gap_i - beta) with the least beta >= 0 such that sum w q <= limit.

    Newton's method within a bracket, with bisection if a step would leave it; gaps are A - B (n,),
    sizes w (n,) of sum 1.
    """
    if limit <= 0.0:
        return Split(np.zeros_like(gaps), np.inf, np.full_like(gaps, -np.inf))
    if limit >= 1.0:
        return Split(expit(gaps), 0.0, gaps)
    shares = np.empty_like(gaps)
    highest = max(float(gaps.max()) - float(logit(limit)), 0.0)  # all are within the limit there
    beta = price_of_limit(gaps, sizes, limit, highest, shares)
    return Split(shares, beta, gaps - beta)


def best_log_odds(gaps: Floats, gates: Floats, sizes: Floats, limit: float) -> Split:
    """Return the best shares for gaps a (n,), gates g (n,), sizes w (n,) of sum 1, limit > 0."""
    logits = _logits(gaps, gates)
    if limit >= 1.0 or float(sizes @ expit(logits)) <= limit:
        return Split(expit(logits), 0.0, logits)
    low, high = 0.0, 1.0
    while float(sizes @ expit(_logits(gaps - high, gates))) > limit:
        low, high = high, 2.0 * high
    beta = low
    for _ in range(_N_STEPS):
        logits = _logits(gaps - beta, gates)
        chances = expit(logits)
        excess = float(sizes @ chances) - limit
        low, high = (beta, high) if excess > 0 else (low, beta)
        if -_NEAR <= excess <= 0 or high - low <= 1e-15 * high:
            break
        bends = chances * expit(-logits)
        curvatures = 2.0 - (gaps - beta) * bends * (1.0 - 2.0 * chances)
        slope = float(sizes @ (bends**2 / np.where(curvatures > 0, curvatures, np.inf)))
        step = beta + (excess + 0.5 * _NEAR) / slope if slope > 0 else low
        beta = step if low < step < high else 0.5 * (low + high)
    logits = _logits(gaps - high, gates)
    return Split(expit(logits), high, logits)


def _logits(prices: Floats, gates: Floats) -> Floats:
    """Return the s (n,) that minimize ``price sigma(-s) + (s - g)^2``."""
    ends = gates + prices / 8.0
    low, high = np.minimum(gates, ends), np.maximum(gates, ends)
    many = np.flatnonzero(np.abs(prices) >= _SINGLE)
    if many.size:
        low[many], high[many] = _brackets(prices[many], gates[many], low[many], high[many])
    found = 0.5 * (low + high)
    for _ in range(_N_STEPS):
        chances = expit(found)
        bends = chances * expit(-found)
        slopes = 2.0 * (found - gates) - prices * bends
        low, high = np.where(slopes <= 0, found, low), np.where(slopes > 0, found, high)
        curvatures = 2.0 - prices * bends * (1.0 - 2.0 * chances)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = found - slopes / curvatures
        inside = (newton >= low) & (newton <= high)
        following = np.where(inside, newton, 0.5 * (low + high))
        if np.abs(following - found).max(initial=0.0) <= 1e-11:
            return following
        found = following
    return found


def _brackets(prices: Floats, gates: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return intervals within [low, high] around the best root of each row, found on a grid."""
    ends = low[:, np.newaxis], high[:, np.newaxis]
    whole = ends[0] + (ends[1] - ends[0]) * np.linspace(0.0, 1.0, _N_GRID)
    bend = np.linspace(-8.0, 8.0, _N_GRID).clip(*ends)  # where sigma bends
    grid = np.concatenate([whole, bend], axis=1)
    values = prices[:, np.newaxis] * expit(-grid) + (grid - gates[:, np.newaxis]) ** 2
    best = grid[np.arange(len(grid)), values.argmin(axis=1)][:, np.newaxis]
    below = np.where(grid < best, grid, -np.inf).max(axis=1)
    above = np.where(grid > best, grid, np.inf).min(axis=1)
    return np.maximum(below, low), np.minimum(above, high)


class State(NamedTuple):
    """Coefficients of the gate (p,) and of the local model (p, c), intercepts last."""

    gate: Floats
    local: Floats


@dataclass(frozen=True, slots=True, eq=False)
class GateProblem:
    """Rows (n, p) with a last column of ones; labels, weights > 0 and full-model losses, (n,) each.

    full_share in [0, 1] limits the mean of q; ridge >= 0; the distance of gate and q is "kl" or
    "log_odds". The latter needs full_share > 0.
    """

    rows: Floats
    labels: Integers
    n_classes: int
    weights: Floats
    full_losses: Floats
    full_share: float
    ridge: float
    distance: str = "kl"

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the local model: 1 (log odds) for two classes, or n_classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())

    def part(self, chosen: Flags) -> "GateProblem":
        """Return the problem for some of the rows, (n,) bool."""
        return replace(
            self, rows=self.rows[chosen], labels=self.labels[chosen],
            weights=self.weights[chosen], full_losses=self.full_losses[chosen],
        )  # fmt: skip

    def losses(self, state: State) -> tuple[Floats, Floats]:
        """Return A and B, (n,) each; with "log_odds", only the losses of both models."""
        return self.losses_at(self.rows @ state.gate, self.rows @ state.local)

    def losses_at(self, gates: Floats, outputs: Floats) -> tuple[Floats, Floats]:
        """Return `losses` from gates (n,) and local outputs (n, c)."""
        local = local_losses(outputs, self.labels)
        if self.distance == "log_odds":
            return local, self.full_losses
        kept, sent = np.empty_like(local), np.empty_like(local)
        gated_losses(gates, local, self.full_losses, kept, sent)
        return kept, sent

    def split(self, state: State) -> Split:
        """Return the best shares of the full model."""
        return self.split_at(self.rows @ state.gate, self.rows @ state.local)

    def _split(self, gaps: Floats, gates: Floats) -> Split:
        sizes = self.weights / self.total
        if self.distance == "log_odds":
            return best_log_odds(gaps, gates, sizes, self.full_share)
        return best_split(gaps, sizes, self.full_share)

    def split_at(self, gates: Floats, outputs: Floats) -> Split:
        """Return `split` from gates (n,) and local outputs (n, c)."""
        kept, sent = self.losses_at(gates, outputs)
        return self._split(kept - sent, gates)

    def value_at(self, gates: Floats, outputs: Floats) -> float:
        """Return J without Omega, nats per row, from gates (n,) and local outputs (n, c)."""
        kept, sent = self.losses_at(gates, outputs)
        return self._least(kept, sent, gates, self._split(kept - sent, gates))

    def _least(self, kept: Floats, sent: Floats, gates: Floats, split: Split) -> float:
        q, beta, logits = split
        if self.distance == "log_odds":
            both, price = (1 - q) * kept + q * sent + (logits - gates) ** 2, 0.0
        else:
            if not np.isinf(beta):
                total = least_objective(kept, sent, beta, self.weights)
                return float(total / self.total - beta * self.full_share)
            both, price = kept, 0.0
        return float(self.weights @ both) / self.total - price

    def value_and_split(self, state: State) -> tuple[float, Split]:
        """Return J, nats per row, and the best shares."""
        gates, outputs = self.rows @ state.gate, self.rows @ state.local
        kept, sent = self.losses_at(gates, outputs)
        split = self._split(kept - sent, gates)
        return self._least(kept, sent, gates, split) + self.penalty(state), split

    def penalty(self, state: State) -> float:
        """Return Omega."""
        squares = (state.gate[:-1] ** 2).sum() + (state.local[:-1] ** 2).sum()
        return float(0.5 * self.ridge / self.total * squares)

    def value_and_gradient(self, state: State) -> tuple[float, State]:
        """Return J, nats per row, and its gradient."""
        gates, outputs = self.rows @ state.gate, self.rows @ state.local
        kept, sent = self.losses_at(gates, outputs)
        sizes = self.weights / self.total
        split = self._split(kept - sent, gates)
        q = split.shares
        pulls = expit(gates) - q if self.distance == "kl" else 2.0 * (gates - split.logits)
        value = self._least(kept, sent, gates, split) + self.penalty(state)
        of_gate = self.rows.T @ (sizes * pulls)
        of_local = self.rows.T @ ((sizes * (1 - q))[:, np.newaxis] * self.pulls(outputs))
        shrinks = np.full(len(state.gate), self.ridge / self.total)
        shrinks[-1] = 0.0
        gradient = State(
            of_gate + shrinks * state.gate, of_local + shrinks[:, np.newaxis] * state.local
        )
        return value, gradient

    def pulls(self, outputs: Floats) -> Floats:
        """Return the derivatives of the local loss with respect to outputs (n, c)."""
        if outputs.shape[1] == 1:
            pulled: Floats = expit(outputs) - self.labels[:, np.newaxis]
            return pulled
        chances = class_chances(outputs)
        chances[np.arange(len(outputs)), self.labels] -= 1.0
        return chances


def local_losses(outputs: Floats, labels: Integers) -> Floats:
    """Return the loss of each row, nats, from outputs (n, c)."""
    if outputs.shape[1] == 1:
        losses = np.empty(len(outputs))
        signed_losses(np.ascontiguousarray(outputs[:, 0]), labels, losses)
        return losses
    largest = outputs.max(axis=1)
    away = np.log(np.exp(outputs - largest[:, np.newaxis]).sum(axis=1)) + largest
    own = outputs[np.arange(len(outputs)), labels]
    rest: Floats = away - own
    return rest


def class_chances(outputs: Floats) -> Floats:
    """Return the probability of each class, (n, n_classes), from outputs (n, c)."""
    if outputs.shape[1] == 1:
        return np.column_stack([expit(-outputs[:, 0]), expit(outputs[:, 0])])
    shares = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    chances: Floats = shares / shares.sum(axis=1, keepdims=True)
    return chances
