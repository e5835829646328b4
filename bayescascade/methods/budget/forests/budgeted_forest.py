"""BudgetRF: a forest that is grown for a budget (Nan 2018, chapter 3; Nan, Wang, Saligrama 2015).

Trees that are cheap by construction are added until they cost too much, see `growing`. ``alpha``,
which the thesis chooses on validation data, may have several values, and so may the exponent of
costs and the number of columns drawn for a split.

No single values are best at every budget. With 40 trees and twelve budgets from 3 % to 100 % of the
costs of all features, the mean test error on digits with random costs was 0.19 with the exponent 1,
0.26 with 0, and 0.11 with the better of both on validation rows; on magic with equal costs it was
0.29 with ``alpha = 0``, and 0.25 with the better of 0 and 16. So by default a few values of each
are compared, if there are rows for the choice.

*Departures.* The class shares at the leaves are averaged; in the thesis each tree votes. Half of
the columns are drawn for each split; the thesis uses all. This makes trees more different, with
fewer errors for the same features. Measured at 40 trees, share of features used and error:
covertype 26 % and 0.160 against 24 % and 0.178, digits 61 % and 0.029 against 56 % and 0.046; if
costs differ, more of a budget is spent. The bound on a tree's cost requires all columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Annotated, Any, ClassVar, Self

import joblib
import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Of, Saved, Within
from bayescascade.base.validation import check_real
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.costs.choice import CROSSED, PurchaseChoice, is_few
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.forests.bags import wrong_crossed
from bayescascade.methods.budget.forests.base import ForestClassifier
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.forests.growing import (
    MAX_BINS,
    CodedColumns,
    GrownForest,
    GrowthAlternative,
    Share,
    TreeGrower,
    add_trees,
    alternative_of,
    bare_root,
    check_share,
    n_drawn,
    outside_bags,
    several,
)
from bayescascade.methods.budget.forests.impurities import (
    Impurity,
    PolynomialImpurity,
    impurity_arrays,
    impurity_values,
)
from bayescascade.methods.budget.forests.parameters import BudgetedForestParameters
from bayescascade.model.search import seed_sequence
from bayescascade.report.numbers import cost_texts

_AUTOMATIC: Mapping[str, tuple[Share, ...]] = {
    "alpha": (0.0, 16.0),
    "cost_exponent": (1.0, 0.5, 0.0),
    "max_features": (0.5, None),
}
"""The values for "auto" if there are rows for a choice; otherwise the first."""


@dataclass(eq=False, repr=False, kw_only=True)
class BudgetedForestClassifier(ForestClassifier):
    """Random forest whose trees are grown to acquire few features, within a budget.

    Parameters
    ----------
    budget : float >= 0 or None
        Limit on the mean cost of a validation row, which pays once for a feature that several trees
        read. None: `max_trees` trees are grown.
    impurity : {"threshold_pairs", "powers"} or PolynomialImpurity
        Impurity that splits reduce; see `bayescascade.methods.budget.forests.impurities`.
    alpha : float >= 0, sequence of them, or "auto"
        Slack of "threshold_pairs": about this number of rows of other classes is ignored at a leaf.
        Larger values give smaller trees, so more trees fit into a budget. "auto": 0. If there is a
        `budget`, and if there are labels of validation rows or fewer than 1,000 training rows, 0 or
        16 is chosen.
    order : int from 2 to 30
        Order of the impurity "powers".
    cost_exponent : float >= 0, sequence of them, or "auto"
        Trees are grown with the costs raised to this power. 1, as in the thesis, may never buy
        expensive features if costs differ much, and then leaves most of a budget unspent. Smaller
        values buy them more often. The budget always counts the costs themselves. "auto": 1. If
        `alpha` is chosen and costs differ, 1, 0.5 or 0 is chosen.
    thresholds : {"exact", "histogram", "random"}
        Candidate thresholds of a column: all of them; those between 255 quantiles; or 80, 40 or 20
        random ones, as in the experiments of the thesis.
    reuse_is_free : bool
        Whether a feature (and its groups, for their other members) is free below a split that reads
        it. A free feature is preferred if it reduces the impurity as much as the best other
        feature. If all costs are equal and there are no groups, this makes almost no difference.
        False is as in the thesis.
    max_features : int >= 1, float in (0, 1], "sqrt" or None, sequence of them, or "auto"
        Number or share of the columns, drawn at random, among which each split is chosen. None: all
        columns, as in the thesis. (Text and unordered categories with more than two levels have one
        column per level.) "auto": 0.5. If `alpha` is chosen, 0.5 or None is chosen.
    time_limit : float > 0 or None
        Seconds, from the beginning of `fit`, after which no new tree is grown. Forests that are
        compared share this time. The first tree of a forest is always finished, as is compiling at
        the first fit. The number of trees may then depend on the machine.

    Attributes
    ----------
    forest_ : Forest
        The trees.
    alpha_, cost_exponent_ : float
    max_features_ : int
        The values of the forest. Among several, those with the smallest error on the validation
        rows, and for equal errors, the smallest cost.
    alternatives_ : tuple of GrowthAlternative
        One alternative for each combination of `alpha`, `cost_exponent` and `max_features`. Not in
        loaded models.
    cost_path_ : (n_trees,) float64
        Mean cost of the validation rows after each tree. If the first tree is beyond the budget,
        nothing is bought, and there is only its cost.
    is_interrupted_ : bool
        Whether Ctrl-C ended `fit`. Then the forest is the best one so far.

    All other attributes are those of `BudgetedClassifier`.

    References
    ----------
    Nan, F. (2018). Learning to predict under a budget. PhD thesis, Boston University. Chapter 3.

    Nan, F., Wang, J. and Saligrama, V. (2015). Feature-budgeted random forest. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BudgetedForestClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> y = X[:, 3] + X[:, 7] > 0
    >>> model = BudgetedForestClassifier(budget=6.0, random_state=0).fit(X, y)
    >>> bool(model.acquisition_cost(X).mean() <= 6.0)
    True
    """

    model_name: ClassVar[str] = "BudgetedForestClassifier"
    title: ClassVar[str] = "budgeted forest"

    declares = BudgetedForestParameters

    impurity: Impurity = BudgetedForestParameters.impurity.default
    alpha: float | Sequence[float] | str = BudgetedForestParameters.alpha.default
    order: int = BudgetedForestParameters.order.default
    cost_exponent: float | Sequence[float] | str = BudgetedForestParameters.cost_exponent.default
    max_trees: int = BudgetedForestParameters.max_trees.default
    thresholds: str = BudgetedForestParameters.thresholds.default
    reuse_is_free: bool = BudgetedForestParameters.reuse_is_free.default
    max_features: Share | Sequence[Share] = BudgetedForestParameters.max_features.default
    max_depth: int | None = BudgetedForestParameters.max_depth.default
    bootstrap: bool = BudgetedForestParameters.bootstrap.default
    n_jobs: int | None = BudgetedForestParameters.n_jobs.default

    alpha_: Annotated[float, Within(0), Saved("alpha")] = field(init=False)
    cost_exponent_: Annotated[float, Within(0), Saved("cost_exponent")] = field(init=False)
    max_features_: Annotated[int, Within(1), Saved("max_features")] = field(init=False)
    cost_path_: Annotated[Floats, Of(None, least=0), Saved("cost_path")] = field(init=False)
    is_interrupted_: Annotated[bool, Saved("is_interrupted")] = field(init=False, default=False)

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Training rows. Cells are numbers, truth values, text or categories; NaN or None is
            missing.
        y : (n_rows,) array
            Labels, of at least two classes.
        X_val : as X, optional
            Rows on which costs are measured. Without them, costs are measured on `X`, where they
            are a little smaller than on new rows.
        y_val : (n_validation_rows,) array, optional
            Their labels, which choose among several `alpha`, `cost_exponent` or `max_features`.
            Without them, cross-validation chooses if there is a `budget` and `X` has fewer than
            1,000 rows.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or `y_val` is missing and needed.
        DataError
            If the rows or labels cannot be used.
        """
        watch = Watch(self.time_limit)
        self._check_parameters()
        training = self._read_training(X, y, X_val=X_val, y_val=y_val)
        grid = self._grid(training)
        is_crossed = self.budget is not None and is_few(training)
        if len(grid) > 1 and not is_crossed:
            training.needed_validation_labels("several alpha, cost_exponent or max_features")
        seeds = seed_sequence(self.random_state).spawn(self.max_trees)
        tried = self._grow_each(training, grid, seeds, watch)
        is_interrupted, choices = tried[-1][1].is_interrupted, None
        if is_crossed and not is_interrupted and any(one.n_trees for one, _ in tried):
            try:
                choices = self._cross(training, grid, seeds, watch)
            except KeyboardInterrupt as ended:
                is_interrupted = not isinstance(ended, OutOfTime)
            else:
                tried = [
                    (one._replace(error=choice.error if one.n_trees else np.nan), grown)
                    for (one, grown), choice in zip(tried, choices, strict=True)
                ]
        chosen, grown = self._choose(tried)
        trees = grown.trees or bare_root(training.labels, training.n_classes)
        self._become(trees, training.validation_rows, watch)
        self.alpha_, self.cost_exponent_, self.max_features_ = chosen[:3]
        self.alternatives_ = tuple(alternative for alternative, _ in tried)
        self.cost_path_ = grown.costs
        self.is_interrupted_ = is_interrupted
        if choices is not None:
            self._settle(choices[[one for _, one in tried].index(grown)])
        elif self.budget is not None and not is_crossed and trees.n_splits:
            bags = seeds[: grown.n_trees]
            outside = outside_bags(bags, len(training.rows)) if self.bootstrap else None
            self._settle(self._choice(training, trees, None, outside))
        return self

    def _grow_each(
        self,
        training: TrainingRows,
        grid: Sequence[tuple[float, float, Share]],
        seeds: Sequence[np.random.SeedSequence],
        watch: Watch,
    ) -> list[tuple[GrowthAlternative, GrownForest]]:
        """Return the forest of each alternative, within the time limit."""
        columns = CodedColumns.of(
            training.rows, MAX_BINS if self.thresholds == "histogram" else None
        )
        tried: list[tuple[GrowthAlternative, GrownForest]] = []
        is_late = False
        most, shared = self._shared or (self.budget, {})
        rows = joblib.hash((training.rows, training.labels, seeds[0].generate_state(4)))
        for place, (alpha, exponent, share) in enumerate(grid):
            if any(one.n_trees for _, one in tried) and watch.is_over():
                break
            grower = self._grower(training, columns, alpha, exponent, share)
            known = (rows, alpha, exponent, share)
            grown = shared.get(known)
            if grown is None:
                with watch.part(1.0 / (len(grid) - place)):
                    grown = add_trees(
                        grower,
                        seeds,
                        training.validation_rows,
                        budget=most,
                        bootstrap=self.bootstrap,
                        n_jobs=self.n_jobs,
                        watch=watch,
                    )
                    is_late = is_late or watch.is_up
                    if not (watch.is_up or grown.is_interrupted):
                        shared[known] = grown
            grown = grown.within(self.budget)
            tried.append((alternative_of(alpha, grower, grown, training), grown))
            if grown.is_interrupted:
                break
        watch.is_up = watch.is_up or is_late
        return tried

    def _cross(
        self,
        training: TrainingRows,
        grid: Sequence[tuple[float, float, Share]],
        seeds: Sequence[np.random.SeedSequence],
        watch: Watch,
    ) -> list[PurchaseChoice]:
        """Return the comparison of each alternative with buying nothing, by cross-validation."""
        nothing = training.labels != training.commonest
        choices = []
        for one in grid:

            def learn(other: Self, part: TrainingRows, one: Any = one) -> Forest | None:
                ((_, grown),) = other._grow_each(part, [one], seeds, watch)
                if watch.is_over():
                    raise OutOfTime
                if grown.is_interrupted:
                    raise KeyboardInterrupt
                return grown.trees

            wrong = wrong_crossed(self._folds(training), training, learn)
            choices.append(PurchaseChoice.of(CROSSED, wrong, nothing, training))
        return choices

    @property
    def nothing_read_text(self) -> str:
        """The line of the print if no feature is read; otherwise empty."""
        text = super().nothing_read_text
        if not text or self.budget is None or is_within(self.cost_path_[0], self.budget):
            return text
        (least,) = cost_texts([self.cost_path_[0]])
        return f"{text}; the cheapest first tree costs {least} a row"

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether validation labels chose the forest; also true if unknown after loading."""
        alternatives = getattr(self, "alternatives_", None)
        is_crossed = self.choice_ is not None and self.choice_.rows == CROSSED
        return alternatives is None or (len(alternatives) > 1 and not is_crossed)

    def _parameter_fields(self) -> dict[str, Any]:
        parameters = super()._parameter_fields()
        if isinstance(self.impurity, PolynomialImpurity):
            parameters["impurity"] = asdict(self.impurity)
        return parameters

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        parameters = super()._read_parameters(record)
        if isinstance(parameters["impurity"], dict):
            parameters["impurity"] = PolynomialImpurity(**parameters["impurity"])
        return parameters

    def _check_parameters(self) -> None:
        self.declares.check(self)
        for name in _AUTOMATIC:
            self._values(name, is_choosing=False)

    def _values(self, name: str, is_choosing: bool) -> list[Any]:  # Any: numbers or shares
        """Return the values of a parameter with one or several values, checked."""
        value = getattr(self, name)
        if isinstance(value, str) and value == "auto":
            return list(_AUTOMATIC[name][: None if is_choosing else 1])
        if name == "max_features":
            return [check_share(*one) for one in several(name, value)]
        return [check_real(*one, minimum=0.0) for one in several(name, value)]

    def _grid(self, training: TrainingRows) -> list[tuple[float, float, Share]]:
        """Return all combinations of alpha, cost_exponent and max_features."""
        can_choose = training.validation_labels is not None or is_few(training)
        is_choosing = self.budget is not None and can_choose
        items = self._matrix_items
        has_one_cost = bool(np.all(np.diff(items.starts) <= 1)) and len(set(items.costs)) <= 1
        alphas = self._values("alpha", is_choosing and self.impurity == "threshold_pairs")
        exponents = self._values("cost_exponent", is_choosing and not has_one_cost)
        return list(product(alphas, exponents, self._values("max_features", is_choosing)))

    def _grower(
        self,
        training: TrainingRows,
        columns: CodedColumns,
        alpha: float,
        exponent: float,
        share: Share,
    ) -> TreeGrower:
        n_rows, n_columns = training.rows.shape
        measure = impurity_arrays(
            self.impurity, alpha=alpha, order=self.order, n_classes=training.n_classes
        )
        (largest,) = impurity_values(measure, np.full((1, training.n_classes), float(n_rows)))
        if not np.isfinite(largest):
            raise ParameterError(
                f"impurity must be finite for {n_rows:,} rows of each class, got {largest}"
            )
        return TreeGrower(
            columns,
            training.labels,
            measure,
            self._matrix_items,
            training.n_classes,
            cost_exponent=exponent,
            reuse_is_free=self.reuse_is_free,
            max_depth=self.max_depth,
            max_features=n_drawn(share, n_columns),
            has_stumps=self.thresholds == "random",
        )

    def _choose(
        self, tried: Sequence[tuple[GrowthAlternative, GrownForest]]
    ) -> tuple[GrowthAlternative, GrownForest]:
        """Return the forest with the smallest error; among ties, with the smallest cost.

        If all first trees are beyond the budget, return the cheapest of these.
        """
        within = [pair for pair in tried if pair[0].n_trees]
        if within:
            return min(within, key=lambda pair: (pair[0].error, pair[0].cost))
        if tried[-1][1].is_interrupted:
            raise KeyboardInterrupt
        return min(tried, key=lambda pair: pair[0].cost)
