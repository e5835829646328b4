"""Features acquired row by row, by the margins of neighbors; `rule` has the formulas."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.watch import Watch, watch_in_use
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.tried import WithinBudgets
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.base import CELLS
from bayescascade.methods.margin_neighbors.box_fitting import BoxFit, ChosenBoxes, choose
from bayescascade.methods.margin_neighbors.box_policy import BoxPolicy
from bayescascade.methods.margin_neighbors.boxes import Policy
from bayescascade.methods.margin_neighbors.margins import default_classifier
from bayescascade.methods.margin_neighbors.nearest import NearestPolicy
from bayescascade.methods.margin_neighbors.nearest_fitting import (
    ChosenNearest,
    NearestFit,
    measured,
)
from bayescascade.methods.margin_neighbors.parameters import MarginNeighborsParameters
from bayescascade.methods.margin_neighbors.policy_posterior import PolicyPosterior
from bayescascade.methods.margin_neighbors.rule import Rule
from bayescascade.model.explore import explore_by
from bayescascade.model.search import Search
from bayescascade.model.solution import Certificate
from bayescascade.report.page import BLANK, Page, Pieces, count_of

_LEVELS = CellPolicy(missing="level")


@dataclass(eq=False, repr=False)
class MarginNeighborsClassifier(WithinBudgets, BudgetedClassifier):
    """Acquires, for each row, the features that help most to classify similar rows.

    Parameters
    ----------
    estimator : classifier or None
        A linear classifier of scikit-learn, or a `GradientBoostingClassifier` with stumps, which is
        fitted to standardized columns. None: boosted stumps, with 300 rounds for two classes and
        max(60, 600 / k) rounds for k > 2 classes.

    Attributes
    ----------
    rule_ : Rule or None
        The rule that chooses the next feature of a row and when to stop. `n_neighbors_`,
        `tradeoff_`, `stop_`, `predict_by_` and `margins_` are parts of it. None with boxes.
    steps_ : (3, d + 1) float64
        For each number of measured features: the share of the validation rows that get so far,
        their share of right neighbors, and their own accuracy.
    policy_ : BoxPolicy or None
        The best policy over boxes, which minimizes error rate plus tradeoff times mean cost. None
        for nearest neighbors, whose rule is a heuristic without an objective.
    certificate_ : Certificate or None
        The proof that no policy over boxes is better.
    posterior_ : PolicyPosterior or None
        The Gibbs posterior over policies. Its `draw` returns independent draws. Not in saved
        models.

    All other attributes are those of `BudgetedClassifier`.

    Notes
    -----
    Nan (2018), chapter 2, with the errata of the documentation. A saved file contains the rows,
    because prediction needs them. Costs, shares and choices are measured on at most 2,000
    validation rows. If there are fewer than 1,000, training rows are used as well, each left out of
    its own neighborhoods. Without labels of validation rows, only training rows are used. Reported
    accuracies are calibrated: their log odds are shifted so that, for each number of features,
    their mean is the observed accuracy.

    With ``neighborhood="boxes"``, numbers are cut into `n_bins` bins, and neighbors are in the same
    bins of all measured features. Then the policy is exact for its tradeoff, which is given or
    chosen within the budget on held-out rows. Its leaves predict the most common class or, with
    ``predict_by="margin"``, the class by the mean of the classifier in their bins. `n_neighbors`,
    `stop`, `threshold`, `max_features`, `margins`, `rest` and `ties` have no effect.

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
    neighborhood: str = MarginNeighborsParameters.neighborhood.default
    n_bins: int = MarginNeighborsParameters.n_bins.default
    temperature: float = MarginNeighborsParameters.temperature.default

    certificate_: Certificate | None = field(init=False)
    posterior_: PolicyPosterior | None = field(init=False)

    _asks: NearestPolicy | BoxPolicy = field(init=False)
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
        if self._has_boxes:
            with watch.watching():
                return _Trial(self._boxes(training), training, watch)
        value = self.threshold if self.max_features is None else float(self.max_features)
        fit = NearestFit(
            self.items_, np.asarray(self._encoder.source, np.int64), self.estimator,
            self.n_neighbors, self.tradeoff, self.stop, value, self.predict_by, self.margins,
            self.rest, self.ties,
        )  # fmt: skip
        found = fit.learn(training, np.random.default_rng(self.random_state), watch)
        return _Trial(found, training, watch)

    def _boxes(self, training: TrainingRows) -> ChosenBoxes:
        """Return the policies of boxes, judged on the judging rows."""
        estimator = None
        if self.predict_by == "margin":
            stumps = default_classifier(0, training.n_classes)
            estimator = stumps if self.estimator is None else self.estimator
        fit = BoxFit(
            self._encoder, self.items_, training.classes, self.n_bins, self.temperature, estimator
        )
        tradeoff = 0.0 if self.tradeoff is None and not self.items_.n_items else self.tradeoff
        return choose(fit, training, tradeoff, self.random_state)

    def _check_parameters(self) -> None:
        """Raise ParameterError if a parameter is out of its range, or has no effect."""
        self.declares.check(self)
        for name, stop in (("threshold", "threshold"), ("max_features", "number")):
            if getattr(self, name) is not None and self.stop != stop:
                raise ParameterError(
                    f'{name} must be None unless stop is "{stop}", got {getattr(self, name)!r}'
                )

        if self._has_boxes:
            no_effect = ("n_neighbors", "threshold", "max_features")
            given = [name for name in no_effect if getattr(self, name) is not None]
            if given:
                raise ParameterError(f'{given[0]} must be None with neighborhood "boxes", '
                                     f"got {getattr(self, given[0])!r}")  # fmt: skip

    @property
    def _has_boxes(self) -> bool:
        return self.neighborhood == "boxes"

    @property
    def cells(self) -> CellPolicy:  # type: ignore[override] # for boxes, those of forests
        """Which cells are accepted; see `CellPolicy`."""
        return CELLS if self._has_boxes else _LEVELS

    def _policy(self) -> CellPolicy:
        return self.cells

    def _chosen(self, budget: float | None) -> Self:
        model = copy.copy(self)
        model.budget = budget
        if isinstance(self._trial.found, ChosenBoxes):
            model._become_policy(self._trial.found, budget)
        else:
            model._become_rule(self._trial.found, budget)
        return model

    def _become_rule(self, found: ChosenNearest, budget: float | None) -> None:
        """Take the best rule within a budget, or one that reads nothing."""
        best, is_within_budget = found.within(budget)
        self._asks, self.certificate_, self.posterior_ = found.policy(best), None, None
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

    def _become_policy(self, found: ChosenBoxes, budget: float | None) -> None:
        """Take the exact policy of the best tradeoff within a budget, or one without features."""
        training, best = self._trial.training, found.within(budget)
        posterior = found.rows.posterior(found.tried[-1][0] if best is None else best[0])
        how = Search("exact", None, 4, 1, self._seed, None, False, None)
        explored = explore_by(how, posterior, solve=PolicyPosterior.solve, title=self.title)
        self.posterior_ = posterior
        self.certificate_ = explored.certificate
        self._asks = found.rows.policy(posterior, Policy() if best is None else None)
        self._measure(training.validation_rows, self._trial.watch)
        if best is not None and budget is not None and not self._reads_nothing:
            self._settle(found.choice(best[1], training))

    @property
    def _seed(self) -> Any:
        return None if isinstance(self.random_state, np.random.Generator) else self.random_state

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    def _features_read(self, rows: Matrix) -> Flags:
        return self._asks.used(rows)

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        return self._asks.walk(encoder)

    @property
    def _reads_nothing(self) -> bool:
        return not self._walk(self._encoder)().waiting

    def _cut_down(self) -> None:
        if isinstance(self._asks, NearestPolicy):
            self._asks = self._asks.of_nothing
            return
        found, posterior = self._trial.found, self.posterior_
        assert isinstance(found, ChosenBoxes)
        assert posterior is not None, "it was fitted"
        self._asks = found.rows.policy(posterior, Policy())
        self.certificate_ = None

    # -- what was learned --------------------------------------------------------------------------

    @property
    def policy_(self) -> BoxPolicy | None:
        """The best policy over boxes; None for nearest neighbors."""
        check_is_fitted(self)
        return self._asks if isinstance(self._asks, BoxPolicy) else None

    @property
    def rule_(self) -> Rule | None:
        """The rule of nearest neighbors; None for boxes."""
        check_is_fitted(self)
        return self._asks.rule if isinstance(self._asks, NearestPolicy) else None

    @property
    def steps_(self) -> Floats:
        """Statistics by the number of measured features, (3, d + 1); see the class."""
        check_is_fitted(self)
        return self._asks.steps if isinstance(self._asks, NearestPolicy) else np.zeros((3, 0))

    @property
    def _rule(self) -> Rule:
        rule = self.rule_
        if rule is None:
            raise AttributeError("a policy of boxes has no rule of nearest neighbors")
        return rule

    @property
    def n_neighbors_(self) -> int:
        """Weight of the neighbors."""
        return self._rule.n_neighbors

    @property
    def tradeoff_(self) -> float:
        """Additional share of right neighbors that a unit of cost is worth."""
        return self._rule.tradeoff

    @property
    def stop_(self) -> tuple[str, float]:
        """The kind of stopping rule, and its threshold or number."""
        return self._rule.stop, self._rule.value

    @property
    def predict_by_(self) -> str:
        """How to predict, "margin" or "vote"."""
        return self._rule.predict_by

    @property
    def margins_(self) -> str:
        """The classifier that judges neighbors, "in_sample" or "out_of_fold"."""
        return self._rule.margins

    @property
    def commonest_class_(self) -> Any:  # a label
        """Most common class of the training rows."""
        check_is_fitted(self)
        return self.classes_.tolist()[int(self._asks.shares.argmax())]

    def _probabilities(self, rows: Matrix) -> Floats:
        return self._asks.probabilities(rows)

    def _reasons(self, X: Any) -> list[str]:
        return self._asks.reasons(self._matrix(X), self._encoder)

    # -- what a user sees --------------------------------------------------------------------------

    def _heading(self) -> list[str]:
        return [count_of(len(self.classes_), "class", "classes")]

    def _size_facts(self) -> list[str]:
        return [self._asks.size_text]

    def _how_made(self) -> Page:
        told, proof = self._asks.facts(), self.certificate_
        if proof is not None:
            told[0].insert(0, f"exact: no policy of {proof.extent} has a lower objective")
        if self._has_boxes:
            told[0].append(f"temperature {self.temperature:.3g}")
        return (*super()._how_made(), *map(Pieces, told))

    def _page(self) -> Page:
        return (*self._asks.page(), BLANK, *super()._page())

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        return (*self._asks.how_to_read, *super()._how_to_read())

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        proof = None if self.certificate_ is None else asdict(self.certificate_)
        return {**super()._fields(), "asks": self._asks.to_record(), "certificate": proof}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        proof, asks = record["certificate"], record["asks"]
        self.certificate_ = None if proof is None else Certificate.from_dict(proof)
        self.posterior_ = None
        if self._has_boxes:
            self._asks = BoxPolicy.from_record(asks, self._encoder, self.items_, self.classes_)
            return
        self._asks = NearestPolicy.from_record(
            asks, self._encoder, self.items_, len(self.classes_),
            is_rest_near=self.rest == "neighbors", has_ties=self.ties == "all",
        )  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_asks")


class _Trial(NamedTuple):
    """Candidates of `fit`, and the rows."""

    found: ChosenNearest | ChosenBoxes
    training: TrainingRows
    watch: Watch
