"""Features acquired row by row, by the margins of neighbors; `rule` has the formulas."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Saved
from bayescascade.base.watch import Watch, watch_in_use
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.within_budgets import WithinBudgets
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.neighbors.nearest import NearestPolicy
from bayescascade.methods.budget.neighbors.nearest_fitting import (
    ChosenNearest,
    NearestFit,
    measured,
)
from bayescascade.methods.budget.neighbors.parameters import MarginNeighborsParameters
from bayescascade.methods.budget.neighbors.rule import Rule
from bayescascade.model.view import View, joined
from bayescascade.report.page import Pieces, count_of

_LEVELS = CellPolicy(missing="level")


@dataclass(eq=False, repr=False)
class MarginNeighborsClassifier(WithinBudgets, BudgetedClassifier):
    """Acquires, for each row, the features that help most to classify similar rows.

    Parameters
    ----------
    estimator : classifier or None
        A linear classifier of scikit-learn, or a `GradientBoostingClassifier` with stumps, which is
        fitted to standardized columns. None: boosted stumps, with 100 rounds for two classes and
        60 rounds for more.

    Attributes
    ----------
    rule_ : Rule
        The rule that chooses the next feature of a row and when to stop. `n_neighbors_`,
        `tradeoff_`, `stop_`, `predict_by_` and `margins_` are parts of it. It is a heuristic
        without an objective.
    steps_ : (3, d + 1) float64
        For each number of measured features: the share of the validation rows that get so far,
        their share of right neighbors, and their own accuracy.

    All other attributes are those of `BudgetedClassifier`.

    Notes
    -----
    Nan (2018), chapter 2, with the errata of the documentation. The classifier learns from all
    rows. Neighbors are sought among 20,000 rows, drawn by class, if there are more; a note says so.
    A saved file contains these rows, because prediction needs them. Costs, shares and choices are
    measured on at most 2,000 validation rows. If there are fewer than 1,000, kept training rows are
    used as well, each left out of its own neighborhoods. Without labels of validation rows, only
    kept training rows are used. Reported accuracies are calibrated: their log odds are shifted so
    that, for each number of features, their mean is the observed accuracy.

    For equal costs, ``margins="in_sample"``, ``ties="first"``, ``stop="threshold"`` and
    ``predict_by="margin"`` give the algorithm of the paper.

    References
    ----------
    Nan, F., Wang, J., Trapeznikov, K. and Saligrama, V. (2014). Fast margin-based cost-sensitive
    classification. ICASSP.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import MarginNeighborsClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> model = MarginNeighborsClassifier(budget=1.0, random_state=0).fit(X, X[:, 2] > 0.5)
    >>> np.flatnonzero(model.feature_shares_).tolist()
    [2]
    """

    model_name: ClassVar[str] = "MarginNeighborsClassifier"
    title: ClassVar[str] = "margins of neighbors"
    purpose: ClassVar[str] = (
        "The class of a row. The classifier asks for one feature after the other, and always for "
        "the one that would decide most of the similar training rows."
    )
    ignored: ClassVar[str] = "missing"
    missing: ClassVar[str] = "level"  # type: ignore[misc] # not a parameter here
    declares = MarginNeighborsParameters

    _not_saved: ClassVar[tuple[str, ...]] = (*BudgetedClassifier._not_saved, "estimator")

    estimator: Any = MarginNeighborsParameters.estimator.default
    _: KW_ONLY
    n_neighbors: int | None = MarginNeighborsParameters.n_neighbors.default
    tradeoff: float | None = MarginNeighborsParameters.tradeoff.default
    stop: str = MarginNeighborsParameters.stop.default
    threshold: float | None = MarginNeighborsParameters.threshold.default
    max_features: int | None = MarginNeighborsParameters.max_features.default
    predict_by: str = MarginNeighborsParameters.predict_by.default
    margins: str = MarginNeighborsParameters.margins.default
    rest: str = MarginNeighborsParameters.rest.default
    ties: str = MarginNeighborsParameters.ties.default

    _asks: Annotated[NearestPolicy, Saved("asks")] = field(init=False)
    _trial: "_Trial" = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> "_Trial":  # fmt: skip
        del budgets
        self._check_parameters()
        watch = Watch(self.time_limit)
        given = GivenRows.labeled(X, y, sample_weight)
        training = self._read_labeled(given, GivenRows.validating(X_val, y_val))
        self.n_rows_ = int((training.weights > 0).sum())
        value = self.threshold if self.max_features is None else float(self.max_features)
        fit = NearestFit(
            self.items_, np.asarray(self._encoder.source, np.int64), self.estimator,
            self.n_neighbors, self.tradeoff, self.stop, value, self.predict_by, self.margins,
            self.rest, self.ties,
        )  # fmt: skip
        found = fit.learn(training, np.random.default_rng(self.random_state), watch)
        n_kept = len(next(iter(found.around.values())).rows)
        if n_kept < self.n_rows_:
            kept = f"neighbors are sought among {n_kept:,} of {self.n_rows_:,} rows"
            self.notes_ = (*self.notes_, kept)
        return _Trial(found, training, watch)

    def _check_parameters(self) -> None:
        """Raise ParameterError if a parameter is out of its range, or has no effect."""
        self.declares.check(self)
        for name, stop in (("threshold", "threshold"), ("max_features", "number")):
            if getattr(self, name) is not None and self.stop != stop:
                raise ParameterError(
                    f'{name} must be None unless stop is "{stop}", got {getattr(self, name)!r}'
                )

    @property
    def cells(self) -> CellPolicy:  # type: ignore[override] # not of the parameter `missing`
        """Which cells are accepted; see `CellPolicy`."""
        return _LEVELS

    def _policy(self) -> CellPolicy:
        return self.cells

    def _chosen(self, budget: float | None) -> Self:
        model = copy.copy(self)
        model.budget = budget
        model._become_rule(self._trial.found, budget)
        return model

    def _become_rule(self, found: ChosenNearest, budget: float | None) -> None:
        """Take the best rule within a budget, or one that reads nothing."""
        best, is_within_budget = found.within(budget)
        self._asks = found.policy(best)
        training, watch = self._trial.training, self._trial.watch
        if training.validation_labels is None and training.validation_rows is not training.rows:
            generator = np.random.default_rng(self._seed)
            others = training.validation_rows
            self._measure(others[measured(len(others), generator, watch_in_use())], watch)
        else:
            self._measure_used(found.used(best), watch)
        if self._reads_nothing:  # the sum of no terms need not predict the commonest class
            self._cut_down()
        elif is_within_budget and budget is not None:
            self._settle(found.choice(best))

    @property
    def _seed(self) -> Any:
        return None if isinstance(self.random_state, np.random.Generator) else self.random_state

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    def _features_read(self, rows: Matrix) -> Flags:
        return self._asks.ends(rows).used

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        return self._asks.walk(encoder)

    @property
    def _reads_nothing(self) -> bool:
        return not self._walk(self._encoder)().waiting

    def _cut_down(self) -> None:
        self._asks = self._asks.of_nothing

    # -- what was learned --------------------------------------------------------------------------

    @property
    def rule_(self) -> Rule:
        """The rule that chooses features."""
        check_is_fitted(self)
        return self._asks.rule

    @property
    def steps_(self) -> Floats:
        """Statistics by the number of measured features, (3, d + 1); see the class."""
        check_is_fitted(self)
        return self._asks.steps

    @property
    def n_neighbors_(self) -> int:
        """Weight of the neighbors."""
        return self.rule_.n_neighbors

    @property
    def tradeoff_(self) -> float:
        """Additional share of right neighbors that a unit of cost is worth."""
        return self.rule_.tradeoff

    @property
    def stop_(self) -> tuple[str, float]:
        """The kind of stopping rule, and its threshold or number."""
        return self.rule_.stop, self.rule_.value

    @property
    def predict_by_(self) -> str:
        """How to predict, "margin" or "vote"."""
        return self.rule_.predict_by

    @property
    def margins_(self) -> str:
        """The classifier that judges neighbors, "in_sample" or "out_of_fold"."""
        return self.rule_.margins

    @property
    def commonest_class_(self) -> Any:  # a label
        """Most common class of the training rows."""
        check_is_fitted(self)
        return self.classes_.tolist()[int(self._asks.shares.argmax())]

    def _probabilities(self, rows: Matrix) -> Floats:
        return self._asks.ends(rows).probabilities

    def _answers(self, rows: Matrix) -> tuple[Floats, Flags]:
        ends = self._asks.ends(rows)
        return ends.probabilities, ends.used

    def _reasons(self, X: Any) -> list[str]:
        return self._asks.reasons(self._matrix(X), self._encoder)

    # -- what a user sees --------------------------------------------------------------------------

    def _size_facts(self) -> list[str]:
        return [self._asks.size_text]

    def view(self) -> View:
        """Return what is shown: how a row asks, and the features."""
        view, asks = super().view(), self._asks
        return view._replace(
            heading=[self.title, count_of(len(self.classes_), "class", "classes")],
            made=(*view.made, *map(Pieces, asks.facts())),
            shown=joined(asks.page(), view.shown),
            terms=(*asks.how_to_read, *view.terms),
        )

    # -- files -------------------------------------------------------------------------------------

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        around, n_classes = self._asks.around, len(self.classes_)
        if not np.array_equal(np.unique(around.labels), np.arange(n_classes)):
            raise ValueError(f"labels must be of each of {n_classes} classes")
        if around.weights.sum() < self.rule_.n_neighbors:
            raise ValueError("there must be as many rows as neighbors")

    def _sizes(self) -> dict[str, Any]:
        n_classes = len(self.classes_)
        return {
            **super()._sizes(), "scores": 1 if n_classes == 2 else n_classes,
            "source": np.asarray(self._encoder.source, np.int64), "n_classes": n_classes,
            "items": self.items_, "is_rest_near": self.rest == "neighbors",
            "has_ties": self.ties == "all",
        }  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_asks")


class _Trial(NamedTuple):
    """Candidates of `fit`, and the rows."""

    found: ChosenNearest
    training: TrainingRows
    watch: Watch
