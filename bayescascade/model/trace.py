"""Traces of the draws of a search: as a page, in ArviZ's format, and in files."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import DataError
from bayescascade.base.typed_words import typed
from bayescascade.model.arviz_data import plottable, read_arviz, to_arviz
from bayescascade.model.diagnostics import Diagnostic, convergence_advice, diagnose_array
from bayescascade.model.page import shares_page
from bayescascade.report.numbers import diagnostic_text, nats_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, warning
from bayescascade.report.printed import Printed

COLUMNS_USED = "columns used"

_STATS = ("log_prior", "acceptance_rate")
_TOTAL = "total_log_likelihood"  # for ArviZ "log_likelihood" is that of single rows

_LEGEND = ("size", "quantities", "words", "title", "told")  # attributes, not settings


def trace_words(name: str) -> str:
    """Return the default name of a traced quantity, such as "leaves" for "n_leaves"."""
    return COLUMNS_USED if name == "n_features" else name.removeprefix("n_").replace("_", " ")


@dataclass(frozen=True, eq=False)
class Trace(Printed):
    """Traces of all draws; arrays are (n_chains, n_draws) unless stated otherwise."""

    # float64: "log_posterior", nats, "log_likelihood" if the posterior has a separate prior,
    # and the numbers that describe a state
    quantities: Mapping[str, Floats]
    size: str | None  # the size of a state, such as "n_leaves"
    # int64, such as "first_feature", the column of the root's split
    codes: Mapping[str, Integers]
    # by name in `codes`: labels of the codes >= 0 that occur; other codes have none
    labels: Mapping[str, Mapping[int, str]]
    feature_used: Flags  # (n_chains, n_draws, n_columns); no draws if none were kept
    columns: tuple[str, ...]  # names, if known
    # float64: "acceptance_rate" since the last draw, and "log_prior", nats, if known
    stats: Mapping[str, Floats]
    # int64, counts of each move, tried and accepted, since the last draw; empty for independent
    # draws
    proposed: Mapping[str, Integers]
    accepted: Mapping[str, Integers]
    settings: Mapping[str, Any]  # facts on the fit: model, parameters, search, source, engine
    # names of quantities that differ from `trace_words`
    words: Mapping[str, str] = field(default_factory=dict)
    title: str = ""  # name of the model; empty if the file does not have it, like `parameter_words`
    parameter_words: str = ""  # its parameters in words

    @classmethod
    def of(cls, data: Any) -> "Trace":
        """Return the trace of a `PosteriorRun`, or of the result of its `to_inference_data`.

        data: PosteriorRun, Trace, arviz.InferenceData or xarray.DataTree. DataError if groups or
        variables are missing.
        """
        trace = getattr(data, "trace", data)
        if isinstance(trace, Trace):
            return trace
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
        """Number of draws per chain."""
        return int(self.quantities["log_posterior"].shape[1])

    @property
    def is_sample(self) -> bool:
        """Whether these are draws from the posterior (not states of an annealing)."""
        return not self.is_path and self.n_draws > 0

    @property
    def is_path(self) -> bool:
        """Whether these are the states of an annealing, one per temperature."""
        return self.settings.get("engine") == "anneal"

    @property
    def _draws_word(self) -> str:
        """The word for the states of chains; draws of an exact search have no chains."""
        if self.is_path:
            return "temperatures"
        return "independent draws" if self.settings.get("search") == "exact" else "draws"

    @property
    def acceptance(self) -> dict[str, float]:
        """Acceptance rate of each move; NaN if it was never tried."""
        tried = {name: int(counts.sum()) for name, counts in self.proposed.items()}
        return {
            name: int(self.accepted[name].sum()) / n if n else math.nan for name, n in tried.items()
        }

    def page(self) -> Page:
        """Return the diagnostics: convergence, moves, sizes and columns."""
        settings = self.settings
        heading = [
            self.title or str(settings.get("model", "unknown model")),
            f"search {settings.get('search', 'unknown')}",
            f"{self.n_chains} x {self.n_draws:,} {self._draws_word}",
        ]
        if settings.get("source"):
            heading.insert(0, str(settings["source"]))
        page: Page = (
            Heading(heading),
            *((Pieces([self.parameter_words]),) if self.parameter_words else ()),
        )
        if settings.get("interrupted"):
            page += (warning("interrupted: the search was ended early"),)
        if self.is_sample:
            page += (BLANK, *self._diagnostics_page())
        else:
            why = "this is the path of an annealing" if self.is_path else "it ended before any"
            page += (BLANK, Pieces([f"no draws from the posterior: {why}"]))
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
        """Return a table of the traced quantities, and warnings."""
        diagnostics = self.diagnostics()
        found = list(diagnostics.values())
        table = PrintedTable(
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
            f"({typed('to_inference_data', '--plots')})"
        )
        return (table,) if all(d.is_fine for d in found) else (table, warning(advice))

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnostics as plain data at full precision."""
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
        """Return the name of a quantity in words."""
        return self.words.get(name, trace_words(name))

    @property
    def main(self) -> list[str]:
        """The main quantities: log posterior and size, or all quantities if there is no size."""
        return ["log_posterior", self.size] if self.size else list(self.quantities)

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return mean, standard deviation, R-hat and effective sample size of each quantity."""
        return {name: diagnose_array(draws) for name, draws in self.quantities.items()}

    def shares(self) -> dict[str, dict[str, float]]:
        """Return shares of the draws by title and label, largest first.

        The titles are the counted things ("leaves", "rules"), the traces of codes ("first split",
        "first rule"), and "columns used". Columns with equal shares are in the order of the table.
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
        """Return the trace for ArviZ: an ``InferenceData`` of ArviZ 0.x, a ``DataTree`` of 1.x.

        Group ``posterior`` has the scalars of `describe`, except the log prior. Whole numbers are
        int64 if they vary. A trace of codes, such as ``first_feature`` (the column of the first
        split, -1 for none), has the coordinates ``first_feature_code`` and ``first_feature_label``.
        Group ``sample_stats`` has ``lp`` (log posterior, nats), ``total_log_likelihood`` and
        ``log_prior`` if these are known, ``acceptance_rate``, ``feature_used`` per column and, per
        move, ``proposed`` and ``accepted`` since the draw before.

        ArviZ's ``loo`` and ``compare`` do not work, because they need a log likelihood for each
        row. If parameters are integrated out, there is only one for all rows together.
        """
        named = dict(self.quantities)
        stats: dict[str, NDArray[Any]] = {"lp": named.pop("log_posterior")}
        if "log_likelihood" in named:
            stats[_TOTAL] = named.pop("log_likelihood")
        stats |= {name: self.stats[name] for name in _STATS if name in self.stats}
        posterior = {name: plottable(draws) for name, draws in {**named, **self.codes}.items()}
        if not posterior:  # ArviZ does not allow an empty posterior
            posterior["log_density"] = stats["lp"]
        dims: dict[str, list[str]] = {}
        coords: dict[str, Sequence[str]] = {}
        if self.feature_used.shape[1]:
            # not in the posterior: ArviZ would draw a panel for each column of a wide table, and it
            # cannot rank integers that never vary
            stats["feature_used"] = self.feature_used.astype(np.int8)
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
            "told": self.parameter_words,
        }
        data = to_arviz(posterior, stats, coords, dims, {**self.settings, **legend})
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

    DataError if there is no such file, or it is not the trace of a fit.
    """
    if not Path(path).is_file():
        raise DataError(f"no such file: {path}")
    with read_arviz(path) as data:
        try:
            return Trace.of(data)
        except DataError as error:
            raise DataError(f"{path} is {error}") from None


def _trace_of_groups(posterior: Any, stats: Any, attributes: Mapping[str, Any]) -> Trace:
    """Return the trace in two groups of ArviZ."""
    coded = [str(n) for n in posterior if f"{n}_code" in posterior.coords]
    found = [str(n) for n in posterior if n not in (*coded, "log_density")]
    known = str(attributes["quantities"]).split()
    if sorted(known) != sorted(found):
        raise ValueError(f"its quantities must be {', '.join(known)}, got {', '.join(found)}")
    quantities = {"log_posterior": _draws(stats["lp"])}
    if _TOTAL in stats:
        quantities["log_likelihood"] = _draws(stats[_TOTAL])
    quantities |= {name: _draws(posterior[name]) for name in known}
    codes = {name: _draws(posterior[name]).astype(np.int64) for name in coded}
    kept = {name: _draws(stats[name]) for name in _STATS if name in stats}
    shape = quantities["log_posterior"].shape
    traces = [*quantities.values(), *codes.values(), *kept.values()]
    if any(len(d.shape) != 2 or d.shape != shape for d in traces):
        raise ValueError("traces must be of one shape, (n_chains, n_draws)")
    size = attributes["size"]
    if size and size not in quantities:
        raise KeyError(size)
    columns: tuple[str, ...] = ()
    used = np.zeros((shape[0], 0, 0), np.bool_)
    if "feature_used" in stats:
        columns = tuple(str(name) for name in stats["feature"].values)
        used = np.asarray(stats["feature_used"].values, np.bool_)
    moves = stats["move"].values if "proposed" in stats else []  # none for independent draws
    proposed, accepted = (
        {str(move): _draws(stats[name])[:, :, i].astype(np.int64) for i, move in enumerate(moves)}
        for name in ("proposed", "accepted")
    )
    words = json.loads(attributes["words"])
    if not isinstance(words, dict):
        raise TypeError("its words must be an object")
    return Trace(
        quantities=quantities,
        size=size or None,
        codes=codes,
        labels={name: _labels(posterior, name) for name in coded},
        feature_used=used,
        columns=columns,
        stats=kept,
        proposed=proposed,
        accepted=accepted,
        settings={name: value for name, value in attributes.items() if name not in _LEGEND},
        words={str(k): str(v) for k, v in words.items()},
        title=str(attributes.get("title", "")),
        parameter_words=str(attributes.get("told", "")),
    )


def _draws(variable: Any) -> Floats:
    return np.asarray(variable.values, np.float64)


def _labels(posterior: Any, name: str) -> dict[int, str]:
    codes = np.asarray(posterior[f"{name}_code"].values, np.int64).tolist()
    return dict(zip(codes, map(str, posterior[f"{name}_label"].values), strict=True))


def _shares(values: NDArray[Any]) -> dict[str, float]:
    """Return the share of each value, largest first, ties in ascending order."""
    found, times = np.unique(values, return_counts=True)
    counted = zip(found.tolist(), (times / times.sum()).tolist(), strict=True)
    return {str(value): share for value, share in sorted(counted, key=lambda item: -item[1])}
