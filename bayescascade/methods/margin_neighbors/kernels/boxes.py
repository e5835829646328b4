"""Sums and minima over all policies, box by box: a box comes after all boxes inside it.

A box is a number in mixed radix: digit j is 0 if feature j is not measured, else 1 + its bin. So a
box with one more measured feature has a larger number, and boxes are visited downward.
"""

from math import exp, log
from typing import Any

from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes


@inner_kernel
def price(item_starts, items, costs, paid, feature):
    """Return the price of a feature if some items are paid, paid (n_items,) bool."""
    total = 0.0
    for place in range(item_starts[feature], item_starts[feature + 1]):
        if not paid[items[place]]:
            total += costs[items[place]]
    return total


@kernel
def sum_boxes(
    sizes: Array,
    strides: Array,
    weights: Array,
    errors: Array,
    item_starts: Array,
    items: Array,
    costs: Array,
    tradeoff: float,
    temperature: float,
    digits: Array,
    paid: Array,
    best: Array,
    choices: Array,
    log_sums: Array,
    greedy: Array,
) -> int:
    """Fill in least objectives, first questions and log sums of boxes; return how many.

    sizes, strides (d,) int64: digits of a feature, and its place value; weights, errors (n_boxes,)
    float64: rows in a box, and errors as a leaf. best (n_boxes,): least errors plus tradeoff times
    costs; choices (n_boxes,) int64: its first question, -1 for a leaf; log_sums (n_boxes,): of
    exp(-objective / temperature) over policies; greedy (n_boxes,) int64: the question of the greedy
    rule. Boxes without rows are leaves, and not counted. digits (d,) int64 and paid (n_items,) bool
    are work.
    """
    n_features, n_filled = sizes.size, 0
    for box in range(weights.size - 1, -1, -1):
        best[box], choices[box], log_sums[box], greedy[box] = 0.0, -1, 0.0, -1
        if weights[box] <= 0.0:
            continue
        n_filled += 1
        paid[:] = False
        for feature in range(n_features):
            digits[feature] = (box // strides[feature]) % sizes[feature]
            if digits[feature] > 0:
                for place in range(item_starts[feature], item_starts[feature + 1]):
                    paid[items[place]] = True
        best[box] = errors[box]
        top = -errors[box] / temperature
        total = 1.0
        promised = errors[box]
        for feature in range(n_features):
            if digits[feature] > 0:
                continue
            cost = tradeoff * price(item_starts, items, costs, paid, feature) * weights[box]
            value, log_sum, wrong = cost, -cost / temperature, cost
            for digit in range(1, sizes[feature]):
                inside = box + digit * strides[feature]
                value += best[inside]
                log_sum += log_sums[inside]
                wrong += errors[inside]
            if value < best[box]:
                best[box], choices[box] = value, feature
            if wrong < promised:
                promised, greedy[box] = wrong, feature
            if log_sum > top:
                total = total * exp(top - log_sum) + 1.0
                top = log_sum
            else:
                total += exp(log_sum - top)
        log_sums[box] = top + log(total)
    return n_filled
