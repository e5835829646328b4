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
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.watch import check_time
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

    def _unused(self) -> tuple[float, FlowNetwork, NDArray[np.int64]]:
        """Return a tradeoff of 0, a network without flow, and how much it lets out: nothing."""
        gain = np.zeros(self._starts.size - 1)
        gain[: self.program.n_splits] = self.program.error_gain
        residual, supply = np.where(self._is_unlimited, _UNLIMITED, 0), self._in_units(gain)
        room = np.zeros(gain.size, np.int64)
        arcs = (self._starts, self._head, self._reverse, residual)
        network = FlowNetwork(*arcs, supply, room)
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
