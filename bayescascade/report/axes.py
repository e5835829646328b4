"""Where pictures are drawn: in the axes that a user has, or in a new figure.

Matplotlib is imported when something is drawn.
"""

import math
from typing import TYPE_CHECKING

from bayescascade.base.extras import check_plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLASSES = (  # red, green, blue: matplotlib's own colors, in their order
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189),
    (140, 86, 75), (227, 119, 194), (127, 127, 127), (188, 189, 34), (23, 190, 207),
)  # fmt: skip

_STRONGEST = math.log(20.0)  # densities beyond 20 times, or a 20th of, uniform look alike
_DENSER, _RARER = (67, 137, 205), (240, 150, 50)  # red, green, blue


def axes_or_new(ax: "Axes | None", width: float, height: float) -> "Axes":
    """Return axes, or those of a new figure of pyplot for None; a notebook shows that by itself.

    width, height float > 0, inches, of the new figure. Raises MissingExtraError without matplotlib.
    """
    if ax is not None:
        return ax
    check_plots()
    from matplotlib import pyplot as plt

    _, new = plt.subplots(figsize=(width, height), layout="constrained")
    return new


def ratio_color(log_ratio: float) -> str:
    """Return a color for the log of a density over the uniform one: blue if denser, else orange."""
    strength = min(1.0, abs(log_ratio) / _STRONGEST)
    return _tinted(_DENSER if log_ratio > 0 else _RARER, strength)


def class_color(number: int, strength: float = 1.0) -> str:
    """Return a color for the class of a number, fainter at a strength in [0, 1] below 1."""
    return _tinted(_CLASSES[number % len(_CLASSES)], strength)


def _tinted(color: tuple[int, int, int], strength: float) -> str:
    return "#" + "".join(f"{round(255 + strength * (end - 255)):02x}" for end in color)
