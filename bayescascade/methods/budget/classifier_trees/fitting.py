"""Trying several classifiers, and keeping the best within a budget.

The choice is made on validation rows, given or held out. Then the chosen classifier is
fitted to all rows.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.store import Of, Saved
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.choice import PurchaseChoice
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.limits import is_within
from bayescascade.costs.pages import CANNOT_TELL
from bayescascade.costs.within_budgets import WithinBudgets, candidates_in_time
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import class_number
from bayescascade.data.levels import plain_level
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.sql import sql_literal
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows
from bayescascade.methods.budget.classifier_trees.leaves import constant_leaf, no_gate
from bayescascade.methods.budget.classifier_trees.parameters import CostWeightedParameters
from bayescascade.methods.budget.classifier_trees.tree import (
    ClassifierNode,
    ClassifierTree,
    tree_sql,
)
from bayescascade.methods.budget.classifier_trees.validation import (
    ScoredTree,
    TreeCandidates,
    TreeValidation,
    path_words,
    validation_of,
)
from bayescascade.model.importances import importance_shares
from bayescascade.model.view import OF_ROWS, View


@dataclass(eq=False, repr=False, kw_only=True)
class ChosenTreeClassifier(WithinBudgets, BudgetedClassifier):
    """A tree of classifiers, chosen among several within a budget.

    A subclass has `_candidates` and `_refitted`, and perhaps `_chooses` and `_price`.

    Attributes
    ----------
    tree_ : ClassifierTree
        `tree_.nodes[0]` is the root.
    is_interrupted_ : bool
        Whether Ctrl-C ended the fit. Then the best of the finished candidates is kept.

    All other attributes are those of `BudgetedClassifier`.
    """

    cells: ClassVar[CellPolicy] = CellPolicy(missing="level")
    few_rows_text: ClassVar[str] = "a quarter of the rows, held out"

    basis: str = CostWeightedParameters.basis.default
    missing: str = CostWeightedParameters.missing.default

    tree_: Annotated[ClassifierTree, Saved("tree")] = field(init=False)
    is_interrupted_: Annotated[bool, Saved("is_interrupted")] = field(init=False)

    _trial: TreeCandidates = field(init=False)
    _center: Annotated[Floats, Of("columns"), Saved("center")] = field(init=False)
    _class_shares: Annotated[Floats, Of("classes"), Saved("class_shares")] = field(init=False)

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _candidates(
        self, rows: GrowingRows, validation: TreeValidation, budgets: Sequence[float | None]
    ) -> Iterator[Sequence[ScoredTree]]:
        """Yield candidates for some budgets, learned from rows, in batches."""

    @abstractmethod
    def _refitted(self, candidate: ScoredTree, rows: GrowingRows) -> ClassifierTree:
        """Return the chosen tree, fitted to all rows."""

    @property
    def _chooses(self) -> bool:
        """Whether there is a choice, which needs held-out rows."""
        return True

    @property
    def _price(self) -> float:
        """The price of a unit of cost, in errors per row."""
        return 0.0

    def _become(self, candidate: ScoredTree | None) -> None:
        """Keep attributes of the chosen candidate besides its tree; None if there is none."""

    # -- fitting -----------------------------------------------------------------------------------

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> TreeCandidates:  # fmt: skip
        self.declares.check(self)
        watch = Watch(self.time_limit)
        given = GivenRows.labeled(X, y, sample_weight)
        training = self._read_labeled(given, GivenRows.validating(X_val, y_val))
        total = training.weights.sum()
        self._center = training.weights @ training.rows / total
        counted = np.bincount(training.labels, training.weights, training.n_classes)
        self._class_shares = counted / total
        validation = validation_of(training, self._chooses, self.random_state)
        rows, labels, weights = training.rows, training.labels, training.weights
        counts = weights > 0
        learns = validation.learns & counts
        basis = Basis.of(self.basis, rows[learns], self._encoder.source)
        learned = GrowingRows.of(
            basis, rows[learns], labels[learns], weights[learns], training.n_classes
        )
        everything = learned
        if not validation.learns.all():
            everything = GrowingRows.of(
                basis, rows[counts], labels[counts], weights[counts], training.n_classes
            )
        portions: Iterable[Sequence[ScoredTree]] = ()  # without a row to choose by
        if len(validation.rows):
            portions = self._candidates(learned, validation, budgets)
        tried, self.is_interrupted_ = candidates_in_time(portions, watch)
        return TreeCandidates(tuple(tried), training, everything, validation, watch)

    def _chosen(self, budget: float | None) -> Self:
        trial = self._trial
        validation, training = trial.validation, trial.training
        model = copy.copy(self)
        model.budget = budget
        possible = [c for c in trial.candidates if budget is None or is_within(c.cost, budget)]
        if possible:
            best = min(possible, key=lambda c: (c.error + self._price * c.cost, c.cost))
            model.tree_ = best.tree
            model._become(best)
            if not validation.learns.all():
                model.tree_ = model._refitted(best, trial.everything)
            model._measure(training.validation_rows, trial.watch)
            if budget is not None and not model._reads_nothing:
                said = best.tree.predict_proba(validation.rows).argmax(axis=1)
                nothing = validation.labels != training.commonest
                wrong, weights = said != validation.labels, validation.weights
                model._settle(
                    PurchaseChoice.of(validation.words, wrong, nothing, training, weights)
                )
            return model
        model._become(None)
        model._cut_down()
        model._measure(training.validation_rows, trial.watch)
        return model

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    def _features_read(self, rows: Matrix) -> Flags:
        return self.tree_.has[self.tree_.apply(rows)]

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        return partial(ClassifierWalk, self.tree_, self._class_shares, encoder)

    @property
    def _reads_nothing(self) -> bool:
        return not self.tree_.has.any()

    def _cut_down(self) -> None:
        rows = self._trial.everything
        none = np.zeros(0, np.int64)
        leaf = constant_leaf(rows.labels, rows.weights, rows.n_classes)
        total = float(rows.weights.sum())
        node = ClassifierNode(
            none, np.zeros(0), 0.0, 1.0, False, total, no_gate(), 0.0, (-1, -1), leaf
        )
        self.tree_ = ClassifierTree(rows.basis, (node,), self.n_features_in_, rows.n_classes)

    # -- classifying -------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the gains of the nodes, (n_features_in_,) float64.

        Gains are weighted by the rows that reach the node; see `ClassifierNode`. The sum of the
        shares is 1, or 0 if nothing is bought.
        """
        check_is_fitted(self)
        nodes = self.tree_.nodes
        bought = np.concatenate([node.bought for node in nodes])
        gains = np.concatenate([node.gains * node.weight for node in nodes])
        return importance_shares(self.n_features_in_, bought, gains)

    @property
    def commonest_class_(self) -> Any:
        """Most common class of the training rows."""
        check_is_fitted(self)
        return self.classes_.tolist()[int(self._class_shares.argmax())]

    def _probabilities(self, rows: Matrix) -> Floats:
        return self.tree_.predict_proba(rows)

    @property
    def _means(self) -> Floats:
        return self._center

    def _reasons(self, X: Any) -> list[str]:
        words = path_words(self.tree_, self.feature_texts)
        return [words[leaf] for leaf in self.tree_.apply(self._matrix(X)).tolist()]

    def to_sql(self, label: object = None) -> str:
        """Return the class of a row, or the probability of a class, as a standard SQL expression.

        Use it as in ``f"SELECT *, {model.to_sql('ill')} AS ill FROM patients"``. It reads columns
        by their names, or as "x0", "x1" if they have no names. NULL is a missing cell. If missing
        cells or unknown levels are errors, the result is NULL for them. The expression is long if
        nodes have many columns or if there are many classes. Some databases cannot compute exp(x)
        for x above 700, which occurs for rows far from the training rows.

        Parameters
        ----------
        label : object, optional
            The class whose probability is returned; by default it is the most probable class.

        Raises
        ------
        ParameterError
            If the label is not one of the classes.
        DataError
            If a name, level or class contains a NUL character.
        """
        check_is_fitted(self)
        reader = self._reader
        means = self._center if reader.policy.unknown == "mean" else None
        classes = [sql_literal(plain_level("label", label)) for label in self.classes_.tolist()]
        number = None if label is None else class_number(self.classes_, label)
        return tree_sql(self.tree_, reader, means, classes, number)

    # -- files -------------------------------------------------------------------------------------

    def _sizes(self) -> dict[str, Any]:
        source, n_features = self._encoder.source, self.n_features_in_
        own = {"source": source, "n_features": n_features, "n_classes": len(self.classes_)}
        return {**super()._sizes(), **own}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self.tree_.check()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    def view(self) -> View:
        """Return what is shown; probabilities are not of leaves."""
        return super().view()._replace(limits=(CANNOT_TELL[0], *OF_ROWS))


class ClassifierWalk:
    """A row on its way, see `costs.acquisition`: it waits at nodes with unknown features."""

    def __init__(self, tree: ClassifierTree, start: Floats, encoder: MatrixEncoder) -> None:
        self._tree, self._encoder = tree, encoder
        self._has = tree.has
        self._cells = np.zeros((1, encoder.source.size))
        self._known = np.zeros(tree.n_features, np.bool_)
        self._node, self._answer = 0, start
        self._go_on()

    @property
    def waiting(self) -> dict[int, int]:
        """The features that the row's node still needs; 1 for each."""
        missing = np.flatnonzero(self._has[self._node] & ~self._known)
        return dict.fromkeys(missing.tolist(), 1)

    @property
    def probabilities(self) -> Floats:
        """The prediction of the last node with all features known."""
        return self._answer

    def learn(self, column: int, value: object) -> None:
        """Set the value of a feature, and go on as far as possible."""
        self._cells[0, self._encoder.source == column] = self._encoder.read_cell(column, value)
        self._known[column] = True
        self._go_on()

    def _go_on(self) -> None:
        while not self.waiting:
            node = self._tree.nodes[self._node]
            self._answer = node.leaf.probabilities(self._tree.basis, self._cells)[0]
            if node.is_leaf:
                return
            score = node.gate.outputs(self._tree.basis, self._cells)[0, 0]
            self._node = node.children[0] if score > node.threshold else node.children[1]
