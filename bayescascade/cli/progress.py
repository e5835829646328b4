"""Progress bars on stderr: for samplers, for counts and for rows."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from bayescascade.base.texts import printable

if TYPE_CHECKING:
    import samplers

_PATIENCE = 2.0  # after these seconds without a report, the kernels are being compiled


@contextmanager
def progress_bar(size: str, sizes: str) -> Iterator[Callable[["samplers.Progress"], None]]:
    """Show a bar while the block runs; yield a function for an estimator's `progress`.

    `size` names the quantity for the size of a state, such as "n_leaves"; `sizes` is the noun, such
    as "leaves".
    """
    bar = Progress(
        TextColumn("{task.description:9}"),
        BarColumn(bar_width=10),
        _FinishedShare(),
        _TimeLeft(),
        _LastReport(),
        console=Console(file=sys.stderr, stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=None, status="", started=time.monotonic())
        yield lambda report: _update(bar, task, report, size, sizes)


@contextmanager
def count_bar(description: str, total: int) -> Iterator[Callable[..., object]]:
    """Show a bar while the block runs; yield a function to be called after each of `total`."""
    n_done = count(1)
    with _bar(description, total, MofNCompleteColumn(), TimeElapsedColumn()) as show:
        yield lambda *_: show(next(n_done))


@contextmanager
def rows_bar(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block runs; yield a function that takes the number of finished rows.

    `total` may be approximate. If it is None, the bar shows only the number of rows and the speed.
    """
    with _bar(description, total, _RowSpeed(), _TimeLeft()) as show:
        yield show


@contextmanager
def _bar(
    description: str, total: int | None, *columns: ProgressColumn
) -> Iterator[Callable[[int], None]]:
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10),
        *columns,
        console=Console(file=sys.stderr, stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(printable(description), total=total)
        yield lambda done: bar.update(task, completed=done)


class _RowSpeed(ProgressColumn):
    """The number of rows done, and rows per second."""

    def render(self, task: Task) -> Text:
        speed = f"  {task.speed:,.0f} rows/s" if task.speed else ""
        return Text(f"{task.completed:,.0f} rows{speed}", no_wrap=True)


class _FinishedShare(ProgressColumn):
    """The finished share of a stage, if it is known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.percentage:3.0f} %", no_wrap=True)


class _TimeLeft(ProgressColumn):
    """The time left, if it is known, by the speed of the last half minute before a report."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        seconds = task.time_remaining
        if seconds is None or task.finished:
            return Text("")
        now = time.monotonic()
        seconds -= now - task.fields.get("reported", now)
        if seconds <= 0:  # it has become slower, who knows how much
            return Text("")
        minutes, seconds = divmod(int(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return Text(f"{clock} left", style="dim", no_wrap=True)


class _LastReport(ProgressColumn):
    """The last report of the samplers, or the reason why there is none yet."""

    def render(self, task: Task) -> Text:
        waited = time.monotonic() - task.fields["started"]
        if not task.fields["status"] and waited > _PATIENCE:
            return Text("compiling, which happens once")
        return Text(task.fields["status"], no_wrap=True, overflow="ellipsis")


def _update(
    bar: Progress, task: TaskID, report: "samplers.Progress", size: str, sizes: str
) -> None:
    status = " "  # for a search that reports no states
    if "gap" in report.described:
        status = f"no other is more probable by more than {report.described['gap']:,.2f} nats"
    elif size in report.described:
        status = (
            f"log posterior {report.log_density:,.1f}  "
            f"{report.described[size]:.0f} {sizes}  {report.acceptance_rate:.0%} accepted"
        )
    shown, total = bar.tasks[0], report.total or None
    if total != shown.total or report.done < shown.completed:  # a new stage with another speed
        bar.reset(task)
        shown.total = total  # `reset` cannot set None
    bar.update(
        task,
        description=report.phase,
        completed=report.done,
        status=status,
        reported=time.monotonic(),
    )
