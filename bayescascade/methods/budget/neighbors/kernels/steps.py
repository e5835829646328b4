"""Rows on their way: neighbors in the measured features, and gains of further features.

Distances grow feature by feature. The largest new distance of the previous neighbors is an upper
bound of the new radius, so a step is one pass over the rows, and a heap holds the nearest so far.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes

_SAME = 1e-12  # shares of neighbors: smaller differences are ties
_ROUNDING = 1e-9  # relative, of squared distances and costs
_TINY = 1e-300  # distances of 0 are below it


class NeighborhoodArrays(NamedTuple):
    """Training rows, and settings of neighborhoods.

    columns (p, n) float64, standardized; starts (d + 1,) int64: columns of a feature; parts (n, d,
    c) float64: contribution of a feature to each score, c = 1 for two classes; offset (c,); labels
    (n,) int64; weights (n,) float64 > 0; item_starts (d + 1,), items (n_incurred,) int64, costs
    (n_items,) float64; n_neighbors: minimum weight of neighbors; is_rest_near: whether features not
    measured count with their mean among the neighbors, otherwise with 0; has_ties: whether all rows
    at the radius are neighbors, otherwise the first ones.
    """

    columns: Array
    starts: Array
    parts: Array
    offset: Array
    labels: Array
    weights: Array
    item_starts: Array
    items: Array
    costs: Array
    n_neighbors: float
    tradeoff: float
    is_rest_near: bool
    has_ties: bool


class StoppingRule(NamedTuple):
    """When a row stops: accuracy above, gain at most, number of features, and cost."""

    threshold: float
    least_gain: float
    most_features: int
    max_cost: float


class Estimate(NamedTuple):
    """Estimates from neighbors: accuracy (1,), with_each (d,), votes (n_classes,), all float64.

    rest (d + 3, c) float64: means of unknown features; then their sum, zeros and a workspace.
    """

    accuracy: Array
    with_each: Array
    votes: Array
    rest: Array


class NeighborWorkspace(NamedTuple):
    """Workspace of a row: distances, keys, sizes (n,) float64, near (n,) int64, base (c,), paid."""

    distances: Array
    keys: Array
    sizes: Array
    near: Array
    base: Array
    paid: Array


class Routes(NamedTuple):
    """Results for m rows; step 0 is without measured features.

    order (m, d) int64, -1 beyond the end; features given in it are measured in any case; n_steps
    (m,) int64; following (m,) int64: the next feature, -1 if none fits; costs, accuracy, gains (m,
    d + 1) float64; promised (m, d): expected accuracy with the next feature; scores (m, d + 1, c);
    votes (m, d + 1, n_classes).
    """

    order: Array
    n_steps: Array
    following: Array
    costs: Array
    accuracy: Array
    gains: Array
    promised: Array
    scores: Array
    votes: Array


@inner_kernel
def push(keys, sizes, n, key, size):
    """Add to a heap of n keys, the largest first, and their sizes."""
    place = n
    while place > 0 and keys[(place - 1) // 2] < key:
        above = (place - 1) // 2
        keys[place], sizes[place] = keys[above], sizes[above]
        place = above
    keys[place], sizes[place] = key, size


@inner_kernel
def pop(keys, sizes, n):
    """Remove the largest of n keys of a heap."""
    key, size, place = keys[n - 1], sizes[n - 1], 0
    while 2 * place + 1 < n - 1:
        below = 2 * place + 1
        if below + 1 < n - 1 and keys[below + 1] > keys[below]:
            below += 1
        if keys[below] <= key:
            break
        keys[place], sizes[place] = keys[below], sizes[below]
        place = below
    keys[place], sizes[place] = key, size


@inner_kernel
def find_within(around, work, bound):
    """Fill in rows nearer than a bound, and all neighbors; return how many, and the radius."""
    n_near, n_keys, total = 0, 0, 0.0
    least = around.n_neighbors * (1.0 - _ROUNDING)
    for row in range(work.distances.size):
        distance = work.distances[row]
        if distance >= bound:
            continue
        work.near[n_near] = row
        n_near += 1
        if total >= least and distance >= work.keys[0]:  # a tie
            continue
        push(work.keys, work.sizes, n_keys, distance, around.weights[row])
        n_keys += 1
        total += around.weights[row]
        while total - work.sizes[0] >= least:
            total -= work.sizes[0]
            pop(work.keys, work.sizes, n_keys)
            n_keys -= 1
        if total >= least:
            bound = min(bound, just_above(work.keys[0]))
    return n_near, work.keys[0]


@inner_kernel
def just_above(distance):
    """Return a number above a distance and those that equal it up to rounding."""
    return distance * (1.0 + 2.0 * _ROUNDING) + _TINY


@inner_kernel
def find_near(around, work, n_before):
    """Fill in the neighbors, given distances and n_before previous neighbors; return how many."""
    bound = np.inf
    if n_before > 0:
        bound = 0.0
        for place in range(n_before):
            bound = max(bound, work.distances[work.near[place]])
        bound = just_above(bound)
    n, last = find_within(around, work, bound)
    inside, outside = last * (1.0 - _ROUNDING), last * (1.0 + _ROUNDING)
    left = np.inf
    if not around.has_ties:
        left = around.n_neighbors
        for place in range(n):
            if work.distances[work.near[place]] < inside:
                left -= around.weights[work.near[place]]
    n_near = 0
    for place in range(n):
        row = work.near[place]
        if work.distances[row] > outside:
            continue
        if work.distances[row] >= inside:
            if left <= 0.0:
                continue
            left -= around.weights[row]
        work.near[n_near] = row
        n_near += 1
    return n_near


@inner_kernel
def is_right(scores, place, added, more, label):
    """Return whether the label has the largest score, (c,), after adding two arrays."""
    if scores.size == 1:
        total = scores[0] + added[0] + more[0]
        return total > 0.0 if label == 1 else total < 0.0
    own = scores[label] + added[label] + more[label]
    for other in range(scores.size):
        if other != label and scores[other] + added[other] + more[other] >= own:
            return False
    return place >= 0


@inner_kernel
def estimate(around, near, n_near, is_known, is_acquired, base, result):
    """Fill in estimates: shares of neighbors that are right, now and with each further feature."""
    n_features, n_scores = around.parts.shape[1], around.offset.size
    result.votes[:] = 0.0
    result.with_each[:] = 0.0
    result.rest[:] = 0.0
    total = 0.0
    for place in range(n_near):
        row = near[place]
        total += around.weights[row]
        result.votes[around.labels[row]] += around.weights[row]
    if around.is_rest_near:
        for place in range(n_near):
            row = near[place]
            for feature in range(n_features):
                if not is_known[feature]:
                    for score in range(n_scores):
                        share = around.weights[row] * around.parts[row, feature, score] / total
                        result.rest[feature, score] += share
    right = 0.0
    last = n_features  # the sum over unknown features
    for feature in range(n_features):
        for score in range(n_scores):
            result.rest[last, score] += result.rest[feature, score]
    for place in range(n_near):
        row = near[place]
        label, weight = around.labels[row], around.weights[row]
        for score in range(n_scores):
            base[score] = around.offset[score] + result.rest[last, score]
            for feature in range(n_features):
                if is_known[feature]:
                    base[score] += around.parts[row, feature, score]
        if is_right(base, place, result.rest[last + 1], result.rest[last + 1], label):
            right += weight
        for feature in range(n_features):
            if is_acquired[feature]:
                continue
            for score in range(n_scores):
                result.rest[last + 2, score] = -result.rest[feature, score]
            if is_right(base, place, around.parts[row, feature], result.rest[last + 2], label):
                result.with_each[feature] += weight
    result.accuracy[0] = right / total
    for feature in range(n_features):
        result.with_each[feature] /= total
    for label in range(result.votes.size):
        result.votes[label] /= total


@inner_kernel
def price(around, paid, feature):
    """Return the current price of a feature."""
    total = 0.0
    for place in range(around.item_starts[feature], around.item_starts[feature + 1]):
        item = around.items[place]
        if not paid[item]:
            total += around.costs[item]
    return total


@inner_kernel
def best_feature(around, estimates, paid, is_acquired, spent, max_cost):
    """Return the next feature, -1 if none fits, and its accuracy minus its price."""
    best, best_value, best_cost = -1, -np.inf, np.inf
    for feature in range(is_acquired.size):
        if is_acquired[feature]:
            continue
        cost = price(around, paid, feature)
        if cost > 0.0 and spent + cost > max_cost * (1.0 + _ROUNDING):
            continue
        value = estimates.with_each[feature] - around.tradeoff * cost
        is_same = abs(value - best_value) <= _SAME
        if value > best_value + _SAME or (is_same and cost < best_cost * (1.0 - _ROUNDING)):
            best, best_value, best_cost = feature, value, cost
    return best, best_value


@kernel
def tell_start(
    around: NeighborhoodArrays, work: NeighborWorkspace, flags: Array, result: Estimate
) -> None:
    """Fill in estimates from all rows, before features are known; flags (2, d) is workspace."""
    for row in range(around.labels.size):
        work.near[row] = row
    flags[:] = False
    estimate(around, work.near, around.labels.size, flags[0], flags[1], work.base, result)


@kernel
def follow(
    around: NeighborhoodArrays,
    start: Estimate,
    rows: Array,
    parts: Array,
    own: Array,
    stop: StoppingRule,
    work: NeighborWorkspace,
    flags: Array,
    estimates: Estimate,
    routes: Routes,
) -> None:
    """Fill in the routes of rows (m, p) float64, with NaN for cells that cannot be measured.

    parts (m, d, c): contributions of their features; own (m,) int64: the training row that is the
    row itself, and so no neighbor, or -1; flags (2, d) bool and estimates are workspace.
    """
    is_known, is_acquired = flags[0], flags[1]
    n_scores = around.offset.size
    for one in range(rows.shape[0]):
        is_known[:] = False
        is_acquired[:] = False
        work.paid[:] = False
        work.distances[:] = 0.0
        if own[one] >= 0:
            work.distances[own[one]] = np.inf
        n_near, step, spent, n_known = 0, 0, 0.0, 0
        now = start
        while True:
            if n_known > 0:
                now = estimates
            routes.costs[one, step], routes.accuracy[one, step] = spent, now.accuracy[0]
            for score in range(n_scores):
                total = around.offset[score]
                for feature in range(is_known.size):
                    if is_known[feature]:
                        total += parts[one, feature, score]
                    else:
                        total += now.rest[feature, score]
                routes.scores[one, step, score] = total
            for label in range(now.votes.size):
                routes.votes[one, step, label] = now.votes[label]
            feature, value = best_feature(around, now, work.paid, is_acquired, spent, stop.max_cost)
            routes.gains[one, step] = value - now.accuracy[0]
            routes.following[one] = feature
            if step < is_known.size and routes.order[one, step] >= 0:
                feature = routes.order[one, step]
            elif (
                feature < 0
                or step >= stop.most_features
                or now.accuracy[0] > stop.threshold
                or routes.gains[one, step] <= stop.least_gain
            ):
                break
            routes.order[one, step] = feature
            routes.promised[one, step] = now.with_each[feature]
            step += 1
            for place in range(around.item_starts[feature], around.item_starts[feature + 1]):
                item = around.items[place]
                if not work.paid[item]:
                    work.paid[item] = True
            spent = 0.0
            for item in range(around.costs.size):
                if work.paid[item]:
                    spent += around.costs[item]
            is_acquired[feature] = True
            first, end = around.starts[feature], around.starts[feature + 1]
            if np.isnan(rows[one, first]):
                continue
            is_known[feature] = True
            n_known += 1
            for column in range(first, end):
                value = rows[one, column]
                for row in range(work.distances.size):
                    difference = around.columns[column, row] - value
                    work.distances[row] += difference * difference
            n_near = find_near(around, work, n_near)
            estimate(around, work.near, n_near, is_known, is_acquired, work.base, estimates)
        routes.n_steps[one] = step
