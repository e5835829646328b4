"""Pictures of chains, of their agreement, and of comparisons of densities.

Each function returns a new figure and does not touch matplotlib's global state, so it works in
scripts without a display and besides a user's figures.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError
from bayescascade.model.diagnostics import diagnose_array
from bayescascade.model.trace import Trace
from bayescascade.report.axes import blank_figure
from bayescascade.report.numbers import diagnostic_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayescascade.model.comparison import Comparison

_MOST_POINTS = 2000  # points per chain of a trace
_RANK_BINS = 20
_WIDTH, _PANEL_HEIGHT = 8.0, 2.6  # inches

_ACROSS, _DOWN, _LEGEND_HEIGHT = 4.8, 3.4, 0.7  # inches


def plot_traces(data: Any) -> "Figure":
    """Plot log posterior and size by draw, a line per chain.

    Chains that have converged look alike: without trends, and at the same level. data:
    PosteriorRun, Trace, arviz.InferenceData or xarray.DataTree. DataError if there are no draws, or
    it is not the trace of a fit.
    """
    trace = _drawn(data)
    traced = trace.main
    figure, panels = _figure(len(traced), _WIDTH, _PANEL_HEIGHT * len(traced))
    stride = -(-trace.n_draws // _MOST_POINTS)
    draws = np.arange(0, trace.n_draws, stride)
    for panel, name in zip(panels, traced, strict=True):
        for chain, values in enumerate(trace.quantities[name]):
            panel.plot(
                draws, values[draws], color=_color(chain), linewidth=0.6, alpha=0.8,
                label=f"chain {chain + 1}",
            )  # fmt: skip
        panel.set_ylabel(trace.words_of(name) + (", nats" if name == "log_posterior" else ""))
        if trace.is_sample:
            found = diagnose_array(trace.quantities[name])
            r_hat, ess = diagnostic_text(found.r_hat, 3), diagnostic_text(found.ess, 0)
            panel.set_title(f"R-hat {r_hat}   ESS {ess}", loc="right", fontsize=9)
    panels[-1].set_xlabel("draw" if trace.is_sample else "temperature step of the annealing")
    _add_legend(panels[0], trace)
    return figure


def plot_sizes(data: Any) -> "Figure":
    """Plot the posterior of the number of leaves or rules: bars for all chains, a marker for each.

    See `plot_traces` for `data` and errors.
    """
    trace = _drawn(data)
    if trace.size is None:
        raise DataError("a trace must say how large states are for a plot of sizes, got none")
    figure, (panel,) = _figure(1, _WIDTH, 1.4 * _PANEL_HEIGHT)
    from matplotlib.ticker import MaxNLocator

    counts = trace.quantities[trace.size].astype(np.int64)
    values = np.arange(counts.min(), counts.max() + 1)
    shares = np.array([[np.mean(chain == value) for value in values] for chain in counts])
    panel.bar(values, shares.mean(axis=0), color="0.82", width=0.8, label="all chains")
    offsets = np.linspace(-0.2, 0.2, trace.n_chains) if trace.n_chains > 1 else np.zeros(1)
    for chain, share in enumerate(shares):
        panel.plot(
            values + offsets[chain], share, marker="o", markersize=4, linestyle="none",
            color=_color(chain), label=f"chain {chain + 1}",
        )  # fmt: skip
    panel.set_xlabel(trace.words_of(trace.size))
    panel.set_ylabel("share of the draws")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    _add_legend(panel, trace)
    return figure


def plot_ranks(data: Any) -> "Figure":
    """Plot how each chain's draws rank among all draws: flat if the chains agree.

    Equal values are ranked among themselves at random (with a fixed seed): sizes have few values,
    and would otherwise all stand in a few bins. See `plot_traces` for `data` and errors.
    """
    trace = _drawn(data)
    traced = trace.main
    figure, panels = _figure(len(traced), _WIDTH, _PANEL_HEIGHT * len(traced))
    n_bins = max(1, min(_RANK_BINS, trace.n_draws // 5))
    edges = np.linspace(0, trace.n_chains * trace.n_draws, n_bins + 1)
    for panel, name in zip(panels, traced, strict=True):
        for chain, ranks in enumerate(_ranks(trace.quantities[name])):
            heights = np.histogram(ranks, edges)[0] * n_bins / trace.n_draws
            panel.stairs(heights, edges, color=_color(chain), label=f"chain {chain + 1}")
        panel.axhline(1.0, color="0.4", linewidth=0.8, linestyle="--")
        panel.set_ylim(bottom=0.0)
        panel.set_ylabel("draws / expected")
        panel.set_title(trace.words_of(name), loc="left", fontsize=10)
    panels[-1].set_xlabel("rank among the draws of all chains")
    _add_legend(panels[0], trace)
    return figure


def plot_comparisons(comparisons: "Sequence[Comparison]") -> "Figure":
    """Plot the held-out score of each density and halving by its parts, a panel for each table.

    One with fewer parts and a higher score is better (Goh 2018, figures 3-3c, 3-6, 3-7). A point
    whose parts are more than 1.8e308 is left out. There must be at least one comparison.
    """
    n_across = min(2, len(comparisons))
    n_down = -(-len(comparisons) // n_across)
    height = n_down * _DOWN + _LEGEND_HEIGHT
    figure, panels = _figure(n_down, n_across * _ACROSS, height, n_across)
    for panel, comparison in zip(panels, comparisons, strict=False):
        comparison.plot(panel, legend=False)
    for panel in panels[len(comparisons) :]:
        panel.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=1 + n_across, frameon=False, fontsize=9
    )
    return figure


def _drawn(data: Any) -> Trace:
    trace = Trace.of(data)
    if trace.n_draws == 0:
        raise DataError("a trace must have draws to be plotted, got none")
    return trace


def _figure(
    n_down: int, width: float, height: float, n_across: int = 1
) -> "tuple[Figure, list[Axes]]":
    figure = blank_figure(width, height, layout="constrained")
    panels = figure.subplots(n_down, n_across, squeeze=False).ravel().tolist()
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _add_legend(panel: "Axes", trace: Trace) -> None:
    if trace.n_chains <= 10:
        panel.figure.legend(
            *panel.get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False
        )


def _color(chain: int) -> str:
    return f"C{chain % 10}"


def _ranks(draws: Floats) -> Integers:
    """Return the rank of each of (n_chains, n_draws) draws among all, ties in random order."""
    shuffled = np.random.default_rng(0).permutation(draws.size)
    order = np.lexsort((shuffled, draws.ravel()))
    ranks = np.empty(draws.size, np.int64)
    ranks[order] = np.arange(draws.size)
    return ranks.reshape(draws.shape)
