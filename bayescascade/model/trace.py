"""The draws of a fit as arrays, whether they come from a run or from a trace file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.model.inference_data import (
    Diagnostic,
    PosteriorRun,
    diagnose_array,
    import_arviz,
)
from bayescascade.model.page import trace_page
from bayescascade.model.words import COLUMNS_USED, FIRSTS, SIZES, TRACES, trace_words
from bayescascade.report.page import Page, Printed

__all__ = ["Trace", "read_trace"]


@dataclass(frozen=True, eq=False)
class Trace(Printed):
    """What was traced of each draw.

    Parameters
    ----------
    quantities : mapping of str to (n_chains, n_draws) float64
        "log_posterior" and "log_likelihood", nats, and the numbers that describe a state.
    size : str
        The quantity that says how large a state is: "n_leaves" or "n_rules".
    codes : mapping of str to (n_chains, n_draws) int64
        Traces of codes: "first_feature", the column that the root splits, or "first_rule".
    labels : mapping of str to mapping of int to str
        For each of them, what the codes >= 0 that occur stand for; others stand for none.
    feature_used : (n_chains, n_draws, n_columns) bool
        Which columns each draw uses; no draws if none were kept.
    columns : tuple of str
        Names of the columns, as far as known.
    acceptance : mapping of str to float
        Share of each move's proposals that were accepted; NaN if it was never tried. Empty of
        independent draws.
    settings : mapping of str to str or number
        What the fit was: model, parameters, search, source.
    """

    quantities: Mapping[str, NDArray[np.float64]]
    size: str
    codes: Mapping[str, NDArray[np.int64]]
    labels: Mapping[str, Mapping[int, str]]
    feature_used: NDArray[np.bool_]
    columns: tuple[str, ...]
    acceptance: Mapping[str, float]
    settings: Mapping[str, Any]

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
            return cls._of_run(data)
        try:
            settings = {
                str(name): value.item() if isinstance(value, np.generic) else value
                for name, value in data.attrs.items()
            }
            return cls._of_groups(data["posterior"], data["sample_stats"], settings)
        except KeyError as error:
            raise DataError(f"not the trace of a fit: it has no {error}") from None
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            raise DataError(f"not the trace of a fit: {error}") from None

    @classmethod
    def _of_run(cls, run: PosteriorRun[Any]) -> "Trace":
        log_density = run.traces["log_density"]
        return cls(
            quantities=_in_order(
                {
                    "log_posterior": log_density,
                    "log_likelihood": log_density - run.traces["log_prior"],
                    **{k: trace for k, trace in run.described.items() if k not in run.labels},
                }
            ),
            size=run.size,
            codes={name: run.traces[name].astype(np.int64) for name in run.labels},
            labels={name: run.labels_of(name) for name in run.labels},
            feature_used=run.column_use(),
            columns=run.columns,
            acceptance=run.acceptance,
            settings=run.told(),
        )

    @classmethod
    def _of_groups(cls, posterior: Any, stats: Any, settings: Mapping[str, Any]) -> "Trace":
        coded = [name for name in FIRSTS if name in posterior]
        numbers = [str(name) for name in posterior if name not in (*coded, "feature_used")]
        quantities = {
            "log_posterior": _draws(stats["lp"]),
            "log_likelihood": _draws(stats["log_likelihood"]),
            **{name: _draws(posterior[name]) for name in numbers},
        }
        codes = {name: _draws(posterior[name]).astype(np.int64) for name in coded}
        shape = quantities["log_posterior"].shape
        traces = [*quantities.values(), *codes.values()]
        if any(len(d.shape) != 2 or d.shape != shape for d in traces):
            raise ValueError("traces must be of one shape, (n_chains, n_draws)")
        columns: tuple[str, ...] = ()
        used = np.zeros((shape[0], 0, 0), np.bool_)
        if "feature_used" in posterior:
            columns = tuple(str(name) for name in posterior["feature"].values)
            used = np.asarray(posterior["feature_used"].values, np.bool_)
        acceptance: dict[str, float] = {}
        if "proposed" in stats:  # not of independent draws
            moves = [str(name) for name in stats["move"].values]
            tried = np.asarray(stats["proposed"].values).sum(axis=(0, 1))
            kept = np.asarray(stats["accepted"].values).sum(axis=(0, 1))
            with np.errstate(invalid="ignore"):
                rates = kept / tried
            acceptance = dict(zip(moves, rates.tolist(), strict=True))
        return cls(
            quantities=_in_order(quantities),
            size=_size_of(quantities),
            codes=codes,
            labels={name: _labels(posterior, name) for name in coded},
            feature_used=used,
            columns=columns,
            acceptance=acceptance,
            settings=settings,
        )

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

    def page(self) -> Page:
        """Return how well the posterior was explored: convergence, moves, sizes and columns."""
        return trace_page(self)

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

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return mean, standard deviation, R-hat and effective sample size of each quantity."""
        return {name: diagnose_array(draws) for name, draws in self.quantities.items()}

    def shares(self) -> dict[str, dict[str, float]]:
        """Return shares of the draws by title and label, largest first.

        The titles are what the size counts ("leaves", "rules"), what the traces of codes are called
        ("first split", "first rule"), and "columns used", equal ones of these in the table's order.
        """
        shares = {trace_words(self.size): _shares(self.quantities[self.size].astype(np.int64))}
        for name, codes in self.codes.items():
            labels = self.labels[name]
            words = [labels[code] if code >= 0 else "none" for code in codes.ravel().tolist()]
            shares[FIRSTS[name]] = _shares(np.array(words, np.str_))
        if self.feature_used.shape[1]:
            used = zip(self.columns, self.feature_used.mean(axis=(0, 1)).tolist(), strict=True)
            shares[COLUMNS_USED] = dict(sorted(used, key=lambda item: -item[1]))
        return shares


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


def _draws(variable: Any) -> NDArray[np.float64]:
    return np.asarray(variable.values, np.float64)


def _labels(posterior: Any, name: str) -> dict[int, str]:
    codes = np.asarray(posterior[f"{name}_code"].values, np.int64).tolist()
    return dict(zip(codes, map(str, posterior[f"{name}_label"].values), strict=True))


def _size_of(quantities: Mapping[str, Any]) -> str:
    for name in SIZES:
        if name in quantities:
            return name
    raise KeyError(" or ".join(SIZES))


def _in_order(quantities: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Return the quantities that have words first, in the words' order, which files do not keep."""
    known = {name: quantities[name] for name in TRACES if name in quantities}
    return {**known, **{name: quantities[name] for name in sorted(quantities)}}


def _shares(values: NDArray[Any]) -> dict[str, float]:
    """Return the share of each value, largest first, equal ones ascending."""
    found, times = np.unique(values, return_counts=True)
    counted = zip(found.tolist(), (times / times.sum()).tolist(), strict=True)
    return {str(value): share for value, share in sorted(counted, key=lambda item: -item[1])}
