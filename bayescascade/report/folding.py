"""Folding of long pages: the most informative rows of trees and lists are shown.

Nodes are taken by descending weight (see `Fold`), each with the path to it, as long as there is
room. Below a node, one line summarizes the nodes that are left out; a single left-out sibling is
shown, because it needs no more room. Pages that are only a little too long are not folded.

A folded page is a page, so it can be rendered as text and HTML.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bayescascade.base.typed_words import typed
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import (
    Block,
    Fitting,
    Fold,
    Guided,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    count_of,
)

MOST_ROWS = 40

_LITTLE = 1.5  # up to this ratio, longer pages are not folded
_CUT = "...: some levels are left out"


def folded(page: Page, most_rows: int = MOST_ROWS) -> Page:
    """Return a page whose long parts have about `most_rows` >= 1 lines, with notes that say so."""
    return tuple(block for one in page for block in _folded(one, most_rows))


def _folded(block: Block, most_rows: int) -> Page:
    if isinstance(block, Fitting):
        pages = (folded(page, most_rows) for page in (block.wide, block.narrow))
        return (Fitting(block.table, block.room, *pages),)
    if isinstance(block, Pieces) and (left := left_out(block)):
        more = f"... {count_of(left, f'more {block.noun}')}"
        return (replace(block, pieces=[*block.pieces[: block.most_pieces], more]),)
    if isinstance(block, Guided) and block.fold is not None:
        tree = with_short_labels(block)
        shown = shown_nodes(tree, most_rows)
        if len(shown) < len(tree.labels):
            return (_folded_tree(tree, shown), _note(block.fold, *_splits(tree, shown)))
        if tree is not block and list(tree.labels) != list(block.labels):
            return (tree, Pieces([_CUT, _all()], "dim"))
    elif isinstance(block, PrintedTable) and block.fold is not None:
        shown = shown_rows(block, most_rows)
        if len(shown) < len(block.labels):
            hidden = set(range(len(block.labels))) - shown
            count = count_of(len(block.labels), *block.fold.nouns)
            return (_folded_table(block, shown), _note(block.fold, hidden, len(hidden), count))
    return (block,)


def with_short_labels(tree: Guided) -> Guided:
    """Return a tree with its short labels."""
    if tree.fold is None or not tree.fold.labels:
        return tree
    return replace(tree, labels=tree.fold.labels, fold=replace(tree.fold, labels=()))


def left_out(block: Pieces) -> int:
    """Return the number of folded pieces."""
    return max(0, len(block.pieces) - block.most_pieces) if block.noun else 0


def _note(fold: Fold, hidden: set[int], n_folded: int, of_what: str) -> Pieces:
    """Return a note on the folded part: its size, its weight, and how to see it."""
    total = sum(fold.weights)
    worth = sum(fold.weights[row] for row in hidden)
    share = f", with {share_text(min(1.0, worth / total))} of {fold.measure}" if total > 0 else ""
    return Pieces([f"folded: {n_folded:,} of {of_what}{share}", _all()], "dim")


def _all() -> str:
    return f"all: {typed('to_text(full=True)', '--full')}"


def fold_words(fold: Fold, count: int, size: float, total: float, n_splits: int = 0) -> str:
    """Return the text of a line for folded parts, such as "12 leaves in 3 splits, 85 rows (4.0 %)".

    `count` rows or leaves have the sum `size` of `fold.sizes`, out of `total`, in `n_splits`
    splits.
    """
    words = count_of(count, *fold.nouns)
    if n_splits:
        words += f" in {count_of(n_splits, 'split')}"
    if fold.sizes and total > 0:
        noun = fold.counted if size == 1 else f"{fold.counted}s"
        words += f", {count_texts([size])[0]} {noun} ({share_text(min(1.0, size / total))})"
    return words


# -- trees -----------------------------------------------------------------------------------------


def shown_nodes(tree: Guided, most_rows: int = MOST_ROWS) -> set[int]:
    """Return the most informative nodes, each with all above it; all nodes if they are few."""
    n_nodes, children = len(tree.labels), tree.children
    lines = _lines(tree, n_nodes)
    everything = set(range(n_nodes))
    if tree.fold is None or sum(lines) <= _LITTLE * most_rows:
        return everything
    weights = tree.fold.weights
    shown = {0}
    for node in sorted(range(1, n_nodes), key=lambda each: -weights[each]):
        grown = shown | _led_to(tree, children, shown, node)
        n_grown = sum(lines[each] for each in grown)
        n_grown += sum(not grown.issuperset(children[each]) for each in grown)
        if n_grown <= most_rows:
            shown = grown
        elif len(shown) > 1:  # otherwise it is too deep
            break
    return shown


def _led_to(tree: Guided, children: list[list[int]], shown: set[int], node: int) -> set[int]:
    """Return a node, hidden nodes above it, and siblings that would be left out alone."""
    found: set[int] = set()
    while node not in shown and node not in found:
        found.add(node)
        parent = tree.parents[node]
        left = [each for each in children[parent] if each not in shown | found]
        found.update(left if len(left) == 1 else ())
        node = parent
    return found


def _splits(tree: Guided, shown: set[int]) -> tuple[set[int], int, str]:
    """Return the nodes left out, the number of splits not shown in full, and of all splits."""
    inner = [below for below in tree.children if below]
    n_folded = sum(not shown.issuperset(below) for below in inner)
    return set(range(len(tree.labels))) - shown, n_folded, count_of(len(inner), "split")


def _folded_tree(tree: Guided, shown: set[int]) -> Guided:
    """Return the tree of the shown nodes, with lines for siblings that are left out."""
    assert tree.fold is not None
    fold, children = tree.fold, tree.children
    n_leaves, n_splits = [0] * len(children), [0] * len(children)  # at each node and below
    for node in reversed(range(len(children))):
        is_leaf = not children[node]
        n_leaves[node] += is_leaf
        n_splits[node] += not is_leaf
        if node:
            n_leaves[tree.parents[node]] += n_leaves[node]
            n_splits[tree.parents[node]] += n_splits[node]
    labels: list[str] = []
    parents: list[int] = []
    kept: list[int | None] = []  # the node of each row, if it has one
    inside: list[Pieces | None] = []

    open_nodes: list[tuple[int, int | None]] = [(0, 0)]  # parent's row, and node; None for a line
    waiting: list[str] = []  # for such lines
    while open_nodes:
        parent, opened = open_nodes.pop()
        row = len(labels)
        parents.append(parent)
        kept.append(opened)
        if opened is None:
            labels.append(waiting.pop())
            inside.append(None)
            continue
        node = opened
        labels.append(tree.labels[node])
        inside.append(tree.below[node] if tree.below else None)
        below = [child for child in children[node] if child in shown]
        left = [child for child in children[node] if child not in shown]
        if below and left:
            count, splits = (sum(of[child] for child in left) for of in (n_leaves, n_splits))
            size = sum(fold.sizes[child] for child in left) if fold.sizes else 0.0
            waiting.append("... " + fold_words(fold, count, size, sum(fold.sizes[:1]), splits))
            open_nodes.append((row, None))
        elif left:  # with the rows of the node
            words = f"... {fold_words(fold, n_leaves[node], 0.0, 0.0, n_splits[node])}"
            inside[row] = Pieces([words], "dim")
        open_nodes += [(row, child) for child in reversed(below)]
    known = [0 if node is None else node for node in kept]  # only nodes have headings
    return replace(
        tree,
        labels=labels,
        parents=parents,
        columns=_taken(tree.columns, kept),
        heading=lambda row: tree.heading(known[row]),
        below=inside,
        fold=None,
    )


# -- tables ----------------------------------------------------------------------------------------


def shown_rows(table: PrintedTable, most_rows: int = MOST_ROWS) -> set[int]:
    """Return the most informative rows; all rows if they are few."""
    n_rows = len(table.labels)
    lines = _lines(table, n_rows)
    if table.fold is None or sum(lines) <= _LITTLE * most_rows:
        return set(range(n_rows))
    weights = table.fold.weights
    shown = {n_rows - 1} if table.fold.keeps_last else set()
    for row in sorted(range(n_rows), key=lambda each: -weights[each]):
        grown = shown | {row}
        left = [each for each in range(n_rows) if each not in grown]
        n_lines = sum(lines[each] for each in grown) + len(list(_stretches(left)))
        if n_lines > most_rows and len(shown) > 1:
            break
        shown = grown
    left = [each for each in range(n_rows) if each not in shown]
    return shown.union(*(stretch for stretch in _stretches(left) if len(stretch) == 1))


def _folded_table(table: PrintedTable, shown: set[int]) -> PrintedTable:
    """Return the table of the shown rows, with lines for the rows between them."""
    assert table.fold is not None
    fold, total = table.fold, sum(table.fold.sizes)
    left = [row for row in range(len(table.labels)) if row not in shown]
    ends = {stretch[0]: stretch for stretch in _stretches(left)}
    labels: list[str] = []
    kept: list[int | None] = []
    for row, label in enumerate(table.labels):
        if row in shown:
            labels.append(label)
            kept.append(row)
        elif row in ends:
            size = sum(fold.sizes[each] for each in ends[row]) if fold.sizes else 0.0
            labels.append("... " + fold_words(fold, len(ends[row]), size, total))
            kept.append(None)
    styles = ["dim" if row is None else (table.styles or [""] * (row + 1))[row] for row in kept]
    return replace(
        table,
        labels=labels,
        columns=_taken(table.columns, kept),
        styles=styles,
        below=[None if row is None else table.below[row] for row in kept] if table.below else [],
        fold=None,
    )


def _stretches(rows: Sequence[int]) -> Iterator[list[int]]:
    """Yield runs of consecutive rows."""
    start = 0
    for place in range(1, len(rows) + 1):
        if place == len(rows) or rows[place] != rows[place - 1] + 1:
            yield list(rows[start:place])
            start = place


# -- both ------------------------------------------------------------------------------------------


def _lines(table: PrintedTable | Guided, n_rows: int) -> list[int]:
    """Return the number of lines of each row without wrapping."""
    if not table.below:
        return [1] * n_rows
    return [1 + (below is not None and bool(below.pieces)) for below in table.below]


def _taken(columns: Sequence[Numbers], kept: Sequence[int | None]) -> list[Numbers]:
    """Return the columns of the kept rows, empty in lines for others."""

    def chosen(texts: Sequence[str]) -> list[str]:
        return ["" if row is None else texts[row] for row in kept] if texts else []

    return [
        replace(column, texts=chosen(column.texts), styles=chosen(column.styles), bars=())
        for column in columns
    ]
