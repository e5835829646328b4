"""Slow twins of what a union of boxes is worth, which import nothing of ours."""

from itertools import product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


def all_boxes(rows):
    """Return all boxes with sides at values of rows, or open: of each set of rows, the simplest."""
    columns = []
    for column in np.asarray(rows, float).T:
        values = sorted(set(column.tolist()))
        pairs = product([-np.inf, *values], [*values, np.inf])
        columns.append([(low, high) for low, high in pairs if low <= high])
    simplest = {}
    for box in product(*columns):
        inside = tuple(
            all(low <= cell <= high for cell, (low, high) in zip(row, box, strict=True))
            for row in rows
        )
        n_sides = sum(abs(side) != np.inf for pair in box for side in pair)
        if inside not in simplest or n_sides < simplest[inside][0]:
            simplest[inside] = n_sides, box
    return [box for _, box in simplest.values()]


def printed_program(rows, is_positive, weights, negative_weight, n_boxes):
    """Return the optimum of (2.5) to (2.21) of the thesis by HiGHS, without boxes' costs.

    Margin 0; (2.12) and (2.20) summed over boxes; (2.17) with ``2n (1 - w)``. Rows are whole
    numbers from 0 to 9, so that M = 20 is large and epsilon = 0.5 is small.
    """
    large, small = 20.0, 0.5
    names = {}

    def at(*name):
        return names.setdefault(name, len(names))

    n_columns = len(rows[0])
    limits = []
    for k in range(n_boxes):
        for j in range(n_columns):
            limits.append(({at("l", j, k): 1, at("u", j, k): -1}, 0.0))  # (2.21)
            for i, row in enumerate(rows):
                sign = 1.0 if is_positive[i] else -1.0
                for side, end, direction in (("a", "l", 1.0), ("b", "u", -1.0)):
                    # sign * direction * (x - end) > 0 iff the binary is 1
                    to = sign * direction
                    place, binary = at(end, j, k), at(side, i, j, k)
                    limits.append(({place: -to, binary: -large}, -to * row[j]))
                    limits.append(({place: to, binary: large}, to * row[j] + large - small))
    for i, positive in enumerate(is_positive):
        z, sums = at("z", i), {}
        for k in range(n_boxes):
            w = at("w", i, k)
            binaries = {at(s, i, j, k): 1.0 for s in "ab" for j in range(n_columns)}
            minus = {place: -1.0 for place in binaries}
            both = 2 * n_columns
            if positive:
                limits.append((binaries | {w: -1.0}, both - 1.0))  # (2.9)
                limits.append((minus | {w: float(both)}, 0.0))  # (2.10)
            else:
                limits.append((binaries | {w: float(both)}, float(both)))  # (2.17)
                limits.append((minus | {w: -1.0}, -1.0))  # (2.18)
            sums[w] = 1.0
        minus = {place: -1.0 for place in sums}
        if positive:
            limits.append((sums | {z: -float(n_boxes)}, 0.0))  # (2.11)
            limits.append((minus | {z: 1.0}, 0.0))  # (2.12)
        else:
            limits.append((sums | {z: float(n_boxes)}, float(n_boxes)))  # (2.19)
            limits.append((minus | {z: -1.0}, -1.0))  # (2.20)
    matrix = np.zeros((len(limits), len(names)))
    for place, (terms, _) in enumerate(limits):
        for variable, factor in terms.items():
            matrix[place, variable] = factor
    goal, lower, upper = np.zeros(len(names)), np.zeros(len(names)), np.ones(len(names))
    is_whole = np.ones(len(names))
    for name, place in names.items():
        if name[0] == "z":
            i = name[1]
            goal[place] = weights[i] * (1.0 if is_positive[i] else negative_weight)
        elif name[0] in "lu":
            lower[place], upper[place], is_whole[place] = -1.0, 10.0, 0.0
    right = np.array([limit for _, limit in limits])
    found = milp(
        -goal,
        integrality=is_whole,
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(matrix, -np.inf, right),
    )
    return -found.fun
