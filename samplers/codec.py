"""States as JSON, exactly.

None, bool, int, str and finite floats are their own JSON (a float's shortest decimal gives the
same float back); lists stay lists; everything else becomes an object with one key that names its
kind. Types are matched exactly: a subclass would come back as its base, so it is refused.

An order of iteration over a frozenset is not part of its value. A move that depends on it, instead
of sorting, is not repeatable, with checkpoints or without.
"""

import base64
import json
import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from samplers.errors import CheckpointError
from samplers.types import ProvidesStateCodec, Target

__all__ = ["StateCodec", "decode", "encode"]

S = TypeVar("S")
Array = np.ndarray[Any, np.dtype[Any]]  # of any shape and dtype

ARRAY_KINDS = "biufcSUmM"


class StateCodec(Generic[S]):
    """States to JSON and back, by the target's own codec or the built-in one."""

    def __init__(self, target: Target[S]) -> None:
        self._own = target if isinstance(target, ProvidesStateCodec) else None

    def encode(self, state: S) -> object:
        """Return `state` as what `dumps` writes; raises CheckpointError if it is not supported."""
        if self._own is None:
            return encode(state)
        try:
            return self._own.encode_state(state)
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"encode_state failed with {error!r}") from error

    def dumps(self, content: object) -> str:
        """Return what may hold encoded states as JSON; raises CheckpointError if it is not JSON."""
        try:
            return json.dumps(content)
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"encode_state must return JSON: {error}") from error

    def decode(self, encoded: object) -> S:
        """Return the state from its JSON content; raises ValueError and its like if forged."""
        if self._own is None:
            state: S = decode(encoded)  # type: ignore[assignment]  # S is whatever was encoded
            return state
        try:
            state = self._own.decode_state(encoded)
        except Exception as error:  # it is the target's, and may raise whatever it likes
            raise ValueError(f"decode_state failed with {error!r}") from error
        return state


def encode(value: object) -> object:
    """Return `value` as an object that the json module writes.

    Raises
    ------
    CheckpointError
        If `value` holds something of a type that is not supported.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if isinstance(value, float) and kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list) and kind is list:
        return [encode(item) for item in value]
    if isinstance(value, tuple) and kind is tuple:
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict) and kind is dict:
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, frozenset) and kind is frozenset:
        return {"frozenset": sorted((encode(item) for item in value), key=json.dumps)}
    if isinstance(value, np.ndarray) and kind is np.ndarray and _is_plain(value.dtype):
        return {"array": _encode_array(value)}
    if isinstance(value, np.generic) and _is_plain(value.dtype):
        return {"scalar": _encode_array(np.asarray(value))}
    raise CheckpointError(
        f"states holding a {kind.__module__}.{kind.__qualname__} cannot be written to a "
        "checkpoint: give the target encode_state and decode_state"
    )


def decode(encoded: object) -> object:
    """Return the value of which `encode` made `encoded`.

    Raises
    ------
    ValueError, TypeError, KeyError
        If it made no such thing.
    """
    if isinstance(encoded, list):
        return [decode(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    ((kind, content),) = encoded.items()
    return DECODERS[kind](content)


def _is_plain(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in ARRAY_KINDS


def _encode_array(array: Array) -> object:
    # the memory layout is kept too: it decides the order of a sum, hence its last digit
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": "F" if is_fortran else "C",
        "base64": base64.b64encode(array.tobytes("F" if is_fortran else "C")).decode("ascii"),
    }


def _decode_array(content: dict[str, Any]) -> Array:
    dtype = np.dtype(str(content["dtype"]))
    shape = [int(size) for size in content["shape"]]
    data = bytearray(base64.b64decode(content["base64"], validate=True))
    if not _is_plain(dtype) or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError("an array's data do not fit its shape and dtype")
    return np.ndarray(shape, dtype, data, order="F" if content["order"] == "F" else "C")


DECODERS: dict[str, Callable[..., object]] = {
    "float": float,
    "tuple": lambda items: tuple(decode(item) for item in items),
    "dict": lambda items: {decode(key): decode(item) for key, item in items},
    "frozenset": lambda items: frozenset(decode(item) for item in items),
    "array": _decode_array,
    "scalar": lambda content: _decode_array(content)[()],
}
