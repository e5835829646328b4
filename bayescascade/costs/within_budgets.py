"""Models whose `fit` tries several candidates, so that another budget needs no further fit."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.validation import check_real
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.costs.limits import check_amounts

T = TypeVar("T")


_OF_TRIALS = 0.8
"""Share of the time left for candidates; the rest is for fitting the best of them to all rows."""


def coarse_first(n: int) -> list[int]:
    """Return places, those of coarser grids first, in case time runs out."""
    return list(dict.fromkeys(k for step in (4, 2, 1) for k in range(0, n, step)))


def candidates_in_time(portions: Iterable[Sequence[T]], watch: Watch) -> tuple[list[T], bool]:
    """Return the results before the time limit or Ctrl-C, and whether Ctrl-C ended them."""
    tried: list[T] = []
    try:
        with watch.part(_OF_TRIALS, is_final=True), watch.watching():
            for portion in portions:
                tried += portion
                if watch.is_over():
                    break
    except OutOfTime:
        pass  # the results so far are kept; without any, nothing is bought
    except KeyboardInterrupt:
        if not tried:
            raise
        return tried, True
    return tried, False


class WithinBudgets(ABC):
    """A model that is chosen within a budget from several candidates."""

    is_interrupted_: bool = False

    budget: float | None

    _is_compared: bool = True  # see `BudgetedClassifier.uncompared`
    _trial: Any  # defined by the family

    @abstractmethod
    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> Any:  # fmt: skip
        """Return the candidates for some budgets, given the arguments of `fit`."""

    @abstractmethod
    def _chosen(self, budget: float | None) -> Self:
        """Return the best model of `_trial` within a budget, which may buy nothing."""

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Try several classifiers, and keep the best within the budget.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables may be of polars, Arrow, DuckDB, Dask or narwhals. Paths or URLs may be of CSV,
            Parquet or Arrow files; `y` then names the column of labels. Cells are numbers, truth
            values, text or categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of at least two classes.
        X_val : as X, optional
            Rows on which `validation_cost_` and the shares are measured; by default those of `X`.
        y_val : (n_validation_rows,) array, optional
            Their labels, which are used for choices. Without them, rows of `X` are; the print of
            the model says which.
        sample_weight : (n_rows,) array of float >= 0, optional
            Weights of the rows, 1 each by default.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        TooLargeError
            If a search that was requested by name would take too long.
        DataError
            If rows, labels or weights cannot be used.
        KeyboardInterrupt
            If Ctrl-C comes before the first candidate is finished. Later, some classifiers keep the
            finished candidates.
        """
        self._trial = self._try([self.budget], X, y, sample_weight, X_val, y_val)
        self.__dict__.update(self._chosen_in_time(self.budget).__dict__)
        return self

    def _chosen_in_time(self, budget: float | None) -> Self:
        """Return the best model, whose last fit to all rows is within the time limit of `fit`."""
        watch: Watch = self._trial.watch
        with watch.watching():
            return self._chosen(budget)

    def within(self, budget: float) -> Self:
        """Return the model for another budget, chosen among the candidates of `fit`.

        Raises ParameterError if the budget is out of its range, and NotFittedError if the model was
        read from a file.
        """
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        return self._chosen(check_real("budget", budget, minimum=0.0))

    def path(self, budgets: Sequence[float]) -> list[Self]:
        """Return a model for each budget, chosen among the candidates of `fit`."""
        return [self.within(budget) for budget in check_amounts("budgets", budgets)]

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self]]:
        """Yield, for each budget, the best candidate; all budgets share candidates."""
        model: Any = clone(self).set_params(budget=max(budgets))
        model._is_compared = self._is_compared
        model._trial = model._try(budgets, X, y, None, X_val, y_val)
        if model.is_interrupted_:
            raise KeyboardInterrupt
        for budget in budgets:
            yield budget, model._chosen_in_time(budget)
