"""Logistic regression that pays for its columns, with a proved bound on the excess loss.

Kusner ("Learning in the Real World", 2016), equation 2.5 with lambda / n (see the errata of
the documentation), for any number of classes: it minimizes over intercepts b and coefficients B of
columns z,

    P(b, B) = sum_i w_i [log sum_k exp(f_ik) - f_i,y_i] + penalty Omega(B),     f_i = b + B' z_i,

where weights w have sum 1, and `CostNorms` has Omega. The first of two classes has f = 0; each of
more classes has its own f. Intercepts, and columns that cost nothing, are free.

**The duality gap.** Let q_i be any probabilities of the classes with sum_i w_i (q_i - e_i) = 0, e_i
the indicator of y_i, and the same for the products with each free column; G = sum_i w_i z_i (q_i -
e_i)' for the other columns. Because log sum exp(f) is at least f' q + H(q), H the entropy,

    P(b, B) >= sum_i w_i H(q_i) + sum_i w_i f_i' (q_i - e_i) + penalty Omega(B)
             = sum_i w_i H(q_i) + <G, B> + penalty Omega(B) >= sum_i w_i H(q_i)

if the pulls of `CostNorms` show that -<G, B> <= penalty Omega(B) for all B. Such q are made from
the model's own probabilities: one step along their derivatives meets the equations (they remain
probabilities if it is below 1; otherwise only 0 is proved), and then q becomes e + s (q - e), with
the s <= 1 that the pulls require. All of this is up to rounding. If free columns separate the
classes, there is no minimum, and the search ends near 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.watch import check_time
from bayescascade.costs.items import CostNorms
from bayescascade.costs.kernels.descending import descend

GAP = 5e-7
"""The search ends at this gap, which is half of what is promised."""

_MOST_STEPS = 500
_MOST_WORK = 3e8  # multiplications within a step
_MOST_WHOLE = 1000  # coefficients whose second derivatives are all computed
_STEEP = 1.1  # factor of the curvature within outputs, if the whole is too much
_ENOUGH = 1e-9  # share of the gap: a sweep whose blocks gain no more is the last
_ROUNDING = 1e-12
_SINGULAR = 1e-13  # share of the largest eigenvalue


class LogisticFit(NamedTuple):
    """Coefficients (p + 1, c), intercepts last, and their duality gap, nats per row."""

    penalty: float
    coefficients: Floats
    gap: float


class _Point(NamedTuple):
    """Coefficients, their loss, the probabilities (n, n_classes) and the gradient of the loss."""

    coefficients: Floats
    loss: float
    chances: Floats
    gradient: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LogisticProblem:
    """Rows (n, p + 1), with a last column of ones; indicators of their labels (n, n_classes)."""

    rows: Floats
    indicators: Floats
    weights: Floats  # (n,) > 0, of sum 1
    norms: CostNorms  # for p + 1 columns

    @property
    def n_outputs(self) -> int:
        """Number of outputs: one for two classes."""
        n_classes = self.indicators.shape[1]
        return 1 if n_classes == 2 else n_classes

    def path(self, penalties: Sequence[float]) -> Iterator[LogisticFit]:
        """Yield the solution for each penalty, starting from the previous one."""
        start = np.zeros((self.rows.shape[1], self.n_outputs))
        for penalty in penalties:
            solution = self.solve(penalty, start)
            yield solution
            start = solution.coefficients

    def largest_penalty(self) -> float:
        """Return a penalty > 0 from which on all coefficients with a cost are 0."""
        free = self.norms.is_free
        alone = LogisticProblem(
            self.rows[:, free],
            self.indicators,
            self.weights,
            self.norms.among(np.flatnonzero(free)),
        )
        coefficients = np.zeros((free.size, self.n_outputs))
        coefficients[free] = alone.solve(0.0, coefficients[free]).coefficients
        gradient = self._at(coefficients).gradient
        most = self.norms.least_amount(gradient, 0.0)
        return max(self.norms.least_amount(gradient, most), _ROUNDING)

    def solve(self, penalty: float, start: Floats) -> LogisticFit:
        """Return the best coefficients, by proximal Newton steps.

        A step minimizes the second-order expansion of the loss (an approximation for many
        coefficients of several classes) plus the penalty, over the columns that are in use or would
        be after a plain proximal step; others are best left at 0. Then it is shortened until the
        sum has decreased.
        """
        here = self._at(start)
        best, bound = (
            LogisticFit(penalty, start, np.inf),
            0.0,
        )  # loss and penalty are never negative
        for _ in range(_MOST_STEPS):
            check_time()
            value = here.loss + penalty * self.norms.total(here.coefficients)
            bound = max(bound, self._bound(here, penalty))
            best = LogisticFit(penalty, here.coefficients, max(value - bound, 0.0))
            if best.gap <= GAP:
                break
            there = self._step(here, value, penalty, _ENOUGH * best.gap)
            if there is None:
                there = self._step(here, value, penalty, 0.0)
            if there is None:
                break
            here = there
        return best

    def _at(self, coefficients: Floats) -> _Point:
        is_used = coefficients.any(axis=1)
        outputs = self.rows[:, is_used] @ coefficients[is_used]
        if outputs.shape[1] == 1:
            outputs = np.column_stack([np.zeros(len(outputs)), outputs])
        logs = logsumexp(outputs, axis=1)
        own = np.einsum("ik,ik->i", outputs, self.indicators)
        chances = np.exp(outputs - logs[:, np.newaxis])
        gradient = self.rows.T @ self._pulled(chances - self.indicators)
        return _Point(coefficients, float(self.weights @ (logs - own)), chances, gradient)

    def _pulled(self, changes: Floats) -> Floats:
        """Return weighted changes of probabilities, (n, n_outputs)."""
        return self.weights[:, np.newaxis] * changes[:, -self.n_outputs :]

    def _step(self, here: _Point, value: float, penalty: float, enough: float) -> _Point | None:
        """Return the point after a step, None if none is better."""
        proximal, _ = self.norms.split(here.coefficients - here.gradient, penalty)
        used = np.flatnonzero(here.coefficients.any(axis=1) | proximal.any(axis=1))
        norms, old = self.norms.among(used), here.coefficients[used]
        found = _quadratic_best(
            self._curvature(here, used), here.gradient[used], old, norms, penalty, enough
        )
        change = np.zeros_like(here.coefficients)
        change[used] = found - old
        slope = float(np.sum(here.gradient * change)) + penalty * (
            norms.total(found) - norms.total(old)
        )
        length = 1.0
        while length > 1e-10:
            there = self._at(here.coefficients + length * change)
            reached = there.loss + penalty * self.norms.total(there.coefficients)
            if reached <= value + 0.1 * length * slope:
                return there if reached < value else None
            length /= 2
        return None

    def _curvature(self, here: _Point, used: Integers) -> Floats:
        """Return second derivatives of the loss for u columns, (1, u c, u c), or an approximation.

        If they are too many, it is a little more than those within each output, (c, u, u). Twice
        those are a bound: for probabilities p, diag(p) - p p' is at most 2 diag(p (1 - p)), because
        the difference is diagonally dominant. Smaller ones make steps longer, and hardly ever too
        long.
        """
        rows, n_outputs = self.rows[:, used], self.n_outputs
        own = here.chances[:, -n_outputs:]
        if used.size * n_outputs <= _MOST_WHOLE or n_outputs == 1:
            return self._products(rows, own)[np.newaxis]
        spreads = _STEEP * self.weights[:, np.newaxis] * own * (1 - own)
        single = rows.astype(np.float32)  # half the time, and enough for curvature
        found = [(single.T * spread) @ single for spread in spreads.T.astype(np.float32)]
        return np.stack(found).astype(np.float64)

    def _products(self, columns: Floats, own: Floats) -> Floats:
        """Return the second derivatives (u c, u c) for coefficients of columns (n, u)."""
        (n_columns, n_outputs) = columns.shape[1], own.shape[1]
        products = np.empty((n_columns, n_outputs, n_columns, n_outputs))
        for k in range(n_outputs):
            for m in range(k + 1):
                spread = self.weights * own[:, k] * ((k == m) - own[:, m])
                products[:, k, :, m] = products[:, m, :, k] = (columns.T * spread) @ columns
        return products.reshape(n_columns * n_outputs, n_columns * n_outputs)

    def _bound(self, here: _Point, penalty: float) -> float:
        """Return a lower bound on loss plus penalty for all coefficients; see the module."""
        chances, indicators = here.chances, self.indicators
        free = self.rows[:, self.norms.is_free]
        change = self._correction(chances, free, here.gradient[self.norms.is_free])
        if not change.max(initial=0.0) <= 1.0:
            return -np.inf
        chances = chances * (1 - change)
        rest = free.T @ self._pulled(chances - indicators)
        if np.abs(rest).max(initial=0.0) > _ROUNDING * (1 + np.abs(free).max(initial=0.0)):
            return -np.inf
        gradient = self.rows.T @ self._pulled(chances - indicators)
        needed = self.norms.least_amount(gradient, penalty)
        share = 1.0 if needed <= penalty else penalty / needed
        chances = indicators + share * (chances - indicators)
        return float(-self.weights @ xlogy(chances, chances).sum(axis=1))

    def _correction(self, chances: Floats, free: Floats, gradient: Floats) -> Floats:
        """Return t (n, n_classes): p (1 - t), of sum 1, meets the equations of free columns.

        With a_ik = x_i d_k, d_k the step of output k, t is a minus its mean under p: the derivative
        of p. The step solves the equations, which are linear in it.
        """
        n_free, n_outputs = gradient.shape
        squares = self._products(free, chances[:, -n_outputs:])
        step, *_ = np.linalg.lstsq(squares, gradient.ravel(), rcond=_SINGULAR)
        moved = np.zeros_like(chances)
        moved[:, -n_outputs:] = free @ step.reshape(n_free, n_outputs)
        moved -= (chances * moved).sum(axis=1, keepdims=True)
        return moved


def _quadratic_best(
    curvature: Floats,
    gradient: Floats,
    start: Floats,
    norms: CostNorms,
    penalty: float,
    enough: float,
) -> Floats:
    """Return the minimizer of a quadratic function plus penalty; gradient, start (u, c).

    The last sweep is one whose blocks gain no more than `enough`. Free columns are eliminated:
    given the others, they solve linear equations.
    """
    (n_columns, n_outputs), n_blocks = start.shape, len(curvature)
    per = n_outputs if n_blocks == 1 else 1  # numbers of a column in a block of the curvature
    free = np.repeat(norms.is_free, per)
    slopes = gradient.reshape(n_columns * per, -1).T if n_blocks == 1 else gradient.T
    solved, reduced, slope = [], [], np.empty((n_blocks, int((~free).sum())))
    for b, square in enumerate(curvature):
        across = np.column_stack([square[free][:, ~free], slopes[b][free]])
        inverse, *_ = np.linalg.lstsq(square[np.ix_(free, free)], across, rcond=_SINGULAR)
        solved.append(inverse)
        reduced.append(square[np.ix_(~free, ~free)] - square[~free][:, free] @ inverse[:, :-1])
        slope[b] = slopes[b][~free] - square[~free][:, free] @ inverse[:, -1]
    found = start.copy()
    kept = ~norms.is_free
    if kept.any():
        within = norms.among(np.flatnonzero(kept))
        left = np.stack(reduced)
        layout = within.steps(left, penalty)
        values, work = start[kept], np.empty_like(start[kept])
        pulls = np.zeros((layout.incurring.size, n_outputs))
        sweeps = int(np.clip(_MOST_WORK / (values.size * left.shape[1]), 100, 1e5))
        down = np.ascontiguousarray((slope if n_blocks > 1 else slope.reshape(-1, n_outputs).T).T)
        descend(left, down, values, work, pulls, layout, sweeps, enough)
        found[kept] = values
    moved = (found - start)[kept]
    for b, inverse in enumerate(solved):
        change = moved.ravel() if n_blocks == 1 else moved[:, b]
        step = -inverse[:, -1] - inverse[:, :-1] @ change
        if n_blocks == 1:
            found[~kept] += step.reshape(-1, n_outputs)
        else:
            found[~kept, b] += step
    return found
