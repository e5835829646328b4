"""What `print` and notebooks show of an object: its page, as text and as HTML.

The HTML has no scripts and no files, and is readable on dark and on light backgrounds.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from html import escape
from typing import Any

from sklearn.utils.validation import check_is_fitted

from bayescascade.report.folding import folded
from bayescascade.report.layout import printable
from bayescascade.report.page import Block, Fitting, Guided, Heading, Page, Pieces, Table, render

__all__ = ["Printed", "PrintedModel", "Readable", "to_html"]

_WIDTH = 120  # columns of a terminal that a notebook is about as wide as

_STYLES = {
    "bold": "font-weight:bold",
    "dim": "opacity:0.65",
    "more": "color:#1b8fb0",
    "less": "color:#b07a10",
    "warning": "color:#b07a10",
}  # colors halfway between black and white
_CELL = "border:0;padding:0.1em 0.6em"
_STEP = 1.2  # em by which a level of a tree, and what stands below a row, is indented


class Printed(ABC):
    """What `print` and notebooks show as its page."""

    __slots__ = ()

    @abstractmethod
    def page(self) -> Page:
        """Return what is printed, block by block."""

    def to_text(self, *, width: int = 80, full: bool = False) -> str:
        """Return what `print` shows.

        Parameters
        ----------
        width : int >= 60
            Most columns of a line.
        full : bool
            Whether all of a large tree or list, and all columns, are shown; else what tells least
            is folded.
        """
        return render(self.page() if full else folded(self.page()), width=width)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str | None:
        return to_html(self.page())


class Readable(Printed):
    """What a user reads of a state."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return it at full precision as plain data."""


class PrintedModel(Printed):
    """An estimator that is printed as its page once it is fitted, and until then as scikit-learn's.

    It stands before scikit-learn's own classes among the bases.
    """

    def to_text(self, *, width: int = 80, full: bool = False) -> str:
        """Return what `print` shows of the fitted model; see `Printed.to_text`."""
        check_is_fitted(self)
        return super().to_text(width=width, full=full)

    def __str__(self) -> str:
        return super().__str__() if self.__sklearn_is_fitted__() else repr(self)

    def _repr_html_(self) -> str | None:
        return self._repr_mimebundle_().get("text/html")

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str | None]:
        """Return what notebooks show, by kind."""
        if self.__sklearn_is_fitted__():
            return {"text/plain": str(self), "text/html": super()._repr_html_()}
        bundle: dict[str, str | None] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return bundle

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...


def to_html(page: Page) -> str:
    """Return a page as one HTML element; all texts are escaped.

    Parameters
    ----------
    page : Page
    """
    return f"<div>{''.join(map(_block, page))}</div>"


def _block(block: Block) -> str:
    if isinstance(block, Fitting):
        return to_html(block.chosen(_WIDTH))
    if isinstance(block, Table | Guided):
        return "".join(_table(block))
    if isinstance(block, Heading):
        return _element("div", _text(*block.pieces), "bold")
    return _element("div", _pieces(block), block.style) if block.pieces else "<br/>"


def _table(table: Table | Guided) -> Iterator[str]:
    """Yield the rows of a table, those of a tree indented by how deep a node is."""
    depths = table.depths if isinstance(table, Guided) else [0] * len(table.labels)
    yield '<table style="border-collapse:collapse;margin:0.3em 0">'
    headers = [_text(column.header.replace("\n", " ")) for column in table.columns]
    yield _row([_text(table.header), *headers], ["dim"] * (1 + len(headers)), 0, "th")
    for index, (label, depth) in enumerate(zip(table.labels, depths, strict=True)):
        style = table.styles[index] if table.styles else ""
        cells, styles = [_text(label)], [style]
        for column in table.columns:
            cells.append(_text(column.texts[index]))
            styles.append(column.styles[index] if column.styles else style)
        yield _row(cells, styles, depth)
        inside = table.below[index] if table.below else None
        if inside is not None and inside.pieces:
            yield _row([_pieces(inside)], [inside.style], depth + 1, span=len(cells))
    yield "</table>"


def _row(cells: list[str], styles: list[str], depth: int, tag: str = "td", span: int = 1) -> str:
    """Return a row of cells, the first, a label, `depth` levels from the left."""
    label = f"{_CELL};text-align:left;padding-left:{0.6 + _STEP * depth:.1f}em"
    places = [label, *[f"{_CELL};text-align:right"] * (len(cells) - 1)]
    told = zip(cells, styles, places, strict=True)
    row = "".join(_element(tag, cell, style, place, span) for cell, style, place in told)
    return f"<tr>{row}</tr>"


def _pieces(pieces: Pieces) -> str:
    first = " ".join(pieces.first.split())
    return _text(*([first] if first else []), *pieces.pieces)


def _text(*pieces: str) -> str:
    return "&#8195;".join(escape(printable(piece)) for piece in pieces)


def _element(tag: str, content: str, style: str, place: str = "", span: int = 1) -> str:
    styles = ";".join(part for part in (place, _STYLES.get(style, "")) if part)
    attributes = (f' style="{styles}"' if styles else "") + (f' colspan="{span}"' * (span > 1))
    return f"<{tag}{attributes}>{content}</{tag}>"
