"""The stairs: what it costs at least to capture points on two axes, and then to end a list.

`methods.rules.exact.bounds` has the formulas and the proofs. Of labels only; the axes are the
sums after the classes' weights.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.rules.kernels.branching import NOTHING, SOME
from bayescascade.methods.rules.kernels.layout import Array
from bayescascade.methods.rules.kernels.parts import PartModel, overhead

__all__ = ["Stairs", "bound_children", "climb"]

_ROUNDING = 1e-9  # of a step


class Stairs(NamedTuple):
    """Scratch: a grid of B even steps over the weight captured so far on the two axes.

    overheads (B + 1, B + 1) float64: least overhead of a part that goes on by so many steps;
    ends (B + 1, B + 1) float64: overhead of the `else` if the list ends at a step; cheapest (2, B +
    1, B + 1) float64: least cost of a rule of which no more than so many steps lie on the other
    axis, and which goes on by so many on this one; to_go (S, B + 1, B + 1) float64: least cost from
    a step to an end, for each slope.
    """

    overheads: Array
    ends: Array
    cheapest: Array
    to_go: Array


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
    """Write what it costs at least to go from each step of the stairs to the end of the list.

    captured (n, F) and whole (F,) float64: sums of what candidates capture and of all that is left;
    least (2,) float64: least weight of a point on either axis; costs (S, H + 1) float64 >= 0: of a
    rule of each size, for each slope.
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
    """Return what a sum of weights is at least that is more than `weight` but for rounding.

    Whole weights have a whole sum. `overhead` takes no others of them: it rounds each of its sums,
    and the overhead of a sum rounded up with parts rounded down may be too high.
    """
    weight *= 1.0 - 1e-8
    return np.ceil(weight - 0.01) if model.rises.shape[1] > 0 else weight


@inner_kernel
def _find_cheapest(model, sizes, fates, captured, whole, costs, cheapest):
    """Write the least cost of a rule by what it may capture."""
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
    """Return the first step at which there is at least a weight."""
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
    """Lower the bounds of children to what the stairs from where they are leave.

    offsets (S,) float64: what two or more rules add to the prior at most, but for their costs;
    least_costs (S,) float64: of one rule; bounds (n,) float64 are lowered.
    """
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
