"""A forest pruned several times: the classifiers, and what each traded."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.methods.forests.base import ForestClassifier
from bayescascade.report.numbers import cost_texts, significant_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, PrintedTable, count_of, warning
from bayescascade.report.printed import Printed

P = TypeVar("P", bound=ForestClassifier)


@dataclass(frozen=True, slots=True, eq=False)
class PruningPath(Printed, Generic[P]):
    """Prunings of one forest, from `BudgetPruneClassifier.path`: a sequence of fitted classifiers.

    Parameters
    ----------
    models : tuple of classifiers
    interrupted : bool
        Whether Ctrl-C ended the search before all prunings were finished.
    """

    models: tuple[P, ...]
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[P]:
        return iter(self.models)

    @overload
    def __getitem__(self, place: int) -> P: ...
    @overload
    def __getitem__(self, place: slice) -> "PruningPath[P]": ...
    def __getitem__(self, place: int | slice) -> "P | PruningPath[P]":
        if isinstance(place, slice):
            return replace(self, models=self.models[place])
        return self.models[place]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pruning, with the budget, if any, and the properties of this class."""
        budgets, forests = self.budgets, [model.forest_ for model in self.models]
        columns: dict[str, Any] = {} if budgets is None else {"budget": budgets}
        columns |= {
            "tradeoff": self.tradeoffs,
            "cost": self.costs,
            "n_trees": [forest.n_trees for forest in forests],
            "n_splits": [forest.n_splits for forest in forests],
            "tree_error": self.errors,
            "least_error": self.least_errors,
            "objective": self.objectives,
            "gap": self.gaps,
        }
        return pd.DataFrame(columns)

    @property
    def tradeoffs(self) -> NDArray[np.float64]:
        """Error rate that a unit of cost is worth, (n_models,)."""
        return self._each("tradeoff_")

    @property
    def budgets(self) -> NDArray[np.float64] | None:
        """Limit on the mean cost of a row, (n_models,); None if tradeoffs were given."""
        budgets = self._each("budget")
        return None if None in budgets.tolist() else budgets.astype(np.float64)

    @property
    def objectives(self) -> NDArray[np.float64]:
        """Error + tradeoff x cost, (n_models,)."""
        return self._each("objective_")

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Proved bounds on how much lower objectives could be, as shares of them, (n_models,)."""
        return self._each("duality_gap_")

    @property
    def costs(self) -> NDArray[np.float64]:
        """Mean cost of the features of a validation row, (n_models,)."""
        return self._each("validation_cost_")

    @property
    def errors(self) -> NDArray[np.float64]:
        """Mean error rate of the single trees, (n_models,).

        This is minimized. It is not the error of the forest; for that, see `cost_accuracy_curve`.
        """
        return self._each("tree_error_")

    @property
    def least_errors(self) -> NDArray[np.float64]:
        """Proved lower bounds on `errors` within the budgets, (n_models,).

        Without budgets, the bounds are for prunings that cost no more than these.
        """
        least: NDArray[np.float64] = (self.errors - self._each("error_gap_")).clip(min=0.0)
        return least

    def _each(self, name: str) -> NDArray[Any]:
        return np.array([getattr(model, name) for model in self.models])

    def page(self) -> Page:
        """Return a table with a line for buying nothing, and a line for each pruning.

        ``cost`` is the mean cost of a validation row, and ``tree error`` the mean error rate of the
        single trees. ``gap`` is a bound on the share by which the objective could be lower. With
        budgets, ``lower bound`` is a bound on the tree error of all prunings within the budget.
        """
        nothing = [""] if len(self) else []  # cells of the line of nothing
        errors = [] if not len(self) else [self[0].program_.base_error, *self.errors]
        columns = [
            Numbers("cost", cost_texts([0.0] * len(nothing) + self.costs.tolist())),
            Numbers("tree error", [_percentage(error) for error in errors]),
        ]
        n_splits = Numbers("splits", nothing + [f"{model.forest_.n_splits:,}" for model in self])
        tradeoffs = [_number(one) for one in self.tradeoffs]
        if self.budgets is not None:
            least = [_percentage(error) for error in self.least_errors]
            columns += [Numbers("lower bound", nothing + least), n_splits]
            columns.append(Numbers("tradeoff", nothing + tradeoffs))
            labels, title = [f"{value:.12g}" for value in self.budgets], "budget"
        else:
            objectives = [_number(one) for one in self.objectives]
            gaps = [gap_text(gap, "{:.2g} %") for gap in self.gaps]
            columns += [n_splits, Numbers("objective", nothing + objectives)]
            columns.append(Numbers("gap", nothing + gaps))
            labels, title = tradeoffs, "tradeoff"
        table = PrintedTable(["nothing"] * len(nothing) + labels, columns, title)
        heading = Heading([f"{count_of(len(self), 'pruning')} of a forest"])
        told = "interrupted: only the finished prunings"
        warned = [told] if self.interrupted else []
        empty = [one for one in self if self.budgets is not None and one.nothing_read_text]
        if empty:  # one line for all
            warned.append(max(empty, key=attrgetter("budget")).nothing_read_text)
        return (heading, *map(warning, warned), BLANK, table)


def pruned_along(
    model: Any, name: str, wanted: Sequence[Any], find: Callable[[Any], Any]
) -> PruningPath[Any]:
    """Return a forest pruned for values of a parameter, ascending, up to what was `interrupted`."""
    found: dict[Any, Any] = {}
    for value in sorted(set(wanted)):
        what = find(value)
        if getattr(what, "interrupted", False):
            break
        found[value] = pruned = copy.copy(model)
        pruned.set_params(**{"budget": None, name: value})
        pruned._take(what)
        try:
            pruned._compare(what)
        except KeyboardInterrupt:
            del found[value]
            break
    if wanted and not found:
        raise KeyboardInterrupt
    models = tuple(found[value] for value in wanted if value in found)
    return PruningPath(models, len(found) < len(set(wanted)))


def gap_text(gap: float, words: str) -> str:
    """Return words with a share in percent, or "optimal" of a gap of 0, which is a proof."""
    return "optimal" if gap == 0.0 else words.format(100 * gap)


def _percentage(error: float) -> str:
    return f"{100 * max(error, 0.0):.2f} %"


def _number(value: float) -> str:
    return significant_text(math.log(value)) if value > 0 else "0"
