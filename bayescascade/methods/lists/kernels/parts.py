"""Values of the parts of a list from sums over their points, and two bounds on longer lists.

One bound is by groups in their order. The other, for labels only, is by stairs: the least cost to
capture points on two axes, and then to end a list; the axes are the sums after the classes'
weights. `methods.lists.exact.bounds` has the formulas and the proofs; the sums are the columns of
`Points.features`.
"""

from math import ceil, floor, isfinite, lgamma, log, log1p
from typing import NamedTuple

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.lists.kernels.bits import ALL, NOTHING, SOME
from bayescascade.methods.lists.kernels.layout import DENSITY, Array

ONE, REST, BOTH = range(3)  # rows of `excesses`: for one class, all others, and all
_ROUNDING = 1e-9  # relative to a step

_FEW = 16.0  # as in `excess`, which has the proofs
_HALF_LOG_2PI = 0.9189385332046728


class PartModel(NamedTuple):
    """The likelihood of a part as arrays."""

    kind: int  # DENSITY or LABELS
    n_classes: int  # C, 1 for densities
    total: float  # weight of all rows
    is_whole: bool  # whether weights are whole, and errors of their sums below a half
    alphas: Array  # (3,) float64: concentration of one class, of the C - 1 others, and of all
    excesses: Array  # (3, T) float64: D(n, a) of whole n for each; T = 0 if not whole


@inner_kernel
def _settled(model, weight):
    """Return a sum of weights, rounded to a whole number if all weights are whole."""
    return floor(weight + 0.5) if model.is_whole else weight


@inner_kernel
def _series(x):
    """Return r(x) = lnG(x) - ((x - 1/2) ln x - x + ln(2 pi) / 2) for x >= 16."""
    square = 1.0 / (x * x)
    tail = 1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0)
    return (1.0 / 12.0 - square * (1.0 / 360.0 - square * tail)) / x


@inner_kernel
def _log_one_plus(x, y):
    """Return ln(1 + x / y), where the quotient may be too large for a float."""
    quotient = x / y
    return log1p(quotient) if isfinite(quotient) else log(x + y) - log(y)


@inner_kernel
def _log_excess(model, which, weight):
    """Return D(weight, a); see `excess`."""
    if weight <= 0.0:
        return 0.0
    if model.is_whole and weight < model.excesses.shape[1]:
        return model.excesses[which, np.int64(weight)]
    alpha = model.alphas[which]
    end = weight + alpha
    if end < _FEW:
        return lgamma(end) - lgamma(alpha) - weight * log(weight) + weight
    value = weight * _log_one_plus(alpha, weight) + _series(end)
    if alpha >= _FEW:
        return value + (alpha - 0.5) * log1p(weight / alpha) - _series(alpha)
    return value + ((alpha - 0.5) * log(end) - alpha + _HALF_LOG_2PI - lgamma(alpha))


@inner_kernel
def _joined(one, other):
    small, large = min(one, other), max(one, other)
    share = small / large if small > 0.0 else 0.0
    return (small + large) * log1p(share) - small * log(share) if share > 0.0 else 0.0


@inner_kernel
def log_value(model, sums):
    """Contribution of a part to the log likelihood, nats."""
    if model.kind == DENSITY:
        weight = _settled(model, sums[0])
        if weight <= 0.0:
            return 0.0
        return _log_excess(model, ONE, weight) + weight * (log(weight / model.total) - log(sums[1]))
    value, total, spread = 0.0, 0.0, 0.0
    for label in range(model.n_classes):
        weight = _settled(model, sums[label])
        value += _log_excess(model, ONE, weight)
        spread += _joined(total, weight)
        total += weight
    return value - _log_excess(model, BOTH, total) - spread


@inner_kernel
def overhead(model, first, others):
    """Minus the log marginal likelihood of labels, by weights of the first class and others."""
    first, others = _settled(model, first), _settled(model, others)
    value = _log_excess(model, ONE, first) + _log_excess(model, REST, others)
    return _log_excess(model, BOTH, first + others) - value + _joined(first, others)


@kernel
def part_value(model: PartModel, sums: Array) -> float:
    """Return the contribution of a part to the log likelihood, nats; sums (F,) float64."""
    value: float = log_value(model, sums)
    return value


@kernel
def value_children(
    model: PartModel,
    sizes: Array,
    fates: Array,
    captured: Array,
    left: Array,
    next_rule: Array,
    further: Array,
    closing: float,
    values: Array,
    closed: Array,
    bounds: Array,
) -> None:
    """Write each candidate's value as the next rule, that of the list it ends, and a bound.

    sizes, fates (n,) int8; captured, left (n, F) float64: sums; next_rule (H + 1,) float64: log
    prior of a rule of each size; further (H + 1,) float64: maximum contribution of later rules
    beyond the saturated value of the remaining points; closing: the length term of a list with one
    more rule; values, closed, bounds (n,) float64: -inf for candidates that capture nothing, and
    for those that leave nothing to a density's `else`.
    """
    for rule in range(sizes.shape[0]):
        values[rule], closed[rule], bounds[rule] = -np.inf, -np.inf, -np.inf
        if fates[rule] == NOTHING or (fates[rule] == ALL and model.kind == DENSITY):
            continue
        size = sizes[rule]
        values[rule] = next_rule[size] + log_value(model, captured[rule])
        closed[rule] = values[rule] + closing
        if fates[rule] == SOME:
            closed[rule] += log_value(model, left[rule])
        bounds[rule] = values[rule] + further[size] + left[rule, left.shape[1] - 1]


@kernel
def partition(
    model: PartModel,
    features: Array,
    weights: Array,
    members: Array,
    intervals: Array,
    firsts: Array,
    sums: Array,
    best: Array,
) -> bool:
    """Write the best value of a division of the ordered groups into at most 1, 2, .. parts.

    Returns whether there were few enough groups; otherwise nothing is written. features (G, F)
    float64; weights (G,) float64: of the groups, not all zero; members (L,) int64, intervals (L,
    L), firsts (L,) and sums (F,) float64: scratch for up to L remaining groups; best (K,) float64:
    for densities, ``sum s ln(s / n v)``.
    """
    n = 0
    for group in range(weights.shape[0]):
        if weights[group] > 0.0:
            if n == members.shape[0]:
                return False
            members[n] = group
            n += 1
    for start in range(n):
        sums[:] = 0.0
        for end in range(start, n):
            group = members[end]
            for k in range(sums.shape[0]):
                sums[k] += weights[group] * features[group, k]
            if model.kind != DENSITY:
                others = 0.0
                for label in range(1, model.n_classes):
                    others += sums[label]
                intervals[start, end] = -overhead(model, sums[0], others)
            elif sums[0] > 0.0:
                intervals[start, end] = sums[0] * (log(sums[0] / model.total) - log(sums[1]))
            else:
                intervals[start, end] = 0.0
    for end in range(n):
        firsts[end] = intervals[0, end]
    best[0] = firsts[n - 1]
    for parts in range(1, best.shape[0]):
        # from the last, because earlier ones still have one part fewer; no more parts than groups
        for end in range(n - 1, 0 if parts < n else n, -1):
            for start in range(1, end + 1):
                firsts[end] = max(firsts[end], firsts[start - 1] + intervals[start, end])
        best[parts] = firsts[n - 1]
    return True


class Stairs(NamedTuple):
    """Scratch, float64: a grid of B even steps over the captured weight on the two axes."""

    overheads: Array  # (B + 1, B + 1): least overhead of a part that moves by i and j steps
    ends: Array  # (B + 1, B + 1): overhead of the `else` if the list ends at a step
    # (2, B + 1, B + 1), [axis, j, i]: least cost of a rule that moves by at least i steps on this
    # axis and by at most j on the other
    cheapest: Array
    to_go: Array  # (S, B + 1, B + 1): least cost from a step to an end, for each slope


@kernel
def climb(
    model: PartModel,
    sizes: Array,
    fates: Array,
    captured: Array,
    whole: Array,
    least: Array,
    costs: Array,
    stairs: Stairs,
) -> None:
    """Write the least cost from each step of the stairs to the end of the list.

    captured (n, F) and whole (F,) float64: sums over the captured and over all remaining points;
    least (2,) float64: least weight of a point on either axis; costs (S, H + 1) float64 >= 0: cost
    of a rule of each size, for each slope.
    """
    n_steps = stairs.ends.shape[0] - 1
    first, others = whole[model.n_classes], whole[model.n_classes + 1]
    for i in range(n_steps + 1):
        across = max(least[0], _at_least(model, first * (i - 1) / n_steps)) if i > 0 else 0.0
        for j in range(n_steps + 1):
            up = max(least[1], _at_least(model, others * (j - 1) / n_steps)) if j > 0 else 0.0
            stairs.overheads[i, j] = overhead(model, across, up)
            stairs.ends[i, j] = overhead(
                model,
                _at_least(model, first * (n_steps - i) / n_steps),
                _at_least(model, others * (n_steps - j) / n_steps),
            )
    for slope in range(costs.shape[0]):
        _find_cheapest(model, sizes, fates, captured, whole, costs[slope], stairs.cheapest)
        _descend(stairs, stairs.to_go[slope])


@inner_kernel
def _at_least(model, weight):
    """Return a lower bound on a sum of weights above `weight`, up to rounding.

    Whole weights have a whole sum, which `overhead` requires: it rounds each of its sums, and a sum
    rounded up with parts rounded down may have too high an overhead.
    """
    weight *= 1.0 - 1e-8
    return np.ceil(weight - 0.01) if model.is_whole else weight


@inner_kernel
def _find_cheapest(model, sizes, fates, captured, whole, costs, cheapest):
    """Write the least cost of a rule by the steps that it may capture."""
    n_steps = cheapest.shape[1] - 1
    first, others = whole[model.n_classes], whole[model.n_classes + 1]
    cheapest[:] = np.inf
    for rule in range(sizes.shape[0]):
        if fates[rule] != NOTHING:
            i = _step_after(captured[rule, model.n_classes], first, n_steps)
            j = _step_after(captured[rule, model.n_classes + 1], others, n_steps)
            cost = costs[sizes[rule]]
            cheapest[0, j, i] = min(cheapest[0, j, i], cost)
            cheapest[1, i, j] = min(cheapest[1, i, j], cost)
    for axis in range(2):
        for other in range(n_steps + 1):
            for by in range(n_steps, -1, -1):
                if by < n_steps:
                    cheapest[axis, other, by] = min(
                        cheapest[axis, other, by], cheapest[axis, other, by + 1]
                    )
            if other > 0:
                for by in range(n_steps + 1):
                    cheapest[axis, other, by] = min(
                        cheapest[axis, other, by], cheapest[axis, other - 1, by]
                    )


@inner_kernel
def _step_after(weight, most, n_steps):
    """Return the first step with at least a given weight."""
    if weight <= 0.0:
        return 0
    return min(n_steps, np.int64(ceil(weight / most * n_steps - _ROUNDING)))


@inner_kernel
def _descend(stairs, to_go):
    """Write the least cost of each step, from the last to the first."""
    n_steps = to_go.shape[0] - 1
    overheads, cheapest = stairs.overheads, stairs.cheapest
    for i in range(n_steps, -1, -1):
        for j in range(n_steps, -1, -1):
            cost = stairs.ends[i, j]
            for up in range(n_steps - j + 1):
                if overheads[0, up] >= cost:
                    break
                for across in range(n_steps - i + 1):
                    if overheads[across, up] >= cost:
                        break
                    if across == 0 and up == 0:
                        continue
                    rule = 0.0
                    if across > 0:
                        rule = cheapest[0, j + up, across]
                    if up > 0:
                        rule = max(rule, cheapest[1, i + across, up])
                    cost = min(cost, rule + overheads[across, up] + to_go[i + across, j + up])
            to_go[i, j] = cost


@kernel
def bound_children(
    model: PartModel,
    fates: Array,
    captured: Array,
    left: Array,
    whole: Array,
    values: Array,
    offsets: Array,
    least_costs: Array,
    stairs: Stairs,
    bounds: Array,
) -> None:
    """Lower children's bounds by the stairs, offsets (S,) of the prior and least costs (S,)."""
    pure = model.n_classes
    n_steps = stairs.ends.shape[0] - 1
    for rule in range(values.shape[0]):
        if fates[rule] != SOME:
            continue
        i = _step_after(captured[rule, pure], whole[pure], n_steps)
        j = _step_after(captured[rule, pure + 1], whole[pure + 1], n_steps)
        for slope in range(offsets.shape[0]):
            cost = max(stairs.to_go[slope, i, j], least_costs[slope])
            bound = values[rule] + offsets[slope] - cost + left[rule, pure + 2]
            bounds[rule] = min(bounds[rule], bound)
