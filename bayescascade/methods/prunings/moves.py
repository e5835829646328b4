"""Proposals on prunings, in plain Python: each with its Hastings ratio and a full listing.

The *tips* of a pruning are its kept splits without a kept split below them: those that can be cut.
Its *buds* are the splits that are not kept though all above them are: those that can be put back.
The compiled sweep makes the same proposals with the same probabilities.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.prunings.kept_splits import KeptSplits
from samplers.types import Proposal

if TYPE_CHECKING:
    from bayescascade.methods.prunings.program import PruningProgram

__all__ = ["MOVE_CLASSES", "Cut", "PruningMove", "Slide", "Uncut"]


class PruningMove(ABC):
    """A way to change a pruning; `proposals` lists every outcome with its probability."""

    def __init__(self, program: "PruningProgram") -> None:
        self._parent = program.parent

    @abstractmethod
    def propose(self, rng: np.random.Generator, state: KeptSplits) -> Proposal[KeptSplits]:
        """Return a proposal drawn with `rng`."""

    @abstractmethod
    def proposals(self, state: KeptSplits) -> Sequence[tuple[Proposal[KeptSplits], float]]:
        """Return every proposal with its probability; the probabilities sum to one."""

    def tips(self, state: KeptSplits) -> NDArray[np.intp]:
        """Return the kept splits without a kept split below them, ascending."""
        is_tip = state.kept.copy()
        above = self._parent[state.kept]
        is_tip[above[above >= 0]] = False
        return np.flatnonzero(is_tip)

    def buds(self, state: KeptSplits) -> NDArray[np.intp]:
        """Return the splits that are not kept though all above them are, ascending."""
        is_open = (self._parent < 0) | state.kept[self._parent]
        return np.flatnonzero(is_open & ~state.kept)


def _invalid(state: KeptSplits) -> Proposal[KeptSplits]:
    return Proposal(state, -math.inf)


class Cut(PruningMove):
    """Stop keeping a tip, any of them; the reverse of `Uncut`."""

    def propose(self, rng: np.random.Generator, state: KeptSplits) -> Proposal[KeptSplits]:
        """Return a proposal drawn with `rng`."""
        tips = self.tips(state)
        if not tips.size:
            return _invalid(state)
        return self._at(state, int(tips[rng.integers(tips.size)]), tips.size)

    def proposals(self, state: KeptSplits) -> Sequence[tuple[Proposal[KeptSplits], float]]:
        """Return every proposal with its probability."""
        tips = self.tips(state)
        if not tips.size:
            return [(_invalid(state), 1.0)]
        return [(self._at(state, tip, tips.size), 1 / tips.size) for tip in tips.tolist()]

    def _at(self, state: KeptSplits, tip: int, n_tips: int) -> Proposal[KeptSplits]:
        cut = state.with_split(tip, False)
        return Proposal(cut, math.log(n_tips) - math.log(self.buds(cut).size))


class Uncut(PruningMove):
    """Keep a bud, any of them; the reverse of `Cut`."""

    def propose(self, rng: np.random.Generator, state: KeptSplits) -> Proposal[KeptSplits]:
        """Return a proposal drawn with `rng`."""
        buds = self.buds(state)
        if not buds.size:
            return _invalid(state)
        return self._at(state, int(buds[rng.integers(buds.size)]), buds.size)

    def proposals(self, state: KeptSplits) -> Sequence[tuple[Proposal[KeptSplits], float]]:
        """Return every proposal with its probability."""
        buds = self.buds(state)
        if not buds.size:
            return [(_invalid(state), 1.0)]
        return [(self._at(state, bud, buds.size), 1 / buds.size) for bud in buds.tolist()]

    def _at(self, state: KeptSplits, bud: int, n_buds: int) -> Proposal[KeptSplits]:
        uncut = state.with_split(bud, True)
        return Proposal(uncut, math.log(n_buds) - math.log(self.tips(uncut).size))


class Slide(PruningMove):
    """Cut any tip, then keep any bud but the split just cut: a cut goes from one place to another.

    The way back makes the same choices in between: from the same pruning without either split it
    keeps the one, where this kept the other, of as many buds. What remains of the ratio is how many
    tips there are to begin with.
    """

    def propose(self, rng: np.random.Generator, state: KeptSplits) -> Proposal[KeptSplits]:
        """Return a proposal drawn with `rng`."""
        tips = self.tips(state)
        if not tips.size:
            return _invalid(state)
        tip = int(tips[rng.integers(tips.size)])
        others = self._others(state, tip)
        if not others:
            return _invalid(state)
        return self._at(state, tip, others[int(rng.integers(len(others)))], tips.size)

    def proposals(self, state: KeptSplits) -> Sequence[tuple[Proposal[KeptSplits], float]]:
        """Return every proposal with its probability."""
        return list(self._listed(state)) or [(_invalid(state), 1.0)]

    def _listed(self, state: KeptSplits) -> Iterator[tuple[Proposal[KeptSplits], float]]:
        tips = self.tips(state)
        for tip in tips.tolist():
            others = self._others(state, tip)
            if not others:
                yield _invalid(state), 1 / tips.size
            for bud in others:
                yield self._at(state, tip, bud, tips.size), 1 / tips.size / len(others)

    def _others(self, state: KeptSplits, tip: int) -> list[int]:
        buds: list[int] = self.buds(state.with_split(tip, False)).tolist()
        buds.remove(tip)
        return buds

    def _at(self, state: KeptSplits, tip: int, bud: int, n_tips: int) -> Proposal[KeptSplits]:
        slid = state.with_split(tip, False).with_split(bud, True)
        return Proposal(slid, math.log(n_tips) - math.log(self.tips(slid).size))


MOVE_CLASSES: dict[str, type[PruningMove]] = {"cut": Cut, "uncut": Uncut, "slide": Slide}
