"""What every budgeted classifier does once it has a forest: classify, count costs, acquire.

A subclass has a `fit` that begins with `_read_training`, grows or prunes a `Forest` over the matrix
that it gets, and ends with `_become`. What features cost is a parameter of every constructor:
clones, pipelines and grid searches take it along, and no metadata needs to be routed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Acquisition, Fetch, Walkable, acquire
from bayescascade.costs.choice import Choice
from bayescascade.costs.items import CostItems, Costs, FeatureCosts
from bayescascade.costs.limits import BudgetError
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.bags import Fold, choice_of, copies_for_folds
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.reports import (
    CANNOT_TELL,
    HOW_TO_READ,
    acquired_page,
    class_tree_boxes,
    cost_facts,
    cost_page,
    label_sql,
    nothing_text,
    path_words,
    plot_costs,
    size_pieces,
)
from bayescascade.methods.forests.rows import CELLS, read_rows
from bayescascade.methods.forests.walk import ForestWalk
from bayescascade.model.importances import importance_shares
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.record import NOT_SAVED
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TOLERANCE = 1e-9  # between the stored cost and what the shares give


class BudgetedClassifier(MatrixClassifier):
    """A classifier that pays for the features that its trees read.

    Attributes
    ----------
    model_name : str
        Name of the class in files.
    forest_ : Forest
        The trees, over the columns of a matrix; probabilities are means over them of the shares of
        the classes at the leaves.
    costs_ : FeatureCosts
    items_ : CostItems
        What each feature costs.
    validation_cost_ : float
        Mean cost of the validation rows.
    feature_shares_ : (n_features_in_,) float64
        Share of the validation rows that acquire each feature.
    item_shares_ : (n_items,) float64
        Share of them that pay for each item of `items_`, a feature or a group.
    stopped_after_ : float or None
        `time_limit`, if that ended `fit`, which then kept what was found.
    choice_ : Choice or None
        Where a `budget` is given: the rows that decided between what it buys and buying nothing,
        and how often both err on them. These are validation rows with labels; of less than 1,000
        rows without such, or where trees have no bags, 5-fold cross-validation of them; else the
        rows out of the trees' bags.
        What does not err less than the commonest class, by more than a standard error of the
        difference, is not bought. None if there are no such rows, no split was left anyway, or
        time was up before they decided.

    feature_importances_ : (n_features_in_,) float64
        Share of each feature in the Gini impurity that splits lessen: as scikit-learn has it of
        forests with that criterion, whatever these trees were grown by, so that entropy forests
        have other shares there.

    The others are those of every `MatrixClassifier`.
    """

    purpose: ClassVar[str] = (
        "Which class a row is of, by decision trees that ask only for features that are worth "
        "what they cost."
    )

    cells: ClassVar[CellPolicy] = CELLS
    ignored: ClassVar[str] = "missing"
    _not_saved = (*NOT_SAVED, "costs", "forest")  # costs are a field of their own

    costs: Costs

    forest_: Forest
    items_: CostItems
    validation_cost_: float
    feature_shares_: NDArray[np.float64]
    item_shares_: NDArray[np.float64]
    stopped_after_: float | None = None
    choice_: Choice | None = None

    # -- for the `fit` of subclasses ---------------------------------------------------------------

    def _read_training(self, X: Any, y: Any, **more: Any) -> TrainingRows:
        """Learn the columns, classes and costs, and return the rows as a matrix; see `read_rows`.

        Raises ParameterError also if a cost is about no column.
        """
        unknown = self._unknown_policy()
        owner = type(self).__name__
        encoder, costs, training = read_rows(X, y, self.costs, owner, unknown, **more)
        self._set_columns(encoder, costs)
        self.classes_ = training.classes
        return training

    @property
    def _matrix_items(self) -> CostItems:
        """What the columns of the matrix cost."""
        return self.items_.of_features(self._encoder.source)

    def _become(
        self,
        forest: Forest,
        validation_rows: NDArray[np.float32],
        watch: Watch | None = None,
    ) -> None:
        """Be fitted to a forest, and measure what it costs on rows of a matrix.

        `watch` is that of the fit, and says whether its time limit ended it.
        """
        self.stopped_after_ = watch.seconds if watch is not None and watch.is_up else None
        self.choice_ = None
        used = self._used(forest.features_used(validation_rows))
        paid = self.items_.paid(used)
        self.forest_ = forest
        self.validation_cost_ = float(self.items_.total(paid).mean())
        self.feature_shares_, self.item_shares_ = used.mean(axis=0), paid.mean(axis=0)

    def _settle(self, choice: Choice | None) -> None:
        """Stay what was fitted, or buy nothing if that is no worse on the rows that choose."""
        self.choice_ = choice
        if choice is not None and not choice.is_better:
            self._buy_nothing()

    def _buy_nothing(self) -> None:
        """Be cut down to the roots of the trees."""
        self.forest_ = self.forest_.pruned(np.zeros(self.forest_.n_nodes, np.bool_))
        self.validation_cost_ = 0.0
        self.feature_shares_ = np.zeros_like(self.feature_shares_)
        self.item_shares_ = np.zeros_like(self.item_shares_)

    def _choice(
        self,
        training: TrainingRows,
        forest: Forest,
        learn: Callable[[Self, TrainingRows], Forest | None] | None,
        outside: NDArray[np.bool_] | None,
    ) -> Choice | None:
        """Return what rows say that the forest was not learned from; see `choice_of`."""
        return choice_of(self._folds, training, forest, learn, outside)

    def _folds(self, training: TrainingRows) -> Iterable[Fold[Self]]:
        """Yield a copy for each fold; see `copies_for_folds`."""
        return copies_for_folds(self, training)

    def _set_columns(self, encoder: MatrixEncoder, costs: FeatureCosts) -> None:
        self._set_encoder(encoder)
        self.costs_, self.items_ = costs, costs.resolve(encoder.columns)

    def _used(self, of_matrix: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the features that rows use, given which columns of the matrix they do."""
        starts = np.flatnonzero(np.diff(self._encoder.source, prepend=-1))
        used: NDArray[np.bool_] = np.logical_or.reduceat(of_matrix, starts, axis=1)
        return used

    def _costs(self, forest: Forest, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what each row of a matrix pays for what the trees of a forest read, (n_rows,)."""
        return self.items_.total(self.items_.paid(self._used(forest.features_used(rows))))

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self | BudgetError]]:
        """Yield for each budget a fitted classifier that is like this one otherwise, or why not.

        Parameters
        ----------
        budgets : sequence of float >= 0
        X, y, X_val, y_val
            As `fit` takes them.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C ends a fit early: what it kept is not what was asked for.
        """
        for amount in budgets:
            model: Any = clone(self).set_params(budget=amount)
            try:
                model.fit(X, y, X_val=X_val, y_val=y_val)
            except BudgetError as error:
                yield amount, error
                continue
            if getattr(model, "is_interrupted_", False):
                raise KeyboardInterrupt
            yield amount, model

    # -- classifying -------------------------------------------------------------------------------

    @property
    def commonest_class_(self) -> Any:  # a label
        """The commonest class of the rows that the trees were grown on."""
        check_is_fitted(self, "forest_")
        counts = self.forest_.counts[self.forest_.roots].sum(axis=0)
        return self.classes_.tolist()[counts.argmax()]

    def _probabilities(self, rows: Matrix) -> NDArray[np.float64]:
        return self.forest_.predict_proba(rows)

    def _block_words(self, rows: Matrix) -> Mapping[str, Sequence[object]]:
        return {"acquired": self._acquired_words(rows)}

    def _row_costs(self, rows: Matrix) -> NDArray[np.float64]:
        return self._costs(self.forest_, rows)

    def _acquired_words(self, rows: Matrix) -> list[str]:
        """Return the features that each row of the matrix acquires, in words."""
        used = self._used(self.forest_.features_used(rows)).tolist()
        return [", ".join(compress(self.feature_texts, row)) for row in used]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what splits do, (n_features_in_,) float64.

        A split lessens the Gini impurity of the training rows that come to it. Weighted by these
        rows, that is a share of what all splits of its tree do; shares are averaged over the trees,
        as scikit-learn does of forests that are grown by Gini impurity. They sum up to 1, or are
        all 0 of a forest without splits. What features cost is of no effect.
        """
        check_is_fitted(self, "forest_")
        forest = self.forest_
        splits = np.flatnonzero(forest.is_split)
        features = self._encoder.source[forest.feature[splits]]
        gains = forest.impurity_decreases()[splits]
        return importance_shares(self.n_features_in_, features, gains)

    def _reasons(self, X: Any) -> list[str]:
        """Return the path through a tree; of several, what is acquired for them."""
        matrix = self._matrix(X)
        if self.forest_.n_trees == 1:
            leaves = self.forest_.apply(matrix)[:, 0].tolist()
            words = {leaf: path_words(self.forest_, leaf, self._encoder) for leaf in {*leaves}}
            return [words[leaf] for leaf in leaves]
        acquired = self._acquired_words(matrix)
        return [f"what {self.forest_.n_trees} trees read: {each or 'nothing'}" for each in acquired]

    def acquisition_cost(self, X: Any) -> NDArray[np.float64]:
        """Return what classifying each row costs, (n_rows,) float64.

        A row pays for the features that any tree reads on its way, each once, and for their groups.
        Parameters and errors: see `predict`.
        """
        matrix = self._matrix(X)
        return self._row_costs(matrix)

    def features_used(self, X: Any) -> pd.DataFrame | NDArray[np.bool_]:
        """Return which features are acquired for each row, (n_rows, n_features) bool.

        It is a DataFrame if the features have names. Parameters and errors: see `predict`.
        """
        rows = GivenRows.of(X)
        used = self._used(self.forest_.features_used(self._matrix(rows)))
        if not self._encoder.is_named:
            return used
        return pd.DataFrame(used, index=rows.index, columns=list(self._encoder.columns))

    def acquire(self, fetch: Fetch, max_cost: float | None = None) -> Acquisition:
        """Acquire the features of one row step by step, only those that its paths need.

        Parameters
        ----------
        fetch : function
            Takes the name of a feature (its index if columns have none) and returns its value, None
            or NaN if it is missing, which costs the same. It is called once for a feature, and
            never for one that no tree asks for, so that it may buy the value, or ask a person. A
            level that fit has not seen cannot be read, whatever `unknown` says: it may be a slip.
        max_cost : float >= 0, optional
            Features that would bring the total above it are not acquired.

        Returns
        -------
        Acquisition
            The steps; printed, a table. When complete, its probabilities are those of
            `predict_proba` and its total is that of `acquisition_cost`, to the last digit. Ctrl-C
            ends it early; `Acquisition.resume` goes on.

        Raises
        ------
        ParameterError
            If `fetch` is no function or `max_cost` is out of its range.
        AcquisitionError
            If `fetch` raises an exception, which is its cause, or what it returns cannot be read.
            It has the steps so far, which may be resumed.
        """
        check_is_fitted(self, "forest_")
        strict = self._encoder.treating("error")  # what is typed wrong can be typed again
        walk = partial(ForestWalk, self.forest_, strict)
        model = Walkable(self._encoder.columns, self.items_, self.classes_, walk)
        return acquire(model, fetch, max_cost)

    # -- what a user sees --------------------------------------------------------------------------

    @property
    def certificate_texts(self) -> list[str]:
        """What the text says of how good the forest is known to be, part by part."""
        if self.stopped_after_ is None:
            return []
        return [f"stopped at the time limit of {self.stopped_after_:g} s"]

    @property
    def nothing_read_text(self) -> str:
        """What the text says where no tree reads anything, and what reading costs; else empty."""
        return nothing_text(self)

    def _first_features(self) -> tuple[str, NDArray[np.int64]]:
        """Return the features that a tree may begin with, and what the cheapest is called."""
        return "cheapest feature", np.arange(self.items_.n_columns)

    def _heading(self) -> list[str]:
        return size_pieces(self)

    def _how_made(self) -> Page:
        return cost_page(self)

    def _page(self) -> Page:
        """Return the features by what is spent on them.

        ``rows`` is the share of the validation rows that acquire a feature or pay for a group,
        ``spent`` what that costs a row on average.
        """
        return acquired_page(self)

    def _facts(self) -> list[str]:
        return [*super()._facts(), *cost_facts(self)]

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        return HOW_TO_READ

    def _doubt(self) -> list[str]:
        told = ", ".join(self.certificate_texts)
        return [f"What is known of how good it is: {told}."] if told else []

    def _cannot_tell(self) -> Sequence[str]:
        return CANNOT_TELL

    def plot(self, ax: "Axes | None" = None, tree: int | None = None) -> "Axes":
        """Draw what is spent on each feature, or a tree, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure that is large enough.
        tree : int in [0, n_trees), optional
            Which tree to draw. By default a forest of one tree is drawn as it is, and of others a
            bar for each feature and group: what validation rows spend on it on average, the most
            first, beside its cost and the share of the rows that acquire it.
        """
        check_is_fitted(self, "forest_")
        if tree is None and self.forest_.n_trees > 1:
            return plot_costs(self, ax)
        return self._boxes(tree).plot(ax)

    def to_dot(self, tree: int = 0) -> str:
        """Return one of the trees as Graphviz source: ``dot -Tsvg tree.dot > tree.svg`` draws it.

        Parameters
        ----------
        tree : int in [0, n_trees)
        """
        check_is_fitted(self, "forest_")
        return self._boxes(tree).dot("tree")

    def to_sql(self, label: object = None) -> str:
        """Return the class of a row, or how probable one is, as an expression of standard SQL.

        Such as ``f"SELECT *, {model.to_sql('ill')} AS ill FROM patients"``. It reads columns by
        their names, or as "x0", "x1" where they have none. NULL is a missing cell, which each split
        sends its way, as is an unknown level; or where `unknown` is "error" the answer is NULL.
        Numbers, which truth values are cast to, are compared as they are after rounding to float32.

        Parameters
        ----------
        label : object, optional
            The class whose probability is told; by default it is the most probable class, of a
            forest of one tree.

        Raises
        ------
        ParameterError
            If the label is none of the classes, or there is none and several trees vote.
        DataError
            If a name, level or class holds a NUL character.
        """
        check_is_fitted(self, "forest_")
        return label_sql(self.forest_, self._encoder, self.classes_, label)

    @property
    def _imagined(self) -> float:
        """Rows of each class that the forest's counts have beyond those that were seen."""
        return 0.0

    def _boxes(self, tree: int | None) -> BoxTree:
        chosen = check_integer("tree", tree or 0, 0, self.forest_.n_trees - 1)
        classes = [level_text(label) for label in self.classes_.tolist()]
        return class_tree_boxes(self.forest_, chosen, self._encoder, classes, self._imagined)

    # -- files -------------------------------------------------------------------------------------

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        costs = FeatureCosts.from_dict(record["costs"])
        return {**super()._read_parameters(record), "costs": costs}

    def _fields(self) -> dict[str, Any]:
        return {
            **self._encoding_fields(),
            "costs": self.costs_.to_dict(),
            "validation_cost": self.validation_cost_,
            "feature_shares": self.feature_shares_.tolist(),
            "item_shares": self.item_shares_.tolist(),
            **({} if self.stopped_after_ is None else {"stopped_after": self.stopped_after_}),
            **({} if self.choice_ is None else {"choice": self.choice_.to_dict()}),
            **self._own_record(),
            "forest": self.forest_.to_dict(),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._read_encoding(record)
        self._set_columns(self._encoder, FeatureCosts.from_dict(record["costs"]))
        encoder = self._encoder
        self.feature_shares_ = _shares(record, "feature_shares", len(encoder.columns))
        self.item_shares_ = _shares(record, "item_shares", self.items_.n_items)
        cost, expected = record["validation_cost"], float(self.item_shares_ @ self.items_.costs)
        allowed = _TOLERANCE * (1 + expected)
        if type(cost) not in (int, float) or not abs(cost - expected) <= allowed:
            raise ModelFileError(
                f"a saved model's validation cost must follow from its shares, {expected!r}, "
                f"got {cost!r}"
            )
        self.validation_cost_ = float(cost)
        after = record.get("stopped_after")
        self.stopped_after_ = None if after is None else check_real("stopped_after", after)
        choice = record.get("choice")
        self.choice_ = None if choice is None else Choice.from_dict(choice)
        self._read_own(record)
        self.forest_ = Forest.from_dict(record["forest"], len(encoder.source), len(self.classes_))

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether `fit` may have chosen something by the labels of validation rows."""
        return False

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")


def _shares(record: Mapping[str, Any], name: str, count: int) -> NDArray[np.float64]:
    shares = record[name]
    if (
        not isinstance(shares, list)
        or len(shares) != count
        or not all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
    ):
        raise ModelFileError(f"a saved model's {name} must be {count} numbers from 0 to 1")
    return np.array(shares, np.float64)
