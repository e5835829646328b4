"""The picture of a density tree: a box for each node."""

from typing import Any

from bayescascade.report.axes import ratio_color
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.layout import wrap

_LABEL_WIDTH = 28  # characters of a box's line
_MOST_STANDOUTS = 2  # levels that stand out inside an independent leaf


def tree_picture(density: Any) -> BoxTree:
    """Return the boxes of a tree, leaves colored by their density."""
    fills = [_fill(density, node) for node in range(density.tree.n_nodes)]
    return BoxTree(_box_texts(density), fills, density.tree.parent)


def _box_texts(density: Any) -> list[list[str]]:
    """Return the lines in every node's box."""
    rows, shares, _, _, ratios = (column.texts for column in density.number_columns())
    noun = "expected rows" if density.conditions else "rows"
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
    if density.conditions:
        boxes[0] = [*wrap(density.given_text, _LABEL_WIDTH), *boxes[0]]
    return boxes


def _fill(density: Any, node: int) -> str:
    """Return a leaf's color, as in "#4389cd"; empty for inner nodes."""
    if density.tree.feature[node] >= 0:
        return ""
    return ratio_color(float(density.log_densities[node] + density.log_volumes[0]))
