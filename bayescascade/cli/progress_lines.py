"""Progress on stderr: a bar on a terminal, otherwise a line per minute."""

import itertools
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bayescascade.cli.output import say

if TYPE_CHECKING:
    import samplers

_FIRST, _EVERY = 10.0, 60.0  # seconds from the first report to the first line, and between lines
_SOON, _LONG = 2.0, 20.0  # the first line comes after _SOON if more than _LONG is left


@contextmanager
def search_progress(size: str, sizes: str) -> Iterator[Callable[["samplers.Progress"], None]]:
    """Report progress while the block runs; yield a function for an estimator's `progress`.

    `size` and `sizes` are those of `progress_bar`.
    """
    if sys.stderr.isatty():
        from bayescascade.cli.progress import progress_bar

        with progress_bar(size, sizes) as show:
            yield show
        return
    with _lines() as hear:
        yield hear


@contextmanager
def _lines() -> Iterator[Callable[["samplers.Progress"], None]]:
    """Say a line per minute while the block runs, from the reports to the yielded function."""
    lines, is_over = ProgressLines(say), threading.Event()

    def tick() -> None:  # in a thread, because a search may send no report for minutes
        while not is_over.wait(1.0):
            lines.tick()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield lines.hear
    finally:
        is_over.set()
        thread.join()


@contextmanager
def count_progress(description: str, total: int) -> Iterator[Callable[..., object]]:
    """Report progress while the block runs; yield a function to be called after each of `total`."""
    if sys.stderr.isatty():
        from bayescascade.cli.progress import count_bar

        with count_bar(description, total) as done:
            yield done
        return
    n_done = itertools.count(1)
    with _lines() as hear:
        hear(_counted(description, 0, total))
        yield lambda *_: hear(_counted(description, next(n_done), total))


@contextmanager
def rows_progress(description: str, total: int | None) -> Iterator[Callable[[int], object]]:
    """Report progress while the block runs; yield a function that takes the number of rows done.

    `total` may be approximate, and None if it is unknown.
    """
    if sys.stderr.isatty():
        from bayescascade.cli.progress import rows_bar

        with rows_bar(description, total) as show:
            yield show
        return
    with _lines() as hear:
        yield lambda n: hear(_counted(f"{description}, {n:,} rows", n, total or 0))


def _counted(phase: str, done: int, total: int) -> "samplers.Progress":
    from samplers import Progress

    return Progress(phase, done, total, math.nan, math.nan, math.nan, {})


@contextmanager
def stage_progress(stage: str) -> Iterator[None]:
    """Say that a stage of unknown length is running, while the block runs."""
    with search_progress("", "") as show:
        show(_counted(stage, 0, 0))
        yield


class _TimedReport(NamedTuple):
    """The last report, its time, and the start of the measurement of speed."""

    report: "samplers.Progress"
    at: float
    since: float
    done: int  # then


class ProgressLines:
    """Passes a line to `say` when a search turns out to be long, and then one per minute.

    `clock` returns seconds.
    """

    def __init__(
        self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._began = self._waiting = clock()
        self._last: _TimedReport | None = None
        self._has_spoken = False

    def hear(self, report: "samplers.Progress") -> None:
        """Take a report of a search."""
        now, last = self._clock(), self._last
        if last is None and not self._has_spoken:
            self._waiting = now
        if last is None or report.total != last.report.total or report.done < last.report.done:
            self._last = _TimedReport(report, now, now, report.done)
        else:
            self._last = last._replace(report=report, at=now)

    def tick(self) -> None:
        """Say a line if it is time for one."""
        now = self._clock()
        patience = _EVERY
        if self._last is not None and not self._has_spoken:
            left = self._left(self._last, now)
            patience = _FIRST if left is None or left < _LONG else _SOON
        if now - self._waiting >= patience:
            self._has_spoken, self._waiting = True, now
            self._say(f"after {_clock_text(now - self._began)}: {self._status(now)}")

    def _status(self, now: float) -> str:
        if self._last is None:
            return "reading the table, or compiling (only the first time)"
        report, left = self._last.report, self._left(self._last, now)
        share = f" {min(report.done / report.total, 1.0):.0%}" if report.total else ""
        texts = [f"{report.phase}{share}"]
        if left is not None:
            texts.append(f"about {_clock_text(left)} left in this phase")
        if math.isfinite(report.best_log_density):
            texts.append(f"best log posterior {report.best_log_density:,.2f}")
        if math.isfinite(report.described.get("gap", math.inf)):
            gap = f"{report.described['gap']:,.2f}"
            texts.append(f"no other is more probable by more than {gap} nats")
        return ", ".join(texts)

    def _left(self, last: _TimedReport, now: float) -> float | None:
        """Return the seconds left in the phase, at its speed so far; None if unknown.

        A phase that lasts longer than this is slower now, and how much slower is unknown.
        """
        n_done = last.report.done - last.done
        if n_done <= 0 or last.at <= last.since:
            return None
        left = (last.report.total - last.report.done) * (last.at - last.since) / n_done
        left -= now - last.at
        return left if left > 0.0 else None


def _clock_text(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
