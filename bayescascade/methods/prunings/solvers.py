"""How the best pruning of a forest is found, in two ways.

**As a minimum cut, hence by a maximum flow: exact, and fast.**
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

**By the primal-dual method: trees by themselves, and duals that share out the costs.**
Nan (2018), section 4.4 and Algorithm 3, relaxes ``w_tki <= w_ki`` with a dual variable for each
edge of the program: what a split pays for a use. Given the duals, all trees together give a lower
bound of (IP). The duals then move along the subgradient, so that splits that are kept pay more.

*Departures.* The thesis finds each tree's pruning as a shortest path, by a network solver. It needs
none: given the duals, what a split is worth follows from those below it, so that a tree is pruned
from its leaves up, in linear time. Nor is the last iterate the result. The pruning of every
iteration is feasible for (IP): the one of the least true objective is kept, and reported with its
gap to the largest bound.

Here the duals of a use always add up to its price. Then the paper's ``mu_ki`` is 0, whether the use
is paid for does not matter to the bound, and the bound is a sum over trees. Duals are kept so by
projection. The step is Polyak's, ``relaxation (best objective - bound) / |subgradient|^2``, where
the relaxation is halved when the bound stands still.

*Rounding.* A tree's value adds up gains, losses and duals, and counts only if it is positive, when
the costs in it are at most the gains: it is off by ``2 n UNIT`` of its gains, with n the number of
splits and edges. Where the duals of a use add up to a share more than its price, those of what is
kept are too much by that share, which is of no more than the gains. Both are taken off the bound.

Prunings that belong to one vector of duals jump from iteration to iteration. Their running mean
does not, and is nearly the relaxed solution. As no mean is above the one of the split above, the
splits whose mean is at least some level are a pruning; a level drawn at random has the mean's
objective on average, since what a row pays for is the largest mean, too. All levels are looked at,
and the best pruning seen is kept. The bound is the proof of how good it is.
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.watch import check_time
from bayescascade.methods.prunings.kernels.programs import (
    FlowNetwork,
    FlowWork,
    advance_flow,
    measure_distances,
    move_duals,
    prune_trees,
)
from bayescascade.methods.prunings.program import Pruning, PruningProgram
from bayescascade.model.guard import UNIT, certified

__all__ = ["FlowSolver", "PrimalDualSolver"]

_WHOLE = 2.0**52  # what all gains are together, in units of flow: sums of them are exact
_UNLIMITED = 2**60
_LEAST_GAINS = 1e-200  # so that a unit is a float

_PATIENCE = 20  # iterations without a better bound, after which the relaxation is halved
_LEAST_WEIGHT = 0.05  # of an iteration's pruning in the running mean
_LEVELS_EVERY = 5  # iterations

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class FlowSolver:
    """Finds best prunings, from one tradeoff to the next without starting anew.

    Parameters
    ----------
    program : PruningProgram
    """

    def __init__(self, program: PruningProgram) -> None:
        self.program = program
        gains = program.error_gain.clip(min=0.0).sum()
        self._scale = _WHOLE / max(float(gains), _LEAST_GAINS)
        units = program.n_splits + program.n_uses / 2 + 4
        self._rounding = float(units / self._scale + 4 * UNIT * (program.base_error + gains))
        self._starts, self._head, self._reverse, self._is_unlimited = _arcs(program)
        shape = 2, self._starts.size - 1
        self._work = FlowWork(*np.empty(shape, np.int32), *np.empty(shape, np.int64))
        self._tradeoff, self._network, self._room = self._unused()

    def solve(self, tradeoff: float) -> Pruning:
        """Return the best pruning; on Ctrl-C, the best one known by then.

        Tradeoffs in ascending order are quickest: each begins where the one before has ended.

        Parameters
        ----------
        tradeoff : float >= 0
            Error rate that a unit of cost is worth.

        Raises
        ------
        InternalError
            If the pruning's objective is not what the flow took it for; see `guard.certified`.
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

    def _unused(self) -> tuple[float, FlowNetwork, NDArray[np.int64]]:
        """Return a tradeoff of 0, a network without flow, and how much it lets out: nothing."""
        gain = np.zeros(self._starts.size - 1)
        gain[: self.program.n_splits] = self.program.error_gain
        network = FlowNetwork(
            self._starts,
            self._head,
            self._reverse,
            residual=np.where(self._is_unlimited, _UNLIMITED, 0),
            supply=self._in_units(gain),
            room=np.zeros(gain.size, np.int64),
        )
        return 0.0, network, np.zeros(gain.size, np.int64)

    def _room_at(self, tradeoff: float) -> NDArray[np.int64]:
        """Return how much may leave at each split and at each use, in units of flow."""
        program = self.program
        with np.errstate(over="ignore"):  # more than all gains is no limit
            loss = tradeoff * program.work - program.error_gain.clip(max=0.0)
            return self._in_units(np.concatenate([loss, tradeoff * program.use_cost]))

    def _in_units(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return values in units of flow, 0 for negative ones; more than all gains is no limit."""
        units: NDArray[np.float64] = np.rint((values * self._scale).clip(0.0, 2 * _WHOLE))
        return units.astype(np.int64)


def _arcs(
    program: PruningProgram,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
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


class PrimalDualSolver:
    """Finds prunings with a proof of how good they are, tree by tree.

    Parameters
    ----------
    program : PruningProgram
    tolerance : float >= 0
        Relative gap at which to end.
    max_iterations : int >= 1
        At which to end anyway.
    """

    def __init__(
        self, program: PruningProgram, tolerance: float = 1e-3, max_iterations: int = 2000
    ) -> None:
        self.program = program
        self._tolerance = tolerance
        self._max_iterations = max_iterations
        order = np.argsort(program.edge_use, kind="stable")
        self._split = program.edge_split[order]
        self._n_edges = np.bincount(program.edge_use, minlength=program.n_uses)
        self._use_starts = np.concatenate([[0], np.cumsum(self._n_edges)])
        self._share = np.repeat(1.0 / self._n_edges, self._n_edges)  # of its price, by edge
        self._best = np.zeros(program.n_splits, np.bool_)
        self._gains = float(program.error_gain.clip(min=0.0).sum())

    def solve(self, tradeoff: float) -> Pruning:
        """Return the best pruning found; on Ctrl-C, the best one by then.

        It begins with the duals' shares and the pruning at which the call before has ended.

        Parameters
        ----------
        tradeoff : float >= 0
            Error rate that a unit of cost is worth.
        """
        program, before = self.program, self._best
        self._tradeoff = tradeoff
        self._price = tradeoff * program.use_cost
        self._loss = tradeoff * program.work - program.error_gain
        price_of_edge = np.repeat(self._price, self._n_edges)
        self._dual = self._share * price_of_edge
        self._best, self._objective = np.zeros(program.n_splits, np.bool_), program.base_error
        self._offer(before)
        self._bound, self._rounding, self._mean = -np.inf, 0.0, np.zeros(program.n_splits)
        self._n_idle, self._relaxation = 0, 1.0
        interrupted = False
        try:
            for number in range(self._max_iterations):
                self._iterate(number)
                check_time()
                if self._pruning().gap <= self._tolerance:
                    break
        except KeyboardInterrupt:
            interrupted = True
        if tradeoff > 0:
            self._share = self._dual / price_of_edge
        return self._pruning(interrupted)

    def _pruning(self, interrupted: bool = False) -> Pruning:
        return Pruning.of(
            self.program, self._best, self._tradeoff, self._bound, interrupted,
            rounding=self._rounding,
        )  # fmt: skip

    def _rounding_of_bound(self) -> float:
        """Return how far off the bound of the duals, as they are, may be; see the module."""
        program, n = self.program, self.program.n_splits + self._split.size + 4
        share = n * UNIT
        if self._tradeoff > 0 and program.n_uses:
            paid = np.add.reduceat(self._dual, self._use_starts[:-1])
            share += max(0.0, float((paid / self._price).max()) - 1.0) + n * UNIT
        return 2 * share * self._gains + 4 * UNIT * program.base_error

    def _offer(self, kept: Bools) -> None:
        """Keep a pruning if it is the best so far."""
        objective = self.program.objective(kept, self._tradeoff)
        if objective < self._objective:
            self._best, self._objective = kept, objective

    def _iterate(self, number: int) -> None:
        """Prune for the duals, improve the bound and the best pruning, and move the duals."""
        program = self.program
        value, kept = np.empty(program.n_splits), np.empty(program.n_splits, np.bool_)
        gain = prune_trees(program.parent, self._loss, self._split, self._dual, value, kept)
        bound = program.base_error - gain
        rounding = self._rounding_of_bound()
        self._n_idle = 0 if bound > self._bound else self._n_idle + 1
        if self._n_idle == _PATIENCE:
            self._relaxation, self._n_idle = self._relaxation / 2, 0
        if bound - rounding > self._bound - self._rounding:
            self._bound, self._rounding = bound, rounding
        n_kept = np.add.reduceat(kept[self._split], self._use_starts[:-1], dtype=np.int64)
        paid = _sum(np.where(n_kept > 0, self._price, 0.0))
        if program.base_error + self._loss[kept].sum() + paid < self._objective:
            self._offer(kept)
        if number % _LEVELS_EVERY == 0:
            self._offer(self._best_level())
        weight = max(1 / (number + 1), _LEAST_WEIGHT)
        # in this form, rounding puts no mean above the one of the split above
        self._mean = (1 - weight) * self._mean + weight * kept
        # The subgradient is whether each edge's split is kept, less the mean of that over its
        # use's edges, along which their sum does not change.
        squared = _sum(n_kept - n_kept * n_kept / self._n_edges)
        if squared > 0:
            step = self._relaxation * (self._objective - bound) / squared
            move_duals(self._use_starts, self._split, self._price, kept, step, self._dual)

    def _best_level(self) -> Bools:
        """Return the best of the prunings whose splits have at least some mean."""
        levels, level = np.unique(np.append(self._mean, 1.0), return_inverse=True)
        level = level[:-1]
        largest = np.zeros(self.program.n_uses, np.int64)
        if largest.size:
            largest = np.maximum.reduceat(level[self._split], self._use_starts[:-1])
        change = np.bincount(level, self._loss, levels.size)
        change += np.bincount(largest, self._price, levels.size)
        return level >= levels.size - 1 - change[::-1].cumsum().argmin()


def _sum(values: Floats) -> float:
    """Return a sum that is added up in order."""
    return float(np.append(0.0, values).cumsum()[-1])
