"""The maximum of two hinge losses, minimized exactly: Goh (2018), 1252-1343.

    minimize max(R_T, R_C) + penalty v' K v        (v, not a pre-image w)

Its dual, over 0 <= a_i <= w_i alpha_i with alpha_i = alpha (treated) or 1 - alpha, sum u_i a_i = 0:

    maximize sum a - a' Q a / (4 penalty),  Q = uu' * K,  and v = u a / (2 penalty).

Any feasible a and any (v, w_0) bound the optimum from below and above, so their difference proves
how far either is from it, in spite of rounding. It is solved by a primal-dual interior point in (a,
alpha); beyond `MOST_EXACT` rows by bisection on alpha over weighted support vector machines of
scikit-learn. The function is h = w_0 + sum v_j K(x_j, .).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.svm import SVC

from bayescascade.base.arrays import Floats
from bayescascade.base.watch import check_time
from bayescascade.methods.effects.losses import SURROGATES, Arms

MOST_EXACT = 4_000  # rows
_GAP = 1e-9
_MOST_STEPS, _PATIENCE = 100, 10  # maximum number of steps, and of those without a better proof
_HINGE = SURROGATES["hinge"]


class MinimaxFit(NamedTuple):
    """The best function found, with a proved gap."""

    coefficients: Floats  # v, (n,)
    intercept: float  # w_0
    objective: float  # larger of the two risks, plus penalty
    gap: float  # >= 0: bound on how much lower any objective may be
    alpha: float  # weight of the treated in the dual
    n_iter: int  # number of steps


def best_intercept(scores: Floats, arms: Arms, is_maximum: bool = True) -> float:
    """Return the w_0 with the exact least maximum (or mean) of R_T and R_C for scores h - w_0.

    Both risks are convex and piecewise linear in w_0, with breaks at u_i - score_i: the least
    maximum is at a break, or where they cross in a piece next to the best break.
    """
    breaks = np.unique(arms.signs - scores)
    risks = np.column_stack([
        _risks_at(breaks, scores[of], arms.signs[of], arms.weights[of])
        for of in (arms.treatment, ~arms.treatment)
    ])  # fmt: skip
    worst = risks.max(axis=1) if is_maximum else risks.mean(axis=1)
    best = int(worst.argmin())
    found, least = float(breaks[best]), float(worst[best])
    if is_maximum:
        difference = risks[:, 0] - risks[:, 1]
        for left in range(max(best - 1, 0), min(best + 1, len(breaks) - 1)):
            low, high = difference[left], difference[left + 1]
            if low * high < 0.0:
                share = low / (low - high)
                value = risks[left, 0] + share * (risks[left + 1, 0] - risks[left, 0])
                if value < least:
                    found = float(breaks[left] + share * (breaks[left + 1] - breaks[left]))
                    least = value
    return found


def _risks_at(points: Floats, scores: Floats, signs: Floats, weights: Floats) -> Floats:
    """Return sum w [1 - u (score + w_0)]_+ at each w_0, by sorted sums, (n_points,)."""
    total = np.zeros(len(points))
    for sign in (1.0, -1.0):  # the loss is positive for w_0 below u - score if u = 1, else above
        of = signs == sign
        ends = sign * (sign - scores[of])
        order = np.argsort(ends)
        sums = np.concatenate([[0.0], np.cumsum(weights[of][order])])
        moments = np.concatenate([[0.0], np.cumsum((weights[of] * ends)[order])])
        place = np.searchsorted(ends[order], sign * points, side="right")
        total += moments[-1] - moments[place] - sign * points * (sums[-1] - sums[place])
    return total


def certified(
    gram: Any, arms: Arms, penalty: float, dual: Floats, n_iter: int, is_maximum: bool = True
) -> MinimaxFit:
    """Return the function of a dual point, after making it feasible, with its gap."""
    positive = arms.signs > 0.0
    dual = np.maximum(dual, 0.0)
    sums = dual[positive].sum(), dual[~positive].sum()
    least = min(sums)
    for of, total in zip((positive, ~positive), sums, strict=True):
        dual[of] *= least / total if total > 0.0 else 0.0
    needed = [float((dual / arms.weights)[of].max()) for of in (arms.treatment, ~arms.treatment)]
    most = sum(needed) if is_maximum else 2.0 * max(needed)
    dual /= max(most, 1.0)
    coefficients = arms.signs * dual / (2.0 * penalty)
    scores = gram @ coefficients
    intercept = best_intercept(scores, arms, is_maximum)
    size = penalty * float(coefficients @ scores)
    risks = arms.risks(scores + intercept, _HINGE)
    objective = (max(risks) if is_maximum else sum(risks) / 2.0) + size
    alpha = needed[0] / max(sum(needed), 1e-300) if is_maximum else 0.5
    bound = float(dual.sum()) - size
    return MinimaxFit(
        coefficients, intercept, objective, max(objective - bound, 0.0), alpha, n_iter
    )


def solve_hinge(gram: Floats, arms: Arms, penalty: float) -> MinimaxFit:
    """Return the least maximum by a primal-dual interior point, to a gap of about 1e-9.

    Variables a (n,) and alpha; slacks a, w alpha_i - a, alpha and 1 - alpha with a multiplier each;
    w_0 belongs to the equation. Each step solves twice with Q / (2 penalty) + diagonal, n^3 / 3
    operations: towards the optimum, and then with the resulting correction for curvature (Mehrotra
    1992).
    """
    n, signs = len(gram), arms.signs
    side = arms.weights * np.where(arms.treatment, 1.0, -1.0)  # derivative of w alpha_i by alpha
    at_zero = np.concatenate([np.zeros(n), np.where(arms.treatment, 0.0, arms.weights), [0.0, 1.0]])

    def change(d_dual: Floats, d_alpha: float) -> Floats:
        return np.concatenate([d_dual, side * d_alpha - d_dual, [d_alpha, -d_alpha]])

    hessian = (signs[:, None] * gram * signs) / (2.0 * penalty)
    alpha, dual, intercept, multipliers = 0.5, 0.25 * arms.weights, 0.0, np.ones(2 * n + 2)
    best: MinimaxFit | None = None
    last = 0
    for step in range(1, _MOST_STEPS + 1):
        check_time()
        slacks = at_zero + change(dual, alpha)
        proved = certified(gram, arms, penalty, dual.copy(), step)
        if best is None or proved.gap < best.gap:
            best, last = proved, step
        if best.gap < _GAP or step > last + _PATIENCE or slacks.min() <= 0.0:
            break
        pull = multipliers / slacks
        factor = _factor(hessian, pull[:n] + pull[n:-2])
        if factor is None:
            break
        border = -pull[n:-2] * side  # between a and alpha in the reduced system
        both = cho_solve(factor, np.column_stack([border, signs]))
        corner = float(pull[n:-2] @ side**2 + pull[-2:].sum())
        small_system = np.diag([corner, 0.0]) - np.array([border, signs]) @ both
        gap, aim = float(slacks @ multipliers), np.zeros(2 * n + 2)
        for _ in ("towards the optimum", "corrected"):
            q = aim / slacks
            part = cho_solve(factor, 1.0 - hessian @ dual - signs * intercept + q[:n] - q[n:-2])
            right = [side @ q[n:-2] + q[-2] - q[-1] - border @ part, -signs @ (dual + part)]
            d_alpha, d_intercept = np.linalg.solve(small_system, right)
            d_dual = part - both @ [d_alpha, d_intercept]
            d_slacks = change(d_dual, d_alpha)
            d_multipliers = q - multipliers - pull * d_slacks
            now, d = np.r_[slacks, multipliers], np.r_[d_slacks, d_multipliers]
            length = min(1.0, 0.995 * float((-now[d < 0.0] / d[d < 0.0]).min(initial=2.0)))
            reached = (slacks + length * d_slacks) @ (multipliers + length * d_multipliers)
            center = gap / (2 * n + 2) * float(np.clip(reached / gap, 0.0, 1.0)) ** 3
            aim = center - d_slacks * d_multipliers
        dual, alpha = dual + length * d_dual, alpha + length * d_alpha
        intercept += length * d_intercept
        multipliers = multipliers + length * d_multipliers
    assert best is not None
    return best


def _factor(hessian: Floats, diagonal: Floats) -> Any:
    """Return a Cholesky factor of the sum, with a small ridge if rounding requires it, or None."""
    ridge, size = 0.0, float(np.diag(hessian).mean())
    for _ in range(4):
        try:
            whole = hessian + np.diag(diagonal + ridge)
            return cho_factor(whole, lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # such as for a kernel with few dimensions and a tiny penalty
            ridge = max(100.0 * ridge, 1e-14 * size)
    return None


class _Product(NamedTuple):
    """K of features, for products with vectors only."""

    features: Floats

    def __matmul__(self, vector: Floats) -> Floats:
        return np.asarray(self.features @ (self.features.T @ vector))


def by_machines(features: Floats, arms: Arms, penalty: float, is_maximum: bool) -> MinimaxFit:
    """Return the least maximum (or mean) of hinge risks, from weighted scikit-learn machines.

    For a given alpha it is one machine, whose risks say on which side the best alpha is; see
    `EffectPosterior.mode`. The gap is relative to the best bound of any alpha.
    """
    low, high, bound = (0.0, 1.0, -np.inf) if is_maximum else (0.5, 0.5, -np.inf)
    best: MinimaxFit | None = None
    for step in range(1, 21):
        alpha = 0.5 * (low + high)
        machine = SVC(C=1.0, kernel="linear", tol=1e-5, cache_size=500)
        machine.fit(features, arms.signs, arms.mixed(alpha) / (2.0 * penalty))
        dual = np.zeros(len(features))
        dual[machine.support_] = 2.0 * penalty * np.abs(machine.dual_coef_[0])
        found = certified(_Product(features), arms, penalty, dual, step, is_maximum)
        bound = max(bound, found.objective - found.gap)
        if best is None or found.objective < best.objective:
            best = found
        if not is_maximum or best.objective - bound < 1e-4 * best.objective:
            break
        scores = features @ (features.T @ found.coefficients)
        own = scores + best_intercept(scores, arms, False)
        treated, others = arms.risks(own, SURROGATES["hinge"])
        low, high = (alpha, high) if treated > others else (low, alpha)
    assert best is not None
    return best._replace(gap=max(best.objective - bound, 0.0), n_iter=step)
