"""Estimators over tables: search, sample, average over draws, print, save and load.

A family subclasses `PosteriorEstimator`, or `DensityEstimator` for densities, and implements the
hooks: abstract methods that make the posterior of a table, the stored form of a state, and its
readable form.
"""

import operator
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.validation import check_choice
from bayescascade.data.declarations import Bins, Levels
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.model.draws import (
    MAX_KEPT_DRAWS,
    CountedState,
    Draws,
    Readables,
    check_times,
    none_drawn,
    thinned,
)
from bayescascade.model.explore import Solver, explore_by
from bayescascade.model.page import data_pieces, larger_draws, shares_page
from bayescascade.model.parameters import SearchParameters
from bayescascade.model.posterior import TablePosterior
from bayescascade.model.readable_model import ReadableModel, plot_learned
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.rounds import OF_CHAINS, Rounds
from bayescascade.model.sampled import HasDraws
from bayescascade.model.search import Search, default_steps, most_blocks
from bayescascade.model.sentences import doubt_sentences
from bayescascade.model.solution import Solution
from bayescascade.model.summary import FitSummary
from bayescascade.model.view import View
from bayescascade.report.page import Page, Pieces, count_of
from bayescascade.report.printed import Pictured

_TOLERANCE = 1e-6  # of the stored log posterior, or total weight, and that of the counts
S = TypeVar("S")
C = TypeVar("C", bound=CountedState)
L = TypeVar("L", bound=Pictured)


@dataclass(eq=False, repr=False, kw_only=True)
class PosteriorEstimator(HasDraws, ReadableModel, Generic[S, C, L]):
    """An estimator that explores a posterior over states S, whose readable form is L.

    Subclasses document the parameters. Those here are for the search and for reading columns. C is
    the form in which states are stored.

    Attributes
    ----------
    model_name : str
        Name of the class in files and traces.
    title : str
        Title in prints, such as "leaf cascade".
    learned_name : str
        Name of the learned object: the field of a saved file and, with a "_", the attribute.
    size_name : str
        Name of the trace of the size of a state, and of this attribute of the learned object.
    size_words : (str, str)
        The counted thing, singular and plural, such as "leaf" and "leaves".
    """

    title: ClassVar[str]
    learned_name: ClassVar[str]
    size_name: ClassVar[str]
    size_words: ClassVar[tuple[str, str]]

    _n_replicas: ClassVar[int] = 6  # temperatures of search "tempering"
    _drawless_searches: ClassVar[Sequence[str]] = ("anneal",)
    _most_draws: ClassVar[int] = MAX_KEPT_DRAWS

    until: str = SearchParameters.until.default
    nominal: Levels = None
    ordinal: Levels = None
    continuous: Bins = None
    missing: str = "level"

    posterior_: TablePosterior[S] = field(init=False)

    # -- hooks that every estimator implements
    # -------------------------------------------------------

    @abstractmethod
    def _make_posterior(self, table: Table) -> TablePosterior[S]:
        """Return the posterior given a table."""

    @abstractmethod
    def _count(self, state: S) -> C:
        """Return a state with its weights, by `posterior_`."""

    @abstractmethod
    def _readable(self, counted: C) -> L:
        """Return the readable form of a state, by `schema_` and the parameters."""

    @abstractmethod
    def _read_counted(self, record: Mapping[str, Any]) -> C:
        """Return the state of a record of `CountedState.to_record`, checked; see `_restore`."""

    @abstractmethod
    def _log_density(self, counted: C) -> float:
        """Return the log posterior density of a state by its weights, nats."""

    @abstractmethod
    def _solve(self, posterior: Any, search: Search) -> Solution[S]:  # Any: the family's own
        """Find the most probable state with a proof; TooLargeError beyond the limits."""

    # -- hooks with a default ----------------------------------------------------------

    def _default_steps(self, table: Table) -> int:
        """Return the default steps per chain and phase."""
        return default_steps(table.n_distinct)

    def _n_blocks(self, table: Table) -> int:
        """Return the number of temperatures of an annealing, and of draws per chain."""
        return most_blocks(table.n_distinct, self.n_steps)

    def _rounds(self, table: Table) -> Rounds:
        """Return the limits of rounds until chains agree."""
        del table
        return OF_CHAINS

    def _starts(self, posterior: Any) -> Sequence[S] | None:  # Any: the family's own
        """Return the start of each chain, or None for the posterior's own starts."""
        del posterior
        return None

    def _prepare_chains(self, posterior: Any) -> None:
        """Prepare a posterior for chains; does nothing by default."""

    def _keep(self, drawn: Sequence[S]) -> Draws[C]:
        """Return the draws that are kept and saved."""
        times = Counter(drawn)
        return Draws([self._count(state) for state in times], list(times.values()))

    def _readable_draws(self, counted: Sequence[C]) -> Sequence[L]:
        """Return the readable form of each of some states."""
        return [self._readable(draw) for draw in counted]

    def _draws_record(self) -> Any:  # Any: plain JSON types
        """Return the kept draws as a record for `_read_draws`."""
        draws = zip(*self._draws, strict=True)
        return [{**counted.to_record(), "times": times} for counted, times in draws]

    def _read_draws(self, record: Any, total: float) -> Draws[C]:
        """Return the draws of a `_draws_record`, for rows of this weight; see `_read_counted`."""
        times = [check_times(draw["times"]) for draw in record]
        counted = [self._read_counted(draw) for draw in record]
        for one in counted:
            if not abs(one.total - total) <= _TOLERANCE * total:
                raise ModelFileError(f"a draw's counts must sum up to {total!r}, got {one.total!r}")
        return Draws(counted, times)

    def _quick_state(self, posterior: Any) -> S | None:
        """Return a state in case Ctrl-C comes before a search has one, or None."""
        del posterior
        return None

    @property
    def draws_states(self) -> bool:
        """Whether the search draws from the posterior."""
        return self.search not in self._drawless_searches

    # -- fitting -----------------------------------------------------------------------------------

    def check_parameters(self) -> Search:
        """Return the search settings; raises ParameterError if a parameter is out of its range."""
        search = self._checked()
        check_choice("missing", self.missing, ("error", "level"))
        if self.predictive == "average" and not self.draws_states:
            raise ParameterError(
                f'predictive must be "map" with search "{self.search}", which draws nothing to '
                'average over, got "average"'
            )
        return search

    def _fit_table(self, table: Table, search: Search, solve: Solver[S] | None = None) -> None:
        """Search the posterior given a table, and set the attributes of the result."""
        found = explore_by(
            search,
            self._make_posterior(table),
            solve=solve or self._solve,
            starts=self._starts,
            prepare=self._prepare_chains,
            quickly=self._quick_state,
            default_steps=self._default_steps(table),
            n_blocks=self._n_blocks(table),
            n_replicas=self._n_replicas,
            rounds=self._rounds(table),
            title=self.title,
            parameter_words=", ".join(self._parameter_words()),
            settings={"model": self.model_name},
        )
        self._take(found)
        self._set_features(self.posterior_.schema)
        self._best = self._count(found.state)
        self._readables = Readables()
        self.__dict__.pop("_draws", None)  # of an earlier fit

    # -- what was learned --------------------------------------------------------------------------

    plot = plot_learned

    @property
    def learned_(self) -> L:
        """The most probable state found; the model also has it under a specific name."""
        check_is_fitted(self, "_best")
        return self._readable(self._best)

    @cached_property
    def _draws(self) -> Draws[C]:
        """Posterior draws with their weights, up to `_most_draws`."""
        return self._keep(thinned(self.run_.draws, self._most_draws))

    def _drawn(self) -> tuple[Sequence[L], Floats]:
        """Return the readable form of each distinct draw, and its share of the draws."""
        counted, shares = self._drawn_counted()
        parameters = [vars(self)[name] for name in self._get_param_names()]
        kept = self._readables
        if not kept.parameters or not all(map(operator.is_, kept.parameters, parameters)):
            kept.draws, kept.typical = self._readable_draws(counted), None
            kept.parameters = parameters
        return kept.draws, shares

    def _drawn_counted(self) -> tuple[Sequence[C], Floats]:
        """Return each distinct draw with its weights, and its share of the draws.

        If the search ended before it drew any, this is only the best state found.
        """
        counted, times = self._draws
        if not times and self.summary_.is_partial:
            return [self._best], np.ones(1)
        if not times:
            raise none_drawn()
        weights = np.array(times, np.float64)
        return counted, weights / weights.sum()

    def _model_words(self) -> str:
        """Return the name of the model and its parameters."""
        return ", ".join([self.title, *self._model_pieces()])

    def view(self) -> View:
        """Return data, search, convergence, columns, the learned object and the posterior."""
        learned = self.learned_
        summary, word, plural = self.summary_, self.learned_word, self.size_words[1]
        held_out: Page = () if summary.held_out is None else summary.held_out.page()
        own, best = (getattr(one, self.size_name) for one in (learned, self._readable(self._best)))
        data, size = self._data_pieces(), count_of(own, *self.size_words)
        drawn = "tempered" if summary.is_tempered else "posterior"
        what = "What is shown" if self._shows_best else f"The best {word}, which is not shown,"
        source = [f"The rows are those of {summary.source}."] if summary.source else []
        view = super().view()
        return view._replace(
            heading=data,
            made=(*held_out, Pieces([self._model_words()])),
            found=self._found_page([count_of(best, *self.size_words)]),
            are_listed=True,
            shown=learned.page(),
            draws=(
                *shares_page(summary.shares, summary.as_best, drawn),
                *larger_draws(summary.shares.get(plural, {}), word, plural, own),
            ),
            facts=[*(data[1:] if summary.source else data), size],
            doubts=doubt_sentences(summary, word, self.size_words, own, best=what),
            source=[*source, *summary.notes],
        )

    @property
    def _shows_best(self) -> bool:
        """Whether the shown state is the best one found."""
        return True

    def _data_pieces(self) -> list[str]:
        return data_pieces(self.summary_, self.schema_)

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, data, convergence, posterior and learned object as plain data."""
        parameters = self.get_params()
        return {
            "model": self.model_name,
            "parameters": {k: v for k, v in parameters.items() if k not in NOT_SAVED},
            "summary": {**self.summary_.to_dict(), "warnings": self.summary_.warnings},
            **self.schema_.to_dict(),
            "log_posterior": self.log_posterior_,
            **self.learned_.to_dict(),
        }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_best")

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__()}
        if "_readables" in state:  # these can be computed again
            state["_readables"] = Readables()
        return state

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        draws = self._draws_record()  # first, because it may add a note to the summary
        return {
            "schema": self.schema_.to_dict(),
            **super()._fields(),
            "log_posterior": self.log_posterior_,
            self.learned_name: self._best.to_record(),
            "summary": self.summary_.to_dict(),
            "draws": draws,
        }

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        self._set_features(Schema.from_dict(record["schema"]))

    def _restore(self, record: Mapping[str, Any]) -> None:
        self.check_parameters()
        super()._restore(record)
        best = self._read_counted(record[self.learned_name])
        draws = self._read_draws(record["draws"], best.total)
        log_posterior = float(record["log_posterior"])
        self.summary_ = FitSummary.from_dict(record["summary"])
        for size in self.summary_.shares.get(self.size_words[1], {}):
            if not size.isdecimal():
                raise ModelFileError(f"a saved model's sizes must be integers, got {size!r}")
        with np.errstate(over="ignore", invalid="ignore"):  # absurd counts give NaN
            computed = self._log_density(best)
        if not abs(computed - log_posterior) <= _TOLERANCE * (1 + abs(computed)):
            raise ModelFileError(
                f"a saved model's log posterior must follow from its counts, {computed!r}, "
                f"got {log_posterior!r}"
            )
        self._best, self._draws, self.log_posterior_ = best, draws, log_posterior
        self._readables = Readables()
