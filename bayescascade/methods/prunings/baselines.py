"""What BudgetPrune is compared with: forests along one line, from the whole one to less.

`GreedyPrune` removes features, `TruncatedForest` trees; `cost_complexity` has the third.
"""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.costs.limits import check_amounts, is_within, too_low
from bayescascade.data.training_rows import TrainingRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.path import PruningPath
from bayescascade.methods.prunings.program import PruningProgram
from bayescascade.methods.prunings.pruner import ForestPruner
from bayescascade.methods.prunings.pruning import remove_features

__all__ = ["BaselinePruner", "GreedyPrune", "TruncatedForest"]


class BaselinePruner(ForestPruner):
    """A pruner whose `knob` alone says how much is left of the forest.

    A `budget` leaves as much of it as it allows. `y_val` is not needed.
    """

    @abstractmethod
    def _values(self) -> Sequence[Any]:
        """Return values of the knob; from one to the next, no row pays more."""

    @abstractmethod
    def _untold(self, training: TrainingRows) -> Any:
        """Return the value where neither the knob nor a budget is given."""

    @abstractmethod
    def _forest_at(self, value: Any) -> Forest:
        """Return what is left of the forest at a value of the knob."""

    @abstractmethod
    def _valid(self, name: str, value: Any) -> Any:
        """Return a value that may be one of the knob; raise ParameterError if it is none."""

    def _checked(self, name: str, value: Any) -> Any:
        """Return a value of the knob for this forest; raise ParameterError if it is none."""
        return self._valid(name, value)

    def _few_values(self) -> Sequence[Any]:
        """Return the values of a path that is not told any."""
        return self._values()

    def path(
        self, values: Sequence[Any] | None = None, *, budgets: Sequence[float] | None = None
    ) -> PruningPath[Self]:
        """Return the forest pruned to several degrees.

        Parameters
        ----------
        values : sequence, optional
            Of the knob; by default, all that make a difference, or a choice of them.
        budgets : sequence of float >= 0, optional
            Instead of these values.

        Returns
        -------
        PruningPath
            A fitted classifier for each, in the order given.

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
            return self._path("budget", check_amounts("budgets", budgets), self._within)
        if values is None:
            wanted = self._few_values()
        elif isinstance(values, str) or not isinstance(values, Iterable):
            raise ParameterError(f"values must be a list of {self.knob}, got {values!r}")
        else:
            wanted = [self._checked(f"values[{i}]", value) for i, value in enumerate(values)]
        return self._path(self.knob, wanted, lambda value: value)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if getattr(self, self.knob) is not None:
            self._valid(self.knob, getattr(self, self.knob))

    def _tuned(self, training: TrainingRows) -> Any:
        value = getattr(self, self.knob)
        return self._untold(training) if value is None else self._checked(self.knob, value)

    def _within(self, budget: float) -> Any:
        """Return the value that leaves most of the forest within a budget."""
        values = self._values()
        place = bisect_left(values, True, key=lambda value: is_within(self._cost(value), budget))
        if place == len(values):
            least = self._cost(values[-1])
            raise too_low(budget, least, "the mean cost of the least that can be left")
        return values[place]

    def _cost(self, value: Any) -> float:
        """Return the mean cost of the validation rows at a value of the knob."""
        return float(self._costs(self._forest_at(value), self._validation_rows).mean())

    def _take(self, value: Any) -> None:
        """Be fitted to what is left at a value of the knob."""
        setattr(self, f"{self.knob}_", value)
        self._become(self._forest_at(value), self._validation_rows)

    def _own_record(self) -> dict[str, Any]:
        value = getattr(self, f"{self.knob}_")
        return {self.knob: value.tolist() if isinstance(value, np.ndarray) else value}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        setattr(self, f"{self.knob}_", self._valid(self.knob, record[self.knob]))


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyPrune(BaselinePruner):
    """A forest from which features are removed one after the other: a baseline.

    Trees are cut at every split on a removed feature. Each step removes the one that leaves the
    least ``error + tradeoff x cost``; see `bayescascade.methods.prunings.pruning`.

    Parameters
    ----------
    forest, costs, budget, n_jobs, random_state
        As of every `ForestPruner`.
    tradeoff : float >= 0
        In-bag error rate that a unit of cost is worth, in choosing what to remove and how much.
    n_removed : int >= 0 or None
        Features to remove, at most all; None: as many as leave the least ``error + tradeoff x
        cost``.

    Attributes
    ----------
    n_removed_ : int
        How many features were removed.
    removed_ : list of str
        Which, in their order. A feature that was only read below others goes with these.
    program_ : PruningProgram
        What the splits gain and cost; not in saved models.

    References
    ----------
    Nan, F. (2018). Learning to predict under a budget. PhD thesis, Boston University. Section 4.5.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade.budget import GreedyPrune
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> y = X[:, 3] + X[:, 7] > 0
    >>> model = GreedyPrune(random_state=0).fit(X[:300], y[:300], X[300:])
    >>> [round(one.validation_cost_) for one in model.path([0, 5, 18])]
    [12, 7, 2]
    """

    model_name: ClassVar[str] = "greedy_prune"
    title: ClassVar[str] = "greedily pruned forest"
    knob: ClassVar[str] = "n_removed"

    tradeoff: float = 0.01
    n_removed: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("tradeoff", self.tradeoff, minimum=0.0)

    def _prepare(self, training: TrainingRows) -> None:
        forest = self.whole_forest_
        self.program_ = PruningProgram.of(forest, self._matrix_items, training.validation_rows)
        feature = self._encoder.source[forest.feature[self.program_.node]]
        self._steps = tuple(remove_features(self.program_, feature, self.tradeoff))

    def _values(self) -> Sequence[int]:
        return range(len(self._steps))

    def _untold(self, training: TrainingRows) -> int:  # noqa: ARG002
        objective = self.program_.objective
        return int(np.argmin([objective(step.kept, self.tradeoff) for step in self._steps]))

    def _forest_at(self, value: int) -> Forest:
        return self._pruned(self._steps[value].kept)

    def _take(self, value: int) -> None:
        super()._take(value)
        self.removed_ = [self.feature_texts[step.feature] for step in self._steps[1 : value + 1]]

    def _valid(self, name: str, value: Any) -> int:
        return check_integer(name, value, minimum=0)

    def _checked(self, name: str, value: Any) -> int:
        return min(self._valid(name, value), len(self._steps) - 1)

    def _own_record(self) -> dict[str, Any]:
        return {**super()._own_record(), "removed": self.removed_}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        removed = record["removed"]
        if not isinstance(removed, list) or not set(removed) <= set(self.feature_texts):
            raise ValueError(f"removed must be features, got {removed!r}")
        self.n_removed_ = check_integer(
            "n_removed", record["n_removed"], minimum=len(removed), maximum=len(removed)
        )
        self.removed_ = removed


@dataclass(eq=False, repr=False, kw_only=True)
class TruncatedForest(BaselinePruner):
    """A forest of which only the first trees are left: a baseline.

    Parameters
    ----------
    forest, costs, budget, n_jobs, random_state
        As of every `ForestPruner`; costs decide only what is within a budget.
    n_trees : int >= 1 or None
        Trees to keep; None: all of them.

    Attributes
    ----------
    n_trees_ : int
        The number of trees that are left.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade.budget import TruncatedForest
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> y = X[:, 3] + X[:, 7] > 0
    >>> model = TruncatedForest(random_state=0).fit(X[:300], y[:300], X[300:])
    >>> [round(one.validation_cost_) for one in model.path([40, 10, 1])]
    [12, 6, 2]
    """

    model_name: ClassVar[str] = "truncated_forest"
    title: ClassVar[str] = "truncated forest"
    knob: ClassVar[str] = "n_trees"

    n_trees: int | None = None

    def _prepare(self, training: TrainingRows) -> None:
        pass

    def _values(self) -> Sequence[int]:
        return range(self.whole_forest_.n_trees, 0, -1)

    def _untold(self, training: TrainingRows) -> int:  # noqa: ARG002
        return self.whole_forest_.n_trees

    def _forest_at(self, value: int) -> Forest:
        forest = self.whole_forest_
        end = forest.tree_starts[value]
        return Forest.from_preorder(
            forest.feature[:end], forest.threshold[:end], forest.missing_left[:end],
            forest.counts[:end],
        )  # fmt: skip

    def _valid(self, name: str, value: Any) -> int:
        return check_integer(name, value, minimum=1)

    def _checked(self, name: str, value: Any) -> int:
        return check_integer(name, value, minimum=1, maximum=self.whole_forest_.n_trees)
