"""What a forest grown for a budget may choose among, on validation rows: sizes of trees and costs.

A parameter may be one value or several; `several` lists them, by the name that errors call each.
"""

from collections.abc import Mapping, Sequence
from math import isqrt
from numbers import Integral, Real
from typing import NamedTuple, TypeAlias

import numpy as np

from bayescascade.base.errors import ParameterError

__all__ = ["AUTOMATIC", "GrowthAlternative", "Share", "check_share", "n_drawn", "several"]

Share: TypeAlias = int | float | str | None
"""How many columns are drawn for a split: so many, a share, the square root, or all."""


AUTOMATIC: Mapping[str, tuple[Share, ...]] = {
    "alpha": (0.0, 16.0),
    "cost_exponent": (1.0, 0.5, 0.0),
    "max_features": (0.5, None),
}
"""What "auto" stands for where there is something to choose by; the first elsewhere."""


class GrowthAlternative(NamedTuple):
    """One of the forests that the parameters allow.

    Parameters
    ----------
    alpha, cost_exponent : float
    max_features : int >= 1
        Columns drawn for each split.
    n_trees : int >= 0
        Trees within the budget; 0 if the first one is beyond it.
    cost : float
        Mean cost of the validation rows; of the first tree, if it is beyond the budget.
    error : float in [0, 1]
        Share of validation rows that are classified wrongly; NaN without their labels, or a tree.
    """

    alpha: float
    cost_exponent: float
    max_features: int
    n_trees: int
    cost: float
    error: float


def several(name: str, value: object) -> list[tuple[str, object]]:
    """Return a parameter that is one value or a sequence as values with their names.

    Raises
    ------
    ParameterError
        If the sequence is empty.
    """
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return [(name, value)]
    if not len(value):
        raise ParameterError(f"{name} must be one value or several, got {value!r}")
    return [(f"{name}[{i}]", one) for i, one in enumerate(value)]


def check_share(name: str, value: object) -> Share:
    """Return what says how many columns are drawn, in plain types.

    Raises
    ------
    ParameterError
        If it says nothing of the kind.
    """
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
    """Return how many columns are drawn of so many; of a share, rounded down, at least one."""
    if share is None:
        return n_columns
    if isinstance(share, str):
        return isqrt(n_columns)
    if isinstance(share, int):
        return min(share, n_columns)
    return max(1, int(share * n_columns))
