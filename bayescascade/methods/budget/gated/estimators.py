"""A gate that keeps easy rows for a cheap classifier, and sends hard ones to an expensive one."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.watch import Watch
from bayescascade.costs.classifier import budgeted_from_record
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.gated.base import HOW_TO_READ, GatedClassifier, score_table
from bayescascade.methods.budget.gated.choosing import (
    GateCandidates,
    Learner,
    counted,
    validation_of,
)
from bayescascade.methods.budget.gated.fitting import (
    fit_any,
    fit_budgeted,
    losses_of,
    own_estimator,
)
from bayescascade.methods.budget.gated.full import FullBudgeted, FullClassifier, FullForest
from bayescascade.methods.budget.gated.gated import Gated, Scores
from bayescascade.methods.budget.gated.growing import BoostedScores
from bayescascade.methods.budget.gated.linear import ColumnScaling, LinearLearner
from bayescascade.methods.budget.gated.objective import GateProblem
from bayescascade.methods.budget.gated.oracle import GateOracle, oracle_between
from bayescascade.methods.budget.gated.parameters import AdaptiveParameters
from bayescascade.methods.budget.gated.posterior import AdaptivePosterior
from bayescascade.methods.budget.gated.selecting import Fit
from bayescascade.model.sampled import no_rows
from bayescascade.model.view import View, joined
from bayescascade.report.numbers import share_text
from bayescascade.report.page import Pieces, count_of

_GREEDY = 2  # factor of the number of trees if there is no gate


@dataclass(eq=False, repr=False)
class AdaptiveClassifier(GatedClassifier):
    """Classifies easy rows by boosted trees with few features, and the others by a full model.

    Parameters
    ----------
    estimator : classifier or None
        The full model: a classifier of scikit-learn, fitted or not, or a budgeted classifier of
        this package, such as another `AdaptiveClassifier`. Columns are not scaled for it, so an SVM
        needs a pipeline with a scaler. None: a forest of `n_trees` trees.

    Attributes
    ----------
    gate_, local_ : BoostedScores or LinearScores
        Gate and local model. The score of the gate is the log odds of sending a row to the full
        model. Linear scores have `coef_` and `intercept_` in the units of the columns.
    cut_ : float
        Rows with a gate score above this are sent to the full model. Infinite if the gate is not
        used.
    full_ : estimator or Forest
        The full model. A forest or a budgeted classifier acquires only the features on its paths;
        any other model acquires all features.
    sent_share_ : float
        Share of the validation rows that are sent to the full model.
    is_interrupted_ : bool
        Whether Ctrl-C ended the fit. Then the best of the finished candidates is kept.

    All other attributes are those of `BudgetedClassifier`.

    Notes
    -----
    Nan (2018), chapter 5, Adapt-GBRT and Adapt-Lin, corrected as in the errata of the
    documentation; the modules `objective` and `boosted` beside this one have the formulas.
    Each row acquires the features of the gate. Rows that are kept also acquire those of the local
    model, and rows that are sent those of the full model. In training, losses of the full model are
    out-of-bag, or from folds on which it was not fitted.

    Parameters that are not given, and the cut, are chosen together by the smallest error within the
    budget on validation rows or, without `y_val`, on a held-out quarter. This is a heuristic;
    `oracle` shows how far it is from the best gate. The chosen linear models are then fitted to all
    rows. Boosted trees are not, because other trees would have other costs. For the linear
    algorithm as printed, use ``selection="group_lasso"``, ``cut=0.0``, ``start="zero"`` and
    ``ridge=0.0``. ``distance="log_odds"`` is Adapt-LstSq (A.1); its shares are computed by nested
    root searches.

    References
    ----------
    Nan, F. and Saligrama, V. (2017). Adaptive classification for prediction under a budget. NIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import AdaptiveClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = np.where(np.abs(X[:, 0]) > 0.5, X[:, 0] > 0, X[:, 1] * X[:, 2] > 0)
    >>> model = AdaptiveClassifier(budget=2.5, n_boosted=30, random_state=0).fit(X, y)
    >>> bool(model.validation_cost_ < 2.7), bool(model.feature_shares_[0] > 0.9)
    (True, True)
    """

    model_name: ClassVar[str] = "AdaptiveClassifier"
    title: ClassVar[str] = "gate and full model"
    purpose: ClassVar[str] = (
        "The class of a row. A gate sends easy rows to a cheap classifier and hard rows to an "
        "expensive one."
    )
    declares = AdaptiveParameters

    estimator: Any = AdaptiveParameters.estimator.default
    _: KW_ONLY
    learner: str = AdaptiveParameters.learner.default
    n_rounds: int = AdaptiveParameters.n_rounds.default
    distance: str = AdaptiveParameters.distance.default
    selection: str = AdaptiveParameters.selection.default
    full_share: float | None = AdaptiveParameters.full_share.default
    cut: float | None = AdaptiveParameters.cut.default
    start: str = AdaptiveParameters.start.default
    losses: str = AdaptiveParameters.losses.default
    n_trees: int = AdaptiveParameters.n_trees.default
    temperature: float = AdaptiveParameters.temperature.default

    # -- fitting -----------------------------------------------------------------------------------

    def _trial_of(
        self, given: GivenRows, validation: GivenRows | None, watch: Watch, generator: Any
    ) -> GateCandidates:
        self._check_together()
        own = own_estimator(self.estimator, given)
        read = self._read(given, validation, own)
        training = counted(read)
        in_sample, source = self.losses == "in_sample", self._encoder.source
        if own is None:
            estimator = self.estimator
            if estimator is None:
                seed = int(generator.integers(2**31))
                estimator = RandomForestClassifier(self.n_trees, random_state=seed)
            full = fit_any(estimator, training, source, in_sample)
        else:
            places = np.flatnonzero(read.weights > 0)
            rows, labels = _safe_indexing(given.plain(), places), training.classes[training.labels]
            full = fit_budgeted(own, training, rows, labels, in_sample)
        is_given = self.budget is None and None not in (self.tradeoff, self.full_share, self.cut)
        validating = validation_of(training, full.model, full.chances, generator, is_given)
        losses = losses_of(full.chances, training.labels)
        scaling = ColumnScaling.of(training.rows, training.weights)
        learner = self._learner_of(training, losses, scaling)
        shares = np.bincount(training.labels, training.weights, training.n_classes)
        nothing = Gated.of(
            full.model, scaling.means, np.asarray(source, np.int64), shares / shares.sum()
        )
        return GateCandidates([], training, learner, nothing, validating, watch)

    def _learner_of(
        self, training: TrainingRows, losses: Floats, scaling: ColumnScaling
    ) -> Learner:
        """Return the learner of gates and local models."""
        is_linear = self.learner == "linear"
        problem = GateProblem(
            scaling.scaled(training.rows) if is_linear else training.rows, training.labels,
            training.n_classes, training.weights, losses, 1.0, self.ridge, self.distance,
        )  # fmt: skip
        if is_linear:
            return LinearLearner(
                problem, scaling, self._matrix_items, self.selection, self.start, self.tradeoff,
                self.full_share,
            )  # fmt: skip
        n_greedy = _GREEDY * int(self.n_boosted)
        return self._boosted_learner(problem, self.n_rounds, n_greedy, self.full_share)

    def _check_together(self) -> None:
        """Raise ParameterError if parameters do not go together."""
        for name, needed in (("distance", "kl"), ("selection", "search"), ("start", "auto")):
            if self.learner == "boosted" and getattr(self, name) != needed:
                raise ParameterError(
                    f'learner must be "linear" with {name} {getattr(self, name)!r}, got "boosted"'
                )
        if self.distance == "log_odds":
            for name, refused in (("selection", "group_lasso"), ("full_share", 0.0)):
                if getattr(self, name) == refused:
                    raise ParameterError(
                        f'{name} must not be {refused!r} with distance "log_odds", got {refused!r}'
                    )

    @property
    def _cut(self) -> float | None:
        return self.cut

    # -- what was learned --------------------------------------------------------------------------

    @property
    def gate_(self) -> Scores:
        """The gate, in the units of the columns."""
        check_is_fitted(self)
        return self._model.gate

    @property
    def cut_(self) -> float:
        """Rows with a gate score above this are sent to the full model."""
        check_is_fitted(self)
        return self._model.cut

    @property
    def full_(self) -> Any:  # an estimator, or a forest
        """The full model."""
        check_is_fitted(self)
        full = self._model.full
        if isinstance(full, FullBudgeted):
            return full.model
        assert isinstance(full, FullForest | FullClassifier), "there are no others"
        return full.forest if isinstance(full, FullForest) else full.estimator

    @property
    def posterior_(self) -> AdaptivePosterior:
        """The Gibbs posterior over gates and local models with the chosen features.

        Its columns are scaled to variance 1. Not in saved models.
        """
        check_is_fitted(self)
        if "_trial" not in self.__dict__:
            raise no_rows("posterior_")
        return self._learner.posterior(self._fitted, self.temperature)

    def state(self) -> Floats:
        """Return the learned gate and local model, as a state of `posterior_`."""
        return self._learner.state(self._fitted, self.posterior_)

    @property
    def _learner(self) -> LinearLearner:
        learner = self._trial.learner
        if not isinstance(learner, LinearLearner):
            raise AttributeError(f'posterior_ needs learner "linear", got {self.learner!r}')
        return learner

    @property
    def _fitted(self) -> Fit | None:
        fit = None if self._fit is None else self._fit.fit
        return fit if isinstance(fit, Fit) else None  # for linear models

    def oracle(self, X: Any, y: Any) -> GateOracle:
        """Return the smallest possible error of any gate between both models, at each cost.

        Such a gate would have to know which model is wrong. The difference between the error of the
        learned gate and this one, at the same cost, is due to the gate. The remaining error is due
        to rows that both models misclassify.

        Parameters
        ----------
        X : as `predict` takes it
        y : (n_rows,) array
            Labels.

        Raises
        ------
        ParameterError, DataError
            As `predict`.
        """
        rows, model = self._matrix(X), self._model
        labels = np.asarray(y)
        if labels.shape != (len(rows),):
            raise ParameterError(
                f"y must have a label per row of X, {len(rows)}, got shape {labels.shape}"
            )
        return oracle_between(model, rows, labels, self.classes_, self.items_)

    # -- what a user sees --------------------------------------------------------------------------

    def _size_facts(self) -> list[str]:
        return [f"{share_text(self.sent_share_)} of the rows sent to the full model"]

    def view(self) -> View:
        """Return what is shown: the gate, the scores for kept rows, and the costs."""
        view, model = super().view(), self._model
        texts = [f"sends {share_text(self.sent_share_)} of the rows to {model.full.text}"]
        if np.isfinite(self.cut_):
            texts.append(f"cut {self.cut_:.3g}")
        if isinstance(model.local, BoostedScores):
            texts.append(f"{count_of(model.local.n_trees, 'boosted tree')} for kept rows")
        held = "a heuristic: `oracle` shows what a better gate could gain"
        n_classes = count_of(len(self.classes_), "class", "classes")
        return view._replace(
            heading=[self.title, model.full.text, n_classes],
            made=(*view.made, Pieces(texts), Pieces([held])),
            shown=joined(
                score_table(model, self.column_texts_, self.classes_.tolist()), view.shown
            ),
            terms=HOW_TO_READ,
        )

    # -- files -------------------------------------------------------------------------------------

    def _restore(self, record: Mapping[str, Any]) -> None:
        full = record["gated"]["full"]
        if "model" in full:
            self._cells = budgeted_from_record(full["model"]).cells
        super()._restore(record)
