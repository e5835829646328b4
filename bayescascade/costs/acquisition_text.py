"""The acquisition of one row's features as text, step by step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich.cells import set_cell_size

from bayescascade.data.schema import column_text
from bayescascade.report.layout import Ink, flow, longest, printable
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.number_table import number_table
from bayescascade.report.numbers import cost_texts, probability_text

if TYPE_CHECKING:
    from bayescascade.costs.acquisition import Acquisition

__all__ = ["acquisition_text"]

_WIDEST_VALUE = 14
_WIDEST_CLASS = 16

_ENDS = {
    "max_cost": "stopped: what is needed next would bring the cost above {limit}",
    "interrupted": "interrupted",
    "failed": "stopped: a value could not be fetched",
}


def acquisition_text(acquisition: "Acquisition", *, width: int = 80, color: bool = False) -> str:
    """Return the steps of an acquisition as a table.

    Parameters
    ----------
    acquisition : Acquisition
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end. Each line has the feature, its value, what was paid for it
        and so far, the trees that need more, and the most probable class with its probability.
    """
    return "\n".join(_lines(acquisition, width, Ink(color)))


def _lines(acquisition: "Acquisition", width: int, ink: Ink) -> Iterator[str]:
    steps, model = acquisition.steps, acquisition.model
    n_features = len(model.columns)
    heading = [
        _shown(acquisition.prediction, acquisition.probabilities.max()),
        f"{len(steps)} of {n_features} features acquired",
        f"cost {cost_texts([acquisition.total_cost])[0]}",
    ]
    first, *more = flow(heading, width, 2)
    yield ink("bold", first)
    yield from more
    if not acquisition.is_complete:
        limit = cost_texts([acquisition.max_cost or 0.0])[0]
        names = ", ".join(column_text(column) for column in acquisition.needed)
        end = _ENDS[acquisition.status].format(limit=limit)
        for line in flow([f"{end}; trees wait for {names}"], width, 2):
            yield ink("warning", line)
    yield ""
    start = acquisition.start_probabilities
    numbers = NumberColumns(
        ("value", "cost", "total", "trees\nwaiting", "most probable"),
        (
            ["", *_cut([_value_text(step.value) for step in steps], _WIDEST_VALUE)],
            ["", *cost_texts([step.cost for step in steps])],
            ["", *cost_texts([step.total_cost for step in steps])],
            [str(acquisition.start_waiting), *(str(step.n_waiting) for step in steps)],
            [
                _shown(model.classes[start.argmax()], start.max()),
                *(_shown(step.prediction, step.probabilities.max()) for step in steps),
            ],
        ),
    )
    labels = ["nothing yet", *(column_text(step.feature) for step in steps)]
    yield from number_table(labels, numbers, width, ink, header="feature")


def _shown(label: object, probability: float) -> str:
    """Return a class and its probability, such as "ill 0.62"."""
    (text,) = _cut([_value_text(label)], _WIDEST_CLASS)
    return f"{text} {probability_text(float(probability))}"


def _value_text(value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload] # a scalar
        return "missing"
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def _cut(texts: list[str], width: int) -> list[str]:
    """Return texts of at most `width` columns, the end of longer ones replaced by dots."""
    return [
        text if longest([text]) <= width else set_cell_size(text, width - 2) + ".."
        for text in texts
    ]
