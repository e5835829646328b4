"""The Gibbs posterior of prunings, weighted by how close to optimal they are.

`PruningProgram` has the objective, error + tradeoff x cost; this module is for the samplers.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real
from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.pruning.kernels import cutting
from bayescascade.methods.budget.pruning.program import PruningProgram
from bayescascade.model.compiled import CompiledPosterior
from bayescascade.model.draws import TraceLegend
from samplers.types import StepCounts

MOVE_WEIGHTS = {"redraw": 0.5, "switch": 0.5}
"""Probability of each move."""

_HOTTEST_START, _START_BLOCKS, _START_STEPS_PER_SPLIT = 4.0, 8, 4  # times the temperature, ...

_ROUNDING = 1e-12  # relative: rounding of the objective in a block of steps


@dataclass(frozen=True, slots=True, eq=False)
class KeptSplits:
    """A pruned forest as its kept splits, (n_splits,) bool, closed under parents."""

    kept: Flags

    @property
    def n_kept(self) -> int:
        """Number of kept splits."""
        return int(np.count_nonzero(self.kept))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types: the number of splits, and bytes of 8 splits, in hexadecimal."""
        return {"n_splits": self.kept.size, "kept": np.packbits(self.kept).tobytes().hex()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "KeptSplits":
        """Return the splits of `to_dict`; KeyError, TypeError or ValueError if invalid."""
        n_splits = int(record["n_splits"])
        packed = np.frombuffer(bytes.fromhex(record["kept"]), np.uint8)
        if n_splits < 0 or packed.size != (n_splits + 7) // 8:
            raise ValueError(f"kept must have {n_splits} bits, got {packed.size} bytes")
        return cls(np.unpackbits(packed, count=n_splits).astype(np.bool_))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeptSplits):
            return NotImplemented
        return np.array_equal(self.kept, other.kept)

    def __hash__(self) -> int:
        return hash(self.kept.tobytes())


class PruningPosterior(CompiledPosterior[KeptSplits]):
    """``exp(-objective / temperature)`` over the prunings of a forest.

    This is a Gibbs posterior: the objective is an error rate plus a price, not the likelihood of a
    generative model. Prunings closer to the optimum weigh more. The temperature is in the unit of
    the objective, an error rate: a pruning that is worse by `temperature` is e times less probable.
    If T trees are measured on N rows each, one more row that one tree gets wrong adds ``1 / (N T)``
    to the objective. A temperature of that size distinguishes prunings that differ by single rows.
    There are many slightly worse prunings, so typical draws are worse than the optimum by about
    ``temperature`` times the number of splits that are in doubt.

    Parameters
    ----------
    program : PruningProgram
    tradeoff : float >= 0
        Price of one unit of mean cost, as an error rate.
    temperature : float > 0
        An error rate; infinity makes all prunings equally probable.
    max_objective : float
        Prunings with a larger objective have density zero.
    best : (n_splits,) bool, optional
        A pruning within this bound, such as the best one. Chains start near it.
    items : CostItems, optional
        The items of the program. If they are given, draws record the items for which they pay.
    """

    moves_compiled: ClassVar[tuple[str, ...]] = cutting.MOVES
    tries: ClassVar[Mapping[str, float]] = MOVE_WEIGHTS
    _parameter_names: ClassVar[tuple[str, ...]] = ("tradeoff", "temperature", "max_objective")
    state_name: ClassVar[str] = "pruning"

    def __init__(
        self,
        program: PruningProgram,
        tradeoff: float,
        temperature: float,
        max_objective: float = math.inf,
        best: Flags | None = None,
        items: CostItems | None = None,
    ) -> None:
        if not isinstance(program, PruningProgram):
            given = type(program).__name__
            raise ParameterError(f"program must be a PruningProgram, model.program_, got {given}")
        self.program = program
        self.tradeoff = check_real("tradeoff", tradeoff, minimum=0.0)
        if temperature != math.inf:
            check_real("temperature", temperature, above=0.0)
        if max_objective != math.inf:
            check_real("max_objective", max_objective)
        self.temperature, self.max_objective = float(temperature), float(max_objective)
        self._best, self._items = best, () if items is None else tuple(items.names)

    # -- the contract ------------------------------------------------------------------------------

    def log_prior(self, state: KeptSplits) -> float:
        """Return 0, or -inf if the state is no pruning or its objective is above the maximum."""
        if not self.program.is_closed(state.kept):
            return -math.inf
        is_bounded = self.max_objective < math.inf
        if is_bounded and self._objective(state) > self.max_objective + self._margin:
            return -math.inf
        return 0.0

    def log_likelihood(self, state: KeptSplits) -> float:
        """Return ``-objective / temperature``, nats."""
        return -self._objective(state) / self.temperature

    def initial_state(self, rng: np.random.Generator) -> KeptSplits:
        """Return a random pruning, in which all splits have the same probability of being kept.

        The probability is random. With a `max_objective`, the state is `best` after heating and
        cooling within the bound.

        Raises
        ------
        ParameterError
            If there is a `max_objective` but no `best`; random prunings would exceed the maximum.
        """
        if self.max_objective < math.inf:
            if self._best is None:
                raise ParameterError(
                    "initial_states must be given, or best, for chains below a max_objective, "
                    "got None"
                )
            state = KeptSplits(self._best)
            for warmth in np.geomspace(_HOTTEST_START, 1.0, _START_BLOCKS):
                n_steps = _START_STEPS_PER_SPLIT * max(1, self.program.n_splits)
                state, _ = self.advance(rng, state, n_steps, 1 / warmth)
            return state
        kept = rng.random(self.program.n_splits) < rng.random()
        inner = self.program.parent >= 0
        while not self.program.is_closed(kept):  # at most as many times as the trees are deep
            kept[inner] &= kept[self.program.parent[inner]]
        return KeptSplits(kept)

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        diagnosed = ("objective", "cost", "n_splits")
        columns_of = self._items_of if self._items else None
        return TraceLegend(diagnosed=diagnosed, columns=self._items, columns_of=columns_of)

    def _items_of(self, state: KeptSplits) -> list[int]:
        items: list[int] = np.unique(self.program.use_item[self.program.used(state.kept)]).tolist()
        return items

    def describe(self, state: KeptSplits) -> Mapping[str, float]:
        """Return objective, error, cost, and numbers of kept splits and of trees with a split."""
        roots = self.program.parent < 0
        error, cost = self.program.error(state.kept), self.program.cost(state.kept)
        return {
            "objective": error + self.tradeoff * cost,
            "error": error,
            "cost": cost,
            "n_splits": float(state.n_kept),
            "n_trees": float(np.count_nonzero(state.kept[roots])),
        }

    def advance(
        self, rng: np.random.Generator, state: KeptSplits, n_steps: int, inverse_temperature: float
    ) -> tuple[KeptSplits, StepCounts[KeptSplits]]:
        """Run compiled steps for ``exp(inverse_temperature * log_density)``.

        `kernels.cutting` has the moves and their proof. The work of a step is proportional to the
        size of the subtrees that it draws again.
        """
        work = cutting.new_workspace(self.program.n_splits, self.program.n_uses)
        cutting.load(self._arrays, work, state.kept)
        counts = self.new_counts()
        best_kept = np.empty(self.program.n_splits, np.bool_)
        cutting.sweep(
            rng, self._arrays, work, n_steps, inverse_temperature / self.temperature,
            self.max_objective - self._objective(state), self._margin, self.tries["switch"],
            counts[0], counts[1], best_kept,
        )  # fmt: skip
        state, best = KeptSplits(work.kept), KeptSplits(best_kept)
        return state, self.step_counts(
            counts, self.log_density(state), best, self.log_density(best)
        )

    def encode_state(self, state: KeptSplits) -> object:
        """Return a pruning as JSON-ready data."""
        return state.to_dict()

    def _read_state(self, encoded: Any) -> KeptSplits:
        return KeptSplits.from_dict(encoded)

    def _problem(self, state: KeptSplits) -> str | None:
        if state.kept.size != self.program.n_splits:
            return f"it must be of {self.program.n_splits} splits, got {state.kept.size}"
        return None if self.program.is_closed(state.kept) else "it keeps a split below a cut"

    def _identity(self) -> tuple[list[Any], Iterable[ArrayLike]]:
        return [*self.parameters().values()], (np.float64(self.program.base_error), *self._arrays)

    def _objective(self, state: KeptSplits) -> float:
        return self.program.objective(state.kept, self.tradeoff)

    # -- arrays for kernels ------------------------------------------------------------------------

    @cached_property
    def _arrays(self) -> cutting.ProgramArrays:
        program = self.program
        starts, splits, shares = _groups(program)
        children, ends = _family(program.parent)
        return cutting.ProgramArrays(
            parent=program.parent,
            children=children,
            ends=ends,
            price=self.tradeoff * program.work - program.error_gain,
            use_price=self.tradeoff * program.use_cost,
            edge_starts=program.edge_starts,
            edge_use=program.edge_use,
            group_starts=starts,
            group_splits=splits,
            group_shares=shares,
        )

    @cached_property
    def _margin(self) -> float:
        everything = np.ones(self.program.n_splits, np.bool_)
        largest = self.program.base_error + self.tradeoff * self.program.cost(everything)
        return _ROUNDING * largest


def _family(parent: Codes) -> tuple[Codes, Integers]:
    """Return the child splits of each split and the end of its subtree; see `ProgramArrays`."""
    children = np.full((parent.size, 2), -1, np.int32)
    below = np.flatnonzero(parent >= 0)
    children[parent[below], 1] = below  # the last of two stays
    children[parent[below[::-1]], 0] = below[::-1]
    children[children[:, 0] == children[:, 1], 1] = -1
    lowest = children.max(axis=1)
    last = np.where(lowest < 0, np.arange(parent.size), lowest)
    while np.any(lowest[last] >= 0):
        last = last[last]
    return children, last + 1


def _groups(program: PruningProgram) -> tuple[Integers, Codes, Floats]:
    """Return for each split the splits that share a use with it, and their similarity.

    This is the cost of the shared uses, divided by the larger cost of the uses of either split.
    """
    shape = (program.n_splits, program.n_uses)
    asks = csr_array(
        (np.ones(program.edge_use.size), program.edge_use, program.edge_starts), shape=shape
    )
    shared = ((asks * program.use_cost) @ asks.T).tocsr()
    shared.sort_indices()
    total = shared.diagonal()
    each = np.repeat(total, np.diff(shared.indptr))
    shares = shared.data / np.maximum(each, total[shared.indices])
    return shared.indptr.astype(np.int64), shared.indices.astype(np.int32), shares
