"""A forest pruned several times: the classifiers, and what each traded."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from bayescascade.report.numbers import cost_texts, significant_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Table, counted, warning
from bayescascade.report.printed import Printed

if TYPE_CHECKING:
    from bayescascade.methods.prunings.budget_prune import BudgetPrune

__all__ = ["PruningPath", "error_gap_text", "gap_text"]

_PROVED = 1e-6  # a relative gap that is a rounding error


@dataclass(frozen=True, slots=True, eq=False)
class PruningPath(Printed):
    """Prunings of one forest, from `BudgetPrune.path`; it is a sequence of fitted classifiers.

    Parameters
    ----------
    models : tuple of BudgetPrune
    interrupted : bool
        Whether Ctrl-C came before all were found.
    """

    models: "tuple[BudgetPrune, ...]"
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> "Iterator[BudgetPrune]":
        return iter(self.models)

    @overload
    def __getitem__(self, place: int) -> "BudgetPrune": ...
    @overload
    def __getitem__(self, place: slice) -> "PruningPath": ...
    def __getitem__(self, place: int | slice) -> "BudgetPrune | PruningPath":
        if isinstance(place, slice):
            return PruningPath(self.models[place], self.interrupted)
        return self.models[place]

    @property
    def tradeoffs(self) -> NDArray[np.float64]:
        """Error rate that a unit of cost is worth, (n_models,)."""
        return np.array([model.tradeoff_ for model in self.models])

    @property
    def budgets(self) -> NDArray[np.float64] | None:
        """The most that a row may cost on average, (n_models,); None if tradeoffs were given."""
        budgets = [model.budget for model in self.models]
        return None if None in budgets else np.array(budgets, np.float64)

    @property
    def objectives(self) -> NDArray[np.float64]:
        """Error + tradeoff x cost, (n_models,)."""
        return np.array([model.objective_ for model in self.models])

    @property
    def gaps(self) -> NDArray[np.float64]:
        """How much lower the objectives could be at most, relative to them, (n_models,)."""
        return np.array([model.duality_gap_ for model in self.models])

    @property
    def costs(self) -> NDArray[np.float64]:
        """Mean cost of a validation row, without the computation, (n_models,)."""
        return np.array([model.validation_cost_ for model in self.models])

    @property
    def errors(self) -> NDArray[np.float64]:
        """Mean error rate of the trees, each by itself, (n_models,).

        It is what is minimized, and not the error of the forest; see `cost_accuracy_curve`.
        """
        return np.array([model.program_.error(model.kept_) for model in self.models])

    @property
    def least_errors(self) -> NDArray[np.float64]:
        """What `errors` are proved not to be below within the budgets, (n_models,).

        Without budgets, for prunings that cost no more than these.
        """
        gaps = np.array([model.error_gap_ for model in self.models])
        least: NDArray[np.float64] = (self.errors - gaps).clip(min=0.0)
        return least

    def page(self) -> Page:
        """Return a table with a line for each pruning.

        ``cost`` is of a validation row on average, ``tree error`` the mean error rate of the trees,
        each by itself; ``gap`` says by what share the objective could be lower at most. Of budgets,
        ``at least`` is what the tree error of no pruning within the budget is below.
        """
        tradeoffs = [_number(one) for one in self.tradeoffs]
        n_splits = Numbers("splits", [f"{model.forest_.n_splits:,}" for model in self])
        columns = [
            Numbers("cost", cost_texts(self.costs.tolist())),
            Numbers("tree error", [_percentage(error) for error in self.errors]),
        ]
        if self.budgets is not None:
            least = Numbers("at least", [_percentage(error) for error in self.least_errors])
            columns += [least, n_splits, Numbers("tradeoff", tradeoffs)]
            table = Table([f"{budget:.12g}" for budget in self.budgets], columns, "budget")
        else:
            objectives = Numbers("objective", [_number(one) for one in self.objectives])
            gaps = Numbers("gap", [gap_text(gap).removeprefix("gap ") for gap in self.gaps])
            table = Table(tradeoffs, [*columns, n_splits, objectives, gaps], "tradeoff")
        heading = Heading([f"{counted(len(self), 'pruning')} of a forest"])
        told = "interrupted: those not found by then are missing"
        return (heading, *((warning(told),) if self.interrupted else ()), BLANK, table)


def gap_text(gap: float) -> str:
    """Return what a relative gap says: "optimal", or "gap 0.12 %"."""
    return "optimal" if gap < _PROVED else f"gap {100 * gap:.2g} %"


def error_gap_text(gap: float) -> str:
    """Return by how much an error rate may be above the best one: "optimal" if not at all."""
    if gap < _PROVED:
        return "optimal"
    return f"tree error at most {100 * gap:.2g} points above the best within it"


def _percentage(error: float) -> str:
    return f"{100 * max(error, 0.0):.2f} %"


def _number(value: float) -> str:
    return significant_text(math.log(value)) if value > 0 else "0"
