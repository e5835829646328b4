"""Texts about a classifier within a budget: page, sentences of reports, bars of costs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bayescascade.costs.limits import is_within
from bayescascade.model.view import OF_ROWS
from bayescascade.report.axes import Bar, plot_bars
from bayescascade.report.numbers import cost_texts, share_text
from bayescascade.report.page import Fold, Numbers, Page, Pieces, PrintedTable, named, warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW_TO_READ = (
    (
        "",
        "Each line is a feature that the classifier acquires, sorted by what is spent on it. A "
        "row needs only the features on its own path through the trees, and pays once for each.",
    ),
    ("cost", "the cost of acquiring the feature once"),
    ("rows", "the share of the rows that need it"),
    ("spent", "the mean cost per row"),
)
"""Terms of the page and their meaning."""

CANNOT_TELL = (
    "A feature that is never acquired may still be informative: other features may say the same "
    "at a lower cost.",
    "Probabilities are shares of rows in the leaves of the trees. In leaves with few rows they "
    "are too extreme.",
    *OF_ROWS,
)
"""Limits of the conclusions from a budgeted classifier."""


Costly: TypeAlias = Any
"""A `BudgetedClassifier` that is fitted."""


def cost_page(model: Costly, rows: Sequence[str]) -> Page:
    """Return the number of rows, the costs, and the proved quality."""
    spent, everything = cost_texts([model.validation_cost_, float(model.items_.costs.sum())])
    texts = [*rows, f"mean cost {spent} a validation row", f"all features cost {everything}"]
    proved: Page = (Pieces(model.certificate_texts),) if model.certificate_texts else ()
    if model.choice_ is not None and model.choice_.is_better:
        proved += (Pieces([f"better than buying nothing: {model.choice_.text}"]),)
    if nothing := model.nothing_read_text:
        proved += (warning(nothing),)
    return (Pieces(texts), *proved)


def acquired_page(model: Costly) -> Page:
    """Return the features, ordered by mean cost per row, and those that no row acquires."""
    page: Page = ()
    paid_for = acquired(model)
    if paid_for:
        names, costs, shares = zip(*paid_for, strict=True)
        paid = [cost * share for _, cost, share in paid_for]
        columns = [
            Numbers("cost", cost_texts(costs)),
            Numbers("rows", list(map(share_text, shares))),
            Numbers("spent", cost_texts(paid)),
        ]
        fold = Fold(paid, "the mean cost", ("feature", "features"))
        page += (PrintedTable(names, columns, "acquired", fold=fold),)
    unused = [model.feature_texts[column] for column in np.flatnonzero(model.feature_shares_ == 0)]
    if unused:
        page += (named(unused, "feature", "never acquired: ", "dim"),)
    return page


def nothing_text(model: Costly) -> str:
    """Return why no feature is read, with the cost of the cheapest; otherwise empty."""
    if not model._reads_nothing:
        return ""
    budget = getattr(model, "budget", None)
    text = "nothing is bought" if budget is None else f"budget {budget:.12g} buys nothing"
    if model.choice_ is not None and not model.choice_.is_better:
        better = "not better than the most common class by more than a standard error"
        return f"{text}: the classifier is {better}: {model.choice_.text}"
    what, features = model._first_features()
    if len(features):
        items = model.items_
        costs = [float(items.costs[items.of_column(feature)].sum()) for feature in features]
        least = int(np.argmin(costs))
        paid = items.of_column(int(features[least]))
        names = dict.fromkeys(
            [model.feature_texts[features[least]], *(items.texts[item] for item in paid)]
        )
        (cost,) = cost_texts([costs[least]])
        link = "though" if budget is not None and is_within(costs[least], budget) else "and"
        text += f", {link} the {what}, {' with '.join(names)}, costs {cost}"
    return f"{text}; all rows get the same prediction"


def cost_facts(model: Costly) -> list[str]:
    """Return the mean cost of a row and the cost of all features, in words."""
    spent, everything = cost_texts([model.validation_cost_, float(model.items_.costs.sum())])
    return [f"mean cost {spent} a row", f"all features cost {everything}"]


def plot_costs(model: Costly, ax: "Axes | None") -> "Axes":
    """Draw the mean cost per row of each feature, and return the axes."""
    x_label = "mean cost per validation row   in brackets: cost of the feature"
    return plot_bars(cost_bars(acquired(model)), ax, x_label=x_label)


def acquired(model: Costly) -> list[tuple[str, float, float]]:
    """Return acquired features with cost and share of rows, by decreasing mean cost per row."""
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


def cost_bars(acquired: Iterable[tuple[str, float, float]]) -> list[Bar]:
    """Return a bar for each name, cost and share of the rows, with the mean cost per row."""
    listed = list(acquired)
    if not listed:
        return [Bar("nothing is acquired", (0.0,))]
    costs = cost_texts([cost for _, cost, _ in listed])
    return [
        Bar(f"{name} ({text})", (cost * share,), f"{share_text(share)} of the rows")
        for text, (name, cost, share) in zip(costs, listed, strict=True)
    ]
