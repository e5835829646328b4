"""The choice of a node's features: pivots on its sums of squares, greedy and over all sets.

The sums are one symmetric matrix, `squares` (p + c, p + c): p columns, grouped by feature, then c
targets. When a feature is bought, its columns are eliminated from the others and from the targets
(a Schur complement), so the trace over the targets is the unexplained part. No candidate needs a
separate solution.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes

SINGULAR = 1e-10  # share of a column's variance: less is rounding
_WITHIN = 1 + 1e-9  # tolerance of `costs.limits.is_within`
_SAME = 1e-12  # explained share: smaller gains do not count


class ItemCosts(NamedTuple):
    """Costs of items (n_items,), each paid once, and the items of each feature.

    starts (d + 1,), items (n_incurred,) int64; costs (n_items,) float64; paid (n_items,) int64,
    number of bought features with the item.
    """

    starts: Array
    items: Array
    costs: Array
    paid: Array


@inner_kernel
def price(prices, feature):
    """Return the current price of a feature."""
    total = 0.0
    for place in range(prices.starts[feature], prices.starts[feature + 1]):
        item = prices.items[place]
        if prices.paid[item] == 0:
            total += prices.costs[item]
    return total


@inner_kernel
def pay(prices, feature, times):
    """Count a feature as bought (1), or take that back (-1)."""
    for place in range(prices.starts[feature], prices.starts[feature + 1]):
        prices.paid[prices.items[place]] += times


@inner_kernel
def pivot(squares, column, first):
    """Eliminate a column from all columns from `first` on, and set it to 0.

    Only its row is read, as in `eliminate`; `rounding` relies on this.
    """
    size = squares.shape[0]
    diagonal = squares[column, column]
    if diagonal > SINGULAR:
        for i in range(first, size):
            factor = squares[column, i] / diagonal
            if factor != 0.0 and i != column:
                for j in range(first, size):
                    squares[i, j] -= factor * squares[column, j]
    for i in range(size):
        squares[i, column] = 0.0
        squares[column, i] = 0.0


@inner_kernel
def eliminate(block, m, c):
    """Return the part of c targets that m columns explain: block (m, m + c), upper triangle."""
    explained = 0.0
    for k in range(m):
        diagonal = block[k, k]
        if diagonal <= SINGULAR:
            continue
        for j in range(m, m + c):
            explained += block[k, j] * block[k, j] / diagonal
        for i in range(k + 1, m):
            factor = block[k, i] / diagonal
            if factor != 0.0:
                for j in range(i, m + c):
                    block[i, j] -= factor * block[k, j]
    return explained


@inner_kernel
def gain(squares, first, last, n_columns, block):
    """Return what the columns from `first` to `last` explain in addition to those bought."""
    m, c = last - first, squares.shape[0] - n_columns
    for i in range(m):
        for j in range(i, m):
            block[i, j] = squares[first + i, first + j]
        for j in range(c):
            block[i, m + j] = squares[first + i, n_columns + j]
    return eliminate(block, m, c)


@kernel
def buy(squares: Array, starts: Array, feature: int) -> None:
    """Eliminate a feature's columns from all columns and targets."""
    for column in range(starts[feature], starts[feature + 1]):
        pivot(squares, column, 0)


@kernel
def all_gains(squares: Array, starts: Array, n_columns: int, block: Array, gains: Array) -> None:
    """Fill in the gain of each feature, gains (d,); block (m, m + c) is workspace."""
    for feature in range(starts.size - 1):
        gains[feature] = gain(squares, starts[feature], starts[feature + 1], n_columns, block)


@kernel
def greedy(
    squares: Array,
    starts: Array,
    is_open: Array,
    prices: ItemCosts,
    budget: float,
    by_price: bool,
    skips: bool,
    block: Array,
    order: Array,
    gains: Array,
) -> int:
    """Buy features of largest gain, per price if `by_price`, while they fit; return how many.

    squares and prices are changed; is_open (d,) bool; order (d,) int64 and gains (d,) are filled.
    If a feature does not fit, the next one is tried if `skips`, otherwise buying ends.
    """
    n_columns, n_bought, spent = starts[-1], 0, 0.0
    while True:
        best, best_rate, best_gain, best_price = -1, 0.0, 0.0, 0.0
        for feature in range(starts.size - 1):
            if not is_open[feature]:
                continue
            cost = price(prices, feature)
            if skips and spent + cost > budget * _WITHIN:
                continue
            explained = gain(squares, starts[feature], starts[feature + 1], n_columns, block)
            if explained <= _SAME:
                continue
            rate = explained
            if by_price:
                rate = explained / cost if cost > 0.0 else np.inf
            if rate > best_rate or (rate == best_rate and explained > best_gain):
                best, best_rate, best_gain, best_price = feature, rate, explained, cost
        if best < 0 or spent + best_price > budget * _WITHIN:
            return n_bought
        for column in range(starts[best], starts[best + 1]):
            pivot(squares, column, 0)
        pay(prices, best, 1)
        is_open[best] = False
        spent += best_price
        order[n_bought], gains[n_bought] = best, best_gain
        n_bought += 1


@kernel
def every_set(
    stack: Array,
    starts: Array,
    candidates: Array,
    prices: ItemCosts,
    budget: float,
    most_work: float,
    block: Array,
    work: Array,
    best: Array,
    values: Array,
) -> float:
    """Find the affordable set of candidates that explains most; return its value, -1 if too many.

    stack (k + 1, p + c, p + c): stack[0] holds the squares; candidates (k,) int64, ascending; work
    (4, k + 1) float64: for each depth the next candidate, explained, spent, and the candidate
    chosen; best (k,) int64: 1 for candidates in the best set. `most_work` is the approximate
    maximum number of multiplications. Unless it is empty, values (2^k,) gets the explained part of
    each affordable set; the bits of a set's number are its candidates.
    """
    n, n_columns, size = candidates.size, starts[-1], stack.shape[1]
    is_next, explained, spent, chosen = work[0], work[1], work[2], work[3]
    top, done, depth, number = 0.0, 0.0, 0, 0
    is_next[0], explained[0], spent[0] = 0, 0.0, 0.0
    best[:] = 0
    while depth >= 0:
        place = int(is_next[depth])
        if place == n:
            depth -= 1
            if depth >= 0:
                pay(prices, candidates[int(chosen[depth])], -1)
                number -= 1 << int(chosen[depth])
            continue
        is_next[depth] += 1
        feature = candidates[place]
        cost = price(prices, feature)
        if spent[depth] + cost > budget * _WITHIN:
            continue
        first, last = starts[feature], starts[feature + 1]
        value = explained[depth] + gain(stack[depth], first, last, n_columns, block)
        done += (last - first) * (last - first) * (last - first + size - n_columns)
        chosen[depth] = place
        if values.size:
            values[number + (1 << place)] = value
        if value > top + _SAME:
            top = value
            best[:] = 0
            for level in range(depth + 1):
                best[int(chosen[level])] = 1
        if place + 1 == n:
            continue
        now, after = stack[depth], stack[depth + 1]
        for i in range(first, size):
            for j in range(first, size):
                after[i, j] = now[i, j]
        for column in range(first, last):
            pivot(after, column, column)
        done += (last - first) * (size - first) * (size - first)
        if done > most_work:
            return -1.0
        pay(prices, feature, 1)
        number += 1 << place
        depth += 1
        is_next[depth], explained[depth] = place + 1, value
        spent[depth] = spent[depth - 1] + cost
    return top
