"""Pictures of a density tree: drawn with matplotlib, or as Graphviz source.

Leaves are shaded by their density: blue is denser than uniform, orange rarer.
"""

from os import PathLike
from typing import TYPE_CHECKING

from bayescascade.methods.cascades.tree_parts import TreeParts
from bayescascade.report.axes import ratio_color
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.layout import wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_WIDTH = 28  # characters of a box's line
_MOST_STANDOUTS = 2  # levels that stand out inside an independent leaf


def tree_boxes(density: TreeParts) -> BoxTree:
    """Return a density tree as boxes."""
    nodes = range(density.tree.n_nodes)
    fills = [_fill(density, node) for node in nodes]
    return BoxTree(_box_texts(density), fills, density.tree.parent)


def draw_tree(density: TreeParts, target: "str | PathLike[str] | Axes") -> None:
    """Draw a density tree, root on the left, into a PNG file or axes; see `BoxTree`."""
    if isinstance(target, str | PathLike):
        tree_boxes(density).save(target)
    else:
        tree_boxes(density).plot(target)


def tree_dot(density: TreeParts) -> str:
    """Return a density tree as Graphviz source; see `BoxTree.dot`."""
    return tree_boxes(density).dot("cascade")


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
    return ratio_color(float(density.log_densities[node] + density.log_volumes[0]))
