"""Log evidences of models as a table, the best first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bayescascade.report.layout import Ink, flow, ljust, longest, rjust
from bayescascade.report.numbers import nats_text

if TYPE_CHECKING:
    from bayescascade.methods.cascades.evidence_grid import EvidencePoint

__all__ = ["evidence_table"]

_HEADERS = ("log evidence", "below best", "leaves")
_GAP = 3


def evidence_table(
    points: "Sequence[EvidencePoint]", varied: Sequence[str], width: int, ink: Ink
) -> list[str]:
    """Return the lines of the table, each at most `width` columns.

    Parameters
    ----------
    points : sequence of EvidencePoint
        As `evidence_grid` returns them.
    varied : sequence of str
        The parameters to tell them apart by, those of the grid.
    width : int
    ink : Ink

    Returns
    -------
    list of str
        A header and, for each, model and varied parameters, log evidence, nats below the highest,
        and leaves of the most probable tree; a line or more.
    """
    known = [p.log_evidence for p in points if p.log_evidence is not None]
    numbers = [
        [nats_text(e), nats_text(known[0] - e), str(p.n_leaves)]
        for p, e in zip(points, known, strict=False)
    ]
    widths = [longest([h, *column]) for h, *column in zip(_HEADERS, *numbers, strict=True)]
    room = width - sum(widths) - _GAP * len(widths)
    words = [flow([_words(p, varied)], room, 2) for p in points]
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


def _words(point: "EvidencePoint", varied: Sequence[str]) -> str:
    """Return model and parameters, such as "branch, expected_branches 2, leaf uniform"."""
    own = [name for name in varied if name in point.parameters]
    told = [f"{name} {_value_text(point.parameters[name])}" for name in own]
    return ", ".join([point.model, *told])


def _value_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value).lower()
