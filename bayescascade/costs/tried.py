"""Classifiers of which `fit` tries several, so that another budget takes no further fit."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.validation import check_real
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.limits import BudgetError, check_amounts


class TriedWithinBudgets(BudgetedClassifier):
    """A classifier whose `_trial` has all that `fit` tried; a family has `_try` and `_chosen`."""

    is_interrupted_: bool = False

    _trial: Any  # the family's own

    @abstractmethod
    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> Any:  # fmt: skip
        """Return what is tried for some budgets, given what `fit` takes."""

    @abstractmethod
    def _chosen(self, budget: float | None) -> Self:
        """Return the best classifier within a budget, of what `_trial` has."""

    def within(self, budget: float) -> Self:
        """Return the classifier of another budget, chosen among those that `fit` tried.

        Raises ParameterError if the budget is out of its range, NotFittedError if the model was
        read from a file.
        """
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        return self._chosen(check_real("budget", budget, minimum=0.0))

    def path(self, budgets: Sequence[float]) -> list[Self]:
        """Return a classifier for each budget, chosen among those that `fit` tried."""
        return [self.within(budget) for budget in check_amounts("budgets", budgets)]

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self | BudgetError]]:
        """Yield for each budget the best of what is tried once for all of them."""
        model: Any = clone(self).set_params(budget=max(budgets))
        model._trial = model._try(budgets, X, y, None, X_val, y_val)
        if model.is_interrupted_:
            raise KeyboardInterrupt
        for budget in budgets:
            yield budget, model._chosen(budget)
