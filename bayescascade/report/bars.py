"""Horizontal bars with what they are beside them: pictures of lists, shares and amounts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayescascade.report.axes import axes_or_new
from bayescascade.report.layout import longest, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_WIDTH = 38  # characters of a label's line
_WIDTH = 7.5  # inches
_LINE, _GAP, _AROUND = 0.17, 0.11, 0.75  # inches: a line of a label, between bars, axis and edges
_OF_CHARACTER = 0.018  # of the axes' width that a character of a note takes


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of one or more parts, or without parts a heading of the bars below."""

    label: str  # to the left of the bar
    parts: tuple[float, ...] = ()  # lengths >= 0, from the left
    note: str = ""  # beyond the bar's end
    colors: tuple[str, ...] = ("C0",)  # of each part; unused by headings
    interval: tuple[float, ...] | None = None  # in which the first part may end


def plot_bars(
    bars: Sequence[Bar],
    ax: "Axes | None" = None,
    *,
    x_label: str,
    most: float | None = None,
    legend: Sequence[str] = (),
) -> "Axes":
    """Draw at least one bar from the top down, and return the axes; the figure is new by default.

    The axis reaches `most` > 0 at least; `legend` names the parts of bars, if that is needed.
    """
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
