"""Blank figures to draw into: each its own, in no global state of matplotlib.

So they work in scripts without a display and beside a user's own figures.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from bayescascade.base.extras import check_plots
from bayescascade.base.files import replaced_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 150
_MOST_PIXELS = 2**16 - 1  # along a side, of matplotlib's renderer


def blank_figure(width: float, height: float, **options: Any) -> "Figure":
    """Return a figure, width and height in inches, which pyplot does not know.

    `options` are matplotlib's. Raises MissingExtraError if matplotlib is not installed.
    """
    check_plots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), **options)
    FigureCanvasAgg(figure)
    return figure


def save_png(figure: "Figure", path: "str | PathLike[str]") -> None:
    """Write a figure into a PNG file, there only once it is complete; raises FileError if not."""
    width, height = figure.get_size_inches()
    with missing_glyphs_ignored(), replaced_file(str(path)) as temporary:
        dpi = min(_DPI, _MOST_PIXELS / max(width, height))
        figure.savefig(temporary, format="png", dpi=dpi)


@contextmanager
def missing_glyphs_ignored() -> Iterator[None]:
    """Let a character that matplotlib's font lacks be drawn as a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield
