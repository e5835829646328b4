"""Exact search for the best pruning of a forest: a minimum cut, by a maximum flow.

Keeping a split requires keeping the one above and paying for its uses, so the pruning program is a
maximum closure problem (Picard 1976). In its network, each split has its error gain as supply, arcs
of unlimited capacity lead from a split to the one above and to its uses, and a use has its cost as
capacity to the sink. The flow pays for uses from gains. When the flow is maximal, the splits
without a path to the sink are the best pruning, the largest one if there are several; the remaining
supply is its gain. So the flow itself is the proof: at any time, no pruning's objective is below
the base error minus the remaining supply.

When the tradeoff grows, the capacities of uses grow and the flow stays valid. `FlowSolver`
continues from it.

*Rounding.* Flow is measured in units u such that all gains G together are ``2**52``, so that sums
are exact. Supply and capacity at a split, and capacity at a use, are each rounded to whole units,
by at most half a unit. Before that, products have relative errors of a few `UNIT`. This is ``3 UNIT
G`` = 1.5 u for all gains, and the same for all payments of a pruning with an objective not above
the base error; capacities limited to ``2 G`` cannot be full. So objectives in units differ from
true ones by at most ``(S + U / 2 + 4) u``, for S splits and U uses, and base error minus gains by
another ``4 UNIT`` of both. This is subtracted from the bound; the pruning passes through
`guard.certified`.

**Within a budget.** The best prunings at all tradeoffs are the corners of the lower convex hull of
(cost, error), and they are nested: a larger tradeoff keeps fewer splits. The search keeps two of
them, one within the budget and one beyond it. At the tradeoff where both are equally good, either
another pruning is better, and replaces one of them, or both are corners of the same edge of the
hull. The search between them keeps all splits of the cheaper corner and cuts all splits that the
more expensive corner cuts, so each problem is smaller than the previous one. This excludes no
better pruning, up to rounding. Objectives are submodular: if a corner is optimal up to e, adding
its splits to a pruning makes the pruning worse by at most e, at the corner's tradeoff and, because
this adds to the cost, at any smaller tradeoff. The same holds for the splits that the more
expensive corner cuts. The bound between the corners is lowered by both.

The edge may be long: if the trees of a forest share few features, the best prunings are nearly
whole or empty. Then the rest of the budget after the cheaper corner is spent in several ways, and
the one with the smallest error is used. Features are removed from the more expensive corner until
it is within the budget, as in `remove_features`, or not; then whole trees of it, and a part of one
tree, are added in order of error reduction per cost. These are heuristics; the bound shows how good
they are.

To remove a feature, every tree is cut at the first split on it on every path (Nan 2018, section
4.5). Each step removes the feature that leaves the smallest ``error + tradeoff x cost``, until no
split is left: at most one step per feature. The thesis has "the lowest training error and average
feature cost"; the weight `tradeoff` is our interpretation.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.watch import check_time
from bayescascade.costs.limits import is_within
from bayescascade.methods.budget.pruning.kernels.programs import (
    FlowNetwork,
    FlowWorkspace,
    advance_flow,
    measure_distances,
)
from bayescascade.methods.budget.pruning.program import Pruning, PruningProgram
from bayescascade.model.guard import UNIT, certified

_WHOLE = 2.0**52  # sum of all gains in units of flow: sums are exact
_UNLIMITED = 2**60
_LEAST_GAINS = 1e-200  # so that a unit is a float

_TINY = np.finfo(np.float64).tiny
_REMOVALS = (1.0, 4.0)  # tradeoffs for removing features, relative to that of the edge


class FlowSolver:
    """Search for best prunings of a program at several tradeoffs, without starting again."""

    def __init__(self, program: PruningProgram) -> None:
        self.program = program
        gains = program.error_gain.clip(min=0.0).sum()
        self._scale = _WHOLE / max(float(gains), _LEAST_GAINS)
        units = program.n_splits + program.n_uses / 2 + 4
        self._rounding = float(units / self._scale + 4 * UNIT * (program.base_error + gains))
        self._starts, self._head, self._reverse, self._is_unlimited = _arcs(program)
        shape = 2, self._starts.size - 1
        self._work = FlowWorkspace(*np.empty(shape, np.int32), *np.empty(shape, np.int64))
        self._tradeoff, self._network, self._room = self._unused()

    def solve(self, tradeoff: float) -> Pruning:
        """Return the best pruning at tradeoff >= 0; on Ctrl-C, the best one so far.

        Ascending tradeoffs are fastest, because each flow starts from the previous one. The result
        is certified.
        """
        if tradeoff < self._tradeoff:
            self._tradeoff, self._network, self._room = self._unused()
        room = self._room_at(tradeoff)
        self._network.room[:] += room - self._room
        self._tradeoff, self._room = tradeoff, room
        interrupted = False
        try:
            while measure_distances(self._network, self._work):
                check_time()
                advance_flow(self._network, self._work)
        except KeyboardInterrupt:
            interrupted = True
            measure_distances(self._network, self._work)
        kept = self._work.distance[: self.program.n_splits] > room.size
        bound = float(self.program.base_error - self._network.supply.sum() / self._scale)
        if not interrupted:
            certified(
                lambda found: -self.program.objective(found, tradeoff),
                kept,
                -bound,
                self._rounding + self.program.rounding(kept, tradeoff),
            )
        return Pruning.of(self.program, kept, tradeoff, bound, interrupted, rounding=self._rounding)

    def _unused(self) -> tuple[float, FlowNetwork, Integers]:
        """Return the initial state: a tradeoff of 0, a network without flow, capacities of 0."""
        gain = np.zeros(self._starts.size - 1)
        gain[: self.program.n_splits] = self.program.error_gain
        residual, supply = np.where(self._is_unlimited, _UNLIMITED, 0), self._in_units(gain)
        room = np.zeros(gain.size, np.int64)
        arcs = (self._starts, self._head, self._reverse, residual)
        network = FlowNetwork(*arcs, supply, room)
        return 0.0, network, np.zeros(gain.size, np.int64)

    def _room_at(self, tradeoff: float) -> Integers:
        """Return the capacity to the sink of each split and each use, in units of flow."""
        program = self.program
        with np.errstate(over="ignore"):  # more than all gains is no limit
            loss = tradeoff * program.work - program.error_gain.clip(max=0.0)
            return self._in_units(np.concatenate([loss, tradeoff * program.use_cost]))

    def _in_units(self, values: Floats) -> Integers:
        """Return values in units of flow, 0 for negative ones; more than all gains is no limit."""
        units: Floats = np.rint((values * self._scale).clip(0.0, 2 * _WHOLE))
        return units.astype(np.int64)


def _arcs(program: PruningProgram) -> tuple[Integers, Codes, Codes, Flags]:
    """Return the starts of each node's arcs, their heads and reverses, and which are unlimited."""
    child = np.flatnonzero(program.parent >= 0)
    tail = np.concatenate([child, program.edge_split])
    head = np.concatenate([program.parent[child], program.n_splits + program.edge_use])
    both = np.concatenate([tail, head]).astype(np.int32)
    order = np.argsort(both, kind="stable")
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    starts = np.searchsorted(both[order], np.arange(program.n_splits + program.n_uses + 1))
    partner = (order + tail.size) % max(order.size, 1)
    return starts, both[partner], place[partner], order < tail.size


class Frontier:
    """Search for prunings of a program within budgets; it keeps the corners found so far.

    feature (n_splits,) int: the feature of each split; `error_of` compares ways to spend a budget.
    """

    def __init__(
        self,
        program: PruningProgram,
        feature: NDArray[np.integer],
        error_of: Callable[[Flags], float] | None = None,
    ) -> None:
        self.program, self._feature = program, feature
        self._error_of = program.error if error_of is None else error_of
        self._corners: list[Pruning] = []  # ascending cost

    def within(self, budget: float) -> Pruning:
        """Return a pruning of mean cost at most `budget` >= 0, including the work of splits."""
        if not self._corners:
            corners = [self._cheapest(), FlowSolver(self.program).solve(0.0)]
            if any(corner.interrupted for corner in corners):
                nothing = np.zeros(self.program.n_splits, np.bool_)
                return Pruning.of(self.program, nothing, 0.0, corners[1].lower_bound, True)
            self._corners = corners
        while True:
            costs = [self.program.cost(corner.kept) for corner in self._corners]
            place = sum(is_within(cost, budget) for cost in costs)
            if place == len(costs):
                return self._corners[-1]
            lower, upper = self._corners[place - 1], self._corners[place]
            found = self._between(lower, upper)
            ends = [self.program.objective(end.kept, found.tradeoff) for end in (lower, upper)]
            if found.interrupted or found.objective >= min(ends) - found.rounding:
                break
            self._corners.insert(place, found)
        best, interrupted = lower.kept, found.interrupted
        if not interrupted:
            try:
                filled = self._fillings(lower.kept, upper.kept, found.tradeoff, budget)
                best = min(filled, key=self._error_of)
            except KeyboardInterrupt:
                interrupted = True
        return self._bounded(best, found, interrupted)

    def _cheapest(self) -> Pruning:
        """Return the best of the prunings that cost nothing."""
        program = self.program
        prices = np.concatenate([program.use_cost, program.work[program.work > 0]])
        gain = program.error_gain.clip(min=0.0).sum()
        tradeoff = 1.0 + 2.0 * gain / prices.min() if prices.size else 0.0
        return FlowSolver(program).solve(float(tradeoff))

    def _between(self, lower: Pruning, upper: Pruning) -> Pruning:
        """Return the best pruning between two, at the tradeoff that makes them equally good."""
        program = self.program
        saved = program.cost(upper.kept) - program.cost(lower.kept)
        lost = program.error(lower.kept) - program.error(upper.kept)
        tradeoff = max(lost / saved, 0.0)
        inner, splits = program.between(lower.kept, upper.kept)
        found = FlowSolver(inner).solve(tradeoff)
        kept = lower.kept.copy()
        kept[splits[found.kept]] = True
        bound = found.lower_bound + tradeoff * program.cost(lower.kept)
        rounding = found.rounding + program.rounding(upper.kept, tradeoff)
        for corner in (lower, upper):  # the corners are optimal up to this
            rounding += max(0.0, corner.objective - corner.lower_bound)
        return Pruning.of(program, kept, tradeoff, bound, found.interrupted, rounding=rounding)

    def _bounded(self, kept: Flags, found: Pruning, interrupted: bool) -> Pruning:
        """Return a pruning with the bound, and its rounding, of the result `found`."""
        other = Pruning.of(self.program, kept, found.tradeoff, found.lower_bound, interrupted)
        return replace(other, rounding=other.rounding + found.rounding)

    def _fillings(
        self, lower: Flags, upper: Flags, tradeoff: float, budget: float
    ) -> Iterator[Flags]:
        """Yield prunings between two corners that use most of a budget.

        The last is between the outermost corners: it may err less, because trees without splits do
        not vote.
        """
        yield self._filled(lower, upper, budget)
        inner, splits = self.program.between(lower, upper)
        left = budget - self.program.cost(lower)
        for factor in _REMOVALS:
            check_time()
            for _, kept in remove_features(inner, self._feature[splits], factor * tradeoff):
                if inner.cost(kept) <= left:
                    break
            rest = lower.copy()
            rest[splits[kept]] = True
            yield self._filled(rest, upper, budget)
        nothing, most = self._corners[0].kept, self._corners[-1].kept
        if lower is not nothing or upper is not most:  # otherwise it equals the first
            yield self._filled(nothing, most, budget)

    def _filled(self, lower: Flags, upper: Flags, budget: float) -> Flags:
        """Return a pruning extended by trees of a larger one, within a budget."""
        kept = lower.copy()
        while True:
            inner, splits = self.program.between(kept, upper)
            left = max(0.0, budget - self.program.cost(kept))  # below 0 only by rounding
            gains, costs = _tree_values(inner)
            worth = np.where(gains > 0, gains / np.maximum(costs, _TINY), -np.inf)
            fits = np.where(costs <= left, worth, -np.inf)
            if fits.max(initial=-np.inf) == -np.inf:
                break
            kept[splits[slice(*inner.tree_starts[fits.argmax() :][:2])]] = True
        if np.count_nonzero(worth > 0) > 1:  # part of one more tree
            one = kept.copy()
            one[splits[slice(*inner.tree_starts[worth.argmax() :][:2])]] = True
            inner, splits = self.program.between(kept, one)
            part = Frontier(inner, self._feature[splits]).within(left)
            if part.interrupted:
                raise KeyboardInterrupt
            kept[splits[part.kept]] = True
        return kept


def remove_features(
    program: PruningProgram, feature: NDArray[np.integer], tradeoff: float
) -> Iterator[tuple[int, Flags]]:
    """Yield each removed feature, first -1, and the remaining splits, finally none."""
    kept = np.ones(program.n_splits, np.bool_)
    remaining = np.unique(feature).tolist()
    below = {one: _at_or_below(program, feature == one) for one in remaining}
    yield -1, kept
    while kept.any():
        left = [program.objective(kept & ~below[feature], tradeoff) for feature in remaining]
        chosen = remaining.pop(int(np.argmin(left)))
        kept = kept & ~below[chosen]
        remaining = [feature for feature in remaining if np.any(kept & below[feature])]
        yield chosen, kept


def _at_or_below(program: PruningProgram, marked: Flags) -> Flags:
    """Return the marked splits and all splits below them."""
    reached = marked.copy()
    inner = np.flatnonzero(program.parent >= 0)
    while True:
        further = inner[reached[program.parent[inner]] & ~reached[inner]]
        if not further.size:
            return reached
        reached[further] = True


def _tree_values(program: PruningProgram) -> tuple[Floats, Floats]:
    """Return the gain and the cost of each tree alone, (n_trees,) each."""

    def sums(values: Floats, starts: Integers) -> Floats:  # starts may be equal
        total: Floats = np.concatenate([[0.0], np.cumsum(values)])
        return np.diff(total[starts])

    # a tree asks for a use only once on a row's path
    edges = sums(program.use_cost[program.edge_use], program.edge_starts[program.tree_starts])
    gains = sums(program.error_gain, program.tree_starts)
    return gains, edges + sums(program.work, program.tree_starts)
