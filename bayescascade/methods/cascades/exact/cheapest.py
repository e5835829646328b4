"""Which boxes a posterior with one entry a box is summed over: all, or those that hold data."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayescascade.methods.cascades.exact.cost import ExactCost, check_fits
from bayescascade.methods.cascades.exact.held import HeldBoxes
from bayescascade.methods.cascades.exact.plan import Plan
from bayescascade.methods.cascades.exact.recursion import Recursion
from bayescascade.methods.cascades.exact.scratch import Scratch

if TYPE_CHECKING:
    from bayescascade.methods.cascades.posterior import CascadePosterior

_SHORT, _DEARER = 1e7, 8  # terms of all boxes, half a second; and how much less others must take


def cheapest_boxes(
    posterior: "CascadePosterior",
    plan: Plan,
    memory_limit: float,
    work_limit: float,
    n_jobs: int | None,
    in_use: int = 0,
    scratch: str | Path | None = None,
) -> tuple[ExactCost, Recursion | HeldBoxes]:
    """Return the cost of a pass and the boxes of a plan, counted; `in_use` in bytes.

    The boxes are those that hold data if all boxes take long and far longer, or more than is
    allowed; if those do not fit either, all boxes in files in `scratch`, if given. If nothing fits,
    it raises TooLargeError, whose message says what would fit.
    """
    cost = ExactCost.of_plan(plan)
    fits = cost.fits(memory_limit - in_use, work_limit)
    if not fits or cost.n_terms > _SHORT:
        limit = min(work_limit, cost.n_terms / _DEARER if fits else np.inf)
        held = HeldBoxes.of(posterior, plan, memory_limit - in_use, limit)
        if held is not None:
            return ExactCost.of_held(held), held
    on_disk = ExactCost.of_plan(plan, on_disk=True)
    if not fits and scratch is not None and on_disk.fits(memory_limit - in_use, work_limit):
        return on_disk, Recursion.of(posterior, plan, n_jobs, Scratch(scratch))
    cost = check_fits(posterior, plan, memory_limit, work_limit, in_use)
    return cost, Recursion.of(posterior, plan, n_jobs, memory_limit=memory_limit - in_use)
