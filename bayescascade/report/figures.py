"""Blank figures to draw into: each its own, in no global state of matplotlib.

So they work in scripts without a display and beside a user's own figures.
"""

from typing import TYPE_CHECKING, Any

from bayescascade.base.extras import check_plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["blank_figure"]


def blank_figure(width: float, height: float, **options: Any) -> "Figure":
    """Return a figure of so many inches, which pyplot does not know; `options` are matplotlib's.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    check_plots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), **options)
    FigureCanvasAgg(figure)
    return figure
