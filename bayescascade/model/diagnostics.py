"""Convergence of one quantity: R-hat, effective sample size, and advice.

Chains are split in halves, and values are replaced by normal scores z of their ranks. From m halves
of n values, with W their mean variance, B that of their means, and rho_t the autocorrelations ::

    R-hat = sqrt((B / W + (n - 1) / n)),  the larger one of z, and of z of |value - median|
    ESS = m n / tau,  tau = -1 + 2 sum_k min_(i <= k) (rho_2i + rho_(2i+1)),  while terms are > 0

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner, Rank-normalization, folding, and
localization: an improved R-hat, Bayesian Analysis 16(2), 2021. Both equal those of ArviZ, whose
import takes longer than many fits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import ndtri

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
    if draws.shape[1] < 4 or np.isnan(mean):
        return Diagnostic(mean, sd, float("nan"), float("nan"))
    if np.ptp(draws) == 0.0:
        return Diagnostic(mean, sd, 1.0, float(draws.size))
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    z = _normal_scores(halves)
    r_hat = float("nan")  # a single chain cannot be compared
    if len(draws) > 1:
        folded = _normal_scores(abs(halves - np.median(halves)))
        r_hat = max(_r_hat(z), _r_hat(folded))
    return Diagnostic(mean, sd, r_hat, _effective_size(z))


def _normal_scores(values: Floats) -> Floats:
    """Return the normal scores of ranks; equal values have the mean of their ranks."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(times) - (times - 1) / 2
    scores: Floats = ndtri((ranks - 3 / 8) / (values.size + 1 / 4))[place]
    return scores.reshape(values.shape)


def _r_hat(z: Floats) -> float:
    n = z.shape[1]
    within, between = z.var(axis=1, ddof=1).mean(), z.mean(axis=1).var(ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never move: inf
        return float(np.sqrt(between / within + (n - 1) / n))


def _effective_size(z: Floats) -> float:
    if np.ptp(z) == 0.0:
        return float(z.size)
    n, means = z.shape[1], z.mean(axis=1)
    spectrum = np.fft.rfft(z - means[:, np.newaxis], 2 * n, axis=1)
    covariances = np.fft.irfft(abs(spectrum) ** 2, axis=1)[:, :n].mean(axis=0) / n
    within = covariances[0] * n / (n - 1)
    rho = 1 - (within - covariances) / (covariances[0] + means.var(ddof=1))
    rho[0] = 1.0
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    is_over = pairs[: max(n - 3, 0) // 2] <= 0
    k = int(is_over.argmax()) if is_over.any() else is_over.size
    tau = -1 + 2 * np.minimum.accumulate(pairs[:k]).sum() + max(rho[2 * k], 0.0)
    return float(z.size / max(tau, 1 / np.log10(z.size)))
