"""What objects are that `print` and notebooks show as their page."""

from abc import ABC, abstractmethod
from typing import Any

from bayescascade.report.html import to_html
from bayescascade.report.page import Page, render

__all__ = ["Printed", "PrintedModel"]


class Printed(ABC):
    """What `print` and notebooks show as its page."""

    __slots__ = ()

    @abstractmethod
    def page(self) -> Page:
        """Return what is printed, block by block."""

    def __str__(self) -> str:
        return render(self.page())

    def _repr_html_(self) -> str | None:
        return to_html(self.page())


class PrintedModel(Printed):
    """An estimator that is printed as its page once it is fitted, and until then as scikit-learn's.

    It stands before scikit-learn's own classes among the bases.
    """

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
