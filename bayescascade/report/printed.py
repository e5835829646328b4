"""Objects that `print` and notebooks show as pages, in text and HTML."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from bayescascade.report.folding import folded
from bayescascade.report.html import to_html
from bayescascade.report.page import Page, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Printed(ABC):
    """An object that `print` and notebooks show as its page."""

    __slots__ = ()

    @abstractmethod
    def page(self) -> Page:
        """Return the print, as blocks."""

    def to_text(self, *, width: int = 80, full: bool = False) -> str:
        """Return the text that `print` shows.

        Parameters
        ----------
        width : int >= 60
            Maximum number of characters per line.
        full : bool
            Whether to show all parts of a large tree or list, and all columns. Otherwise the least
            informative parts are folded.
        """
        return page_text(self.page(), width, full)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str | None:
        return to_html(self.page())


class Readable(Printed):
    """The readable form of a state."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data at full precision."""


class Pictured(Readable):
    """A readable form with a picture."""

    @abstractmethod
    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw it, by default in a new figure, and return the axes."""


def page_text(page: Page, width: int, full: bool) -> str:
    """Return a page as text, complete or with the least informative parts folded."""
    return render(page if full else folded(page), width=width)
