"""Branch and bound on ranges of levels; `exact.levels` says what levels and depths are.

A node is a range of levels for every side of every box. Its *largest* boxes have the least level
at every side, its *smallest* ones the greatest. Any union in it covers at most the positives that
the largest cover, and lets in at least the negatives that the smallest let in; this is the bound.

`examine` narrows the ranges as long as that changes something:

* A closed side is not below the least depth among positives of its largest box that are in the
  smallest box of no other: by the lemma of `exact.levels`, some best union has its sides there.
* If one side alone has level L, its box loses positives that are in this largest box only and less
  deep than L, and keeps negatives that are in all but this side of its smallest box and at least
  as deep as L. Both are sums over a histogram of depths, for all L at once. A level is left out at
  either end of a range if the bound with it is no more than the best union known.

A node is divided at the side and level for which the larger of both bounds is least. Both halves
wait on a stack, and that of the higher bound is next. Two unions come with every node: the largest
boxes and the smallest ones; they are counted anyway.

Boxes are in descending order of their levels at one side, `order_side`, as unions have no order.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes

STACKED, VISITED = range(2)  # places in `numbers`
COVERED, ENTERED, AT_LEAST, SURE = range(4)  # places in `sums`


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
    """A search of K boxes, S sides and at most M levels, whose stack has room for D nodes.

    lows, highs (D, K, S) int32: ranges; bounds (D,); alive (D, 2) int64: how many rows of each kind
    a node looks at; order_positives (P,), order_negatives (N,) int64: rows, those first that are
    alive; lost, kept (K, S, M + 2) float64: histograms; firsts (K, S) int32; within (K,) int64;
    numbers (2,) int64; sums (4,) float64; best (1,) float64 and best_levels (K, S) int32: the best
    union, if it was found by this search.
    """

    lows: Array
    highs: Array
    bounds: Array
    alive: Array
    order_positives: Array
    order_negatives: Array
    lost: Array
    kept: Array
    firsts: Array
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
def count_positives(rows, work, node):
    """Sum up positives of the largest and smallest boxes, and those that sides may lose."""
    low, high = work.lows[node], work.highs[node]
    n_boxes, n_sides = low.shape
    covered, sure = 0.0, 0.0
    place, alive = 0, work.alive[node, 0]
    while place < alive:
        row = work.order_positives[place]
        weight = rows.positive_weights[row]
        n_low, n_high, holder, keeper = 0, 0, -1, -1
        for box in range(n_boxes):
            work.within[box] = is_within(rows.positives, row, low, box)
            if work.within[box]:
                n_low += 1
                holder = box
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
        elif n_low == 1:
            for side in range(n_sides):
                work.lost[holder, side, rows.positives[row, side]] += weight
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
        for box in range(n_boxes):
            side = work.within[box]
            if side >= 0:
                work.kept[box, side, rows.negatives[row, side]] += weight
    work.alive[node, 1] = alive
    work.sums[ENTERED] = entered
    work.sums[AT_LEAST] = at_least


@inner_kernel
def count_closed(levels):
    """Return how many sides are closed."""
    n_closed = 0
    for box in range(levels.shape[0]):
        for side in range(levels.shape[1]):
            if levels[box, side] > 0:
                n_closed += 1
    return n_closed


@inner_kernel
def copy(source, levels):
    """Copy the levels of all boxes."""
    for box in range(levels.shape[0]):
        for side in range(levels.shape[1]):
            levels[box, side] = source[box, side]


@inner_kernel
def note_union(work, levels, gain):
    """Keep a union if it is better than the best one known."""
    if gain > work.best[0]:
        work.best[0] = gain
        copy(levels, work.best_levels)


@inner_kernel
def add_up(work, low, high):
    """Turn histograms into sums: `lost` below each level, `kept` from each level on."""
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            if low[box, side] == high[box, side]:
                continue
            below = 0.0
            for level in range(low[box, side], high[box, side] + 1):
                here = work.lost[box, side, level]
                work.lost[box, side, level] = below
                below += here
            beyond = 0.0
            for level in range(high[box, side], low[box, side] - 1, -1):
                beyond += work.kept[box, side, level]
                work.kept[box, side, level] = beyond


@inner_kernel
def narrow(rows, work, node, ceiling):
    """Leave levels out that cannot be better than the best union.

    Return 2 if nothing is left, 1 if something changed, else 0. `ceiling` is the node's bound but
    for the negatives.
    """
    low, high = work.lows[node], work.highs[node]
    changed = 0
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            first, last = low[box, side], high[box, side]
            if first == last:
                continue
            is_open = first == 0
            least, most = -1, -1
            level = first
            while level <= last:
                price = rows.side_cost if is_open and level > 0 else 0.0
                entered = work.sums[AT_LEAST] + work.kept[box, side, level]
                bound = ceiling - work.lost[box, side, level] - price
                if bound - rows.negative_weight * entered > work.best[0]:
                    if least < 0:
                        least = level
                    most = level
                level += 1
                if is_open and level == 1:
                    level = max(level, work.firsts[box, side])
            if least < 0:
                return 2
            if least > first or most < last:
                low[box, side], high[box, side] = least, most
                changed = 1
    return changed


@inner_kernel
def settle(rows, work, node):
    """Raise closed sides to where their box has a positive of its own; keep boxes in order.

    Return 2 if a range is empty, 1 if something changed, else 0.
    """
    low, high = work.lows[node], work.highs[node]
    changed = 0
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            first = work.firsts[box, side]
            if low[box, side] > 0 and first > low[box, side]:
                if first > high[box, side]:
                    return 2
                low[box, side] = first
                changed = 1
            elif low[box, side] == 0 and high[box, side] > 0 and first > high[box, side]:
                high[box, side] = 0
                changed = 1
    side = rows.order_side
    for box in range(low.shape[0] - 1):
        if high[box + 1, side] > high[box, side]:
            high[box + 1, side] = high[box, side]
            changed = 1
    for box in range(low.shape[0] - 1, 0, -1):
        if low[box - 1, side] < low[box, side]:
            low[box - 1, side] = low[box, side]
            changed = 1
    for box in range(low.shape[0]):
        if low[box, side] > high[box, side]:
            return 2
    return changed


@inner_kernel
def examine(rows, work, node):
    """Narrow a node; return its bound, or -inf if nothing in it is better than the best union."""
    low, high = work.lows[node], work.highs[node]
    n_boxes, n_sides = low.shape
    while True:
        for box in range(n_boxes):
            for side in range(n_sides):
                work.firsts[box, side] = rows.n_levels[side] + 1
                if low[box, side] < high[box, side]:
                    for level in range(low[box, side], rows.n_levels[side] + 1):
                        work.lost[box, side, level] = 0.0
                        work.kept[box, side, level] = 0.0
        count_positives(rows, work, node)
        for box in range(n_boxes):
            if work.firsts[box, 0] > rows.n_levels[0]:
                return -np.inf  # a box without a positive of its own
        count_negatives(rows, work, node)
        costs = rows.box_cost * n_boxes + rows.side_cost * count_closed(low)
        ceiling = work.sums[COVERED] - costs
        bound = ceiling - rows.negative_weight * work.sums[AT_LEAST]
        note_union(work, low, ceiling - rows.negative_weight * work.sums[ENTERED])
        costs = rows.box_cost * n_boxes + rows.side_cost * count_closed(high)
        gain = work.sums[SURE] - costs - rows.negative_weight * work.sums[AT_LEAST]
        note_union(work, high, gain)
        if bound <= work.best[0]:
            return -np.inf
        changed = settle(rows, work, node)
        if changed == 0:
            add_up(work, low, high)
            changed = narrow(rows, work, node, ceiling)
        if changed == 2:
            return -np.inf
        if changed == 0:
            return bound


@inner_kernel
def divide(rows, work, node, bound):
    """Put both halves of a node in its place on the stack, that of the higher bound on top."""
    low, high = work.lows[node], work.highs[node]
    best_most, best_least = np.inf, np.inf
    at_box, at_side, at_level = -1, -1, -1
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            first, last = low[box, side], high[box, side]
            price = rows.side_cost if first == 0 else 0.0
            for level in range(first, last):
                above = bound - work.lost[box, side, level + 1] - price
                if first == 0 and level == 0:
                    after = min(max(1, work.firsts[box, side]), last)
                    above = bound - work.lost[box, side, after] - price
                below = bound - rows.negative_weight * work.kept[box, side, level]
                most, least = max(above, below), min(above, below)
                if most < best_most or (most == best_most and least < best_least):
                    best_most, best_least = most, least
                    at_box, at_side, at_level = box, side, level
                if first == 0 and level == 0:
                    break  # open, or closed: where, is for later
    if at_box < 0:
        return False
    other = node + 1
    copy(low, work.lows[other])
    copy(high, work.highs[other])
    work.alive[other, 0], work.alive[other, 1] = work.alive[node, 0], work.alive[node, 1]
    first = low[at_box, at_side]
    price = rows.side_cost if first == 0 else 0.0
    after = at_level + 1
    if first == 0:
        after = min(max(1, work.firsts[at_box, at_side]), high[at_box, at_side])
    above = bound - work.lost[at_box, at_side, after] - price
    below = bound - rows.negative_weight * work.kept[at_box, at_side, at_level]
    top, under = other, node
    if below >= above:  # the half of the lower levels is next
        work.highs[top, at_box, at_side] = at_level
        work.lows[under, at_box, at_side] = after
        work.bounds[top], work.bounds[under] = below, above
    else:
        work.lows[top, at_box, at_side] = after
        work.highs[under, at_box, at_side] = at_level
        work.bounds[top], work.bounds[under] = above, below
    return True


@kernel
def search(rows: RangeRows, work: RangeWorkspace, most_visited: int) -> bool:
    """Look at nodes until none waits, or as many were; return whether none waits."""
    for _ in range(most_visited):
        if work.numbers[STACKED] == 0:
            return True
        node = work.numbers[STACKED] - 1
        work.numbers[VISITED] += 1
        bound = -np.inf
        if work.bounds[node] > work.best[0]:
            bound = min(examine(rows, work, node), work.bounds[node])
        work.numbers[STACKED] = node
        if bound > work.best[0] and divide(rows, work, node, bound):
            work.numbers[STACKED] = node + 2
    return bool(work.numbers[STACKED] == 0)
