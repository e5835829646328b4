"""The leaf model without data: the sum over all trees, of any number of leaves.

There are ``N_K`` trees of K leaves, and ``Z = exp(-rate) sum_K rate**K / K! N_K``. Let ``G(t) =
sum_K N_K t**K``. As ``1 / K!`` is the mean of ``exp(z) z**-K`` over a circle ``abs(z) = R`` around
0, Z is ``exp(-rate)`` times that of ``exp(z) G(rate / z)``, for any R. The trapezoid rule converges
geometrically, and nothing cancels at the R of the least ``R + ln G(rate / R)``. A somewhat larger R
costs some digits, but avoids the region where G grows without bound.

G is the recursion over the boxes' shapes, which are few, with a complex number for every leaf.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from bayescascade.base.arrays import Floats, Integers
from bayescascade.methods.density.trees.exact.lattice import Lattice
from bayescascade.methods.density.trees.exact.shared import Boxes

Complexes = NDArray[np.complex128]

_LOST = 8.0  # nats that may cancel
_PRECISE = 1e-10  # relative change of the sum when points are doubled
_NEGLIGIBLE = 40.0  # nats below the sum
_MOST_POINTS = 1 << 14
_STEP = 0.01  # for the log of R


def log_prior_sum(shapes: Boxes, rate: float, most: int, of_leaf: float) -> tuple[float, float]:
    """Return the log of the sum over all trees of ``exp(-rate) rate**K / K!``, and its error, nats.

    NaN and infinity if the rule does not converge with 16,384 points. The error is a proved bound
    on rounding plus an estimate, twice the change by the last points, because the rule converges
    geometrically.

    The boxes are of a plan with one entry a box, for the leaf model; rate > 0; no tree has more
    than `most` leaves; sums are off by `of_leaf` nats for each leaf, see `rounding`.
    """

    def exponent(log_radius: float) -> float:
        shapes.run(tilt=float(np.log(rate)) - log_radius)
        return float(np.exp(log_radius) + shapes.log_values()[0])

    # at the minimum, R is the mean number of leaves if each has the factor rate / R
    bounds = -1.0, np.log(most) + 1.0
    saddle = optimize.minimize_scalar(exponent, bounds=bounds, method="bounded").x
    lowest = exponent(saddle) + _LOST
    far = np.log(4.0 * np.exp(saddle) + 100.0)
    log_radius = optimize.brentq(lambda x: exponent(x) - lowest, saddle, far, xtol=1e-3)
    radius = float(np.exp(log_radius))
    scale = exponent(log_radius)  # log of the value on the real axis, to which terms are relative
    total, n_points, fresh = 0.0, 32 + 2 * int(8 * np.sqrt(radius)), slice(None)
    before = np.nan
    while n_points <= _MOST_POINTS:
        angles = 2.0 * np.pi * np.arange(n_points // 2 + 1)[fresh] / n_points
        weights = np.full(n_points // 2 + 1, 2.0)  # for both conjugates
        weights[[0, -1]] = 1.0
        weights = weights[fresh]
        near = radius * (1.0 - np.cos(angles)) < _NEGLIGIBLE + _LOST
        turns = np.exp(1j * angles[near])
        relative = np.exp(radius * (turns - 1.0)) * _relative_sums(
            shapes.lattice, float(np.log(rate)) - log_radius, 1.0 / turns
        )
        total += float((weights[near] * relative.real).sum())
        mean = total / n_points
        if abs(mean - before) <= _PRECISE * abs(mean):
            # the slope is the mean number of leaves; all terms have the error of that on the real
            # axis
            slope = (exponent(log_radius - _STEP) - scale - radius * np.expm1(-_STEP)) / _STEP
            of_terms = of_leaf * (min(most, max(slope, 1.0)) + n_points)
            error = (2 * abs(mean - before) + of_terms) / mean
            return scale + float(np.log(mean)) - rate, float(error)
        before, n_points, fresh = mean, 2 * n_points, slice(1, None, 2)
    return np.nan, np.inf


def _relative_sums(lattice: Lattice, log_leaf: float, turns: Complexes) -> Complexes:
    """Return sums over trees with leaf factors ``exp(log_leaf) * turns``, (m,), over that of 1."""
    turns = np.concatenate([[1.0], turns])
    if lattice.plan.partitions == "levels":
        return _sums_by_levels(lattice.plan.n_levels, log_leaf, turns)[1:]
    blocks = lattice.blocks
    steps = lattice.plan.index(are_shapes=True).arrays.step[:, 0].tolist()
    splits = [_splits_of(lattice, j, step) for j, step in enumerate(steps)]
    n_shapes = int(np.prod([b.n_blocks for b in blocks]))
    sums = np.empty((n_shapes, turns.size), np.complex128)  # divided by the sum of turn 1
    logs = np.empty(n_shapes)  # logs of the sums of turn 1
    kinds = np.unique([(b.n_blocks, b.times.sum()) for b in blocks], axis=0, return_inverse=True)[1]
    alike = [np.flatnonzero(kinds.reshape(-1) == kind) for kind in range(kinds.max() + 1)]
    for at, digits in enumerate(product(*(range(b.n_blocks) for b in blocks))):
        first = np.array(digits)  # of the shapes that are equal up to the order of columns
        for columns in alike:
            first[columns] = np.sort(first[columns])
        before = int(first @ steps)
        if before < at:
            sums[at], logs[at] = sums[before], logs[before]
            continue
        found = [(np.array([log_leaf]), turns[None])]
        for of_column, digit in zip(splits, digits, strict=True):
            for children, log_times in of_column[digit]:
                below = at + children
                found.append((log_times + logs[below].sum(axis=1), sums[below].prod(axis=1)))
        log_terms = np.concatenate([log_term for log_term, _ in found])
        top = log_terms.max()
        terms = np.exp(log_terms - top) @ np.concatenate([term for _, term in found])
        logs[at] = top + np.log(terms[0].real)
        sums[at] = terms / terms[0].real
    return sums[-1, 1:]


def _sums_by_levels(n_levels: tuple[int, ...], log_leaf: float, turns: Complexes) -> Complexes:
    """Return `_relative_sums` for splits by levels, by columns left whole; the first turn is 1."""
    levels, numbers = np.unique([q for q in n_levels if q > 1], return_counts=True)
    steps = np.concatenate([[1], np.cumprod(numbers + 1)]).astype(np.int64)
    sums = np.empty((steps[-1], turns.size), np.complex128)
    logs = np.empty(steps[-1])
    for at in range(steps[-1]):
        log_terms, terms = [log_leaf], [turns]
        for q, number, step in zip(levels.tolist(), numbers, steps, strict=False):
            n_left = at // step % (number + 1)
            if n_left > 0:
                log_terms.append(np.log(n_left) + q * logs[at - step])
                terms.append(sums[at - step] ** q)
        top = max(log_terms)
        mixed = np.exp(np.array(log_terms) - top) @ np.array(terms)
        logs[at] = top + np.log(mixed[0].real)
        sums[at] = mixed / mixed[0].real
    whole: Complexes = sums[-1]
    return whole


def _splits_of(lattice: Lattice, column: int, step: int) -> list[list[tuple[Integers, Floats]]]:
    """Return blocks' splits by branches b: children's offsets (n, b), log multiplicities (n,)."""
    plan, found = lattice.plan, []
    ways = lattice.blocks[column].partitions(plan.most, plan.partitions == "levels")
    for block, of_block in enumerate(ways):
        by_size = []
        for b in sorted({len(parts) for parts, _ in of_block}):
            of_size = [(parts, times) for parts, times in of_block if len(parts) == b]
            children = (np.array([parts for parts, _ in of_size], np.int64) - block) * step
            by_size.append((children, np.log([times for _, times in of_size])))
        found.append(by_size)
    return found
