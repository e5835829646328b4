"""Predictors of fixed gates: a convex problem, with how far from its minimum they are.

Minimized is F(theta) = mean loss + ridge / (2 n) |theta|^2, theta all predictors and constants.
F - (m / 2) |theta|^2 is convex for m = ridge / n, so F(theta) - min F <= |grad F(theta)|^2 / (2 m):
minimize the two sides of F(u) >= F(theta) + grad F' (u - theta) + (m / 2) |u - theta|^2 over u.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from bayescascade.base.watch import check_time
from bayescascade.methods.sensors.models import designed
from bayescascade.methods.sensors.signals import Floats
from bayescascade.methods.sensors.training import Lesson


class Refit(NamedTuple):
    """Predictors and constants (p + K + 1, M), their F and what it is at most above the minimum."""

    theta: Floats
    value: float
    gap: float  # nats a row


def refitted(lesson: Lesson, gates: Floats, start: Floats, max_iter: int = 500) -> Refit:
    """Return the best predictors of gates (n, K): in closed form of squares, else by L-BFGS.

    Features that no row sends are left at 0, where the ridge puts them.
    """
    design = designed(lesson.signals, gates)
    used = design.any(axis=0)
    matrix, n = np.ascontiguousarray(design[:, used]), len(design)
    shape, modulus = (matrix.shape[1], lesson.targets.shape[1]), lesson.ridge / n
    begin = start[used]

    def value(flat: Floats) -> tuple[float, Floats]:
        check_time()
        theta = flat.reshape(shape)
        outputs = matrix @ theta
        loss = float(lesson.loss.rows(outputs, lesson.targets).mean())
        slope = matrix.T @ (lesson.loss.slope(outputs, lesson.targets) / n) + modulus * theta
        return loss + 0.5 * modulus * float(np.sum(theta**2)), slope.ravel()

    if not lesson.loss.is_of_classes:
        squares = matrix.T @ matrix / n
        squares[np.diag_indices_from(squares)] += modulus
        best = cho_solve(cho_factor(squares), matrix.T @ lesson.targets / n)
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
