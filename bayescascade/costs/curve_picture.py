"""A cost-accuracy curve as a picture: error by cost, a line for each family of classifiers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayescascade.costs.curve import CostAccuracyCurve

__all__ = ["plot_curve"]

_SIZE = (6.4, 4.2)  # inches
_MARKERS = "o^sDvP*X"


def plot_curve(curve: "CostAccuracyCurve", ax: "Axes | None" = None) -> "Axes":
    """Draw error by cost with standard errors; lower and further left is better.

    Parameters
    ----------
    curve : CostAccuracyCurve
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own by default, which touches nothing of pyplot's.
    """
    if ax is None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.subplots()
    for number, label in enumerate(curve.labels):
        points = curve.of(label)
        ax.errorbar(
            [point.cost for point in points],
            [100 * point.error for point in points],
            xerr=[point.cost_error for point in points],
            yerr=[100 * point.error_error for point in points],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=5,
            linewidth=1.2,
            elinewidth=0.8,
            color=f"C{number % 10}",
            label=label,
        )
    ax.set_xlabel("mean cost of a row")
    ax.set_ylabel("error, % of the test rows")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return ax
