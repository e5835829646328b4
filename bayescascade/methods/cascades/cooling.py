"""How hot an annealing of trees starts: so that trees do not outgrow the rows.

The hotter a chain is, the less the density weighs beside the number of trees, most of which are
large. Where columns have many levels, hot trees have many times as many leaves as there are rows;
each step then takes longer, and cooling does not make up for the steps lost. A pilot chain tries
temperatures from the hottest down and keeps the first at which its tree has no more leaves than
there are distinct rows. No bound is put on trees: of tables with few rows and many cells the most
probable ones may have more leaves than rows.
"""

from typing import Protocol

import numpy as np

import samplers
from bayescascade.methods.cascades.tree import Tree
from bayescascade.model.search import SCHEDULE
from samplers.types import StepCounts

_TEMPERATURES = (SCHEDULE.initial_temperature, 1.0, 0.5)
_PASSES = 10  # of as many steps as there are distinct rows
_MOST_ROWS = 10_000  # of a pilot, which takes seconds; of more, trees seldom outgrow them


class Pilot(Protocol):
    """What takes the steps of a pilot; a `CascadePosterior` does."""

    def initial_state(self, rng: np.random.Generator) -> Tree:
        """Return a random tree."""

    def sweep(
        self, rng: np.random.Generator, state: Tree, n_steps: int, inverse_temperature: float
    ) -> tuple[Tree, StepCounts[Tree]]:
        """Take compiled steps."""


def cooling(pilot: Pilot, n_rows: int) -> samplers.GeometricSchedule:
    """Return the schedule of an annealing given `n_rows` distinct rows: always the same."""
    if not 0 < n_rows <= _MOST_ROWS:
        return SCHEDULE
    fits = (t for t in _TEMPERATURES[:-1] if not _outgrows(pilot, t, n_rows))
    initial = next(fits, _TEMPERATURES[-1])
    return samplers.GeometricSchedule(initial, SCHEDULE.final_temperature)


def _outgrows(pilot: Pilot, temperature: float, n_rows: int) -> bool:
    """Return whether a pilot chain comes to a tree of more leaves than rows."""
    rng = np.random.default_rng(0)
    tree = pilot.initial_state(rng)
    for _ in range(_PASSES):
        tree, _ = pilot.sweep(rng, tree, n_rows, 1.0 / temperature)
        if tree.n_leaves > n_rows:
            return True
    return False
