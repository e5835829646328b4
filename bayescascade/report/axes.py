"""Axes for pictures: those of a user, of a new figure of pyplot, or of a blank figure.

Blank figures do not touch matplotlib's global state, so they work in scripts without a display and
besides a user's figures. Matplotlib is imported only for drawing.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from bayescascade.base.extras import check_plots
from bayescascade.base.files import replaced_file
from bayescascade.report.layout import longest, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CLASSES = (  # red, green, blue: the default colors of matplotlib, in their order
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189),
    (140, 86, 75), (227, 119, 194), (127, 127, 127), (188, 189, 34), (23, 190, 207),
)  # fmt: skip

_STRONGEST = math.log(20.0)  # densities beyond 20 times, or a 20th of, uniform have the same color
_DENSER, _RARER = (67, 137, 205), (240, 150, 50)  # red, green, blue

_DPI = 150
_MOST_PIXELS = 2**16 - 1  # along a side, of matplotlib's renderer

_LABEL_WIDTH = 38  # characters per line of a label
_WIDTH = 7.5  # inches
_LINE, _GAP, _AROUND = 0.17, 0.11, 0.75  # inches: a line of a label, between bars, axis and edges
_OF_CHARACTER = 0.018  # width of a character of a note, as a share of the axes


def axes_or_new(ax: "Axes | None", width: float, height: float) -> "Axes":
    """Return axes; for None, those of a new figure of pyplot of a size in inches."""
    if ax is not None:
        return ax
    check_plots()
    from matplotlib import pyplot as plt

    _, new = plt.subplots(figsize=(width, height), layout="constrained")
    return new


def ratio_color(log_ratio: float) -> str:
    """Return a color for the log of a density over the uniform one: blue above, orange below."""
    strength = min(1.0, abs(log_ratio) / _STRONGEST)
    return _tinted(_DENSER if log_ratio > 0 else _RARER, strength)


def class_color(number: int, strength: float = 1.0) -> str:
    """Return a color for the class of a number, fainter for a strength in [0, 1] below 1."""
    return _tinted(_CLASSES[number % len(_CLASSES)], strength)


def _tinted(color: tuple[int, int, int], strength: float) -> str:
    return "#" + "".join(f"{round(255 + strength * (end - 255)):02x}" for end in color)


def blank_figure(width: float, height: float, **options: Any) -> "Figure":
    """Return a figure of a size in inches that is not registered with pyplot."""
    check_plots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), **options)
    FigureCanvasAgg(figure)
    return figure


def save_png(figure: "Figure", path: "str | PathLike[str]") -> None:
    """Write a figure into a PNG file, which appears when it is complete; FileError otherwise."""
    width, height = figure.get_size_inches()
    with missing_glyphs_ignored(), replaced_file(str(path)) as temporary:
        dpi = min(_DPI, _MOST_PIXELS / max(width, height))
        figure.savefig(temporary, format="png", dpi=dpi)


@contextmanager
def missing_glyphs_ignored() -> Iterator[None]:
    """Draw characters that matplotlib's font does not have as boxes, without warnings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of one or more parts; without parts, a heading of the bars below."""

    label: str  # to the left of the bar
    parts: tuple[float, ...] = ()  # lengths >= 0, from the left
    note: str = ""  # text after the bar's end
    colors: tuple[str, ...] = ("C0",)  # colors of the parts; unused by headings
    interval: tuple[float, ...] | None = None  # an interval for the end of the first part


def plot_bars(
    bars: Sequence[Bar],
    ax: "Axes | None" = None,
    *,
    x_label: str,
    most: float | None = None,
    legend: Sequence[str] = (),
) -> "Axes":
    """Draw bars from the top down, on an axis up to `most` or more; by default in a new figure."""
    labels = [wrap(bar.label, _LABEL_WIDTH) for bar in bars]
    heights = [_LINE * len(lines) + _GAP for lines in labels]
    ends = [sum(heights[: place + 1]) for place in range(len(bars))]
    centers = [end - height / 2 for end, height in zip(ends, heights, strict=True)]
    ax = axes_or_new(ax, _WIDTH, ends[-1] + _AROUND + 0.3 * bool(legend))
    for center, bar in zip(centers, bars, strict=True):
        start = 0.0
        for number, (length, color) in enumerate(zip(bar.parts, bar.colors, strict=False)):
            ax.barh(
                center, length, height=_LINE + _GAP / 2, left=start, color=color,
                edgecolor="0.6", linewidth=0.6,
                label=legend[number] if legend and bar is bars[0] else None,
            )  # fmt: skip
            start += length
        if bar.interval is not None:
            ax.plot(bar.interval, (center, center), color="0.25", linewidth=1.2)
            start = max(start, bar.interval[1])
        ax.annotate(
            bar.note, (start, center), xytext=(4, 0), textcoords="offset points", fontsize=8,
            va="center", color="0.35", annotation_clip=False, parse_math=False,
        )  # fmt: skip
    lengths = [max(sum(bar.parts), *(bar.interval or (0.0,))) for bar in bars]
    room = 1.0 + _OF_CHARACTER * longest([bar.note for bar in bars])
    ax.set_xlim(0.0, room * (max([*lengths, most or 0.0]) or 1.0))
    ax.set_ylim(ends[-1] + _GAP / 2, -_GAP / 2)
    ax.set_yticks(
        centers, ["\n".join(lines) for lines in labels], fontsize=8.5, parse_math=False
    )  # fmt: skip
    for tick, bar in zip(ax.get_yticklabels(), bars, strict=True):
        tick.set_fontweight("normal" if bar.parts else "bold")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(x_label)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if legend:
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False, fontsize=8.5)
    return ax
