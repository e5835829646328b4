"""Budgets: whether a cost is within one, and the error if none is."""

from collections.abc import Iterable
from math import ceil, log10

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real

_ROUNDING = 1e-9  # relative: 0.1 + 0.2 is within 0.3


class BudgetError(ParameterError):
    """The budget is too small for any classifier that can be learned.

    Parameters
    ----------
    message : str
    least : float
        The smallest budget that is large enough.
    """

    def __init__(self, message: str, least: float) -> None:
        super().__init__(message, least)
        self.least = least


def is_within(cost: float, budget: float) -> bool:
    """Return whether a cost >= 0 is at most a budget >= 0, up to rounding."""
    return bool(cost <= budget * (1 + _ROUNDING))


def too_low(budget: float, least: float, what: str) -> BudgetError:
    """Return the error for a budget below the smallest feasible one.

    `what` names that cost, such as "the mean cost of the cheapest first tree".
    """
    scale = 10.0 ** (5 - max(ceil(log10(least)), -300))
    shown = f"{ceil(least * scale) / scale:.10g}"  # about six digits, rounded up
    return BudgetError(f"budget must be >= {shown}, {what}, got {budget:g}", least)


def check_amounts(name: str, values: object) -> list[float]:
    """Return the numbers, at least one, finite and >= 0, of a list, an array or a Series."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"{name} must be a list of numbers >= 0, got {values!r}")
    amounts = [
        check_real(f"{name}[{place}]", value, minimum=0.0) for place, value in enumerate(values)
    ]
    if not amounts:
        raise ParameterError(f"{name} must have at least one value, got {values!r}")
    return amounts
