"""The size of an exact solution, counted before it starts."""

from dataclasses import dataclass, replace
from math import log, log10, prod
from typing import TYPE_CHECKING

import numpy as np

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.density.trees.exact.kernels.layout import UNION
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.recursion import Recursion
from bayescascade.methods.density.trees.exact.shared import Boxes, SharedBoxes
from bayescascade.methods.density.trees.models import LeafModel

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior

_FEWEST_LEAVES = 12
_LARGEST = 2.0**53  # beyond, adding one does not change a float
_MOST_SPLITS = 400 * log(2.0)  # log of the most splits of a box whose inverse is a float
_SOMEWHAT = 10  # times too large; beyond, no exact size is given
_MOST_TRIED = 5e8  # terms of boxes that are counted one by one, for an exact size

_SHORT, _DEARER = 1e7, 8  # terms of all boxes, half a second; how much cheaper others must be


@dataclass(frozen=True, slots=True)
class ExactCost:
    """The size of an exact solution. A term is a pair of parts made by a split."""

    n_boxes: int  # boxes to be evaluated
    n_terms: int  # bound for one pass over the boxes; solving takes two passes
    memory_bytes: int  # of all arrays
    max_leaves: int | None  # most leaves of a tree; None without a bound

    @classmethod
    def of(cls, posterior: "CascadePosterior", max_leaves: int | None = None) -> "ExactCost":
        """Return the cost of solving, computed in milliseconds; `max_leaves` as in `solve`."""
        return cls.of_plan(SearchPlan.of(posterior, first_cap(posterior, max_leaves)))

    @classmethod
    def of_plan(cls, plan: SearchPlan) -> "ExactCost":
        """Return the cost of a plan."""
        n_boxes = plan.count_index().n_entries
        max_leaves = plan.max_leaves if plan.shift == 1 else None
        return cls(n_boxes, plan.n_terms, plan.memory_bytes, max_leaves)

    @classmethod
    def of_shared(cls, shared: SharedBoxes) -> "ExactCost":
        """Return the cost of boxes that hold data."""
        return cls(shared.n_boxes, shared.n_terms, shared.memory_bytes, None)

    def fits(self, memory_limit: float, work_limit: float) -> bool:
        """Whether it fits into `memory_limit` bytes and `work_limit` terms."""
        return self.memory_bytes <= memory_limit and self.n_terms <= work_limit

    def words(self) -> str:
        """Return words such as "4,782,969 boxes, 77 MB, about 1.2e8 terms"."""
        n = self.n_boxes
        boxes = f"{n:,}" if n < 10**15 else _power_words(n)
        return (
            f"{boxes} boxes, {_byte_words(self.memory_bytes)}, "
            f"about {_power_words(self.n_terms)} terms"
        )


def first_cap(posterior: "CascadePosterior", max_leaves: int | None) -> int | None:
    """Return the first bound on leaves when solving; None for the branch model."""
    model = posterior.model
    if not isinstance(model, LeafModel):
        return None
    cap = model.max_leaves or max_leaves
    if cap is None:
        expected = 0.0 if model.is_generative else model.expected_leaves
        cap = max(_FEWEST_LEAVES, int(2 * expected))
    return min(cap, number_of_cells(posterior))


def number_of_cells(posterior: "CascadePosterior") -> int:
    """Return the number of cells of a table: no tree has more leaves."""
    return prod(posterior.schema.n_levels.tolist())


def check_magnitudes(posterior: "CascadePosterior") -> None:
    """Raise TooLargeError if weights or parameters are too large for floats to count rows."""
    model, total = posterior.model, float(posterior.table.weights.sum())
    if model.is_generative:
        log_splits = posterior.splits.log_most
        if log_splits > _MOST_SPLITS:
            rule = "fewer branches or levels"
            raise TooLargeError(
                f'max_branches must be smaller for an exact solution with prior "generative", got '
                f"1e{log_splits / log(10.0):.0f} splits of one box",
                rule,
            )
    rate = "expected_leaves" if isinstance(model, LeafModel) else "expected_branches"
    for name, number in (
        ("the sum of the weights", total),
        (rate, model.rate),
        ("concentration", model.concentration),
        ("leaf_concentration", model.leaf_concentration),
    ):
        if number > _LARGEST:
            rule = f"{name} of at most {_LARGEST:.1e}"
            raise TooLargeError(
                f"{name} must be at most {_LARGEST:.1e} for an exact solution, got {number:.1e}",
                rule,
            )


def check_fits(
    posterior: "CascadePosterior",
    plan: SearchPlan,
    memory_limit: float,
    work_limit: float,
    in_use: int = 0,
) -> ExactCost:
    """Return the cost of a plan in addition to `in_use` bytes, or raise TooLargeError."""
    cost = ExactCost.of_plan(plan)
    if cost.fits(memory_limit - in_use, work_limit):
        return cost
    shared = SharedBoxes.of(posterior, plan, _SOMEWHAT * memory_limit, _MOST_TRIED)
    if shared is not None:  # sufficient limits
        cost = ExactCost.of_shared(shared)
    cost = replace(cost, memory_bytes=cost.memory_bytes + in_use)

    limits = f"memory_limit, {_byte_words(memory_limit)}, and {_power_words(int(work_limit))} terms"

    why = ""
    if plan.shift == UNION:
        why = " (feature_inclusion ties all splits together: a sum for every set of columns)"
    smaller = ["fewer columns"]
    if isinstance(posterior.model, LeafModel):
        smaller.append("a smaller max_leaves")
    if plan.shift == UNION:
        smaller.append("feature_inclusion=None")
    if plan.partitions != "levels":
        smaller.append('partitions="levels"')
    raise TooLargeError(
        f"an exact solution must fit {limits}, got {cost.words()}{why}; less work: "
        f"{', '.join(smaller)}",
        cost.words(),
    )


def _power_words(n: int) -> str:
    """Return words such as "1.2e8", for integers of any size."""
    power = int(log10(max(n, 1)))
    return f"{10 ** (log10(max(n, 1)) - power):.1f}e{power}" if n >= 10_000 else f"{n:,}"


def _byte_words(n: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n = n / 1000 if n < 1e15 else int(n) // 1000  # integers may be too large for floats
    return f"{_power_words(int(n))} TB"


def cheapest_boxes(
    posterior: "CascadePosterior",
    plan: SearchPlan,
    memory_limit: float,
    work_limit: float,
    n_jobs: int | None,
    in_use: int = 0,
) -> tuple[ExactCost, Boxes]:
    """Return the cost of a pass and the boxes of a plan, counted; `in_use` in bytes.

    These are only boxes with data if all take far longer or do not fit; else all.
    """
    cost = ExactCost.of_plan(plan)
    fits = cost.fits(memory_limit - in_use, work_limit)
    if not fits or cost.n_terms > _SHORT:
        limit = min(work_limit, cost.n_terms / _DEARER if fits else np.inf)
        shared = SharedBoxes.of(posterior, plan, memory_limit - in_use, limit)
        if shared is not None:
            return ExactCost.of_shared(shared), shared
    cost = check_fits(posterior, plan, memory_limit, work_limit, in_use)
    return cost, Recursion.of(posterior, plan, n_jobs, memory_limit=memory_limit - in_use)
