"""The best union of boxes by branch and bound, with a proof, or a bound if time runs out.

Unions of one box come first. Then `improve` makes each box the best one given the others. This is a
search for one box among the rows that the others do not cover, so it gives a proof. Then come
unions of two boxes, of three, and so on; each search must beat the best union so far.
`kernels.ranges` has the bound.

`solve_program` finds it as a mixed-integer program, solved by HiGHS. For box k, side s and level L
>= 1 of `levels`, y_ksL says that the side's level is at least L, so that y_ks1 >= y_ks2 >= ...; u_k
says that the box is used. A positive i can be in box k, z_ik, only if u_k and not y_ks(D + 1), D
its depth, at any side; c_i <= sum_k z_ik says that it is covered. A negative is let in, n_i >= u_k
- sum_s y_ks(D + 1), unless some side keeps it out. The program maximizes

    sum_i w_i c_i - C_I sum_i w_i n_i - C_E sum_k u_k - C_S sum_ks y_ks1.

Unlike (2.5) to (2.21) of the thesis, it has no M, epsilon and margin, and it chooses the number of
boxes. The thesis's program always uses all K boxes, so its ``-c_e K`` is a constant. Only y and u
must be integers.

HiGHS calculates in floats with tolerances of its own, 1e-6, so its result is no proof to the last
digit; its bound is reported unchanged.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from time import perf_counter

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import coo_array

from bayescascade.base.errors import DataError, TooLargeError
from bayescascade.base.validation import check_integer
from bayescascade.base.watch import Watch
from bayescascade.methods.boxes.exact.levels import LevelRows, Levels
from bayescascade.methods.boxes.kernels.ranges import search
from bayescascade.methods.boxes.kernels.sides import STACKED, VISITED, RangeRows, RangeWorkspace
from bayescascade.methods.boxes.parameters import MOST_BOXES
from bayescascade.methods.boxes.union import BoxUnion
from bayescascade.model.guard import certified, shown_gap
from bayescascade.report.page import count_of
from samplers.cluster import results_of_workers

_ROW_VISITS = 2e7  # work between looks at the clock: less than a tenth of a second
_FIRST_VISITS = 500  # ranges searched before the first look at the clock
_SHARE = 0.8  # share of the time for the proof; the rest is for one box at a time


@dataclass(frozen=True, eq=False)
class CertifiedUnion:
    """The best union found, and a bound on how much better another may be."""

    union: BoxUnion  # its sides are at values of positives
    objective: float  # its worth, see `exact.levels`
    upper_bound: float  # no union of at most as many boxes is worth more
    rounding: float  # >= 0: the allowance for rounding in the bound
    is_optimal: bool  # whether it is proved that none is worth more by more than `rounding`
    # whether each box is proved to be the best one given the others
    is_best_given_others: bool
    # interrupted, timed_out: whether Ctrl-C or the time limit ended the search
    interrupted: bool
    timed_out: bool
    n_visited: int  # ranges searched; nodes of the solver for a program
    seconds: float
    work: float = 0.0  # limited by `most_work` of `best_union`
    n_proved: int = 0  # if > 0, no union of at most this many boxes is worth more
    solver: str = "branch"

    @property
    def gap(self) -> float:
        """How much more another union may be worth; 0.0 if none is, up to invisible rounding."""
        open_gap = 0.0 if self.is_optimal else self.upper_bound - self.objective
        return shown_gap(open_gap, self.rounding)

    @property
    def local_words(self) -> list[str]:
        """Weaker proofs in words, if the union is not proved to be the best."""
        if self.is_optimal:
            return []
        texts = ["each box is proved to be the best, given the others"] * self.is_best_given_others
        if self.n_proved > 0:
            texts.append(f"no union of up to {count_of(self.n_proved, 'box', 'boxes')} is better")
        return texts


@dataclass
class _BoxSearch:
    """A running search; `best`, `gain` and `ceiling` are valid after an interrupt, too."""

    rows: LevelRows
    watch: Watch
    most_work: float
    progress: Callable[[float, float], object] | None
    best: Levels
    gain: float
    ceiling: float = inf  # bound on all unions of the search
    work: float = 0.0  # ranges times the cells of a range's rows
    n_visited: int = 0
    n_proved: int = 0
    interrupted: bool = False
    is_improved: bool = False  # whether each box is the best given the others

    def look(self, rows: LevelRows, n_boxes: int, gain: float) -> tuple[float, Levels | None, bool]:
        """Search for a union with more than `gain`; return a bound, the union, and if it ended."""
        read, work = _arrays(rows, n_boxes, gain)
        of_one = (len(rows.positives) + len(rows.negatives)) * rows.positives.shape[1] * n_boxes
        n_most = max(1, int(_ROW_VISITS / of_one))
        n_each = min(n_most, _FIRST_VISITS)
        is_over, polished = False, gain
        try:
            while not is_over and self.work < self.most_work and not self.watch.is_over():
                before = int(work.numbers[VISITED])
                left = min(self.most_work - self.work, 1e18)
                is_over = search(read, work, min(n_each, 1 + int(left / of_one)))
                n_now = int(work.numbers[VISITED]) - before
                self.n_visited, self.work = self.n_visited + n_now, self.work + n_now * of_one
                n_each = min(n_most, 2 * n_each)
                if not is_over and work.best[0] > polished:
                    better = rows.polished(work.best_levels, self.watch)
                    polished = rows.gain(better)
                    if polished > work.best[0]:
                        work.best_levels[:], work.best[0] = better, polished
                if self.progress is not None:
                    self.progress(float(work.best[0]), _ceiling(work))
        except KeyboardInterrupt:
            self.interrupted = True
        found = work.best_levels.copy() if work.best[0] > gain else None
        return max(gain, _ceiling(work)), found, bool(is_over)

    def begin(self) -> None:
        """Begin with the best box for free sides, which is found quickly, and improve it."""
        rows = self.rows.with_costs(replace(self.rows.costs, side_cost=0.0))
        _, found, _ = self.look(rows, 1, 0.0)
        if found is not None:
            start = self.rows.levels(rows.tight(found).halfway(rows.rows))
            better = self.rows.polished(start, self.watch)
            if self.rows.gain(better) > self.gain:
                self.best, self.gain = better, self.rows.gain(better)

    def prove(self, n_boxes: int) -> bool:
        """Search unions of one box, two, ..., and return whether the best is proved."""
        ceiling = self.gain
        for count in range(1, n_boxes + 1):
            if self.interrupted:
                ceiling = max(ceiling, float(self.rows.positive_weights.sum()))
                break
            bound, found, is_over = self.look(self.rows, count, self.gain)
            if found is not None:
                self.best, self.gain, self.is_improved = found, self.rows.gain(found), False
            ceiling = max(ceiling, bound)
            if is_over and self.n_proved == count - 1:
                self.n_proved = count
            if n_boxes > 1 and (count == 1 or found is not None):
                self.improve(n_boxes)
        self.ceiling = max(ceiling, self.gain)
        return self.n_proved == n_boxes and not self.interrupted

    def improve(self, n_boxes: int) -> None:
        """Replace each box by the best one given the others, until none changes."""
        place, n_kept = 0, 0
        while n_kept < n_boxes and not self.interrupted:
            others = np.delete(self.best, place, axis=0) if place < len(self.best) else self.best
            left = self.rows.outside(others)
            base = self.rows.gain(others)
            _, found, is_over = (0.0, None, True)
            if left is not None:
                _, found, is_over = self.look(left, 1, max(self.gain - base, 0.0))
            if not is_over:
                return
            if left is not None and found is not None:
                box = self.rows.levels(left.tight(found))
                better = np.concatenate([others, box])
                gain = self.rows.gain(better)
            else:
                better, gain = others, base
            if gain > self.gain + self.rows.rounding:
                self.best, self.gain, n_kept = better, gain, 0
            else:
                n_kept += 1
            place = (place + 1) % n_boxes
        self.is_improved = not self.interrupted


def best_union(
    rows: LevelRows,
    n_boxes: int,
    *,
    start: BoxUnion | None = None,
    watch: Watch | None = None,
    memory_limit: float = 2e9,
    most_work: float = inf,
    progress: Callable[[float, float], object] | None = None,
) -> CertifiedUnion:
    """Return the best union of at most `n_boxes` boxes, or the best found and a bound.

    Nothing is random. `watch`, `most_work` (ranges by rows, sides and boxes, 3e8 in a second or so)
    and Ctrl-C end the search early. The search begins with `start`. `progress` is called several
    times a second with the best gain over the empty union, and a bound. Raises TooLargeError beyond
    `memory_limit` bytes.
    """
    check_integer("n_boxes", n_boxes, 1, MOST_BOXES)
    _check_memory(rows, n_boxes, memory_limit)
    started = perf_counter()
    none = np.empty((0, 2 * rows.rows.shape[1]), np.int32)
    watch = Watch(None) if watch is None else watch
    best = none if start is None else rows.polished(rows.levels(start)[:n_boxes], watch)
    if rows.gain(best) <= 0.0:
        best = none
    state = _BoxSearch(rows, watch, most_work, progress, best, rows.gain(best))
    if start is None and rows.costs.side_cost > 0.0:
        state.begin()
    with watch.part(_SHARE if n_boxes > 1 else 1.0):
        is_optimal = state.prove(n_boxes)
    timed_out = watch.is_up
    if not (is_optimal or state.is_improved or state.interrupted) and n_boxes > 1:
        state.most_work += state.work  # the same amount again
        state.improve(n_boxes)
    union = rows.tight(state.best)
    claimed = state.gain + rows.constant
    objective = certified(rows.worth, union, claimed, rows.rounding)
    ceiling = objective if is_optimal else max(objective, state.ceiling + rows.constant)
    return CertifiedUnion(
        union=union,
        objective=objective,
        upper_bound=ceiling + rows.rounding,
        rounding=rows.rounding,
        is_optimal=is_optimal,
        is_best_given_others=is_optimal or state.is_improved,
        interrupted=state.interrupted,
        timed_out=timed_out or watch.is_up,
        n_visited=state.n_visited,
        seconds=perf_counter() - started,
        work=state.work,
        n_proved=state.n_proved,
    )


def _depth(rows: LevelRows, n_boxes: int) -> int:
    """Return the maximum number of waiting nodes: each division removes a level of one side."""
    return n_boxes * int(rows.n_levels.sum()) + 2


def _check_memory(rows: LevelRows, n_boxes: int, memory_limit: float) -> None:
    """Raise TooLargeError if a search for that many boxes takes more memory."""
    n_sides, depth = rows.positives.shape[1], _depth(rows, n_boxes)
    n_bytes = 8.0 * n_boxes * n_sides * (depth + 6 * int(rows.n_levels.max()) + 12) + 24.0 * depth
    n_bytes += (4.0 * n_sides + 16.0) * (len(rows.positives) + len(rows.negatives))
    if n_bytes > memory_limit:
        needed = f"{n_bytes / 1e6:,.0f} MB"
        raise TooLargeError(
            f"a search for unions of {n_boxes} boxes takes {needed}, of at most "
            f"{memory_limit / 1e6:,.0f} MB: look for fewer boxes, or sample",
            needed,
        )


def _arrays(rows: LevelRows, n_boxes: int, gain: float) -> tuple[RangeRows, RangeWorkspace]:
    """Return the rows for the kernel, and a stack with the range of all levels."""
    (n_positives, n_sides), n_negatives = rows.positives.shape, len(rows.negatives)
    n_levels = rows.n_levels
    most, depth = int(n_levels.max()), _depth(rows, n_boxes)
    shape = (n_boxes, n_sides)
    read = RangeRows(
        rows.positives, rows.negatives, rows.positive_weights, rows.negative_weights, n_levels,
        rows.costs.negative_weight, rows.costs.box_cost, rows.costs.side_cost,
        int(np.argmax(n_levels)),
    )  # fmt: skip
    work = RangeWorkspace(
        lows=np.empty((depth, *shape), np.int32),
        highs=np.empty((depth, *shape), np.int32),
        bounds=np.empty(depth),
        alive=np.empty((depth, 2), np.int64),
        order_positives=np.arange(n_positives),
        order_negatives=np.arange(n_negatives),
        levels=np.zeros((6, *shape, most + 2)),
        firsts=np.zeros(shape, np.int32),
        least=np.zeros(shape),
        within=np.zeros(n_boxes, np.int64),
        numbers=np.array([1, 0]),
        sums=np.zeros(4),
        best=np.array([gain]),
        best_levels=np.zeros(shape, np.int32),
    )
    work.lows[0] = 0 if rows.costs.side_cost > 0.0 else 1
    work.highs[0] = n_levels
    # each of several boxes has a closed side: a union with an open box is that box alone
    of_each = rows.costs.box_cost + (rows.costs.side_cost if n_boxes > 1 else 0.0)
    work.bounds[0] = rows.positive_weights.sum() - of_each * n_boxes
    work.alive[0] = n_positives, n_negatives
    return read, work


def _ceiling(work: RangeWorkspace) -> float:
    """Return a bound on the gain of the best union known and of those not yet searched."""
    stacked = work.bounds[: work.numbers[STACKED]]
    return float(max(work.best[0], stacked.max(initial=-inf)))


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
