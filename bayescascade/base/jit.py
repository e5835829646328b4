"""The one place that says how kernels are compiled and cached.

A kernel may call helpers from other modules of its folder. Numba's disk cache watches only the file
of the function called, and would go on returning the old code after a helper elsewhere was edited;
`kernel` therefore stamps a cache entry with the contents of every module in the folder, and of
`chain_kernels`, which all folders share.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

__all__ = ["inner_kernel", "kernel"]

_SHARED = Path(__file__).with_name("chain_kernels.py")

Function = TypeVar("Function", bound=Callable[..., object])

# Any: numba's stubs do not know all of its options
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def kernel(function: Function) -> Function:
    """Compile `function` with the project's options: cached on disk, no GIL, NumPy's errors.

    With this error model a division by zero gives an infinity, not an exception; kernels guard
    their divisions and logarithms on purpose. No fastmath: densities use minus infinity.
    """
    compiled: Any = njit(**_OPTIONS)(function)  # a numba Dispatcher
    if hasattr(compiled, "py_func"):  # not when the JIT is disabled
        compiled._cache = _FolderCache(compiled.py_func)
    result: Function = compiled
    return result


def inner_kernel(function: Function) -> Function:
    """Compile a helper that only other kernels call.

    Like every kernel it must allocate nothing and works without numba's reference counting, which
    was most of the time of small helpers that take many arrays: an atomic operation per array and
    call, 6 us a Metropolis step against 2 us without. It has no entry from Python, which halves
    the time to compile it, and no cache of its own: it is part of the kernels that call it.
    """
    options = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Function = njit(**options)(function)
    return compiled


class _FolderCache(FunctionCache):
    """Numba's cache of one function, fresh as long as no module of its folder has changed."""

    def __init__(self, py_func: Callable[..., object]) -> None:
        super().__init__(py_func)  # type: ignore[no-untyped-call]
        folder = Path(py_func.__code__.co_filename).parent
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_digest(folder),
        )


@cache
def _digest(folder: Path) -> str:
    """Digest of the sources in a folder, of the shared helpers, and of how this compiles them."""
    contents = hashlib.sha256(Path(__file__).read_bytes())
    for path in (_SHARED, *sorted(folder.glob("*.py"))):
        contents.update(path.name.encode() + path.read_bytes())
    return contents.hexdigest()
