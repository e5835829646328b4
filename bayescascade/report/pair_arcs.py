"""Pairs of names as a picture: names below each other, with an arc for each pair.

Names never overlap; if pairs form chains, arcs are short.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from bayescascade.report.axes import axes_or_new, class_color, missing_glyphs_ignored
from bayescascade.report.layout import wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE, _CHARACTER, _GAP = 0.19, 0.078, 0.35  # inches: of a line of text, and between panels
_MOST_ACROSS = 3
_TITLE_WIDTH, _NAME_WIDTH = 34, 26  # characters
_WIDEST = 3.5  # points, width of a line with probability 1
_LEGEND = (0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class PairArcs:
    """A panel of names, with pairs joined by arcs."""

    title: str
    names: Sequence[str]  # names that are in a pair
    pairs: Sequence[tuple[int, int, float]]  # two positions, probability of the pair


def plot_arcs(panels: Sequence[PairArcs], ax: "Axes | None" = None) -> "Axes":
    """Draw panels side by side, with line widths by probability; by default in a new figure."""
    across = min(_MOST_ACROSS, len(panels))
    titles = [wrap(panel.title, _TITLE_WIDTH) for panel in panels]
    cut = _NAME_WIDTH - 1
    names = [[n if len(n) <= cut + 1 else f"{n[:cut]}…" for n in panel.names] for panel in panels]
    label = _CHARACTER * max(len(name) for own in names for name in own)
    arcs = max(_reach(len(own) - 1) for own in names)
    width = max(label + arcs, _CHARACTER * _TITLE_WIDTH) + _GAP
    heights = [
        _LINE * (len(title) + len(own)) + _GAP for title, own in zip(titles, names, strict=True)
    ]
    rows = [heights[start : start + across] for start in range(0, len(panels), across)]
    tops = np.cumsum([0.0, *map(max, rows)])
    size = across * width + 0.2, float(tops[-1]) + _LINE
    ax = axes_or_new(ax, *size)
    ax.set_axis_off()
    ax.set_xlim(0.0, size[0])
    ax.set_ylim(size[1], 0.0)
    with missing_glyphs_ignored():
        for number, panel in enumerate(panels):
            left, top = 0.1 + (number % across) * width, float(tops[number // across]) + _LINE / 2
            for line, words in enumerate(titles[number]):
                _write(ax, left, top + _LINE * line, words, weight="bold")
            _draw(ax, panel, names[number], left + label, top + _LINE * len(titles[number]))
        _legend(ax, 0.1, size[1] - _LINE)
    return ax


def _draw(ax: "Axes", panel: PairArcs, names: Sequence[str], x: float, top: float) -> None:
    one, other = np.array([pair[:2] for pair in panel.pairs]).T
    joined = coo_array((np.ones(one.size), (one, other)), (len(names), len(names))).tocsr()
    order = reverse_cuthill_mckee(joined + joined.T, symmetric_mode=True)
    heights = np.empty(len(names))
    heights[order] = top + _LINE * np.arange(len(names))
    for name, y in zip(names, heights.tolist(), strict=True):
        _write(ax, x, y, name, ha="right")
    angles = np.linspace(-np.pi / 2, np.pi / 2, 41)
    for a, b, probability in panel.pairs:
        middle, half = (heights[a] + heights[b]) / 2, abs(heights[a] - heights[b]) / 2
        reach = _reach(round(2 * half / _LINE)) - 0.1
        points = x + 0.07 + reach * np.cos(angles), middle + half * np.sin(angles)
        ax.plot(*points, **_look(probability))


def _reach(n_lines: int) -> float:
    """Return the horizontal extent of an arc over a number of lines, inches."""
    return 0.2 + 0.3 * math.pow(n_lines, 0.6)


def _look(probability: float) -> dict[str, Any]:
    return {
        "color": class_color(0), "alpha": 0.75, "linewidth": _WIDEST * probability**2,
        "solid_capstyle": "butt",
    }  # fmt: skip


def _legend(ax: "Axes", left: float, y: float) -> None:
    _write(ax, left, y, "joined with probability", color="0.35")
    left += _CHARACTER * 22
    for probability in _LEGEND:
        ax.plot((left, left + 0.2), (y, y), **_look(probability))
        _write(ax, left + 0.25, y, f"{probability:g}", color="0.35")
        left += 0.6


def _write(ax: "Axes", x: float, y: float, words: str, **look: Any) -> None:
    ax.text(x, y, words, fontsize=8.5, va="center", parse_math=False, **look)
