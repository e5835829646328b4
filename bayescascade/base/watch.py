"""Time limits: a watch that ends long work in the same way as Ctrl-C.

A fit has a `Watch` from its start. Long work calls `check_time` several times a second. When the
time is up, it raises `OutOfTime`, a KeyboardInterrupt, so code that saves results at Ctrl-C also
saves them then.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import perf_counter
from typing import TypeVar

from bayescascade.base.validation import check_real

T = TypeVar("T")


class OutOfTime(KeyboardInterrupt):
    """The time limit is reached."""


class Watch:
    """The time left of a limit in seconds, from when it is made; None for no limit.

    `is_up` says whether the limit has ended any work in the current part of the time. Raises
    ParameterError if `seconds` is not a number > 0.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = None if seconds is None else check_real("time_limit", seconds, above=0.0)
        self._end = inf if self.seconds is None else perf_counter() + self.seconds
        self.is_up = False

    @property
    def left(self) -> float:
        """Seconds left, >= 0; infinite without a limit."""
        return max(0.0, self._end - perf_counter())

    def is_over(self, needed: float = 0.0) -> bool:
        """Return whether at most `needed` seconds are left, and note it in `is_up`."""
        if self._end < inf and perf_counter() + needed >= self._end:
            self.is_up = True
            return True
        return False

    def check(self) -> None:
        """Raise OutOfTime if no time is left."""
        if self.is_over():
            raise OutOfTime

    def grant(self, seconds: float) -> None:
        """Extend the time to at least some seconds, for work that must be finished."""
        self._end = max(self._end, perf_counter() + seconds)

    @contextmanager
    def part(self, share: float, reserve: float = inf, *, is_final: bool = False) -> Iterator[None]:
        """Limit the block to this share of the time left, or to all but `reserve` seconds of it.

        is_final: work that the limit of the block ends is not continued later, so `is_up` stays.
        """
        end, left, was_up = self._end, self.left, self.is_up
        if end < inf:
            self._end = end - min((1.0 - share) * left, reserve)
        try:
            yield
        finally:
            self._end = end
            self.is_up = was_up or (self.is_up and (is_final or self.left == 0.0))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Make `check_time` use this watch, in this thread, while the block runs."""
        token = _in_use.set(self)
        try:
            yield
        finally:
            _in_use.reset(token)


def check_time() -> None:
    """Raise OutOfTime if no time is left on this thread's watch."""
    watch_in_use().check()


def watch_in_use() -> Watch:
    """Return the watch of this thread, to be passed to its helper threads."""
    return _in_use.get() or _ENDLESS


def last_of(states: Iterable[T]) -> tuple[T, KeyboardInterrupt | None]:
    """Return the last of states that become better, and what ended them: Ctrl-C, or a limit.

    The first one is waited for.
    """
    kept: T | None = None
    try:
        for state in states:
            kept = state
    except KeyboardInterrupt as ended:
        if kept is None:
            raise
        return kept, ended
    assert kept is not None
    return kept, None


_in_use: ContextVar[Watch | None] = ContextVar("watch", default=None)
_ENDLESS = Watch(None)
