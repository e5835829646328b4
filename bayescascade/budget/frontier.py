"""Prunings within a budget: the best ones at any tradeoff, and what lies between two of them.

The best prunings at all tradeoffs are the corners of the lower convex hull of (cost, error), and
they are nested: a larger tradeoff keeps fewer splits. Two of them, one within the budget and one
beyond it, are brought together. Where the tradeoff makes both equally good, either another pruning
is better, and takes the place of one of them, or there is none between and both are corners of the
same edge of the hull. All that is looked for keeps what the cheaper one keeps and cuts what the
dearer one cuts, so that each problem is smaller than the one before.

The edge may be long: a forest whose trees share few features is best kept nearly whole or cut down
entirely. What the cheaper corner leaves of the budget is then spent on whole trees as the dearer
one prunes them, those first that lessen the error most for what they cost. This is a heuristic; the
bound says how good it is.
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.budget.flow import FlowSolver
from bayescascade.budget.program import PruningProgram
from bayescascade.budget.pruning import Pruning

__all__ = ["Frontier"]

_LEAST_GAIN = 1e-9  # relative: what is better by less is a rounding error
_TINY = np.finfo(np.float64).tiny

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Frontier:
    """Finds prunings within budgets, and remembers the corners that it has found.

    Parameters
    ----------
    program : PruningProgram
    """

    def __init__(self, program: PruningProgram) -> None:
        self.program = program
        self._corners: list[Pruning] = []  # ascending cost

    def within(self, budget: float) -> Pruning:
        """Return a pruning whose cost is at most a budget, of as little error as can be found.

        Its tradeoff is the least at which a best pruning is within the budget; see `Pruning` for
        the bound. On Ctrl-C it is what was found by then.

        Parameters
        ----------
        budget : float >= 0
            Mean cost of a row, the work of splits included.
        """
        if not self._corners:
            self._corners = [self._cheapest(), FlowSolver(self.program).solve(0.0)]
        while True:
            costs = [self.program.cost(corner.kept) for corner in self._corners]
            place = int(np.searchsorted(costs, budget * (1 + _LEAST_GAIN), side="right"))
            if place == len(costs):
                return self._corners[-1]
            lower, upper = self._corners[place - 1], self._corners[place]
            found = self._between(lower, upper)
            least = min(
                self.program.objective(corner.kept, found.tradeoff) for corner in (lower, upper)
            )
            if found.interrupted or found.objective >= least * (1 - _LEAST_GAIN):
                kept = self._filled(lower.kept, upper.kept, budget)
                return Pruning.of(
                    self.program, kept, found.tradeoff, found.lower_bound, found.interrupted
                )
            self._corners.insert(place, found)

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
        return Pruning.of(program, kept, tradeoff, bound, found.interrupted)

    def _filled(self, lower: Bools, upper: Bools, budget: float) -> Bools:
        """Return the lower pruning with trees of the upper one, as far as a budget goes."""
        kept = lower.copy()
        while True:
            inner, splits = self.program.between(kept, upper)
            left = budget - self.program.cost(kept)
            gains, costs = _tree_values(inner)
            worth = np.where(gains > 0, gains / np.maximum(costs, _TINY), -np.inf)
            fits = np.where(costs <= left, worth, -np.inf)
            if fits.max(initial=-np.inf) > 0:
                kept[splits[_tree(inner, int(fits.argmax()))]] = True
            else:
                break
        if np.count_nonzero(worth > 0) > 1:  # part of one more tree
            one = np.zeros(self.program.n_splits, np.bool_)
            one[splits[_tree(inner, int(worth.argmax()))]] = True
            inner, splits = self.program.between(kept, kept | one)
            kept[splits[Frontier(inner).within(left).kept]] = True
        return kept


def _tree(program: PruningProgram, tree: int) -> slice:
    """Return the splits of a tree."""
    return slice(int(program.tree_starts[tree]), int(program.tree_starts[tree + 1]))


def _tree_values(program: PruningProgram) -> tuple[Floats, Floats]:
    """Return what each tree gains and costs by itself, (n_trees,) each."""
    edge_starts = program.edge_starts[program.tree_starts]
    # a tree asks for a use once: where a row passes
    asked = np.concatenate([[0.0], np.cumsum(program.use_cost[program.edge_use])])
    work = np.concatenate([[0.0], np.cumsum(program.work)])[program.tree_starts]
    gains = np.concatenate([[0.0], np.cumsum(program.error_gain)])[program.tree_starts]
    return np.diff(gains), np.diff(asked[edge_starts]) + np.diff(work)
