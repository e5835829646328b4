"""Many calls on the workers of a cluster, to which what all of them need is sent once.

joblib sends the arguments of every call along with it. Between processes of one machine that is
cheap; over a network it is most of a short call, if one of them is a posterior with its table.
Where joblib's Dask backend is active, `Shared` scatters an argument to the workers by the first
call, and by later ones only names it. Calls are submitted to the backend's own client: joblib would
run them here, one after the other, whenever the cluster is down to one core. Dask itself is never
imported here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

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
        self._value = value
        self._backend = backend
        self._client = backend.client
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
            calls = [self._submit(function, future, *others) for others in waiting]
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

    def _submit(self, *call: Any) -> Any:
        return self._client.submit(*call, pure=False, **self._backend.submit_kwargs)

    def _scattered(self) -> Any:
        if self._future is None or self._future.status in LOST:
            # in a list, as one that is the value would be sent item by item; and without a hash:
            # that of a table takes as long as sending it
            (self._future,) = self._client.scatter([self._value], broadcast=True, hash=False)
        return self._future
