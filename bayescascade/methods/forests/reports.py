"""What a user sees of a budgeted classifier: page, sentences of reports, bars of costs and SQL."""

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.costs.choice import Choice
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import class_number
from bayescascade.data.levels import plain_level
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.sql import sql_literal
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.forest_sql import forest_sql
from bayescascade.methods.forests.pictures import cost_bars
from bayescascade.model.reporting import OF_ROWS
from bayescascade.report.bars import plot_bars
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

HOW_TO_READ = (
    (
        "",
        "Each line is a feature that rows are asked for, those on which most is spent "
        "first. A row is asked only for what its own way through the trees needs, for "
        "each feature once.",
    ),
    ("cost", "what one look at the feature costs"),
    ("rows", "the share of the rows for which it is looked at"),
    ("spent", "what that comes to for a row on average"),
)
"""Terms of the page, or nothing, and what they mean."""

CANNOT_TELL = (
    "A feature that is never acquired need not be unimportant: others may say the same for less.",
    "Probabilities are shares of rows at the ends of the trees, and more extreme than they "
    "should be where these are few.",
    *OF_ROWS,
)
"""What a budgeted classifier is not to be asked."""


class CostlyForest(Protocol):
    """What is shown: a `BudgetedClassifier` that is fitted, whose attributes these are."""

    title: ClassVar[str]
    forest_: Forest
    items_: CostItems
    validation_cost_: float
    feature_shares_: NDArray[np.float64]
    item_shares_: NDArray[np.float64]
    choice_: Choice | None

    @property
    def feature_texts(self) -> list[str]:
        """What the features are called."""

    @property
    def certificate_texts(self) -> list[str]:
        """What is known of how good the forest is, part by part."""

    @property
    def nothing_read_text(self) -> str:
        """What is said where no tree reads anything; else empty."""

    def _first_features(self) -> tuple[str, NDArray[np.int64]]: ...


def forest_page(model: CostlyForest) -> Page:
    """Return the size of the forest, and the features by what is spent on them.

    ``rows`` is the share of the validation rows that acquire a feature or pay for a group,
    ``spent`` what that costs a row on average.
    """
    forest = model.forest_
    heading = [
        model.title,
        counted(forest.n_trees, "tree"),
        counted(forest.n_splits, "split"),
        f"mean depth {_mean_depth(forest):.1f}",
        f"{forest.n_classes} classes",
    ]
    spent, everything = cost_texts([model.validation_cost_, float(model.items_.costs.sum())])
    told = [f"cost {spent} a validation row on average", f"{everything} for all features"]
    proved: Page = (Pieces(model.certificate_texts),) if model.certificate_texts else ()
    if model.choice_ is not None and model.choice_.is_better:
        proved += (Pieces([f"better than nothing: {model.choice_.text}"]),)
    nothing = model.nothing_read_text
    warned = (warning(nothing),) if nothing else ()
    page: Page = (Heading(heading), Pieces(told), *proved, *warned, BLANK)
    paid_for = acquired(model)
    if paid_for:
        names, costs, shares = zip(*paid_for, strict=True)
        paid = [cost * share for _, cost, share in paid_for]
        columns = [
            Numbers("cost", cost_texts(costs)),
            Numbers("rows", list(map(share_text, shares))),
            Numbers("spent", cost_texts(paid)),
        ]
        fold = Fold(paid, "what is spent", ("feature", "features"))
        page += (Table(names, columns, "acquired", fold=fold),)
    unused = [model.feature_texts[column] for column in np.flatnonzero(model.feature_shares_ == 0)]
    if unused:
        page += (named(unused, "feature", "never acquired: ", "dim"),)
    return page


def nothing_text(model: CostlyForest) -> str:
    """Return what is said where no tree reads anything, and what reading costs; else nothing."""
    if model.forest_.n_splits:
        return ""
    budget = getattr(model, "budget", None)
    told = "nothing is bought" if budget is None else f"budget {budget:.12g} buys nothing"
    if model.choice_ is not None and not model.choice_.is_better:
        return f"{told}, as that is no better by more than chance: {model.choice_.text}"
    what, features = model._first_features()
    if len(features):
        items = model.items_
        costs = [float(items.costs[items.of_column(one)].sum()) for one in features]
        least = int(np.argmin(costs))
        asked = items.of_column(int(features[least]))
        names = dict.fromkeys(
            [model.feature_texts[features[least]], *(items.texts[one] for one in asked)]
        )
        (cost,) = cost_texts([costs[least]])
        link = "though" if budget is not None and is_within(costs[least], budget) else "and"
        told += f", {link} the {what}, {', '.join(names)}, costs {cost}"
    return f"{told}: all rows get the same answer"


def cost_facts(model: CostlyForest) -> list[str]:
    """Return how many trees there are, and what they cost."""
    trees = counted(model.forest_.n_trees, "tree")
    spent, everything = cost_texts([model.validation_cost_, float(model.items_.costs.sum())])
    return [trees, f"cost {spent} a row on average", f"{everything} for all features"]


def plot_costs(model: CostlyForest, ax: "Axes | None") -> "Axes":
    """Draw what is spent on each feature, and return the axes."""
    x_label = "spent on a validation row on average   in brackets: cost"
    return plot_bars(cost_bars(acquired(model)), ax, x_label=x_label)


def acquired(model: CostlyForest) -> list[tuple[str, float, float]]:
    """Return what rows acquire, its cost and the share of rows, by what is spent, most first.

    A feature has its own cost only, without its groups'.
    """
    items = model.items_
    cost_of = dict(zip(items.names, items.costs.tolist(), strict=True))
    entries = [
        (name, cost_of.get(name, 0.0), share)
        for name, share in zip(model.feature_texts, model.feature_shares_.tolist(), strict=True)
    ]
    paid = zip(items.texts, items.costs.tolist(), model.item_shares_.tolist(), strict=True)
    entries += list(paid)[items.n_items - items.n_groups :]
    acquired = [entry for entry in entries if entry[2] > 0]
    return sorted(acquired, key=lambda entry: (-entry[1] * entry[2], -entry[2]))


def label_sql(forest: Forest, encoder: MatrixEncoder, classes: NDArray[Any], label: object) -> str:
    """Return what `BudgetedClassifier.to_sql` does."""
    if label is None:
        if forest.n_trees > 1:
            raise ParameterError(
                f"label must be a class where several trees vote, here {forest.n_trees}, got None"
            )
        best = classes[forest.probabilities.argmax(axis=1)].tolist()
        values = [sql_literal(plain_level("label", one)) for one in best]
    else:
        number = class_number(classes, label)
        values = [sql_literal(p) for p in forest.probabilities[:, number].tolist()]
    return forest_sql(forest, encoder, values)


def _mean_depth(forest: Forest) -> float:
    """Return the mean number of splits on a training row's way through a tree."""
    is_leaf = ~forest.is_split
    weights = forest.counts[is_leaf].sum(axis=1)
    return float(np.average(forest.n_above()[is_leaf], weights=weights))
