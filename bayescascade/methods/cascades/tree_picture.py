"""Pictures of a density tree: drawn with matplotlib, or as Graphviz source.

The root is on the left and every box has a place of its own, so that labels never meet. Leaves are
shaded by their density: blue is denser than uniform, orange rarer.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.extras import check_plots
from bayescascade.base.files import replaced_file
from bayescascade.methods.cascades.tree_parts import TreeParts
from bayescascade.report.figures import blank_figure
from bayescascade.report.layout import wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_tree", "tree_dot"]

_LABEL_WIDTH = 28  # characters of a box's line
_MOST_STANDOUTS = 2  # levels that stand out inside an independent leaf
_FONT_SIZE = 9.0  # points
_LINE = 0.165  # inches between two lines of text
_PADDING = 0.08  # inches between a box's text and its edge
_ROW_GAP, _LEVEL_GAP = 0.12, 0.4  # inches between boxes
_MARGIN = 0.15  # inches
_DPI = 150
_MOST_PIXELS = 2**16 - 1  # along a side, of matplotlib's renderer

_STRONGEST = math.log(20.0)  # densities beyond 20 times, or a 20th of, uniform look alike
_DENSER, _RARER = (67, 137, 205), (240, 150, 50)  # red, green, blue


def draw_tree(density: TreeParts, target: "str | PathLike[str] | Axes") -> None:
    """Draw a density tree, root on the left.

    Parameters
    ----------
    density : DensityTree
        Or whatever else has the parts of one.
    target : path or matplotlib Axes
        A PNG file to write, as large as the tree needs and replaced only when it is complete; or
        axes to draw in, which the tree is scaled to.

    Raises
    ------
    FileError
        If the file cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    check_plots()
    with warnings.catch_warnings():
        # A character that matplotlib's font lacks is drawn as a box; that is no reason to fail.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        drawing = _Drawing.of(density)
        if not isinstance(target, str | PathLike):
            drawing.draw(target)
            return
        figure = blank_figure(drawing.width, drawing.height)
        drawing.draw(figure.add_axes((0.0, 0.0, 1.0, 1.0)))
        dpi = min(_DPI, _MOST_PIXELS / max(drawing.width, drawing.height))
        with replaced_file(str(target)) as temporary:
            figure.savefig(temporary, format="png", dpi=dpi)


def tree_dot(density: TreeParts) -> str:
    """Return a density tree as Graphviz source: ``dot -Tsvg tree.dot > tree.svg`` draws it."""
    lines = [
        "digraph cascade {",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica"];',
    ]
    for node, texts in enumerate(_box_texts(density)):
        label = "\\n".join(t.replace("\\", "\\\\").replace('"', '\\"') for t in texts)
        fill = f', fillcolor="{color}"' if (color := _fill(density, node)) else ""
        lines.append(f'  n{node} [label="{label}"{fill}];')
    for node in range(1, density.tree.n_nodes):
        lines.append(f"  n{density.tree.parent[node]} -> n{node};")
    return "\n".join([*lines, "}"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Boxes in inches, x rightward from the left edge, y downward from the top.

    All arrays are (n_nodes,) float64: left edge, center, width and height of every box.
    """

    texts: Sequence[Sequence[str]]
    fills: Sequence[str]
    parent: NDArray[np.int32]
    left: NDArray[np.float64]
    center: NDArray[np.float64]
    widths: NDArray[np.float64]
    heights: NDArray[np.float64]

    @classmethod
    def of(cls, density: TreeParts) -> "_Drawing":
        """Lay out a tree."""
        texts = _box_texts(density)
        widths = np.array([max(map(_text_width, lines)) for lines in texts]) + 2 * _PADDING
        heights = np.array([len(lines) * _LINE for lines in texts]) + 2 * _PADDING
        return cls(
            texts,
            [_fill(density, node) for node in range(len(texts))],
            density.tree.parent,
            _left_edges(density.tree.depths, widths),
            _centers(density, heights),
            widths,
            heights,
        )

    @property
    def width(self) -> float:
        """Inches from the left edge to the right one."""
        return float((self.left + self.widths).max()) + _MARGIN

    @property
    def height(self) -> float:
        """Inches from the top to the bottom."""
        return float((self.center + self.heights / 2).max()) + _MARGIN

    def draw(self, axes: "Axes") -> None:
        """Draw into axes, scaled to fit."""
        from matplotlib.patches import FancyBboxPatch

        box = axes.get_window_extent()
        figure = axes.get_figure(root=True)
        assert figure is not None
        inches = box.width / figure.dpi, box.height / figure.dpi
        scale = min(1.0, inches[0] / self.width, inches[1] / self.height)
        axes.set_axis_off()
        aside, above = inches[0] / scale - self.width, inches[1] / scale - self.height
        axes.set_xlim(-aside / 2, self.width + aside / 2)
        axes.set_ylim(self.height + above / 2, -above / 2)
        rounded = f"round,pad=0,rounding_size={_PADDING}"
        for node, lines in enumerate(self.texts):
            left, center, parent = self.left[node], self.center[node], self.parent[node]
            if parent >= 0:
                start, middle = self.left[parent] + self.widths[parent], left - _LEVEL_GAP / 2
                axes.plot(
                    [start, middle, middle, left],
                    [self.center[parent], self.center[parent], center, center],
                    color="0.6", linewidth=scale, zorder=1,
                )  # fmt: skip
            top = center - self.heights[node] / 2
            axes.add_patch(
                FancyBboxPatch(
                    (left, top), self.widths[node], self.heights[node], boxstyle=rounded,
                    facecolor=self.fills[node] or "white", edgecolor="0.6",
                    linewidth=0.8 * scale, zorder=2,
                )
            )  # fmt: skip
            for index, line in enumerate(lines):
                axes.text(
                    left + _PADDING, top + _PADDING + (index + 0.5) * _LINE, line,
                    fontsize=_FONT_SIZE * scale, va="center_baseline", parse_math=False, zorder=3,
                )  # fmt: skip


def _box_texts(density: TreeParts) -> list[list[str]]:
    """Return the lines in every node's box."""
    rows, shares, _, _, ratios = (column.texts for column in density.number_columns())
    noun = "expected rows" if density.evidence else "rows"
    boxes = []
    for node in range(density.tree.n_nodes):
        lines = [
            *wrap(density.branch_words(node), _LABEL_WIDTH),
            f"{rows[node]} {noun}, {shares[node]}",
        ]
        if density.tree.feature[node] < 0:
            lines.append(f"{ratios[node]} x uniform")
            for standout in density.standouts(node)[:_MOST_STANDOUTS]:
                lines += wrap(f"mostly {standout.words(density.schema)}", _LABEL_WIDTH)
        boxes.append(lines)
    if density.evidence:
        boxes[0] = [*wrap(density.given_text, _LABEL_WIDTH), *boxes[0]]
    return boxes


def _fill(density: TreeParts, node: int) -> str:
    """Return a leaf's color, as in "#4389cd"; empty for inner nodes."""
    if density.tree.feature[node] >= 0:
        return ""
    log_ratio = float(density.log_densities[node] + density.log_volumes[0])
    strength = min(1.0, abs(log_ratio) / _STRONGEST)
    ends = _DENSER if log_ratio > 0 else _RARER
    return "#" + "".join(f"{round(255 + strength * (end - 255)):02x}" for end in ends)


def _text_width(text: str) -> float:
    """Return the width of a line of text, inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_FONT_SIZE)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72


def _left_edges(depth: NDArray[np.int64], widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where boxes begin: those of a level together, beyond the widest of the level above."""
    level_widths = np.zeros(depth.max() + 1)
    np.maximum.at(level_widths, depth, widths)
    starts = np.concatenate([[0.0], np.cumsum(level_widths + _LEVEL_GAP)[:-1]])
    edges: NDArray[np.float64] = _MARGIN + starts[depth]
    return edges


def _centers(density: TreeParts, heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the boxes' vertical centers: a node is beside its children, subtrees are apart."""
    tree = density.tree
    children = [tree.children(node) for node in range(tree.n_nodes)]
    spans = heights.copy()  # of the subtrees
    for node in reversed(range(tree.n_nodes)):
        below = sum(spans[child] + _ROW_GAP for child in children[node]) - _ROW_GAP
        spans[node] = max(spans[node], below)
    tops = np.full(tree.n_nodes, _MARGIN)
    for node in range(tree.n_nodes):
        below = sum(spans[child] + _ROW_GAP for child in children[node]) - _ROW_GAP
        top = tops[node] + (spans[node] - below) / 2
        for child in children[node]:
            tops[child] = top
            top += spans[child] + _ROW_GAP
    centers = tops + spans / 2
    for node in reversed(range(tree.n_nodes)):
        if children[node]:
            middle = (centers[children[node][0]] + centers[children[node][-1]]) / 2
            slack = (spans[node] - heights[node]) / 2
            centers[node] = np.clip(middle, centers[node] - slack, centers[node] + slack)
    return centers
