"""How much a fit sends over the network to the workers of a Dask cluster, and how often.

    python -m tests.benchmarks.cluster [ROWS [STEPS]]

Two worker processes of one thread each, four chains of a leaf cascade on ROWS distinct rows. Bytes
are those that this process, in which client and scheduler are, writes to sockets: counted where
distributed's TCP comm returns how many it wrote. What workers answer is not among them. The
posterior counts how often it is pickled here.
"""

import sys
from time import perf_counter

import joblib
from dask.distributed import Client, LocalCluster
from distributed.comm.tcp import TCP

import samplers
from bayescascade.methods.density.trees.posterior import LeafPosterior
from tests.benchmarks.workloads import distinct_table

MEGABYTE = 1e6


class Counted(LeafPosterior):
    """A posterior that counts how often it is pickled by this process."""

    n_pickled = 0

    def __reduce_ex__(self, protocol):
        Counted.n_pickled += 1
        return super().__reduce_ex__(protocol)


class Sent:
    """Bytes written to sockets by this process since it was made."""

    def __init__(self):
        self.n_bytes = 0
        self._write = TCP.write
        TCP.write = self._counted(TCP.write)

    def _counted(self, write):
        async def counted(comm, *args, **options):
            written = await write(comm, *args, **options)
            self.n_bytes += written
            return written

        return counted

    def stop(self):
        """Count no longer."""
        TCP.write = self._write


def main(n_distinct=250000, n_steps=40000):
    """Run the chains on threads, then on the cluster; print seconds, rounds and bytes."""
    table = distinct_table(n_distinct)

    def chains(n_jobs):
        rounds = []
        started = perf_counter()
        run = samplers.metropolis(
            Counted(table, 8.0), n_steps=n_steps, n_draws=125, n_chains=4, n_jobs=n_jobs, seed=0,
            progress=rounds.append,
        )  # fmt: skip
        return run, len(rounds), perf_counter() - started

    chains(2)  # compiles
    local, n_rounds, seconds = chains(2)
    sys.stdout.write(f"threads           {seconds:6.1f} s {n_rounds:4} rounds\n")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.run(LeafPosterior, table)  # imports
        for n_jobs in (-1, None):
            sent, Counted.n_pickled = Sent(), 0
            with joblib.parallel_config("dask"):
                remote, n_rounds, seconds = chains(n_jobs)
            sent.stop()
            sys.stdout.write(
                f"Dask, n_jobs {n_jobs!s:4} {seconds:6.1f} s {n_rounds:4} rounds "
                f"{sent.n_bytes / MEGABYTE:8.1f} MB sent, pickled {Counted.n_pickled} times, "
                f"{'the same' if remote == local else 'ANOTHER'} run\n"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
