"""What a user sees of a budgeted classifier: page, sentences of reports, bars of costs and SQL."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.costs.choice import Choice
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import class_number
from bayescascade.data.levels import plain_level, quoted
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.number_words import split_at
from bayescascade.data.sql import (
    sql_case,
    sql_cell,
    sql_column,
    sql_condition,
    sql_is_up_to,
    sql_literal,
)
from bayescascade.methods.forests.forest import Forest
from bayescascade.model.reporting import OF_ROWS
from bayescascade.report.axes import Bar, class_color, plot_bars
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.layout import wrap
from bayescascade.report.numbers import cost_texts, count_texts, probability_text, share_text
from bayescascade.report.page import (
    Fold,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    count_of,
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

_LABEL_WIDTH = 28  # characters of a box's line


class CostlyForest(Protocol):
    """What is shown: a `BudgetedClassifier` that is fitted, whose attributes these are."""

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


def size_pieces(model: CostlyForest) -> list[str]:
    """Return how large a forest is."""
    forest = model.forest_
    return [
        count_of(forest.n_trees, "tree"),
        count_of(forest.n_splits, "split"),
        f"mean depth {_mean_depth(forest):.1f}",
        f"{forest.n_classes} classes",
    ]


def cost_page(model: CostlyForest) -> Page:
    """Return what a forest costs, and what is known of how good it is."""
    spent, everything = cost_texts([model.validation_cost_, float(model.items_.costs.sum())])
    told = [f"cost {spent} a validation row on average", f"{everything} for all features"]
    proved: Page = (Pieces(model.certificate_texts),) if model.certificate_texts else ()
    if model.choice_ is not None and model.choice_.is_better:
        proved += (Pieces([f"better than nothing: {model.choice_.text}"]),)
    nothing = model.nothing_read_text
    warned = (warning(nothing),) if nothing else ()
    return (Pieces(told), *proved, *warned)


def acquired_page(model: CostlyForest) -> Page:
    """Return the features by what is spent on them, and those that no row acquires."""
    page: Page = ()
    paid_for = acquired(model)
    if paid_for:
        names, costs, shares = zip(*paid_for, strict=True)
        paid = [cost * share for _, cost, share in paid_for]
        looked_at = Numbers("rows", list(map(share_text, shares)))
        columns = [
            Numbers("cost", cost_texts(costs)),
            looked_at,
            Numbers("spent", cost_texts(paid)),
        ]
        fold = Fold(paid, "what is spent", ("feature", "features"))
        page += (PrintedTable(names, columns, "acquired", fold=fold),)
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
    trees = count_of(model.forest_.n_trees, "tree")
    spent, everything = cost_texts([model.validation_cost_, float(model.items_.costs.sum())])
    return [trees, f"cost {spent} a row on average", f"{everything} for all features"]


def plot_costs(model: CostlyForest, ax: "Axes | None") -> "Axes":
    """Draw what is spent on each feature, and return the axes."""
    x_label = "spent on a validation row on average   in brackets: cost"
    return plot_bars(cost_bars(acquired(model)), ax, x_label=x_label)


def acquired(model: CostlyForest) -> list[tuple[str, float, float]]:
    """Return what rows acquire, its own cost and share of rows, by what is spent, most first."""
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


def forest_sql(forest: Forest, encoder: MatrixEncoder, values: Sequence[str]) -> str:
    """Return the value at the leaf that a row comes to, in SQL; of several trees, their mean.

    `encoder` is of the forest's columns; where its policy refuses unknown levels, they make NULL.
    `values` are SQL expressions of every node of the forest, of numbers if there are several trees.
    """
    told, *others = (_tree_sql(forest, t, encoder, values) for t in range(forest.n_trees))
    if others:
        told = ["(", *told]
        for first, *rest in others:
            told += [f"+ {first}", *rest]
        told.append(f") / {forest.n_trees}")
    known = _known_levels_sql(encoder)
    return "\n".join(sql_case([(known, told)]) if known else told)


def _tree_sql(
    forest: Forest, tree: int, encoder: MatrixEncoder, values: Sequence[str]
) -> list[str]:
    """Return which of the values is at the leaf of a tree that a row comes to, as lines."""
    told = [[value] for value in values]
    start, end = (int(node) for node in forest.tree_starts[tree : tree + 2])
    for node in range(end - 1, start - 1, -1):  # children stand behind their parents
        if forest.feature[node] >= 0:
            goes_left = _goes_left(forest, node, encoder)
            told[node] = sql_case([(goes_left, told[node + 1])], told[forest.right[node]])
    return told[start]


def _known_levels_sql(encoder: MatrixEncoder) -> str:
    """Return the condition that no level is an error; empty where none can be."""
    if encoder.policy.unknown != "error":
        return ""
    conditions = [
        f"({sql_condition(levels, range(levels.n_levels))} OR {sql_column(levels)} IS NULL)"
        for levels in encoder.levels
        if levels is not None
    ]
    return " AND ".join(conditions)


def _goes_left(forest: Forest, node: int, encoder: MatrixEncoder) -> str:
    column, threshold = int(forest.feature[node]), float(forest.threshold[node])
    place = int(encoder.source[column])
    levels = encoder.levels[place]
    if levels is None:
        name = sql_cell(encoder.names[place], encoder.codes_of(place), is_text=False)
    else:
        name = sql_column(levels)
    codes = encoder.codes_up_to(column, threshold)
    if levels is None or codes is None:
        condition = sql_is_up_to(name, threshold)
    else:
        condition = sql_condition(levels, codes)
    if not forest.missing_left[node]:
        return condition  # which is not so of what is missing, or unknown
    if levels is None:
        return f"({condition} OR {name} IS NULL)"
    known = sql_condition(levels, range(levels.n_levels))
    return f"({condition} OR {name} IS NULL OR NOT {known})"


def class_tree_boxes(
    forest: Forest,
    tree: int,
    encoder: MatrixEncoder,
    class_texts: Sequence[str],
    imagined: float = 0.0,
) -> BoxTree:
    """Return a tree as boxes, leaves in their class's color; `imagined` rows are not counted."""
    nodes = slice(*forest.tree_starts[tree : tree + 2].tolist())
    parents = forest.parents[nodes] - forest.tree_starts[tree]
    one = forest.part(nodes)
    rows = count_texts((one.counts - imagined).sum(axis=1).tolist())
    texts, fills = [], []
    for node, (parent, shares) in enumerate(zip(parents.tolist(), one.probabilities, strict=True)):
        words = "everyone"
        if node > 0:
            words = split_words(
                encoder, int(one.feature[parent]), float(one.threshold[parent]), node == parent + 1
            )
        best, chance = int(shares.argmax()), 1 / shares.size
        told = wrap(f"{class_texts[best]} {probability_text(shares[best])}", _LABEL_WIDTH)
        texts.append([*wrap(words, _LABEL_WIDTH), f"{rows[node]} rows", *told])
        strength = 0.1 + 0.5 * (shares[best] - chance) / (1 - chance)
        fills.append("" if one.feature[node] >= 0 else class_color(best, strength))
    return BoxTree(texts, fills, np.maximum(parents, -1))


def path_words(forest: Forest, leaf: int, encoder: MatrixEncoder) -> str:
    """Return the splits on the way to a leaf in words, the first one first."""
    told: list[str] = []
    parents, node = forest.parents.tolist(), leaf
    while (parent := parents[node]) >= 0:
        column, threshold = int(forest.feature[parent]), float(forest.threshold[parent])
        told.insert(0, split_words(encoder, column, threshold, node == parent + 1))
        node = parent
    return " and ".join(told) or "any row"


def split_words(encoder: MatrixEncoder, column: int, threshold: float, is_left: bool) -> str:
    """Return a side of a split, such as "age is at most 30"; above all numbers, missing cells."""
    place = int(encoder.source[column])
    name, levels = quoted(encoder.names[place]), encoder.levels[place]
    if threshold >= np.finfo(np.float32).max:
        return f"{name} is {'not ' * is_left}missing"
    codes: Collection[int] | None = encoder.codes_up_to(column, threshold)
    number = encoder.numbers[place] if encoder.numbers else None
    if number is not None:
        levels, codes = split_at(number, threshold) or (None, None)
    if levels is None or codes is None:
        return f"{name} is {'at most' if is_left else 'above'} {threshold:.6g}"
    if not is_left:
        codes = [code for code in range(levels.n_levels) if code not in codes]
    return levels.condition_words(codes, is_open=True)


def cost_bars(acquired: Iterable[tuple[str, float, float]]) -> list[Bar]:
    """Return a bar for each name, cost and share of the rows: what is spent on it."""
    listed = list(acquired)
    if not listed:
        return [Bar("nothing is acquired", (0.0,))]
    costs = cost_texts([cost for _, cost, _ in listed])
    return [
        Bar(f"{name} ({text})", (cost * share,), f"{share_text(share)} of the rows")
        for text, (name, cost, share) in zip(costs, listed, strict=True)
    ]
