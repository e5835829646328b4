"""Cooling schedules: how an annealing cycle goes from its initial to its final temperature.

At temperature T a chain is at log_density / T. A schedule is asked for the temperature of each
block in turn, and shown the log density at the end of each; what it remembers in between is plain
data that belongs to the chain, so a cycle can be interrupted and resumed exactly.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from samplers.errors import SamplerValueError
from samplers.parameters import check_integer, check_positive

__all__ = ["AdaptiveSchedule", "GeometricSchedule", "Schedule"]

MAX_PACE = 4.0  # an adaptive step is at most this many times longer or shorter than a uniform one


@runtime_checkable
class Schedule(Protocol):
    """A way to cool; a dataclass, so that a checkpoint can tell its settings."""

    def start(self) -> tuple[float, ...]:
        """Return the memory at the start of a cycle: finite numbers, always as many."""
        ...

    def temperature(self, memory: tuple[float, ...], block: int, n_blocks: int) -> float:
        """Return the temperature of a block, 0 <= `block` < `n_blocks`; > 0."""
        ...

    def observe(
        self, memory: tuple[float, ...], block: int, n_blocks: int, log_density: float
    ) -> tuple[float, ...]:
        """Return the memory after `block`, which ended at `log_density`."""
        ...


@dataclass(frozen=True, slots=True)
class GeometricSchedule:
    """Cool by the same factor from block to block.

    Parameters
    ----------
    initial_temperature, final_temperature : float > 0
        Temperatures of a cycle's first and last block; the final one may not be higher. A cycle
        of one block has the final temperature.
    """

    initial_temperature: float = 10.0
    final_temperature: float = 0.1

    def __post_init__(self) -> None:
        _check_temperatures(self.initial_temperature, self.final_temperature)

    def start(self) -> tuple[float, ...]:
        """Return an empty memory."""
        return ()

    def temperature(self, memory: tuple[float, ...], block: int, n_blocks: int) -> float:  # noqa: ARG002
        """Return initial^(1 - x) final^x, x being the share of the blocks before the last done."""
        if block == n_blocks - 1:
            return self.final_temperature
        ratio = self.final_temperature / self.initial_temperature
        return float(self.initial_temperature * ratio ** (block / (n_blocks - 1)))

    def observe(
        self,
        memory: tuple[float, ...],
        block: int,  # noqa: ARG002
        n_blocks: int,  # noqa: ARG002
        log_density: float,  # noqa: ARG002
    ) -> tuple[float, ...]:
        """Return the memory as it is."""
        return memory


@dataclass(frozen=True, slots=True)
class AdaptiveSchedule:
    """Cool slowly where the log density fluctuates most, at constant thermodynamic speed.

    Between temperatures T and T + dT lies a thermodynamic length of sd(T) dT / T^2, where sd(T)
    is the standard deviation of the log density at T (Salamon and Berry 1983). The schedule
    estimates it from the ends of recent blocks and gives every length the same time: the step in
    log T is uniform over what remains, times the mean of sd / T so far over sd / T now. The budget
    rules: the last block always has the final temperature.

    Parameters
    ----------
    initial_temperature, final_temperature : float > 0
        Temperatures of a cycle's first and last block; the final one may not be higher.
    n_remembered : int >= 2
        How many blocks the estimate of the standard deviation looks back.
    """

    initial_temperature: float = 10.0
    final_temperature: float = 0.1
    n_remembered: int = 30

    def __post_init__(self) -> None:
        _check_temperatures(self.initial_temperature, self.final_temperature)
        check_integer("n_remembered", self.n_remembered, 2)

    def start(self) -> tuple[float, ...]:
        """Return the memory of a cycle that has seen nothing."""
        return _Pace(math.log(self.initial_temperature), 0.0, 0.0, 0.0, 0.0)

    def temperature(self, memory: tuple[float, ...], block: int, n_blocks: int) -> float:
        """Return the temperature that the blocks before have led to."""
        if block == n_blocks - 1:
            return self.final_temperature
        return math.exp(_Pace(*memory).log_temperature)

    def observe(
        self, memory: tuple[float, ...], block: int, n_blocks: int, log_density: float
    ) -> tuple[float, ...]:
        """Return the memory with the temperature of the next block."""
        pace = _Pace(*memory)
        n_seen = pace.n_seen + 1.0
        rate = 1.0 / min(n_seen, self.n_remembered)
        deviation = log_density - pace.mean
        mean = pace.mean + rate * deviation
        variance = (1.0 - rate) * (pace.variance + rate * deviation**2)
        length = math.sqrt(variance) / math.exp(pace.log_temperature)  # per unit of log T
        mean_length = pace.mean_length + (length - pace.mean_length) / n_seen
        n_left = max(1, n_blocks - 1 - block)
        uniform = (pace.log_temperature - math.log(self.final_temperature)) / n_left
        log_temperature = pace.log_temperature - min(
            uniform * _ratio(mean_length, length), uniform * n_left
        )
        return _Pace(log_temperature, mean, variance, mean_length, n_seen)


class _Pace(NamedTuple):
    """What an adaptive cycle remembers; moments are of the log density at the ends of blocks."""

    log_temperature: float
    mean: float
    variance: float
    mean_length: float
    n_seen: float


def _ratio(mean_length: float, length: float) -> float:
    """Return how much longer than a uniform step the next one is."""
    if mean_length == 0.0:
        return 1.0
    if length * MAX_PACE <= mean_length:
        return MAX_PACE
    return max(mean_length / length, 1.0 / MAX_PACE)


def _check_temperatures(initial: float, final: float) -> None:
    initial = check_positive("initial_temperature", initial)
    if check_positive("final_temperature", final) > initial:
        raise SamplerValueError(
            f"final_temperature must be <= initial_temperature, {initial:g}, got {final:g}"
        )
