"""The base of budgeted classifiers with a forest.

The `fit` of a subclass begins with `_read_training`, grows or prunes a `Forest` over the resulting
matrix, and ends with `_become`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.validation import check_integer
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.choice import PurchaseChoice
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.feature_costs import Costs, FeatureCosts
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.forests.bags import Fold, choice_of, copies_for_folds
from bayescascade.methods.budget.forests.forest import Forest, ForestWalk
from bayescascade.methods.budget.forests.reports import (
    class_tree_boxes,
    label_sql,
    path_words,
    size_pieces,
)
from bayescascade.model.importances import importance_shares
from bayescascade.model.view import View
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.page import count_of

CELLS = CellPolicy(missing="nan", dtype=np.float32, keeps_ranges=True)
"""The cells that forests accept."""


class ReadRows(NamedTuple):
    """The encoder and the costs of columns, and the rows."""

    encoder: MatrixEncoder
    costs: FeatureCosts
    training: TrainingRows


def read_rows(
    X: Any,
    y: Any,
    costs: Costs,
    owner: str,
    unknown: str = "error",
    *,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
) -> ReadRows:
    """Read columns, costs and rows; for errors see `TrainingRows.read`."""
    given = GivenRows.labeled(X, y, sample_weight)
    validation = GivenRows.validating(X_val, y_val)
    encoder = MatrixEncoder.learn(given, CELLS).treating(unknown)
    found = FeatureCosts.of(costs, encoder.columns)
    return ReadRows(encoder, found, TrainingRows.read(encoder, given, validation, owner=owner))


if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ForestClassifier(BudgetedClassifier):
    """A forest that pays for the features that its trees read.

    Attributes
    ----------
    forest_ : Forest
        The trees, over the columns of a matrix. Probabilities are class shares at the leaves,
        averaged over the trees.
    feature_importances_ : (n_features_in_,) float64
        Share of each feature in the decrease of Gini impurity. It is computed as in scikit-learn
        for forests with this criterion, even if these trees were grown by another criterion.

    All other attributes are those of `BudgetedClassifier`.
    """

    purpose: ClassVar[str] = (
        "The class of a row, by decision trees that ask only for features that are worth their "
        "cost."
    )

    cells: ClassVar[CellPolicy] = CELLS
    ignored: ClassVar[str] = "missing"
    _not_saved: ClassVar[tuple[str, ...]] = (*BudgetedClassifier._not_saved, "forest")

    forest_: Forest

    # -- for the `fit` of subclasses ---------------------------------------------------------------

    def _read_training(self, X: Any, y: Any, **more: Any) -> TrainingRows:
        """Set columns, classes and costs, and return the rows as a matrix; see `read_rows`."""
        unknown = self._unknown_policy()
        owner = type(self).__name__
        encoder, costs, training = read_rows(X, y, self.costs, owner, unknown, **more)
        self._set_columns(encoder, costs)
        self.classes_, self.n_rows_ = training.classes, len(training.rows)
        self.notes_ = training.notes
        return training

    def _become(
        self, forest: Forest, validation_rows: NDArray[np.float32], watch: Watch | None = None
    ) -> None:
        """Set the forest, and measure its cost on rows; `watch` says if its limit ended the fit."""
        self.forest_ = forest
        self._measure(validation_rows, watch)

    def _features_read(self, rows: Matrix) -> Flags:
        return self._used(self.forest_.features_used(rows))

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        return partial(ForestWalk, self.forest_, encoder)

    @property
    def _reads_nothing(self) -> bool:
        return not self.forest_.n_splits

    def _cut_down(self) -> None:
        self.forest_ = self.forest_.pruned(np.zeros(self.forest_.n_nodes, np.bool_))

    def _choice(
        self,
        training: TrainingRows,
        forest: Forest,
        learn: Callable[[Self, TrainingRows], Forest | None] | None,
        outside: Flags | None,
    ) -> PurchaseChoice | None:
        """Return the comparison with buying nothing on held-out rows; see `choice_of`."""
        return choice_of(self._folds, training, forest, learn, outside)

    def _folds(self, training: TrainingRows) -> Iterable[Fold[Self]]:
        """Yield a copy for each fold; see `copies_for_folds`."""
        return copies_for_folds(self, training)

    def _used(self, of_matrix: Flags) -> Flags:
        """Return the features that rows use, given the columns of the matrix that they use."""
        starts = np.flatnonzero(np.diff(self._encoder.source, prepend=-1))
        return np.logical_or.reduceat(of_matrix, starts, axis=1)

    def _costs(self, forest: Forest, rows: NDArray[np.float32]) -> Floats:
        """Return the cost of each row of a matrix in a forest, (n_rows,)."""
        return self.items_.total(self.items_.paid(self._used(forest.features_used(rows))))

    # -- classifying -------------------------------------------------------------------------------

    @property
    def commonest_class_(self) -> Any:  # a label
        """Most common class of the rows on which the trees were grown."""
        check_is_fitted(self, "forest_")
        counts = self.forest_.counts[self.forest_.roots].sum(axis=0)
        return self.classes_.tolist()[counts.argmax()]

    def _probabilities(self, rows: Matrix) -> Floats:
        return self.forest_.predict_proba(rows)

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the decrease of Gini impurity, (n_features_in_,) float64.

        A split decreases the Gini impurity of the training rows that reach it, weighted by these
        rows. Shares within each tree are averaged over the trees, as in scikit-learn for forests
        that are grown by Gini impurity. The sum is 1, or 0 for a forest without splits. The costs
        of features have no effect.
        """
        check_is_fitted(self, "forest_")
        forest = self.forest_
        splits = np.flatnonzero(forest.is_split)
        features = self._encoder.source[forest.feature[splits]]
        gains = forest.impurity_decreases()[splits]
        return importance_shares(self.n_features_in_, features, gains)

    def _reasons(self, X: Any) -> list[str]:
        """Return the path through a single tree, or the features acquired for several trees."""
        matrix = self._matrix(X)
        if self.forest_.n_trees == 1:
            leaves = self.forest_.apply(matrix)[:, 0].tolist()
            words = {leaf: path_words(self.forest_, leaf, self._encoder) for leaf in {*leaves}}
            return [words[leaf] for leaf in leaves]
        acquired = self._acquired_words(matrix)
        return [f"{self.forest_.n_trees} trees read {each or 'nothing'}" for each in acquired]

    # -- what a user sees --------------------------------------------------------------------------

    def view(self) -> View:
        """Return what is shown, with the size of the forest in the heading."""
        return super().view()._replace(heading=[self.title, *size_pieces(self.forest_)])

    def _size_facts(self) -> list[str]:
        return [count_of(self.forest_.n_trees, "tree")]

    def plot(self, ax: "Axes | None" = None, tree: int | None = None) -> "Axes":
        """Draw the mean cost of each feature, or a tree, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        tree : int in [0, n_trees), optional
            Number of the tree to draw. By default, the tree is drawn if there is only one.
            Otherwise there is a bar for each feature and group: the mean amount that validation
            rows pay for it, in decreasing order, with its cost and the share of the rows that
            acquire it.
        """
        check_is_fitted(self, "forest_")
        if tree is None and self.forest_.n_trees > 1:
            return super().plot(ax)
        return self._boxes(tree).plot(ax)

    def to_dot(self, tree: int = 0) -> str:
        """Return a tree as Graphviz source, for ``dot -Tsvg tree.dot > tree.svg``.

        Parameters
        ----------
        tree : int in [0, n_trees)
        """
        check_is_fitted(self, "forest_")
        return self._boxes(tree).dot("tree")

    def to_sql(self, label: object = None) -> str:
        """Return the class of a row, or the probability of a class, as a standard SQL expression.

        Use it as in ``f"SELECT *, {model.to_sql('ill')} AS ill FROM patients"``. It reads columns
        by their names, or as "x0", "x1" if they have no names. NULL is a missing cell, and unknown
        levels are treated as missing; if `unknown` is "error", the result is NULL for them. Truth
        values become numbers, and numbers are rounded to float32 before they are compared.

        Parameters
        ----------
        label : object, optional
            The class whose probability is returned. By default, the most probable class is
            returned, which needs a forest of one tree.

        Raises
        ------
        ParameterError
            If the label is not one of the classes, or if it is not given and there are several
            trees.
        DataError
            If a name, level or class contains a NUL character.
        """
        check_is_fitted(self, "forest_")
        return label_sql(self.forest_, self._encoder, self.classes_, label)

    @property
    def _imagined(self) -> float:
        """Number of pseudo-rows of each class in the forest's counts."""
        return 0.0

    def _boxes(self, tree: int | None) -> BoxTree:
        chosen = check_integer("tree", tree or 0, 0, self.forest_.n_trees - 1)
        encoder, classes = self._encoder, self.classes_
        return class_tree_boxes(self.forest_, chosen, encoder, classes, self._imagined)

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "forest": self.forest_.to_dict()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        n_columns, n_classes = len(self._encoder.source), len(self.classes_)
        self.forest_ = Forest.from_dict(record["forest"], n_columns, n_classes)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")
