"""The draws of a fit as arrays, whether they come from a run or from a trace file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.errors import DataError
from bayescascade.report.inference_data import (
    Diagnostic,
    PosteriorRun,
    diagnose_array,
    import_arviz,
)

__all__ = ["Trace", "read_trace"]

_QUANTITIES = ("n_leaves", "depth", "n_features")


@dataclass(frozen=True, eq=False)
class Trace:
    """What was traced of each draw.

    Parameters
    ----------
    quantities : mapping of str to (n_chains, n_draws) float64
        "log_posterior" and "log_likelihood", nats; "n_leaves"; "depth"; "n_features".
    first_feature : (n_chains, n_draws) int64
        Index of the column that the root splits, -1 for none.
    feature_used : (n_chains, n_draws, n_columns) bool
        Which columns each draw splits; no draws if none were kept.
    columns : tuple of str
        Names of the columns, as far as known.
    acceptance : mapping of str to float
        Share of each move's proposals that were accepted; NaN if it was never tried.
    settings : mapping of str to str or number
        What the fit was: model, parameters, search, source.
    """

    quantities: Mapping[str, NDArray[np.float64]]
    first_feature: NDArray[np.int64]
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
            raise DataError(f"not the trace of a cascade: it has no {error}") from None
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            raise DataError(f"not the trace of a cascade: {error}") from None

    @classmethod
    def _of_run(cls, run: PosteriorRun[Any]) -> "Trace":
        log_density = run.traces["log_density"]
        return cls(
            quantities={
                "log_posterior": log_density,
                "log_likelihood": log_density - run.traces["log_prior"],
                **{name: run.traces[name] for name in _QUANTITIES},
            },
            first_feature=run.traces["first_feature"].astype(np.int64),
            feature_used=run.column_use(),
            columns=run.columns,
            acceptance=run.acceptance,
            settings=run.told(),
        )

    @classmethod
    def _of_groups(cls, posterior: Any, stats: Any, settings: Mapping[str, Any]) -> "Trace":
        quantities = {
            "log_posterior": _draws(stats["lp"]),
            "log_likelihood": _draws(stats["log_likelihood"]),
            **{name: _draws(posterior[name]) for name in _QUANTITIES},
        }
        shape = quantities["log_posterior"].shape
        if any(len(d.shape) != 2 or d.shape != shape for d in quantities.values()):
            raise ValueError("traces must be of one shape, (n_chains, n_draws)")
        columns: tuple[str, ...] = ()
        used = np.zeros((shape[0], 0, 0), np.bool_)
        if "feature_used" in posterior:
            columns = tuple(str(name) for name in posterior["feature"].values)
            used = np.asarray(posterior["feature_used"].values, np.bool_)
        moves = [str(name) for name in stats["move"].values]
        tried = np.asarray(stats["proposed"].values).sum(axis=(0, 1))
        kept = np.asarray(stats["accepted"].values).sum(axis=(0, 1))
        with np.errstate(invalid="ignore"):
            rates = kept / tried
        return cls(
            quantities=quantities,
            first_feature=np.asarray(posterior["first_feature"].values, np.int64),
            feature_used=used,
            columns=columns,
            acceptance=dict(zip(moves, rates.tolist(), strict=True)),
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

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return mean, standard deviation, R-hat and effective sample size of each quantity."""
        return {name: diagnose_array(draws) for name, draws in self.quantities.items()}

    def leaf_counts(self) -> dict[int, float]:
        """Return the share of the draws with each number of leaves, largest first."""
        values, times = np.unique(self.quantities["n_leaves"], return_counts=True)
        return _by_share(
            {int(v): float(n) for v, n in zip(values, times / times.sum(), strict=True)}
        )

    def first_splits(self) -> dict[str, float]:
        """Return the share of the draws whose root splits each column, largest first."""
        values, times = np.unique(self.first_feature, return_counts=True)
        names = [self._column_name(int(value)) for value in values]
        return _by_share(dict(zip(names, (times / times.sum()).tolist(), strict=True)))

    def column_use(self) -> dict[str, float]:
        """Return the share of the draws that split each column anywhere, largest first."""
        if not self.feature_used.shape[1]:
            return {}
        shares = self.feature_used.mean(axis=(0, 1)).tolist()
        return _by_share(dict(zip(self.columns, shares, strict=True)))

    def _column_name(self, index: int) -> str:
        if index < 0:
            return "none"
        return self.columns[index] if index < len(self.columns) else f"column {index}"


def read_trace(path: str | Path) -> Trace:
    """Read a trace file that `PosteriorRun.save_trace` wrote.

    Raises
    ------
    DataError
        If there is no such file, or it is not the trace of a cascade.
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


def _by_share(shares: dict[Any, float]) -> dict[Any, float]:
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))
