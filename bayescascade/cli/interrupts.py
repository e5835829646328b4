"""Ctrl-C while a command has results: these are saved, in complete files."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bayescascade.base.interrupts import replaced_handlers

_TOGETHER = 1.0  # signals within these seconds count as one Ctrl-C: ``timeout`` sends two at once


@contextmanager
def single_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt once for signals that arrive together.

    The first ends a search; a second would interrupt it while it collects its results.
    """
    is_new = _press_filter()

    def press(*_: object) -> None:
        if is_new():
            raise KeyboardInterrupt

    with replaced_handlers(press, (signal.SIGINT,)):
        yield


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], bool]]:
    """Do not raise at the first Ctrl-C; yield a function that returns whether there was one.

    So files are not left half written.
    """
    is_new, pressed = _press_filter(), threading.Event()

    def press(*_: object) -> None:
        if not is_new():
            return
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    with replaced_handlers(press, (signal.SIGINT,)):
        yield pressed.is_set


def _press_filter() -> Callable[[], bool]:
    """Return a function that says for each signal whether it is a new Ctrl-C."""
    last = -math.inf

    def is_new() -> bool:
        nonlocal last
        now = time.monotonic()
        if now - last <= _TOGETHER:
            return False
        last = now
        return True

    return is_new
