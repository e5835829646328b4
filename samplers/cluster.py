"""Many calls in processes of this machine or on a cluster; a shared argument is sent once.

joblib sends all arguments with every call. This is cheap between processes of one machine. Over a
network it takes most of the time of a short call if an argument is a posterior with its table. If
joblib's Dask backend is active, `Shared` scatters an argument to the workers at the first call;
later calls only refer to it. Calls are submitted to the backend's own client, because joblib would
run them here, one after the other, while the cluster has only one core. Dask itself is never
imported here.
"""

import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, TypeVar

import joblib
from joblib.parallel import get_active_backend

T = TypeVar("T")
R = TypeVar("R")

LOST = ("cancelled", "lost", "error")
KILLED = "KilledWorker"  # raised for a call after several of its workers have vanished
ATTEMPTS = 3  # successive ones without a result: workers vanish now and then, but not at every call


def shared_on_cluster(value: T) -> "Shared[T] | None":
    """Return `value` for calls on joblib's Dask cluster; None if there is none."""
    backend, _ = get_active_backend()
    return Shared(value, backend) if hasattr(getattr(backend, "client", None), "scatter") else None


class Shared(Generic[T]):
    """The first argument of many calls on a cluster, by joblib's DaskDistributedBackend.

    It is pickled for the first call, and again only if all workers with it are gone. Calls on one
    worker get the same object, maybe in several threads at the same time.
    """

    def __init__(self, value: T, backend: Any) -> None:
        self._value, self._backend, self._client = value, backend, backend.client
        self._future: Any = None

    def map(self, function: Callable[..., R], rest: Iterable[tuple[Any, ...]]) -> Iterator[R]:
        """Yield ``function(value, *others)`` for each `others` in `rest`, in their order.

        All calls are submitted at once. They must be pure, because calls on vanished workers are
        repeated. Their exceptions are raised here, also Dask's exception for a call that kills its
        workers.
        """
        waiting = deque(rest)
        n_fruitless = 0
        last: Exception | None = None
        while waiting:
            try:
                future = self._scattered()
            except TimeoutError as error:  # there is no worker, or none yet after losses
                n_fruitless += 1
                if n_fruitless >= ATTEMPTS:
                    raise last or error from None
                continue
            how = {"pure": False, **self._backend.submit_kwargs}
            calls = [self._client.submit(function, future, *others, **how) for others in waiting]
            try:
                for call in calls:
                    with self._backend.retrieval_context():  # frees the thread of the worker's task
                        result = call.result()
                    waiting.popleft()
                    n_fruitless = 0
                    yield result
            except Exception as error:
                n_fruitless, last = n_fruitless + 1, error
                is_lost = future.status in LOST and self._client.status == "running"
                if not is_lost or n_fruitless >= ATTEMPTS or type(error).__name__ == KILLED:
                    raise

    def _scattered(self) -> Any:
        if self._future is None or self._future.status in LOST:
            # in a list, because a value that is a list would be sent item by item; without a hash,
            # because hashing a table takes as long as sending it
            (self._future,) = self._client.scatter([self._value], broadcast=True, hash=False)
        return self._future


def results_of_workers(
    function: Callable[..., R], calls: Iterable[tuple[Any, ...]], n_workers: int | None
) -> Generator[R, None, None]:
    """Yield ``function(*call)`` for each of `calls`, in their order, as soon as it is ready.

    Exceptions and warnings of a call are raised here. The workers end when this generator ends,
    also by Ctrl-C.
    """
    parent = os.getpid()
    # One call at a time, so that its result is available as soon as it ends. Arrays are not
    # memory-mapped: kernels would be compiled again for read-only arrays.
    can_yield = getattr(get_active_backend()[0], "supports_return_generator", False)
    parallel = joblib.Parallel(
        n_jobs=n_workers, return_as="generator" if can_yield else "list",
        batch_size=1, max_nbytes=None,
    )  # fmt: skip
    started = list[Iterable[tuple[R, list[warnings.WarningMessage]]]]()
    try:
        with _ctrl_c_after() if can_yield else nullcontext():
            started.append(parallel(joblib.delayed(_call)(parent, function, *c) for c in calls))
        for result, warned in started[0]:
            for warning in warned:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
            yield result
    finally:
        for results in started:
            if isinstance(results, Generator):
                results.close()


@contextmanager
def _ctrl_c_after() -> Iterator[None]:
    """Handle Ctrl-C after the block: joblib may lose it, or fail, while it starts processes."""
    former = signal.getsignal(signal.SIGINT)
    if not callable(former) or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = list[tuple[int, Any]]()
    signal.signal(signal.SIGINT, lambda *press: pressed.append(press))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        for press in pressed:
            former(*press)


def leave_ctrl_c_to(parent: int) -> None:
    """Let only the process `parent` handle Ctrl-C, which reaches all processes of a terminal.

    The parent ends the workers. Python handles signals in main threads.
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
