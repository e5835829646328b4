"""Effects in groups of rows, measured on rows that neither the model nor the groups have seen.

For the doubly robust outcomes g of `adjustment`, the effect in a group is the mean of g over its m
rows, with the interval mean +- q s / sqrt(m), s their standard deviation and q a quantile of
Student's t with m - 1 degrees of freedom. Of K groups, intervals of the level c^(1/K) each all hold
together with probability c at least, however the groups overlap, where the means are normal
(Sidak 1967, theorem 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from bayescascade.base.saved_arrays import read_array

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEAST_ROWS = 10
"""Of a group, for an interval."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredEffects:
    """Effects in groups, (n_groups,) each; NaN where a group has too few rows."""

    n_rows: NDArray[np.int64]
    effects: Floats
    errors: Floats  # standard errors

    @classmethod
    def of(cls, outcomes: Floats, groups: Flags) -> Self:
        """Measure effects by doubly robust outcomes (n,) in groups (n_groups, n)."""
        n_rows = groups.sum(axis=1)
        effects, errors = np.full((2, len(groups)), np.nan)
        for k, chosen in enumerate(groups):
            if n_rows[k] >= LEAST_ROWS:
                effects[k] = outcomes[chosen].mean()
                errors[k] = outcomes[chosen].std(ddof=1) / np.sqrt(n_rows[k])
        return cls(n_rows.astype(np.int64), effects, errors)

    def intervals(self, level: float = 0.95, *, together: bool = False) -> Floats:
        """Return (n_groups, 2) ends, of each group by itself, or of all `together`."""
        n_groups = int(np.isfinite(self.errors).sum())
        each = level ** (1.0 / max(n_groups, 1)) if together else level
        reach = student.ppf((1.0 + each) / 2.0, np.maximum(self.n_rows - 1, 1)) * self.errors
        return np.stack([self.effects - reach, self.effects + reach], axis=1)

    @property
    def is_clear(self) -> Flags:
        """Whether 0 is outside of the interval of 95 %, all read together."""
        low, high = self.intervals(together=True).T
        clear: Flags = (low > 0.0) | (high < 0.0)
        return clear

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "n_rows": self.n_rows.tolist(),
            "effects": _plain(self.effects),
            "errors": _plain(self.errors),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_groups: int) -> Self:
        """Return what `to_record` recorded; ValueError if it is nothing of that."""
        n_rows = read_array(record, "n_rows", (n_groups,), np.int64, least=0)
        effects, errors = (np.array(record[key], np.float64) for key in ("effects", "errors"))
        is_known = np.isfinite(effects)
        if not (
            effects.shape == errors.shape == (n_groups,)
            and (is_known == np.isfinite(errors)).all()
            and (errors[is_known] >= 0.0).all()
        ):
            raise ValueError("measured effects must be numbers, one a rule")
        return cls(n_rows, effects, errors)


def _plain(numbers: Floats) -> list[float | None]:
    return [None if np.isnan(one) else one for one in numbers.tolist()]
