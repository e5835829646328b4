"""Rule lists as tables: "if", "else if", "else" downward on the left, numbers on the right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.levels import level_text
from bayescascade.report.layout import Ink, flow, ljust, longest, printable, wrap
from bayescascade.report.number_columns import (
    NumberColumns,
    PartDensities,
    density_columns,
    ratio_style,
)
from bayescascade.report.numbers import count_texts, interval_text, probability_text

if TYPE_CHECKING:
    from bayescascade.methods.rules.density_list import DensityList

__all__ = ["LabelParts", "density_list_table", "has_class_columns", "label_list_table"]

_GAP, _LEAST_GAP = 3, 2  # columns before each number
_LEAST_LABEL = 24  # columns that a part's conditions have at least beside classes
_NARROW_LABEL = 12  # columns with fewer of which conditions stand above their numbers
_HANGING = 3  # columns by which the further lines of a part are indented
_LONGEST_CLASS = 16  # columns of a class's name in a header


class ListParts(Protocol):
    """The parts of a list in words."""

    @property
    def n_rules(self) -> int:
        """Number of rules."""
        ...

    def part_words(self, part: int) -> str:
        """Return the conditions of a part."""
        ...


class LabelParts(ListParts, Protocol):
    """What is told of a list of labels; a `LabelList` is one."""

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, (n_classes,)."""
        ...

    @property
    def counts(self) -> NDArray[np.float64]:
        """Weight of each class in each part, (n_rules + 1, n_classes)."""
        ...

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each class in each part, (n_rules + 1, n_classes)."""
        ...

    def intervals(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return credible intervals, (n_rules + 1, n_classes, 2)."""
        ...


def density_list_table(density: "DensityList", width: int, ink: Ink) -> list[str]:
    """Return the lines of the table, header first, each at most `width` columns."""
    log_ratios = _log_ratios(density)
    numbers = density_columns(density, log_ratios, is_expected=bool(density.evidence))
    styles = [ratio_style(log_ratio) for log_ratio in log_ratios]
    return _table(_part_labels(density), numbers, width, ink, styles)


def label_list_table(labels: LabelParts, width: int, ink: Ink) -> list[str]:
    """Return the lines of the table, header first, each at most `width` columns.

    Of two classes, the second one's probability and its interval are in columns. Of more, each
    class has a column; where these do not fit, every part is followed by all its classes, most
    probable first, with intervals.
    """
    names, parts = _class_names(labels), _part_labels(labels)
    rows = count_texts(labels.counts.sum(axis=1).tolist())
    if len(names) == 2:
        told = [probability_text(p) for p in labels.probabilities[:, 1].tolist()]
        intervals = [interval_text(interval) for interval in labels.intervals()[:, 1].tolist()]
        head = f"P({names[1]})"
        lines = []
        if longest([head]) > _LONGEST_CLASS:
            legend = f"P: probability of {names[1]}"
            lines = [ink("dim", line) for line in flow([legend], width, _HANGING)]
            head = "P"
        numbers = NumberColumns(("rows", head, "95 % interval"), (rows, told, intervals))
        return [*lines, *_table(parts, numbers, width, ink)]
    if has_class_columns(labels, width):
        return _table(parts, _class_columns(names, rows, labels), width, ink)
    numbers = NumberColumns(("rows",), (rows,))
    below = [_class_pieces(names, labels, part) for part in range(labels.n_rules + 1)]
    return _table(parts, numbers, width, ink, below=below)


def has_class_columns(labels: LabelParts, width: int) -> bool:
    """Return whether each of more than two classes has a column, and hence no interval is told."""
    names = _class_names(labels)
    if len(names) == 2 or longest(names) > _LONGEST_CLASS:
        return False
    rows = count_texts(labels.counts.sum(axis=1).tolist())
    widths = _class_columns(names, rows, labels).widths
    return width - sum(widths) - _LEAST_GAP * len(widths) >= _LEAST_LABEL


def _table(
    labels: Sequence[str],
    numbers: NumberColumns,
    width: int,
    ink: Ink,
    styles: Sequence[str] | None = None,
    below: Sequence[list[str]] | None = None,
) -> list[str]:
    """Return a header, then each label with its numbers, further lines indented.

    `styles` color the last number of each row; `below` has pieces that flow under each label.
    """
    widths = numbers.widths
    room = width - sum(widths) - _LEAST_GAP * len(widths)
    is_above = room < min(_NARROW_LABEL, longest(labels))
    label_width = max(0, min(room, longest(labels)))
    gap = min(_GAP, (width - label_width - sum(widths)) // len(widths))
    lines = [
        ink("dim", (" " * label_width + header).rstrip()) for header in numbers.header_lines(gap)
    ]
    for part, label in enumerate(labels):
        first, *others = wrap(label, width if is_above else label_width, _HANGING)
        others = [" " * _HANGING + other for other in others]
        if is_above:
            lines += [first, *others]
            first, others = "", []
        *most, last = numbers.row(part, gap)
        style = styles[part] if styles else ""
        lines += [ljust(first, label_width) + "".join(most) + ink(style, last), *others]
        if below is not None:
            lines += flow(below[part], width, _HANGING, first=" " * _HANGING)
    return lines


def _part_labels(parts: ListParts) -> list[str]:
    """Return the parts of a list as they are read: "if ..", "else if ..", "else"."""
    if parts.n_rules == 0:
        return [printable(parts.part_words(0))]
    words = [printable(parts.part_words(part)) for part in range(parts.n_rules)]
    return [f"if {words[0]}", *(f"else if {one}" for one in words[1:]), "else"]


def _class_names(labels: LabelParts) -> list[str]:
    return [printable(level_text(label)) for label in labels.classes.tolist()]


def _class_columns(names: Sequence[str], rows: list[str], labels: LabelParts) -> NumberColumns:
    texts = [[probability_text(p) for p in column] for column in labels.probabilities.T.tolist()]
    return NumberColumns(("rows", *names), (rows, *texts))


def _class_pieces(names: Sequence[str], labels: LabelParts, part: int) -> list[str]:
    """Return all classes of a part, most probable first, as in "good 0.70 (0.68-0.72)"."""
    probabilities, intervals = labels.probabilities[part], labels.intervals()[part]
    return [
        f"{names[c]} {probability_text(probabilities[c])} ({interval_text(intervals[c])})"
        for c in np.argsort(-probabilities, kind="stable").tolist()
    ]


def _log_ratios(density: PartDensities) -> list[float]:
    """Return the log density of every part over the uniform one, nats."""
    log_domain = np.logaddexp.reduce(density.log_volumes)
    log_ratios: list[float] = (density.log_densities + log_domain).tolist()
    return log_ratios
