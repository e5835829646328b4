"""A picture of a union of boxes: which part of each column's range is inside."""

from typing import TYPE_CHECKING

import numpy as np

from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.matrix_sides import side_words
from bayescascade.methods.boxes.learned import LearnedBoxes
from bayescascade.methods.boxes.union import Floats
from bayescascade.report.axes import Bar, class_color, plot_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OUTSIDE = "0.92"  # gray


def plot_union(
    learned: LearnedBoxes, encoder: MatrixEncoder, ends: Floats, ax: "Axes | None"
) -> "Axes":
    """Draw a bar for each column that a box closes; ends (2, n_columns): least and greatest."""
    union, bars, (least, greatest) = learned.union, [], ends
    width = np.where(greatest > least, greatest - least, 1.0)
    for box in range(union.n_boxes):
        bars.append(Bar(f"box {box + 1}"))
        is_closed = np.isfinite(union.lower[box]) | np.isfinite(union.upper[box])
        for column in np.flatnonzero(is_closed).tolist():
            low, high = float(union.lower[box, column]), float(union.upper[box, column])
            inside = (np.array([low, high]) - least[column]) / width[column]
            start, end = np.clip(inside, 0.0, 1.0).tolist()
            words = side_words(encoder, column, low, high)
            note = " ".join(
                f"{word} {text}"
                for word, text in (("at least", words.at_least), ("at most", words.at_most))
                if text
            )
            colors = (_OUTSIDE, class_color(box, 0.6), _OUTSIDE)
            bars.append(Bar(words.label, (start, end - start, 1.0 - end), note, colors))
    ax = plot_bars(bars or [Bar("no box")], ax, x_label="of the rows   in color: inside", most=1.0)
    ax.set_xticks([0.0, 1.0], ["least", "greatest"])
    return ax
