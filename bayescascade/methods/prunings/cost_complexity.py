"""CostComplexityPrune: every tree of a forest pruned by itself, for its size and not its cost."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.constructor import store_parameters
from bayescascade.base.validation import check_real
from bayescascade.costs.items import Costs
from bayescascade.data.training_rows import TrainingRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.baseline_pruner import BaselinePruner
from bayescascade.methods.prunings.node_counts import count_classes, out_of_bag
from bayescascade.methods.prunings.weakest_links import best_levels, split_levels
from bayescascade.model.search import Seed

__all__ = ["CostComplexityPrune"]

_MOST_LEVELS = 20  # of a path that is not told any


class CostComplexityPrune(BaselinePruner):
    """A forest whose trees are pruned for their size: a baseline, which knows nothing of costs.

    It is scikit-learn's `ccp_alpha` for the Gini impurity, at all levels at once; see
    `bayescascade.methods.prunings.weakest_links`.

    Parameters
    ----------
    forest : estimator or None
        As in `BudgetPrune`.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. They decide only what is within a budget.
    level : float >= 0 or None
        What a leaf must be worth, as scikit-learn's `ccp_alpha`. None: of each tree, the level at
        which it errs least on the rows not in its bag; the forest must have been grown on these
        rows, with bootstrap.
    budget : float >= 0 or None
        The most that a row may cost, on average over the validation rows, instead of a level.
    n_jobs, random_state
        As in `BudgetPrune`.

    Attributes
    ----------
    forest_ : Forest
        The trees that are left.
    level_ : float, or (n_trees,) float64
        The level, or each tree's own.
    estimator_ : estimator
        The forest that was pruned, and `whole_forest_`, its trees; not in saved models.
    classes_, costs_, items_, validation_cost_, feature_shares_, item_shares_, n_features_in_,
    feature_names_in_
        As of every `BudgetedClassifier`.

    References
    ----------
    Breiman, L., Friedman, J., Olshen, R. and Stone, C. (1984). Classification and regression trees.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade.budget import CostComplexityPrune
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> y = X[:, 3] + X[:, 7] > 0
    >>> model = CostComplexityPrune(random_state=0).fit(X[:300], y[:300], X[300:])
    >>> [round(one.validation_cost_) for one in model.path([0.0, 0.1])]
    [12, 2]
    """

    model_name: ClassVar[str] = "cost_complexity_prune"
    knob: ClassVar[str] = "level"

    level: float | None
    level_: float | NDArray[np.float64]

    def __init__(
        self,
        forest: Any = None,
        *,
        costs: Costs = None,
        level: float | None = None,
        budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        store_parameters(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.level is not None:
            self._checked("level", self.level)

    def _prepare(self, training: TrainingRows, forest: Forest) -> None:  # noqa: ARG002
        self._levels = split_levels(forest)

    def _values(self) -> Sequence[float]:
        levels: list[float] = np.unique(np.append(0.0, self._levels)).tolist()
        return levels

    def _few_values(self) -> Sequence[float]:
        levels = self._values()
        places = np.unique(np.linspace(0, len(levels) - 1, _MOST_LEVELS).round().astype(int))
        return [levels[place] for place in places]

    def _chosen(self, training: TrainingRows) -> float | NDArray[np.float64]:
        if self.level is not None:
            return self._checked("level", self.level)
        outside = out_of_bag(self.estimator_, len(training.rows), "level=None")
        counts = count_classes(self.whole_forest_, training.rows, training.labels, outside)
        return best_levels(self.whole_forest_, self._levels, counts)

    def _forest_at(self, value: float | NDArray[np.float64]) -> Forest:
        forest = self.whole_forest_
        of_trees = np.broadcast_to(value, forest.n_trees)
        is_split = self._levels > np.repeat(of_trees, np.diff(forest.tree_starts))
        return forest.pruned(is_split).without_bare_roots()

    def _checked(self, name: str, value: Any) -> float:
        return check_real(name, value, minimum=0.0)

    def _read_value(self, value: Any) -> float | NDArray[np.float64]:
        if not isinstance(value, list):
            return self._checked("level", value)
        return np.array([self._checked("level", one) for one in value], np.float64)
