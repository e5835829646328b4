"""Running kernels on the lines of a lattice, in interruptible pieces and in threads."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, product
from threading import Event
from time import perf_counter

import numpy as np

from bayescascade.base.arrays import Flags
from bayescascade.base.threads import n_threads_of
from bayescascade.base.watch import watch_in_use
from bayescascade.methods.density.trees.exact.kernels.layout import (
    RecursionWorkspace,
    new_workspace,
)
from bayescascade.methods.density.trees.exact.lattice import Lattice

Progress = Callable[[float], None]
Digits = tuple[int, ...]
Piece = Callable[[RecursionWorkspace, int, bool, int], bool]

_PIECE = 0.2  # seconds between checks for an interrupt
_FIRST_LINES = 64  # in the first piece, before the speed is known
_MANY_TERMS = 10_000_000  # for all boxes; from here on, threads share the work
_FEWEST_TASKS = 32  # for each thread


def workspace_of(lattice: Lattice) -> RecursionWorkspace:
    """Allocate the workspace of a recursion."""
    plan, n_blocks = lattice.plan, [blocks.n_blocks for blocks in lattice.blocks]
    line = n_blocks[-1] if plan.keeps else 1
    side = max(n_blocks) if plan.keeps else 1
    n_places = 2 * plan.most * len(n_blocks) if plan.is_short else 0
    return new_workspace(len(n_blocks), plan.most, plan.n_entries(0), line, side, n_places)


def open_blocks(lattice: Lattice, closed: int | None) -> Flags:
    """Return whether blocks of columns are open: all, or only the whole of a `closed` column."""
    whole = [blocks.n_blocks - 1 for blocks in lattice.blocks]
    flags = (np.arange(w + 1) >= (w if j == closed else 0) for j, w in enumerate(whole))
    return np.fromiter(chain.from_iterable(flags), np.bool_)


def run_lines(
    piece: Piece,
    lattice: Lattice,
    flags: Flags,
    work: RecursionWorkspace,
    progress: Progress | None,
    n_jobs: int | None,
) -> None:
    """Run a kernel on all lines of open boxes, in pieces; boxes wait for those of fewer levels."""
    columns = [
        np.flatnonzero(flags[start:stop]).tolist()
        for start, stop in zip(lattice.arrays.starts[:-1], lattice.arrays.starts[1:], strict=True)
    ]
    n_lines = float(np.prod([float(len(blocks)) for blocks in columns[:-1]]))
    is_long = lattice.plan.shift == 0 and lattice.plan.n_terms > _MANY_TERMS
    n_threads = n_threads_of(n_jobs) if is_long else 1  # the check takes longer than a few boxes
    n_fixed, n_tasks = 0, 1
    if n_threads > 1:
        while n_fixed < len(columns) - 1 and n_tasks < _FEWEST_TASKS * n_threads:
            n_tasks *= len(columns[n_fixed])
            n_fixed += 1
    pieces = PiecewiseCalls(piece, n_lines, n_lines / n_tasks, progress)
    if n_fixed == 0:
        pieces.run(work, ())
        return
    waves: dict[int, list[Digits]] = defaultdict(list)
    sizes = [blocks.sizes for blocks in lattice.blocks[:n_fixed]]
    for digits in product(*columns[:n_fixed]):
        waves[sum(int(size[d]) for size, d in zip(sizes, digits, strict=True))].append(digits)

    def own_workspace() -> RecursionWorkspace:
        return workspace_of(lattice)._replace(is_wrapped=work.is_wrapped)

    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for _, wave in sorted(waves.items()):
                for _ in pool.map(lambda digits: pieces.run(own_workspace(), digits), wave):
                    pass
        finally:
            pieces.stopped.set()


class PiecewiseCalls:
    """Calls a kernel for pieces of lines that each take a fraction of a second."""

    def __init__(
        self,
        piece: Piece,
        n_lines: float,
        n_of_task: float,
        progress: Progress | None,
    ) -> None:
        self._piece, self._progress = piece, progress
        self._n_lines, self._n_of_task, self._done = n_lines, n_of_task, 0.0
        self._size = _FIRST_LINES
        self.stopped, self._watch = Event(), watch_in_use()

    def run(self, work: RecursionWorkspace, digits: Digits) -> None:
        """Process all lines with these first digits."""
        work.digits[: len(digits)] = digits
        n_left, is_first, is_left = self._n_of_task, True, True
        while is_left and not self.stopped.is_set():
            self._watch.check()
            started, size = perf_counter(), self._size
            is_left = self._piece(work, len(digits), is_first, size)
            seconds = perf_counter() - started
            self._done += min(size, n_left) if is_left else n_left
            n_left -= min(size, n_left)
            is_first = False
            if self._progress is not None:
                self._progress(min(self._done / self._n_lines, 1.0))
            if is_left and seconds < _PIECE / 2:
                self._size = size * 2
            elif seconds > 2 * _PIECE:
                self._size = max(1, size // 2)
