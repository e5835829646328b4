"""How many threads the libraries below NumPy and scikit-learn take.

For little work, threads of BLAS and OpenMP cost more than they save, a hundred times as much where
other processes hold the cores; and the last bits of a product may depend on them.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["single_threaded"]


def single_threaded() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP take one thread, in all threads of the process."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
