"""A density tree as a table: labels with guides on the left, aligned numbers on the right."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from bayescascade.report.layout import Ink, flow, ljust, longest, printable, wrap
from bayescascade.report.number_columns import NumberColumns, density_columns, ratio_style

if TYPE_CHECKING:
    from bayescascade.methods.cascades.density import DensityTree

__all__ = ["ROOT_LABEL", "node_columns", "tree_table"]

ROOT_LABEL = "everyone"

_GAP, _LEAST_GAP = 3, 2  # columns before each number
_LEAST_LABEL = 18  # columns that a label has at least beside its guides
_WIDE_GUIDE, _NARROW_GUIDE = 3, 2  # columns per level of the tree

_MOSTLY = "mostly "
_MOST_LINES = 2  # on what stands out inside a leaf


def node_columns(density: "DensityTree") -> NumberColumns:
    """Return the numbers of all nodes of a density tree as text."""
    return density_columns(density, _log_ratios(density), is_expected=bool(density.evidence))


def tree_table(density: "DensityTree", width: int, ink: Ink) -> list[str]:
    """Return the lines of the table, header first, each at most `width` columns.

    Long labels go on below, with the guides continued. Under an independent leaf are the levels
    that stand out inside it, with their probabilities, as many as two lines hold. Where the tree is
    too deep for its guides, a subtree is cut off, numbered, and printed after the rest, under the
    rule that leads to it.
    """
    numbers = node_columns(density)
    widths = numbers.widths
    room = width - sum(widths) - _LEAST_GAP * len(widths)
    is_deep = room < _LEAST_LABEL + _WIDE_GUIDE * density.depth
    rows = list(_rows(density, room - _LEAST_LABEL, _NARROW_GUIDE if is_deep else _WIDE_GUIDE))
    label_width = min(room, max(longest([row.guide + row.label]) for row in rows))
    gap = min(_GAP, (width - label_width - sum(widths)) // len(widths))

    lines = [
        ink("dim", (" " * label_width + header).rstrip()) for header in numbers.header_lines(gap)
    ]
    log_ratios = _log_ratios(density)
    for row in rows:
        if row.heading:
            lines += ["", *flow([row.heading], width, 3)]
        *most, ratio = numbers.row(row.node, gap)
        label_room = label_width - len(row.guide)
        first, *others = wrap(row.label, label_room, len(row.below) - len(row.guide))
        label = ink("dim", row.guide) + ljust(first, label_room)
        lines.append(label + "".join(most) + ink(ratio_style(log_ratios[row.node]), ratio))
        inside = _standout_lines(density, row.node, width - cell_len(row.below))
        lines.extend(ink("dim", row.below) + line for line in [*others, *inside])
    return lines


def _standout_lines(density: "DensityTree", node: int, width: int) -> list[str]:
    """Return what stands out inside a leaf; nothing for an inner node."""
    lines: list[str] = []
    if not density.tree.children(node):
        pieces: list[str] = []
        for standout in density.standouts(node):
            longer = [*pieces, standout.words(density.schema)]
            flowed = flow(longer, width, len(_MOSTLY), first=_MOSTLY)
            if len(flowed) <= _MOST_LINES:
                pieces, lines = longer, flowed
    return lines


@dataclass(frozen=True, slots=True)
class _Row:
    """A node's place in the table."""

    node: int
    label: str
    guide: str  # before the label
    below: str  # before the label's further lines
    heading: str = ""  # of the section that the row starts


def _rows(density: "DensityTree", guide_room: int, guide_width: int) -> Iterator[_Row]:
    """Yield the nodes in the table's order; guides take up to `guide_room` columns."""
    dashes = "─" * (guide_width - 2) + " "
    bar, blank = ljust("│", guide_width), " " * guide_width
    depth_limit = max(1, guide_room // guide_width)
    sections = deque([0])
    numbers: dict[int, int] = {}  # of the sections, by their first node

    def walk(node: int, guide: str, below: str, depth: int) -> Iterator[_Row]:
        children = density.tree.children(node)
        label = printable(density.branch_words(node)) if node else ROOT_LABEL
        starts_section = depth == 0 and node > 0
        heading = f"[{numbers[node]}] {density.rule_words(node)}" if starts_section else ""
        if children and depth == depth_limit:
            numbers[node] = len(numbers) + 1
            sections.append(node)
            label += f" [{numbers[node]}]"
            children = []
        yield _Row(node, label, guide, below + (bar if children else blank), heading)
        for child in children:
            is_last = child == children[-1]
            yield from walk(
                child,
                below + ("└" if is_last else "├") + dashes,
                below + (blank if is_last else bar),
                depth + 1,
            )

    while sections:
        yield from walk(sections.popleft(), "", "", 0)


def _log_ratios(density: "DensityTree") -> list[float]:
    """Return the log density of every node over the uniform one, nats."""
    log_ratios: list[float] = (density.log_densities + density.log_volumes[0]).tolist()
    return log_ratios
