"""The best union of boxes as a mixed-integer program, solved by HiGHS.

For box k, side s and level L >= 1 of `levels`, y_ksL says that the side's level is at least L, so
that y_ks1 >= y_ks2 >= ...; u_k says that the box is used. A positive i can be in box k, z_ik, only
if u_k and not y_ks(D + 1), D its depth, at any side; c_i <= sum_k z_ik says that it is covered. A
negative is let in, n_i >= u_k - sum_s y_ks(D + 1), unless some side keeps it out. The program
maximizes

    sum_i w_i c_i - C_I sum_i w_i n_i - C_E sum_k u_k - C_S sum_ks y_ks1.

Unlike (2.5) to (2.21) of the thesis, it has no M, epsilon and margin, and it chooses the number of
boxes. The thesis's program always uses all K boxes, so its ``-c_e K`` is a constant. Only y and u
must be integers.

HiGHS calculates in floats with tolerances of its own, 1e-6, so its result is no proof to the last
digit; its bound is reported unchanged.
"""

from contextlib import closing
from functools import partial
from time import perf_counter

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import coo_array

from bayescascade.base.errors import DataError
from bayescascade.base.watch import Watch
from bayescascade.methods.boxes.exact.levels import LevelRows, Levels
from bayescascade.methods.boxes.exact.search import CertifiedUnion
from bayescascade.model.guard import certified
from samplers.cluster import results_of_workers

TOLERANCE = 1e-6


class _Constraints:
    """Constraints ``sum of coefficients times variables <= right``, written one after another."""

    def __init__(self) -> None:
        self.cells: list[tuple[int, int, float]] = []
        self.right: list[float] = []

    def add(self, right: float, *terms: tuple[int, float]) -> None:
        self.cells += [(len(self.right), place, factor) for place, factor in terms]
        self.right.append(right)

    def build(self, n_variables: int) -> LinearConstraint:
        rows, places, factors = zip(*self.cells, strict=True)
        matrix = coo_array((factors, (rows, places)), shape=(len(self.right), n_variables))
        return LinearConstraint(matrix.tocsr(), -np.inf, np.array(self.right))


def solve_program(rows: LevelRows, n_boxes: int, watch: Watch | None = None) -> CertifiedUnion:
    """Return the best union of at most `n_boxes` boxes found by HiGHS, and its bound."""
    started, n_levels = perf_counter(), rows.n_levels
    starts = np.concatenate([[0], np.cumsum(n_levels)])  # indices of the y of each side
    n_orders, n_positives, n_negatives = int(starts[-1]), len(rows.positives), len(rows.negatives)
    size = n_orders + 1 + n_positives  # variables of a box: y, u and z
    covered, entered = n_boxes * size, n_boxes * size + n_positives
    n_variables = entered + n_negatives
    limits = _Constraints()
    worth, is_whole = np.zeros(n_variables), np.zeros(n_variables)
    worth[covered:entered] = rows.positive_weights
    worth[entered:] = -rows.costs.negative_weight * rows.negative_weights
    for base in range(0, covered, size):
        used = base + n_orders
        worth[used] = -rows.costs.box_cost
        worth[base + starts[:-1]] -= rows.costs.side_cost
        is_whole[base : used + 1] = 1
        for side, count in enumerate(n_levels.tolist()):
            first = base + int(starts[side])
            for level in range(1, count):
                limits.add(0.0, (first + level, 1.0), (first + level - 1, -1.0))
        for row, depths in enumerate(rows.positives.tolist()):
            inside = used + 1 + row
            limits.add(0.0, (inside, 1.0), (used, -1.0))
            for place in _beyond(base + starts[:-1], depths, n_levels):
                limits.add(1.0, (inside, 1.0), (place, 1.0))
        for row, depths in enumerate(rows.negatives.tolist()):
            sides = [(place, -1.0) for place in _beyond(base + starts[:-1], depths, n_levels)]
            limits.add(0.0, (used, 1.0), (entered + row, -1.0), *sides)
    for row in range(n_positives):
        inside_any = [(base + n_orders + 1 + row, -1.0) for base in range(0, covered, size)]
        limits.add(0.0, (covered + row, 1.0), *inside_any)
    options: dict[str, float] = {"mip_rel_gap": 0.0}
    if watch is not None and np.isfinite(watch.left):
        options["time_limit"] = watch.left
    found = _solved(worth, is_whole, limits.build(n_variables), options)
    if found.x is None:
        raise DataError(f"HiGHS found no union of boxes: {found.message}; allow it more time")
    levels = _levels(found.x, rows, n_boxes, size, starts)
    gain = rows.gain(levels)
    union = rows.tight(levels)
    objective = certified(rows.worth, union, gain + rows.constant, rows.rounding)
    ceiling = -float(found.mip_dual_bound) + rows.constant
    is_optimal = bool(found.status == 0 and ceiling - objective <= TOLERANCE * (1 + abs(objective)))
    return CertifiedUnion(
        union=union,
        objective=objective,
        upper_bound=max(objective, ceiling) + rows.rounding,
        rounding=rows.rounding,
        is_optimal=is_optimal,
        is_best_given_others=is_optimal,
        interrupted=False,
        timed_out=found.status == 1,
        n_visited=int(found.mip_node_count or 0),
        seconds=perf_counter() - started,
        solver="program",
    )


def _solved(
    worth: np.ndarray, is_whole: np.ndarray, limits: LinearConstraint, options: dict[str, float]
) -> OptimizeResult:
    """Return what HiGHS finds, in another process: Ctrl-C cannot end it in this one."""
    bounds = Bounds(0.0, 1.0)
    solve = partial(milp, -worth, integrality=is_whole, bounds=bounds, constraints=limits)
    with closing(results_of_workers(partial(solve, options=options), [()], n_workers=2)) as results:
        return next(results)


def _beyond(firsts: np.ndarray, depths: list[int], n_levels: np.ndarray) -> list[int]:
    """Return the indices of the y that say that a side keeps a row out, if it can."""
    sides = zip(firsts.tolist(), depths, n_levels.tolist(), strict=True)
    return [first + depth for first, depth, count in sides if depth < count]


def _levels(x: np.ndarray, rows: LevelRows, n_boxes: int, size: int, starts: np.ndarray) -> Levels:
    """Return the levels of a solution, without boxes that contain no positive."""
    found = []
    for box in range(n_boxes):
        orders = np.rint(x[box * size : box * size + starts[-1]])
        is_used = x[box * size + starts[-1]] > 0.5
        levels = np.add.reduceat(orders, starts[:-1]).astype(np.int32)
        if is_used and (rows.positives >= levels).all(axis=1).any():
            found.append(levels)
    shape = (len(found), rows.positives.shape[1])
    return rows.levels(rows.tight(np.array(found, np.int32).reshape(shape)))
