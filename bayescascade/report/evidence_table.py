"""Log evidences of models as a table, the best first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayescascade.report.layout import Ink, flow, ljust, longest, rjust
from bayescascade.report.numbers import nats_text
from bayescascade.report.words import model_words, parameter_words

if TYPE_CHECKING:
    from bayescascade.cascades.evidence_grid import EvidencePoint

__all__ = ["evidence_table"]

_HEADERS = ("log evidence", "below best", "leaves")
_GAP = 3


def evidence_table(points: "Sequence[EvidencePoint]", width: int, ink: Ink) -> list[str]:
    """Return the lines of the table, each at most `width` columns.

    Parameters
    ----------
    points : sequence of EvidencePoint
        As `evidence_grid` returns them.
    width : int
    ink : Ink

    Returns
    -------
    list of str
        A header and, for each, model and parameters, log evidence, nats below the highest, and
        leaves of the most probable tree; a line or more.
    """
    known = [p.log_evidence for p in points if p.log_evidence is not None]
    numbers = [
        [nats_text(e), nats_text(known[0] - e), str(p.n_leaves)]
        for p, e in zip(points, known, strict=False)
    ]
    widths = [longest([h, *column]) for h, *column in zip(_HEADERS, *numbers, strict=True)]
    room = width - sum(widths) - _GAP * len(widths)
    words = [flow([", ".join(_words(p))], room, 2) for p in points]
    label_width = max(longest(lines) for lines in words)

    def line(label: str, cells: Sequence[str]) -> str:
        told = [rjust(cell, w) for cell, w in zip(cells, widths, strict=True)]
        return (" " * _GAP).join([ljust(label, label_width), *told])

    lines = [ink("dim", line("", _HEADERS))]
    for index, (first, *others) in enumerate(words):
        if index < len(numbers):
            lines.append(line(first, numbers[index]))
        else:
            needed = flow([f"too large: {points[index].needed}"], width, 4, first="    ")
            lines += [first, *others, *(ink("warning", text) for text in needed)]
            continue
        lines += others
    return lines


def _words(point: "EvidencePoint") -> list[str]:
    return [model_words(point.model), *parameter_words(point.parameters)]
