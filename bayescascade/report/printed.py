"""What `print` and notebooks show of an object: its page, as text and as HTML."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from bayescascade.report.folding import folded
from bayescascade.report.html import to_html
from bayescascade.report.page import Page, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Printed(ABC):
    """What `print` and notebooks show as its page.

    What `dir` lists, and completion offers, are names for users: none that begins with an
    underscore, but for Python's own, and none of those that classes say are `_unlisted`.
    """

    __slots__ = ()

    def __dir__(self) -> Iterable[str]:
        unlisted = {name for kind in type(self).__mro__ for name in vars(kind).get("_unlisted", ())}
        return [
            name
            for name in super().__dir__()
            if name not in unlisted and (not name.startswith("_") or name.startswith("__"))
        ]

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
    def to_dict(self) -> dict[str, Any]:
        """Return it at full precision as plain data."""


class Pictured(Readable):
    """What has a picture, too."""

    @abstractmethod
    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw it, by default in a new figure, and return the axes."""


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
