"""The one place that says how kernels are compiled."""

from collections.abc import Callable
from typing import TypeVar

from numba import njit

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` with the project's options: cached on disk, no GIL, NumPy's errors.

    With this error model a division by zero gives an infinity, not an exception; kernels guard
    their divisions and logarithms on purpose. No fastmath: densities use minus infinity.
    """
    compiled: Function = njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled
