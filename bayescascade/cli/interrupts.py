"""Ctrl-C while a command has something to lose: what was found is kept, in whole files."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bayescascade.base.interrupts import replaced_handlers

_TOGETHER = 1.0  # seconds within which signals are one Ctrl-C: ``timeout`` sends two at once


@contextmanager
def single_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt once for signals that come together.

    The first ends a search; another would be raised while the search puts together what it found.
    """
    is_new = _told_apart()

    def press(*_: object) -> None:
        if is_new():
            raise KeyboardInterrupt

    with replaced_handlers(press, (signal.SIGINT,)):
        yield


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C be asked for instead of raised, the first time; yields what says whether it was.

    A file is not half written then.
    """
    is_new, pressed = _told_apart(), threading.Event()

    def press(*_: object) -> None:
        if not is_new():
            return
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    with replaced_handlers(press, (signal.SIGINT,)):
        yield pressed.is_set


def _told_apart() -> Callable[[], bool]:
    """Return what says of each signal whether it is a Ctrl-C of its own."""
    last = -math.inf

    def is_new() -> bool:
        nonlocal last
        now = time.monotonic()
        if now - last <= _TOGETHER:
            return False
        last = now
        return True

    return is_new
