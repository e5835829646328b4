"""Arrays of numbers in the records of saved files, which may be damaged or edited."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bayescascade.base.errors import ModelFileError

_WORDS = {"f": "numbers", "i": "integers", "b": "of true and false"}
_TAKEN = {"f": "if", "i": "i", "b": "b"}


def read_array(
    record: Mapping[str, Any],
    name: str,
    shape: tuple[int | None, ...],
    kind: DTypeLike = np.float64,
    *,
    least: float = -math.inf,
    most: float = math.inf,
) -> NDArray[Any]:
    """Return a record's lists as an array of a shape (None: any length), within [least, most]."""
    dtype, given = np.dtype(kind), record[name]
    try:
        found = np.array(given if isinstance(given, list) else "")
    except ValueError:  # lists of different lengths
        found = np.array("")
    if given == [] and not shape[0]:  # lists of no rows do not have further lengths
        found = np.zeros([length or 0 for length in shape], dtype)
    is_shape = found.ndim == len(shape) and all(
        length in (None, size) for length, size in zip(shape, found.shape, strict=True)
    )
    is_kind = found.dtype.kind in _TAKEN[dtype.kind] or not found.size
    is_kind = is_kind and (dtype.kind == "b" or not _has_flags(given))  # numpy takes true for 1
    if not is_shape or not is_kind or not _are_within(found, least, most):
        raise ModelFileError(
            f"a saved model's {name} must be {_wanted(shape, dtype.kind, least, most)}"
        )
    return found.astype(dtype)


def are_shares(values: NDArray[Any], axis: int = -1) -> bool:
    """Return whether numbers are probabilities: >= 0, with sums of one, up to rounding."""
    tolerance = 1e-4 if values.dtype == np.float32 else 1e-6
    with np.errstate(invalid="ignore"):
        sums = values.sum(axis=axis, dtype=np.float64)
        return bool(values.size and (values >= 0).all() and (abs(sums - 1) <= tolerance).all())


def _has_flags(given: object) -> bool:
    """Return whether a nested list has true or false."""
    return isinstance(given, bool) or (isinstance(given, list) and any(map(_has_flags, given)))


def _are_within(found: NDArray[Any], least: float, most: float) -> bool:
    if found.dtype.kind != "f":
        return not found.size or found.dtype.kind == "b" or (
            found.min() >= least and found.max() <= most
        )  # fmt: skip
    return bool((np.isfinite(found) & (found >= least) & (found <= most)).all())


def _wanted(shape: tuple[int | None, ...], kind: str, least: float, most: float) -> str:
    words = _WORDS[kind]
    if most < math.inf:
        words += f" from {least:g} to {most:g}"
    elif kind == "f":
        words = f"finite {words}" + ("" if least == -math.inf else f" >= {least:g}")
    if len(shape) > 1:
        sizes = ", ".join("any" if length is None else str(length) for length in shape)
        return f"{words} of shape ({sizes})"
    return words if shape[0] is None else f"{shape[0]} {words}"
