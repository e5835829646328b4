"""Shared by estimators that explore a posterior: their search, and prints of the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.errors import DataError
from bayescascade.base.parameters import Parameters
from bayescascade.model.draws import PosteriorRun
from bayescascade.model.explore import SearchResult
from bayescascade.model.parameters import SAMPLED, ChainParameters
from bayescascade.model.search import Search, Seed
from bayescascade.model.summary import FitSummary
from bayescascade.model.view import warnings_page
from bayescascade.report.axes import Bar, axes_or_new, plot_bars
from bayescascade.report.numbers import nats_text
from bayescascade.report.page import Page, Pieces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_SHARES = 8  # bars of a kind
_LEAST_SHARE = 0.005  # shares printed as 0.00
_MOST_POINTS = 2000  # of a chain


def no_rows(name: str) -> AttributeError:
    """Return the error of an attribute that a loaded model lacks."""
    return AttributeError(f"{name} needs the rows: a model that was read from a file has none")


@dataclass(eq=False, repr=False, kw_only=True)
class HasDraws:
    """An estimator that explores a posterior. Its files contain the summary.

    Its parameters are those of searches by chains. Subclasses document them, and declare those with
    other defaults.

    Attributes
    ----------
    declares : type
        The declared parameters.
    learned_word : str
        Word for the learned object, such as "tree".
    printed : tuple of str
        The parameters that are printed with a model, in this order.
    """

    declares: ClassVar[type[Parameters]]
    learned_word: ClassVar[str] = "model"
    printed: ClassVar[tuple[str, ...]] = ()

    predictive: str = ChainParameters.predictive.default
    search: str = SAMPLED[0]
    n_steps: int | None = ChainParameters.n_steps.default
    n_chains: int = ChainParameters.n_chains.default
    n_jobs: int | None = ChainParameters.n_jobs.default
    random_state: Seed = ChainParameters.random_state.default
    checkpoint: str | Path | None = ChainParameters.checkpoint.default
    resume: bool = ChainParameters.resume.default
    progress: Callable[[samplers.Progress], object] | None = None
    time_limit: float | None = ChainParameters.time_limit.default
    effort: str = ChainParameters.effort.default

    posterior_: Any = field(init=False)  # Any: the family's type
    run_: PosteriorRun[Any] = field(init=False)  # Any: states of the family
    summary_: FitSummary = field(init=False)
    log_posterior_: float = field(init=False)
    exact_: Any = field(init=False)  # the family's result of an exact search, if any

    @classmethod
    def parameter_words(cls, parameters: Mapping[str, Any]) -> list[str]:
        """Return the parameters that are `printed`, such as "expected_leaves 8".

        Parameters
        ----------
        parameters : mapping of str to object
            Values by name; None and "none" mean no value.
        """
        texts = (cls._words_of(name, parameters) for name in cls.printed if name in parameters)
        return [words for words in texts if words]

    @classmethod
    def _words_of(cls, name: str, parameters: Mapping[str, Any]) -> str:
        """Return a parameter in words; empty if it needs no mention."""
        value = parameters[name]
        if value is None or value == "none":
            return ""
        return f"{name} {value}" if isinstance(value, str) else f"{name} {value:g}"

    def _parameter_words(self) -> list[str]:
        """Return the parameters of the model in words."""
        return self.parameter_words(vars(self))

    def _model_pieces(self) -> list[str]:
        """Return the parameters in words, and a note if predictions are averages over draws."""
        return [*self._parameter_words(), *["predictive average"] * (self.predictive == "average")]

    def _checked(self) -> Search:
        """Return the search; ParameterError if a parameter is out of its range."""
        self.declares.check(self)
        self._check_model()
        return self._search()

    def _check_model(self) -> None:
        """Raise ParameterError for a combination of parameters that is not allowed."""

    def _search(self, **changed: Any) -> Search:
        """Return the search by the parameters, with some changes."""
        given = {k: v for k, v in vars(self).items() if k in Search.__dataclass_fields__}
        return Search(**{**given, **changed})

    def _take(self, found: SearchResult[Any]) -> None:
        """Keep the results of a search, except the state."""
        self.posterior_, self.run_, self.summary_ = found.posterior, found.run_, found.summary_
        self.log_posterior_ = found.log_density
        self.__dict__.pop("exact_", None)  # of an earlier fit
        if found.solution is not None:
            self.exact_ = found.solution.result

    def _found_page(self, more: Sequence[str] = (), warnings: Sequence[str] = ()) -> Page:
        """Return the search, the log posterior, `more` facts, convergence, and warnings."""
        return (
            Pieces([*self._found_pieces(), *more]),
            Pieces(self.summary_.convergence_pieces),
            *warnings_page([*self.summary_.warnings, *warnings]),
        )

    def _found_pieces(self) -> list[str]:
        """Return the search and the log posterior of the result."""
        found = self.summary_.found_words(self.learned_word)
        return [found, f"log posterior {nats_text(self.log_posterior_)}"]

    def __getattr__(self, name: str) -> Any:  # Any: missing attributes
        if name in ("posterior_", "run_", "exact_") and "summary_" in self.__dict__:
            if "run_" in self.__dict__:
                how = ", as ".join(filter(None, (self.summary_.method, self.summary_.reason)))
                raise AttributeError(f'{name} needs search "exact", got {how}')
            raise no_rows(name)
        return self.__getattribute__(name)  # raises the original error

    def plot_posterior(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a summary of the posterior draws, and return the axes.

        Bars are shares of the draws with each size, with each first split or rule, and with each
        column. If states have no sizes, there is a line per chain with the log posterior of each
        draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.

        Raises
        ------
        DataError
            If there are no draws.
        """
        check_is_fitted(self)
        if self.summary_.shares:
            return plot_bars(
                _share_bars(self.summary_.shares),
                ax,
                x_label=f"share of {self.summary_.drawn_from}",
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
    """Return a heading and bars for each kind of shares; sizes in ascending order."""
    bars: list[Bar] = []
    for title, each in shares.items():
        kept = [(name, share) for name, share in each.items() if share >= _LEAST_SHARE]
        listed = kept[:_MOST_SHARES]
        if not listed:  # for example, no column is used
            continue
        if all(name.isdecimal() for name, _ in listed):
            listed.sort(key=lambda item: int(item[0]))
        n_left_out = len(kept) - len(listed)
        bars.append(Bar(f"{title}, and {n_left_out} more" if n_left_out else title))
        color = f"C{sum(not bar.parts for bar in bars) - 1}"
        bars += [Bar(name, (share,), f"{share:.2f}", (color,)) for name, share in listed]
    return bars
