"""Time limits: a watch that ends what looks at it, in the same way as Ctrl-C does.

A fit has a `Watch` from its start. What takes long calls `check_time` every fraction of a second;
once the time is up that raises `OutOfTime`, a KeyboardInterrupt, so that whatever keeps what was
found at Ctrl-C keeps it then, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import perf_counter

from bayescascade.base.validation import check_real


class OutOfTime(KeyboardInterrupt):
    """The time limit is reached."""


class Watch:
    """The time left of a limit in seconds, from when it is made; None for no limit.

    `is_up` is whether the limit has ended anything within the part of the time in use. Raises
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
        """Return whether as many seconds are not left, by which something then ends."""
        if self._end < inf and perf_counter() + needed >= self._end:
            self.is_up = True
            return True
        return False

    def check(self) -> None:
        """Raise OutOfTime if no time is left."""
        if self.is_over():
            raise OutOfTime

    def grant(self, seconds: float) -> None:
        """Leave at least some seconds, where what has to be finished took all of the time."""
        self._end = max(self._end, perf_counter() + seconds)

    @contextmanager
    def part(self, share: float, reserve: float = inf) -> Iterator[None]:
        """Let the block take this share of what is left, or all but `reserve` seconds of it."""
        end, left = self._end, self.left
        if end < inf:
            self._end = end - min((1.0 - share) * left, reserve)
        try:
            yield
        finally:
            self._end = end
            self.is_up = self.is_up and self.left == 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Let `check_time` look at this watch, in this thread, while the block runs."""
        token = _in_use.set(self)
        try:
            yield
        finally:
            _in_use.reset(token)


def check_time() -> None:
    """Raise OutOfTime if no time is left by the watch in use."""
    watch_in_use().check()


def watch_in_use() -> Watch:
    """Return the watch of this thread, for others that work for it."""
    return _in_use.get() or _ENDLESS


_in_use: ContextVar[Watch | None] = ContextVar("watch", default=None)
_ENDLESS = Watch(None)
