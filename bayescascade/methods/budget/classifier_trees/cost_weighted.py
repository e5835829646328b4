"""A logistic regression that pays for its features, the same ones for every row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Saved, Within
from bayescascade.base.watch import watch_in_use
from bayescascade.costs.items import CostItems, CostNorms
from bayescascade.costs.limits import check_amounts, is_within
from bayescascade.methods.budget.classifier_trees.fitting import ChosenTreeClassifier
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows
from bayescascade.methods.budget.classifier_trees.leaves import logistic_leaf, no_gate
from bayescascade.methods.budget.classifier_trees.logistic import LogisticFit, LogisticProblem
from bayescascade.methods.budget.classifier_trees.parameters import CostWeightedParameters
from bayescascade.methods.budget.classifier_trees.scaling import Standard
from bayescascade.methods.budget.classifier_trees.tree import ClassifierNode, ClassifierTree, Linear
from bayescascade.methods.budget.classifier_trees.validation import (
    ScoredTree,
    TreeValidation,
    coefficient_table,
)
from bayescascade.model.view import View, joined
from bayescascade.report.page import count_of

_N_PENALTIES = 30  # number to try
_LEAST_PENALTY = 1e-3  # as a share of the least one that buys nothing
_MOST_DEAR = 2  # successive fits above the budget before smaller penalties are skipped

_Amount = Annotated[float, Within(0)]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PenaltyFit(ScoredTree):
    """The fit for a penalty: a tree with a single node."""

    penalty: float
    duality_gap: float  # the penalized loss is at most this far above the minimum, nats per row

    @property
    def features(self) -> Integers:
        """The features bought, the strongest first."""
        return self.tree.nodes[0].bought


@dataclass(eq=False, repr=False, kw_only=True)
class CostWeightedLogisticClassifier(ChosenTreeClassifier):
    """Logistic regression with a penalty on the costs of its features.

    All rows read the same features. This is a convex relaxation of the selection of the best set,
    and the baseline for trees of classifiers.

    Parameters
    ----------
    penalty : float >= 0 or None
        Nats per row that a unit of cost is worth, for a coefficient of 1 of a column of variance 1.
        None: 30 values are tried, and the one with the smallest held-out error is taken. In papers
        that sum the losses of n rows, it is lambda / n.
    penalties : sequence of float or None
        Penalties to try in place of a path of 30.

    Attributes
    ----------
    coef_ : (n_outputs, n_columns) float64
        Coefficients in the units of the columns; 0 if a column is not used. There is one row for
        two classes, otherwise one per class. The columns are those of the matrix, with steps at
        quantiles if `basis` is "bins".
    intercept_ : (n_outputs,) float64
    penalty_ : float or None
        The chosen penalty; None if nothing is bought.
    duality_gap_ : float or None
        Proved bound, up to rounding, on how far the penalized loss is above its minimum, in nats
        per row, before the refit; see `logistic`.
    path_ : tuple of PenaltyFit
        The fits that were tried, in order of decreasing penalty; not in saved models.

    All other attributes are those of `ChosenTreeClassifier`.

    Notes
    -----
    Kusner (2016), equation 2.5; see the errata of the documentation. Intercepts and free features
    are not penalized. A group is penalized as a whole, with its features inside (`CostNorms`).

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import CostWeightedLogisticClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> model = CostWeightedLogisticClassifier(penalty=0.1).fit(X, X[:, 2] > 0.5)
    >>> np.flatnonzero(model.coef_[0]).tolist(), model.duality_gap_ <= 1e-6
    ([2], True)
    """

    model_name: ClassVar[str] = "CostWeightedLogisticClassifier"
    title: ClassVar[str] = "cost-weighted logistic"
    purpose: ClassVar[str] = (
        "The class of a row, by a linear classifier that takes the costs of features into account."
    )
    declares = CostWeightedParameters

    penalty: float | None = CostWeightedParameters.penalty.default
    penalties: Sequence[float] | None = CostWeightedParameters.penalties.default
    refit: bool = CostWeightedParameters.refit.default

    penalty_: Annotated[_Amount | None, Saved("penalty")] = field(init=False)
    duality_gap_: Annotated[_Amount | None, Saved("duality_gap")] = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def _candidates(
        self, rows: GrowingRows, validation: TreeValidation, budgets: Sequence[float | None]
    ) -> Iterator[Sequence[PenaltyFit]]:
        standard = Standard.of(rows.made, rows.weights)
        problem = logistic_problem(rows, standard, self.items_)
        dear, limits = 0, [np.inf if each is None else each for each in budgets]
        for solution in problem.path(self._penalties(problem)):
            tree = self._tree(rows, standard, solution)
            how = validation.scored(tree, self.items_)
            yield [PenaltyFit(**how, penalty=solution.penalty, duality_gap=solution.gap)]
            dear = 0 if is_within(how["cost"], max(limits)) else dear + 1
            if dear == _MOST_DEAR:
                return

    def _penalties(self, problem: LogisticProblem) -> list[float]:
        """Return the penalties to try, the largest first."""
        if self.penalties is not None:
            if self.penalty is not None:
                raise ParameterError(
                    f"penalty must be None where penalties are given, got {self.penalty!r}"
                )
            return sorted(set(check_amounts("penalties", self.penalties)), reverse=True)
        if self.penalty is not None:
            return [float(self.penalty)]
        most = problem.largest_penalty()
        penalties: list[float] = np.geomspace(most, _LEAST_PENALTY * most, _N_PENALTIES).tolist()
        return penalties

    @property
    def _chooses(self) -> bool:
        return self.budget is not None or self.penalty is None

    def _tree(self, rows: GrowingRows, standard: Standard, solution: LogisticFit) -> ClassifierTree:
        """Return a tree with a single node, with all features that have a coefficient."""
        own = solution.coefficients[:-1]
        used = np.unique(rows.basis.feature[own.any(axis=1)])
        columns = np.flatnonzero(np.isin(rows.basis.feature, used))
        leaf = standard.linear(own, solution.coefficients[-1], columns, "softmax")
        if self.refit:
            leaf = _without_penalty(rows, columns)
        scales = standard.scales[columns]
        sizes = np.where(scales > 0, 1 / np.where(scales > 0, scales, 1.0), 0.0)
        squares = ((leaf.coefficients * sizes) ** 2).sum(axis=0)
        strengths = np.sqrt(
            np.bincount(rows.basis.feature[columns], squares, used.max(initial=-1) + 1)
        )
        order = used[np.argsort(-strengths[used], kind="stable")]
        node = ClassifierNode(
            order, strengths[order], 0.0, 1.0, False, float(rows.weights.sum()), no_gate(), 0.0,
            (-1, -1), leaf,
        )  # fmt: skip
        return ClassifierTree(rows.basis, (node,), self.n_features_in_, rows.n_classes)

    def _refitted(self, candidate: ScoredTree, rows: GrowingRows) -> ClassifierTree:
        (node,) = candidate.tree.nodes
        if self.refit and not watch_in_use().is_over():
            node = replace(node, leaf=_without_penalty(rows, node.leaf.columns))
        return replace(candidate.tree, nodes=(node,))

    def _become(self, candidate: ScoredTree | None) -> None:
        if candidate is None:
            self.penalty_ = self.duality_gap_ = None
            return
        assert isinstance(candidate, PenaltyFit)
        self.penalty_, self.duality_gap_ = candidate.penalty, candidate.duality_gap

    # -- what was learned --------------------------------------------------------------------------

    @property
    def path_(self) -> tuple[PenaltyFit, ...]:
        """The fits that were tried, in order of decreasing penalty."""
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        return self._trial.candidates  # type: ignore[return-value] # those of `_candidates`

    @property
    def coef_(self) -> Floats:
        """Coefficients in the units of the columns, (n_outputs, n_columns) float64."""
        check_is_fitted(self)
        leaf = self.tree_.nodes[0].leaf
        coefficients = np.zeros((leaf.intercepts.size, self.tree_.basis.n_columns))
        coefficients[:, leaf.columns] = leaf.coefficients
        return coefficients

    @property
    def intercept_(self) -> Floats:
        """Intercepts, (n_outputs,) float64."""
        check_is_fitted(self)
        return self.tree_.nodes[0].leaf.intercepts

    # -- what a user sees --------------------------------------------------------------------------

    @property
    def certificate_texts(self) -> list[str]:
        """A proved bound on the distance from the minimum, and what ended the fit."""
        gap = self.duality_gap_
        texts = [] if gap is None else [f"duality gap {gap:.1g} nats a row"]
        return [*texts, *super().certificate_texts]

    def view(self) -> View:
        """Return what is shown: the coefficients, and the features."""
        view = super().view()
        penalty = [] if self.penalty_ is None else [f"penalty {self.penalty_:.3g}"]
        classes = count_of(len(self.classes_), "class", "classes")
        table = coefficient_table(self.tree_, self.column_texts_, self.classes_.tolist())
        lines = "Each line is a column that the classifier uses. Every row needs all of them."
        per_unit = (
            "the change of the log odds (or of the score of a class) if the column increases by one"
        )
        return view._replace(
            heading=[self.title, *penalty, classes],
            shown=joined(table, view.shown),
            terms=(("", lines), ("per unit", per_unit)),
        )


def _without_penalty(rows: GrowingRows, columns: Integers) -> Linear:
    """Return the logistic regression of columns of the basis."""
    return logistic_leaf(rows.basis, rows.rows, rows.labels, rows.weights, columns, rows.n_classes)


def logistic_problem(rows: GrowingRows, standard: Standard, items: CostItems) -> LogisticProblem:
    """Return the penalized regression of rows with columns of variance 1."""
    made = np.column_stack([standard.scaled(rows.made), np.ones(len(rows.labels))])
    norms = CostNorms.of(items, rows.basis.feature, n_free=1)
    return LogisticProblem(
        made, np.eye(rows.n_classes)[rows.labels], rows.weights / rows.weights.sum(), norms
    )
