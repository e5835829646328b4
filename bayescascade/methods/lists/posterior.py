"""The posteriors of rule lists, of densities and of labels; `models` has the formulas."""

from collections.abc import Hashable
from copy import copy
from math import cbrt
from typing import TYPE_CHECKING

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_real
from bayescascade.data.levels import level_text
from bayescascade.methods.lists.kernels import layout
from bayescascade.methods.lists.list_posterior import RuleListPosterior
from bayescascade.methods.lists.models import (
    density_log_likelihood,
    density_rounding,
    label_log_likelihood,
    label_rounding,
)
from bayescascade.methods.lists.parts import log_first_volumes
from bayescascade.methods.lists.rule_list import RuleList

if TYPE_CHECKING:
    from bayescascade.data.table import Table

_DECIMALS = 9  # for log volumes: equal ones may differ in later digits by rounding
_OF_VOLUME = 150.0  # operations; see `DensityListPosterior.operations`


class DensityListPosterior(RuleListPosterior):
    """The posterior of density rule lists (Goh 2018, Model III).

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    expected_rules, expected_size, concentration, max_size, memory_limit
        As in `DensityRuleList`.
    """

    kind = layout.DENSITY

    def __init__(
        self,
        table: "Table",
        expected_rules: float = 3.0,
        expected_size: float = 1.0,
        concentration: float = 1.0,
        max_size: int = 2,
        memory_limit: float = 2.0,
    ) -> None:
        features, labels = np.arange(table.schema.n_columns), np.zeros(table.n_distinct, np.int64)
        super().__init__(
            table, features, labels, 1, expected_rules, expected_size, concentration, max_size,
            min_support=0.0, memory_limit=memory_limit,
        )  # fmt: skip

    def log_prior(self, state: RuleList) -> float:
        """Return the log prior of a list, nats; -inf if a part contains no cell."""
        log_prior = super().log_prior(state)
        if log_prior == -np.inf or np.isneginf(self.log_volumes(state)).any():
            return -np.inf
        return log_prior

    def log_likelihood(self, state: RuleList) -> float:
        """Return the log likelihood of a list, nats; -inf if a part contains no cell."""
        log_volumes = self.log_volumes(state)
        if np.isneginf(log_volumes).any():
            return -np.inf
        return density_log_likelihood(self.counts(state), log_volumes, self.concentration)

    def log_density(self, state: RuleList) -> float:
        """Return log prior plus log likelihood, nats; volumes are computed only once."""
        log_prior = super().log_prior(state)
        return log_prior if log_prior == -np.inf else log_prior + self.log_likelihood(state)

    def rounding(self, state: RuleList) -> float:
        """Return a bound on the rounding error of a list's log density, nats."""
        n_conditions = int(self.antecedents.sizes[list(state.rules)].sum())
        return density_rounding(
            n_conditions, state.n_rules + 1, self.table.weights, self.schema, self.concentration,
            self._prior_sizes(state),
        )  # fmt: skip

    def operations(self, n_rules: float) -> float:
        """Return the operations of a step at a list of this size, a nanosecond each, about.

        Most are for volumes. On nine tables of 4 to 21 columns a step took 120 to 190 ns a rule for
        each unit of the cube root of the number of candidates, as columns of more levels are cut
        into more pieces.
        """
        of_volumes = _OF_VOLUME * n_rules * cbrt(len(self.antecedents))
        return 100.0 + (0.5 * n_rules + 1.0) * self.rows.everyone.size + of_volumes

    def counts(self, state: RuleList) -> Floats:
        """Return the weight of the rows in each part, (m + 1,) float64."""
        return super().counts(state)[:, 0]

    def _held(self, state: RuleList) -> list[Hashable]:
        """Return the rows of each part and its volume, which determine its density."""
        log_volumes = self.log_volumes(state).round(_DECIMALS).tolist()
        return list(zip(super()._held(state), log_volumes, strict=True))

    def log_volumes(self, state: RuleList) -> Floats:
        """Return the log volume of each part, (m + 1,) float64 nats, -inf if it is empty."""
        rules = [self.antecedents[rule] for rule in state.rules]
        return log_first_volumes(self.schema, rules)


class LabelListPosterior(RuleListPosterior):
    """The posterior of rule lists with labels (Letham, Rudin, McCormick and Madigan 2015).

    Parameters
    ----------
    table : Table
        Distinct rows, labels included, and their weights.
    target : str
        Name of the column of labels. Its levels are the classes. Rules may use all other columns.
    expected_rules, expected_size, concentration, max_size, min_support, memory_limit
        As in `RuleListClassifier`.
    """

    kind = layout.LABELS
    n_temperatures = 125  # of an annealing; each costs as much as some hundred steps
    _parameter_names = (*RuleListPosterior._parameter_names, "min_support")

    def __init__(
        self,
        table: "Table",
        target: str,
        expected_rules: float = 3.0,
        expected_size: float = 1.0,
        concentration: float = 1.0,
        max_size: int = 2,
        min_support: float = 0.05,
        memory_limit: float = 2.0,
    ) -> None:
        names = table.schema.names
        if target not in names:
            raise DataError(
                f'the target must be a column, got "{target}"; columns: {", ".join(names)}'
            )
        index = names.index(target)
        column = table.schema.columns[index]
        if column.kind == "continuous":
            raise DataError(f'labels must be levels, got the continuous column "{target}"')
        if column.has_missing_level:
            raise DataError(f'labels must not be missing, got missing cells in column "{target}"')
        if len(names) == 1:
            raise DataError(f'rules need a column besides the labels, got only "{target}"')
        present = np.unique(table.codes[index])
        if table.n_distinct and present.size < 2:
            only = level_text(column.levels[int(present[0])])
            raise DataError(f'labels must be of at least two classes, got only the class "{only}"')
        features, labels = np.delete(np.arange(len(names)), index), table.codes[index]
        super().__init__(
            table, features, labels.astype(np.int64), column.n_levels, expected_rules,
            expected_size, concentration, max_size, min_support, memory_limit,
        )  # fmt: skip
        self.target = target

    def with_concentration(self, concentration: float) -> "LabelListPosterior":
        """Return the posterior with another concentration and the same candidate rules."""
        other = copy(self)
        other.__dict__.pop("model_arrays", None)  # only these depend on it
        other.concentration = check_real("concentration", concentration, above=0.0)
        return other

    def log_likelihood(self, state: RuleList) -> float:
        """Return the log likelihood of the labels, nats."""
        return label_log_likelihood(self.counts(state), self.concentration)

    def operations(self, n_rules: float) -> float:
        """Return the operations of a step at a list of this size, a nanosecond each, about."""
        a_part = 17.0 + 0.7 * self.rows.everyone.size + 2.2 * self._n_classes
        return 100.0 + (0.5 * n_rules + 1.0) * a_part  # half of the parts are counted again

    def rounding(self, state: RuleList) -> float:
        """Return a bound on the rounding error of a list's log density, nats."""
        weights, counts = self.table.weights, self.counts(state)
        return label_rounding(counts, weights, self.concentration, self._prior_sizes(state))
