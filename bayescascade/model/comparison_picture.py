"""How densities compare on halves of a table, as a picture: score by number of parts.

A density with fewer parts and a higher score is a better one (Goh 2018, figures 3-3c, 3-6, 3-7).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayescascade.model.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_comparisons"]

_PANEL_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT = 4.8, 3.4, 0.7  # inches
_MARKERS = "o^sDvP*X"
_SPAN_OF_LOG = 8.0  # times as many parts from which on their axis is logarithmic
_MOST_PLAIN = 1e5  # parts that are written out
_LEAST_SPAN = 0.005  # nats


def plot_comparisons(comparisons: Sequence[Comparison]) -> "Figure":
    """Plot the held-out score of each density and halving by its parts, a panel for each table.

    Parameters
    ----------
    comparisons : sequence of Comparison
        At least one. A point whose parts are more than 1.8e308 is left out.

    Returns
    -------
    matplotlib.figure.Figure
        A figure of its own, as of all pictures.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_across = min(2, len(comparisons))
    n_down = -(-len(comparisons) // n_across)
    size = (n_across * _PANEL_WIDTH, n_down * _PANEL_HEIGHT + _LEGEND_HEIGHT)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_down, n_across, squeeze=False).ravel().tolist()
    for panel, comparison in zip(panels, comparisons, strict=False):
        _plot(panel, comparison)
    for panel in panels[len(comparisons) :]:
        panel.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=1 + n_across, frameon=False, fontsize=9
    )
    return figure


def _plot(panel: "Axes", comparison: Comparison) -> None:
    drawn = [outcome for outcome in comparison.outcomes if outcome.n_parts < math.inf]
    for number, model in enumerate(comparison.models):
        outcomes = [outcome for outcome in drawn if outcome.model == model]
        panel.plot(
            [outcome.n_parts for outcome in outcomes],
            [outcome.log_likelihood for outcome in outcomes],
            linestyle="none",
            marker=_MARKERS[number % len(_MARKERS)],
            fillstyle="none",  # so that what lies below is seen
            markersize=8,
            markeredgewidth=1.6,
            color=f"C{number % 10}",
            label=comparison.titles.get(model, model),
        )
    _set_limits(panel, [o.n_parts for o in drawn], [o.log_likelihood for o in drawn])
    panel.set_ylabel("held out, nats a row")
    panel.set_title(comparison.table.source, fontsize=10, parse_math=False)
    panel.spines[["top", "right"]].set_visible(False)


def _set_limits(panel: "Axes", n_parts: Sequence[float], scores: Sequence[float]) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    if n_parts and max(n_parts) > _SPAN_OF_LOG * min(n_parts):
        panel.set_xscale("log")
        if max(n_parts) < _MOST_PLAIN:
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        panel.set_xlabel("parts: leaves, rules, cells (log scale)")
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlabel("parts: leaves, rules, cells")
    if scores and max(scores) - min(scores) < _LEAST_SPAN:  # or rounding would look like a result
        middle = (max(scores) + min(scores)) / 2
        panel.set_ylim(middle - _LEAST_SPAN, middle + _LEAST_SPAN)
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:.3f}"))
