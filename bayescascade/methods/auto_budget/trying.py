"""Trying the methods within budgets, each for its share of the time.

Validation rows judge, which each method chooses its settings by, too. Of few rows, each is judged
by models of the other folds, for which a method is fitted as often as there are folds, and once to
all rows: what that learned is kept. The slower half of the methods is given up after two folds if
it is better at no budget than the best of the quicker half, on the rows of these folds. It would
have to be better by more than chance on all rows to be taken.

What is within a budget is within any larger one, too. Of all that is, one errs least on the rows
that judge, of equals the cheapest. It is taken if it errs less than the best of one method by more
than the standard error of the difference: than that of the method whose mean error over all budgets
is least, of which several budgets tell more than one does. So chance decides less where rows are
few, and nothing changes where they are many (`python -m tests.benchmarks.auto_budget`).
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
from bayescascade.costs.limits import BudgetError, is_within
from bayescascade.data.splitting import split_by_class
from bayescascade.model.listed import ListedBudgetLearner

_HELD_OUT = 0.25  # of many rows, where none are given to choose by
_SHARE, _LAST_SHARE = 0.5, 0.65  # of the time left, for a method
_LATE = 1.5  # times that, it is given up
_FITTING = 0.8  # of a method's time; the rest is for predictions of the rows that judge
_LEAST_SHARE = 0.05  # of all time: with less left, nothing more is tried
_LEAST_SECONDS, _CELLS_A_SECOND, _MOST_SECONDS = 120.0, 600.0, 600.0
_N_RACED = 2  # folds, after which what is better than others at no budget is given up
_FEW_CELLS = 100_000  # of which threads cost more than they save
_FEW_METHODS, _SHORT = 3, 30.0  # methods, or seconds, for which other processes start too late
N_FITS = N_FOLDS + 1
"""How often a method is fitted where cross-validation judges."""

Found = BudgetedClassifier | BudgetError


class Tried(NamedTuple):
    """What a method made of each budget, and which judging rows that gets wrong."""

    method: str
    found: Sequence[Found]  # by budget; none if it was given up
    wrong: Flags  # (n_budgets, n_judging_rows)


class Rows(NamedTuple):
    """Rows with labels, and perhaps weights."""

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
        """The commonest label, the first of equals."""
        labels, counts = np.unique(self.y, return_counts=True)
        return labels.tolist()[int(counts.argmax())]


class Judging(NamedTuple):
    """Rows to learn from, and rows that judge: of few, the same in cross-validation."""

    learning: Rows
    validation: Rows | None
    words: str  # what the rows that judge are

    @classmethod
    def of(cls, rows: Rows, validation: Rows | None, generator: np.random.Generator) -> "Judging":
        """Return how rows are judged, given rows to validate by or none."""
        if validation is not None:
            return cls(rows, validation, "validation rows")
        if len(rows.y) < FEW_ROWS:
            return cls(rows, None, CROSSED)
        codes = np.unique(rows.y, return_inverse=True)[1]
        is_out = split_by_class(codes, [1 - _HELD_OUT, _HELD_OUT], generator) == 1
        return cls(rows.part(~is_out), rows.part(is_out), "held-out rows")

    @property
    def judges(self) -> Rows:
        """The rows that judge."""
        return self.learning if self.validation is None else self.validation

    @property
    def plain(self) -> Flags:
        """Which rows that judge are not of the commonest class of those to learn from."""
        return np.asarray(self.judges.y != self.learning.commonest)

    def errors(self, wrong: Flags, seen: Any = slice(None)) -> Floats:
        """Return mean errors of rows that are seen, by which are wrong, (n, n_judging_rows)."""
        weights = self.judges.weights
        return np.average(wrong[:, seen], 1, None if weights is None else weights[seen])

    def best_of(self, tried: Sequence[Tried], n_budgets: int) -> Flags:
        """Return for each budget which rows the best within it gets wrong."""
        best = [self.plain]
        for place in range(n_budgets):
            possible = np.array([best[-1], *(one.wrong[place] for one in tried)])
            best.append(possible[self.errors(possible).argmin()])
        return np.array(best[1:])

    @property
    def n_fits(self) -> int:
        """How often a method is fitted."""
        return N_FITS if self.validation is None else 1


def seconds_for(n_cells: int) -> float:
    """Return how long may be tried, by how many cells each method is fitted to, all its fits."""
    seconds = _LEAST_SECONDS + n_cells / _CELLS_A_SECOND
    return min(5.0 * math.ceil(seconds / 5.0), _MOST_SECONDS)


@dataclass(frozen=True, eq=False)
class Trying:
    """How methods are tried."""

    judging: Judging
    budgets: Sequence[float]  # ascending
    given: Mapping[str, Any]  # parameters of every method that has them
    n_trees: int
    # callable or None: takes a `samplers.Progress` as each method begins
    report: Callable[[samplers.Progress], object] | None
    # what the best of others gets wrong, (n_budgets, n_judging_rows)
    rivals: Flags | None = None

    def each(self, methods: Sequence[ListedBudgetLearner], watch: Watch) -> Iterator[Tried]:
        """Yield what methods come to, until the time is up; one that it ends early is left out."""
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
        """Yield what the methods at some places come to, on each core one."""
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
        """Report which method begins, and how much of the time is gone, or of the methods done."""
        if self.report is None or place == len(methods):
            return
        done, total = place, len(methods)
        if watch.seconds is not None:
            done, total = round(1e3 * (watch.seconds - watch.left)), round(1e3 * watch.seconds)
        nan = math.nan
        self.report(samplers.Progress(methods[place].name, done, total, nan, nan, nan, {}))

    def _in_time(self, listed: ListedBudgetLearner, limit: float | None) -> Tried | None:
        """Return what a method comes to; None if it takes far longer than the limit."""
        try:
            # what is bought is compared with buying nothing once all folds have judged it
            with warnings.catch_warnings(), uncompared():
                warnings.simplefilter("ignore")  # of what takes long, or is unknown in a fold
                return self._tried(listed, limit)
        except OutOfTime:
            return None

    def _tried(self, listed: ListedBudgetLearner, limit: float | None) -> Tried:
        """Return what a method comes to; OutOfTime if it takes far longer than the limit.

        What is a bit late still gets half of a fair share of time for each fold that is left.
        """
        n_fits = self.judging.n_fits
        fair = (math.inf if limit is None else limit) / n_fits
        watch, late = Watch(limit), Watch(None if limit is None else _LATE * limit)

        def fit(rows: Rows, number: int) -> list[Found]:
            late.check()
            seconds = max(watch.left / (n_fits - number), fair / 2)
            return self._fitted(listed, rows, _FITTING * seconds, late)

        learning, validation = self.judging.learning, self.judging.validation
        if validation is not None:
            found = fit(learning, 0)
            of_each = [_wrong(one, validation, learning) for one in found]
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
                wrong[row, inside] = _wrong(one, judged, others)
            if number + 1 == _N_RACED and self._is_behind(wrong, folds <= number):
                return Tried(listed.name, (), wrong)
        return Tried(listed.name, fit(learning, N_FOLDS), wrong)

    def _is_behind(self, wrong: Flags, seen: Flags) -> bool:
        """Return whether a method is better than its rivals at no budget, on rows seen so far."""
        if self.rivals is None or not seen.any():
            return False
        errors = (self.judging.errors(one, seen) for one in (self.rivals, wrong))
        return bool(np.less_equal(*errors).all())

    def _fitted(
        self, listed: ListedBudgetLearner, rows: Rows, seconds: float, late: Watch
    ) -> list[Found]:
        """Return for each budget a classifier, or why there is none; OutOfTime between them."""
        given = {**listed.given, **listed.in_trials, **listed.of_trees(self.n_trees)}
        given |= copy.deepcopy(self.given)  # a generator is not to know who was first
        if np.size(rows.X) < _FEW_CELLS:
            given["n_jobs"] = 1
        if math.isfinite(seconds):
            given["time_limit"] = max(float(f"{seconds:.2g}"), 1e-3)
        model, validation = listed.made(**given), self.judging.validation
        beside = () if validation is None else (validation.X, validation.y)
        found: list[Found] = []
        if rows.weights is None:
            for _, one in model.fit_budgets(self.budgets, rows.X, rows.y, *beside):
                found.append(one)
                if len(found) < len(self.budgets):
                    late.check()
            return found
        for budget in self.budgets:
            one = listed.made(**given, budget=budget)
            try:
                found.append(one.fit(rows.X, rows.y, *beside, sample_weight=rows.weights))
            except BudgetError as error:
                found.append(error)
        return found


def _wrong(found: Any, judged: Rows, learned: Rows) -> Flags:
    """Return which rows a classifier gets wrong; without one, all are of the commonest class."""
    if isinstance(found, BudgetedClassifier):
        return np.asarray(found.predict(judged.X) != judged.y)
    return np.asarray(judged.y != learned.commonest)


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
    wrong: Flags  # (n_judging_rows,)
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


def without_cost(one: Judged, budget: float, wrong: Flags, error: float) -> Judged:
    """Return a copy of a classifier that buys nothing; wrong is where the commonest class is."""
    model = copy.copy(one.model)
    model._buy_nothing()
    candidate = Candidate(one.candidate.method, budget, error, _deviation(error, len(wrong)), 0.0)
    return Judged(candidate, model, wrong, error)


def _deviation(error: float, n_rows: int) -> float:
    return math.sqrt(error * (1 - error) / max(1, n_rows - 1))


def _best(found: Sequence[Judged]) -> Judged:
    return min(found, key=lambda one: (one.candidate.error, one.candidate.cost))
