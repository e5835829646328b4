"""How many cells a rule captures first: exact, by splitting boxes.

A part of a list holds the cells of a box (its rule's) that are in none of the boxes before it.
`uncovered` returns the share of a box that a set of rules leaves uncovered. Rules that share no
open column cover independently, so their shares multiply; within a group, the column that most
rules use is cut wherever one of their conditions begins or ends, and the shares of the pieces add
up. Everything added and multiplied is >= 0, so nothing cancels: the result is exact to rounding,
and 0 exactly if no cell of positive volume is left.

Counting the cells of a union of boxes is #P-hard, so the worst case is exponential: at most
``prod (pieces of a column)`` over the columns that connected rules share, and never more than a
factor of three for each rule.
"""

from math import log

import numpy as np

from bayescascade._jit import inner_kernel, kernel
from bayescascade.rules.kernels.layout import COLUMN, HIGH, LOW, Array, CandidateArrays

__all__ = ["are_disjoint", "first_log_volume", "first_log_volumes", "reset_box", "width"]


@inner_kernel
def width(candidates, column, low, high):
    """Volume of the codes [low, high) of a column, summed up anew: differences would cancel."""
    start = candidates.offsets[column]
    total = 0.0
    for code in range(start + low, start + high):
        total += candidates.widths[code]
    return total


@inner_kernel
def are_disjoint(candidates, first, second):
    """Whether no cell satisfies both candidates."""
    a, b = 0, 0
    n_first, n_second = candidates.sizes[first], candidates.sizes[second]
    while a < n_first and b < n_second:
        one = candidates.members[first, a]
        other = candidates.members[second, b]
        if candidates.items[one, COLUMN] < candidates.items[other, COLUMN]:
            a += 1
        elif candidates.items[one, COLUMN] > candidates.items[other, COLUMN]:
            b += 1
        else:
            if (
                candidates.items[one, HIGH] <= candidates.items[other, LOW]
                or candidates.items[other, HIGH] <= candidates.items[one, LOW]
            ):
                return True
            a += 1
            b += 1
    return False


@inner_kernel
def reset_box(candidates, box):
    """Make the box the whole domain."""
    for column in range(box.shape[0]):
        box[column, 0] = 0
        box[column, 1] = candidates.offsets[column + 1] - candidates.offsets[column]


@inner_kernel
def _is_open(candidates, box, item):
    """Whether a condition still divides the box; it is known to hold in a part of it."""
    column = candidates.items[item, COLUMN]
    return (
        candidates.items[item, LOW] > box[column, 0]
        or candidates.items[item, HIGH] < box[column, 1]
    )


@inner_kernel
def _overlaps(candidates, box, rule):
    """Whether a candidate holds somewhere in the box."""
    for k in range(candidates.sizes[rule]):
        item = candidates.members[rule, k]
        column = candidates.items[item, COLUMN]
        if (
            candidates.items[item, HIGH] <= box[column, 0]
            or candidates.items[item, LOW] >= box[column, 1]
        ):
            return False
    return True


@inner_kernel
def _uncovered_by_one(candidates, box, rule):
    """Share of the box that one rule leaves: what fails its first open condition, and so on."""
    share, passed = 0.0, 1.0
    for k in range(candidates.sizes[rule]):
        item = candidates.members[rule, k]
        if _is_open(candidates, box, item):
            column = candidates.items[item, COLUMN]
            low = max(box[column, 0], np.int64(candidates.items[item, LOW]))
            high = min(box[column, 1], np.int64(candidates.items[item, HIGH]))
            inside = width(candidates, column, low, high)
            outside = width(candidates, column, box[column, 0], low)
            outside += width(candidates, column, high, box[column, 1])
            share += passed * (outside / (inside + outside))
            passed *= inside / (inside + outside)
    return share


@inner_kernel
def uncovered(candidates, rules, active, box, users):
    """Share of the box's volume, which is positive, that no active rule covers.

    rules (m,) int64: candidates; active: bits of those that hold somewhere in the box; users (p,)
    int64: scratch. The box is the same afterwards.
    """
    if active == 0:
        return 1.0
    last = 0
    while active >> (last + 1) != 0:
        last += 1
    for r in range(last + 1):
        if active >> r & 1:
            covers = True
            for k in range(candidates.sizes[rules[r]]):
                item = candidates.members[rules[r], k]
                if _is_open(candidates, box, item):
                    covers = False
                    users[candidates.items[item, COLUMN]] = 0
            if covers:
                return 0.0
    for r in range(last + 1):
        if active >> r & 1:
            for k in range(candidates.sizes[rules[r]]):
                item = candidates.members[rules[r], k]
                if _is_open(candidates, box, item):
                    users[candidates.items[item, COLUMN]] |= 1 << r
    share = 1.0
    todo = active
    while todo != 0 and share > 0.0:
        group = todo & -todo
        frontier = group
        column, most = -1, 0
        n_rules = 0
        while frontier != 0:
            r = 0
            while not frontier >> r & 1:
                r += 1
            frontier &= ~(1 << r)
            n_rules += 1
            for k in range(candidates.sizes[rules[r]]):
                item = candidates.members[rules[r], k]
                if _is_open(candidates, box, item):
                    c = candidates.items[item, COLUMN]
                    found = users[c] & ~group
                    group |= found
                    frontier |= found
                    n_users = 0
                    mask = users[c]
                    while mask != 0:
                        mask &= mask - 1
                        n_users += 1
                    if n_users > most or (n_users == most and c < column):
                        column, most = c, n_users
        todo &= ~group
        if n_rules == 1:
            r = 0
            while not group >> r & 1:
                r += 1
            share *= _uncovered_by_one(candidates, box, rules[r])
        else:
            share *= _split(candidates, rules, group, column, box, users)
    return share


@inner_kernel
def _split(candidates, rules, group, column, box, users):
    """Share of the box that a group of rules leaves, by cutting one of the columns they share."""
    low, high = box[column, 0], box[column, 1]
    on_column = users[column]
    others = group & ~on_column
    share, rest = 0.0, 0.0
    at = low
    while at < high:
        until = high
        holding = 0
        mask = on_column
        r = 0
        while mask >> r != 0:
            if mask >> r & 1:
                k = 0
                while candidates.items[candidates.members[rules[r], k], COLUMN] != column:
                    k += 1
                item = candidates.members[rules[r], k]
                if candidates.items[item, LOW] > at:
                    until = min(until, np.int64(candidates.items[item, LOW]))
                elif candidates.items[item, HIGH] > at:
                    until = min(until, np.int64(candidates.items[item, HIGH]))
                    holding |= 1 << r
            r += 1
        piece = width(candidates, column, at, until)
        if piece > 0.0:
            if holding == 0:
                rest += piece  # no rule looks at the column any more: one piece in effect
            else:
                box[column, 0], box[column, 1] = at, until
                share += piece * uncovered(candidates, rules, others | holding, box, users)
        at = until
    box[column, 0], box[column, 1] = low, high
    total = width(candidates, column, low, high)
    if rest > 0.0:
        share += rest * uncovered(candidates, rules, others, box, users)
    return share / total


@inner_kernel
def first_log_volume(candidates, rules, part, rule, box, users):
    """Log share of the domain that `rule` (-1: anything) captures after the first `part` rules.

    box (p, 2) int64: the domain, as `reset_box` leaves it; the same afterwards. -inf if it
    captures nothing.
    """
    log_share = 0.0
    if rule >= 0:
        for k in range(candidates.sizes[rule]):
            item = candidates.members[rule, k]
            column = candidates.items[item, COLUMN]
            whole = width(candidates, column, box[column, 0], box[column, 1])
            low, high = candidates.items[item, LOW], candidates.items[item, HIGH]
            inside = width(candidates, column, low, high)
            log_share += log(inside / whole) if inside > 0.0 else -np.inf
            box[column, 0], box[column, 1] = low, high
    if log_share > -np.inf:
        active = 0
        for r in range(part):
            if _overlaps(candidates, box, rules[r]):
                active |= 1 << r
        share = uncovered(candidates, rules, active, box, users)
        log_share += log(share) if share > 0.0 else -np.inf
    if rule >= 0:
        for k in range(candidates.sizes[rule]):
            column = candidates.items[candidates.members[rule, k], COLUMN]
            box[column, 0] = 0
            box[column, 1] = candidates.offsets[column + 1] - candidates.offsets[column]
    return log_share


@kernel
def first_log_volumes(
    candidates: CandidateArrays, rules: Array, box: Array, users: Array, out: Array
) -> None:
    """Write the log share of the domain that each part captures first, -inf if none.

    rules (m,) int64: candidates; box (p, 2) and users (p,) int64: scratch; out (m + 1,) float64.
    """
    reset_box(candidates, box)
    n_rules = rules.shape[0]
    for part in range(n_rules):
        out[part] = first_log_volume(candidates, rules, part, rules[part], box, users)
    out[n_rules] = first_log_volume(candidates, rules, n_rules, -1, box, users)
