"""TruncatedForest: the first trees of a forest, as many as a budget allows."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bayescascade.base.constructor import store_parameters
from bayescascade.base.validation import check_integer
from bayescascade.costs.items import Costs
from bayescascade.data.training_rows import TrainingRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.baseline_pruner import BaselinePruner
from bayescascade.model.search import Seed

__all__ = ["TruncatedForest"]


class TruncatedForest(BaselinePruner):
    """A forest of which only the first trees are left: a baseline.

    Parameters
    ----------
    forest : estimator or None
        As in `BudgetPrune`.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. They decide only what is within a budget.
    n_trees : int >= 1 or None
        Trees to keep; None: all of them.
    budget : float >= 0 or None
        The most that a row may cost, on average over the validation rows, instead of a number of
        trees.
    n_jobs, random_state
        As in `BudgetPrune`.

    Attributes
    ----------
    forest_ : Forest
        The trees that are left.
    n_trees_ : int
        Their number.
    estimator_ : estimator
        The forest they are of, and `whole_forest_`, its trees; not in saved models.
    classes_, costs_, items_, validation_cost_, feature_shares_, item_shares_, n_features_in_,
    feature_names_in_
        As of every `BudgetedClassifier`.

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
    knob: ClassVar[str] = "n_trees"

    n_trees: int | None
    n_trees_: int

    def __init__(
        self,
        forest: Any = None,
        *,
        costs: Costs = None,
        n_trees: int | None = None,
        budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        store_parameters(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_trees is not None:
            check_integer("n_trees", self.n_trees, minimum=1)

    def _prepare(self, training: TrainingRows, forest: Forest) -> None:
        """Do nothing: all that is asked of the forest is its number of trees."""

    def _values(self) -> Sequence[int]:
        return range(self.whole_forest_.n_trees, 0, -1)

    def _chosen(self, training: TrainingRows) -> int:  # noqa: ARG002
        if self.n_trees is None:
            return self.whole_forest_.n_trees
        return self._checked("n_trees", self.n_trees)

    def _forest_at(self, value: int) -> Forest:
        forest = self.whole_forest_
        end = forest.tree_starts[value]
        return Forest.from_preorder(
            forest.feature[:end], forest.threshold[:end], forest.missing_left[:end],
            forest.counts[:end],
        )  # fmt: skip

    def _checked(self, name: str, value: Any) -> int:
        return check_integer(name, value, minimum=1, maximum=self.whole_forest_.n_trees)

    def _read_own(self, record: Mapping[str, Any]) -> None:
        self.n_trees_ = check_integer("n_trees", record["n_trees"], minimum=1)
