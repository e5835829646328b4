"""How the steps of a chain are divided into phases, and these into blocks."""

import math
from dataclasses import dataclass

from samplers.parameters import check_fraction, check_integer

__all__ = ["Phase", "Plan", "sampling_plan"]


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a run: `n_steps` steps per chain divided into `n_blocks` even blocks."""

    name: str
    n_steps: int
    n_blocks: int
    is_traced: bool

    def steps_before(self, block: int) -> int:
        """Return how many of the phase's steps precede its block number `block`."""
        return block * self.n_steps // self.n_blocks


@dataclass(frozen=True, slots=True)
class Plan:
    """All phases of a run, in order."""

    phases: tuple[Phase, ...]

    @property
    def n_blocks(self) -> int:
        """Number of blocks per chain."""
        return sum(phase.n_blocks for phase in self.phases)

    @property
    def n_steps(self) -> int:
        """Number of steps per chain."""
        return sum(phase.n_steps for phase in self.phases)

    def locate(self, block: int) -> tuple[int, int]:
        """Return the index of the phase that `block` lies in, and the block's number there."""
        for index, phase in enumerate(self.phases):
            if block < phase.n_blocks:
                return index, block
            block -= phase.n_blocks
        raise IndexError("block is beyond the end of the plan")

    def n_steps_of(self, block: int) -> int:
        """Return how many steps `block` has."""
        index, number = self.locate(block)
        phase = self.phases[index]
        return phase.steps_before(number + 1) - phase.steps_before(number)

    def steps_before(self, block: int) -> int:
        """Return how many of all steps precede `block`, which may be the plan's end."""
        if block == self.n_blocks:
            return self.n_steps
        index, number = self.locate(block)
        earlier = sum(phase.n_steps for phase in self.phases[:index])
        return earlier + self.phases[index].steps_before(number)

    def n_traced_before(self, block: int) -> int:
        """Return how many of the blocks before `block` leave a record."""
        n_traced = 0
        for phase in self.phases:
            n_inside = min(max(block, 0), phase.n_blocks)
            n_traced += n_inside if phase.is_traced else 0
            block -= phase.n_blocks
        return n_traced


def sampling_plan(n_steps: int, warmup: float, n_draws: int) -> Plan:
    """Return the blocks of a warm-up followed by one block for each draw."""
    n_steps = check_integer("n_steps", n_steps, 1)
    n_draws = check_integer("n_draws", n_draws, 1)
    n_sampling = n_steps - int(check_fraction("warmup", warmup) * n_steps)
    thin = max(1, n_sampling // n_draws)
    n_draws = min(n_draws, n_sampling)
    n_warmup = n_steps - n_draws * thin
    sampling = Phase("sampling", n_draws * thin, n_draws, is_traced=True)
    if n_warmup == 0:
        return Plan((sampling,))
    return Plan((Phase("warmup", n_warmup, math.ceil(n_warmup / thin), is_traced=False), sampling))
