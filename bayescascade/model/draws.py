"""The draws of a search as arrays: what is traced, how well it converged, ArviZ's form, and files.

A run of `samplers` becomes a `PosteriorRun`, which knows by a `TraceLegend` what its traces mean.
Its `trace` is what reports read; ArviZ's object and a trace file hold the same, and give it back.
R-hat and the effective sample size come from ``arviz_stats``, ArviZ's own and light to import;
ArviZ itself is imported only to make an ``InferenceData`` (ArviZ 0.x) or ``DataTree`` (1.x).
"""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.base.files import replaced_file
from bayescascade.model.page import shares_page
from bayescascade.report.numbers import diagnostic_text, nats_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, Table, warning
from bayescascade.report.printed import Printed
from samplers import Run

__all__ = [
    "COLUMNS_USED",
    "ESS_FLOOR",
    "RHAT_CEILING",
    "Diagnostic",
    "PosteriorRun",
    "ProvidesLegend",
    "Trace",
    "TraceLegend",
    "convergence_advice",
    "diagnose_array",
    "read_trace",
    "trace_words",
]

S = TypeVar("S")

RHAT_CEILING = 1.01
ESS_FLOOR = 400.0

COLUMNS_USED = "columns used"

_NOT_PARAMETERS = (
    "log_density",
    "acceptance_rate",
    "inverse_temperature",
    "best_log_density",
    "log_prior",
)
"""Traces that say how a chain fares, not what its states are."""

_STATS = ("log_prior", "acceptance_rate")

_NO_PARAMETERS = ("model", "search", "source", "engine", "interrupted")
"""Settings that say how a model was fitted."""

_SIZES_OF_0_1 = ("n_leaves", "n_rules")
_WORDS_OF_0_1 = {"first_feature": "first split"}
_LEGEND = ("size", "quantities", "words", "title", "told")  # attributes of a file, no settings


def trace_words(name: str) -> str:
    """Return what a traced quantity is called unless its posterior says otherwise.

    Such as "log posterior" for "log_posterior" and "leaves" for "n_leaves".
    """
    return COLUMNS_USED if name == "n_features" else name.removeprefix("n_").replace("_", " ")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Convergence of one traced quantity.

    Parameters
    ----------
    mean, sd : float
        Over all draws of all chains.
    r_hat : float
        Rank-normalized split R-hat; 1 when the quantity never varies, NaN with fewer than 4 draws.
    ess : float
        Bulk effective sample size; the number of draws when the quantity never varies.
    """

    mean: float
    sd: float
    r_hat: float
    ess: float

    @property
    def is_fine(self) -> bool:
        """Whether R-hat is at most 1.01 and the effective sample size at least 400."""
        return self.r_hat <= RHAT_CEILING and self.ess >= ESS_FLOOR


def convergence_advice(search: object) -> str:
    """Return what to do where a diagnostic is not fine, given the search that was run."""
    longer = "run longer chains (n_steps, --steps)"
    if search == "tempering":
        return longer
    return f'{longer} or search="tempering" (--search tempering)'


def diagnose_array(draws: NDArray[np.float64]) -> Diagnostic:
    """Return the diagnostics of (n_chains, n_draws) draws of one quantity."""
    from arviz_stats import base

    array_stats: Any = base.array_stats  # type: ignore[attr-defined] # untyped
    mean, sd = float(np.mean(draws)), float(np.std(draws))
    if draws.shape[1] < 4:
        return Diagnostic(mean, sd, float("nan"), float("nan"))
    if np.ptp(draws) == 0.0:
        return Diagnostic(mean, sd, 1.0, float(draws.size))
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # chains that each stand still: inf
        r_hat, ess = float(array_stats.rhat(draws)), float(array_stats.ess(draws))
    return Diagnostic(mean, sd, r_hat, ess)


@dataclass(frozen=True, slots=True)
class TraceLegend:
    """What the traces of a posterior mean; every part may be left out.

    Parameters
    ----------
    size : str or None
        The traced quantity that says how large a state is, a whole number, such as "n_leaves".
    diagnosed : tuple of str
        The quantities whose convergence is reported with every fit, beside the log posterior; by
        default the size or, where there is none, all that is traced.
    columns : tuple of str
        Names of the columns that a state may use.
    columns_of : callable or None
        State to the indices of the columns that it uses.
    labels : mapping of str to callable
        For each trace of codes, such as "first_feature", from a code >= 0 to what it stands for;
        negative codes stand for none. Like `columns_of`, they can be pickled.
    words : mapping of str to str
        What quantities are called where `trace_words` does not say it.
    """

    size: str | None = None
    diagnosed: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    columns_of: Callable[[Any], Sequence[int]] | None = None  # Any: a state of the posterior
    labels: Mapping[str, Callable[[int], str]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class ProvidesLegend(Protocol):
    """A posterior that says what its traces mean."""

    def legend(self) -> TraceLegend:
        """Return the legend of what `describe` names."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class PosteriorRun(Run[S]):
    """A run that knows what its traces mean, and speaks ArviZ.

    Attributes
    ----------
    legend : TraceLegend
    settings : mapping of str to str, int, float or None
        What the trace file should say about the fit: model, search, source, parameters.
    title, told : str
        What the model is called, and its parameters in words.
    """

    legend: TraceLegend = field(compare=False, repr=False)
    settings: Mapping[str, Any]
    title: str = ""
    told: str = ""

    @classmethod
    def of(
        cls,
        run: Run[S],
        legend: TraceLegend,
        settings: Mapping[str, Any],
        title: str = "",
        told: str = "",
    ) -> "PosteriorRun[S]":
        """Return the run with what reporting needs."""
        found = {part.name: getattr(run, part.name) for part in fields(run)}
        return cls(**found, legend=legend, settings=settings, title=title, told=told)

    @cached_property
    def trace(self) -> "Trace":
        """What was traced of each draw."""
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
            told=self.told,
        )

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return R-hat and effective sample size of the log posterior and what is diagnosed."""
        size, quantities = self.legend.size, self.trace.quantities
        named = self.legend.diagnosed or ((size,) if size else tuple(quantities))
        names = dict.fromkeys(("log_posterior", *named))
        return {name: diagnose_array(quantities[name]) for name in names}

    def to_inference_data(self) -> Any:  # Any: InferenceData or DataTree, by ArviZ's version
        """Return the run for ArviZ; see `Trace.to_inference_data`."""
        return self.trace.to_inference_data()

    def save_trace(self, path: str | Path) -> None:
        """Write `to_inference_data` as netCDF, replacing `path` only when all is written."""
        data = self.to_inference_data()
        with replaced_file(path) as temporary:
            data.to_netcdf(str(temporary), engine="h5netcdf")

    def _labels(self, name: str) -> dict[int, str]:
        codes = np.unique(self.traces[name]).astype(np.int64).tolist()
        return {code: self.legend.labels[name](code) for code in codes if code >= 0}

    def _column_use(self) -> NDArray[np.bool_]:
        columns_of = self.legend.columns_of
        n_draws = min((len(chain) for chain in self.draws), default=0) if columns_of else 0
        used = np.zeros((len(self.draws), n_draws, len(self.legend.columns)), np.bool_)
        for chain, states in enumerate(self.draws):
            for draw, state in enumerate(states[:n_draws]):
                assert columns_of is not None, "there are no draws without it"
                used[chain, draw, list(columns_of(state))] = True
        return used


@dataclass(frozen=True, eq=False)
class Trace(Printed):
    """What was traced of each draw.

    Parameters
    ----------
    quantities : mapping of str to (n_chains, n_draws) float64
        "log_posterior", nats, "log_likelihood" where the posterior tells its prior apart, and the
        numbers that describe a state.
    size : str or None
        The quantity that says how large a state is, such as "n_leaves".
    codes : mapping of str to (n_chains, n_draws) int64
        Traces of codes, such as "first_feature", the column that the root splits.
    labels : mapping of str to mapping of int to str
        For each of them, what the codes >= 0 that occur stand for; others stand for none.
    feature_used : (n_chains, n_draws, n_columns) bool
        Which columns each draw uses; no draws if none were kept.
    columns : tuple of str
        Names of the columns, as far as known.
    stats : mapping of str to (n_chains, n_draws) float64
        How chains fare: "acceptance_rate" since the draw before, and "log_prior", nats, if known.
    proposed, accepted : mapping of str to (n_chains, n_draws) int64
        How often each move was tried and accepted since the draw before; empty of independent
        draws.
    settings : mapping of str to str or number
        What the fit was: model, parameters, search, source, engine.
    words : mapping of str to str
        What quantities are called where `trace_words` does not say it.
    title, told : str
        What the model is called, and its parameters in words; empty if the file does not say.
    """

    quantities: Mapping[str, NDArray[np.float64]]
    size: str | None
    codes: Mapping[str, NDArray[np.int64]]
    labels: Mapping[str, Mapping[int, str]]
    feature_used: NDArray[np.bool_]
    columns: tuple[str, ...]
    stats: Mapping[str, NDArray[np.float64]]
    proposed: Mapping[str, NDArray[np.int64]]
    accepted: Mapping[str, NDArray[np.int64]]
    settings: Mapping[str, Any]
    words: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    told: str = ""

    @classmethod
    def of(cls, data: Any) -> "Trace":
        """Return the trace of a `PosteriorRun`, or of what its `to_inference_data` makes.

        Parameters
        ----------
        data : PosteriorRun, Trace, arviz.InferenceData or xarray.DataTree

        Raises
        ------
        DataError
            If groups or variables are missing.
        """
        if isinstance(data, Trace):
            return data
        if isinstance(data, PosteriorRun):
            return data.trace
        try:
            attributes = {
                str(name): value.item() if isinstance(value, np.generic) else value
                for name, value in data.attrs.items()
            }
            return _trace_of_groups(data["posterior"], data["sample_stats"], attributes)
        except KeyError as error:
            raise DataError(f"not the trace of a fit: it has no {error}") from None
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            raise DataError(f"not the trace of a fit: {error}") from None

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return int(self.quantities["log_posterior"].shape[0])

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return int(self.quantities["log_posterior"].shape[1])

    @property
    def is_sample(self) -> bool:
        """Whether these are draws from the posterior, not the path of an annealing."""
        return self.settings.get("engine") != "anneal" and self.n_draws > 0

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of each move's proposals that were accepted; NaN if it was never tried."""
        tried = {name: int(counts.sum()) for name, counts in self.proposed.items()}
        return {
            name: int(self.accepted[name].sum()) / n if n else math.nan for name, n in tried.items()
        }

    def page(self) -> Page:
        """Return how well the posterior was explored: convergence, moves, sizes and columns."""
        settings = self.settings
        heading = [
            self.title or str(settings.get("model", "unknown model")),
            f"search {settings.get('search', 'unknown')}",
            f"{self.n_chains} x {self.n_draws:,} {'draws' if self.is_sample else 'temperatures'}",
        ]
        if settings.get("source"):
            heading.insert(0, str(settings["source"]))
        own = (f"{k} {v}" for k, v in settings.items() if k not in _NO_PARAMETERS and v != "none")
        told = self.told or ", ".join(own)  # files of version 0.1 have settings only
        page: Page = (Heading(heading), *((Pieces([told]),) if told else ()))
        if settings.get("interrupted"):
            page += (warning("interrupted: the search was ended early"),)
        if self.is_sample:
            page += (BLANK, *self._diagnostics_page())
        else:
            path = "no draws from the posterior: this is the path of an annealing"
            page += (BLANK, Pieces([path]))
        rates = [
            f"{move} {'never tried' if math.isnan(rate) else f'{rate:.3f}'}"
            for move, rate in self.acceptance.items()
        ]
        page += (BLANK, *((Pieces(rates, indent=12, first="accepted".ljust(12)),) if rates else ()))
        if not self.is_sample:
            return page
        shares = self.shares()
        if COLUMNS_USED in shares:
            by_name = sorted(shares[COLUMNS_USED].items())
            shares[COLUMNS_USED] = dict(sorted(by_name, key=lambda item: -item[1]))
        return (*page, *shares_page(shares))

    def _diagnostics_page(self) -> Page:
        """Return a table of the traced quantities, and what is wrong with them."""
        diagnostics = self.diagnostics()
        found = list(diagnostics.values())
        table = Table(
            [self.words_of(name) for name in diagnostics],
            [
                Numbers("mean", [nats_text(d.mean) for d in found]),
                Numbers("sd", [f"{d.sd:,.2f}" for d in found]),
                Numbers("R-hat", [diagnostic_text(d.r_hat, 3) for d in found]),
                Numbers("ESS", [diagnostic_text(d.ess, 0) for d in found]),
            ],
            styles=["" if d.is_fine else "warning" for d in found],
        )
        advice = (
            "warning: R-hat should be at most 1.01 and ESS at least 400: "
            f"{convergence_advice(self.settings.get('search'))}, and compare the chains' traces "
            "(--plots)"
        )
        return (table,) if all(d.is_fine for d in found) else (table, warning(advice))

    def record(self) -> dict[str, Any]:
        """Return what the trace says, at full precision as plain data."""
        record: dict[str, Any] = {
            "settings": dict(self.settings),
            "n_chains": self.n_chains,
            "n_draws": self.n_draws,
            "acceptance": dict(self.acceptance),
        }
        if self.is_sample:
            diagnostics = {name: asdict(d) for name, d in self.diagnostics().items()}
            record |= {"diagnostics": diagnostics, "shares": self.shares()}
        return record

    def words_of(self, name: str) -> str:
        """Return what a quantity is called."""
        return self.words.get(name, trace_words(name))

    @property
    def main(self) -> list[str]:
        """The quantities that say most: log posterior and size, or all where there is no size."""
        return ["log_posterior", self.size] if self.size else list(self.quantities)

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return mean, standard deviation, R-hat and effective sample size of each quantity."""
        return {name: diagnose_array(draws) for name, draws in self.quantities.items()}

    def shares(self) -> dict[str, dict[str, float]]:
        """Return shares of the draws by title and label, largest first.

        The titles are what the size counts ("leaves", "rules"), what the traces of codes are called
        ("first split", "first rule"), and "columns used", equal ones of these in the table's order.
        """
        shares = {}
        if self.size is not None:
            sizes = self.quantities[self.size].astype(np.int64)
            shares[self.words_of(self.size)] = _shares(sizes)
        for name, codes in self.codes.items():
            labels = self.labels[name]
            words = [labels[code] if code >= 0 else "none" for code in codes.ravel().tolist()]
            shares[self.words_of(name)] = _shares(np.array(words, np.str_))
        if self.feature_used.shape[1]:
            used = zip(self.columns, self.feature_used.mean(axis=(0, 1)).tolist(), strict=True)
            shares[COLUMNS_USED] = dict(sorted(used, key=lambda item: -item[1]))
        return shares

    def to_inference_data(self) -> Any:  # Any: InferenceData or DataTree, by ArviZ's version
        """Return the trace for ArviZ.

        Group ``posterior`` has what the posterior's `describe` says of a state (without its log
        prior) and ``feature_used`` per column. A trace of codes, such as ``first_feature`` (the
        column split first, -1 for none), is told by the coordinates ``first_feature_code`` and
        ``first_feature_label``. Group ``sample_stats`` has ``lp`` (log posterior, nats),
        ``log_likelihood`` and ``log_prior`` where these are known, ``acceptance_rate`` and, per
        move, ``proposed`` and ``accepted`` since the draw before.
        """
        named = dict(self.quantities)
        stats: dict[str, NDArray[Any]] = {"lp": named.pop("log_posterior")}
        if "log_likelihood" in named:
            stats["log_likelihood"] = named.pop("log_likelihood")
        stats |= {
            name: self.stats[name]
            for name in ("log_prior", "acceptance_rate")
            if name in self.stats
        }
        posterior: dict[str, NDArray[Any]] = {
            **named,
            **{name: codes.astype(np.float64) for name, codes in self.codes.items()},
        }
        if not posterior:  # ArviZ knows no posterior of nothing
            posterior["log_density"] = stats["lp"]
        dims: dict[str, list[str]] = {}
        coords: dict[str, Sequence[str]] = {}
        if self.feature_used.shape[1]:
            posterior["feature_used"] = self.feature_used.astype(np.int8)
            dims["feature_used"] = ["feature"]
            coords["feature"] = list(self.columns)
        if self.proposed:
            dims |= {"proposed": ["move"], "accepted": ["move"]}
            coords["move"] = list(self.proposed)
            for name, counts in (("proposed", self.proposed), ("accepted", self.accepted)):
                stats[name] = np.stack(list(counts.values()), axis=-1)
        legend = {
            "size": self.size or "",
            "quantities": " ".join(named),
            "words": json.dumps(dict(self.words)),
            "title": self.title,
            "told": self.told,
        }
        data = _to_arviz(posterior, stats, coords, dims, {**self.settings, **legend})
        for name, labels in self.labels.items():
            data["posterior"].coords.update(
                {
                    f"{name}_code": np.array(list(labels), np.int64),
                    f"{name}_label": (f"{name}_code", np.array(list(labels.values()), np.str_)),
                }
            )
        return data


def read_trace(path: str | Path) -> Trace:
    """Read a trace file that `PosteriorRun.save_trace` wrote.

    Raises
    ------
    DataError
        If there is no such file, or it is not the trace of a fit.
    """
    if not Path(path).is_file():
        raise DataError(f"no such file: {path}")
    arviz = import_arviz()
    try:
        data = arviz.from_netcdf(str(path))
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise DataError(f"{path} is not a trace file, or is cut short: not netCDF") from error
    try:
        return Trace.of(data)
    except DataError as error:
        raise DataError(f"{path} is {error}") from None
    finally:
        data.close()


def import_arviz() -> Any:
    """Import ArviZ without its announcement of a successor."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="arviz")
        import arviz
    return arviz


def _trace_of_groups(posterior: Any, stats: Any, attributes: Mapping[str, Any]) -> Trace:
    """Return the trace in two groups of ArviZ; files of version 0.1 have no legend."""
    coded = [str(n) for n in posterior if f"{n}_code" in posterior.coords]
    found = [str(n) for n in posterior if n not in (*coded, "feature_used", "log_density")]
    known = str(attributes.get("quantities", " ".join(sorted(found)))).split()
    if sorted(known) != sorted(found):
        raise ValueError(f"its quantities must be {', '.join(known)}, got {', '.join(found)}")
    quantities = {"log_posterior": _draws(stats["lp"])}
    if "log_likelihood" in stats:
        quantities["log_likelihood"] = _draws(stats["log_likelihood"])
    quantities |= {name: _draws(posterior[name]) for name in known}
    codes = {name: _draws(posterior[name]).astype(np.int64) for name in coded}
    kept = {name: _draws(stats[name]) for name in _STATS if name in stats}
    shape = quantities["log_posterior"].shape
    traces = [*quantities.values(), *codes.values(), *kept.values()]
    if any(len(d.shape) != 2 or d.shape != shape for d in traces):
        raise ValueError("traces must be of one shape, (n_chains, n_draws)")
    size = attributes.get("size", next((n for n in _SIZES_OF_0_1 if n in quantities), None))
    if size is None or (size and size not in quantities):
        raise KeyError(size or " or ".join(_SIZES_OF_0_1))
    columns: tuple[str, ...] = ()
    used = np.zeros((shape[0], 0, 0), np.bool_)
    if "feature_used" in posterior:
        columns = tuple(str(name) for name in posterior["feature"].values)
        used = np.asarray(posterior["feature_used"].values, np.bool_)
    counts: list[dict[str, NDArray[np.int64]]] = [{}, {}]
    if "proposed" in stats:  # not of independent draws
        moves = [str(name) for name in stats["move"].values]
        for told, name in zip(counts, ("proposed", "accepted"), strict=True):
            values = np.asarray(stats[name].values, np.int64)
            told.update({move: values[:, :, i] for i, move in enumerate(moves)})
    return Trace(
        quantities=quantities,
        size=size or None,
        codes=codes,
        labels={name: _labels(posterior, name) for name in coded},
        feature_used=used,
        columns=columns,
        stats=kept,
        proposed=counts[0],
        accepted=counts[1],
        settings={name: value for name, value in attributes.items() if name not in _LEGEND},
        words={str(k): str(v) for k, v in _words(attributes).items()},
        title=str(attributes.get("title", "")),
        told=str(attributes.get("told", "")),
    )


def _words(attributes: Mapping[str, Any]) -> Mapping[str, object]:
    words = json.loads(attributes["words"]) if "words" in attributes else _WORDS_OF_0_1
    if not isinstance(words, dict):
        raise TypeError("its words must be an object")
    return words


def _draws(variable: Any) -> NDArray[np.float64]:
    return np.asarray(variable.values, np.float64)


def _labels(posterior: Any, name: str) -> dict[int, str]:
    codes = np.asarray(posterior[f"{name}_code"].values, np.int64).tolist()
    return dict(zip(codes, map(str, posterior[f"{name}_label"].values), strict=True))


def _shares(values: NDArray[Any]) -> dict[str, float]:
    """Return the share of each value, largest first, equal ones ascending."""
    found, times = np.unique(values, return_counts=True)
    counted = zip(found.tolist(), (times / times.sum()).tolist(), strict=True)
    return {str(value): share for value, share in sorted(counted, key=lambda item: -item[1])}


def _to_arviz(
    posterior: Mapping[str, NDArray[Any]],
    sample_stats: Mapping[str, NDArray[Any]],
    coords: Mapping[str, Sequence[str]],
    dims: Mapping[str, list[str]],
    attributes: Mapping[str, Any],
) -> Any:
    """Build what this version of ArviZ calls inference data, without its time stamps."""
    arviz = import_arviz()
    common = {"coords": dict(coords), "dims": dict(dims)}
    with warnings.catch_warnings():
        # ArviZ 0.x would have pointwise log likelihoods in a group of their own; this is their sum
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        # a run that was ended early may have fewer draws than chains
        warnings.filterwarnings("ignore", "More chains", UserWarning)
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)  # 1.x
        if arviz.__version__.startswith("0."):
            data = arviz.from_dict(
                posterior=dict(posterior), sample_stats=dict(sample_stats), **common
            )
            groups = [data[name] for name in data.groups()]
        else:
            data = arviz.from_dict(
                {"posterior": dict(posterior), "sample_stats": dict(sample_stats)}, **common
            )
            groups = [data, *data.children.values()]
    for group in groups:
        group.attrs.clear()  # creation times, so that equal runs give equal files
    data.attrs.update(attributes)
    return data
