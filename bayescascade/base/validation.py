"""Checks of user input, done once at the public boundary.

Every message reads *name, rule, value*: "max_leaves must be an integer >= 1, got 0". Each check
returns the value in the plain type that the rest of the package expects, or raises ParameterError.
"""

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.typed_words import typed


def check_integer(
    name: str, value: object, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return `value` as an int within the closed range [minimum, maximum].

    NumPy integers are accepted; booleans and floats (even integral ones) are not.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if (minimum is None or number >= minimum) and (maximum is None or number <= maximum):
            return number
    raise ParameterError(
        f"{name} must be an integer{_closed_range(minimum, maximum)}, got {value!r}"
    )


def check_real(
    name: str,
    value: object,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Return `value` as a finite float in [minimum, maximum], strictly between `above` and `below`.

    NumPy numbers are accepted; booleans, NaN and infinities are not.
    """
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)):
        number = float(value)
        if (
            math.isfinite(number)
            and (minimum is None or number >= minimum)
            and (maximum is None or number <= maximum)
            and (above is None or number > above)
            and (below is None or number < below)
        ):
            return number
    bounds = ((">=", minimum), (">", above), ("<=", maximum), ("<", below))
    rule = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
    got = f"{value:g}" if isinstance(value, float) else repr(value)
    got = typed(repr(value), got)  # where -3 was read as a float
    raise ParameterError(f"{name} must be a finite number {rule}".rstrip() + f", got {got}")


def check_probability(name: str, value: object, *, strict: bool = False) -> float:
    """Return `value` as a float in [0, 1], or in the open interval (0, 1) if `strict`."""
    if strict:
        return check_real(name, value, above=0.0, below=1.0)
    return check_real(name, value, minimum=0.0, maximum=1.0)


def check_bounds(name: str, bounds: Any, of: str = "") -> tuple[float, float]:
    """Return two numbers (low, high), low < high, whose middle and half distance floats hold.

    `of` says what they are bounds of, as in ', for column "age"'.
    """
    try:
        low, high = (check_real(name, bound) for bound in bounds)
        if 0.0 < high / 2.0 - low / 2.0 < math.inf:
            return low, high
    except (TypeError, ValueError):
        pass
    raise ParameterError(f"{name} must be (low, high), low < high{of}, got {bounds!r}")


def check_choice(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of the strings in `choices`."""
    if isinstance(value, str) and value in choices:
        return value
    listed = ", ".join(repr(choice) for choice in choices)
    raise ParameterError(f"{name} must be one of {listed}, got {value!r}")


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool; numbers are not accepted, NumPy's truth values are."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ParameterError(f"{name} must be True or False, got {value!r}")


def check_jobs(n_jobs: object) -> int | None:
    """Return `n_jobs` as joblib takes it: None, or an integer other than 0."""
    if n_jobs is None:
        return None
    jobs = check_integer("n_jobs", n_jobs)
    if jobs == 0:
        raise ParameterError("n_jobs must be an integer other than 0 or None, got 0")
    return jobs


def check_weights(name: str, weights: ArrayLike, n_rows: int) -> Floats:
    """Return row weights as a contiguous (n_rows,) float64 array, each finite and >= 0.

    Raises ParameterError if the shape is not (n_rows,); DataError if a weight is not a number, is
    negative, NaN or infinite, or if all are zero.
    """
    array = np.asarray(weights)
    if array.shape != (n_rows,):
        raise ParameterError(f"{name} must have shape ({n_rows},), got {array.shape}")
    checked = check_weight_values(name, array)
    if not checked.any():
        raise DataError(f"{name} must not be all zero, got {n_rows:,} zeros")
    return checked


def check_weight_values(name: str, weights: NDArray[np.generic], first_row: int = 1) -> Floats:
    """Return a block of weights, whose first is data row `first_row`, as float64.

    Raises DataError, which names the row, if a weight is no number, negative, NaN or infinite.
    """
    try:
        checked = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        row = next(i for i, weight in enumerate(weights) if not _is_number(weight))
        raise DataError(
            f"{name} must be numbers, got {weights[row]!r} in row {first_row + row}"
        ) from None
    wrong = ~(np.isfinite(checked) & (checked >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{name} must be finite and >= 0, got {checked[row]:g} in row {first_row + row}"
        )
    return checked


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _closed_range(minimum: int | None, maximum: int | None) -> str:
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}"
    if minimum is not None:
        return f" >= {minimum}"
    return "" if maximum is None else f" <= {maximum}"
