"""The posterior of density lists; `models` has the formulas."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.rules.kernels.layout import DENSITY
from bayescascade.methods.rules.list_posterior import RuleListPosterior
from bayescascade.methods.rules.models import ListPrior, density_log_likelihood
from bayescascade.methods.rules.rule_list import RuleList
from bayescascade.methods.rules.volumes import log_first_volumes

if TYPE_CHECKING:
    from bayescascade.data.table import Table

__all__ = ["DensityListPosterior"]


class DensityListPosterior(RuleListPosterior):
    """The posterior of density rule lists (Goh 2018, Model III).

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    expected_rules, expected_size : float in (0, 10,000]
        See `ListPrior`.
    concentration : float > 0
        Dirichlet parameter of every part.
    max_size : int >= 1
        Most conditions of a rule; no more than there are columns are ever used.
    memory_limit : float > 0
        Gigabytes that the candidates may take.
    """

    kind = DENSITY

    def __init__(
        self,
        table: "Table",
        expected_rules: float = 3.0,
        expected_size: float = 1.0,
        concentration: float = 1.0,
        max_size: int = 2,
        memory_limit: float = 2.0,
    ) -> None:
        super().__init__(
            table,
            np.arange(table.schema.n_columns),
            np.zeros(table.n_distinct, np.int64),
            1,
            prior=ListPrior(expected_rules, expected_size),
            concentration=concentration,
            max_size=max_size,
            min_support=0.0,
            memory_limit=memory_limit,
        )

    def log_prior(self, state: RuleList) -> float:
        """Return the log prior of a list, nats; -inf if a part captures no cell."""
        log_prior = super().log_prior(state)
        if log_prior == -np.inf or np.isneginf(self.log_volumes(state)).any():
            return -np.inf
        return log_prior

    def log_likelihood(self, state: RuleList) -> float:
        """Return the log likelihood of a list, nats; -inf if a part captures no cell."""
        log_volumes = self.log_volumes(state)
        if np.isneginf(log_volumes).any():
            return -np.inf
        return density_log_likelihood(self.counts(state), log_volumes, self.concentration)

    def log_density(self, state: RuleList) -> float:
        """Return log prior plus log likelihood, nats; the volumes are counted once."""
        log_prior = super().log_prior(state)
        return log_prior if log_prior == -np.inf else log_prior + self.log_likelihood(state)

    def counts(self, state: RuleList) -> NDArray[np.float64]:
        """Return the weight of the rows that each part captures, (m + 1,) float64."""
        return self.class_counts(state)[:, 0]

    def log_volumes(self, state: RuleList) -> NDArray[np.float64]:
        """Return the log volume that each part captures, (m + 1,) float64 nats, -inf for none."""
        rules = [self.antecedents[rule] for rule in state.rules]
        return log_first_volumes(self.schema, rules)
