"""A random forest on features that are bought for all rows, within a budget.

Prunings, and trees that are cheap by construction, buy an expensive feature only for the rows of
some branches. If one examination is informative for all rows, and the budget allows little more
than that one, it is better to buy it for all rows and grow the trees on the bought features.

Features are bought one after the other, or the members of a group together: first the cheapest
features, then always the one that most reduces the error of a new forest. The error is the Brier
score of each row under the trees that were not grown on it,

    1 / N sum_i sum_c (p_c(i) - [y_i = c])^2,

as long as a feature reduces it at all. So useless features may be bought by chance; but requiring a
reduction by a standard error cost one to two points of error (means of eight splits of the heart
data, with 180 training rows). An error rate is too coarse a measure for 200 rows. All forests draw
the same rows, by the same seeds, so that they differ only by the features. The last reduction by a
feature is used as a bound on its next one, so that few forests are needed after the first of each
feature (Minoux 1978; this is exact for diminishing returns, but two features that are informative
only together may not be found).
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from bayescascade.base.arrays import Floats
from bayescascade.base.timed_fit import fit_in_time
from bayescascade.base.watch import OutOfTime, Watch, check_time, watch_in_use
from bayescascade.costs.choice import is_compared
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.forests.bags import out_of_bag
from bayescascade.methods.forests.base import ForestClassifier
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.parameters import SelectedForestParameters
from bayescascade.model.search import seed_sequence
from bayescascade.report.numbers import cost_texts

_OF_SELECTION, _OF_FOREST = 0.5, 0.5  # shares of the time left; the rest is for judging
_AT_ONCE = 0.05  # share of the budget for features that are always bought

Features = frozenset[int]


@dataclass(eq=False, repr=False, kw_only=True)
class SelectedForestClassifier(ForestClassifier):
    """Random forest on a set of features that is the same for all rows.

    Parameters
    ----------
    budget : float >= 0 or None
        Limit on the cost of each row. None: no limit. The cheapest features, up to 5 % of the
        budget, are always bought; after that, features that reduce the error.
    time_limit : float > 0 or None
        Seconds, from its beginning, after which `fit` ends. Half of them are for the choice of
        features; it buys at least the best so far. Then it grows the forest, which may have fewer
        trees. The features may then depend on the machine.

    Attributes
    ----------
    selected_ : list of str
        The selected features, in the order of selection. A row buys only those that the trees read.

    All other attributes are those of `BudgetedClassifier`.

    References
    ----------
    Minoux, M. (1978). Accelerated greedy algorithms for maximizing submodular set functions. In:
    Optimization Techniques.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import SelectedForestClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 8))
    >>> y = X[:, 3] + X[:, 7] > 0
    >>> SelectedForestClassifier(budget=2.0, n_trees=10, random_state=0).fit(X, y).selected_
    ['x7', 'x3']
    """

    model_name: ClassVar[str] = "SelectedForestClassifier"
    title: ClassVar[str] = "forest of selected features"

    declares = SelectedForestParameters

    n_trees: int = SelectedForestParameters.n_trees.default
    min_samples_leaf: int = SelectedForestParameters.min_samples_leaf.default
    n_jobs: int | None = SelectedForestParameters.n_jobs.default

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Select the features, and grow the forest.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Training rows. Cells are numbers, truth values, text or categories; NaN or None is
            missing.
        y : (n_rows,) array
            Labels, of at least two classes.
        X_val : as X, optional
            Rows on which the mean cost is measured; by default those of `X`.
        y_val : (n_validation_rows,) array, optional
            Their labels, which only decide whether anything is bought.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If the rows or labels cannot be used.
        """
        watch = Watch(self.time_limit)
        self.declares.check(self)
        training = self._read_training(X, y, X_val=X_val, y_val=y_val)
        (seed,) = seed_sequence(self.random_state).generate_state(1)
        template = RandomForestClassifier(
            self.n_trees,
            criterion="entropy",
            min_samples_leaf=self.min_samples_leaf,
            n_jobs=self.n_jobs,
            random_state=int(seed),
        )

        def learn(other: Self, part: TrainingRows) -> Forest:
            forest = Forest.from_sklearn(other._learned(template, part)[1])
            check_time()
            return forest

        with watch.watching():
            order, grown = self._learned(template, training)
            forest = Forest.from_sklearn(grown)
            self._become(forest, training.validation_rows, watch)
            self.selected_ = [self.feature_texts[feature] for feature in order]
            if self.budget is not None and is_compared() and forest.n_splits:
                outside = out_of_bag(grown, len(training.rows), "budget")
                try:
                    self._settle(self._choice(training, forest, learn, outside))
                except OutOfTime:
                    self.stopped_after_ = watch.seconds
        return self

    def _learned(
        self, template: RandomForestClassifier, training: TrainingRows
    ) -> tuple[list[int], RandomForestClassifier]:
        """Return the bought features, in order, and a forest on them."""
        shared: dict[Any, float] = {} if self._shared is None else self._shared[1]
        rows = joblib.hash((training.rows, training.labels, template.random_state))

        def loss(features: Features) -> float:
            if (rows, features) not in shared:
                grown = self._grown(template, training, features)
                shared[rows, features] = _brier_score(grown, training)
            return shared[rows, features]

        nobody = np.bincount(training.labels) / len(training.labels)
        watch = watch_in_use()
        with watch.part(_OF_SELECTION, is_final=True):
            order = _selected(self.items_, self.budget, loss, 1.0 - float((nobody**2).sum()))
        with watch.part(_OF_FOREST, is_final=True):
            return order, self._grown(template, training, frozenset(order))

    def _buy_nothing(self) -> None:
        super()._buy_nothing()
        self.selected_ = []

    @property
    def certificate_texts(self) -> list[str]:
        """The budget, if there is one, and the maximum cost of a row."""
        told = [] if self.budget is None else [f"budget {self.budget:.12g}"]
        wanted = set(self.selected_)
        used = np.array([[name in wanted for name in self.feature_texts]])
        (most,) = cost_texts(self.items_.total(self.items_.paid(used)).tolist())
        return [*super().certificate_texts, *told, f"at most {most} for any row"]

    def _grown(
        self, template: RandomForestClassifier, training: TrainingRows, features: Features
    ) -> RandomForestClassifier:
        """Return a forest that reads only some features: the others are constant."""
        is_read = np.isin(self._encoder.source, list(features))
        rows = np.where(is_read, training.rows, np.float32(0.0))
        forest = RandomForestClassifier(**template.get_params())
        return fit_in_time(forest, rows, training.labels)

    def _own_record(self) -> dict[str, Any]:
        return {"selected": self.selected_}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        selected = record["selected"]
        if not isinstance(selected, list) or not set(selected) <= set(self.feature_texts):
            raise ValueError(f"selected must be features, got {selected!r}")
        self.selected_ = selected


def _selected(
    items: CostItems, budget: float | None, loss: Callable[[Features], float], loss_of_none: float
) -> list[int]:
    """Return the bought features, in order; none if the cheapest is beyond the budget."""
    limit = float(items.costs.sum()) if budget is None else budget
    purchases = sorted(_purchases(items), key=lambda one: (_cost(items, one), sorted(one)))
    order: list[int] = []

    def with_(purchase: Features) -> Features:
        return purchase | frozenset(order)

    for one in purchases:
        if is_within(_cost(items, with_(one)), _AT_ONCE * limit):
            order += sorted(one - set(order))
    current = loss(frozenset(order)) if order else loss_of_none
    # ordered by the last change of the loss, after `n_bought` features
    waiting = [(-np.inf, -1, place) for place in range(len(purchases))]
    while waiting:
        if watch_in_use().is_over():
            tried = [one for one in waiting if one[1] == len(order) and one[0] < 0.0]
            best = purchases[min(tried)[2] if tried else 0]
            if tried or (not order and is_within(_cost(items, best), limit)):
                order += sorted(best - set(order))
            break
        gain, n_bought, place = heapq.heappop(waiting)
        features = with_(purchases[place])
        if len(features) == len(order) or not is_within(_cost(items, features), limit):
            continue
        if n_bought < len(order):
            heapq.heappush(waiting, (loss(features) - current, len(order), place))
        elif gain < 0.0:
            order += sorted(features - set(order))
            current += gain
        else:
            break
    return order


def _purchases(items: CostItems) -> set[Features]:
    """Return the possible purchases: each feature, and the members of each group."""
    columns = range(items.n_columns)
    groups = range(items.n_items - items.n_groups, items.n_items)
    members = {frozenset(c for c in columns if g in items.of_column(c)) for g in groups}
    return members | {frozenset([column]) for column in columns}


def _cost(items: CostItems, features: Features) -> float:
    used = np.isin(np.arange(items.n_columns), list(features))[np.newaxis]
    return float(items.total(items.paid(used))[0])


def _brier_score(grown: RandomForestClassifier, training: TrainingRows) -> float:
    """Return the mean score of the rows under the trees that were not grown on them."""
    forest = Forest.from_sklearn(grown)
    leaves = forest.apply(training.rows)
    shares = np.zeros((len(training.rows), forest.n_classes))
    n_votes = np.zeros(len(training.rows))
    for tree, bag in enumerate(grown.estimators_samples_):
        outside = np.ones(len(training.rows), np.bool_)
        outside[bag] = False
        shares[outside] += forest.probabilities[leaves[outside, tree]]
        n_votes += outside
    is_told = n_votes > 0
    truth: Floats = np.eye(forest.n_classes)[training.labels[is_told]]
    said = shares[is_told] / n_votes[is_told, np.newaxis]
    return float(((said - truth) ** 2).sum(axis=1).mean()) if len(said) else 0.0
