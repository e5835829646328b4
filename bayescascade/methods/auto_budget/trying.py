"""Trying one method after the other within budgets, each for its share of the time.

Validation rows judge, which each method chooses its settings by, too. Of few rows, each is judged
by models of the other folds, for which a method is fitted as often as there are folds, and once to
all rows: what that learned is kept.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

import samplers
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.costs.choice import CROSSED, FEW_ROWS, N_FOLDS, fold_of_rows
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.limits import BudgetError
from bayescascade.data.splitting import split_by_class
from bayescascade.model.listed import ListedBudgetLearner

_HELD_OUT = 0.25  # of many rows, where none are given to choose by
_SHARE, _LAST_SHARE = 0.5, 0.65  # of the time left, for a method
_LATE = 1.5  # times that, it is given up
_FITTING = 0.8  # of a method's time; the rest is for predictions of the rows that judge
_LEAST_SHARE = 0.05  # of all time: with less left, nothing more is tried
_LEAST_SECONDS, _CELLS_A_SECOND, _MOST_SECONDS = 120.0, 600.0, 600.0
_FEW_CELLS = 100_000  # of which processes cost more than they save
N_FITS = N_FOLDS + 1
"""How often a method is fitted where cross-validation judges."""

Found = BudgetedClassifier | BudgetError


class Tried(NamedTuple):
    """What a method made of each budget, and which judging rows that gets wrong."""

    method: str
    found: Sequence[Found]  # by budget
    wrong: NDArray[np.bool_]  # (n_budgets, n_judging_rows)


class Rows(NamedTuple):
    """Rows with labels, and perhaps weights."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None = None

    def part(self, chosen: NDArray[np.bool_]) -> "Rows":
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
    # callable or None: takes a `samplers.Progress` as each fit begins
    report: Callable[[samplers.Progress], object] | None

    def each(self, methods: Sequence[ListedBudgetLearner], watch: Watch) -> Iterator[Tried]:
        """Yield what methods come to, until the time is up; one that it ends early is left out."""
        n_fits = self.judging.n_fits
        for place, listed in enumerate(methods):
            if watch.left <= _LEAST_SHARE * (watch.seconds or 0.0):
                return
            share = _LAST_SHARE if place == len(methods) - 1 else _SHARE
            limit = None if watch.seconds is None else share * watch.left

            def begin(number: int, name: str = listed.name, before: int = place * n_fits) -> None:
                self._say(name, before + number, len(methods) * n_fits, watch)

            try:
                with warnings.catch_warnings():  # of what takes long, or is unknown in a fold
                    warnings.simplefilter("ignore")
                    tried = self._tried(listed, limit, begin)
            except OutOfTime:
                continue
            yield tried

    def _say(self, name: str, done: int, total: int, watch: Watch) -> None:
        """Report which method is fitted, and how much of the time is gone, or of the fits done."""
        if watch.seconds is not None:
            gone = watch.seconds - watch.left
            done, total = round(1e3 * gone), round(1e3 * watch.seconds)
        if self.report is not None:
            nan = math.nan
            self.report(samplers.Progress(name, done, total, nan, nan, nan, {}))

    def _tried(
        self, listed: ListedBudgetLearner, limit: float | None, begin: Callable[[int], object]
    ) -> Tried:
        """Return what a method comes to; OutOfTime if it takes far longer than the limit.

        What is a bit late still gets half of a fair share of time for each fold that is left.
        """
        n_fits = self.judging.n_fits
        fair = (math.inf if limit is None else limit) / n_fits
        watch, late = Watch(limit), Watch(None if limit is None else _LATE * limit)

        def fit(rows: Rows, number: int) -> list[Found]:
            begin(number)
            late.check()
            seconds = max(watch.left / (n_fits - number), fair / 2)
            return self._fitted(listed, rows, _FITTING * seconds)

        learning, validation = self.judging.learning, self.judging.validation
        found = fit(learning, 0)
        if validation is not None:
            of_each = [_wrong(one, validation, learning) for one in found]
            return Tried(listed.name, found, np.array(of_each))
        wrong = np.empty((len(found), len(learning.y)), np.bool_)
        folds = fold_of_rows(np.unique(learning.y, return_inverse=True)[1])
        for number in range(N_FOLDS):
            inside = folds == number
            others, judged = learning.part(~inside), learning.part(inside)
            of_fold: list[Any] = [None] * len(found)
            if inside.any() and np.unique(others.y).size > 1:
                of_fold = fit(others, number + 1)
            for row, one in enumerate(of_fold):
                wrong[row, inside] = _wrong(one, judged, others)
        return Tried(listed.name, found, wrong)

    def _fitted(self, listed: ListedBudgetLearner, rows: Rows, seconds: float) -> list[Found]:
        """Return for each budget a classifier, or why there is none."""
        given = {**listed.given, **listed.of_trees(self.n_trees), **self.given}
        if np.size(rows.X) < _FEW_CELLS:
            given["n_jobs"] = 1
        if math.isfinite(seconds):
            given["time_limit"] = max(float(f"{seconds:.2g}"), 1e-3)
        model, validation = listed.made(**given), self.judging.validation
        beside = () if validation is None else (validation.X, validation.y)
        if rows.weights is None:
            return [found for _, found in model.fit_budgets(self.budgets, rows.X, rows.y, *beside)]
        found: list[Found] = []
        for budget in self.budgets:
            one = listed.made(**given, budget=budget)
            try:
                found.append(one.fit(rows.X, rows.y, *beside, sample_weight=rows.weights))
            except BudgetError as error:
                found.append(error)
        return found


def _wrong(found: Any, judged: Rows, learned: Rows) -> NDArray[np.bool_]:
    """Return which rows a classifier gets wrong; without one, all are of the commonest class."""
    if isinstance(found, BudgetedClassifier):
        return np.asarray(found.predict(judged.X) != judged.y)
    return np.asarray(judged.y != learned.commonest)
