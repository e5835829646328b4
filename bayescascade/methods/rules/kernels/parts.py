"""Values of the parts of a list by the sums of their points, and bounds by groups in their order.

`methods.rules.exact.bounds` has the formulas and the proofs; the sums are the columns of
`Points.features`.
"""

from math import lgamma, log
from typing import NamedTuple

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.rules.kernels.branching import ALL, NOTHING, SOME
from bayescascade.methods.rules.kernels.layout import DENSITY, Array

__all__ = ["PartModel", "overhead", "part_value", "partition", "value_children"]

ONE, REST, BOTH = range(3)  # rows of `rises`: of one class, of all others, and of all


class PartModel(NamedTuple):
    """The likelihood of a part as kernels read it.

    kind: DENSITY or LABELS; n_classes: C, 1 for densities; alphas (3,) float64: concentration of
    one class, of the C - 1 others together, and of all; rises (3, T) float64: for each of them,
    lnG(n + a) - lnG(a) of whole n, T = 0 where weights are not whole.
    """

    kind: int
    n_classes: int
    alphas: Array
    rises: Array


@inner_kernel
def _log_rise(model, which, weight):
    """lnG(weight + a) - lnG(a); sums of whole weights are whole but for rounding."""
    if weight + 0.5 < model.rises.shape[1]:
        return model.rises[which, np.int64(weight + 0.5)]
    return lgamma(weight + model.alphas[which]) - lgamma(model.alphas[which])


@inner_kernel
def _log_value(model, sums):
    """Contribution of a part to the log likelihood, nats."""
    if model.kind == DENSITY:
        return _log_rise(model, ONE, sums[0]) - sums[0] * log(sums[1])
    value, total = 0.0, 0.0
    for label in range(model.n_classes):
        value += _log_rise(model, ONE, sums[label])
        total += sums[label]
    return value - _log_rise(model, BOTH, total)


@inner_kernel
def overhead(model, first, others):
    """Minus the log marginal likelihood of labels, so many of the first class or of any other."""
    value = _log_rise(model, ONE, first) + _log_rise(model, REST, others)
    return _log_rise(model, BOTH, first + others) - value


@kernel
def part_value(model: PartModel, sums: Array) -> float:
    """Return the contribution of a part to the log likelihood, nats; sums (F,) float64."""
    value: float = _log_value(model, sums)
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
    """Write the value of each candidate as the next rule, of the list it ends, and a bound.

    sizes, fates (n,) int8; captured, left (n, F) float64: sums; next_rule (H + 1,) float64: log
    prior of a rule of each size; further (H + 1,) float64: the most that rules after it add to the
    saturated value of what is left; closing: what a list of one rule more has for its length;
    values, closed, bounds (n,) float64: -inf for candidates that capture nothing, and those that
    leave nothing to a density's `else`.
    """
    for rule in range(sizes.shape[0]):
        values[rule] = -np.inf
        closed[rule] = -np.inf
        bounds[rule] = -np.inf
        if fates[rule] == NOTHING or (fates[rule] == ALL and model.kind == DENSITY):
            continue
        size = sizes[rule]
        values[rule] = next_rule[size] + _log_value(model, captured[rule])
        closed[rule] = values[rule] + closing
        if fates[rule] == SOME:
            closed[rule] += _log_value(model, left[rule])
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
    """Write the best value of groups parted in their order into at most 1, 2, .. parts.

    features (G, F) float64; weights (G,) float64: of the groups, not all zero; members (L,) int64,
    intervals (L, L), firsts (L,) and sums (F,) float64: scratch for up to L groups that are left;
    best (K,) float64: of densities, what is homogeneous in weight and volume.

    Returns whether there were few enough groups; nothing is written if not.
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
                intervals[start, end] = sums[0] * log(sums[0] / sums[1])
            else:
                intervals[start, end] = 0.0
    for end in range(n):
        firsts[end] = intervals[0, end]
    best[0] = firsts[n - 1]
    for parts in range(1, best.shape[0]):
        # from the last, as those before are still of one part fewer; no more parts than groups
        for end in range(n - 1, 0 if parts < n else n, -1):
            for start in range(1, end + 1):
                firsts[end] = max(firsts[end], firsts[start - 1] + intervals[start, end])
        best[parts] = firsts[n - 1]
    return True
