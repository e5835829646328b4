"""Many calls in processes of this machine, or on a cluster, where what all need is sent once.

joblib sends the arguments of every call along with it. Between processes of one machine that is
cheap; over a network it is most of a short call, if one of them is a posterior with its table.
Where joblib's Dask backend is active, `Shared` scatters an argument to the workers by the first
call, and by later ones only names it. Calls are submitted to the backend's own client: joblib would
run them here, one after the other, whenever the cluster is down to one core. Dask itself is never
imported here.
"""

import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import joblib
from joblib.parallel import get_active_backend

T = TypeVar("T")
R = TypeVar("R")

LOST = ("cancelled", "lost", "error")
KILLED = "KilledWorker"  # raised of a call that ran on each of several workers that vanished
ATTEMPTS = 3  # in a row without a result: workers vanish now and then, yet not with every call


def shared_on_cluster(value: T) -> "Shared[T] | None":
    """Return `value` for calls on the Dask cluster that joblib uses here; None if it uses none."""
    backend, _ = get_active_backend()
    return Shared(value, backend) if hasattr(getattr(backend, "client", None), "scatter") else None


class Shared(Generic[T]):
    """The first argument of many calls on a cluster, by joblib's DaskDistributedBackend.

    It is pickled for the first call, and again only if all workers that had it are gone. Calls on
    one worker get the same object, perhaps on several of its threads at the same time.
    """

    def __init__(self, value: T, backend: Any) -> None:
        self._value, self._backend, self._client = value, backend, backend.client
        self._future: Any = None

    def map(self, function: Callable[..., R], rest: Iterable[tuple[Any, ...]]) -> Iterator[R]:
        """Yield ``function(value, *others)`` for each `others` in `rest`, in their order.

        All calls begin at once. They must be pure: those on workers that vanish are repeated. What
        they raise is raised here; so is what Dask raises of a call that takes its workers down.
        """
        waiting = deque(rest)
        n_fruitless = 0
        last: Exception | None = None
        while waiting:
            try:
                future = self._scattered()
            except TimeoutError as error:  # no worker is there, or none yet in place of those lost
                n_fruitless += 1
                if n_fruitless >= ATTEMPTS:
                    raise last or error from None
                continue
            how = {"pure": False, **self._backend.submit_kwargs}
            calls = [self._client.submit(function, future, *others, **how) for others in waiting]
            try:
                for call in calls:
                    with self._backend.retrieval_context():  # frees the thread of a worker's task
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
            # in a list, as one that is the value would be sent item by item; and without a hash:
            # that of a table takes as long as sending it
            (self._future,) = self._client.scatter([self._value], broadcast=True, hash=False)
        return self._future


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
