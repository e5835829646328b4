"""The stairs: what it costs at least to capture points on two axes, and then to end a list.

`bayescascade.rules.exact.bounds` has the formulas and the proofs. Of labels only; the axes are the
sums after the classes' weights.
"""

from typing import NamedTuple

import numpy as np

from bayescascade._jit import inner_kernel, kernel
from bayescascade.rules.kernels.branching import NOTHING, SOME
from bayescascade.rules.kernels.layout import Array
from bayescascade.rules.kernels.parts import PartModel, overhead

__all__ = ["Stairs", "bound_children", "climb"]


class Stairs(NamedTuple):
    """Scratch: a grid over the weight captured so far on the two axes.

    places (2, B + 1) float64: what has been captured at each step of either axis; prices (S, 2,
    B + 1) float64: least cost of a unit on either axis where so much on the other has been
    captured, for each slope; ends (B + 1, B + 1) float64: cost of the `else` if the list ends
    there; to_go (S, B + 1, B + 1) float64: least cost from there to an end.
    """

    places: Array
    prices: Array
    ends: Array
    to_go: Array


@kernel
def climb(
    model: PartModel,
    sizes: Array,
    fates: Array,
    captured: Array,
    whole: Array,
    costs: Array,
    error_prices: Array,
    stairs: Stairs,
) -> None:
    """Write what it costs at least to go from each step of the stairs to the end of the list.

    captured (n, F) and whole (F,) float64: sums of what candidates capture and of all that is left;
    costs (S, H + 1) float64 >= 0: of a rule of each size, for each slope; error_prices (2,)
    float64: of a unit on either axis in a part with more on the other.
    """
    n_steps = stairs.places.shape[1]
    pure = model.n_classes
    _place_steps(fates, captured, whole, pure, stairs.places)
    for i in range(n_steps):
        for j in range(n_steps):
            stairs.ends[i, j] = overhead(
                model,
                max(0.0, whole[pure] - stairs.places[0, i]),
                max(0.0, whole[pure + 1] - stairs.places[1, j]),
            )
    for slope in range(costs.shape[0]):
        prices = stairs.prices[slope]
        for axis in range(2):
            prices[axis, :] = error_prices[axis]
        for rule in range(sizes.shape[0]):
            if fates[rule] == NOTHING:
                continue
            cost = costs[slope, sizes[rule]]
            for axis in range(2):
                weight = captured[rule, pure + axis]
                if weight > 0.0:
                    other = captured[rule, pure + 1 - axis]
                    step = _step(other, whole[pure + 1 - axis], n_steps)
                    price = (cost + _one_axis(model, axis, weight)) / weight
                    prices[axis, step] = min(prices[axis, step], price)
        for axis in range(2):
            for step in range(1, n_steps):
                prices[axis, step] = min(prices[axis, step], prices[axis, step - 1])
        _descend_stairs(stairs, slope)


@inner_kernel
def _place_steps(fates, captured, whole, pure, places):
    """Place each step of the stairs at the least weight that a candidate captures in its range."""
    n_steps = places.shape[1]
    for axis in range(2):
        most = whole[pure + axis]
        for step in range(n_steps):
            places[axis, step] = most * min(n_steps - 1, step + 1) / (n_steps - 1)
        for rule in range(fates.shape[0]):
            if fates[rule] != NOTHING:
                weight = captured[rule, pure + axis]
                step = _step(weight, most, n_steps)
                places[axis, step] = min(places[axis, step], weight)
        places[axis, 0] = 0.0
        places[axis, n_steps - 1] = most


@inner_kernel
def _one_axis(model, axis, weight):
    """Overhead of a part with points on one axis."""
    if axis == 0:
        return overhead(model, weight, 0.0)
    return overhead(model, 0.0, weight)


@inner_kernel
def _step(weight, most, n_steps):
    """Return the last step of an even grid at which there is no more than a weight."""
    if most <= 0.0:
        return 0
    return min(n_steps - 1, np.int64(weight / most * (n_steps - 1)))


@inner_kernel
def _descend_stairs(stairs, slope):
    """Write the least cost of each step, from the last to the first."""
    n_steps = stairs.places.shape[1]
    to_go, prices = stairs.to_go[slope], stairs.prices[slope]
    for i in range(n_steps - 1, -1, -1):
        for j in range(n_steps - 1, -1, -1):
            cost = stairs.ends[i, j]
            if i + 1 < n_steps:
                rise = stairs.places[0, i + 1] - stairs.places[0, i]
                cost = min(cost, to_go[i + 1, j] + rise * prices[0, j])
            if j + 1 < n_steps:
                rise = stairs.places[1, j + 1] - stairs.places[1, j]
                cost = min(cost, to_go[i, j + 1] + rise * prices[1, i])
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
    for rule in range(values.shape[0]):
        if fates[rule] != SOME:
            continue
        first, others = captured[rule, pure], captured[rule, pure + 1]
        i = _step_at(stairs.places[0], first, whole[pure])
        j = _step_at(stairs.places[1], others, whole[pure + 1])
        end = overhead(model, left[rule, pure], left[rule, pure + 1])
        for slope in range(offsets.shape[0]):
            cost = max(_to_go(stairs, slope, first, others, i, j, end), least_costs[slope])
            bound = values[rule] + offsets[slope] - cost + left[rule, pure + 2]
            bounds[rule] = min(bounds[rule], bound)


@inner_kernel
def _step_at(places, weight, most):
    """Return the last step whose place is at most a weight."""
    step = _step(weight, most, places.shape[0])
    while places[step] > weight:
        step -= 1
    while step + 1 < places.shape[0] and places[step + 1] <= weight:
        step += 1
    return step


@inner_kernel
def _to_go(stairs, slope, first, others, i, j, end):
    """Least cost from between the steps: end there, or go on to the next step of either axis."""
    n_steps = stairs.places.shape[1]
    to_go, prices = stairs.to_go[slope], stairs.prices[slope]
    cost = end
    if i + 1 < n_steps:
        after = j if stairs.places[1, j] == others else min(j + 1, n_steps - 1)
        rise = stairs.places[0, i + 1] - first
        cost = min(cost, rise * prices[0, j] + to_go[i + 1, after])
    if j + 1 < n_steps:
        after = i if stairs.places[0, i] == first else min(i + 1, n_steps - 1)
        rise = stairs.places[1, j + 1] - others
        cost = min(cost, rise * prices[1, i] + to_go[after, j + 1])
    return cost
