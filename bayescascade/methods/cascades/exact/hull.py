"""The most probable tree of a leaf model, by a few tilted passes; `passes` has the words.

The best K leaves are worth at most ``H_K = min_s (U(s) - s K)``, so that no tree has more than
``max_K (ln w_K + H_K)``. The next s is the slope between the known neighbors of the K where that is
largest: it finds a better tree there, or that there is none on the upper hull of ``max_(K leaves)
sum g``. What then remains between bound and best tree is the gap: 0 unless K lies inside an edge of
the hull, or the gap is within rounding.
"""

from dataclasses import dataclass

import numpy as np

from bayescascade.methods.cascades.exact.passes import Passes
from bayescascade.methods.cascades.tree import Tree

_MOST_PASSES = 60  # the hull is found in about two for every halving of the leaf counts


@dataclass(frozen=True, slots=True)
class BestTree:
    """The most probable tree found."""

    tree: Tree
    log_density: float  # less `Passes.log_common`, nats
    gap: float  # >= 0: nats by which any tree may have more; 0 if within rounding
    rounding: float  # >= 0: if the gap is 0, nats by which another tree may have more


class Hull:
    """Bounds on what the best trees are worth, by their number of leaves."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._found: dict[int, tuple[float, Tree, float]] = {}  # with log density and rounding
        self._bounds = np.full(passes.k.size, np.inf)  # of ln w and the sum over leaves
        self._exceeded = np.zeros(passes.k.size)  # by how much, at most, by rounding
        self._beyond = np.inf if passes.has_more else -np.inf  # of more than are listed
        self._can_sink = True  # whether the bound beyond may come down by another tilt

    @property
    def best(self) -> BestTree | None:
        """The best tree found so far; None before the first pass."""
        if not self._found:
            return None
        log_density, tree, own = max(self._found.values(), key=lambda one: one[0])
        if self._beyond == np.inf:
            return BestTree(tree, log_density, np.inf, 2 * own)
        bound = max(float(self._bounds.max()), self._beyond)
        most = max(float((self._bounds + self._exceeded).max()), self._beyond)
        gap, rounding = bound - log_density, most - bound + 2 * own
        if gap <= rounding:
            return BestTree(tree, log_density, 0.0, max(gap, 0.0) + rounding)
        return BestTree(tree, log_density, gap + rounding, rounding)

    def maximize(self, guess: int) -> BestTree:
        """Find the most probable tree, from a guess at its number of leaves."""
        passes, tried = self._passes, set[float]()
        tilt: float | None = passes.slope(guess)
        while tilt is not None and len(tried) < _MOST_PASSES:
            tried.add(tilt)
            worth, tree, log_density, own = passes.best_of(tilt)
            if tree.n_leaves not in self._found or self._found[tree.n_leaves][0] < log_density:
                self._found[tree.n_leaves] = log_density, tree, own
            self._lower(tilt, worth)
            best = self.best
            assert best is not None
            if best.gap == 0.0:
                break
            if self._beyond >= float(self._bounds.max()):
                tilt = self._tilt_beyond(tried)
            else:
                tilt = self._next_tilt(1 + int(np.argmax(self._bounds)), tried)
        assert best is not None
        return best

    def _lower(self, tilt: float, worth: float) -> None:
        """Lower the bounds by what a pass found."""
        passes = self._passes
        bounds, lost = passes.log_w + worth - tilt * passes.k, passes.lost(tilt, worth)
        is_lower = bounds + lost < self._bounds + self._exceeded
        self._bounds = np.where(is_lower, bounds, self._bounds)
        self._exceeded = np.where(is_lower, lost, self._exceeded)
        if passes.has_more and tilt >= self._least_beyond:  # the bound falls from there on
            beyond = float(bounds[-1] + lost[-1])
            self._can_sink = beyond < self._beyond
            self._beyond = min(self._beyond, beyond)

    @property
    def _least_beyond(self) -> float:
        """The least tilt of which the bound falls with each leaf more than are listed."""
        passes = self._passes
        # a leaf more may be worth that much more by rounding
        return passes.root.log_most_rise(int(passes.k[-1])) + passes.bounds.of_best

    def _tilt_beyond(self, tried: set[float]) -> float | None:
        """Return a tilt that lowers the bound on trees of more leaves than are listed, or None."""
        above = [t for t in tried if t >= self._least_beyond]
        if not above:
            return self._least_beyond
        return 2 * max(above) - min(above) + 1.0 if self._can_sink else None

    def _next_tilt(self, n_leaves: int, tried: set[float]) -> float | None:
        """Return the slope at which the hull at a number of leaves is known better, or None."""
        found = self._found
        if n_leaves in found:
            return None  # the hull touches it: nothing is better there
        below = max((n for n in found if n < n_leaves), default=None)
        above = min((n for n in found if n > n_leaves), default=None)
        if below is None or above is None:  # outside what is known: go on by doubling steps
            step = 1.0 + max(tried) - min(tried)
            return max(tried) + step if above is None else min(tried) - step
        log_w = self._passes.root.log_weights(np.array([below, above]), self._passes.total)
        slope = (found[below][0] - found[above][0] + log_w[1] - log_w[0]) / (above - below)
        near = any(abs(slope - t) <= 1e-12 * max(1.0, abs(t)) for t in tried)
        return None if near else slope
