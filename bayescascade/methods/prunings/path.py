"""A forest pruned several times: the classifiers, and what each traded."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bayescascade.methods.prunings.budget_prune import BudgetPrune

__all__ = ["PruningPath"]


@dataclass(frozen=True, slots=True, eq=False)
class PruningPath:
    """Prunings of one forest, from `BudgetPrune.path`; it is a sequence of fitted classifiers.

    Parameters
    ----------
    models : tuple of BudgetPrune
    interrupted : bool
        Whether Ctrl-C came before all were found.
    """

    models: "tuple[BudgetPrune, ...]"
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> "Iterator[BudgetPrune]":
        return iter(self.models)

    @overload
    def __getitem__(self, place: int) -> "BudgetPrune": ...
    @overload
    def __getitem__(self, place: slice) -> "PruningPath": ...
    def __getitem__(self, place: int | slice) -> "BudgetPrune | PruningPath":
        if isinstance(place, slice):
            return PruningPath(self.models[place], self.interrupted)
        return self.models[place]

    @property
    def tradeoffs(self) -> NDArray[np.float64]:
        """Error rate that a unit of cost is worth, (n_models,)."""
        return np.array([model.tradeoff_ for model in self.models])

    @property
    def budgets(self) -> NDArray[np.float64] | None:
        """The most that a row may cost on average, (n_models,); None if tradeoffs were given."""
        budgets = [model.budget for model in self.models]
        return None if None in budgets else np.array(budgets, np.float64)

    @property
    def objectives(self) -> NDArray[np.float64]:
        """Error + tradeoff x cost, (n_models,)."""
        return np.array([model.objective_ for model in self.models])

    @property
    def gaps(self) -> NDArray[np.float64]:
        """How much lower the objectives could be at most, relative to them, (n_models,)."""
        return np.array([model.duality_gap_ for model in self.models])

    @property
    def costs(self) -> NDArray[np.float64]:
        """Mean cost of a validation row, without the computation, (n_models,)."""
        return np.array([model.validation_cost_ for model in self.models])

    @property
    def errors(self) -> NDArray[np.float64]:
        """Mean error rate of the trees, each by itself, (n_models,).

        It is what is minimized, and not the error of the forest; see `cost_accuracy_curve`.
        """
        return np.array([model.program_.error(model.kept_) for model in self.models])

    @property
    def least_errors(self) -> NDArray[np.float64]:
        """What `errors` are proved not to be below within the budgets, (n_models,).

        Without budgets, for prunings that cost no more than these.
        """
        gaps = np.array([model.error_gap_ for model in self.models])
        least: NDArray[np.float64] = (self.errors - gaps).clip(min=0.0)
        return least

    def __str__(self) -> str:
        from bayescascade.methods.prunings.path_text import path_text

        return path_text(self)
