"""Budgeted classifiers as text: how large the forest is, and what rows pay for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayescascade.model.words import model_words
from bayescascade.report.layout import Ink, flow
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.number_table import number_table
from bayescascade.report.numbers import cost_texts, share_text

if TYPE_CHECKING:
    from bayescascade.methods.forests.base import BudgetedClassifier
    from bayescascade.methods.forests.forest import Forest

__all__ = ["budgeted_text"]


def budgeted_text(model: "BudgetedClassifier", *, width: int = 80, color: bool = False) -> str:
    """Return a fitted budgeted classifier: its size, and the features by what is spent on them.

    Parameters
    ----------
    model : BudgetedClassifier
        Fitted.
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end. ``rows`` is the share of the validation rows that acquire
        a feature or pay for a group, ``spent`` what that costs a row on average.
    """
    return "\n".join(_lines(model, width, Ink(color)))


def _lines(model: "BudgetedClassifier", width: int, ink: Ink) -> Iterator[str]:
    forest, items = model.forest_, model.items_
    first, *more = flow(
        [
            model_words(model.model_name),
            _counted(forest.n_trees, "tree"),
            _counted(forest.n_splits, "split"),
            f"mean depth {_mean_depth(forest):.1f}",
            f"{forest.n_classes} classes",
        ],
        width,
        2,
    )
    yield ink("bold", first)
    yield from more
    spent, everything = cost_texts([model.validation_cost_, float(items.costs.sum())])
    told = f"cost {spent} a validation row on average   {everything} for all features"
    yield from flow(told.split("   "), width, 2)
    if model.certificate_texts:
        yield from flow(model.certificate_texts, width, 2)
    yield ""
    entries = _entries(model)
    if entries:
        numbers = NumberColumns(
            ("cost", "rows", "spent"),
            (
                cost_texts([entry.cost for entry in entries]),
                [share_text(entry.share) for entry in entries],
                cost_texts([entry.spent for entry in entries]),
            ),
        )
        yield from number_table([entry.name for entry in entries], numbers, width, ink, "acquired")
    unused = np.flatnonzero(model.feature_shares_ == 0)
    if unused.size:
        names = ", ".join(model.feature_texts[column] for column in unused)
        yield from (ink("dim", line) for line in flow([f"never acquired: {names}"], width, 2))


class _Entry(NamedTuple):
    """A feature or group that some validation rows acquire."""

    name: str
    cost: float
    share: float

    @property
    def spent(self) -> float:
        return self.cost * self.share


def _entries(model: "BudgetedClassifier") -> list[_Entry]:
    """Return what is acquired, most is spent on first; a feature with its own cost only."""
    items = model.items_
    cost_of = dict(zip(items.names, items.costs.tolist(), strict=True))
    features = [
        _Entry(name, cost_of.get(name, 0.0), share)
        for name, share in zip(model.feature_texts, model.feature_shares_.tolist(), strict=True)
    ]
    paid = zip(items.texts, items.costs.tolist(), model.item_shares_.tolist(), strict=True)
    groups = [_Entry(*each) for each in paid][items.n_items - items.n_groups :]
    acquired = [entry for entry in [*features, *groups] if entry.share > 0]
    return sorted(acquired, key=lambda entry: (-entry.spent, -entry.share))


def _mean_depth(forest: "Forest") -> float:
    """Return the mean number of splits on a training row's way through a tree."""
    is_leaf = ~forest.is_split
    weights = forest.counts[is_leaf].sum(axis=1)
    return float(np.average(forest.depths[is_leaf], weights=weights))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
