"""How the best pruning of a forest is found: as a minimum cut, by a maximum flow; exact, and fast.

Keeping a split obliges to keep the one above and to pay for its uses, so the pruning program is a
maximum closure problem (Picard 1976). In its network each split is fed with its error gain, arcs
of unlimited capacity lead from a split to the one above and to its uses, and a use lets out as
much as it costs. Flow is what uses are paid from gains. When no more can be paid, the splits from
which no path leads out any more are the best pruning, the largest one if there are several; what
could not be paid is what they gain. So the flow itself is the proof: no pruning's objective is
below the base error less the gains not yet spent, whenever one looks.

As the tradeoff grows, uses let out more and the flow stays one. `FlowSolver` goes on from it.

*Rounding.* Flow is counted in units u, of which all gains G together are ``2**52``, so that sums
are exact. What enters and what leaves at a split is rounded to whole units each, and what leaves at
a use: half a unit. Before that, products are off by a few `UNIT` of themselves, which is ``3 UNIT
G`` = 1.5 u for all gains, and as much for all that a pruning pays whose objective is not above the
base error; what is limited to ``2 G`` cannot be full. So objectives in units differ from true ones
by ``(S + U / 2 + 4) u`` at most, of S splits and U uses, and base error less gains by another ``4
UNIT`` of both. This is taken off the bound; the pruning passes through `guard.certified`.

**Within a budget.** The best prunings at all tradeoffs are the corners of the lower convex hull of
(cost, error), and they are nested: a larger tradeoff keeps fewer splits. Two of them, one within
the budget and one beyond it, are brought together. Where the tradeoff makes both equally good,
either another pruning is better, and takes the place of one of them, or there is none between and
both are corners of the same edge of the hull. All that is looked for keeps what the cheaper one
keeps and cuts what the dearer one cuts, so that each problem is smaller than the one before. No
pruning is left out by more than rounding: objectives are submodular, so that adding to a pruning
what a corner keeps that is best up to e makes it worse by at most e, at the corner's tradeoff and,
as costs grow by it, at any smaller one; the same holds for what the dearer corner cuts. The bound
between is lowered by both.

The edge may be long: a forest whose trees share few features is best kept nearly whole or cut down
entirely. What the cheaper corner leaves of the budget is then spent in several ways, and the one of
least error is taken: features are removed from the dearer corner until it is within the budget, as
in `remove_features`, or not; then whole trees of it are added, and a part of one, those first that
lessen the error most for what they cost. These are heuristics; the bound says how good they are.

To remove a feature, every tree is cut at the first split on it on every path (Nan 2018, section
4.5). Each step removes the feature that leaves the least ``error + tradeoff x cost``, until no
split is left: as many steps as there are features, at most. The thesis says "the lowest training
error and average feature cost"; that they are weighed by `tradeoff` is our reading.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.watch import check_time
from bayescascade.costs.limits import is_within
from bayescascade.methods.prunings.kernels.programs import (
    FlowNetwork,
    FlowWorkspace,
    advance_flow,
    measure_distances,
)
from bayescascade.methods.prunings.program import Pruning, PruningProgram
from bayescascade.model.guard import UNIT, certified

_WHOLE = 2.0**52  # what all gains are together, in units of flow: sums of them are exact
_UNLIMITED = 2**60
_LEAST_GAINS = 1e-200  # so that a unit is a float

_TINY = np.finfo(np.float64).tiny
_REMOVALS = (1.0, 4.0)  # tradeoffs at which features are removed, relative to that of the edge


class FlowSolver:
    """Finds best prunings of a program, from one tradeoff to the next without starting anew."""

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
        """Return the best pruning at tradeoff >= 0; on Ctrl-C, the best one known by then.

        Ascending tradeoffs are quickest, as each flow begins where the one before ended; certified.
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
        """Return a tradeoff of 0, a network without flow, and how much it lets out: nothing."""
        gain = np.zeros(self._starts.size - 1)
        gain[: self.program.n_splits] = self.program.error_gain
        residual, supply = np.where(self._is_unlimited, _UNLIMITED, 0), self._in_units(gain)
        room = np.zeros(gain.size, np.int64)
        arcs = (self._starts, self._head, self._reverse, residual)
        network = FlowNetwork(*arcs, supply, room)
        return 0.0, network, np.zeros(gain.size, np.int64)

    def _room_at(self, tradeoff: float) -> Integers:
        """Return how much may leave at each split and at each use, in units of flow."""
        program = self.program
        with np.errstate(over="ignore"):  # more than all gains is no limit
            loss = tradeoff * program.work - program.error_gain.clip(max=0.0)
            return self._in_units(np.concatenate([loss, tradeoff * program.use_cost]))

    def _in_units(self, values: Floats) -> Integers:
        """Return values in units of flow, 0 for negative ones; more than all gains is no limit."""
        units: Floats = np.rint((values * self._scale).clip(0.0, 2 * _WHOLE))
        return units.astype(np.int64)


def _arcs(
    program: PruningProgram,
) -> tuple[Integers, Codes, Codes, Flags]:
    """Return where each node's arcs start, their heads and reverses, and which are unlimited."""
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
    """Finds prunings of a program within budgets, and remembers the corners that it has found.

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
        """Return a pruning of mean cost at most `budget` >= 0, work of splits included."""
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
        """Return the best pruning between two where they are equally good."""
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
        for corner in (lower, upper):  # the corners are best ones up to this
            rounding += max(0.0, corner.objective - corner.lower_bound)
        return Pruning.of(program, kept, tradeoff, bound, found.interrupted, rounding=rounding)

    def _bounded(self, kept: Flags, found: Pruning, interrupted: bool) -> Pruning:
        """Return a pruning with the bound, and its rounding, that was found at a tradeoff."""
        other = Pruning.of(self.program, kept, found.tradeoff, found.lower_bound, interrupted)
        return replace(other, rounding=other.rounding + found.rounding)

    def _fillings(
        self, lower: Flags, upper: Flags, tradeoff: float, budget: float
    ) -> Iterator[Flags]:
        """Yield prunings between two corners, within a budget, that leave little of it.

        The last is between the outermost corners: as cut-down trees do not vote, it may err less.
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
        if lower is not nothing or upper is not most:  # else it is the first
            yield self._filled(nothing, most, budget)

    def _filled(self, lower: Flags, upper: Flags, budget: float) -> Flags:
        """Return a pruning with trees of a larger one, as far as a budget goes."""
        kept = lower.copy()
        while True:
            inner, splits = self.program.between(kept, upper)
            left = max(0.0, budget - self.program.cost(kept))  # below 0 by rounding alone
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
    """Yield each feature removed, -1 at first, and the splits left, at last none."""
    kept = np.ones(program.n_splits, np.bool_)
    remaining = np.unique(feature).tolist()
    below = {one: _at_or_below(program, feature == one) for one in remaining}
    yield -1, kept
    while kept.any():
        left = [program.objective(kept & ~below[one], tradeoff) for one in remaining]
        chosen = remaining.pop(int(np.argmin(left)))
        kept = kept & ~below[chosen]
        remaining = [one for one in remaining if np.any(kept & below[one])]
        yield chosen, kept


def _at_or_below(program: PruningProgram, marked: Flags) -> Flags:
    """Return the splits that are marked, or below one that is."""
    reached = marked.copy()
    inner = np.flatnonzero(program.parent >= 0)
    while True:
        further = inner[reached[program.parent[inner]] & ~reached[inner]]
        if not further.size:
            return reached
        reached[further] = True


def _tree_values(program: PruningProgram) -> tuple[Floats, Floats]:
    """Return what each tree gains and costs by itself, (n_trees,) each."""

    def sums(values: Floats, starts: Integers) -> Floats:  # which may be equal
        total: Floats = np.concatenate([[0.0], np.cumsum(values)])
        return np.diff(total[starts])

    # a tree asks for a use once: where a row passes
    edges = sums(program.use_cost[program.edge_use], program.edge_starts[program.tree_starts])
    gains = sums(program.error_gain, program.tree_starts)
    return gains, edges + sums(program.work, program.tree_starts)
