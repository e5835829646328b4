"""Pages: the print of an object as blocks, and the layout of blocks as text.

A page is a tuple of blocks without a width: line breaks and columns are decided when it is
rendered. `html` renders the same blocks for notebooks and documents; `folding` folds long blocks.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeAlias

from rich.cells import cell_len

from bayescascade.base.texts import printable
from bayescascade.base.validation import check_integer
from bayescascade.report.layout import GAP, Ink, flow, ljust, longest, rjust, wrap

LEAST_WIDTH = 60

_LEAST_BESIDE = 12  # with fewer columns, labels are above their numbers
_MOST_NAMES = 40  # pieces that are not folded
_LEAST_GUIDED = 18  # minimum columns of a label beside its guides
_LEAST_LEVELS = 3  # minimum columns beside the longest word of a tree, which is otherwise broken
_WIDE_GUIDE, _NARROW_GUIDE = 3, 2  # columns per level of a tree


@dataclass(frozen=True, slots=True)
class Pieces:
    """Texts side by side; long ones are wrapped."""

    pieces: Sequence[str]
    style: str = ""  # style of all lines; see `Ink`
    indent: int = 2  # spaces before each line but the first
    first: str = ""  # begin of the first line, at most `indent` columns
    gap: str = GAP  # between two pieces
    most_lines: int | None = None  # further pieces are left out, all if none fits
    noun: str = ""  # word for a piece, such as "column", if many may be folded
    most_pieces: int = 12  # >= 1, pieces shown if they are folded
    is_key: bool = False  # a piece "word: meaning" is left out if the word is not printed above

    def explaining(self, printed: str) -> "Pieces | None":
        """Return the pieces that explain a text above, or that are no explanations; None if none.

        Only a key leaves out pieces.
        """
        if not self.is_key:
            return self
        kept = [piece for piece in self.pieces if _is_explaining(piece, printed)]
        return replace(self, pieces=kept) if kept else None

    def lines(self, width: int, ink: Ink) -> Iterator[str]:
        """Yield the lines, each of at most `width` columns."""
        kept = self.pieces
        if self.most_lines is not None:
            kept = []
            for piece in self.pieces:
                if len(self._flowed([*kept, piece], width)) <= self.most_lines:
                    kept.append(piece)
        if kept or self.most_lines is None:
            yield from (ink(self.style, line) for line in self._flowed(kept, width))

    def _flowed(self, pieces: Sequence[str], width: int) -> list[str]:
        return flow(pieces, width, self.indent, first=printable(self.first), gap=self.gap)


BLANK = Pieces(())
"""An empty line."""


@dataclass(frozen=True, slots=True)
class Heading:
    """Pieces with a bold first line."""

    pieces: Sequence[str]

    def lines(self, width: int, ink: Ink) -> Iterator[str]:
        """Yield the lines, each of at most `width` columns."""
        first, *others = flow(self.pieces, width, 2)
        yield ink("bold", first)
        yield from others


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of a table: numbers as text, aligned right."""

    header: str  # may have line breaks
    texts: Sequence[str]  # one for each row
    styles: Sequence[str] = ()  # style of each text, see `Ink`; empty for none
    least_width: int = 0  # in terminal columns
    bars: Sequence[float] = ()  # in [-1, 1], lengths of bars behind the texts in HTML; or empty
    is_centered: bool = False  # bars start in the middle; otherwise all are >= 0

    def __post_init__(self) -> None:
        """Make levels in cells, and names in headers, printable."""
        header = "\n".join(map(printable, self.header.split("\n")))
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "texts", list(map(printable, self.texts)))

    @property
    def width(self) -> int:
        """Width in terminal columns, including the header."""
        return max(self.least_width, longest([*self.header.split("\n"), *self.texts]))


@dataclass(frozen=True, slots=True)
class Fold:
    """How a long table is folded: see `report.folding`."""

    weights: Sequence[float]  # weight >= 0 of each row; the rows of largest weight are shown
    measure: str  # the total of the weights in words, such as "what is spent"
    nouns: tuple[str, str]  # singular and plural of rows; of leaves for a tree
    sizes: Sequence[float] = ()  # number of `counted` of a row, or of all below a node
    counted: str = "row"  # the counted thing of `sizes`
    keeps_last: bool = False  # the last row is always shown, such as an `else`
    labels: Sequence[str] = ()  # shorter labels of a tree's nodes; empty for the same


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """Labels on the left, wrapped if long, and numbers on the right."""

    labels: Sequence[str]  # one for each row
    columns: Sequence[Numbers]
    header: str = ""  # above the labels
    styles: Sequence[str] = ()  # style of each row; empty for none
    below: Sequence[Pieces | None] = ()  # text below each row; empty for none
    hanging: int = 2  # spaces before a label's further lines, and before the text below
    least_label: int = 8  # minimum width of labels
    gaps: tuple[int, int] = (2, 3)  # minimum and maximum columns before each number
    stacks: bool = False  # labels without room beside the numbers are above them
    fold: Fold | None = None  # None if rows are not folded

    def room(self, width: int) -> int:
        """Return the number of columns left for labels."""
        return width - sum(column.width + self.gaps[0] for column in self.columns)

    def lines(self, width: int, ink: Ink) -> Iterator[str]:
        """Yield the lines, wider than `width` columns only if the numbers alone are."""
        labels = [printable(label) for label in self.labels]
        room, wanted = self.room(width), longest([printable(self.header), *labels])
        rows = (_Row(i, label, "", " " * self.hanging) for i, label in enumerate(labels))
        label_width = max(self.least_label, min(room, wanted))
        is_above = self.stacks and room < min(_LEAST_BESIDE, wanted)
        return _table_lines(self, rows, label_width, width, ink, is_above)


@dataclass(frozen=True, slots=True)
class Guided:
    """A table whose rows are the nodes of a tree, with guides from each to its children.

    If the tree is too deep for its guides, a subtree is numbered and printed after the rest, under
    the heading of its first node.
    """

    labels: Sequence[str]  # the root's is first; a node precedes its children
    parents: Sequence[int]  # label of each node's branch; unused for the root
    columns: Sequence[Numbers]
    heading: Callable[[int], str]  # from a node to the words that lead there
    below: Sequence[Pieces | None] = ()  # text below each node; empty for none
    fold: Fold | None = None  # None if nodes are not folded

    header: ClassVar[str] = ""
    styles: ClassVar[Sequence[str]] = ()
    gaps: ClassVar[tuple[int, int]] = (2, 3)

    @property
    def depths(self) -> list[int]:
        """The depth of each node."""
        depths = [0]
        for parent in self.parents[1:]:
            depths.append(depths[parent] + 1)
        return depths

    @property
    def children(self) -> list[list[int]]:
        """The nodes below each node, in their order."""
        children: list[list[int]] = [[] for _ in self.labels]
        for node in range(1, len(self.labels)):
            children[self.parents[node]].append(node)
        return children

    def lines(self, width: int, ink: Ink) -> Iterator[str]:
        """Yield the lines, each of at most `width` columns; long labels are wrapped."""
        room = width - sum(column.width + self.gaps[0] for column in self.columns)
        least = longest([word for label in self.labels for word in printable(label).split(" ")])
        least = max(_LEAST_GUIDED, min(least, room - _LEAST_LEVELS * _NARROW_GUIDE))
        is_deep = room < least + _WIDE_GUIDE * max(self.depths)
        guide_width = _NARROW_GUIDE if is_deep else _WIDE_GUIDE
        rows = list(self._rows(max(1, (room - least) // guide_width), guide_width))
        label_width = min(room, longest([row.guide + row.label for row in rows]))
        return _table_lines(self, rows, label_width, width, ink)

    def _rows(self, most_deep: int, guide_width: int) -> Iterator["_Row"]:
        """Yield the nodes in the table's order, with at most `most_deep` levels of guides."""
        dashes = "─" * (guide_width - 2) + " "
        bar, blank = ljust("│", guide_width), " " * guide_width
        children = self.children
        sections = deque([0])
        numbers: dict[int, int] = {}  # numbers of the sections, by their first node

        def walk(node: int, guide: str, below: str, depth: int) -> Iterator[_Row]:
            label, others = printable(self.labels[node]), children[node]
            starts_section = depth == 0 and node > 0
            heading = f"[{numbers[node]}] {self.heading(node)}" if starts_section else ""
            if others and depth == most_deep:
                numbers[node] = len(numbers) + 1
                sections.append(node)
                label += f" [{numbers[node]}]"
                others = []
            yield _Row(node, label, guide, below + (bar if others else blank), heading)
            for child in others:
                turn, line = ("└", blank) if child == others[-1] else ("├", bar)
                yield from walk(child, below + turn + dashes, below + line, depth + 1)

        while sections:
            yield from walk(sections.popleft(), "", "", 0)


@dataclass(frozen=True, slots=True)
class Fitting:
    """One of two pages, depending on the room for a table's labels."""

    table: PrintedTable
    room: int  # sufficient columns
    wide: "Page"  # printed with this room
    narrow: "Page"  # printed without

    def chosen(self, width: int) -> "Page":
        """Return the page for a width in columns."""
        return self.wide if self.table.room(width) >= self.room else self.narrow

    def lines(self, width: int, ink: Ink) -> Iterator[str]:
        """Yield the lines of the page that fits."""
        for block in self.chosen(width):
            yield from block.lines(width, ink)


Block: TypeAlias = Heading | Pieces | PrintedTable | Guided | Fitting
Page: TypeAlias = tuple[Block, ...]


def render(page: Page, *, width: int = 80, color: bool = False) -> str:
    """Return a page as text in lines of at most `width` >= 60 columns, with colors if `color`."""
    check_integer("width", width, LEAST_WIDTH)
    ink = Ink(color)
    lines: list[str] = []
    for block in page:
        shown = block.explaining("\n".join(lines)) if isinstance(block, Pieces) else block
        if shown is not None:
            lines += shown.lines(width, ink)
    return "\n".join(lines)


def _is_explaining(piece: str, printed: str) -> bool:
    word, colon, _ = piece.partition(":")
    return not colon or re.search(rf"(?<!\w){re.escape(word)}(?!\w)", printed) is not None


def named(names: Sequence[str], noun: str, first: str = "", style: str = "") -> Pieces:
    """Return names with commas, after `first`; many of them may be folded."""
    pieces = [*(f"{name}," for name in names[:-1]), names[-1]]
    texts = [first + pieces[0], *pieces[1:]]
    return Pieces(texts, style, gap=" ", noun=noun, most_pieces=_MOST_NAMES)


def warning(text: str) -> Pieces:
    """Return a warning as a block."""
    return Pieces([text], "warning")


def count_of(count: int, noun: str, nouns: str = "") -> str:
    """Return a count in words, such as "1 row" or "2,201 rows"."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


class _Row(NamedTuple):
    """A row's place in a table."""

    place: int  # position of its numbers in the columns
    label: str
    guide: str  # before the label
    below: str  # guides before the label's further lines, and before the text below
    heading: str = ""  # number of the section that starts with the row


def _table_lines(
    table: PrintedTable | Guided,
    rows: Iterable[_Row],
    label_width: int,
    width: int,
    ink: Ink,
    is_above: bool = False,
) -> Iterator[str]:
    """Yield a header, then each label with its numbers and the text below."""
    widths = [column.width for column in table.columns]
    least, most = table.gaps
    gap = min(most, (width - label_width - sum(widths)) // len(widths))
    if not is_above:
        gap = max(gap, least)

    def aligned(texts: Iterable[str]) -> list[str]:
        return [" " * gap + rjust(v, w) for v, w in zip(texts, widths, strict=True)]

    headers = [column.header.split("\n") for column in table.columns]
    height = max(map(len, headers))
    for line in range(-height, 0):  # shorter headers are on the last lines
        text = "".join(aligned(lines[line] if len(lines) >= -line else "" for lines in headers))
        label = printable(table.header) if line == -1 else ""
        yield ink("dim", (ljust(label, label_width) + text).rstrip())
    for row in rows:
        if row.heading:
            yield ""
            yield from flow([row.heading], width, 3)
        room = label_width - len(row.guide)
        hanging = len(row.below) - len(row.guide)
        first, *others = wrap(row.label, width if is_above else room, hanging)
        if is_above:
            yield first
            yield from (row.below + other for other in others)
            first, others = "", []
        numbers = aligned(column.texts[row.place] for column in table.columns)
        for number, column in enumerate(table.columns):
            if column.styles:
                numbers[number] = ink(column.styles[row.place], numbers[number])
        text = (ink("dim", row.guide) + ljust(first, room) + "".join(numbers)).rstrip()
        yield ink(table.styles[row.place], text) if table.styles else text
        inside = table.below[row.place] if table.below else None
        if inside is not None:
            others += inside.lines(width - cell_len(row.below), ink)
        yield from (ink("dim", row.below) + other for other in others)
