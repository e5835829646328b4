"""The tradeoff that rows decide on that nothing was fitted to: the one-standard-error rule.

A tradeoff is an error rate for a unit of cost, so that none suits all tables. Prunings are found at
tradeoffs that double, from where nothing but what is free is left down to where nearly everything
is. Of those whose error on other rows is within a standard error of the least one's, the cheapest
is chosen: what costs more errs less by no more than chance (Breiman and others, 1984, section 3.4).
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.base.watch import watch_in_use
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.forests.bags import out_of_bag, wrong_out_of_bag
from bayescascade.methods.forests.base import ForestClassifier
from bayescascade.methods.prunings.program import Pruning, PruningProgram

_LARGEST_SHARE = 0.99  # of the whole forest's cost, from which on a pruning is nearly all of it
_MOST_DOUBLINGS = 40

Bools = NDArray[np.bool_]


class _Solver(Protocol):
    def solve(self, tradeoff: float) -> Pruning:
        """Return the best pruning for a tradeoff."""


def wrong_elsewhere(model: Any, training: TrainingRows, fitted_to: str) -> Callable[[Bools], Bools]:
    """Return what says which rows, to which nothing was fitted, a pruning takes wrong.

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

    def wrong(kept: Bools) -> Bools:
        return wrong_out_of_bag(model._cut(kept), training.rows, training.labels, outside)

    return wrong


def _seen_by(forest: Any, fitted_to: str) -> str:
    """Return what was chosen by the labels of the validation rows; empty if nothing was."""
    if fitted_to == "validation":
        return 'errors="validation"'
    if isinstance(forest, ForestClassifier) and forest.may_know_validation_labels:
        return f"a {type(forest).__name__} that may be chosen by them"
    return ""


def choose_pruning(
    program: PruningProgram, solver: _Solver, wrong: Callable[[Bools], Bools]
) -> Pruning:
    """Return the pruning of a tradeoff that rows decide on; on Ctrl-C, the best one known by then.

    `wrong` says which rows, to which nothing was fitted, are classified wrongly, (n_rows,) bool.
    """
    found: list[tuple[float, float, float, Pruning]] = []
    for pruning in _prunings(program, solver):
        errs = wrong(pruning.kept)
        error = float(errs.sum() / max(1, errs.size))
        standard_error = float(np.sqrt(error * (1.0 - error) / max(1, errs.size)))
        found.append((program.cost(pruning.kept), error, standard_error, pruning))
        if pruning.interrupted or watch_in_use().is_over():
            break
    _, least, standard_error, _ = min(found, key=lambda one: one[1])
    good = [one for one in found if one[1] <= least + standard_error]
    return min(good, key=lambda one: one[:2])[3]


def _prunings(program: PruningProgram, solver: _Solver) -> Iterator[Pruning]:
    """Yield best prunings, from the whole forest's price downward, for tradeoffs that halve."""
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
