"""What every budgeted classifier does once it has a forest: classify, count costs, acquire, print.

A subclass has a `fit` that begins with `_read_training`, grows or prunes a `Forest` over the matrix
that it gets, and ends with `_become`. What features cost is a parameter of every constructor:
clones, pipelines and grid searches take it along, and no metadata needs to be routed.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.costs.acquisition import Acquisition, Fetch, Walkable, acquire
from bayescascade.costs.items import CostItems, Costs, FeatureCosts
from bayescascade.costs.limits import is_within
from bayescascade.data.file_frames import with_labels
from bayescascade.data.labels import TrainingRows, class_number
from bayescascade.data.levels import level_text, plain_level
from bayescascade.data.matrix import CellPolicy, MatrixEncoder
from bayescascade.data.partitions import by_partitions
from bayescascade.data.sources import as_frame
from bayescascade.data.sql import sql_literal
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.forest_sql import forest_sql
from bayescascade.methods.forests.pictures import class_tree_boxes, cost_bars
from bayescascade.methods.forests.walk import ForestWalk
from bayescascade.model.importances import importance_shares
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.reporting import OF_ROWS
from bayescascade.model.roles import Predicted
from bayescascade.report.bars import plot_bars
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.numbers import cost_texts, share_text
from bayescascade.report.page import (
    BLANK,
    Fold,
    Heading,
    Numbers,
    Page,
    Pieces,
    Table,
    counted,
    named,
    warning,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BudgetedClassifier", "ReadRows", "read_rows"]

CELLS = CellPolicy(missing="nan", dtype=np.float32)
"""What forests take for a cell."""

_TOLERANCE = 1e-9  # between the stored cost and what the shares give


class ReadRows(NamedTuple):
    """How columns are encoded, what they cost, and the rows."""

    encoder: MatrixEncoder
    costs: FeatureCosts
    training: TrainingRows


def read_rows(
    X: Any, y: Any, costs: Costs, owner: str, unknown: str = "error", **more: Any
) -> ReadRows:
    """Learn columns and costs, and read rows; see `TrainingRows.read` for `more` and errors."""
    X, y, more["sample_weight"] = with_labels(X, y, more.get("sample_weight"))
    if more.get("X_val") is not None and isinstance(more.get("y_val"), str):
        more["X_val"], more["y_val"], _ = with_labels(more["X_val"], more["y_val"])
    X = as_frame(X)  # once: some tables can be read only once
    encoder = MatrixEncoder.learn(X, CELLS).treating(unknown)
    found = FeatureCosts.of(costs, encoder.columns)
    return ReadRows(encoder, found, TrainingRows.read(encoder, X, y, owner=owner, **more))


class BudgetedClassifier(MatrixClassifier):
    """A classifier that pays for the features that its trees read.

    Attributes
    ----------
    model_name : str
        Name of the class in files.
    forest_ : Forest
        The trees, over the columns of a matrix.
    costs_ : FeatureCosts
    items_ : CostItems
        What each feature costs.
    validation_cost_ : float
        Mean cost of the validation rows.
    feature_shares_ : (n_features_in_,) float64
        Share of the validation rows that acquire each feature.
    item_shares_ : (n_items,) float64
        Share of them that pay for each item of `items_`, a feature or a group.

    feature_importances_ : (n_features_in_,) float64
        Share of each feature in the Gini impurity that splits lessen: as scikit-learn has it of
        forests with that criterion, whatever these trees were grown by, so that entropy forests
        have other shares there.

    The others are those of every `MatrixClassifier`.
    """

    _unlisted: ClassVar[tuple[str, ...]] = (
        "certificate_texts",
        "may_know_validation_labels",
        "nothing_read_text",
    )

    cells: ClassVar[CellPolicy] = CELLS
    unknowns: ClassVar[tuple[str, ...]] = ("missing", "error")
    purpose: ClassVar[str] = (
        "Which class a row is of, by decision trees that ask only for features that are worth "
        "what they cost."
    )

    _not_saved = (*NOT_SAVED, "costs", "forest")  # costs are a field of their own

    costs: Costs

    forest_: Forest

    # -- for the `fit` of subclasses ---------------------------------------------------------------

    def _read_training(self, X: Any, y: Any, **more: Any) -> TrainingRows:
        """Learn the columns, classes and costs, and return the rows as a matrix; see `read_rows`.

        Raises ParameterError also if a cost is about no column.
        """
        unknown = check_choice("unknown", self.unknown, self.unknowns)
        owner = type(self).__name__
        encoder, costs, training = read_rows(X, y, self.costs, owner, unknown, **more)
        self._set_columns(encoder, costs)
        self.classes_ = training.classes
        return training

    @property
    def _matrix_items(self) -> CostItems:
        """What the columns of the matrix cost."""
        return self.items_.of_features(self._encoder.source)

    def _become(self, forest: Forest, validation_rows: NDArray[np.float32]) -> None:
        """Be fitted to a forest, and measure what it costs on rows of a matrix."""
        used = self._used(forest.features_used(validation_rows))
        paid = self.items_.paid(used)
        self.forest_ = forest
        self.validation_cost_ = float(self.items_.total(paid).mean())
        self.feature_shares_, self.item_shares_ = used.mean(axis=0), paid.mean(axis=0)

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

    # -- classifying -------------------------------------------------------------------------------

    @by_partitions
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class for each row, (n_rows, n_classes) float64.

        It is the mean over the trees of the shares of the classes at the leaves. Parameters and
        errors: see `predict`.
        """
        matrix = self._matrix(X)  # which says if nothing is fitted
        return self.forest_.predict_proba(matrix)

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

    def predict_block(
        self, cells: pd.DataFrame, first_row: int, *, intervals: bool = False, explain: bool = False
    ) -> Predicted:
        """Return what rows of a file are and cost; see `bayescascade.model.roles.Predictor`.

        Told are the features that are acquired.
        """
        del first_row, intervals  # files are one block; forests do not say how sure they are
        matrix = self._matrix(cells)
        used = self._used(self.forest_.features_used(matrix))
        told: dict[str, Sequence[object]] = {}
        if explain:
            told["acquired"] = [
                ", ".join(compress(self.feature_texts, row)) for row in used.tolist()
            ]
        costs = self.items_.total(self.items_.paid(used))
        return Predicted(told, self.forest_.predict_proba(matrix), costs=costs)

    def acquisition_cost(self, X: Any) -> NDArray[np.float64]:
        """Return what classifying each row costs, (n_rows,) float64.

        A row pays for the features that any tree reads on its way, each once, and for their groups.
        Parameters and errors: see `predict`.
        """
        matrix = self._matrix(X)
        return self._costs(self.forest_, matrix)

    def features_used(self, X: Any) -> pd.DataFrame | NDArray[np.bool_]:
        """Return which features are acquired for each row, (n_rows, n_features) bool.

        It is a DataFrame if the features have names. Parameters and errors: see `predict`.
        """
        matrix = self._matrix(X)
        used = self._used(self.forest_.features_used(matrix))
        if not self._encoder.is_named:
            return used
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(used, index=index, columns=list(self._encoder.columns))

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

    # -- files and text ----------------------------------------------------------------------------

    def _own_record(self) -> dict[str, Any]:
        """Return fields of a saved file that only this class has, as plain JSON types."""
        return {}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        """Become what `_own_record` told; checks as `_restore`."""

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
        self._read_own(record)
        self.forest_ = Forest.from_dict(record["forest"], len(encoder.source), len(self.classes_))

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether `fit` may have chosen something by the labels of validation rows."""
        return False

    @property
    def certificate_texts(self) -> list[str]:
        """What the text says of how good the forest is known to be, part by part."""
        return []

    @property
    def nothing_read_text(self) -> str:
        """What the text says where no tree reads anything, and what reading costs; else empty."""
        if self.forest_.n_splits:
            return ""
        budget = getattr(self, "budget", None)
        told = "nothing is bought" if budget is None else f"budget {budget:.12g} buys nothing"
        what, features = self._first_features()
        if len(features):
            items = self.items_
            costs = [float(items.costs[items.of_column(one)].sum()) for one in features]
            least = int(np.argmin(costs))
            asked = items.of_column(int(features[least]))
            names = dict.fromkeys(
                [self.feature_texts[features[least]], *(items.texts[one] for one in asked)]
            )
            (cost,) = cost_texts([costs[least]])
            link = "though" if budget is not None and is_within(costs[least], budget) else "and"
            told += f", {link} the {what}, {', '.join(names)}, costs {cost}"
        return f"{told}: all rows get the same answer"

    def _first_features(self) -> tuple[str, NDArray[np.int64]]:
        """Return the features that a tree may begin with, and what the cheapest is called."""
        return "cheapest feature", np.arange(self.items_.n_columns)

    def page(self) -> Page:
        """Return the size of the forest, and the features by what is spent on them.

        ``rows`` is the share of the validation rows that acquire a feature or pay for a group,
        ``spent`` what that costs a row on average.
        """
        forest = self.forest_
        heading = [
            self.title,
            counted(forest.n_trees, "tree"),
            counted(forest.n_splits, "split"),
            f"mean depth {_mean_depth(forest):.1f}",
            f"{forest.n_classes} classes",
        ]
        spent, everything = cost_texts([self.validation_cost_, float(self.items_.costs.sum())])
        told = [f"cost {spent} a validation row on average", f"{everything} for all features"]
        proved = (Pieces(self.certificate_texts),) if self.certificate_texts else ()
        nothing = self.nothing_read_text
        warned = (warning(nothing),) if nothing else ()
        page: Page = (Heading(heading), Pieces(told), *proved, *warned, BLANK)
        acquired = self._acquired()
        if acquired:
            names, costs, shares = zip(*acquired, strict=True)
            paid = [cost * share for _, cost, share in acquired]
            columns = [
                Numbers("cost", cost_texts(costs)),
                Numbers("rows", list(map(share_text, shares))),
                Numbers("spent", cost_texts(paid)),
            ]
            fold = Fold(paid, "what is spent", ("feature", "features"))
            page += (Table(names, columns, "acquired", fold=fold),)
        unused = [
            self.feature_texts[column] for column in np.flatnonzero(self.feature_shares_ == 0)
        ]
        if unused:
            page += (named(unused, "feature", "never acquired: ", "dim"),)
        return page

    def _facts(self) -> list[str]:
        trees = counted(self.forest_.n_trees, "tree")
        spent, everything = cost_texts([self.validation_cost_, float(self.items_.costs.sum())])
        costs = [f"cost {spent} a row on average", f"{everything} for all features"]
        return [*super()._facts(), trees, *costs]

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [
            (
                "",
                "Each line is a feature that rows are asked for, those on which most is spent "
                "first. A row is asked only for what its own way through the trees needs, for "
                "each feature once.",
            ),
            ("cost", "what one look at the feature costs"),
            ("rows", "the share of the rows for which it is looked at"),
            ("spent", "what that comes to for a row on average"),
        ]

    def _doubt(self) -> list[str]:
        told = ", ".join(self.certificate_texts)
        return [f"What is known of how good it is: {told}."] if told else []

    def _cannot_tell(self) -> list[str]:
        return [
            "A feature that is never acquired need not be unimportant: others may say the same "
            "for less.",
            "Probabilities are shares of rows at the ends of the trees, and more extreme than they "
            "should be where these are few.",
            *OF_ROWS,
        ]

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
            x_label = "spent on a validation row on average   in brackets: cost"
            return plot_bars(cost_bars(self._acquired()), ax, x_label=x_label)
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
        forest = self.forest_
        if label is None:
            if forest.n_trees > 1:
                raise ParameterError(
                    f"label must be a class where several trees vote, here {forest.n_trees}, "
                    "got None"
                )
            best = self.classes_[forest.probabilities.argmax(axis=1)].tolist()
            values = [sql_literal(plain_level("label", one)) for one in best]
        else:
            number = class_number(self.classes_, label)
            values = [sql_literal(p) for p in forest.probabilities[:, number].tolist()]
        return forest_sql(forest, self._encoder, values)

    @property
    def _imagined(self) -> float:
        """Rows of each class that the forest's counts have beyond those that were seen."""
        return 0.0

    def _boxes(self, tree: int | None) -> BoxTree:
        chosen = check_integer("tree", tree or 0, 0, self.forest_.n_trees - 1)
        classes = [level_text(label) for label in self.classes_.tolist()]
        return class_tree_boxes(self.forest_, chosen, self._encoder, classes, self._imagined)

    def _acquired(self) -> list[tuple[str, float, float]]:
        """Return what rows acquire, its cost and their share, most is spent on first.

        A feature is told with its own cost only.
        """
        items = self.items_
        cost_of = dict(zip(items.names, items.costs.tolist(), strict=True))
        entries = [
            (name, cost_of.get(name, 0.0), share)
            for name, share in zip(self.feature_texts, self.feature_shares_.tolist(), strict=True)
        ]
        paid = zip(items.texts, items.costs.tolist(), self.item_shares_.tolist(), strict=True)
        entries += list(paid)[items.n_items - items.n_groups :]
        acquired = [entry for entry in entries if entry[2] > 0]
        return sorted(acquired, key=lambda entry: (-entry[1] * entry[2], -entry[2]))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")


def _mean_depth(forest: Forest) -> float:
    """Return the mean number of splits on a training row's way through a tree."""
    is_leaf = ~forest.is_split
    weights = forest.counts[is_leaf].sum(axis=1)
    return float(np.average(forest.n_above()[is_leaf], weights=weights))


def _shares(record: Mapping[str, Any], name: str, count: int) -> NDArray[np.float64]:
    shares = record[name]
    if (
        not isinstance(shares, list)
        or len(shares) != count
        or not all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
    ):
        raise ModelFileError(f"a saved model's {name} must be {count} numbers from 0 to 1")
    return np.array(shares, np.float64)
