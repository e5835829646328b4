"""The options --near-best and --top: other models that are as good."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from bayescascade.base.errors import ParameterError
from bayescascade.cli.options import IntegerType, RealType
from bayescascade.cli.output import note

if TYPE_CHECKING:
    from bayescascade.model.near_best import NearBest
    from bayescascade.model.roles import NearBestListing
    from bayescascade.report.page import Page

_Command = TypeVar("_Command", bound=Callable[..., Any])


def with_near_best(command: _Command) -> _Command:
    """Add the options to a command."""
    top = click.option(
        "--top",
        type=IntegerType(1),
        help="With --near-best: models to show side by side (default: 5).",
    )
    near = click.option(
        "--near-best",
        type=RealType(minimum=0.0),
        metavar="NATS",
        help="Also print the models within NATS of the best, such as 3: a model 3 nats below is 20 "
        "times less probable.",
    )
    return near(top(command))


class WithNearBest(NamedTuple):
    """A model, and the models near the best."""

    model: Any  # a `Shown`
    near: "NearBest[Any]"
    top: int

    def page(self) -> "Page":
        """Return both pages."""
        from bayescascade.report.page import BLANK

        return (*self.model.page(), BLANK, *self.near.page(self.top))

    def to_dict(self) -> Mapping[str, Any]:
        """Return both as plain data."""
        return {**self.model.to_dict(), "near_best": self.near.to_dict()}


def lister(model: Any, name: str) -> "NearBestListing":
    """Return a model that lists others; click.UsageError if it cannot."""
    from bayescascade.cli.loading import in_role
    from bayescascade.model.roles import NearBestListing

    listing: NearBestListing = in_role(NearBestListing, model, "--near-best", name)
    return listing


def beside(shown: Any, learned: Any, nats: float, top: int) -> Any:
    """Return what is shown with the models near the best; alone, with a note, if there are none."""
    try:
        return WithNearBest(shown, learned.near_best(nats), top)
    except ParameterError as error:
        note(f"no models near the best: {error}")
    except KeyboardInterrupt:
        note("no models near the best: interrupted")
    return shown


def check_top(near_best: float | None, top: int | None) -> int:
    """Return how many models to show; click.UsageError if there are none to show."""
    if near_best is None and top is not None:
        raise click.UsageError("--top needs --near-best NATS, got none")
    return 5 if top is None else top
