"""A density tree as a table: labels with guides on the left, aligned numbers on the right."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayescascade.report.layout import Ink, flow, ljust, longest, printable, rjust, wrap
from bayescascade.report.numbers import (
    cells_text,
    count_texts,
    ratio_text,
    share_text,
    significant_text,
)

if TYPE_CHECKING:
    from bayescascade.cascades.density import DensityTree

__all__ = ["ROOT_LABEL", "NodeTexts", "node_texts", "tree_table"]

ROOT_LABEL = "everyone"

_GAP, _LEAST_GAP = 3, 2  # columns before each number
_LEAST_LABEL = 18  # columns that a label has at least beside its guides
_WIDE_GUIDE, _NARROW_GUIDE = 3, 2  # columns per level of the tree
_NOTICEABLE = math.log(1.005)  # what is not printed as 1.00 x uniform is colored


@dataclass(frozen=True, slots=True)
class NodeTexts:
    """The numbers of all nodes as text.

    Parameters
    ----------
    headers : tuple of str
        Of rows, share, cells or volume, density, and ratio to uniform; a line break may be in it.
    columns : tuple of lists of str
        For each header, the text of every node.
    """

    headers: tuple[str, ...]
    columns: tuple[list[str], ...]

    @property
    def widths(self) -> list[int]:
        """Columns that each number takes, its header included."""
        return [
            longest([*header.split("\n"), *texts])
            for header, texts in zip(self.headers, self.columns, strict=True)
        ]


def node_texts(density: "DensityTree") -> NodeTexts:
    """Return the numbers of all nodes of a density tree as text."""
    is_counted = density.schema.n_cells is not None
    size_text = cells_text if is_counted else significant_text
    return NodeTexts(
        (
            "expected\nrows" if density.evidence else "rows",
            "share",
            "cells" if is_counted else "volume",
            "density",
            "x uniform",
        ),
        (
            count_texts(density.counts.tolist()),
            [share_text(p) for p in density.probabilities.tolist()],
            [size_text(volume) for volume in density.log_volumes.tolist()],
            [significant_text(log_density) for log_density in density.log_densities.tolist()],
            [ratio_text(log_ratio) for log_ratio in _log_ratios(density)],
        ),
    )


def tree_table(density: "DensityTree", width: int, ink: Ink) -> list[str]:
    """Return the lines of the table, header first, each at most `width` columns.

    Long labels go on below, with the guides continued. Where the tree is too deep for its guides,
    a subtree is cut off, numbered, and printed after the rest, under the rule that leads to it.
    """
    texts = node_texts(density)
    widths = texts.widths
    room = width - sum(widths) - _LEAST_GAP * len(widths)
    is_deep = room < _LEAST_LABEL + _WIDE_GUIDE * density.depth
    rows = list(_rows(density, room - _LEAST_LABEL, _NARROW_GUIDE if is_deep else _WIDE_GUIDE))
    label_width = min(room, max(longest([row.guide + row.label]) for row in rows))
    gap = min(_GAP, (width - label_width - sum(widths)) // len(widths))

    def numbers(values: Sequence[str]) -> list[str]:
        return [" " * gap + rjust(v, w) for v, w in zip(values, widths, strict=True)]

    lines = []
    for header in _header_lines(texts.headers):
        lines.append(ink("dim", (" " * label_width + "".join(numbers(header))).rstrip()))
    log_ratios = _log_ratios(density)
    for row in rows:
        if row.heading:
            lines += ["", *flow([row.heading], width, 3)]
        *most, ratio = numbers([column[row.node] for column in texts.columns])
        log_ratio = log_ratios[row.node]
        style = "" if abs(log_ratio) < _NOTICEABLE else "more" if log_ratio > 0 else "less"
        label_room = label_width - len(row.guide)
        first, *others = wrap(row.label, label_room, len(row.below) - len(row.guide))
        label = ink("dim", row.guide) + ljust(first, label_room)
        lines.append(label + "".join(most) + ink(style, ratio))
        lines.extend(ink("dim", row.below) + other for other in others)
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


def _header_lines(headers: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield each line of the headers, which stand on the last one if they have one line."""
    split = [header.split("\n") for header in headers]
    height = max(map(len, split))
    for line in range(height):
        yield [
            parts[line - height + len(parts)] if line >= height - len(parts) else ""
            for parts in split
        ]


def _log_ratios(density: "DensityTree") -> list[float]:
    """Return the log density of every node over the uniform one, nats."""
    log_ratios: list[float] = (density.log_densities + density.log_volumes[0]).tolist()
    return log_ratios
