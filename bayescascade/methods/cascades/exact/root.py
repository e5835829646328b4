"""From the values of the root's entries to the sum over all trees."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

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

        Parameters
        ----------
        log_values : (n_entries,) float64
            Logs of the root's entries.
        total : float >= 0
            Weight of all rows.
        """
        alpha = self.model.concentration
        if isinstance(self.model, BranchModel):
            # the root is no branch, and has no share of one
            share = gammaln(total + alpha) - gammaln(alpha)
            weighted: Floats = log_values - share + self._log_inclusion()
            return weighted
        k, rate = np.arange(1, log_values.size + 1), self.model.rate
        log_prior = -rate + k * np.log(rate) - gammaln(k + 1)
        densities: Floats = log_values + log_prior + gammaln(k * alpha) - gammaln(total + k * alpha)
        return densities

    def log_normalizer(self, log_values: Floats, total: float) -> float:
        """Return the log of the sum over all trees."""
        return float(logsumexp(self.log_densities(log_values, total)))

    def _log_inclusion(self) -> Floats:
        if self.plan.shift != UNION:
            return np.zeros(1)
        p = len(self.plan.columns)
        used = np.array([u.bit_count() for u in range(1 << p)])
        inclusion: Floats = self.model.log_inclusion(p)[used]
        return inclusion
