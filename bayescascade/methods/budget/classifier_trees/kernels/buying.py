"""Chains over the purchases of leaves: a random leaf buys, sells or swaps a feature."""

from math import log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.chain_kernels import accept
from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.budget.classifier_trees.kernels.choosing import ItemCosts, eliminate

Array = NDArray[Any]  # the docstrings give dtypes

MOVES = ("buy", "sell", "swap")
BUY, SELL, SWAP = range(3)


class Leaves(NamedTuple):
    """Arrays of L leaves, with d features, p columns and c targets.

    squares (L, p + c, p + c): sums over the rows of each leaf, see `choosing`; starts (d + 1,)
    int64: the columns of each feature; required (L, d) bool: features bought in every state;
    weights (L,): of the rows; contrasts (L,): number of classes there minus one, at least 1; price
    (L,): nats per unit of cost.
    """

    squares: Array
    starts: Array
    required: Array
    weights: Array
    contrasts: Array
    price: Array
    prices: ItemCosts


class BuyingWork(NamedTuple):
    """Workspace: block (p, p + c) float64; columns (p,) int64."""

    block: Array
    columns: Array


@inner_kernel
def log_marginal(explained, n_columns, weight, contrasts):
    """Return the log marginal likelihood minus that of no columns, nats; see `posterior`."""
    unexplained = min(max(1.0 - explained, 0.0), 1.0)
    freedom = max(weight - 1.0, 0.0)
    inside = (freedom - n_columns) * log1p(weight) - freedom * log1p(weight * unexplained)
    return 0.5 * contrasts * inside


@kernel
def log_marginals(values: Array, n_columns: Array, weight: float, contrasts: float) -> None:
    """Replace explained shares of sets, values (s,), by log marginals; n_columns (s,)."""
    for place in range(values.size):
        values[place] = log_marginal(values[place], n_columns[place], weight, contrasts)


@inner_kernel
def parts(model, work, leaf, has):
    """Return the log marginal and the cost of a leaf with features (d,)."""
    squares, starts, prices = model.squares[leaf], model.starts, model.prices
    n_columns, cost, m = starts[-1], 0.0, 0
    c = squares.shape[0] - n_columns
    prices.paid[:] = 0
    for feature in range(has.size):
        if not has[feature]:
            continue
        for column in range(starts[feature], starts[feature + 1]):
            if squares[column, column] > 0.0:
                work.columns[m] = column
                m += 1
        for place in range(prices.starts[feature], prices.starts[feature + 1]):
            item = prices.items[place]
            if prices.paid[item] == 0:
                cost += prices.costs[item]
            prices.paid[item] = 1
    for i in range(m):
        row = squares[work.columns[i]]
        for j in range(i, m):
            work.block[i, j] = row[work.columns[j]]
        for j in range(c):
            work.block[i, m + j] = row[n_columns + j]
    explained = eliminate(work.block, m, c)
    return log_marginal(explained, m, model.weights[leaf], model.contrasts[leaf]), cost


@kernel
def all_parts(model: Leaves, work: BuyingWork, has: Array, found: Array) -> None:
    """Fill in the log marginal and the cost of each leaf, found (L, 2), given has (L, d) bool."""
    for leaf in range(has.shape[0]):
        marginal, cost = parts(model, work, leaf, has[leaf])
        found[leaf, 0], found[leaf, 1] = marginal, cost


@inner_kernel
def nth(flags, wanted, required, place):
    """Return the n-th feature among those with a flag that are not required."""
    for feature in range(flags.size):
        if flags[feature] == wanted and not required[feature]:
            if place == 0:
                return feature
            place -= 1
    return -1


@inner_kernel
def flip(has, first, second):
    """Buy or sell one feature, and another one unless it is -1."""
    has[first] = not has[first]
    if second >= 0:
        has[second] = not has[second]


@inner_kernel
def copy(has, best):
    """Copy a table."""
    for leaf in range(has.shape[0]):
        for feature in range(has.shape[1]):
            best[leaf, feature] = has[leaf, feature]


@kernel
def sweep(
    rng: np.random.Generator,
    model: Leaves,
    work: BuyingWork,
    n_steps: int,
    inverse_temperature: float,
    move_cdf: Array,
    proposed: Array,
    accepted: Array,
    values: Array,
    has: Array,
    best: Array,
) -> None:
    """Run steps, which change values (L,) and has (L, d) bool, and fill in best (L, d).

    A step draws a leaf, then a move: "buy" one of its missing features, "sell" one that is not
    required, or "swap" such a one for a missing one. With n features to buy and m to sell, the
    Hastings ratio is n / (m + 1) for buying and m / (n + 1) for selling; a swap is its own reverse.
    """
    n_leaves, d = has.shape
    for leaf in range(n_leaves):
        marginal, cost = parts(model, work, leaf, has[leaf])
        values[leaf] = marginal - model.price[leaf] * cost
    copy(has, best)
    gained, most = 0.0, 0.0
    for _ in range(n_steps):
        leaf = int(rng.random() * n_leaves)
        held, required = has[leaf], model.required[leaf]
        u, move = rng.random(), 0
        while u >= move_cdf[move]:
            move += 1
        proposed[move] += 1
        n, m = 0, 0
        for feature in range(d):
            if not held[feature]:
                n += 1
            elif not required[feature]:
                m += 1
        if (n == 0 and move != SELL) or (m == 0 and move != BUY):
            continue
        first, second, log_ratio = -1, -1, 0.0
        if move != SELL:
            first = nth(held, False, required, int(rng.random() * n))
        if move == BUY:
            log_ratio = log(n / (m + 1.0))
        else:
            second = first
            first = nth(held, True, required, int(rng.random() * m))
        if move == SELL:
            log_ratio = log(m / (n + 1.0))
        flip(held, first, second)
        marginal, cost = parts(model, work, leaf, held)
        value = marginal - model.price[leaf] * cost
        change = value - values[leaf]
        if not accept(rng, inverse_temperature * change + log_ratio):
            flip(held, first, second)
            continue
        accepted[move] += 1
        values[leaf] = value
        gained += change
        if gained > most + 1e-9:
            most = gained
            copy(has, best)
