"""What a model that was sampled shows of its posterior: shares of draws, and draws for ArviZ."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import DataError
from bayescascade.model.draws import PosteriorRun
from bayescascade.model.summary import FitSummary
from bayescascade.report.axes import Bar, axes_or_new, plot_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_SHARES = 8  # of a kind
_LEAST_SHARE = 0.005  # that would be printed as 0.00
_MOST_POINTS = 2000  # of a chain


class Sampled:
    """A model with draws of its posterior, of which a file keeps what the summary says."""

    summary_: FitSummary
    run_: PosteriorRun[Any]  # Any: states of the family

    def plot_posterior(self, ax: "Axes | None" = None) -> "Axes":
        """Draw what the posterior's draws agree on, and return the axes.

        Bars are shares of the draws: of each size, of what stands first, and of those that use a
        column. Where states have no sizes, it is the log posterior by draw, a line for each chain.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Raises
        ------
        DataError
            If nothing was sampled.
        """
        check_is_fitted(self)
        if self.summary_.shares:
            return plot_bars(
                _share_bars(self.summary_.shares), ax, x_label="share of the posterior"
            )
        if self.summary_.n_draws == 0 or "run_" not in self.__dict__:
            raise DataError("a posterior must have draws to be plotted, got none")
        trace = self.run_.trace
        ax = axes_or_new(ax, 7.5, 3.2)
        stride = -(-trace.n_draws // _MOST_POINTS)
        for chain, draws in enumerate(trace.quantities["log_posterior"]):
            places = range(0, trace.n_draws, stride)
            ax.plot(places, draws[::stride], linewidth=0.7, label=f"chain {chain + 1}")
        ax.set_xlabel("draw")
        ax.set_ylabel("log posterior, nats")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8.5, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
        return ax

    def to_inference_data(self) -> Any:  # Any: InferenceData or DataTree, by ArviZ's version
        """Return the draws for ArviZ; see `bayescascade.model.trace.Trace.to_inference_data`."""
        check_is_fitted(self)
        return self.run_.to_inference_data()


def _share_bars(shares: Mapping[str, Mapping[str, float]]) -> list[Bar]:
    """Return a heading and bars for every kind of shares; sizes in their order."""
    bars: list[Bar] = []
    for title, told in shares.items():
        kept = [(name, share) for name, share in told.items() if share >= _LEAST_SHARE]
        listed = kept[:_MOST_SHARES]
        if not listed:  # such as no column that is used
            continue
        if all(name.isdecimal() for name, _ in listed):
            listed.sort(key=lambda item: int(item[0]))
        n_left_out = len(kept) - len(listed)
        bars.append(Bar(f"{title}, and {n_left_out} more" if n_left_out else title))
        color = f"C{sum(not bar.parts for bar in bars) - 1}"
        bars += [Bar(name, (share,), f"{share:.2f}", (color,)) for name, share in listed]
    return bars
