"""Branch and bound on ranges of levels; `exact.levels` defines levels and depths.

A node is a range of levels for every side of every box. Its *largest* boxes have the lowest level
at every side, its *smallest* ones the highest. Any union in it covers at most the positives of the
largest boxes, and lets in at least the negatives of the smallest ones: the *base*.

Further payments of sides add up; `sides` defines them, and the most that a level L is worth.

A level at either end of a range is dropped if it is worth no more than the best union known. A
node's bound is the minimum over sides of the most that any of its levels is worth. The level of a
closed side is at least the least depth among positives of its largest box that are in no smallest
box of another: by the lemma of `exact.levels`, some best union has its sides there.

A node is divided where the base falls most in both halves, as if positives of several largest boxes
were lost in parts. Halves wait on a stack, and the one with the higher bound is next. Every node
gives two unions: its largest boxes and its smallest ones. Boxes are in descending order of their
levels at one side, `order_side`, because unions have no order.
"""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.boxes.kernels.sides import (
    ALONE,
    AT_LEAST,
    COVERED,
    ENTERED,
    KEPT,
    LOST,
    OWN,
    SHARED,
    STACKED,
    SURE,
    VISITED,
    WORTH,
    RangeRows,
    RangeWorkspace,
    add_up,
    count_negatives,
    count_positives,
)


@inner_kernel
def count_closed(levels):
    """Return the number of closed sides."""
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
def narrow(rows, work, node, base):
    """Drop levels that cannot be better than the best union; return the remaining bound."""
    low, high = work.lows[node], work.highs[node]
    total = add_up(rows, work, low, high)
    bound = base - total
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            first, last = low[box, side], high[box, side]
            if first == last:
                continue
            others, most = total - work.least[box, side], -np.inf
            low[box, side], high[box, side] = last, first
            for level in range(first, last + 1):
                paid = rows.side_cost if first == 0 and level > 0 else 0.0
                paid += work.levels[LOST, box, side, level]
                kept, own = work.levels[KEPT, box, side, level], work.levels[OWN, box, side, level]
                worth = min(
                    base - others - paid - rows.negative_weight * own,
                    base - paid - rows.negative_weight * kept,
                )
                if first == 0 and 0 < level < work.firsts[box, side]:
                    worth = -np.inf  # touches no positive
                work.levels[WORTH, box, side, level] = worth
                most = max(most, worth)
                if worth > work.best[0]:
                    low[box, side] = min(low[box, side], level)
                    high[box, side] = level
            bound = min(bound, most)
            if bound <= work.best[0]:
                return -np.inf
    return bound


@inner_kernel
def settle(rows, work, node):
    """Raise closed sides to the first positive of their box alone; keep boxes in order.

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
def clear(rows, work, low, high):
    """Clear the sums of what levels lose and keep."""
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            work.firsts[box, side] = rows.n_levels[side] + 1
            if low[box, side] == high[box, side]:
                continue
            for kind in (LOST, ALONE, KEPT, OWN, SHARED):
                for level in range(low[box, side], high[box, side] + 1):
                    work.levels[kind, box, side, level] = 0.0


@inner_kernel
def examine(rows, work, node):
    """Narrow a node; return its bound, or -inf if nothing in it is better than the best union."""
    low, high = work.lows[node], work.highs[node]
    n_boxes = low.shape[0]
    while True:
        clear(rows, work, low, high)
        count_positives(rows, work, node)
        for box in range(n_boxes):
            if work.firsts[box, 0] > rows.n_levels[0]:
                return -np.inf  # a box without a positive that is in it alone
        count_negatives(rows, work, node)
        costs = rows.box_cost * n_boxes + rows.side_cost * count_closed(low)
        ceiling = work.sums[COVERED] - costs
        base = ceiling - rows.negative_weight * work.sums[AT_LEAST]
        note_union(work, low, ceiling - rows.negative_weight * work.sums[ENTERED])
        costs = rows.box_cost * n_boxes + rows.side_cost * count_closed(high)
        gain = work.sums[SURE] - costs - rows.negative_weight * work.sums[AT_LEAST]
        note_union(work, high, gain)
        if base <= work.best[0]:
            return -np.inf
        changed = settle(rows, work, node)
        if changed == 2:
            return -np.inf
        if changed == 1:
            continue
        n_levels = count_levels(low, high)
        bound = narrow(rows, work, node, base)
        if bound == -np.inf or count_levels(low, high) == n_levels:
            return bound


@inner_kernel
def count_levels(low, high):
    """Return the total number of levels of the ranges, minus one for each."""
    n_levels = 0
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            n_levels += high[box, side] - low[box, side]
    return n_levels


@inner_kernel
def divide(rows, work, node, bound):
    """Replace a node on the stack by its halves, the one with the higher bound on top."""
    low, high = work.lows[node], work.highs[node]
    best_least, best_most = np.inf, np.inf
    at_box, at_side, at_level = -1, -1, -1
    for box in range(low.shape[0]):
        for side in range(low.shape[1]):
            first, last = low[box, side], high[box, side]
            price = rows.side_cost if first == 0 else 0.0
            for level in range(first, last):
                following = level + 1
                if first == 0 and level == 0:
                    following = min(max(1, work.firsts[box, side]), last)
                above = -work.levels[LOST, box, side, following] - price
                above -= work.levels[SHARED, box, side, following]
                below = -rows.negative_weight * work.levels[KEPT, box, side, level]
                most, least = max(above, below), min(above, below)
                if most < best_most or (most == best_most and least < best_least):
                    best_most, best_least = most, least
                    at_box, at_side, at_level = box, side, level
    if at_box < 0:
        return False
    other = node + 1
    copy(low, work.lows[other])
    copy(high, work.highs[other])
    work.alive[other, 0], work.alive[other, 1] = work.alive[node, 0], work.alive[node, 1]
    after = at_level + 1
    if at_level == 0:
        after = min(max(1, work.firsts[at_box, at_side]), high[at_box, at_side])
    above, below = -np.inf, -np.inf
    for level in range(low[at_box, at_side], high[at_box, at_side] + 1):
        worth = min(bound, work.levels[WORTH, at_box, at_side, level])
        if level <= at_level:
            below = max(below, worth)
        else:
            above = max(above, worth)
    top, under = other, node
    if below >= above:  # the half with the lower levels is next
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
    """Search at most this many nodes; return whether none waits."""
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
