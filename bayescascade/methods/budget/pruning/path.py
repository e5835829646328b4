"""Several prunings of a forest: the classifiers, and their costs and errors.

A tradeoff is an error rate for a unit of cost, so no value suits all tables. Prunings are found for
a range of tradeoffs in steps of a factor 2, from prunings with only free splits to nearly the whole
forest. Among those with an error on held-out rows within a standard error of the smallest, the
cheapest is chosen: the smaller errors of more expensive ones may be chance (Breiman and others,
1984, section 3.4).
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.watch import watch_in_use
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.forests.bags import out_of_bag, wrong_out_of_bag
from bayescascade.methods.budget.forests.base import ForestClassifier
from bayescascade.methods.budget.pruning.program import Pruning, PruningProgram
from bayescascade.report.numbers import cost_texts, significant_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, PrintedTable, count_of, warning
from bayescascade.report.printed import Printed

P = TypeVar("P", bound=ForestClassifier)

_LARGEST_SHARE = 0.99  # of the whole forest's cost; larger prunings count as whole
_MOST_DOUBLINGS = 40


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
    def tradeoffs(self) -> Floats:
        """Error rate that a unit of cost is worth, (n_models,)."""
        return self._each("tradeoff_")

    @property
    def budgets(self) -> Floats | None:
        """Limit on the mean cost of a row, (n_models,); None if tradeoffs were given."""
        budgets = self._each("budget")
        return None if None in budgets.tolist() else budgets.astype(np.float64)

    @property
    def objectives(self) -> Floats:
        """Error + tradeoff x cost, (n_models,)."""
        return self._each("objective_")

    @property
    def gaps(self) -> Floats:
        """Proved bounds on how much lower objectives could be, as shares of them, (n_models,)."""
        return self._each("duality_gap_")

    @property
    def costs(self) -> Floats:
        """Mean cost of the features of a validation row, (n_models,)."""
        return self._each("validation_cost_")

    @property
    def errors(self) -> Floats:
        """Mean error rate of the single trees, (n_models,).

        This is minimized. It is not the error of the forest; for that, see `cost_accuracy_curve`.
        """
        return self._each("tree_error_")

    @property
    def least_errors(self) -> Floats:
        """Proved lower bounds on `errors` within the budgets, (n_models,).

        Without budgets, the bounds are for prunings that cost no more than these.
        """
        least: Floats = (self.errors - self._each("error_gap_")).clip(min=0.0)
        return least

    def _each(self, name: str) -> NDArray[Any]:
        return np.array([getattr(model, name) for model in self.models])

    def page(self) -> Page:
        """Return a table with a line for buying nothing, and a line for each pruning.

        ``cost`` is the mean cost of a validation row, and ``tree error`` the mean error rate of the
        single trees. ``gap`` is a bound on the share by which the objective could be lower. With
        budgets, ``lower bound`` is a bound on the tree error of all prunings within the budget.
        """
        nothing = [""] if len(self) else []  # cells of the line for buying nothing
        errors = [] if not len(self) else [self[0].program_.base_error, *self.errors]
        columns = [
            Numbers("cost", cost_texts([0.0] * len(nothing) + self.costs.tolist())),
            Numbers("tree error", [_percentage(error) for error in errors]),
        ]
        n_splits = Numbers("splits", nothing + [f"{model.forest_.n_splits:,}" for model in self])
        tradeoffs = [_number(tradeoff) for tradeoff in self.tradeoffs]
        if self.budgets is not None:
            least = [_percentage(error) for error in self.least_errors]
            columns += [Numbers("lower bound", nothing + least), n_splits]
            columns.append(Numbers("tradeoff", nothing + tradeoffs))
            labels, title = [f"{value:.12g}" for value in self.budgets], "budget"
        else:
            objectives = [_number(objective) for objective in self.objectives]
            gaps = [gap_text(gap, "{:.2g} %") for gap in self.gaps]
            columns += [n_splits, Numbers("objective", nothing + objectives)]
            columns.append(Numbers("gap", nothing + gaps))
            labels, title = tradeoffs, "tradeoff"
        table = PrintedTable(["nothing"] * len(nothing) + labels, columns, title)
        heading = Heading([f"{count_of(len(self), 'pruning')} of a forest"])
        text = "interrupted: only the finished prunings"
        warned = [text] if self.interrupted else []
        empty = [
            pruning for pruning in self if self.budgets is not None and pruning.nothing_read_text
        ]
        if empty:  # one warning for all
            warned.append(max(empty, key=attrgetter("budget")).nothing_read_text)
        return (heading, *map(warning, warned), BLANK, table)


def pruned_along(
    model: Any, name: str, wanted: Sequence[Any], find: Callable[[Any], Any]
) -> PruningPath[Any]:
    """Return prunings of a forest for ascending values of a parameter, until `interrupted`."""
    found: dict[Any, Any] = {}
    values, watch = sorted(set(wanted)), watch_in_use()
    for place, value in enumerate(values):
        with watch.part(0.5 if place + 1 < len(values) else 1.0):  # the first finds the most
            what = find(value)
            if getattr(what, "interrupted", False) and watch.left > 0.0:  # by Ctrl-C
                break
            pruned = copy.copy(model)
            pruned.set_params(**{"budget": None, name: value})
            pruned._take(what)
            try:
                pruned._compare(what)
            except KeyboardInterrupt:
                break
            found[value] = pruned
    if wanted and not found:
        raise KeyboardInterrupt
    models = tuple(found[value] for value in wanted if value in found)
    return PruningPath(models, len(found) < len(set(wanted)))


def gap_text(gap: float, words: str) -> str:
    """Return words with a gap in percent, or "optimal" for a gap of 0, which is a proof."""
    return "optimal" if gap == 0.0 else words.format(100 * gap)


def _percentage(error: float) -> str:
    return f"{100 * max(error, 0.0):.2f} %"


def _number(value: float) -> str:
    return significant_text(math.log(value)) if value > 0 else "0"


class _Solver(Protocol):
    def solve(self, tradeoff: float) -> Pruning:
        """Return the best pruning for a tradeoff."""


def wrong_elsewhere(model: Any, training: TrainingRows, fitted_to: str) -> Callable[[Flags], Flags]:
    """Return a function of a pruning that returns which held-out rows are classified wrongly.

    `fitted_to` are the rows that prunings are fitted to: "in_bag", "out_of_bag" or "validation".
    Raises ParameterError if no rows can decide.
    """
    labels = training.validation_labels
    seen_by = _seen_by(model.estimator_, fitted_to)
    if labels is not None and not seen_by:
        rows = training.validation_rows
        return lambda kept: model._pruned(kept).predict_proba(rows).argmax(axis=1) != labels
    if fitted_to == "out_of_bag":
        raise ParameterError(
            'with errors="out_of_bag", tradeoff, budget, or y_val for rows that were not used to '
            f"fit the forest must be given, got {'None' if labels is None else seen_by}"
        )
    without = "y_val" if labels is None else f"other rows than y_val, of {seen_by},"
    outside = out_of_bag(
        model.estimator_, len(training.rows), f"tradeoff=None without {without} or a budget"
    )

    def wrong(kept: Flags) -> Flags:
        return wrong_out_of_bag(model._cut(kept), training.rows, training.labels, outside)

    return wrong


def _seen_by(forest: Any, fitted_to: str) -> str:
    """Return what the labels of the validation rows were used for; otherwise empty."""
    if fitted_to == "validation":
        return 'errors="validation"'
    if isinstance(forest, ForestClassifier) and forest.may_know_validation_labels:
        return f"a {type(forest).__name__} that may be chosen by them"
    return ""


def choose_pruning(
    program: PruningProgram, solver: _Solver, wrong: Callable[[Flags], Flags]
) -> Pruning:
    """Return the pruning whose tradeoff is best on held-out rows; on Ctrl-C, the best one so far.

    `wrong` returns which held-out rows are classified wrongly, (n_rows,) bool.
    """
    found: list[tuple[float, float, float, Pruning]] = []
    for pruning in _prunings(program, solver):
        errs = wrong(pruning.kept)
        error = float(errs.sum() / max(1, errs.size))
        standard_error = float(np.sqrt(error * (1.0 - error) / max(1, errs.size)))
        found.append((program.cost(pruning.kept), error, standard_error, pruning))
        if pruning.interrupted or watch_in_use().is_over():
            break
    _, least, standard_error, _ = min(found, key=lambda pruning: pruning[1])
    good = [pruning for pruning in found if pruning[1] <= least + standard_error]
    return min(good, key=lambda pruning: pruning[:2])[3]


def _prunings(program: PruningProgram, solver: _Solver) -> Iterator[Pruning]:
    """Yield best prunings for halved tradeoffs, from empty ones to the whole forest."""
    everything = program.cost(np.ones(program.n_splits, np.bool_))
    if everything == 0.0:
        yield solver.solve(0.0)
        return
    tradeoff = 1.0 / everything
    while program.cost(solver.solve(tradeoff).kept) > 0.0 and tradeoff * everything < 2.0**20:
        tradeoff *= 2.0
    for _ in range(_MOST_DOUBLINGS):
        pruning = solver.solve(tradeoff)
        yield pruning
        if program.cost(pruning.kept) >= _LARGEST_SHARE * everything:
            return
        tradeoff /= 2.0
