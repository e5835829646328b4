"""Boosted trees that pay for their features, without a full model."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.watch import Watch
from bayescascade.costs.feature_costs import Costs
from bayescascade.data.given import GivenRows
from bayescascade.methods.budget.gated.base import GatedClassifier
from bayescascade.methods.budget.gated.choosing import GateCandidates, counted, validation_of
from bayescascade.methods.budget.gated.full import ClassShares
from bayescascade.methods.budget.gated.gated import Gated
from bayescascade.methods.budget.gated.growing import BoostedScores
from bayescascade.methods.budget.gated.linear import ColumnScaling
from bayescascade.methods.budget.gated.objective import GateProblem
from bayescascade.methods.budget.gated.parameters import GreedyMiserParameters
from bayescascade.model.view import View
from bayescascade.report.page import count_of


@dataclass(eq=False, repr=False)
class GreedyMiserClassifier(GatedClassifier):
    """Boosted trees whose splits pay for features that are not paid for yet.

    Parameters
    ----------
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.

    Attributes
    ----------
    local_ : BoostedScores
        The trees: log odds of the second of two classes, or a score per class.
    is_interrupted_ : bool
        Whether Ctrl-C ended the fit. Then the best of the finished candidates is kept.

    All other attributes are those of `BudgetedClassifier`.

    Notes
    -----
    Xu, Weinberger and Chapelle (2012), as in chapter 5 of Nan (2018): `AdaptiveClassifier` without
    a gate. The gain of a split is the decrease of the loss minus `tradeoff` times the cost of its
    feature. With penalty "once", as printed, the cost is paid once for the whole model. With
    "per_row" it is paid by each row of the node that has not paid yet, so other rows need not
    acquire the feature. With "set" the features are chosen first, and are then free: from all
    features, those of the least gain, or gain per cost, are left out again and again, a fifth at a
    time. The learning rate is at most 0.1, and the trees of the chosen set are grown on all rows.

    Penalty, tradeoff and the number of trees are chosen together by the smallest error within the
    budget on validation rows or, without `y_val`, on a held-out quarter.

    References
    ----------
    Xu, Z., Weinberger, K. and Chapelle, O. (2012). The greedy miser. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import GreedyMiserClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = GreedyMiserClassifier(budget=2.0, n_boosted=40, random_state=0).fit(X, y)
    >>> bool(model.validation_cost_ < 2.1), bool(model.score(X, y) > 0.9)
    (True, True)
    """

    model_name: ClassVar[str] = "GreedyMiserClassifier"
    title: ClassVar[str] = "miserly boosted trees"
    purpose: ClassVar[str] = "The class of a row, by boosted trees that pay for features."
    declares = GreedyMiserParameters

    costs: Costs = GreedyMiserParameters.costs.default
    _: KW_ONLY
    n_boosted: int = GreedyMiserParameters.n_boosted.default

    def _trial_of(
        self, given: GivenRows, validation: GivenRows | None, watch: Watch, generator: Any
    ) -> GateCandidates:
        training = counted(self._read(given, validation))
        n, source = len(training.rows), np.asarray(self._encoder.source, np.int64)
        shares = np.bincount(training.labels, training.weights, training.n_classes)
        nobody = ClassShares(shares / shares.sum(), int(source[-1]) + 1)
        is_chosen = self.penalty == "set" or None in (self.tradeoff, self.penalty)
        is_given = self.budget is None and not is_chosen
        fair = nobody.probabilities(training.rows)
        validating = validation_of(training, nobody, fair, generator, is_given)
        problem = GateProblem(
            training.rows, training.labels, training.n_classes, training.weights, np.zeros(n), 0.0,
            self.ridge,
        )  # fmt: skip
        learner = self._boosted_learner(problem, 1, int(self.n_boosted), full_share=0.0)
        means = ColumnScaling.of(training.rows, training.weights).means
        nothing = Gated.of(nobody, means, source, nobody.shares)
        return GateCandidates([], training, learner, nothing, validating, watch)

    @property
    def _cut(self) -> float:
        return np.inf

    def view(self) -> View:
        """Return what is shown; the page has the sizes."""
        view = super().view()
        n_classes = count_of(len(self.classes_), "class", "classes")
        return view._replace(heading=[self.title, n_classes])

    def _size_facts(self) -> list[str]:
        local = self._model.local
        n_trees = local.n_trees if isinstance(local, BoostedScores) else 0
        return [count_of(n_trees, "tree")]
