"""Whether a classifier within a budget is better than buying nothing, on held-out rows.

It is better if its error rate is lower by more than the standard error of the difference: a smaller
difference may be chance and is not worth the cost (Breiman and others, 1984, section 3.4). When any
difference was enough, forests for hepatitis (117 rows) were bought that erred in 25.8 % of test
rows, where buying nothing errs in 21.1 %.

If there are few rows, a validation part is too small to decide. Then cross-validation is used: each
row is classified by a model of the other folds. The folds of a table are always the same.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.store import Within
from bayescascade.data.labels import TrainingRows
from bayescascade.data.levels import Level, level_text
from bayescascade.data.splitting import split_by_class
from bayescascade.model.standard_errors import gain_error
from bayescascade.report.numbers import with_error

N_FOLDS = 5
FEW_ROWS = 1000
"""Rows below which classifiers are chosen by cross-validation.

Test errors in percent of pruned forests, chosen by cross-validation and by a third of the rows (5
seeds): for 117 rows of hepatitis, within 3, 6 and 12, 22.1 ± 1.1, 21.1 ± 0.0 and 21.1 ± 0.0 against
20.0 ± 1.1, 24.2 ± 2.1 and 21.6 ± 0.5; for 576 rows of pima, within 2 and 10, 34.9 ± 0.0 and 34.7 ±
0.2 against 34.9 ± 0.0 and 35.5 ± 0.6; for about 1,125 rows of the liver clinic, within 10, 13.5 ±
0.3 against 13.7 ± 0.7: no difference, at nine times the work.
"""
CROSSED = f"rows in {N_FOLDS}-fold cross-validation"


@dataclass(frozen=True, slots=True)
class PurchaseChoice:
    """The choice between a classifier and buying nothing."""

    rows: str  # such as "validation rows" or "rows in 5-fold cross-validation"
    n_rows: Annotated[int, Within(1)]
    error: Annotated[float, Within(0, 1)]  # error rate of the classifier on these rows
    error_of_nothing: Annotated[float, Within(0, 1)]  # error rate of the most common class
    # of the difference between both; infinite for a single row
    standard_error: Annotated[float, Within(0, null=math.inf)]
    commonest: str  # the most common class

    @classmethod
    def of(
        cls, rows: str, wrong: Flags, nothing: Flags, training: TrainingRows,
        weights: Floats | None = None,
    ) -> Self:  # fmt: skip
        """Return the choice by the wrongly classified rows, (n_rows,) bool each, and weights."""
        commonest = training.classes.tolist()[training.commonest]
        return cls.between(rows, wrong, nothing, commonest, weights)

    @classmethod
    def between(
        cls, rows: str, wrong: Flags, nothing: Flags, commonest: Level,
        weights: Floats | None = None,
    ) -> Self:  # fmt: skip
        """Return the same, given the most common class, and weights of the rows (n_rows,)."""
        if weights is not None and not weights.any():
            weights = None  # no row counts more than others
        gains = nothing.astype(np.float64) - wrong
        error, of_nothing = np.average([wrong, nothing], axis=1, weights=weights).tolist()
        errors = error, of_nothing, gain_error(gains, weights)
        return cls(rows, gains.size, *errors, level_text(commonest))

    @property
    def is_better(self) -> bool:
        """Whether the error rate is lower than without features by more than a standard error."""
        return self.error_of_nothing - self.error > self.standard_error

    @property
    def text(self) -> str:
        """Both error rates, their difference, and the rows, in words."""
        error, nothing, gain = (
            f"{100 * share:.1f}"
            for share in (self.error, self.error_of_nothing, self.error_of_nothing - self.error)
        )
        is_finite = math.isfinite(self.standard_error)
        gain = with_error(gain, 100 * self.standard_error if is_finite else math.nan, 1, " points")
        return (
            f"error {error} %, always {self.commonest} {nothing} %, difference {gain}, on "
            f"{self.n_rows:,} {self.rows}"
        )


def weighted_mean(values: Floats | Flags, weights: Floats) -> float:
    """Return the mean over rows by their weights >= 0, (n_rows,); if all are 0, all are equal."""
    return float(np.average(values, weights=weights) if weights.any() else values.mean())


def is_few(training: TrainingRows) -> bool:
    """Return whether to choose by cross-validation: few rows, and no labeled validation rows."""
    return training.validation_labels is None and len(training.rows) < FEW_ROWS


def fold_of_rows(labels: Integers) -> Integers:
    """Return the fold of each row, (n_rows,) int64, stratified by class and always the same."""
    return split_by_class(labels, [1.0 / N_FOLDS] * N_FOLDS, np.random.default_rng(0))
