"""Convergence of one quantity: R-hat, effective sample size, and advice.

They are computed by ``arviz_stats``, a part of ArviZ that is quick to import.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.store import As
from bayescascade.base.typed_words import typed, typed_setting
from bayescascade.base.validation import check_real

RHAT_CEILING = 1.01
ESS_FLOOR = 400.0
_FALL = 1.0  # nats: a cold chain fluctuates by less


def _write(number: float) -> float | str | None:
    if math.isinf(number):  # such as R-hat of chains that never move, which warns
        return "inf"
    return None if math.isnan(number) else float(number)


def _read(data: Any) -> float:
    if data is None or data == "inf":
        return math.nan if data is None else math.inf
    return check_real("a saved model's diagnostics", data)


Figure = Annotated[float, As(_write, _read)]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Convergence of one traced quantity."""

    mean: Figure  # over all draws of all chains, as `sd`
    sd: Figure
    # rank-normalized, split; 1 if the quantity never varies, NaN with fewer than 4 draws
    r_hat: Figure
    ess: Figure  # bulk; the number of draws if the quantity never varies

    @property
    def is_fine(self) -> bool:
        """Whether R-hat is at most 1.01 and the effective sample size at least 400."""
        return self.r_hat <= RHAT_CEILING and self.ess >= ESS_FLOOR


def convergence_advice(search: object, n_chains: int | None = None) -> str:
    """Return advice for chains that do not agree, given the search and number of chains."""
    longer = f"run longer chains ({typed('n_steps', '--steps')})"
    if n_chains == 1:  # a single chain cannot be compared
        several = f"run several chains ({typed('n_chains', '--chains')})"
        longer = f"{several}, or longer ones ({typed('n_steps', '--steps')})"
    if "tempering" in str(search) or "langevin" in str(search):
        return longer
    return f"{longer} or {typed_setting('search', 'tempering')}"


def fallen_chains(traces: Mapping[str, Floats]) -> int:
    """Return how many annealings ended below the density of a chain at the first temperature."""
    if "best_log_density" not in traces or traces["best_log_density"].size == 0:
        return 0
    start = float(traces["best_log_density"][:, 0].max())
    return int((traces["log_density"][:, -1] < start - _FALL).sum())


def diagnose_array(draws: Floats) -> Diagnostic:
    """Return the diagnostics of (n_chains, n_draws) draws of one quantity."""
    mean, sd = float(np.mean(draws)), float(np.std(draws))
    if draws.shape[1] < 4:
        return Diagnostic(mean, sd, float("nan"), float("nan"))
    if np.ptp(draws) == 0.0:
        return Diagnostic(mean, sd, 1.0, float(draws.size))
    from arviz_stats import base

    array_stats: Any = base.array_stats  # type: ignore[attr-defined] # untyped
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # chains that never move: inf
        r_hat, ess = float(array_stats.rhat(draws)), float(array_stats.ess(draws))
    return Diagnostic(mean, sd, r_hat, ess)
