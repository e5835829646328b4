"""The states of rule lists after one more rule; `methods.lists.exact.sums` has the formulas.

A state is a key: W words of bits of the points that no rule has captured, and the numbers of rules
of each size, written as one number.
"""

from math import log
from typing import NamedTuple

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.lists.kernels.bits import population
from bayescascade.methods.lists.kernels.layout import DENSITY, Array
from bayescascade.methods.lists.kernels.parts import PartModel, log_value

_ONE = np.uint64(1)

IDLE = -1  # the rule of an edge that captures nothing is IDLE - size


class Masks(NamedTuple):
    """N groups of candidates of one size that capture the same of up to 64 W points."""

    bits: Array  # (N, W) uint64
    sizes: Array  # (N,) int64
    times: Array  # (N,) float64: number of candidates
    features: (
        Array  # (64 W, F) float64: a point's share of the sums of a part, saturated value last
    )
    units: Array  # (H + 1,) uint64: change of the last word of a key by a rule of each size


class Edges(NamedTuple):
    """Room for the edges from the states of one layer to those of the next."""

    sources: Array  # (E,) int32, ascending
    targets: Array  # (E,) int32
    rules: Array  # (E,) int32: group of candidates, or IDLE - size
    values: Array  # (E,) float64: log prior and part of one rule
    times: Array  # (E,) float64: number of rules


class Room(NamedTuple):
    """Room for the states of the next layer, in the order in which they are found."""

    keys: Array  # (S, W + 1) uint64
    closed: Array  # (S,) float64: value of the part of all points that are left
    saturated: Array  # (S,) float64: their saturated value
    places: Array  # (2^k,) int32: states by their hash, -1 if there is none


@kernel
def expand(
    model: PartModel,
    masks: Masks,
    keys: Array,
    log_masses: Array,
    saturated: Array,
    next_rule: Array,
    used: Array,
    tail: float,
    least: float,
    edges: Edges,
    room: Room,
    sums: Array,
    lost: Array,
) -> tuple[int, int]:
    """Follow the states of a layer by every rule; return the numbers of new states and of edges.

    next_rule, used (S, H + 1): log prior of a single next rule of each size, and rules used. An
    edge is left out if ``log_mass + value + tail + saturated`` is below `least`, and ``lost[0]``
    then grows by the exponential of that sum minus `least`. (-1, 0) if the room is too small.
    """
    n_words, n_sizes = keys.shape[1] - 1, next_rule.shape[1]
    n_states, n_edges = 0, 0
    child = room.keys[-1]  # never a state's own
    idle, last = sums[1], np.uint64(room.places.shape[0] - 1)
    for state in range(keys.shape[0]):
        idle[:] = 0.0
        for size in range(n_sizes):
            idle[size] = -used[state, size]
        for mask in range(masks.bits.shape[0] + n_sizes):
            rule = mask - masks.bits.shape[0]  # a size, if >= 0
            is_idle = rule >= 0
            size = rule if is_idle else masks.sizes[mask]
            if next_rule[state, size] == -np.inf:
                continue
            value, left = next_rule[state, size], saturated[state]
            if is_idle:
                times = idle[size]
                if times < 0.5 or model.kind == DENSITY:
                    continue
                _copy(keys[state], child)
                rule = IDLE - size
            else:
                times, rule = masks.times[mask], mask
                is_any = False
                for word in range(n_words):
                    captured = keys[state, word] & masks.bits[mask, word]
                    is_any |= captured != 0
                    child[word] = captured
                if not is_any:
                    idle[size] += times
                    continue
                _add_up(masks.features, child, n_words, sums[0])
                value += log_value(model, sums[0])
                left -= sums[0, -1]
                is_any = False
                for word in range(n_words):
                    child[word] ^= keys[state, word]
                    is_any |= child[word] != 0
                if model.kind == DENSITY and not is_any:
                    continue  # the else would have no cell
                child[n_words] = keys[state, n_words]
            child[n_words] += masks.units[size]
            bound = log_masses[state] + value + log(times) + tail + left - least
            if bound < 0.0:
                lost[0] += np.exp(bound)
                continue
            place = _hash(child) & last
            while room.places[place] >= 0 and _differ(room.keys[room.places[place]], child):
                place = (place + _ONE) & last
            target = room.places[place]
            if target < 0:
                target = n_states
                if n_states + 1 >= room.keys.shape[0]:
                    return -1, 0
                room.places[place] = target
                _copy(child, room.keys[target])
                _add_up(masks.features, child, n_words, sums[0])
                room.closed[target] = log_value(model, sums[0])
                room.saturated[target] = sums[0, -1]
                n_states += 1
            if n_edges == edges.sources.shape[0]:
                return -1, 0
            edges.sources[n_edges], edges.rules[n_edges] = state, rule
            edges.targets[n_edges], edges.values[n_edges] = target, value
            edges.times[n_edges] = times
            n_edges += 1
    return n_states, n_edges


@inner_kernel
def _add_up(features, words, n_words, sums):
    """Set `sums` to the sums of the features of the points in the words."""
    sums[: features.shape[1]] = 0.0
    for word in range(n_words):
        rest = words[word]
        while rest:
            others = rest & (rest - _ONE)
            point = 64 * word + population((rest ^ others) - _ONE)
            for k in range(features.shape[1]):
                sums[k] += features[point, k]
            rest = others


@inner_kernel
def _copy(words, target):
    for word in range(words.shape[0]):
        target[word] = words[word]


@inner_kernel
def _differ(one, other):
    word = 0
    while word < one.shape[0] and one[word] == other[word]:
        word += 1
    return word < one.shape[0]


@inner_kernel
def _hash(words):
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for word in range(words.shape[0]):
        mixed = (mixed ^ words[word]) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
    return mixed
