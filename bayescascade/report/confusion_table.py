"""Who is taken for whom: true classes downward, predicted ones to the right."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayescascade.report.layout import Ink, flow, ljust, longest, printable
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.numbers import count_texts

__all__ = ["confusion_table"]

_GAP = 3  # columns before each number


def confusion_table(
    target: str, names: Sequence[str], confusion: NDArray[np.float64], width: int, ink: Ink
) -> list[str]:
    """Return the lines of the table, each at most `width` columns.

    Parameters
    ----------
    target : str
        Name of the labels.
    names : sequence of str
        The classes.
    confusion : (n_classes, n_classes) float64
        Weight of the rows of each true class, by predicted class.
    width : int
    ink : Ink

    Returns
    -------
    list of str
        A header and a line for each true class. Where the predicted classes do not fit side by
        side, each true class is followed by those that were predicted, most often first.
    """
    target, names = printable(target), [printable(name) for name in names]
    texts = count_texts(confusion.ravel().tolist())
    rows = [texts[start : start + len(names)] for start in range(0, len(texts), len(names))]
    numbers = NumberColumns(tuple(names), tuple(list(column) for column in zip(*rows, strict=True)))
    label_width = longest([target, *names])
    if label_width + sum(_GAP + w for w in numbers.widths) > width:
        legend = [f"{target}:", "predicted, and how often"]
        lines = [ink("dim", line) for line in flow(legend, width, 4)]
        return [*lines, *_told(names, rows, confusion, width)]
    (header,) = numbers.header_lines(_GAP)
    lines = [
        ink("dim", " " * (label_width + _GAP) + "predicted"),
        ink("dim", ljust(target, label_width) + header),
    ]
    for row, name in enumerate(names):
        lines.append(ljust(name, label_width) + "".join(numbers.row(row, _GAP)))
    return lines


def _told(
    names: Sequence[str], rows: Sequence[Sequence[str]], confusion: NDArray[np.float64], width: int
) -> list[str]:
    """Return each true class with those that were predicted, such as "good: good 60   bad 3"."""
    lines: list[str] = []
    for name, texts, weights in zip(names, rows, confusion, strict=True):
        order = [c for c in np.argsort(-weights, kind="stable").tolist() if weights[c] > 0]
        pieces = [f"{names[c]} {texts[c]}" for c in order] or ["no rows"]
        lines += flow([f"{name}:", *pieces], width, 4)
    return lines
