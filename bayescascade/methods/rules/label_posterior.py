"""The posterior of lists of labels; `models` has the formulas."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.data.levels import level_text
from bayescascade.methods.rules.kernels.layout import LABELS
from bayescascade.methods.rules.list_posterior import RuleListPosterior
from bayescascade.methods.rules.models import ListPrior, label_log_likelihood
from bayescascade.methods.rules.rule_list import RuleList

if TYPE_CHECKING:
    from bayescascade.data.table import Table

__all__ = ["LabelListPosterior"]


class LabelListPosterior(RuleListPosterior):
    """The posterior of rule lists with labels (Letham, Rudin, McCormick and Madigan 2015).

    Parameters
    ----------
    table : Table
        Distinct rows, labels included, and their weights.
    target : str
        The column of labels; its levels are the classes. Rules may use all other columns.
    expected_rules, expected_size, concentration, max_size, memory_limit
        As in `DensityListPosterior`; the concentration is that of every class in every part.
    min_support : float in [0, 1)
        Share of the rows, by weight, that a candidate captures at least.
    """

    kind = LABELS

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
        super().__init__(
            table,
            np.array([j for j in range(len(names)) if j != index]),
            table.codes[index].astype(np.int64),
            column.n_levels,
            prior=ListPrior(expected_rules, expected_size),
            concentration=concentration,
            max_size=max_size,
            min_support=min_support,
            memory_limit=memory_limit,
        )
        self.target = target
        self._parameters["min_support"] = float(min_support)

    def log_likelihood(self, state: RuleList) -> float:
        """Return the log likelihood of the labels, nats."""
        return label_log_likelihood(self.counts(state), self.concentration)

    def counts(self, state: RuleList) -> NDArray[np.float64]:
        """Return the weight of each class among what each part captures, (m + 1, C) float64."""
        return self.class_counts(state)
