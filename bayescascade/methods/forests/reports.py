"""What a user sees of a budgeted classifier: text, reports, pictures, Graphviz source and SQL."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer
from bayescascade.costs.choice import Choice
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import class_number
from bayescascade.data.levels import level_text, plain_level
from bayescascade.data.sql import sql_literal
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.forest_sql import forest_sql
from bayescascade.methods.forests.pictures import class_tree_boxes, cost_bars
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.reporting import OF_ROWS
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


class ShownForest(MatrixClassifier):
    """A classifier with a forest whose features cost something; see `BudgetedClassifier`."""

    _unlisted: ClassVar[tuple[str, ...]] = ("certificate_texts", "nothing_read_text")

    purpose: ClassVar[str] = (
        "Which class a row is of, by decision trees that ask only for features that are worth "
        "what they cost."
    )

    forest_: Forest
    items_: CostItems
    validation_cost_: float
    feature_shares_: NDArray[np.float64]
    item_shares_: NDArray[np.float64]
    stopped_after_: float | None = None
    choice_: Choice | None = None

    @property
    def certificate_texts(self) -> list[str]:
        """What the text says of how good the forest is known to be, part by part."""
        if self.stopped_after_ is None:
            return []
        return [f"stopped at the time limit of {self.stopped_after_:g} s"]

    @property
    def nothing_read_text(self) -> str:
        """What the text says where no tree reads anything, and what reading costs; else empty."""
        if self.forest_.n_splits:
            return ""
        budget = getattr(self, "budget", None)
        told = "nothing is bought" if budget is None else f"budget {budget:.12g} buys nothing"
        if self.choice_ is not None and not self.choice_.is_better:
            return f"{told}, as that is no better by more than chance: {self.choice_.text}"
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
        proved: Page = (Pieces(self.certificate_texts),) if self.certificate_texts else ()
        if self.choice_ is not None and self.choice_.is_better:
            proved += (Pieces([f"better than nothing: {self.choice_.text}"]),)
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


def _mean_depth(forest: Forest) -> float:
    """Return the mean number of splits on a training row's way through a tree."""
    is_leaf = ~forest.is_split
    weights = forest.counts[is_leaf].sum(axis=1)
    return float(np.average(forest.n_above()[is_leaf], weights=weights))
