"""A Dask cluster on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import LocalCluster


@contextmanager
def two_workers() -> Iterator[LocalCluster]:
    """Return a cluster of two processes, which come back if they are killed.

    However long that takes: else a busy machine's are given up after 15 seconds, for all tests.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        yield cluster
