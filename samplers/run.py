"""The reports of a search in progress, `Progress`, and its result, `Run`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

S = TypeVar("S")


class Progress(NamedTuple):
    """The argument of a progress callback, about twice a second, in the calling process.

    Attributes
    ----------
    phase : str
        "annealing", "warmup", "sampling", or "round 2", "round 3", .. of sampling.
    done : int
        Steps per chain so far, including all phases and resumed steps.
    total : int
        Steps per chain of the whole run, or until this round of it ends.
    best_log_density : float, nats
        Highest log density that any chain has visited.
    log_density : float, nats
        Mean over the chains of the current state's log density (at inverse temperature 1).
    acceptance_rate : float in [0, 1]
        Share of the proposals accepted since the last report, over all chains.
    described : Mapping[str, float]
        Mean over the chains of the target's description of the current state; empty if the target
        has no `describe`.
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
    """The result of a search.

    Two runs are equal if all their fields except `seconds` are equal; NaN equals NaN. A dataclass
    that extends it must pass `eq=False` to keep this comparison.

    Attributes
    ----------
    method : str
        Name of the engine: "anneal", "langevin", "metropolis" or "tempering".
    best_state : S
        The most probable visited state, including warm-up and hot replicas; the first among ties.
    best_log_density : float, nats
    traces : dict of str to (n_chains, n_draws) float64
        One value per draw: "log_density" of the state, nats; "acceptance_rate" since the previous
        draw; and the target's description. Annealing has one value per temperature, and also
        "inverse_temperature" and "best_log_density" so far. After several rounds, traces, draws and
        acceptance are those of the last complete round.
    draws : tuple of tuples of S
        The kept states of each chain; an empty tuple per chain for annealing or if states were not
        kept.
    final_states : tuple of S
        Last state of each chain (tempering: of its replica at inverse temperature 1).
    proposed, accepted : dict of str to (n_chains, n_draws) int64
        Number of times each move was tried and accepted since the previous draw, without warm-up
        (tempering: by the replica at inverse temperature 1).
    seconds : dict of str to float
        Wall-clock time of this process in each phase.
    interrupted : bool
        Whether Ctrl-C ended the run. If so, all other fields describe the completed part.
    timed_out : bool
        Whether the time limit ended the run, in the same way.
    extras : dict
        "n_rounds" if there were several, and fields of specific engines. Langevin: "step_sizes"
        (n_chains,) and "scales" (n_chains, d). Tempering: "inverse_temperatures" (n_chains,
        n_temperatures) and "swap_acceptance" (n_chains, n_temperatures - 1), the share of accepted
        swaps between neighbors during sampling, NaN if none was tried.
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
    # Any: engines and subclasses may put anything here
    extras: dict[str, Any] = field(repr=False)
    timed_out: bool = field(default=False, repr=False)

    @property
    def is_partial(self) -> bool:
        """Whether the run ended early, by Ctrl-C or by its time limit."""
        return self.interrupted or self.timed_out

    @property
    def acceptance(self) -> dict[str, float]:
        """Acceptance rate of each move over all chains; NaN if it was never tried."""
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
