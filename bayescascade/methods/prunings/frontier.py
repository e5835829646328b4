"""Prunings within a budget: the best ones at any tradeoff, and what lies between two of them.

The best prunings at all tradeoffs are the corners of the lower convex hull of (cost, error), and
they are nested: a larger tradeoff keeps fewer splits. Two of them, one within the budget and one
beyond it, are brought together. Where the tradeoff makes both equally good, either another pruning
is better, and takes the place of one of them, or there is none between and both are corners of the
same edge of the hull. All that is looked for keeps what the cheaper one keeps and cuts what the
dearer one cuts, so that each problem is smaller than the one before. No pruning is left out by more
than rounding: objectives are submodular, so that adding to a pruning what a corner keeps that is
best up to e makes it worse by at most e, at the corner's tradeoff and, as costs grow by it, at any
smaller one; the same holds for what the dearer corner cuts. The bound between is lowered by both.

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

from bayescascade.base.watch import check_time
from bayescascade.costs.limits import is_within
from bayescascade.methods.prunings.program import Pruning, PruningProgram
from bayescascade.methods.prunings.solvers import FlowSolver

_TINY = np.finfo(np.float64).tiny
_REMOVALS = (1.0, 4.0)  # tradeoffs at which features are removed, relative to that of the edge

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Frontier:
    """Finds prunings of a program within budgets, and remembers the corners that it has found.

    feature (n_splits,) int: the feature of each split; `error_of` compares ways to spend a budget.
    """

    def __init__(
        self,
        program: PruningProgram,
        feature: NDArray[np.integer],
        error_of: Callable[[Bools], float] | None = None,
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

    def _bounded(self, kept: Bools, found: Pruning, interrupted: bool) -> Pruning:
        """Return a pruning with the bound, and its rounding, that was found at a tradeoff."""
        other = Pruning.of(self.program, kept, found.tradeoff, found.lower_bound, interrupted)
        return replace(other, rounding=other.rounding + found.rounding)

    def _fillings(
        self, lower: Bools, upper: Bools, tradeoff: float, budget: float
    ) -> Iterator[Bools]:
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

    def _filled(self, lower: Bools, upper: Bools, budget: float) -> Bools:
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
) -> Iterator[tuple[int, Bools]]:
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


def _at_or_below(program: PruningProgram, marked: Bools) -> Bools:
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

    def sums(values: Floats, starts: NDArray[np.int64]) -> Floats:  # which may be equal
        total: Floats = np.concatenate([[0.0], np.cumsum(values)])
        return np.diff(total[starts])

    # a tree asks for a use once: where a row passes
    edges = sums(program.use_cost[program.edge_use], program.edge_starts[program.tree_starts])
    gains = sums(program.error_gain, program.tree_starts)
    return gains, edges + sums(program.work, program.tree_starts)
