"""What a search returns, and what it reports on the way."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Progress", "Run"]

S = TypeVar("S")


class Progress(NamedTuple):
    """What a progress callback receives, about twice a second, in the calling process.

    Attributes
    ----------
    phase : str
        "annealing", "warmup" or "sampling".
    done : int
        Steps per chain taken so far, all phases and resumed steps included.
    total : int
        Steps per chain of the whole run.
    best_log_density : float, nats
        Highest log density that any chain has visited.
    log_density : float, nats
        Mean over the chains of the current state's log density (at inverse temperature 1).
    acceptance_rate : float in [0, 1]
        Share of the proposals accepted since the last report, all chains together.
    described : Mapping[str, float]
        Mean over the chains of the target's description of the current state; empty when the
        target has no `describe`.
    """

    phase: str
    done: int
    total: int
    best_log_density: float
    log_density: float
    acceptance_rate: float
    described: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run(Generic[S]):
    """Everything a search found.

    Two runs are equal when all their fields are, `seconds` aside: NaN equals NaN. A dataclass that
    extends it passes `eq=False` to keep that comparison.

    Attributes
    ----------
    method : str
        Name of the engine: "anneal", "metropolis" or "tempering".
    best_state : S
        The most probable state ever visited, warm-up and hot replicas included; the first of
        equals.
    best_log_density : float, nats
    traces : dict of str to (n_chains, n_draws) float64
        One value per draw: "log_density" of the state, nats; "acceptance_rate" since the draw
        before; and the target's description. Annealing has one value per temperature, and also
        "inverse_temperature" and "best_log_density" so far.
    draws : tuple of tuples of S
        The states kept, per chain; an empty tuple per chain for annealing or when states were
        not kept.
    final_states : tuple of S
        Where each chain ended (tempering: its replica at inverse temperature 1).
    proposed, accepted : dict of str to (n_chains, n_draws) int64
        How often each move was tried and accepted since the draw before, warm-up excluded
        (tempering: by the replica at inverse temperature 1).
    seconds : dict of str to float
        Wall-clock time that this process spent in each phase.
    interrupted : bool
        Whether the run was ended by Ctrl-C; everything else then describes the part completed.
    extras : dict
        What only one engine has. Tempering: "inverse_temperatures" (n_chains, n_temperatures)
        and "swap_acceptance" (n_chains, n_temperatures - 1), the share of the swaps tried
        between neighbors while sampling that were accepted, NaN where none was tried.
    """

    method: str
    best_state: S
    best_log_density: float
    traces: dict[str, npt.NDArray[np.float64]] = field(repr=False)
    draws: tuple[tuple[S, ...], ...] = field(repr=False)
    final_states: tuple[S, ...] = field(repr=False)
    proposed: dict[str, npt.NDArray[np.int64]] = field(repr=False)
    accepted: dict[str, npt.NDArray[np.int64]] = field(repr=False)
    seconds: dict[str, float] = field(compare=False)
    interrupted: bool
    # Any: engines and subclasses put what they like here
    extras: dict[str, Any] = field(repr=False)

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of each move's proposals that were accepted, all chains; NaN if never tried."""
        tried = {name: int(counts.sum()) for name, counts in self.proposed.items()}
        return {
            name: int(self.accepted[name].sum()) / tried[name] if tried[name] else math.nan
            for name in self.proposed
        }

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = [part.name for part in fields(self) if part.compare]
        return all(_is_same(getattr(self, name), getattr(other, name)) for name in compared)

    __hash__ = None  # type: ignore[assignment]  # it holds arrays


def _is_same(left: object, right: object) -> bool:
    """Compare nested containers of arrays and scalars; NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return all(map(_is_same, left.ravel().tolist(), right.ravel().tolist()))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return list(left) == list(right) and all(_is_same(left[key], right[key]) for key in left)
    if isinstance(left, tuple | list) and isinstance(right, Sequence):
        return len(left) == len(right) and all(map(_is_same, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)
