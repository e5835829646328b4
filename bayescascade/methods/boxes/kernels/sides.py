"""What rows imply for the sides of a node; `ranges` defines nodes and their *base*.

Payments of sides beyond the base add up. If side s of a box has level L,

* ``lost_s(L)``: its box loses the positives less deep than L. Those that are in this largest box
  only and in no smallest box are lost; of them, ``alone_s(L)`` has those that no other side can
  lose;
* ``kept_s(L)``: its box keeps the negatives that are in its smallest box but for this side, and at
  least as deep as L; ``own_s(L)`` has those that are so at no earlier box;
* ``price(L)`` is C_S if L > 0 and its largest box is open there, which the base does not know.

A negative has one such side of a box, and one such box in ``own``; a positive of ``alone`` has one
side of all. So different sides pay weights of different rows, or prices, and the worth of any union
in the node is at most the base minus the sum of payments. At any one side, ``lost`` may replace
``alone`` in the sum, because a positive of another side's ``alone`` is at least as deep as any L
here. With ``least_s = min_L (alone_s + price + C_I own_s)(L)``, level L of s is worth at most the
smaller of

    base - sum_{t != s} least_t - (lost_s + price + C_I own_s)(L)
    base - (lost_s + price + C_I kept_s)(L)
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel

Array = NDArray[Any]  # the docstrings give dtypes

STACKED, VISITED = range(2)  # places in `numbers`
COVERED, ENTERED, AT_LEAST, SURE = range(4)  # places in `sums`
LOST, ALONE, KEPT, OWN, WORTH, SHARED = range(6)  # places in `levels`


class RangeRows(NamedTuple):
    """P positives and N negatives by their depths at S sides, and the costs.

    positives (P, S), negatives (N, S) int32; positive_weights (P,), negative_weights (N,) float64;
    n_levels (S,) int64.
    """

    positives: Array
    negatives: Array
    positive_weights: Array
    negative_weights: Array
    n_levels: Array
    negative_weight: float
    box_cost: float
    side_cost: float
    order_side: int


class RangeWorkspace(NamedTuple):
    """A search with K boxes, S sides and at most M levels; its stack has room for D nodes.

    lows, highs (D, K, S) int32: ranges; bounds (D,); alive (D, 2) int64: numbers of rows of each
    kind that matter to a node; order_positives (P,), order_negatives (N,) int64: rows, those that
    are alive first; levels (6, K, S, M + 2) float64: weights lost and kept, and worth, of each
    level of a side; firsts (K, S) int32; least (K, S) float64; within (K,) int64; numbers (2,)
    int64; sums (4,) float64; best (1,) float64 and best_levels (K, S) int32: the best union, if
    found here.
    """

    lows: Array
    highs: Array
    bounds: Array
    alive: Array
    order_positives: Array
    order_negatives: Array
    levels: Array
    firsts: Array
    least: Array
    within: Array
    numbers: Array
    sums: Array
    best: Array
    best_levels: Array


@inner_kernel
def is_within(depths, row, levels, box):
    """Whether a row is at least as deep as a box's levels."""
    for side in range(levels.shape[1]):  # noqa: SIM110 - numba compiles no generator
        if depths[row, side] < levels[box, side]:
            return False
    return True


@inner_kernel
def note_risks(rows, work, high, box, row, n_low):
    """Note which levels lose a positive that is in some largest boxes and no smallest box."""
    weight, kind = rows.positive_weights[row], LOST if n_low == 1 else SHARED
    n_risky, last = 0, -1
    for side in range(high.shape[1]):
        depth = rows.positives[row, side]
        if depth < high[box, side]:
            n_risky += 1
            last = side
            work.levels[kind, box, side, depth] += weight / n_low
    if n_low == 1 and n_risky == 1:
        work.levels[ALONE, box, last, rows.positives[row, last]] += weight


@inner_kernel
def count_positives(rows, work, node):
    """Sum up positives of the largest and smallest boxes, and those that sides may lose."""
    low, high = work.lows[node], work.highs[node]
    n_boxes, n_sides = low.shape
    covered, sure = 0.0, 0.0
    place, alive = 0, work.alive[node, 0]
    while place < alive:
        row = work.order_positives[place]
        weight = rows.positive_weights[row]
        n_low, n_high, keeper = 0, 0, -1
        for box in range(n_boxes):
            work.within[box] = is_within(rows.positives, row, low, box)
            if work.within[box]:
                n_low += 1
                if is_within(rows.positives, row, high, box):
                    n_high += 1
                    keeper = box
        if n_low == 0:
            alive -= 1
            work.order_positives[place] = work.order_positives[alive]
            work.order_positives[alive] = row
            continue
        place += 1
        covered += weight
        if n_high > 0:
            sure += weight
        else:
            for box in range(n_boxes):
                if work.within[box]:
                    note_risks(rows, work, high, box, row, n_low)
        for box in range(n_boxes):
            if work.within[box] and (n_high == 0 or (n_high == 1 and keeper == box)):
                for side in range(n_sides):
                    depth = rows.positives[row, side]
                    if depth < work.firsts[box, side]:
                        work.firsts[box, side] = depth
    work.alive[node, 0] = alive
    work.sums[COVERED] = covered
    work.sums[SURE] = sure


@inner_kernel
def count_negatives(rows, work, node):
    """Sum up negatives of the largest and smallest boxes, and those that one side keeps out."""
    low, high = work.lows[node], work.highs[node]
    n_boxes, n_sides = low.shape
    entered, at_least = 0.0, 0.0
    place, alive = 0, work.alive[node, 1]
    while place < alive:
        row = work.order_negatives[place]
        weight = rows.negative_weights[row]
        is_in, is_sure = False, False
        for box in range(n_boxes):
            work.within[box] = -1
            if not is_within(rows.negatives, row, low, box):
                continue
            is_in = True
            n_outside, last = 0, -1
            for side in range(n_sides):
                if rows.negatives[row, side] < high[box, side]:
                    n_outside += 1
                    last = side
                    if n_outside == 2:
                        break
            if n_outside == 0:
                is_sure = True
            elif n_outside == 1:
                work.within[box] = last
        if not is_in:
            alive -= 1
            work.order_negatives[place] = work.order_negatives[alive]
            work.order_negatives[alive] = row
            continue
        place += 1
        entered += weight
        if is_sure:
            at_least += weight
            continue
        is_owned = False
        for box in range(n_boxes):
            side = work.within[box]
            if side >= 0:
                work.levels[KEPT, box, side, rows.negatives[row, side]] += weight
                if not is_owned:
                    work.levels[OWN, box, side, rows.negatives[row, side]] += weight
                    is_owned = True
    work.alive[node, 1] = alive
    work.sums[ENTERED] = entered
    work.sums[AT_LEAST] = at_least


@inner_kernel
def add_up(rows, work, low, high):
    """Turn histograms into sums; return the least that all sides pay."""
    total = 0.0
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            first, last = low[box, side], high[box, side]
            work.least[box, side] = 0.0
            if first == last:
                continue
            for kind in (LOST, ALONE, SHARED):  # below each level
                below = 0.0
                for level in range(first, last + 1):
                    here = work.levels[kind, box, side, level]
                    work.levels[kind, box, side, level] = below
                    below += here
            for kind in (KEPT, OWN):  # from each level on
                beyond = 0.0
                for level in range(last, first - 1, -1):
                    beyond += work.levels[kind, box, side, level]
                    work.levels[kind, box, side, level] = beyond
            least = np.inf
            for level in range(first, last + 1):
                if first > 0 or level == 0 or level >= work.firsts[box, side]:
                    paid = rows.side_cost if first == 0 and level > 0 else 0.0
                    paid += work.levels[ALONE, box, side, level]
                    paid += rows.negative_weight * work.levels[OWN, box, side, level]
                    least = min(least, paid)
            work.least[box, side] = least
            total += least
    return total
