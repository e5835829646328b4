"""From the values of the root's entries to the sum over all trees."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from bayescascade.methods.cascades.exact.kernels import UNION
from bayescascade.methods.cascades.exact.plan import Plan
from bayescascade.methods.cascades.models import BranchModel

if TYPE_CHECKING:
    from bayescascade.methods.cascades.models import CascadeModel

__all__ = ["Root"]

Floats = NDArray[np.float64]

_LARGE = 1e5


@dataclass(frozen=True)
class Root:
    """What the whole tree is worth beyond its parts.

    Parameters
    ----------
    plan : Plan
    model : LeafModel or BranchModel
    """

    plan: Plan
    model: "CascadeModel"

    def log_densities(self, log_values: Floats, total: float) -> Floats:
        """Return, for every entry of the root, the log of what its trees' densities sum to.

        Less `log_common`: so large a number would leave no digits for the differences.

        Parameters
        ----------
        log_values : (n_entries,) float64
            Logs of the root's entries, up to a constant.
        total : float >= 0
            Weight of all rows.
        """
        if isinstance(self.model, BranchModel):  # the root is no branch, and has no share of one
            weighted: Floats = log_values + gammaln(self.model.concentration)
            return weighted + self._log_inclusion()
        return log_values + self.log_weights(np.arange(1, log_values.size + 1), total)

    def log_weights(self, k: NDArray[np.int64], total: float) -> Floats:
        """Return the logs, less `log_common`, of what trees of `k` leaves count but for rows."""
        alpha, rate = self.model.concentration, self.model.rate
        log_prior = -rate + k * np.log(rate) - gammaln(k + 1)
        weights: Floats = log_prior + gammaln(k * alpha) - _log_rise(total + alpha, (k - 1) * alpha)
        return weights

    def log_common(self, total: float) -> float:
        """Return what the density of every tree has in common given the weight of all rows."""
        return -float(gammaln(total + self.model.concentration))

    def log_sum(self, log_values: Floats, total: float) -> float:
        """Return the log of the sum over all trees, less `log_common`."""
        return float(logsumexp(self.log_densities(log_values, total)))

    def _log_inclusion(self) -> Floats:
        if self.plan.shift != UNION:
            return np.zeros(1)
        p = len(self.plan.columns)
        used = np.array([u.bit_count() for u in range(1 << p)])
        inclusion: Floats = self.model.log_inclusion(p)[used]
        return inclusion


def _log_rise(x: float, y: NDArray[np.floating[Any]]) -> Floats:
    """Return ``lnG(x + y) - lnG(x)``, by Stirling's series for an x too large for a difference."""
    if x < _LARGE:
        rise: Floats = gammaln(x + y) - gammaln(x)
        return rise
    series = 1 / (12 * (x + y)) - 1 / (12 * x)
    by_series: Floats = (x + y - 0.5) * np.log1p(y / x) + y * (np.log(x) - 1) + series
    return by_series
