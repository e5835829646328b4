"""The draws of a search: a run of `samplers` with a legend of its traces."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bayescascade.base.arrays import Flags, Integers
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.files import replaced_file, seal
from bayescascade.model.diagnostics import Diagnostic, diagnose_array
from bayescascade.model.trace import Trace
from samplers import Run

S = TypeVar("S")

_NOT_PARAMETERS = (
    "log_density",
    "acceptance_rate",
    "inverse_temperature",
    "best_log_density",
    "log_prior",
)
"""Traces of the progress of a chain, not of its states."""


@dataclass(frozen=True, slots=True)
class TraceLegend:
    """The meaning of a posterior's traces; each part may be left out."""

    # the traced size of a state, an integer, such as "n_leaves"
    size: str | None = None
    # reported with every fit, besides the log posterior; by default the size, otherwise all traces
    diagnosed: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # names of the columns that a state may use
    # state to the indices of the columns that it uses; can be pickled
    columns_of: Callable[[Any], Sequence[int]] | None = None  # Any: a state of the posterior
    # by trace of codes, such as "first_feature": labels of codes >= 0, negative ones are for
    # none; can be pickled
    labels: Mapping[str, Callable[[int], str]] = field(default_factory=dict)
    # names of quantities that differ from `trace_words`
    words: Mapping[str, str] = field(default_factory=dict)
    # state to the contents of its parts, hashable, by name; None for an empty part. States of the
    # same contents are equivalent, even if their parts have other names.
    parts_of: Callable[[Any], Mapping[str, Hashable]] | None = None  # Any: a state

    def diagnosed_of(self, traces: Mapping[str, Any]) -> list[str]:
        """Return the traces whose convergence is checked, the log density first."""
        named = self.diagnosed or ((self.size,) if self.size else tuple(traces))
        rest = (name for name in named if name not in (*_NOT_PARAMETERS, *self.labels))
        return ["log_density", *rest]


@dataclass(frozen=True, kw_only=True, eq=False)
class PosteriorRun(Run[S]):
    """A run with the legend of its traces, and export to ArviZ.

    Attributes
    ----------
    legend : TraceLegend
    settings : mapping of str to str, int, float or None
        Facts on the fit for the trace file: model, search, source, parameters.
    title, parameter_words : str
        Title of the model, and its parameters in words.
    """

    legend: TraceLegend = field(compare=False, repr=False)
    settings: Mapping[str, Any]
    title: str = ""
    parameter_words: str = ""

    @classmethod
    def of(cls, run: Run[S], **known: Any) -> "PosteriorRun[S]":
        """Return a run with the additional fields of this class."""
        return cls(**{part.name: getattr(run, part.name) for part in fields(run)}, **known)

    @cached_property
    def trace(self) -> Trace:
        """The traces of all draws."""
        described = {k: trace for k, trace in self.traces.items() if k not in _NOT_PARAMETERS}
        coded = [name for name in self.legend.labels if name in described]
        quantities = {"log_posterior": self.traces["log_density"]}
        stats = {"acceptance_rate": self.traces["acceptance_rate"]}
        if "log_prior" in self.traces:
            stats["log_prior"] = self.traces["log_prior"]
            quantities["log_likelihood"] = self.traces["log_density"] - self.traces["log_prior"]
        settings = {k: "none" if value is None else value for k, value in self.settings.items()}
        return Trace(
            quantities=quantities | {k: t for k, t in described.items() if k not in coded},
            size=self.legend.size,
            codes={name: described[name].astype(np.int64) for name in coded},
            labels={name: self._labels(name) for name in coded},
            feature_used=self._column_use(),
            columns=self.legend.columns,
            stats=stats,
            proposed=dict(self.proposed),
            accepted=dict(self.accepted),
            settings={**settings, "engine": self.method, "interrupted": int(self.interrupted)},
            words=self.legend.words,
            title=self.title,
            parameter_words=self.parameter_words,
        )

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return R-hat and effective sample size of the log posterior and of other quantities."""
        size, quantities = self.legend.size, self.trace.quantities
        named = self.legend.diagnosed or ((size,) if size else tuple(quantities))
        names = dict.fromkeys(("log_posterior", *named))
        return {name: diagnose_array(quantities[name]) for name in names}

    def to_inference_data(self) -> Any:  # Any: InferenceData or DataTree, by ArviZ's version
        """Return the run for ArviZ; see `Trace.to_inference_data`."""
        return self.trace.to_inference_data()

    def save_trace(self, path: str | Path) -> None:
        """Write `to_inference_data` as netCDF; `path` is replaced only when it is complete.

        A checksum follows the last byte of netCDF, so `diagnose` can detect damage.
        """
        data = self.to_inference_data()
        with replaced_file(path) as temporary:
            data.to_netcdf(str(temporary), engine="h5netcdf")
            seal(temporary)

    def shares_as_best(self) -> dict[str, float]:
        """Return shares of the draws that agree with the best state, in part or completely.

        "every part": draws with the same parts, possibly in other words or another order. "every
        word": draws that equal the state. Then, by name, draws that have this part, for each part
        that is not empty. Empty if states have no parts.
        """
        if self.legend.parts_of is None:
            return {}
        best = self.legend.parts_of(self.best_state)
        every = _contents(best)
        times = Counter(state for chain in self.draws for state in chain)
        holding = {name: part for name, part in best.items() if part is not None}
        shares = dict.fromkeys(("every part", "every word", *holding), 0.0)
        for state, n in times.items():
            contents = _contents(self.legend.parts_of(state))
            shares["every part"] += n * (contents == every)
            for name, part in holding.items():
                shares[name] += n * (part in contents)
        shares["every word"] = times[self.best_state]
        return {name: n / max(times.total(), 1) for name, n in shares.items()}

    def _labels(self, name: str) -> dict[int, str]:
        codes = np.unique(self.traces[name]).astype(np.int64).tolist()
        return {code: self.legend.labels[name](code) for code in codes if code >= 0}

    def _column_use(self) -> Flags:
        columns_of = self.legend.columns_of
        n_draws = min((len(chain) for chain in self.draws), default=0) if columns_of else 0
        used = np.zeros((len(self.draws), n_draws, len(self.legend.columns)), np.bool_)
        for chain, states in enumerate(self.draws):
            for draw, state in enumerate(states[:n_draws]):
                assert columns_of is not None, "there are no draws without it"
                used[chain, draw, list(columns_of(state))] = True
        return used


def _contents(parts: Mapping[str, Hashable]) -> frozenset[Hashable]:
    """Return the contents of parts that are not empty."""
    return frozenset(part for part in parts.values() if part is not None)


MAX_KEPT_DRAWS = 1000  # states for `predictive="average"` and in a saved model

_MAX_TIMES = 1 << 53


class CountedState(Protocol):
    """A state with the weights of the rows in its parts, which replace the data."""

    @property
    def total(self) -> float:
        """Weight of all rows."""

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types, without the key "times"."""


C = TypeVar("C", bound=CountedState)
State = TypeVar("State")


class Draws(NamedTuple, Generic[C]):
    """Distinct states drawn from the posterior, with their weights and counts."""

    counted: Sequence[C]
    times: Sequence[int]


class Readables:
    """The readable forms of the draws, and the parameters that they depend on.

    A model has this object from its fit, because scikit-learn forbids new attributes in
    predictions.
    """

    parameters: Sequence[Any] = ()
    draws: Sequence[Any] = ()
    typical: int | None = None  # position of the typical draw, once computed


def even_places(n: int, most: int) -> Integers:
    """Return positions among `n` >= 0 at even distances, at most `most` of them, ascending."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)


def thinned(chains: Sequence[Sequence[State]], most: int = MAX_KEPT_DRAWS) -> list[State]:
    """Return at most `most` draws of all chains, one chain after the other, at even distances."""
    drawn = [state for chain in chains for state in chain]
    return [drawn[place] for place in even_places(len(drawn), most)]


def none_drawn() -> ParameterError:
    """Return the error for an average without draws."""
    return ParameterError('predictive must be "map" for a model without draws, got "average"')


def check_times(times: object) -> int:
    """Return a saved state's number of draws; ModelFileError if it is none."""
    if type(times) is not int or not 1 <= times <= _MAX_TIMES:
        raise ModelFileError(f"a draw's times must be an integer >= 1, got {times!r}")
    return times
