"""Charts in a report with axes from 0 to 1, drawn as SVG in the file itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from bayescascade.report.axes import class_color
from bayescascade.report.html import element, text

_SIDE, _LEFT, _TOP, _BELOW = 220, 40, 8, 42  # pixels
_TICKS = (0.0, 0.5, 1.0)
_LARGEST = 15.0  # diameter of a dot, pixels

CHART_STYLES = """
.charts{display:flex;flex-wrap:wrap;gap:.4rem 2.4rem;margin:.8rem 0}
figure{margin:0;max-width:19rem;break-inside:avoid}
figure svg{display:block;width:17.5rem;max-width:100%;font-size:11px}
figure path{fill:none;stroke-width:1.6}
figure text{fill:currentColor;text-anchor:middle}
figcaption{font-size:.9rem}
figcaption .series{display:inline-block;margin-right:1.1em}
figcaption .series::before{content:"\\25CF";color:var(--of);margin-right:.35em}
"""
"""Additional styles of a document with charts."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line, or dots, through points in [0, 1] x [0, 1]."""

    name: str
    across: Sequence[float]
    up: Sequence[float]
    sizes: Sequence[float] = ()  # > 0, relative area of each dot; empty for a line


@dataclass(frozen=True, slots=True)
class UnitChart:
    """A square with its diagonal and its series."""

    title: str
    across: str  # title of the axis, as `up`
    up: str
    series: Sequence[Series]

    def to_html(self) -> str:
        """Return the chart as an element; its styles are `CHART_STYLES`."""
        grid = "".join(
            f"M{_x(0)} {_y(tick)}h{_SIDE}M{_x(tick)} {_y(0)}v{-_SIDE}" for tick in _TICKS
        )
        drawn = _path(grid, "opacity:.18;stroke-width:1")
        drawn += _path(f"M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}", "opacity:.5;stroke-dasharray:4 4")
        for number, one in enumerate(self.series):
            drawn += "".join(_marks(one, class_color(number)))
        for tick in _TICKS:
            drawn += _words(f"{tick:g}", _x(tick), _y(0) + 15)
            drawn += _words(f"{tick:g}", _x(0) - 7, _y(tick) + 4, "text-anchor:end")
        drawn += _words(self.across, _x(0.5), _y(0) + 33)
        drawn += _words(self.up, 0, 0, f"transform:translate(11px,{_y(0.5)}px) rotate(-90deg)")
        size = f' viewBox="0 0 {_LEFT + _SIDE + 12} {_TOP + _SIDE + _BELOW}"'
        label = f' role="img" aria-label="{text(self.title)}"'
        caption = element("b", text(self.title)) + "<br/>"
        for number, line in enumerate(self.series):
            color = f' style="--of:{class_color(number)}"'
            caption += element("span", text(line.name), "series", color) + " "
        picture = element("svg", drawn, attributes=size + label)
        return element("figure", picture + element("figcaption", caption))


def _marks(series: Series, color: str) -> list[str]:
    points = [f"{_x(a)} {_y(u)}" for a, u in zip(series.across, series.up, strict=True)]
    if not series.sizes:
        return [_path("M" + "L".join(points), f"stroke:{color}")]
    across = [_LARGEST * (size / max(series.sizes)) ** 0.5 for size in series.sizes]
    dot = f"stroke:{color};stroke-linecap:round;opacity:.8;stroke-width:"
    return [_path(f"M{at}h0", f"{dot}{d:.1f}") for at, d in zip(points, across, strict=True)]


def _path(drawn: str, style: str) -> str:
    ink = "" if "stroke:" in style else "stroke:currentColor;"
    return element("path", "", attributes=f' d="{drawn}" style="{ink}{style}"')


def _words(words: str, x: float, y: float, style: str = "") -> str:
    placed = f' x="{x:g}" y="{y:g}"' + (f' style="{style}"' if style else "")
    return element("text", text(words), attributes=placed)


def _x(value: float) -> float:
    return round(_LEFT + _SIDE * value, 1)


def _y(value: float) -> float:
    return round(_TOP + _SIDE * (1.0 - value), 1)
