"""The forests that parameters of one value or several allow, and how many columns splits draw."""

from collections.abc import Sequence
from math import isqrt
from numbers import Integral, Real
from typing import NamedTuple, TypeAlias

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.forests.growing import GrownForest, TreeGrower

Share: TypeAlias = int | float | str | None
"""How many columns are drawn for a split: a number, a share, the square root, or all."""


class GrowthAlternative(NamedTuple):
    """One of the forests that the parameters allow.

    `error`, in [0, 1], is of the validation rows or, in cross-validation, of all rows; NaN without
    either, or without a tree.
    """

    alpha: float
    cost_exponent: float
    max_features: int  # >= 1, columns drawn for each split
    n_trees: int  # trees within the budget; 0 if the first one is beyond it
    cost: float  # mean over the validation rows; of the first tree if it is beyond the budget
    error: float  # share of rows that are classified wrongly


def alternative_of(
    alpha: float, grower: TreeGrower, grown: GrownForest, training: TrainingRows
) -> GrowthAlternative:
    """Return what is known of a forest that was grown."""
    cost = float(grown.costs[-1]) if len(grown.costs) else np.nan
    error = np.nan
    if grown.trees is not None and training.validation_labels is not None:
        said = grown.trees.predict_proba(training.validation_rows).argmax(axis=1)
        error = float(np.mean(said != training.validation_labels))
    return GrowthAlternative(
        alpha, grower.cost_exponent, grower.max_features, grown.n_trees, cost, error
    )


def several(name: str, value: object) -> list[tuple[str, object]]:
    """Return a parameter of one value or several as values with their names."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return [(name, value)]
    if not len(value):
        raise ParameterError(f"{name} must be one value or several, got {value!r}")
    return [(f"{name}[{i}]", one) for i, one in enumerate(value)]


def check_share(name: str, value: object) -> Share:
    """Return what says how many columns are drawn, in plain types; else a ParameterError."""
    if value is None or (isinstance(value, str) and value == "sqrt"):
        return value
    if isinstance(value, Integral):
        number = int(value)
        if number >= 1 and not isinstance(value, bool):
            return number
    elif isinstance(value, Real) and 0.0 < float(value) <= 1.0:
        return float(value)
    raise ParameterError(
        f'{name} must be an integer >= 1, a share in (0, 1], "sqrt", "auto" or None, got {value!r}'
    )


def n_drawn(share: Share, n_columns: int) -> int:
    """Return how many of all columns are drawn; of a share, rounded down, at least one."""
    if share is None:
        return n_columns
    if isinstance(share, str):
        return isqrt(n_columns)
    if isinstance(share, int):
        return min(share, n_columns)
    return max(1, int(share * n_columns))
