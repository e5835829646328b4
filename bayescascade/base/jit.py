"""How kernels are compiled, and when they are interpreted instead.

Compiling takes seconds, and a table of a few rows needs few steps. Inside `sparing`, kernels run as
plain Python until they have taken about half as long as compiling takes. The result is the same to
the last bit, as there is no fastmath, and functions and random numbers are those of the same
libraries.

A handler of signals must not raise an exception inside numba. Ctrl-C during compilation leaves
numba broken, and it would read a half-made random generator as pointers. So signals are deferred
there.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from time import thread_time
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

from bayescascade.base.interrupts import deferred_handlers
from bayescascade.base.kernel_cache import cache_of

MOST_INTERPRETED = 3.0
"""Total seconds that a kernel is interpreted before it is compiled; less if it is short."""

_LEAST_INTERPRETED = 0.5
_SECONDS_OF_CODE = 1.5e-4  # for each byte of bytecode: about half of what compiling it takes
_SECONDS_OF_STEP = 1.5e-6  # at most, if there are many
_SECONDS_OF_TICK = 0.02  # a coarse clock may measure 0
_MOST_REMEMBERED = 1 << 13

_steps: ContextVar[float] = ContextVar("steps", default=np.inf)
_is_interpreting: ContextVar[bool] = ContextVar("is_interpreting", default=False)

Function = TypeVar("Function", bound=Callable[..., object])

# Any: numba's stubs do not know all of its options
_OPTIONS: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True
}  # fmt: skip


def kernel(function: Function) -> Function:
    """Compile `function` with the project's options: cached on disk, no GIL, NumPy's errors.

    With this error model a division by zero gives an infinity, not an exception; kernels guard
    their divisions and logarithms on purpose. No fastmath: densities use minus infinity.
    """
    compiled: Any = njit(**_OPTIONS)(function)  # a numba Dispatcher
    if hasattr(compiled, "py_func"):  # not when the JIT is disabled
        compiled._cache = cache_of(compiled.py_func)
        compiled.__class__ = _Kernel
    result: Function = compiled
    return result


@contextmanager
def sparing(steps: float) -> Iterator[None]:
    """Interpret kernels in the block where this takes less time than compiling them.

    Kernels that are already compiled, in memory or on disk, are not interpreted. `steps` >= 0 is
    the approximate number of steps of the innermost loops, for each call.
    """
    token = _steps.set(steps)
    try:
        yield
    finally:
        _steps.reset(token)


def inner_kernel(function: Function) -> Function:
    """Compile a helper that only other kernels call.

    Like every kernel it must allocate nothing and works without numba's reference counting, which
    was most of the time of small helpers that take many arrays: an atomic operation per array and
    call, 6 us a Metropolis step against 2 us without. It has no entry from Python, no machine code
    and no cache of its own: it is part of the kernels that call it, and compiled with them.
    """
    options = {**_OPTIONS, "no_cpython_wrapper": True, "pipeline_class": _LinkedCompiler}
    compiled: Any = njit(**options)(function)
    if hasattr(compiled, "py_func"):
        template = compiled.get_call_template
        compiled.get_call_template = lambda args, kws: template(
            [_general(kind) for kind in args], {name: _general(kws[name]) for name in kws}
        )
        compiled.__class__ = _Kernel
    result: Function = compiled
    return result


def remembered(function: Function) -> Function:
    """Cache the results of an inner kernel of numbers while it is interpreted.

    For equal numbers it returns the same to the last bit, but for signs of zeros.
    """
    if isinstance(function, _Kernel):  # not when the JIT is disabled
        function.is_remembered = True
    return function


def _general(kind: types.Type) -> types.Type:
    """Return the type of a helper's argument, so that it is not compiled for each constant.

    Numba would compile ``f(0)``, ``f(1)`` and ``f(k)`` one by one, and again for shorter integers.
    """
    kind = types.unliteral(kind)  # type: ignore[no-untyped-call]
    is_signed = isinstance(kind, types.Integer) and kind.signed  # type: ignore[attr-defined]
    return types.int64 if is_signed else kind


class _Kernel(CPUDispatcher):
    """A kernel that is interpreted as long as this is faster than compiling it."""

    n_interpreted = 0.0  # steps
    seconds_interpreted = 0.0
    is_remembered = False

    def __call__(self, *args: Any) -> Any:
        """Run the kernel."""
        if _is_interpreting.get():  # called by interpreted kernels
            return self.py_func(*args)
        steps = _steps.get()
        if not self._is_worth_interpreting(steps) or self._is_compiled():
            if not (args and isinstance(args[0], np.random.Generator)):
                return super().__call__(*args)
            with deferred_handlers():
                return super().__call__(*args)
        token, started = _is_interpreting.set(True), thread_time()
        try:
            with np.errstate(all="ignore"):
                return self._python(*args)
        finally:
            _is_interpreting.reset(token)
            self.n_interpreted += steps
            self.seconds_interpreted += thread_time() - started

    def compile(self, sig: Any) -> Any:
        """Compile for a signature; garbage collection would take a seventh of the time."""
        collects = gc.isenabled()
        gc.disable()
        try:
            with deferred_handlers():
                return super().compile(sig)
        finally:
            if collects:
                gc.enable()

    def _is_worth_interpreting(self, steps: float) -> bool:
        """Return whether more steps, at the pace so far, stay below the limit."""
        pace = _SECONDS_OF_STEP
        if self.n_interpreted > 0:
            pace = min(pace, (self.seconds_interpreted + _SECONDS_OF_TICK) / self.n_interpreted)
        return self.seconds_interpreted + pace * steps <= self._most_interpreted

    @cached_property
    def _most_interpreted(self) -> float:
        """Seconds: short kernels are compiled sooner, as that takes less time."""
        code = sum(len(helper.py_func.__code__.co_code) for helper in _helpers(self))
        return min(MOST_INTERPRETED, _LEAST_INTERPRETED + _SECONDS_OF_CODE * code)

    def _is_compiled(self) -> bool:
        return bool(self.overloads) or self._is_on_disk

    @cached_property
    def _is_on_disk(self) -> bool:
        """Return whether it is in the disk cache; the answer is kept."""
        cache: Any = self._cache  # type: ignore[attr-defined] # untyped
        index: Any = getattr(cache, "_cache_file", None)  # None without a cache
        return index is not None and bool(index._load_index())

    @cached_property
    def _python(self) -> Callable[..., Any]:
        """The kernel as Python, with helpers as Python.

        A small table needs a million calls of helpers, and asking at each call whether to interpret
        would take most of the time.
        """
        copies = {helper: _copy_of(helper.py_func) for helper in _helpers(self)}
        functions: dict[Any, Callable[..., Any]] = {
            item: lru_cache(_MOST_REMEMBERED)(copy) if item.is_remembered else copy
            for item, copy in copies.items()
        }
        for copy in copies.values():
            _call_python(copy, functions)
        return functions[self]


def _copy_of(function: Any) -> FunctionType:
    """Return a copy of a function with its own global names."""
    room, name = dict(function.__globals__), function.__name__
    copy = FunctionType(function.__code__, room, name, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _call_python(function: FunctionType, functions: dict[Any, Callable[..., Any]]) -> None:
    """Replace kernels among a function's global names, also ``module.name``, by their Python."""
    room = function.__globals__
    for name in function.__code__.co_names:
        called = room.get(name)
        if isinstance(called, _Kernel):
            room[name] = functions[called]
        elif isinstance(called, ModuleType):
            inside = {k: functions[v] for k, v in vars(called).items() if _is_of(v, functions)}
            if inside:
                room[name] = SimpleNamespace(**{**vars(called), **inside})


def _is_of(value: object, functions: dict[Any, Callable[..., Any]]) -> bool:
    return isinstance(value, _Kernel) and value in functions


def _helpers(function: Any) -> set[Any]:
    """Return a kernel and all helpers that it calls, by their own names or as ``module.name``."""
    found, waiting = {function}, [function]
    while waiting:
        py_func = waiting.pop().py_func
        names, room = py_func.__code__.co_names, py_func.__globals__
        modules = [vars(room[name]) for name in names if isinstance(room.get(name), ModuleType)]
        called = (module.get(name) for module in (room, *modules) for name in names)
        new = {helper for helper in called if isinstance(helper, _Kernel)} - found
        found |= new
        waiting += new
    return found


class _LinkedCompiler(Compiler):
    """Numba's compiler, into a `_LinkedLibrary`."""

    def define_pipelines(self) -> Any:
        codegen, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
        self.state.library = _LinkedLibrary(codegen, name)  # type: ignore[no-untyped-call]
        return super().define_pipelines()  # type: ignore[no-untyped-call]


class _LinkedLibrary(JITCodeLibrary):
    """Code of an inner kernel, which is optimized and compiled only with its callers."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        del name
        return 0

    @property
    def codegen(self) -> Any:
        """Return a code generator without environments to notify."""
        return SimpleNamespace(set_env=lambda *_: None)
