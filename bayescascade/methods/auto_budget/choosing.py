"""Which of the classifiers that were tried suits a budget, by rows that judge.

What is within a budget is within any larger one, too. Of all that is, one errs least on the rows
that judge, of equals the cheapest. It is taken if it errs less than the best of one method by more
than the standard error of the difference: than that of the method whose mean error over all budgets
is least, of which several budgets tell more than one does. So chance decides less where rows are
few, and nothing changes where they are many (`python -m tests.benchmarks.auto_budget`).
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.base.validation import check_real
from bayescascade.costs.choice import Choice
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.limits import is_within
from bayescascade.methods.auto_budget.trying import Judging, Tried

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a method errs and costs within the budget that it was fitted for."""

    method: str
    budget: float
    error: float  # share of the rows that judge
    standard_error: float
    cost: float  # mean of a row

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return what `asdict` of one is; ModelFileError or ParameterError if it is none."""
        if not isinstance(record["method"], str):
            raise ModelFileError("a saved candidate must name its method")
        numbers = (
            check_real(name, record[name], minimum=0.0)
            for name in ("budget", "error", "standard_error", "cost")
        )
        return cls(record["method"], *numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Judged:
    """A classifier that was fitted, and how it did."""

    candidate: Candidate
    model: BudgetedClassifier
    wrong: Bools  # (n_judging_rows,)
    of_method: float  # mean error of its method, over all budgets


def judged(tried: Sequence[Tried], budgets: Sequence[float], judging: Judging) -> list[Judged]:
    """Return all classifiers that were fitted, method by method.

    One that is no better than buying nothing buys nothing. It then gets wrong what is not of the
    commonest class, whatever those of the folds may buy.
    """
    found: list[Judged] = []
    commonest, plain = judging.learning.commonest, judging.plain
    for one in tried:
        wrong = one.wrong.copy()
        for place, model in enumerate(one.found):
            if isinstance(model, BudgetedClassifier) and not model._reads_nothing:
                model._settle(Choice.between(judging.words, wrong[place], plain, commonest))
            if not isinstance(model, BudgetedClassifier) or model._reads_nothing:
                wrong[place] = plain
        errors = judging.errors(wrong).tolist()
        for budget, model, of_model, error in zip(budgets, one.found, wrong, errors, strict=True):
            if isinstance(model, BudgetedClassifier):
                deviation = _deviation(error, len(plain))
                candidate = Candidate(one.method, budget, error, deviation, model.validation_cost_)
                found.append(Judged(candidate, model, of_model, sum(errors) / len(errors)))
    return found


def best_within(found: Sequence[Judged], budget: float) -> Judged | None:
    """Return the one that suits a budget, None if there is none.

    Below all budgets that were tried, it is one of those that cost no more on the rows that judge.
    """
    possible = [one for one in found if is_within(one.candidate.budget, budget)]
    possible = possible or [one for one in found if is_within(one.candidate.cost, budget)]
    if not possible:
        return None
    least, usual = _best(possible), min(one.of_method for one in possible)
    rival = _best([one for one in possible if one.of_method == usual])
    gains = rival.wrong.astype(np.float64) - least.wrong
    error = gains.std(ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
    return least if rival.candidate.error - least.candidate.error > error else rival


def without_cost(one: Judged, budget: float, wrong: Bools, error: float) -> Judged:
    """Return a copy of a classifier that buys nothing; wrong is where the commonest class is."""
    model = copy.copy(one.model)
    model._buy_nothing()
    candidate = Candidate(one.candidate.method, budget, error, _deviation(error, len(wrong)), 0.0)
    return Judged(candidate, model, wrong, error)


def _deviation(error: float, n_rows: int) -> float:
    return math.sqrt(error * (1 - error) / max(1, n_rows - 1))


def _best(found: Sequence[Judged]) -> Judged:
    return min(found, key=lambda one: (one.candidate.error, one.candidate.cost))
