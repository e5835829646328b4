"""What `print` and notebooks show of an object: its page, as text and as HTML."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from bayescascade.report.folding import folded
from bayescascade.report.html import to_html
from bayescascade.report.page import Page, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        return page_text(self.page(), width, full)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str | None:
        return to_html(self.page())


class Readable(Printed):
    """What a user reads of a state."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return it at full precision as plain data."""


class Pictured(Readable):
    """What has a picture, too."""

    @abstractmethod
    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw it, by default in a new figure, and return the axes."""


def page_text(page: Page, width: int, full: bool) -> str:
    """Return a page as text, all of it or with what tells least folded."""
    return render(page if full else folded(page), width=width)
