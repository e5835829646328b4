"""How many threads we take, and the libraries below NumPy and scikit-learn.

For little work, threads of BLAS and OpenMP cost more than they save, a hundred times as much where
other processes hold the cores; and the last bits of a product may depend on them.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["n_threads_of", "single_threaded"]


def n_threads_of(n_jobs: int | None) -> int:
    """Return how many threads of this machine `n_jobs` is, as joblib counts workers.

    Where joblib runs on a cluster it would count the cluster's.
    """
    backend, _ = get_active_backend()
    if not hasattr(backend, "client"):
        return int(effective_n_jobs(n_jobs))
    with parallel_config("threading"):
        return int(effective_n_jobs(n_jobs))


def single_threaded() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP take one thread, in all threads of the process."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
