"""Effects in groups of held-out rows: the difference of the two arms' means, with intervals.

A row has the weight w = its own weight / the probability of its arm, so that both arms stand for
the same rows. The mean of an arm is the weighted mean of its outcomes, and has as much information
as (sum w)^2 / sum w^2 rows with equal weights, its *effective rows* (Kish 1965).

**Outcomes 0 and 1.** Each arm's share p has the interval [l, u] of Clopper and Pearson (1934), for
its effective rows. Newcombe (1998, method 10, with other intervals) combines the two: the effect
p_1 - p_0 is between

    p_1 - p_0 - sqrt((p_1 - l_1)^2 + (u_0 - p_0)^2) and
    p_1 - p_0 + sqrt((u_1 - p_1)^2 + (p_0 - l_0)^2).

A normal interval fails if an arm has few events: without any, its width is about zero. With equal
weights, this interval covers at least 95 % of the effects for 2 to 50 % of treated rows, rates of
.01 to .5, and groups of 20 to 500 rows: `tests/methods/effects/simulated_effects.py`.

**Other numbers.** The distances are q s / sqrt(n), with the standard deviation s of the arm, and q
a quantile of Student's t with n - 1 degrees of freedom. Of skewed outcomes with unequal arms, such
as lognormal ones, these intervals cover 93 % with 100 rows per arm, and 88 % with 20.

An arm with fewer effective rows (5 for outcomes 0 and 1, otherwise 100) has no interval, but a
reason. For K groups, intervals of the level 1 - (1 - c) / K all hold with probability c or more,
for any overlap of the groups (Bonferroni).
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np
from scipy.stats import beta, t as student

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.store import Of, Within, listed
from bayescascade.methods.effects.losses import effective_size
from bayescascade.report.page import count_of

LEAST_ROWS = 5
"""Minimum number of effective rows of each arm for outcomes 0 and 1."""

LEAST_NUMBERS = 100
"""The same for other outcomes."""


@listed
class EffectSlope(NamedTuple):
    """Slope of doubly robust outcomes on held-out estimates: 0 if these say nothing, 1 if right.

    It is the best linear predictor of the effect (Chernozhukov, Demirer, Duflo and Fernandez-Val,
    *Fisher-Schultz Lecture: Generic Machine Learning Inference on Heterogeneous Treatment Effects*,
    Econometrica 93(4), 2025). They split the rows; here each row is held out in turn, but expected
    outcomes of its arm are learned from it. In a small arm, this makes the slope too large, so it
    is no test there: see `is_test`.
    """

    slope: float
    error: Annotated[float, Within(0)]  # standard error

    @property
    def least(self) -> float:
        """Lower end, which is below the slope with a probability of 95 %."""
        return self.slope - 1.645 * self.error

    @staticmethod
    def is_test(sizes: Floats) -> bool:
        """Whether arms with these effective rows, (2,), are large enough, and similar enough."""
        return bool(sizes.min() >= max(LEAST_NUMBERS, sizes.max() / 3.0))

    @property
    def factor(self) -> float:
        """What differences between rows are multiplied by, in [0, 1]."""
        return min(self.slope, 1.0) if self.slope > self.error else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredEffects:
    """Means of both arms in groups of rows, (n_groups, 2): not treated, treated."""

    n_rows: Annotated[Integers, Of("groups", 2, kind=np.int64, least=0)]
    sizes: Annotated[Floats, Of("groups", 2, least=0)]  # effective rows
    means: Annotated[Floats, Of("groups", 2)]  # 0 without rows
    # standard errors; None for outcomes 0 and 1
    errors: Annotated[Floats, Of("groups", 2, least=0)] | None = None

    def __post_init__(self) -> None:
        if (self.sizes > self.n_rows).any():
            raise ValueError("effective rows must not be more than rows")
        if self.errors is None and not ((self.means >= 0.0) & (self.means <= 1.0)).all():
            raise ValueError("means of outcomes 0 and 1 must be from 0 to 1")

    @classmethod
    def of(cls, outcomes: Floats, treatment: Flags, weights: Floats, groups: Flags) -> Self:
        """Measure effects in groups (n_groups, n); weights (n,) > 0 are inverse propensities."""
        n_rows = np.zeros((len(groups), 2), np.int64)
        sizes, means, errors = np.zeros((3, len(groups), 2))
        for k, group in enumerate(groups):
            for arm, rows in enumerate((group & ~treatment, group & treatment)):
                n_rows[k, arm] = rows.sum()
                if n_rows[k, arm]:
                    y, w = outcomes[rows], weights[rows]
                    sizes[k, arm] = min(effective_size(w), len(y))
                    means[k, arm] = mean = float(w @ y) / w.sum()
                    errors[k, arm] = np.linalg.norm(w * (y - mean)) / w.sum()
        if np.isin(outcomes, (0.0, 1.0)).all():
            return cls(n_rows, sizes, np.clip(means, 0.0, 1.0))
        return cls(n_rows, sizes, means, errors * np.sqrt(sizes / np.maximum(sizes - 1.0, 0.5)))

    @property
    def effects(self) -> Floats:
        """Differences of means, (n_groups,); NaN with too few rows."""
        return np.where(self.is_measured, self.means[:, 1] - self.means[:, 0], np.nan)

    @property
    def is_measured(self) -> Flags:
        """Whether both arms of a group have enough effective rows, (n_groups,)."""
        return np.asarray((self.sizes >= self._least).all(axis=1))

    @property
    def _least(self) -> int:
        return LEAST_ROWS if self.errors is None else LEAST_NUMBERS

    def intervals(self, level: float = 0.95, *, together: bool = False) -> Floats:
        """Return intervals (n_groups, 2), for each group separately, or for all `together`."""
        n_groups = max(int(self.is_measured.sum()), 1) if together else 1
        low, high = self._arms((1.0 - level) / n_groups / 2.0)
        with np.errstate(invalid="ignore"):  # NaN without enough rows
            below = np.hypot(self.means[:, 1] - low[:, 1], high[:, 0] - self.means[:, 0])
            above = np.hypot(high[:, 1] - self.means[:, 1], self.means[:, 0] - low[:, 0])
        return np.stack([self.effects - below, self.effects + above], axis=1)

    def _arms(self, tail: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends for the means of arms; `tail` is the share beyond each."""
        n = np.maximum(self.sizes, 2.0)
        if self.errors is not None:
            reach = student.isf(tail, n - 1.0) * self.errors
            return self.means - reach, self.means + reach
        events = self.means * n
        others = np.where(self.means > 1.0 - 1e-12, 0.0, n - events)
        events = np.where(self.means < 1e-12, 0.0, events)
        low = beta.ppf(tail, np.maximum(events, 1e-12), others + 1.0)
        high = beta.isf(tail, events + 1.0, np.maximum(others, 1e-12))
        return np.where(events > 0.0, low, 0.0), np.where(others > 0.0, high, 1.0)

    @property
    def is_clear(self) -> Flags:
        """Whether 0 is outside of the simultaneous 95 % interval."""
        low, high = self.intervals(together=True).T
        clear: Flags = (low > 0.0) | (high < 0.0)
        return clear

    @property
    def reasons(self) -> list[str]:
        """Why a group has no interval, such as "3 treated rows"; empty if it has one."""
        texts = []
        for rows, sizes in zip(self.n_rows.tolist(), self.sizes.tolist(), strict=True):
            arm = int(sizes[1] < self._least)  # few treated rows are the usual case
            word = ("untreated", "treated")[arm]
            few = count_of(rows[arm], f"{word} row")
            if rows[arm] >= self._least:
                few = f"{math.floor(10.0 * sizes[arm]) / 10.0:g} effective {word} rows"
            texts.append(few if sizes[arm] < self._least else "")
        return texts
