"""GreedyPrune: a forest without its features that are worth least, removed one after the other."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.constructor import store_parameters
from bayescascade.base.validation import check_integer, check_real
from bayescascade.costs.items import Costs
from bayescascade.data.training_rows import TrainingRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.baseline_pruner import BaselinePruner
from bayescascade.methods.prunings.program import PruningProgram
from bayescascade.methods.prunings.removal import remove_features
from bayescascade.model.search import Seed

__all__ = ["GreedyPrune"]


class GreedyPrune(BaselinePruner):
    """A forest from which features are removed one after the other: a baseline.

    Trees are cut at every split on a removed feature. Each step removes the one that leaves the
    least ``error + tradeoff x cost``; see `bayescascade.methods.prunings.removal`.

    Parameters
    ----------
    forest : estimator or None
        As in `BudgetPrune`.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.
    tradeoff : float >= 0
        In-bag error rate that a unit of cost is worth, in choosing what to remove and how much.
    n_removed : int >= 0 or None
        Features to remove, at most all; None: as many as leave the least ``error + tradeoff x
        cost``.
    budget : float >= 0 or None
        The most that a row may cost, on average over the validation rows: as few features are
        removed as that takes.
    n_jobs, random_state
        As in `BudgetPrune`.

    Attributes
    ----------
    forest_ : Forest
        The trees that are left.
    n_removed_ : int
        How many features were removed.
    removed_ : list of str
        Which, in their order. A feature that was only read below others goes with these.
    estimator_ : estimator
        The forest that was pruned; like `program_`, what its splits gain and cost, and
        `whole_forest_`, its trees, not in saved models.
    classes_, costs_, items_, validation_cost_, feature_shares_, item_shares_, n_features_in_,
    feature_names_in_
        As of every `BudgetedClassifier`.

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
    knob: ClassVar[str] = "n_removed"

    tradeoff: float
    n_removed: int | None
    n_removed_: int
    removed_: list[str]

    def __init__(
        self,
        forest: Any = None,
        *,
        costs: Costs = None,
        tradeoff: float = 0.01,
        n_removed: int | None = None,
        budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        store_parameters(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("tradeoff", self.tradeoff, minimum=0.0)
        if self.n_removed is not None:
            check_integer("n_removed", self.n_removed, minimum=0)

    def _prepare(self, training: TrainingRows, forest: Forest) -> None:
        self.program_ = PruningProgram.of(forest, self._matrix_items, training.validation_rows)
        feature = self._encoder.source[forest.feature[self.program_.node]]
        self._steps = tuple(remove_features(self.program_, feature, self.tradeoff))

    def _values(self) -> Sequence[int]:
        return range(len(self._steps))

    def _chosen(self, training: TrainingRows) -> int:  # noqa: ARG002
        if self.n_removed is not None:
            return self._checked("n_removed", self.n_removed)
        return int(
            np.argmin([self.program_.objective(step.kept, self.tradeoff) for step in self._steps])
        )

    def _forest_at(self, value: int) -> Forest:
        return self._pruned(self._steps[value].kept)

    def _take(self, value: int) -> None:
        super()._take(value)
        self.removed_ = [self.feature_texts[step.feature] for step in self._steps[1 : value + 1]]

    def _checked(self, name: str, value: Any) -> int:
        return min(check_integer(name, value, minimum=0), len(self._steps) - 1)

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
