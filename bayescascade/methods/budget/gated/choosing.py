"""The trial of a fit, and the gate, local model and cut of least error within a budget.

P_full limits the mean of q, not the share of rows whose gate is above 0, so the cut is chosen, too.
Rows with a gate above the cut are sent. For each fit, all cuts that divide the rows are tried, and
a cut is kept if no cheaper one of the fit has as small an error.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import Watch
from bayescascade.costs.choice import weighted_mean
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.costs.within_budgets import candidates_in_time
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.labels import TrainingRows
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.budget.gated.boosted import BoostedFit
from bayescascade.methods.budget.gated.full import FullModel
from bayescascade.methods.budget.gated.gated import Gated, Scores
from bayescascade.methods.budget.gated.selecting import Fit


class GateValidation(NamedTuple):
    """Validation rows, where the full model errs on them, and which features it reads.

    learns (n_training_rows,): which training rows are learned from.
    """

    rows: Matrix
    labels: Integers
    weights: Floats
    words: str
    learns: Flags
    full_wrong: Flags
    full_used: Flags


@dataclass(frozen=True, slots=True, eq=False)
class ScoredGate:
    """A candidate: gate, local model and cut, with error and cost on validation rows."""

    fit: Fit | BoostedFit
    cut: float  # the gate sends rows with a score above it
    error: float
    cost: float  # mean per row
    sent_share: float  # share of rows sent to the full model


def scored(
    fit: Fit | BoostedFit,
    model: Gated,
    validation: GateValidation,
    items: CostItems,
    cut: float | None,
) -> list[ScoredGate]:
    """Return a fit with its useful cuts, the cheapest first, or with a given cut."""
    if cut is not None:
        at = replace(model, cut=cut)
        sent, used = at.sent(validation.rows), at.kept_used(validation.rows)
        used[sent] = (validation.full_used | at.gate_used(validation.rows))[sent]
        wrong = np.where(sent, validation.full_wrong, _local_wrong(model, validation))
        cost = float(_cost(used, items).mean())
        error = weighted_mean(wrong, validation.weights)
        return [ScoredGate(fit, cut, error, cost, float(sent.mean()))]
    scores, n = model.scores(validation.rows), len(validation.rows)
    order = np.argsort(-scores, kind="stable")
    between = replace(model, cut=0.0)
    kept_costs = _cost(between.kept_used(validation.rows), items)[order]
    sent_costs = _cost(validation.full_used | between.gate_used(validation.rows), items)[order]
    weights = validation.weights if validation.weights.any() else np.ones(n)
    local_wrong = (_local_wrong(model, validation) * weights)[order]
    full_wrong = (validation.full_wrong * weights)[order]
    errors = (local_wrong.sum() + np.cumsum([0.0, *(full_wrong - local_wrong)])) / weights.sum()
    costs = (kept_costs.sum() + np.cumsum([0.0, *(sent_costs - kept_costs)])) / n
    ranked = scores[order]
    cuts = np.array([np.inf, *(0.5 * (ranked[:-1] + ranked[1:])), -np.inf])
    divides = np.array([True, *(ranked[:-1] > cuts[1:-1]), True])
    costs[0] = _cost(model.kept_used(validation.rows), items).mean()  # without the cost of the gate
    costs[-1] = _cost(validation.full_used, items).mean()
    places = _worth(costs, errors, np.flatnonzero(divides))
    return [
        ScoredGate(fit, float(cuts[k]), float(errors[k]), float(costs[k]), k / n) for k in places
    ]


def best_within(
    tried: Iterable[ScoredGate], budget: float | None, price: float
) -> ScoredGate | None:
    """Return the fit with the least error + price cost within a budget, the cheapest among ties."""
    possible = [gate for gate in tried if budget is None or is_within(gate.cost, budget)]
    if not possible:
        return None
    return min(possible, key=lambda gate: (gate.error + price * gate.cost, gate.cost))


def _local_wrong(model: Gated, validation: GateValidation) -> Flags:
    wrong: Flags = model.local_chances(validation.rows).argmax(axis=1) != validation.labels
    return wrong


def _cost(used: Flags, items: CostItems) -> Floats:
    return items.total(items.paid(used))


def _worth(costs: Floats, errors: Floats, places: Integers) -> list[int]:
    """Return the places that have a smaller error than all cheaper ones."""
    order = places[np.lexsort((errors[places], costs[places]))]
    least = np.minimum.accumulate(errors[order])
    is_new = np.append(True, errors[order][1:] < least[:-1])
    found: list[int] = order[is_new].tolist()
    return found


_HELD_OUT = 0.25  # share of the rows, if no validation rows are given


class Learner(Protocol):
    """Fits gates and local models; each class has its own fits, for `ScoredGate`."""

    def tried(self, learns: Flags) -> Iterator[Any]:
        """Yield fits to some of the rows, (n,) bool."""

    def candidates(self, fits: Sequence[Any]) -> Sequence[Any]:
        """Return the fits to be judged on other rows."""

    def refitted(self, fit: Any) -> Any:
        """Return the fit continued on all rows."""

    def scores(self, fit: Any) -> tuple[Scores, Scores]:
        """Return gate and local model of a fit, in the units of the columns."""


class GateCandidates(NamedTuple):
    """Candidates of `fit`, and the rows that they learned from."""

    fits: list[ScoredGate]
    training: TrainingRows  # those of positive weight
    learner: Learner
    nothing: Gated  # reads nothing, with the full model
    validation: GateValidation
    watch: Watch

    def gated(self, fit: Any) -> Gated:
        """Return the gate and models of a fit; no row is sent."""
        gate, local = self.learner.scores(fit)
        return replace(self.nothing, gate=gate, local=local)

    def try_each(self, items: CostItems, cut: float | None) -> bool:
        """Try all candidates until time is up; return whether Ctrl-C ended the trial."""
        with single_threaded():  # for products of few columns
            each = ([fit] for fit in self.learner.tried(self.validation.learns))
            fits, is_interrupted = candidates_in_time(each, self.watch)
        for fit in self.learner.candidates(fits):
            self.fits.extend(scored(fit, self.gated(fit), self.validation, items, cut))
        return is_interrupted


def validation_of(
    training: TrainingRows, full: FullModel, fair: Floats, generator: Any, is_given: bool
) -> GateValidation:
    """Return the validation rows: given ones, held-out ones, or all if nothing is chosen.

    fair (n_rows, n_classes): probabilities of the full model for rows it was not fitted to.
    """
    learns = np.ones(len(training.rows), np.bool_)
    if training.validation_labels is not None:
        rows, labels = training.validation_rows, training.validation_labels
        weights = np.ones(len(rows))
        words, chances = "validation rows", full.probabilities(training.validation_rows)
    elif is_given:
        rows, labels, words, chances = training.rows, training.labels, "rows", fair
        weights = training.weights
    else:
        parts = split_by_class(training.labels, [1 - _HELD_OUT, _HELD_OUT], generator)
        learns = parts == 0
        if np.unique(training.labels[learns]).size < training.n_classes or learns.all():
            learns = np.ones(len(training.rows), np.bool_)
        chosen = ~learns if not learns.all() else learns
        rows, labels, chances = training.rows[chosen], training.labels[chosen], fair[chosen]
        words, weights = "held-out rows", training.weights[chosen]
    wrong = chances.argmax(axis=1) != labels
    return GateValidation(rows, labels, weights, words, learns, wrong, full.used(rows))


def counted(training: TrainingRows) -> TrainingRows:
    """Return the rows of positive weight."""
    kept = training.weights > 0
    if kept.all():
        return training
    validation = training.validation_rows
    if validation is training.rows:
        validation = training.rows[kept]
    return TrainingRows(
        training.rows[kept], training.classes, training.labels[kept], training.weights[kept],
        validation, training.validation_labels,
    )  # fmt: skip
