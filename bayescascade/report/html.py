"""Pages as HTML: the same blocks as in print, with trees and long lists folded by ``<details>``.

It has no scripts, files or addresses, and all text is escaped. The colors of `STYLES` are readable
on dark and light backgrounds. Without styles, the text is still in reading order.
"""

from collections.abc import Iterator, Sequence
from html import escape

from bayescascade.base.texts import printable
from bayescascade.report.folding import (
    fold_words,
    left_out,
    shown_nodes,
    shown_rows,
    with_short_labels,
)
from bayescascade.report.page import (
    Block,
    Fitting,
    Guided,
    Heading,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    count_of,
)

_WIDTH = 120  # approximate width of a notebook in columns of a terminal
_ALL = "all levels"
_LINE = "rgba(128,128,128,.38)"
_FAINT = "rgba(128,128,128,.16)"

STYLES = f"""
.bayescascade{{line-height:1.45}}
.bayescascade .bold{{font-weight:600}}
.bayescascade .dim{{opacity:.68}}
.bayescascade .more{{color:#1b8fb0}}
.bayescascade .less,.bayescascade .warning{{color:#b07a10}}
.bayescascade table{{border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums;
display:block;max-width:100%;overflow-x:auto}}
.bayescascade th,.bayescascade td{{border:0;padding:.12em .6em;text-align:right}}
.bayescascade th{{font-weight:normal}}
.bayescascade tr>:first-child{{text-align:left;padding-left:0}}
.bayescascade td:not(:first-child),.bayescascade th{{white-space:nowrap}}
.bayescascade td.bar{{padding-left:calc(var(--room) + 1em);
background-position:calc(.6em + var(--room)*var(--from)) 50%}}
.bayescascade .rows{{font-variant-numeric:tabular-nums;max-width:62em;margin:.5em 0}}
.bayescascade .row{{display:flex;gap:.7em;align-items:baseline;border-bottom:1px solid {_FAINT}}}
.bayescascade .head{{border-bottom-color:{_LINE}}}
.bayescascade .label{{flex:1 1 9em;min-width:0;overflow-wrap:anywhere;padding:.14em 0 .14em 1em;
position:relative}}
.bayescascade .number{{flex:none;box-sizing:content-box;text-align:right;white-space:nowrap}}
.bayescascade .bar{{--room:3.4em;--from:0;--to:0;--ink:rgba(128,138,150,.5);
padding-left:calc(var(--room) + .4em);background-image:linear-gradient(var(--ink),var(--ink));
background-size:calc(var(--room)*(var(--to) - var(--from))) .7em;
background-position:calc(var(--room)*var(--from)) 50%;background-repeat:no-repeat;
-webkit-print-color-adjust:exact;print-color-adjust:exact}}
.bayescascade .bar.more{{--ink:rgba(27,143,176,.7)}}
.bayescascade .bar.less{{--ink:rgba(190,130,20,.7)}}
.bayescascade summary{{list-style:none;cursor:pointer}}
.bayescascade summary::-webkit-details-marker{{display:none}}
.bayescascade .mark{{display:inline-block;width:1em;opacity:.55}}
.bayescascade .label>.mark{{position:absolute;left:0}}
.bayescascade summary .mark::before{{content:"\\25B8"}}
.bayescascade details[open]>summary .mark::before{{content:"\\25BE"}}
.bayescascade .count{{margin-left:.7em;font-size:.88em;opacity:.68;white-space:nowrap}}
.bayescascade details[open]>summary .count{{display:none}}
.bayescascade .below{{margin-left:.35em;padding-left:.85em;border-left:1px solid {_LINE}}}
.bayescascade .inside{{font-size:.9em;opacity:.75;padding:.1em 0 .2em 1.1em}}
.bayescascade .piece{{margin-right:1.1em}}
"""
"""The stylesheet of `to_html`."""


def to_html(page: Page) -> str:
    """Return a page as one HTML element, including its styles."""
    return element("div", element("style", STYLES) + blocks(page), "bayescascade")


def blocks(page: Page) -> str:
    """Return the blocks of a page as HTML, without styles."""
    html = ""
    for block in page:
        shown = block.explaining(html) if isinstance(block, Pieces) else block
        html += "" if shown is None else _block(shown)
    return html


def element(tag: str, content: str, look: str = "", attributes: str = "") -> str:
    """Return an element; its content is HTML."""
    named = f' class="{look}"' if look else ""
    return f"<{tag}{named}{attributes}>{content}</{tag}>"


def text(words: str) -> str:
    """Return any text as HTML."""
    return escape(printable(words))


def shown_and_more(shown: str, more: str, words: str) -> str:
    """Return visible HTML, followed by folded HTML with a summary."""
    if not more:
        return shown
    summary = element("summary", element("span", "", "mark") + text(words))
    return shown + element("details", summary + element("div", more, "below"))


def _block(block: Block) -> str:
    if isinstance(block, Fitting):
        return blocks(block.chosen(_WIDTH))
    if isinstance(block, Guided):
        return "".join(_tree(block))
    if isinstance(block, PrintedTable):
        return "".join(_table(block) if block.fold is None else _list(block))
    if isinstance(block, Heading):
        return element("div", _spans(block.pieces), "bold")
    return _line(block) if block.pieces else "<br/>"


def _line(block: Pieces) -> str:
    first = " ".join(block.first.split())
    start = element("span", text(first), "piece") if first else ""
    left = left_out(block)
    shown = block.pieces[: len(block.pieces) - left]
    html = start + _spans(shown, block.gap)
    more = _spans(block.pieces[len(shown) :], block.gap)
    words = count_of(left, f"more {block.noun}")
    return element("div", shown_and_more(html, more, words), block.style)


def _spans(pieces: Sequence[str], gap: str = "  ") -> str:
    if len(gap) == 1:
        return gap.join(map(text, pieces))
    return " ".join(element("span", text(piece), "piece") for piece in pieces)


# -- tables ----------------------------------------------------------------------------------------


def _table(table: PrintedTable) -> Iterator[str]:
    """Yield a short table."""
    yield "<table>"
    headers = [text(column.header.replace("\n", " ")) for column in table.columns]
    cells = [text(table.header), *headers]
    yield element("tr", "".join(element("th", cell, "dim") for cell in cells))
    for row, label in enumerate(table.labels):
        style = table.styles[row] if table.styles else ""
        row_html = element("td", text(label), style)
        for column in table.columns:
            look, bar = _look(column, row, style), _bar(column, row)
            row_html += element(
                "td", text(column.texts[row]), look, f' style="{bar}"' if bar else ""
            )
        yield element("tr", row_html)
        inside = table.below[row] if table.below else None
        if inside is not None and inside.pieces:
            span = f' colspan="{1 + len(table.columns)}"'
            yield element("tr", element("td", _line(inside), "inside", span))
    yield "</table>"


def _list(table: PrintedTable) -> Iterator[str]:
    """Yield a table that may be long; its least informative rows are folded."""
    assert table.fold is not None
    shown, fold = shown_rows(table), table.fold
    total = sum(fold.sizes)
    yield '<div class="rows">' + _head(table)
    stretch: list[int] = []
    for row in range(len(table.labels) + 1):
        if row < len(table.labels) and row not in shown:
            stretch.append(row)
            continue
        if stretch:
            size = sum(fold.sizes[each] for each in stretch) if fold.sizes else 0.0
            more = "".join(_plain_row(table, each) for each in stretch)
            yield shown_and_more("", more, fold_words(fold, len(stretch), size, total))
            stretch = []
        if row < len(table.labels):
            yield _plain_row(table, row)
    yield "</div>"


def _plain_row(table: PrintedTable, row: int) -> str:
    return element("div", _cells(table, row), "row") + _inside(table, row)


# -- trees -----------------------------------------------------------------------------------------


def _tree(tree: Guided) -> Iterator[str]:
    """Yield the nodes, each with the nodes below it, folded as in print."""
    full, tree = tree.labels, with_short_labels(tree)
    shown, children = shown_nodes(tree), tree.children
    n_leaves = [0] * len(children)
    for node in reversed(range(len(children))):
        n_leaves[node] += not children[node]
        if node:
            n_leaves[tree.parents[node]] += n_leaves[node]
    nouns = ("leaf", "leaves") if tree.fold is None else tree.fold.nouns

    yield '<div class="rows">' + _head(tree)
    left: list[int | None] = [0]  # None: the end of a node with children
    while left:
        opened = left.pop()
        if opened is None:
            yield "</div></details>"
            continue
        node = opened
        inside = _inside(tree, node)
        if full[node] != tree.labels[node]:
            inside = element("div", shown_and_more("", text(full[node]), _ALL), "inside") + inside
        if not children[node]:
            yield element("div", _cells(tree, node), "row") + inside
        else:
            count = element("span", text(count_of(n_leaves[node], *nouns)), "count")
            is_open = ' open=""' if shown.issuperset(children[node]) else ""
            yield f"<details{is_open}>"
            yield element("summary", _cells(tree, node, count), "row") + inside
            yield '<div class="below">'
            left += [None, *reversed(children[node])]
    yield "</div>"


# -- both ------------------------------------------------------------------------------------------


def _head(table: PrintedTable | Guided) -> str:
    headers = [text(column.header.replace("\n", " ")) for column in table.columns]
    label = element("span", text(table.header), "label")
    cells = zip(table.columns, headers, strict=True)
    numbers = (
        element("span", number, "number bar" if column.bars else "number", _place(column))
        for column, number in cells
    )
    return element("div", " ".join([label, *numbers]), "row head dim")


def _cells(table: PrintedTable | Guided, row: int, count: str = "") -> str:
    """Return the label and the numbers of a row."""
    style = table.styles[row] if table.styles else ""
    label = element("span", "", "mark") + text(table.labels[row]) + count
    html = element("span", label, f"label {style}".rstrip())
    for column in table.columns:
        look, place = f"number {_look(column, row, style)}", _place(column, _bar(column, row))
        html += " " + element("span", text(column.texts[row]), look.rstrip(), place)
    return html


def _inside(table: PrintedTable | Guided, row: int) -> str:
    inside = table.below[row] if table.below else None
    if inside is None or not inside.pieces:
        return ""
    return element("div", _line(inside), "inside")


def _look(column: Numbers, row: int, style: str) -> str:
    looks = [column.styles[row] if column.styles else style, "bar" if column.bars else ""]
    return " ".join(filter(None, looks))


def _place(column: Numbers, bar: str = "") -> str:
    return f' style="width:{column.width + 0.5:g}ch{bar and ";"}{bar}"'


def _bar(column: Numbers, row: int) -> str:
    """Return the bar beside a number; empty if it has none."""
    if not column.bars:
        return ""
    bar = max(-1.0, min(1.0, column.bars[row]))
    start, end = sorted((0.5, 0.5 + bar / 2)) if column.is_centered else (0.0, bar)
    return f"--from:{start:.3f};--to:{end:.3f}"
