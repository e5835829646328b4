"""Trees as boxes with lines of text: drawn with matplotlib, or as Graphviz source.

The root is on the left, and boxes never overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.extras import check_plots
from bayescascade.report.axes import blank_figure, missing_glyphs_ignored, save_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FONT_SIZE = 9.0  # points
_LINE = 0.165  # inches between two lines of text
_PADDING = 0.08  # inches between a box's text and its edge
_ROW_GAP, _LEVEL_GAP = 0.12, 0.4  # inches between boxes
_MARGIN = 0.15  # inches


@dataclass(frozen=True, eq=False)
class BoxTree:
    """A tree of boxes; parents precede their children, and the first child is drawn at the top."""

    texts: Sequence[Sequence[str]]  # the lines in every box
    fills: Sequence[str]  # the color of every box, as in "#4389cd"; white where empty
    parents: NDArray[np.integer]  # (n_nodes,), -1 at the root

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the tree, scaled to fit into axes; by default in a new figure of sufficient size."""
        check_plots()
        with missing_glyphs_ignored():
            if ax is None:
                from matplotlib import pyplot as plt

                size = self._places.width, self._places.height
                ax = plt.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0))
            self._draw(ax)
        return ax

    def save(self, path: "str | PathLike[str]") -> None:
        """Draw the tree into a PNG file of sufficient size, which appears when it is complete."""
        with missing_glyphs_ignored():
            figure = blank_figure(self._places.width, self._places.height)
            self._draw(figure.add_axes((0.0, 0.0, 1.0, 1.0)))
        save_png(figure, path)

    def dot(self, name: str) -> str:
        """Return Graphviz source: ``dot -Tsvg tree.dot > tree.svg`` draws it."""
        lines = [
            f"digraph {name} {{",
            "  rankdir=LR;",
            '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica"];',
        ]
        for node, (texts, color) in enumerate(zip(self.texts, self.fills, strict=True)):
            label = "\\n".join(t.replace("\\", "\\\\").replace('"', '\\"') for t in texts)
            fill = f', fillcolor="{color}"' if color else ""
            lines.append(f'  n{node} [label="{label}"{fill}];')
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                lines.append(f"  n{parent} -> n{node};")
        return "\n".join([*lines, "}"]) + "\n"

    @cached_property
    def _children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in self.texts]
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                children[parent].append(node)
        return children

    @cached_property
    def _places(self) -> "_BoxPlaces":
        depths = np.zeros(len(self.texts), np.int64)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                depths[node] = depths[parent] + 1
        widths = np.array([max(map(_text_width, lines)) for lines in self.texts]) + 2 * _PADDING
        heights = np.array([len(lines) * _LINE for lines in self.texts]) + 2 * _PADDING
        centers = _centers(self._children, heights)
        return _BoxPlaces(_left_edges(depths, widths), centers, widths, heights)

    def _draw(self, axes: "Axes") -> None:
        from matplotlib.patches import FancyBboxPatch

        places, box, dpi = self._places, axes.get_window_extent(), axes.figure.dpi
        inches = box.width / dpi, box.height / dpi
        scale = min(1.0, inches[0] / places.width, inches[1] / places.height)
        axes.set_axis_off()
        aside, above = inches[0] / scale - places.width, inches[1] / scale - places.height
        axes.set_xlim(-aside / 2, places.width + aside / 2)
        axes.set_ylim(places.height + above / 2, -above / 2)
        rounded = f"round,pad=0,rounding_size={_PADDING}"
        for node, lines in enumerate(self.texts):
            left, center, parent = places.left[node], places.center[node], self.parents[node]
            if parent >= 0:
                start, middle = places.left[parent] + places.widths[parent], left - _LEVEL_GAP / 2
                axes.plot(
                    [start, middle, middle, left],
                    [places.center[parent], places.center[parent], center, center],
                    color="0.6", linewidth=scale, zorder=1,
                )  # fmt: skip
            top = center - places.heights[node] / 2
            axes.add_patch(
                FancyBboxPatch(
                    (left, top), places.widths[node], places.heights[node], boxstyle=rounded,
                    facecolor=self.fills[node] or "white", edgecolor="0.6",
                    linewidth=0.8 * scale, zorder=2,
                )
            )  # fmt: skip
            for index, line in enumerate(lines):
                axes.text(
                    left + _PADDING, top + _PADDING + (index + 0.5) * _LINE, line,
                    fontsize=_FONT_SIZE * scale, va="center_baseline", parse_math=False, zorder=3,
                )  # fmt: skip


class _BoxPlaces(NamedTuple):
    """Edges, centers, widths and heights of boxes, inches from the left and the top, (n_nodes,)."""

    left: Floats
    center: Floats
    widths: Floats
    heights: Floats

    @property
    def width(self) -> float:
        """Inches from the left edge to the right one."""
        return float((self.left + self.widths).max()) + _MARGIN

    @property
    def height(self) -> float:
        """Inches from the top to the bottom."""
        return float((self.center + self.heights / 2).max()) + _MARGIN


def _text_width(text: str) -> float:
    """Return the width of a line of text, inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_FONT_SIZE)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72


def _left_edges(depth: Integers, widths: Floats) -> Floats:
    """Return the left edges of boxes: equal within a level, to the right of the level above."""
    level_widths = np.zeros(depth.max() + 1)
    np.maximum.at(level_widths, depth, widths)
    starts = np.concatenate([[0.0], np.cumsum(level_widths + _LEVEL_GAP)[:-1]])
    edges: Floats = _MARGIN + starts[depth]
    return edges


def _centers(children: Sequence[Sequence[int]], heights: Floats) -> Floats:
    """Return the boxes' vertical centers: nodes are centered on their children."""
    spans = heights.copy()  # of the subtrees
    for node in reversed(range(len(children))):
        below = sum(spans[child] + _ROW_GAP for child in children[node]) - _ROW_GAP
        spans[node] = max(spans[node], below)
    tops = np.full(len(children), _MARGIN)
    for node in range(len(children)):
        below = sum(spans[child] + _ROW_GAP for child in children[node]) - _ROW_GAP
        top = tops[node] + (spans[node] - below) / 2
        for child in children[node]:
            tops[child] = top
            top += spans[child] + _ROW_GAP
    centers = tops + spans / 2
    for node in reversed(range(len(children))):
        if children[node]:
            middle = (centers[children[node][0]] + centers[children[node][-1]]) / 2
            slack = (spans[node] - heights[node]) / 2
            centers[node] = np.clip(middle, centers[node] - slack, centers[node] + slack)
    return centers
