"""A proved bound on the sum over the trees with more leaves than were summed over.

Under the leaf model the sum over all trees of K leaves is ``w_K S_K``: `Root.log_weights`, and the
sum over these trees of products over their leaves. A pass over the boxes with one entry each, and a
factor ``z`` for each leaf, needs no bound on leaves and gives ``G(z) = sum_K S_K z**K``. No term is
negative, so ``S_K <= G(z) / z**K`` for every ``z > 0``, and the sum over trees of more than k
leaves is at most ``sum_(K > k) w_K min_z G(z) / z**K``, for any set of z. With maxima instead of
sums, this bounds the most probable of them.

K ends at the number of cells. If there are too many, ``w_(K+1) / w_K <= rate / (K + 1)``, or 1 with
the generative prior, bounds the rest by a geometric series: ``lnG(x + alpha) - lnG(x)`` increases
with x, so the Dirichlet's part of the ratio is at most 1.

Rounding acts on G as a tilt by h, see `rounding`, so ``S_K <= G(z) exp(h K) / z**K`` with the
computed G. The logs in the sums may each be off by u times their sizes.
"""

from dataclasses import replace

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import TooLargeError
from bayescascade.methods.density.trees.exact.kernels.layout import TermArrays
from bayescascade.methods.density.trees.exact.lattice import Lattice, Root
from bayescascade.methods.density.trees.exact.recursion import Recursion
from bayescascade.methods.density.trees.exact.rounding import PassRounding, of_sums_without_rows
from bayescascade.methods.density.trees.exact.shared import Boxes
from bayescascade.model.guard import EVALUATED, UNIT, log_gamma_sizes

LEFT_OUT = 1e-9
"""Largest share of the sum over all trees that omitted trees of more leaves may have."""

_MOST_LISTED = 1 << 16  # numbers of leaves
_PRIOR_PASSES = 32  # cheap, because there are few shapes


class Tail:
    """Bounds on the sum over trees of many leaves; they improve with every z.

    The boxes are of a plan with one entry a box, for the leaf model; total is the weight of all
    rows; no tree has more than `most` leaves.
    """

    def __init__(
        self, boxes: Boxes, root: Root, total: float, most: int, bounds: PassRounding
    ) -> None:
        self._boxes, self._bounds = boxes, bounds
        self._root, self._total, self._most = root, total, most
        self._tried: dict[bool, dict[float, float]] = {False: {}, True: {}}

    def enough(self, fewest: int, target: float, n_passes: int, maximize: bool = False) -> int:
        """Return a number of leaves, with the proof that larger trees sum to at most `target`.

        `target`, nats, is for the sum over these trees or, with maxima, for each of them. `fewest`
        is returned if it is proved to be enough. At most `n_passes` >= 1 new z are tried.
        """
        if fewest >= self._most:
            return fewest
        tried = self._tried[maximize]
        k = np.arange(fewest, min(self._most, fewest + _MOST_LISTED) + 1)
        log_common = self._root.log_common(self._total)
        log_weights = self._root.log_weights(k, self._total) + log_common
        own = max(self._bounds.of_sums, self._bounds.of_best)  # rounding for each leaf
        sizes = np.abs(log_weights[1:]) + abs(target) + 2 * abs(log_common)
        log_z = None if tried else float(log_weights[1] - log_weights[0])
        while True:
            if log_z is not None:
                self._boxes.run(maximize, tilt=log_z)
                tried[log_z] = float(self._boxes.log_values()[0])  # of G, or of its largest term
                n_passes -= 1
            log_zs: Floats = np.array(sorted(tried), np.float64)
            worths = np.array([tried[z] for z in log_zs])
            bounds: Floats = worths[:, None] - (log_zs[:, None] - own) * k[1:] + self._bounds.fixed
            sized = sizes + np.abs(worths[:, None]) + np.abs(log_zs[:, None]) * k[1:]
            bounds += EVALUATED * UNIT * sized
            if k[-1] < self._most:
                most_rise = self._root.log_most_rise(int(k[-1]))
                bounds[:, -1] += _log_series(most_rise - log_zs + own)
            least = log_weights[1:] + bounds.min(axis=0)
            behind = np.logaddexp.accumulate(least[::-1])[::-1]
            above = np.flatnonzero(behind > target)
            if above.size == 0:
                return fewest
            at = int(np.argmax(least))
            log_z = next_place(log_zs, bounds[:, at], target - log_weights[1 + at])
            if n_passes == 0 or log_z is None:
                found = int(k[1 + above[-1]])
                return self._most if found == k[-1] else found


def _log_series(log_ratios: Floats) -> Floats:
    """Return the logs of geometric series that begin with 1; infinity if they diverge."""
    ratios = np.exp(np.minimum(log_ratios, 0.0))
    with np.errstate(divide="ignore"):
        series: Floats = -np.log1p(-ratios)
    return series


def next_place(log_zs: Floats, bounds: Floats, target: float) -> float | None:
    """Return a place where a convex function, known at some places, may reach `target`, or None."""
    i = len(log_zs) - 1 - int(np.argmin(bounds[::-1]))  # ties: the largest
    gaps = np.diff(log_zs)
    if i == len(gaps):
        return float(log_zs[i] + (2 * gaps[-1] if i else 1.0))
    if i == 0:
        return float(log_zs[0] - 2 * gaps[0])
    left, right = gaps[i - 1 : i + 1]
    rises = bounds[[i - 1, i + 1]] - bounds[i]
    if bounds[i] - max(rises[0] * right / left, rises[1] * left / right) > target:
        return None
    return float(log_zs[i] - left / 2 if left > right else log_zs[i] + right / 2)


def log_prior_mass(
    lattice: Lattice,
    terms: TermArrays,
    root: Root,
    cap: int,
    most: int,
    bounds: PassRounding,
    memory_limit: float,
) -> tuple[float, float]:
    """Return the log of the sum over all trees of any size without data, and its error.

    `root`, `most` and `bounds` as in `Tail`; it starts with trees of up to `cap` leaves.
    """

    def log_mass(cap: int) -> tuple[float, float]:
        plan = replace(lattice.plan, shift=1, max_leaves=cap)
        shapes = replace(lattice, plan=plan).shapes()
        n_bytes = 16 * plan.index(are_shapes=True).n_entries
        if n_bytes > memory_limit:
            needed = f"{n_bytes / 1e9:.3g} GB for the prior of trees of up to {cap:,} leaves"
            raise TooLargeError(f"memory_limit must be at least {needed}", needed)
        values = Recursion(shapes, terms._replace(shift=1), np.zeros(1), None)
        values.run()
        found = root.log_sum(values.log_values(), 0.0) + root.log_common(0.0)
        of_root = EVALUATED * UNIT * (abs(found) + float(log_gamma_sizes(root.model.concentration)))
        return found, LEFT_OUT + of_sums_without_rows(plan) * plan.max_leaves + of_root

    found = log_mass(cap)
    shapes = Recursion(lattice.shapes(), terms, np.zeros(1), None)
    tail = Tail(shapes, root, 0.0, most, bounds)
    enough = tail.enough(cap, found[0] + np.log(LEFT_OUT), _PRIOR_PASSES)
    return found if enough == cap else log_mass(enough)
