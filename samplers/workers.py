"""Many calls in processes of this machine: what they return in order, and what they warn of."""

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import joblib

R = TypeVar("R")


def results_of_workers(
    function: Callable[..., R], calls: Iterable[tuple[Any, ...]], n_workers: int
) -> Iterator[R]:
    """Yield ``function(*call)`` for each of `calls`, in their order, as soon as it is there.

    What a call raises is raised here, and what it warns of is warned of here. Whatever ends this
    generator, be it Ctrl-C, ends the workers.
    """
    parent = os.getpid()
    # One call at a time, so that it is seen as soon as it ends; and arrays as they are: in mapped
    # ones, which cannot be written to, kernels would be compiled anew.
    parallel = joblib.Parallel(
        n_jobs=n_workers, return_as="generator", batch_size=1, max_nbytes=None
    )
    results = parallel(joblib.delayed(_call)(parent, function, *call) for call in calls)
    try:
        for result, warned in results:
            for one in warned:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
            yield result
    finally:
        results.close()


def leave_ctrl_c_to(parent: int) -> None:
    """Let only the process `parent` act on Ctrl-C, which reaches all processes of a terminal.

    It ends the workers. Signals are handled in main threads.
    """
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _call(
    parent: int, function: Callable[..., R], *arguments: Any
) -> tuple[R, list[warnings.WarningMessage]]:
    leave_ctrl_c_to(parent)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, warned
