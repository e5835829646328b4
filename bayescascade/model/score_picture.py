"""The picture of a comparison: held-out scores by number of parts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "o^sDvP*X"
_SPAN_OF_LOG = 8.0  # ratio of numbers of parts from which the axis is logarithmic
_MOST_PLAIN = 1e5  # parts printed in full
_LEAST_SPAN = 0.005  # nats


class Scores(NamedTuple):
    """The scores of a density in each halving."""

    label: str
    n_parts: Sequence[float]
    log_likelihoods: Sequence[float]  # nats a row


def draw_scores(panel: "Axes", title: str, scores: Sequence[Scores]) -> None:
    """Draw the points of each density into axes."""
    for number, scores_of in enumerate(scores):
        panel.plot(
            scores_of.n_parts,
            scores_of.log_likelihoods,
            linestyle="none",
            marker=_MARKERS[number % len(_MARKERS)],
            fillstyle="none",  # translucent, because markers overlap
            markersize=8,
            markeredgewidth=1.6,
            color=f"C{number % 10}",
            label=scores_of.label,
        )
    n_parts = [n for score in scores for n in score.n_parts]
    _set_limits(panel, n_parts, [s for score in scores for s in score.log_likelihoods])
    panel.set_ylabel("held out, nats a row")
    panel.set_title(title, fontsize=10, parse_math=False)
    panel.spines[["top", "right"]].set_visible(False)


def _set_limits(panel: "Axes", n_parts: Sequence[float], scores: Sequence[float]) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    if n_parts and max(n_parts) > _SPAN_OF_LOG * min(n_parts):
        panel.set_xscale("log")
        if max(n_parts) < _MOST_PLAIN:
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        panel.set_xlabel("parts: leaves, rules, cells (log scale)")
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlabel("parts: leaves, rules, cells")
    if scores and max(scores) - min(scores) < _LEAST_SPAN:  # not rounding alone
        middle = (max(scores) + min(scores)) / 2
        panel.set_ylim(middle - _LEAST_SPAN, middle + _LEAST_SPAN)
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:.3f}"))
