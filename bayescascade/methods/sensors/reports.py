"""Texts about gated sensors."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.costs.pages import cost_bars
from bayescascade.methods.sensors.signals import Sensors
from bayescascade.report.axes import plot_bars
from bayescascade.report.numbers import cost_texts, share_text
from bayescascade.report.page import Fold, Numbers, Page, PrintedTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW_TO_READ = (
    (
        "",
        "Each line is a sensor, sorted by what is spent on it. A sensor uses only its own "
        "columns, and sends only if its gate decides that it is needed.",
    ),
    ("columns", "the number of its columns"),
    ("cost", "the cost of sending once"),
    ("sends", "the share of the rows for which it sends"),
    ("spent", "the mean cost per row"),
)
"""Terms of the page, or "", and their meanings."""


def found_texts(model: Any) -> list[list[str]]:
    """Return the choice, with its error and cost on the rows that chose it."""
    found, total = model._found, float(model._sensors.costs.sum())
    spent, all_of_them, scored = cost_texts([model.validation_cost_, total, found.cost])
    how = "sensors that always send" if found.kind == "always" else model._method_text
    how = "silent sensors" if found.is_silent else how
    texts = (
        [how] if model.tradeoff_ is None else [how, f"{model._tradeoff_word} {found.tradeoff:.3g}"]
    )
    if model.gap_ is not None:
        texts.append(f"predictors within {found.gap:.1g} nats of their optimum")
    costs = [f"cost {spent} a row on average", f"{all_of_them} if all send"]
    if model.budget is not None:
        costs.append(f"budget {model.budget:.12g}")
    chosen = [f"validation rows: {model._error_text(found.error)} at cost {scored}"]
    ended = []
    if model.is_interrupted_:
        ended.append("interrupted: best candidate so far")
    if model.stopped_after_ is not None:
        ended.append(f"stopped at the time limit of {model.stopped_after_:g} s")
    return [line for line in (texts, costs, chosen, ended) if line]


def silent_text(model: Any) -> str:
    """Return that no sensor ever sends, with the cost of the cheapest; otherwise empty."""
    if not model._found.is_silent:
        return ""
    sensors = model._sensors
    least = int(np.argmin(sensors.costs))
    (cost,) = cost_texts([sensors.costs[least]])
    budget = "" if model.budget is None else f"budget {model.budget:.12g}: "
    text = f"no sensor sends; the cheapest sensor, {sensors.names[least]}, costs {cost}"
    return f"{budget}{text}; all rows get the same prediction"


def sensor_table(sensors: Sensors, shares: Floats) -> Page:
    """Return a line for each sensor, ordered by money spent."""
    spent = sensors.costs * shares
    order = sorted(range(len(sensors)), key=lambda k: (-spent[k], -shares[k], k))
    columns = [
        Numbers("columns", [str(sensors.columns[k].size) for k in order]),
        Numbers("cost", cost_texts([sensors.costs[k] for k in order])),
        Numbers("sends", [share_text(float(shares[k])) for k in order]),
        Numbers("spent", cost_texts([spent[k] for k in order])),
    ]
    fold = Fold([float(spent[k]) for k in order], "the mean cost", ("sensor", "sensors"))
    return (PrintedTable([sensors.names[k] for k in order], columns, "sensor", fold=fold),)


def plot_sensors(sensors: Sensors, shares: Floats, ax: "Axes | None") -> "Axes":
    """Draw the mean cost per row of each sensor, and return the axes."""
    bars = zip(sensors.names, sensors.costs.tolist(), shares.tolist(), strict=True)
    return plot_bars(
        cost_bars(bars), ax, x_label="mean cost per row   in brackets: cost of the sensor"
    )
