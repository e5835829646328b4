"""Trying the methods within budgets, each for its share of the time.

Methods are judged on validation rows, which they also use to choose their settings. If rows are
few, methods are cross-validated: each is fitted once per fold, and once to all rows, which gives
the model that is kept. A method of the slower half is given up after two folds if, on the rows of
these folds, it is better at no budget than the best of the quicker half. It would have to be better
by more than chance on all rows to be taken.

A classifier within a budget is within any larger one, too. The first choice among them has the
least error on the judging rows, and is the cheapest among ties. Its rival is the best classifier of
the method with the least mean error over all budgets, because several budgets are better evidence
than one. The first choice is taken if it is better than the rival by more than the standard error
of their difference. This reduces the effect of chance if rows are few, and changes nothing if they
are many (`python -m tests.benchmarks.auto_budget`).
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

import samplers
from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import ModelFileError
from bayescascade.base.validation import check_real
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.costs.choice import CROSSED, FEW_ROWS, N_FOLDS, Choice, fold_of_rows, uncompared
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.limits import is_within
from bayescascade.data.splitting import split_by_class
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.standard_errors import gain_error, share_error

_HELD_OUT = 0.25  # share of many rows, if no validation rows are given
_SHARE, _LAST_SHARE = 0.5, 0.65  # share of the time left for a method
_LATE = 1.5  # a method is given up after this multiple of its time
_FITTING = 0.8  # share of a method's time; the rest is for predictions of the judging rows
_LEAST_SHARE = 0.05  # share of all time: if less is left, no other method is tried
_LEAST_SECONDS, _CELLS_A_SECOND, _MOST_SECONDS = 120.0, 600.0, 600.0
_FIRST_ROWS = 100  # whose predictions show how long those of all rows take
_N_RACED = 2  # folds, after which a method may be given up
_FEW_CELLS = 100_000  # up to this number of cells, threads cost more than they save
_FEW_METHODS, _SHORT = 3, 30.0  # methods, or seconds, for which starting processes takes too long
N_FITS = N_FOLDS + 1
"""Number of fits of a method in cross-validation."""


class Tried(NamedTuple):
    """Classifiers of a method for each budget, and their errors on the judging rows."""

    method: str
    found: Sequence[BudgetedClassifier]  # by budget; empty if it was given up
    wrong: Flags  # (n_budgets, n_judging_rows)


class Rows(NamedTuple):
    """Rows with labels and optional weights."""

    X: Any
    y: NDArray[Any]
    weights: Floats | None = None

    def part(self, chosen: Flags) -> "Rows":
        """Return some of the rows."""
        places = np.flatnonzero(chosen)
        weights = None if self.weights is None else self.weights[places]
        return Rows(_safe_indexing(self.X, places), self.y[places], weights)

    @property
    def commonest(self) -> Any:
        """The commonest label, the first among ties."""
        labels, counts = np.unique(self.y, return_counts=True)
        return labels.tolist()[int(counts.argmax())]


class Judging(NamedTuple):
    """Rows to learn from, and judging rows; the same rows in cross-validation."""

    learning: Rows
    validation: Rows | None
    words: str  # the judging rows in words

    @classmethod
    def of(cls, rows: Rows, validation: Rows | None, generator: np.random.Generator) -> "Judging":
        """Return the judging of methods for rows, with validation rows or without."""
        if validation is not None:
            return cls(rows, validation, "validation rows")
        if len(rows.y) < FEW_ROWS:
            return cls(rows, None, CROSSED)
        codes = np.unique(rows.y, return_inverse=True)[1]
        is_out = split_by_class(codes, [1 - _HELD_OUT, _HELD_OUT], generator) == 1
        return cls(rows.part(~is_out), rows.part(is_out), "held-out rows")

    @property
    def judges(self) -> Rows:
        """The judging rows."""
        return self.learning if self.validation is None else self.validation

    @property
    def n_judges(self) -> float:
        """Number of judging rows; a weight is a number of equal rows."""
        weights = self.judges.weights
        return float(len(self.judges.y) if weights is None else weights.sum())

    @property
    def plain(self) -> Flags:
        """Which judging rows are not of the commonest class of the training rows."""
        return np.asarray(self.judges.y != self.learning.commonest)

    def errors(self, wrong: Flags, seen: Any = slice(None)) -> Floats:
        """Return mean errors on the rows seen, from `wrong` (n, n_judging_rows)."""
        weights = self.judges.weights
        return np.average(wrong[:, seen], 1, None if weights is None else weights[seen])

    def best_of(self, tried: Sequence[Tried], n_budgets: int) -> Flags:
        """Return for each budget the errors of the best classifier within it."""
        best = [self.plain]
        for place in range(n_budgets):
            possible = np.array([best[-1], *(one.wrong[place] for one in tried)])
            best.append(possible[self.errors(possible).argmin()])
        return np.array(best[1:])

    @property
    def n_fits(self) -> int:
        """Number of fits of a method."""
        return N_FITS if self.validation is None else 1


def seconds_for(n_cells: int) -> float:
    """Return the time limit, seconds, by the number of cells in all fits of a method."""
    seconds = _LEAST_SECONDS + n_cells / _CELLS_A_SECOND
    return min(5.0 * math.ceil(seconds / 5.0), _MOST_SECONDS)


@dataclass(frozen=True, eq=False)
class Trying:
    """How methods are tried."""

    judging: Judging
    budgets: Sequence[float]  # ascending
    given: Mapping[str, Any]  # parameters for every method that has them
    n_trees: int
    # callable or None: takes a `samplers.Progress` as each method begins
    report: Callable[[samplers.Progress], object] | None
    # errors of the best other methods, (n_budgets, n_judging_rows)
    rivals: Flags | None = None

    def each(self, methods: Sequence[ListedBudgetLearner], watch: Watch) -> Iterator[Tried]:
        """Yield results of methods until time is up; unfinished methods are left out."""
        is_raced = self.judging.validation is None and len(methods) > _FEW_METHODS
        n_first = (len(methods) + 1) // 2 if is_raced else len(methods)
        tried: list[Tried] = []
        for one in self._each(methods, range(n_first), watch):
            tried.append(one)
            yield one
        rivals = self.judging.best_of(tried, len(self.budgets))
        yield from replace(self, rivals=rivals)._each(methods, range(n_first, len(methods)), watch)

    def _each(
        self, methods: Sequence[ListedBudgetLearner], places: range, watch: Watch
    ) -> Iterator[Tried]:
        """Yield results of the methods at some places, one method per core."""
        few = len(methods) <= _FEW_METHODS or watch.left < _SHORT
        n_jobs = 1 if few else min(effective_n_jobs(self.given["n_jobs"]), len(places))

        def in_turn() -> Iterator[tuple[ListedBudgetLearner, float | None]]:
            for place in places:
                if watch.left <= _LEAST_SHARE * (watch.seconds or 0.0):
                    return
                share = _LAST_SHARE if place == len(methods) - 1 else _SHARE
                yield methods[place], None if watch.seconds is None else share * watch.left

        alone, tasks = replace(self, report=None), in_turn()
        results: Iterable[Tried | None] = (alone._in_time(*task) for task in tasks)
        if n_jobs > 1:
            alone = replace(alone, given={**self.given, "n_jobs": 1})
            pool = Parallel(n_jobs, pre_dispatch="n_jobs", batch_size=1, return_as="generator")
            results = pool(delayed(alone._in_time)(*task) for task in tasks)
        self._say(methods, places.start, watch)
        for place, tried in zip(places, results, strict=False):
            self._say(methods, place + 1, watch)
            if tried is not None:
                yield tried

    def _say(self, methods: Sequence[ListedBudgetLearner], place: int, watch: Watch) -> None:
        """Report the method that begins, and the time used or the number of methods done."""
        if self.report is None or place == len(methods):
            return
        done, total = place, len(methods)
        if watch.seconds is not None:
            done, total = round(1e3 * (watch.seconds - watch.left)), round(1e3 * watch.seconds)
        nan = math.nan
        self.report(samplers.Progress(methods[place].name, done, total, nan, nan, nan, {}))

    def _in_time(self, listed: ListedBudgetLearner, limit: float | None) -> Tried | None:
        """Return the result of a method; None if it takes far longer than the limit."""
        try:
            # the comparison with buying nothing follows after all folds
            with warnings.catch_warnings(), uncompared():
                warnings.simplefilter("ignore")  # about long times, or unknown levels in a fold
                return self._tried(listed, limit)
        except OutOfTime:
            return None

    def _tried(self, listed: ListedBudgetLearner, limit: float | None) -> Tried:
        """Return the result of a method; OutOfTime if it takes far longer than the limit.

        A method that is a little late still gets half of a fair share of time for each fold left.
        """
        n_fits = self.judging.n_fits
        fair = (math.inf if limit is None else limit) / n_fits
        watch, late = Watch(limit), Watch(None if limit is None else _LATE * limit)

        def fit(rows: Rows, number: int) -> list[BudgetedClassifier]:
            late.check()
            seconds = max(watch.left / (n_fits - number), fair / 2)
            return self._fitted(listed, rows, _FITTING * seconds, late)

        learning, validation = self.judging.learning, self.judging.validation
        if validation is not None:
            found = fit(learning, 0)
            of_each = [_wrong(one, validation, learning, late) for one in found]
            return Tried(listed.name, found, np.array(of_each))
        wrong = np.zeros((len(self.budgets), len(learning.y)), np.bool_)
        folds = fold_of_rows(np.unique(learning.y, return_inverse=True)[1])
        for number in range(N_FOLDS):
            inside = folds == number
            others, judged = learning.part(~inside), learning.part(inside)
            of_fold: list[Any] = [None] * len(wrong)
            if inside.any() and np.unique(others.y).size > 1:
                of_fold = fit(others, number)
            for row, one in enumerate(of_fold):
                wrong[row, inside] = _wrong(one, judged, others, late)
            if number + 1 == _N_RACED and self._is_behind(wrong, folds <= number):
                return Tried(listed.name, (), wrong)
        return Tried(listed.name, fit(learning, N_FOLDS), wrong)

    def _is_behind(self, wrong: Flags, seen: Flags) -> bool:
        """Return whether its rivals are at least as good at every budget, on rows seen so far."""
        if self.rivals is None or not seen.any():
            return False
        errors = (self.judging.errors(one, seen) for one in (self.rivals, wrong))
        return bool(np.less_equal(*errors).all())

    def _fitted(
        self, listed: ListedBudgetLearner, rows: Rows, seconds: float, late: Watch
    ) -> list[BudgetedClassifier]:
        """Return for each budget a classifier; OutOfTime between them."""
        given = {**listed.given, **listed.in_trials, **listed.of_trees(self.n_trees)}
        given |= copy.deepcopy(self.given)  # each method gets the same state of a generator
        if np.size(rows.X) < _FEW_CELLS:
            given["n_jobs"] = 1
        if math.isfinite(seconds):
            given["time_limit"] = max(float(f"{seconds:.2g}"), 1e-3)
        model, validation = listed.made(**given), self.judging.validation
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
            one = listed.made(**given, budget=budget)
            found.append(one.fit(rows.X, rows.y, *beside, sample_weight=rows.weights))
        return found


def _wrong(found: BudgetedClassifier | None, judged: Rows, learned: Rows, late: Watch) -> Flags:
    """Return the errors of a classifier, or those of the commonest class if there is none.

    OutOfTime before all rows are predicted, as soon as the first ones show that it takes too long.
    """
    if found is None:
        return np.asarray(judged.y != learned.commonest)
    parts: list[Flags] = []
    began, n_done, n_rows = perf_counter(), 0, len(judged.y)
    while n_done < n_rows:
        needed = (perf_counter() - began) * (n_rows / n_done - 1) if n_done else 0.0
        if late.is_over(needed):
            raise OutOfTime
        places = np.arange(n_done, min(max(_FIRST_ROWS, 2 * n_done), n_rows))
        n_done += places.size
        said = found.predict(_safe_indexing(judged.X, places))
        parts.append(np.asarray(said != judged.y[places]))
    return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Error and cost of a method, fitted for a budget."""

    method: str
    budget: float
    error: float  # share of the judging rows
    standard_error: float
    cost: float  # mean per row

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Rebuild one from `to_dict`; ModelFileError or ParameterError if it is malformed."""
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
    """A fitted classifier, and its errors."""

    candidate: Candidate
    model: BudgetedClassifier
    wrong: Flags  # (n_judging_rows,)
    of_method: float  # mean error of its method, over all budgets


def judged(tried: Sequence[Tried], budgets: Sequence[float], judging: Judging) -> list[Judged]:
    """Return all classifiers that were fitted, method by method.

    A classifier that is no better than buying nothing buys nothing. Then its errors are the rows
    that are not of the commonest class, even if its clones in folds buy something.
    """
    found: list[Judged] = []
    commonest, plain = judging.learning.commonest, judging.plain
    for one in tried:
        wrong = one.wrong.copy()
        for place, model in enumerate(one.found):
            if not model._reads_nothing:
                model._settle(Choice.between(judging.words, wrong[place], plain, commonest))
            if model._reads_nothing:
                wrong[place] = plain
        errors = judging.errors(wrong).tolist()
        for budget, model, of_model, error in zip(budgets, one.found, wrong, errors, strict=True):
            deviation = _deviation(error, judging.n_judges)
            candidate = Candidate(one.method, budget, error, deviation, model.validation_cost_)
            found.append(Judged(candidate, model, of_model, sum(errors) / len(errors)))
    return found


def best_within(found: Sequence[Judged], budget: float) -> Judged | None:
    """Return the best classifier for a budget, None if there is none.

    Below all tried budgets, it is one of those within the budget on the judging rows.
    """
    possible = [one for one in found if is_within(one.candidate.budget, budget)]
    possible = possible or [one for one in found if is_within(one.candidate.cost, budget)]
    if not possible:
        return None
    least, usual = _best(possible), min(one.of_method for one in possible)
    rival = _best([one for one in possible if one.of_method == usual])
    error = gain_error(rival.wrong.astype(np.float64) - least.wrong)
    return least if rival.candidate.error - least.candidate.error > error else rival


def without_cost(one: Judged, budget: float, wrong: Flags, error: float) -> Judged:
    """Return a copy that buys nothing; `wrong` are the errors of the commonest class."""
    model = copy.copy(one.model)
    model._buy_nothing()
    candidate = Candidate(one.candidate.method, budget, error, _deviation(error, len(wrong)), 0.0)
    return Judged(candidate, model, wrong, error)


def _deviation(error: float, n_rows: float) -> float:
    found = share_error(error, n_rows)
    return 0.5 if math.isnan(found) else found


def _best(found: Sequence[Judged]) -> Judged:
    return min(found, key=lambda one: (one.candidate.error, one.candidate.cost))
