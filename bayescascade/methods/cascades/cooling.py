"""How hot an annealing of trees starts: so that trees do not outgrow the rows.

The hotter a chain is, the less the density weighs beside the number of trees, most of which are
large. Where columns have many levels, hot trees have many times as many leaves as there are rows;
each step then takes longer, and cooling does not make up for the steps lost. A pilot chain tries
temperatures from the hottest down and keeps the first at which its tree has no more leaves than
there are distinct rows. No bound is put on trees: of tables with few rows and many cells the most
probable ones may have more leaves than rows.
"""

from typing import TYPE_CHECKING

import numpy as np

import samplers
from bayescascade.model.search import SCHEDULE

if TYPE_CHECKING:
    from bayescascade.methods.cascades.posterior import CascadePosterior

__all__ = ["cooling"]

_TEMPERATURES = (SCHEDULE.initial_temperature, 1.0, 0.5)
_PASSES = 10  # of as many steps as there are distinct rows
_MOST_ROWS = 10_000  # of a pilot, which takes seconds; of more, trees seldom outgrow them


def cooling(posterior: "CascadePosterior") -> samplers.GeometricSchedule:
    """Return the schedule of an annealing; it depends on the table and the model alone.

    Of dependent leaves, whose steps are slow, and of many rows it is that of other models.
    """
    n_rows = posterior.table.n_distinct
    if not 0 < n_rows <= _MOST_ROWS or posterior.model.leaf == "dependent":
        return SCHEDULE
    fits = (t for t in _TEMPERATURES[:-1] if not _outgrows(posterior, t, n_rows))
    initial = next(fits, _TEMPERATURES[-1])
    return samplers.GeometricSchedule(initial, SCHEDULE.final_temperature)


def _outgrows(posterior: "CascadePosterior", temperature: float, n_rows: int) -> bool:
    """Return whether a pilot chain comes to a tree of more leaves than rows."""
    rng = np.random.default_rng(0)
    tree = posterior.initial_state(rng)
    for _ in range(_PASSES):
        tree, _ = posterior.sweep(rng, tree, n_rows, 1.0 / temperature)
        if tree.n_leaves > n_rows:
            return True
    return False
