"""What the baselines of BudgetPrune share: forests along one line, from the whole one to less."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_jobs, check_real
from bayescascade.costs.limits import check_amounts, is_within, too_low
from bayescascade.data.training_rows import TrainingRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.pruner import ForestPruner

__all__ = ["BaselinePruner"]


class BaselinePruner(ForestPruner):
    """A pruner with one parameter that says how much is left of the forest.

    The rows of `fit` and of `path` are as in `BudgetPrune`; `y_val` is not needed.

    Attributes
    ----------
    knob : str
        Name of that parameter. Its fitted value has a trailing underscore.
    """

    knob: ClassVar[str]
    budget: float | None

    @abstractmethod
    def _prepare(self, training: TrainingRows, forest: Forest) -> None:
        """Get to know the forest."""

    @abstractmethod
    def _values(self) -> Sequence[Any]:
        """Return values of the parameter; from one to the next, no row pays more."""

    @abstractmethod
    def _chosen(self, training: TrainingRows) -> Any:
        """Return the value that the parameters, `budget` aside, ask for."""

    @abstractmethod
    def _forest_at(self, value: Any) -> Forest:
        """Return what is left of the forest at a value of the parameter."""

    @abstractmethod
    def _checked(self, name: str, value: Any) -> Any:
        """Return a value of the parameter given by a user; raise ParameterError if it is none."""

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Fit the forest, if it is not fitted yet, and prune it; see `BudgetPrune.fit`.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or the forest is none that can be pruned.
        BudgetError
            If nothing that can be left of it is within the budget; names the least feasible one.
        DataError
            If the rows or labels cannot be used, or `y` has classes that a fitted forest has not.
        """
        self._check_parameters()
        training, forest = self._read_forest(X, y, X_val, y_val)
        self._prepare(training, forest)
        self._take(self._chosen(training) if self.budget is None else self._within(self.budget))
        return self

    def path(
        self, values: Sequence[Any] | None = None, *, budgets: Sequence[float] | None = None
    ) -> tuple[Self, ...]:
        """Return the forest pruned to several degrees.

        Parameters
        ----------
        values : sequence, optional
            Of the parameter that says how much is left; by default, all that make a difference, or
            a choice of them.
        budgets : sequence of float >= 0, optional
            Instead of these values.

        Returns
        -------
        tuple of fitted classifiers, in the order given

        Raises
        ------
        ParameterError
            If both are given, or one is no list, or has a value out of its range.
        BudgetError
            If nothing that can be left is within one of the budgets.
        NotFittedError
            Before `fit`, and if the model was read from a file.
        """
        self._check_unpruned()
        if values is not None and budgets is not None:
            raise ParameterError("either values or budgets must be given, got both")
        if budgets is not None:
            amounts = check_amounts("budgets", budgets)
            return tuple(self._at(self._within(budget), budget=budget) for budget in amounts)
        if values is None:
            return tuple(self._at(value, **{self.knob: value}) for value in self._few_values())
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ParameterError(f"values must be a list of {self.knob}, got {values!r}")
        wanted = [self._checked(f"values[{place}]", value) for place, value in enumerate(values)]
        return tuple(self._at(value, **{self.knob: value}) for value in wanted)

    def _check_parameters(self) -> None:
        if self.budget is not None:
            check_real("budget", self.budget, minimum=0.0)
        check_jobs(self.n_jobs)

    def _few_values(self) -> Sequence[Any]:
        """Return the values of a path that is not told any."""
        return self._values()

    def _within(self, budget: float) -> Any:
        """Return the value that leaves most of the forest within a budget."""
        values = self._values()
        start, end = 0, len(values)
        while start < end:
            middle = (start + end) // 2
            if is_within(self._cost(values[middle]), budget):
                end = middle
            else:
                start = middle + 1
        if start == len(values):
            least = self._cost(values[-1])
            raise too_low(budget, least, "the mean cost of the least that can be left")
        return values[start]

    def _cost(self, value: Any) -> float:
        """Return the mean cost of the validation rows at a value of the parameter."""
        return float(self._costs(self._forest_at(value), self._validation_rows).mean())

    def _take(self, value: Any) -> None:
        """Be fitted to what is left at a value of the parameter."""
        setattr(self, f"{self.knob}_", value)
        self._become(self._forest_at(value), self._validation_rows)

    def _at(self, value: Any, **parameters: Any) -> Self:
        """Return this classifier as if fitted with other parameters."""
        model = copy.copy(self)
        model.set_params(**{"budget": None, **parameters})
        model._take(value)
        return model

    def _own_record(self) -> dict[str, Any]:
        value = getattr(self, f"{self.knob}_")
        return {self.knob: value.tolist() if isinstance(value, np.ndarray) else value}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        setattr(self, f"{self.knob}_", self._read_value(record[self.knob]))

    def _read_value(self, value: Any) -> Any:
        """Return the fitted value of the parameter from a file."""
        return self._checked(self.knob, value)
