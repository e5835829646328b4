"""Runs as ArviZ data, and the diagnostics that stand beside every estimate.

R-hat and the effective sample size come from ``arviz_stats``, ArviZ's own and light to import;
ArviZ itself is imported only to make an ``InferenceData`` (ArviZ 0.x) or ``DataTree`` (1.x).
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from samplers import Run

__all__ = [
    "ESS_FLOOR",
    "RHAT_CEILING",
    "Diagnostic",
    "PosteriorRun",
    "convergence_advice",
    "diagnose_array",
]

S = TypeVar("S")

RHAT_CEILING = 1.01
ESS_FLOOR = 400.0

_NOT_PARAMETERS = (
    "log_density",
    "acceptance_rate",
    "inverse_temperature",
    "best_log_density",
    "log_prior",
)
"""Traces that say how a chain fares, not what its states are."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class PosteriorRun(Run[S]):
    """A run that knows what its traces mean, and speaks ArviZ.

    Attributes
    ----------
    size : str
        Name of the trace that says how large a state is, such as "n_leaves".
    columns : tuple of str
        Names of the table's columns.
    columns_of : callable
        State to the indices of the columns that it uses.
    labels : mapping of str to callable
        For each trace of codes, such as "first_feature", from a code >= 0 to what it stands for;
        negative codes stand for none.
    settings : mapping of str to str, int, float or None
        What the trace file should say about the fit.
    """

    size: str
    columns: tuple[str, ...]
    columns_of: Callable[[S], Sequence[int]] = field(compare=False, repr=False)
    labels: Mapping[str, Callable[[int], str]] = field(compare=False, repr=False)
    settings: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        run: Run[S],
        *,
        size: str,
        columns: tuple[str, ...],
        columns_of: Callable[[S], Sequence[int]],
        labels: Mapping[str, Callable[[int], str]],
        settings: Mapping[str, Any],
    ) -> "PosteriorRun[S]":
        """Return the run with what reporting needs."""
        found = {part.name: getattr(run, part.name) for part in fields(run)}
        return cls(
            **found,
            size=size,
            columns=columns,
            columns_of=columns_of,
            labels=labels,
            settings=settings,
        )

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return R-hat and effective sample size of log posterior and size, by name."""
        return {
            "log_posterior": diagnose_array(self.traces["log_density"]),
            self.size: diagnose_array(self.traces[self.size]),
        }

    @property
    def described(self) -> dict[str, NDArray[np.float64]]:
        """The traces that describe states, in their order, (n_chains, n_draws) each."""
        return {k: trace for k, trace in self.traces.items() if k not in _NOT_PARAMETERS}

    def labels_of(self, name: str) -> dict[int, str]:
        """Return what the codes in a trace stand for, ascending, without the negative ones."""
        codes = np.unique(self.traces[name]).astype(np.int64).tolist()
        return {code: self.labels[name](code) for code in codes if code >= 0}

    def column_use(self) -> NDArray[np.bool_]:
        """Return which columns each kept draw uses, (n_chains, n_draws, n_columns)."""
        n_draws = min((len(chain) for chain in self.draws), default=0)
        used = np.zeros((len(self.draws), n_draws, len(self.columns)), np.bool_)
        for chain, states in enumerate(self.draws):
            for draw, state in enumerate(states[:n_draws]):
                used[chain, draw, list(self.columns_of(state))] = True
        return used

    def to_inference_data(self) -> Any:  # Any: InferenceData or DataTree, by ArviZ's version
        """Return the run for ArviZ.

        Group ``posterior`` has what the posterior's `describe` says of a state (without its log
        prior) and ``feature_used`` per column. A trace of codes, such as ``first_feature`` (the
        column split first, -1 for none), is told by the coordinates ``first_feature_code`` and
        ``first_feature_label``. Group ``sample_stats`` has ``lp`` (log posterior, nats),
        ``log_likelihood``, ``log_prior``, ``acceptance_rate`` and, per move, ``proposed`` and
        ``accepted`` since the draw before.
        """
        log_density = self.traces["log_density"]
        log_prior = self.traces["log_prior"]
        moves = list(self.proposed)
        posterior: dict[str, NDArray[Any]] = dict(self.described)
        dims: dict[str, list[str]] = {}
        coords: dict[str, Sequence[str]] = {}
        used = self.column_use()
        if used.shape[1]:
            posterior["feature_used"] = used.astype(np.int8)
            dims["feature_used"] = ["feature"]
            coords["feature"] = list(self.columns)
        sample_stats = {
            "lp": log_density,
            "log_likelihood": log_density - log_prior,
            "log_prior": log_prior,
            "acceptance_rate": self.traces["acceptance_rate"],
        }
        if moves:  # there are none of independent draws
            dims |= {"proposed": ["move"], "accepted": ["move"]}
            coords["move"] = moves
            for name, counts in (("proposed", self.proposed), ("accepted", self.accepted)):
                sample_stats[name] = np.stack([counts[move] for move in moves], axis=-1)
        data = _to_arviz(posterior, sample_stats, coords, dims, self.told())
        for name in self.labels:
            labels = self.labels_of(name)
            data["posterior"].coords.update(
                {
                    f"{name}_code": np.array(list(labels), np.int64),
                    f"{name}_label": (f"{name}_code", np.array(list(labels.values()), np.str_)),
                }
            )
        return data

    def told(self) -> dict[str, Any]:
        """Return what a trace says about its fit: settings, engine, whether it was interrupted.

        ``engine`` is what the traces come from: of an annealing they are its path, not draws.
        """
        settings = {k: "none" if value is None else value for k, value in self.settings.items()}
        return {**settings, "engine": self.method, "interrupted": int(self.interrupted)}

    def save_trace(self, path: str | Path) -> None:
        """Write `to_inference_data` as netCDF, replacing `path` only when all is written."""
        from bayescascade.base.files import replaced_file

        data = self.to_inference_data()
        with replaced_file(path) as temporary:
            data.to_netcdf(str(temporary), engine="h5netcdf")


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


def import_arviz() -> Any:
    """Import ArviZ without its announcement of a successor."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="arviz")
        import arviz
    return arviz
