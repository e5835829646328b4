"""Trying the methods within budgets, and choosing one.

Methods are judged on validation rows, which they also use to choose their settings. If rows are
few, methods are cross-validated: each is fitted once per fold, and those that are chosen for some
budget once more, to all rows. Without a limit of time there are rounds, after which methods that
are behind at all budgets are given up (a race, as in Maron and Moore, *Hoeffding Races*, NIPS,
1993, with less caution: the choice among methods that are nearly equal is chance anyway). Rounds
end after one, two, three and all folds, or after methods learned from a quarter of the rows.

A classifier within a budget is within any larger one, too. At a budget, the *usual* classifier is
that of the least sum of its error and of the mean error of its method over all budgets, the
cheapest among ties: errors of few rows are noise, and several budgets are better evidence about a
method than one. The classifier of least error is taken if it is better than the usual one by more
than the standard error of their difference (`python -m tests.benchmarks.auto_budget`).
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

import samplers
from bayescascade.base.arrays import Flags
from bayescascade.base.store import Within
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.costs.choice import (
    N_FOLDS,
    PurchaseChoice,
)
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.limits import is_within
from bayescascade.data.cell_policy import Matrix
from bayescascade.methods.budget.auto.splits import Sample, ValidationSplit
from bayescascade.methods.budget.listed import BUDGET_LEARNERS, IN_TURN
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.standard_errors import best_error, share_error
from bayescascade.report.numbers import with_error

_SHARE, _LAST_SHARE = 0.5, 0.65  # share of the time left for a method
_LATE = 1.5  # a method is given up after this multiple of its time
_LEAST_LIMIT = 1e-3  # seconds
_FITTING = 0.8  # share of a method's time; the rest is for predictions of the validation rows
_LEAST_SHARE = 0.05  # share of all time: if less is left, no other method is tried
_FIRST_ROWS = 100  # whose predictions show how long those of all rows take
_ENDS, _QUICK_ENDS = (1, 2, 3, N_FOLDS), (2,)  # folds after each round
_NEAR = 0.5  # standard errors behind the best by which a method is not given up
_FEW_CELLS = 100_000  # up to this number of cells, threads cost more than they save
_FEW_METHODS = 3  # up to this number of methods, there is one round
EFFORTS = {
    "quick": (("l1", "prune"), 6e6),
    "normal": (IN_TURN, 6e7),
    "thorough": ((*IN_TURN, "astc", "adapt-gbrt"), 6e8),
}
"""By effort, the methods to try, and the work, in microseconds of a usual core, above which a
method is not tried unless it is named."""


class BudgetErrors(NamedTuple):
    """Classifiers of a method for each budget, and their errors on the validation rows."""

    method: str
    found: Sequence[BudgetedClassifier]  # by budget, of the last fit; empty if it was given up
    wrong: Flags  # (n_budgets, n_validation_rows)
    is_whole: bool = True  # whether after all rounds; else errors are those of an early one
    is_final: bool = True  # whether all rows were learned from


@dataclass(frozen=True, eq=False)
class MethodTrials:
    """How methods are tried."""

    split: ValidationSplit
    budgets: Sequence[float]  # ascending
    given: Mapping[str, Any]  # parameters for every method that has them
    n_trees: int
    # callable or None: takes a `samplers.Progress` as each method begins
    report: Callable[[samplers.Progress], object] | None
    effort: str = "normal"  # "quick": one early round, "thorough": no method is given up
    folds: range = range(N_FOLDS)  # of this round; with validation rows, the last learns from all
    begun: Mapping[str, BudgetErrors] = field(
        default_factory=dict
    )  # by method, of the round before
    n_done: int = 0  # methods in rounds before, for reports

    @property
    def ends(self) -> Sequence[int]:
        """The folds after each round; with validation rows there are at most two rounds."""
        ends = _QUICK_ENDS if self.effort == "quick" else _ENDS
        return ends if self.split.validation is None else tuple(dict.fromkeys((ends[0], ends[-1])))

    def each(self, methods: Sequence[ListedBudgetLearner], watch: Watch) -> Iterator[BudgetErrors]:
        """Yield results of methods until time is up, after each of its rounds."""
        has_rounds = watch.seconds is None and self.split.has_first and self.effort != "thorough"
        if not has_rounds or (len(methods) <= _FEW_METHODS and self.effort != "quick"):
            yield from self._round(methods, watch)
            return
        ends = self.ends
        trying = self
        for begin, end in pairwise((0, *ends)):
            found: list[BudgetErrors] = []
            trying = replace(trying, folds=range(begin, end))
            for one in trying._round(methods, watch):
                found.append(one)
                yield one
            if end == ends[-1]:
                return
            kept = trying._in_reach(found)
            yield from (one._replace(found=()) for one in found if one.method not in kept)
            begun = {one.method: one for one in found}
            trying = replace(trying, begun=begun, n_done=trying.n_done + len(methods))
            methods = [one for one in methods if one.name in kept]

    def final(self, tried: BudgetErrors, watch: Watch) -> BudgetErrors:
        """Return the result of a method that learns from all rows, if there is time."""
        listed, split = BUDGET_LEARNERS[tried.method], self.split
        if split.validation is not None:
            return self._in_time(listed, None) or tried
        limit = None if watch.seconds is None else watch.left
        with _unwarned():
            try:
                late = Watch(None if limit is None else max(_LATE * limit, _LEAST_LIMIT))
                seconds = math.inf if limit is None else _FITTING * limit
                found = self._fitted(listed, split.learning, seconds, late)
            except OutOfTime:
                found = list(tried.found)
        return tried._replace(found=found, is_final=True)

    def _in_reach(self, found: Sequence[BudgetErrors]) -> set[str]:
        """Return the methods that are the best at some budget, or nearly; see `best_within`."""
        is_judged, kept = self.split.is_judged(self.folds.stop), set[str]()
        wrong = np.array([one.wrong for one in found], np.float64)
        means = (wrong + wrong.mean(axis=1, keepdims=True)) / 2
        for of_budget in means.transpose(1, 0, 2):
            best = of_budget[self.split.errors(of_budget, is_judged).argmin()]
            for one, losses in zip(found, of_budget - best, strict=True):
                mean, error = self.split.gain(losses, is_judged)
                if mean <= _NEAR * error:
                    kept.add(one.method)
        return kept

    def _round(
        self, methods: Sequence[ListedBudgetLearner], watch: Watch
    ) -> Iterator[BudgetErrors]:
        """Yield results of methods; the first is not given up, so that there is one."""
        is_needed = True
        for place, method in enumerate(methods):
            if watch.left <= _LEAST_SHARE * (watch.seconds or 0.0):
                return
            self._say(methods, place, watch)
            share = _LAST_SHARE if place == len(methods) - 1 else _SHARE
            limit = None if watch.seconds is None else share * watch.left
            tried = self._in_time(method, limit, is_needed=is_needed)
            if tried is not None:
                is_needed = False
                yield tried

    def _say(self, methods: Sequence[ListedBudgetLearner], place: int, watch: Watch) -> None:
        """Report the method that begins, and the time used or the number of methods done."""
        if self.report is None:
            return
        done, total = self.n_done + place, self.n_done + len(methods)
        if watch.seconds is not None:
            done, total = round(1e3 * (watch.seconds - watch.left)), round(1e3 * watch.seconds)
        nan = math.nan
        self.report(samplers.Progress(methods[place].name, done, total, nan, nan, nan, {}))

    def _in_time(
        self, listed: ListedBudgetLearner, limit: float | None, *, is_needed: bool = False
    ) -> BudgetErrors | None:
        """Return the result of a method; None if it takes far longer than the limit."""
        try:
            with _unwarned():
                return self._tried(listed, limit, is_needed)
        except OutOfTime:
            return None

    def _tried(
        self, listed: ListedBudgetLearner, limit: float | None, is_needed: bool
    ) -> BudgetErrors:
        """Return the result of a method; OutOfTime if it takes far longer than the limit.

        A method that is a little late still gets half of a fair share of time for each fold left.
        A method that is needed is not given up; its fits have limits of their own.
        """
        n_fits = self.split.n_fits
        fair = (math.inf if limit is None else limit) / n_fits
        most = None if limit is None or is_needed else _LATE * limit
        watch, late = Watch(limit), Watch(most)

        def fit(rows: Sample, number: int) -> list[BudgetedClassifier]:
            late.check()
            seconds = max(watch.left / (n_fits - number), fair / 2)
            return self._fitted(listed, rows, _FITTING * seconds, late)

        split, is_whole = self.split, self.folds.stop == N_FOLDS
        learning, validation = split.learning, split.validation
        if validation is not None:
            if not is_whole:
                learning = learning.part(split.is_learned_first)
            found = fit(learning, 0)
            wrong = _wrong(found, validation, learning, late)
            return BudgetErrors(listed.name, found, wrong, is_whole, is_whole)
        wrong, folds = np.zeros((len(self.budgets), len(learning.y)), np.bool_), split.folds
        if listed.name in self.begun:
            wrong = self.begun[listed.name].wrong.copy()
        found = []
        for number in self.folds:
            inside = folds == number
            others, scored = learning.part(~inside), learning.part(inside)
            of_fold: list[BudgetedClassifier] = []
            if inside.any() and np.unique(others.y).size > 1:
                found = of_fold = fit(others, number)
            wrong[:, inside] = _wrong(of_fold, scored, others, late)
        return BudgetErrors(listed.name, found or fit(learning, 0), wrong, is_whole, False)

    def _fitted(
        self, listed: ListedBudgetLearner, rows: Sample, seconds: float, late: Watch
    ) -> list[BudgetedClassifier]:
        """Return for each budget a classifier; OutOfTime between them."""
        given = {**listed.given, **listed.in_trials, **listed.of_trees(self.n_trees)}
        given |= listed.in_folds if self.split.validation is None else {}
        given |= copy.deepcopy(self.given)  # each method gets the same state of a generator
        if np.size(rows.X) < _FEW_CELLS:
            given["n_jobs"] = 1
        if math.isfinite(seconds):
            given["time_limit"] = max(float(f"{seconds:.2g}"), 1e-3)
        model, validation = listed.made(**given).uncompared(), self.split.validation
        beside = () if validation is None else (validation.X, validation.y)
        found: list[BudgetedClassifier] = []
        if rows.weights is None:
            for _, one in model.fit_budgets(self.budgets, rows.X, rows.y, *beside):
                found.append(one)
                if len(found) < len(self.budgets):
                    late.check()
            return found
        for budget in self.budgets:
            if math.isfinite(seconds):
                given["time_limit"] = max(seconds / len(self.budgets), 1e-3)
            one = listed.made(**given, budget=budget).uncompared()
            found.append(one.fit(rows.X, rows.y, *beside, sample_weight=rows.weights))
        return found


@contextmanager
def _unwarned() -> Iterator[None]:
    """Fit without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about long times, or unknown levels in a fold
        yield


def _wrong(
    found: Sequence[BudgetedClassifier], scored: Sample, learned: Sample, late: Watch
) -> Flags:
    """Return the errors of classifiers, or those of the commonest class if there are none.

    OutOfTime before all rows are predicted, as soon as the first ones show that it takes too long.
    """
    if not found:
        return np.asarray(scored.y != learned.commonest)
    parts: list[Flags] = []
    began, n_done, n_rows = perf_counter(), 0, len(scored.y)
    while n_done < n_rows:
        needed = (perf_counter() - began) * (n_rows / n_done - 1) if n_done else 0.0
        if late.is_over(needed):
            raise OutOfTime
        places = np.arange(n_done, min(max(_FIRST_ROWS, 2 * n_done), n_rows))
        n_done += places.size
        said = _predicted(found, _safe_indexing(scored.X, places))
        parts.append(np.array([of_one != scored.y[places] for of_one in said]))
    return np.concatenate(parts, axis=1)


def _predicted(found: Sequence[BudgetedClassifier], X: Any) -> Iterator[NDArray[Any]]:
    """Yield the predictions of each classifier; those that share an encoder read rows once."""
    read: dict[int, Matrix] = {}
    for one in found:
        key = id(one._encoder)
        if key not in read:
            read[key] = one._matrix(X)
        yield one.classes_[one._probabilities(read[key]).argmax(axis=1)]


@dataclass(frozen=True, slots=True)
class MethodScore:
    """Error and cost of a method, fitted for a budget."""

    method: str
    budget: Annotated[float, Within(0)]
    error: Annotated[float, Within(0)]  # share of the validation rows
    standard_error: Annotated[float, Within(0)]
    cost: Annotated[float, Within(0)]  # mean per row
    above: Annotated[float, Within(-1, 1)] = 0.0  # error rate, minus that of the chosen one
    above_error: Annotated[float, Within(0)] = 0.0  # standard error of this difference

    @property
    def above_text(self) -> str:
        """The difference from the chosen one in words, with its standard error."""
        if self.above_error == 0.0:
            return "chosen"
        return with_error(f"{100 * self.above:.1f}", 100 * self.above_error, 1, " points")


@dataclass(frozen=True, eq=False)
class ScoredClassifier:
    """A fitted classifier, and its errors."""

    candidate: MethodScore
    model: BudgetedClassifier
    wrong: Flags  # (n_validation_rows,)
    mean_error: float  # of its method, over all budgets
    is_final: bool = True  # whether it learned from all rows

    def beside(
        self, chosen: "ScoredClassifier", n_scored: int, split: ValidationSplit
    ) -> MethodScore:
        """Return the candidate with its difference from the one chosen of `n_scored`."""
        if self is chosen:
            return self.candidate
        difference, error = split.gain(self.wrong.astype(np.float64) - chosen.wrong)
        error = best_error(error, n_scored)
        return replace(self.candidate, above=difference, above_error=min(error, 1.0))


def scored(
    tried: Sequence[BudgetErrors], budgets: Sequence[float], split: ValidationSplit
) -> list[ScoredClassifier]:
    """Return all classifiers that were fitted, method by method.

    A classifier that is no better than buying nothing buys nothing. Then its errors are the rows
    that are not of the commonest class, even if its clones in folds buy something.
    """
    found: list[ScoredClassifier] = []
    commonest, plain = split.learning.commonest, split.plain
    weights = split.validation_rows.weights
    for one in tried:
        wrong = one.wrong.copy()
        for place, model in enumerate(one.found):
            model._is_compared = True  # by the following
            if not model._reads_nothing:
                model._settle(
                    PurchaseChoice.between(split.words, wrong[place], plain, commonest, weights)
                )
            if model._reads_nothing:
                wrong[place] = plain
        errors = split.errors(wrong).tolist()
        mean_error = sum(errors) / len(errors)
        for budget, model, of_model, error in zip(budgets, one.found, wrong, errors, strict=True):
            deviation = _deviation(error, split.n_validation)
            candidate = MethodScore(one.method, budget, error, deviation, model.validation_cost_)
            found.append(ScoredClassifier(candidate, model, of_model, mean_error, one.is_final))
    return found


def best_within(
    found: Sequence[ScoredClassifier], budget: float, split: ValidationSplit
) -> ScoredClassifier | None:
    """Return the best classifier for a budget, None if there is none.

    Below all tried budgets, it is one of those within the budget on the validation rows.
    """
    possible = [one for one in found if is_within(one.candidate.budget, budget)]
    possible = possible or [
        one for one in found if one.is_final and is_within(one.candidate.cost, budget)
    ]
    if not possible:
        return None
    least = min(possible, key=lambda one: (one.candidate.error, one.candidate.cost))
    usual = min(
        possible, key=lambda one: (one.candidate.error + one.mean_error, one.candidate.cost)
    )
    gain, error = split.gain(usual.wrong.astype(np.float64) - least.wrong)
    return least if gain > error else usual


def without_cost(one: ScoredClassifier, budget: float, split: ValidationSplit) -> ScoredClassifier:
    """Return a copy that buys nothing."""
    model = copy.copy(one.model)
    model._buy_nothing()
    error = float(split.errors(split.plain[np.newaxis])[0])
    deviation = _deviation(error, split.n_validation)
    candidate = MethodScore(one.candidate.method, budget, error, deviation, 0.0)
    return ScoredClassifier(candidate, model, split.plain, error)


def _deviation(error: float, n_rows: float) -> float:
    found = share_error(error, n_rows)
    return 0.5 if math.isnan(found) else found
