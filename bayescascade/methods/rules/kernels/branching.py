"""What each candidate would capture of the points that a prefix of a list leaves.

Points are those that no list can part: see `methods.rules.exact.points`. Each is in a group,
and whatever a value or a bound looks at is linear in the weights of the groups.
"""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.rules.kernels.bits import capture, count
from bayescascade.methods.rules.kernels.layout import Array, CandidateArrays, RowArrays

__all__ = ["ALL", "NOTHING", "SOME", "descend", "divide"]

NOTHING, SOME, ALL = range(3)
"""How much of what is left a candidate captures."""

_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xC2B2AE3D27D4EB4F)
_THIRD = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)


@kernel
def descend(
    candidates: CandidateArrays,
    points: RowArrays,
    rules: Array,
    remaining: Array,
    spare: Array,
    weights: Array,
    key: Array,
) -> None:
    """Write the points that no rule captures, and the weight of each of their groups.

    rules (m,) int64: candidates; remaining (W,) uint64 and weights (G,) float64 are written; spare
    (W,) uint64: scratch.
    """
    for w in range(remaining.shape[0]):
        remaining[w] = points.everyone[w]
    for position in range(rules.shape[0]):
        capture(candidates, points, rules[position], remaining, spare, remaining)
    count(points, remaining, weights)
    _hash(remaining, key)


@kernel
def divide(
    candidates: CandidateArrays,
    points: RowArrays,
    features: Array,
    remaining: Array,
    spare: Array,
    weights: Array,
    captured: Array,
    left: Array,
    fates: Array,
) -> None:
    """Write what each candidate captures of the points that remain, and what it leaves.

    features (G, F) float64: what a unit of weight of each group adds to the sums; remaining (W,)
    uint64; spare (2, W) uint64 and weights (G,) float64: scratch; captured, left (n, F) float64:
    sums, zero where nothing is captured or left; fates (n,) int8.
    """
    for rule in range(captured.shape[0]):
        capture(candidates, points, rule, remaining, spare[0], spare[1])
        captured[rule] = 0.0
        left[rule] = 0.0
        if not _is_any(spare[0]):
            fates[rule] = NOTHING
            continue
        _add_up(points, features, spare[0], weights, captured[rule])
        fates[rule] = ALL
        if _is_any(spare[1]):
            fates[rule] = SOME
            _add_up(points, features, spare[1], weights, left[rule])


@inner_kernel
def _is_any(words):
    """Whether a set has a member."""
    w = 0
    while w < words.shape[0] and words[w] == 0:
        w += 1
    return w < words.shape[0]


@inner_kernel
def _add_up(points, features, members, weights, sums):
    """Add the members' share of each sum."""
    count(points, members, weights)
    for group in range(features.shape[0]):
        if weights[group] > 0.0:
            for k in range(features.shape[1]):
                sums[k] += weights[group] * features[group, k]


@inner_kernel
def _hash(words, key):
    """Write 128 bits that tell sets apart: two chains of multiplications and shifts."""
    first, second = _FIRST, _SECOND
    for w in range(words.shape[0]):
        first = (first ^ words[w]) * _THIRD
        first ^= first >> _HALF
        second = (second + words[w]) * _FIRST
        second ^= second >> _HALF
    key[0] = first
    key[1] = second
