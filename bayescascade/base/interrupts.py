"""Handlers of signals, replaced or deferred while a block runs."""

import _signal  # type: ignore[import-not-found] # beneath `signal`, which takes 40 us for names
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_RAISING: tuple[int, ...] = tuple(
    getattr(_signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(_signal, name)
)
"""Signals whose handlers raise exceptions."""


@contextmanager
def replaced_handlers(
    handle: Callable[..., None], signals: tuple[int, ...] = _RAISING
) -> Iterator[dict[int, Callable[..., Any]]]:
    """Handle signals by `handle` in the block, in the main thread; yield the former handlers."""
    handlers: dict[int, Callable[..., Any]] = {}
    if threading.current_thread() is threading.main_thread():
        known = {number: _signal.getsignal(number) for number in signals}
        handlers = {number: handler for number, handler in known.items() if callable(handler)}
    try:
        for number in handlers:
            _signal.signal(number, handle)
        yield handlers
    finally:
        for number, handler in handlers.items():
            _signal.signal(number, handler)


@contextmanager
def deferred_handlers() -> Iterator[None]:
    """Defer handlers of signals until the block has ended."""
    came: list[tuple[int, Any]] = []
    handlers: dict[int, Callable[..., Any]] = {}
    try:
        with replaced_handlers(lambda *signal: came.append(signal)) as handlers:
            yield
    finally:
        for number, frame in came:
            handlers[number](number, frame)
