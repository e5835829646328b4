"""Budgets: whether a cost is within one, and lists of them."""

from collections.abc import Iterable

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real

_ROUNDING = 1e-9  # relative: 0.1 + 0.2 is within 0.3


def is_within(cost: float, budget: float) -> bool:
    """Return whether a cost >= 0 is at most a budget >= 0, up to rounding."""
    return bool(cost <= budget * (1 + _ROUNDING))


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
