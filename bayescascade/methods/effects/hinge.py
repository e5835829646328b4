"""The maximum of two hinge losses, exactly: Goh (2018), 1252-1343; h = w_0 + sum v_j K(x_j, .).

    minimize max(R_T, R_C) + penalty v' K v        (v, not a pre-image w)

Its dual, over 0 <= a_i <= w_i alpha_i with alpha_i = alpha (treated) or 1 - alpha, sum u_i a_i = 0:

    maximize sum a - a' Q a / (4 penalty),  Q = uu' * K,  and v = u a / (2 penalty).

Any feasible a and any (v, w_0) bound the optimum from below and above, so their difference is a
proof of how far either is from it, whatever rounding did. It is solved by a primal-dual interior
point in (a, alpha); beyond `MOST_EXACT` rows by bisection on alpha over weighted support vector
machines of scikit-learn's.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.svm import SVC

from bayescascade.base.watch import check_time
from bayescascade.methods.effects.losses import SURROGATES, Arms

Floats = NDArray[np.float64]

MOST_EXACT = 4_000  # rows
_GAP = 1e-9
_MOST_STEPS, _PATIENCE = 100, 10  # steps, and those without a better proof
_HINGE = SURROGATES["hinge"]


@dataclass(frozen=True, eq=False)
class MinimaxFit:
    """The best function found, and a proof of how good it is.

    Attributes
    ----------
    coefficients : (n,) float64
        v, of each row.
    intercept : float
        w_0.
    objective : float
        Larger of the two risks, plus penalty.
    gap : float >= 0
        By which any function may do better.
    alpha : float
        What the treated weigh in the dual.
    n_iter : int
        Steps taken.
    """

    coefficients: Floats
    intercept: float
    objective: float
    gap: float
    alpha: float
    n_iter: int


def best_intercept(scores: Floats, arms: Arms, is_maximum: bool = True) -> float:
    """Return the w_0 of least max (or mean) of R_T and R_C for scores h - w_0, exactly.

    Both risks are convex and piecewise linear in w_0, with breaks at u_i - score_i: the least
    maximum is at a break, or where the two cross within a piece beside the best break.
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
    for sign in (1.0, -1.0):  # the loss is positive for w_0 below u - score of u = 1, above else
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
    """Return the function of a dual point, made feasible, with its gap; see the module.

    Of the mean in place of the maximum, alpha is 1/2.
    """
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

    Variables a (n,), alpha; slacks a, b = w (alpha_i) - a, alpha, 1 - alpha; multipliers of each,
    and w_0 of the equation. Each step solves with Q / (2 penalty) + diagonal, n^3 / 3 operations.
    """
    n, signs, weights = len(gram), arms.signs, arms.weights
    side = np.where(arms.treatment, 1.0, -1.0)  # of alpha_i in alpha
    start = np.where(arms.treatment, 0.0, 1.0)
    hessian = (signs[:, None] * gram * signs) / (2.0 * penalty)
    alpha, dual, intercept = 0.5, 0.25 * weights, 0.0
    lower, upper = np.ones(n), np.ones(n)  # multipliers of a >= 0 and of a <= w alpha_i
    ends = np.ones(2)  # of alpha >= 0 and alpha <= 1
    best: MinimaxFit | None = None
    last = 0
    for step in range(1, _MOST_STEPS + 1):
        check_time()
        room = weights * (start + side * alpha) - dual
        edges = np.array([alpha, 1.0 - alpha])
        gap = dual @ lower + room @ upper + edges @ ends
        center = gap / (2 * n + 2)
        r_dual = hessian @ dual - 1.0 + signs * intercept - lower + upper
        r_alpha = -float((weights * side) @ upper) - ends[0] + ends[1]
        r_sum = float(signs @ dual)
        proved = certified(gram, arms, penalty, dual.copy(), step)
        if best is None or proved.gap < best.gap:
            best, last = proved, step
        if best.gap < _GAP or step > last + _PATIENCE or min(dual.min(), room.min()) <= 0.0:
            break
        diagonal = lower / dual + upper / room
        factor = _factor(hessian, diagonal)
        if factor is None:
            break
        border = -(upper / room) * weights * side  # of a and alpha in the reduced system
        corner = float((upper / room) @ (weights * side) ** 2) + float((ends / edges).sum())
        both = cho_solve(factor, np.column_stack([border, signs]))
        small_system = np.array([
            [corner - border @ both[:, 0], -border @ both[:, 1]],
            [-signs @ both[:, 0], -signs @ both[:, 1]],
        ])  # fmt: skip

        def direction(
            aim: Any, cross: tuple[Floats, Floats, Floats]
        ) -> tuple[Floats, float, float, Floats, Floats, Floats]:
            c_low = (aim - cross[0]) / dual - lower  # noqa: B023 - called within the step
            c_up = (aim - cross[1]) / room - upper  # noqa: B023
            c_end = (aim - cross[2]) / edges - ends  # noqa: B023
            right = -r_dual + c_low - c_up  # noqa: B023
            right_alpha = -r_alpha + (weights * side) @ c_up + c_end[0] - c_end[1]  # noqa: B023
            part = cho_solve(factor, right)  # noqa: B023
            d_alpha, d_sum = np.linalg.solve(
                small_system,  # noqa: B023
                [right_alpha - border @ part, -r_sum - signs @ part],  # noqa: B023
            )
            d_dual = part - both[:, 0] * d_alpha - both[:, 1] * d_sum  # noqa: B023
            d_room = weights * side * d_alpha - d_dual
            d_low = c_low - lower / dual * d_dual  # noqa: B023
            d_up = c_up - upper / room * d_room  # noqa: B023
            d_end = c_end - ends / edges * np.array([d_alpha, -d_alpha])  # noqa: B023
            return d_dual, float(d_alpha), float(d_sum), d_low, d_up, d_end

        def furthest(d: tuple[Floats, float, float, Floats, Floats, Floats]) -> float:
            now = np.concatenate([dual, room, edges, lower, upper, ends])  # noqa: B023
            change = np.concatenate([
                d[0], weights * side * d[1] - d[0], [d[1], -d[1]], d[3], d[4], d[5],
            ])  # fmt: skip
            falls = change < 0.0
            return min(1.0, float((-now[falls] / change[falls]).min(initial=1.0 / 0.995)) * 0.995)

        none = (np.zeros(n), np.zeros(n), np.zeros(2))
        affine = direction(0.0, none)
        length = furthest(affine)
        d_room = weights * side * affine[1] - affine[0]
        d_edges = np.array([affine[1], -affine[1]])
        reached = (
            (dual + length * affine[0]) @ (lower + length * affine[3])
            + (room + length * d_room) @ (upper + length * affine[4])
            + (edges + length * d_edges) @ (ends + length * affine[5])
        )
        aim = center * float(np.clip(reached / gap, 0.0, 1.0)) ** 3
        cross = affine[0] * affine[3], d_room * affine[4], d_edges * affine[5]
        found = direction(aim, cross)
        length = furthest(found)
        dual, alpha = dual + length * found[0], alpha + length * found[1]
        intercept += length * found[2]
        lower, upper, ends = (
            old + length * new for old, new in zip((lower, upper, ends), found[3:], strict=True)
        )
    assert best is not None
    return best


def _factor(hessian: Floats, diagonal: Floats) -> Any:
    """Return a Cholesky factor of the sum, of a little more where rounding forbids it, or None."""
    ridge, size = 0.0, float(np.diag(hessian).mean())
    for _ in range(4):
        try:
            whole = hessian + np.diag(diagonal + ridge)
            return cho_factor(whole, lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # such as for a kernel of few dimensions and a tiny penalty
            ridge = max(100.0 * ridge, 1e-14 * size)
    return None


class _Product(NamedTuple):
    """K of features, by products with vectors alone."""

    features: Floats

    def __matmul__(self, vector: Floats) -> Floats:
        return np.asarray(self.features @ (self.features.T @ vector))


def by_machines(features: Floats, arms: Arms, penalty: float, is_maximum: bool) -> MinimaxFit:
    """Return the least maximum (or mean) of hinge risks by scikit-learn's weighted machines.

    At a given alpha it is one machine, whose risks say on which side alpha must be; see
    `EffectPosterior.mode`. The gap counts from the best bound of any alpha.
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
    gap = max(best.objective - bound, 0.0)
    return MinimaxFit(best.coefficients, best.intercept, best.objective, gap, best.alpha, step)
