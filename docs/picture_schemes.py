"""Colors and axes of the documentation's pictures."""

from typing import NamedTuple

from matplotlib.figure import Figure


class Scheme(NamedTuple):
    """Colors of a page, as matplotlib reads them."""

    name: str
    page: str
    text: str
    faint: str
    denser: str
    rarer: str
    other: str


LIGHT = Scheme("light", "#ffffff", "#24292f", "#8b949e", "#2f7fc1", "#e08a1e", "#6a737d")
DARK = Scheme("dark", "#131416", "#d7dbe0", "#6f7780", "#5aa9e6", "#f0a04b", "#a5adb6")


def plain_axes(figure: Figure, scheme: Scheme, place: tuple[float, float, float, float]):
    """Return axes in the colors of a page, without a frame."""
    axes = figure.add_axes(place)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(scheme.faint)
    axes.tick_params(colors=scheme.text)
    axes.xaxis.label.set_color(scheme.text)
    axes.yaxis.label.set_color(scheme.text)
    return axes


def add_legend(axes, scheme: Scheme, place: str = "best") -> None:
    """Add a legend without a frame."""
    axes.legend(frameon=False, labelcolor=scheme.text, loc=place)
