"""Tables with a label on the left, wrapped where it is long, and aligned numbers on the right."""

from collections.abc import Sequence

from bayescascade.report.layout import Ink, ljust, longest, printable, wrap
from bayescascade.report.number_columns import NumberColumns

__all__ = ["number_table"]

_GAP, _LEAST_GAP = 3, 2  # columns before each number
_LEAST_LABEL = 8
_HANGING = 2  # columns by which a label's further lines are indented


def number_table(
    labels: Sequence[str], numbers: NumberColumns, width: int, ink: Ink, header: str = ""
) -> list[str]:
    """Return the lines of the table, header first.

    Parameters
    ----------
    labels : sequence of str
        One for each row of numbers.
    numbers : NumberColumns
    width : int
        Most columns of a line; more only if the numbers alone take them.
    ink : Ink
    header : str
        What is above the labels.
    """
    room = width - sum(numbers.widths)
    texts = [header, *map(printable, labels)]
    gap = _GAP if room - _GAP * len(numbers.widths) >= longest(texts) else _LEAST_GAP
    label_width = max(_LEAST_LABEL, min(room - gap * len(numbers.widths), longest(texts)))
    *above, below = numbers.header_lines(gap)
    lines = [" " * label_width + line for line in above]
    lines = [ink("dim", line.rstrip()) for line in [*lines, ljust(header, label_width) + below]]
    for index, text in enumerate(texts[1:]):
        first, *others = wrap(text, label_width, _HANGING)
        lines.append((ljust(first, label_width) + "".join(numbers.row(index, gap))).rstrip())
        lines += [" " * _HANGING + other for other in others]
    return lines
