"""The number of threads of our code, and of BLAS and OpenMP.

For little work, threads of BLAS and OpenMP cost more than they save: a hundred times as much if
other processes use the cores. The last bits of a product may also depend on them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

_LEAST_THREADED = 1_000_000  # steps, a few milliseconds


def n_threads_of(n_jobs: int | None) -> int:
    """Return the number of threads on this machine for `n_jobs`, in the convention of joblib.

    Where joblib runs on a cluster, it would count the cluster's workers.
    """
    backend, _ = get_active_backend()
    if not hasattr(backend, "client"):
        return int(effective_n_jobs(n_jobs))
    with parallel_config("threading"):
        return int(effective_n_jobs(n_jobs))


def for_ranges(work: Callable[[int, int], object], n_items: int, n_steps: float) -> None:
    """Call `work` for ranges [start, stop) that together cover all items, perhaps in parallel.

    The number of threads is joblib's: one, unless ``joblib.parallel_config(n_jobs=)`` sets another.
    `work` must release the GIL for most of its time, and its result for an item must not depend on
    the range. `n_steps` is the approximate number of steps of innermost loops for all items; few
    steps are not worth threads.
    """
    n_threads = 1 if n_steps < _LEAST_THREADED else min(n_threads_of(None), n_items)
    if n_threads <= 1:
        work(0, n_items)
        return
    ends = np.linspace(0, n_items, n_threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, *zip(*pairwise(ends), strict=True)))


def single_threaded() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread, for all threads of the process."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
