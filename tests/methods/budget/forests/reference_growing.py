"""Slow, obvious twins of impurities and GREEDYTREE. Nothing here imports what is under test.

Rows are tuples of floats, NaN if missing. A tree is ``(counts,)`` at a leaf, else ``(counts,
column, threshold, missing_left, left, right)`` with counts a tuple of the classes' weights.
"""

import math
from itertools import pairwise

GREATEST = (2 - 2**-23) * 2.0**127
"""The threshold that sends all numbers left."""


def threshold_pairs(counts, alpha):
    total = 0.0
    for i, first in enumerate(counts):
        for second in counts[:i]:
            product = max(first - alpha, 0.0) * max(second - alpha, 0.0)
            total += max(product - alpha**2, 0.0)
    return total


def powers(counts, order):
    return sum(counts) ** order - sum(count**order for count in counts)


def polynomial(counts, coefficients, exponents):
    terms = zip(coefficients, exponents, strict=True)
    return sum(c * math.prod(n**p for n, p in zip(counts, row, strict=True)) for c, row in terms)


def gini(counts):
    total = sum(counts)
    return 1 - sum((count / total) ** 2 for count in counts) if total else 0.0


def entropy(counts):
    total = sum(counts)
    return -sum(count / total * math.log(count / total) for count in counts if count)


def broken_rule(measure, smaller, larger, example):
    """Return the first property of admissible impurities that a function lacks on these sets.

    `smaller` and `larger` are class weights, the former nowhere greater; `example` is the weights
    of what is added to both.
    """

    def at(counts):
        return measure(counts)

    def plus(counts):
        return tuple(n + m for n, m in zip(counts, example, strict=True))

    slack = 1e-9 * max(1.0, abs(at(plus(larger))))
    if at(smaller) < 0:
        return "nonnegative"
    if any(at(tuple(n * (i == j) for i, n in enumerate(larger))) for j in range(len(larger))):
        return "pure"
    if at(smaller) > at(larger) + slack:
        return "monotone"
    if at(plus(smaller)) - at(smaller) > at(plus(larger)) - at(larger) + slack:
        return "supermodular"
    return None


def count(labels, weights, n_classes):
    return tuple(
        float(sum(w for label, w in zip(labels, weights, strict=True) if label == k))
        for k in range(n_classes)
    )


def greedy_tree(
    rows, labels, weights, n_classes, measure, items, *, tie, exponent, reuse_is_free, max_depth
):
    """Return the tree grown on weighted rows.

    `items` gives for each column the pairs (item, cost) it incurs; `tie` is what decides among
    children whose impurity is the same.
    """

    def grow(chosen, depth, paid):
        counts = count([labels[i] for i in chosen], [weights[i] for i in chosen], n_classes)
        if measure(counts) == 0 or depth == max_depth:
            return (counts,)
        splits = []
        for column, incurred in enumerate(items):
            cut = best_cut(chosen, column)
            if cut is None or measure(counts) - cut[0] <= 0:
                continue
            worse, worse_tie, threshold, missing_left = cut
            cost = sum(c for item, c in incurred if not (reuse_is_free and item in paid))
            cost = cost**exponent if cost else 0.0
            gain = measure(counts) - worse
            splits.append((cost / gain, -gain, worse_tie, column, threshold, missing_left))
        if not splits:
            return (counts,)
        free = [split for split in splits if split[0] == 0]
        costly = [split for split in splits if split[0] > 0]
        best = min(costly, default=None)
        if free and (best is None or min(free)[1] <= best[1]):
            best = min(free)
        *_, column, threshold, missing_left = best
        left, right = sides(chosen, column, threshold, missing_left)
        if not any(math.isnan(rows[i][column]) for i in chosen):
            missing_left = sum(weights[i] for i in left) > sum(weights[i] for i in right)
        paid = paid | {item for item, _ in items[column]}
        children = grow(left, depth + 1, paid), grow(right, depth + 1, paid)
        return (counts, column, threshold, missing_left, *children)

    def sides(chosen, column, threshold, missing_left):
        def goes_left(i):
            x = rows[i][column]
            return missing_left if math.isnan(x) else x <= threshold

        return [i for i in chosen if goes_left(i)], [i for i in chosen if not goes_left(i)]

    def best_cut(chosen, column):
        """Try every cut, with missing values on either side; next to the crossing in ties."""
        values = sorted({rows[i][column] for i in chosen if not math.isnan(rows[i][column])})
        any_missing = any(math.isnan(rows[i][column]) for i in chosen)
        middles = [low + (high - low) / 2 for low, high in pairwise(values)]
        best = None
        for missing_left in (False, True)[: 1 + any_missing]:
            only_missing = [GREATEST] if any_missing and not missing_left and values else []
            left_is_worse, right_is_worse = [], []
            for threshold in middles + only_missing:
                keys = []
                for side in sides(chosen, column, threshold, missing_left):
                    here = count([labels[i] for i in side], [weights[i] for i in side], n_classes)
                    keys.append((measure(here), tie(here)))
                group = left_is_worse if keys[0] > keys[1] else right_is_worse
                group.append((*max(keys), threshold, missing_left))
            nearest = right_is_worse[-1:] + left_is_worse[:1]
            found = min(nearest, key=lambda cut: cut[:2], default=None)
            every = left_is_worse + right_is_worse
            assert not every or found[:2] == min(cut[:2] for cut in every)
            if found is not None and (best is None or found[:2] < best[:2]):
                best = found
        return best

    return grow([i for i, weight in enumerate(weights) if weight > 0], 0, frozenset())


def least_max_cost(rows, labels, costs):
    """Return the least that the costliest row may cost a tree that classifies all rows rightly.

    Columns are 0 and 1, so that no path needs one twice; rows of one value have one label.
    """
    if len(set(labels)) < 2:
        return 0.0
    best = math.inf
    for column, cost in enumerate(costs):
        parts = [[i for i, row in enumerate(rows) if row[column] == side] for side in (0, 1)]
        if all(parts):
            below = (
                least_max_cost([rows[i] for i in part], [labels[i] for i in part], costs)
                for part in parts
            )
            best = min(best, cost + max(below))
    return best
