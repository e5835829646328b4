"""Chains on a Dask cluster: the same bytes, and nothing large is sent twice."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, ClassVar

import joblib
import pytest
from distributed import Client

import samplers
from samplers.cluster import Shared, shared_on_cluster
from tests.clusters import two_workers
from tests.samplers.targets import FastRing, FullRing


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Return a client of two worker processes on this machine."""
    with two_workers() as cluster, Client(cluster) as connected:
        yield connected


class Slow(FullRing):
    """A ring that takes its time, so that there is time to kill who computes it."""

    def log_density(self, state: int) -> float:
        time.sleep(0.0004)
        return super().log_density(state)


class Counted(FastRing):
    """A ring that counts how often it travels, and tells where its chains run."""

    n_pickled = n_unpickled = 0

    def describe(self, state: int) -> dict[str, float]:
        return {**super().describe(state), "pid": os.getpid()}

    def advance(self, rng: Any, state: int, n_steps: int, inverse_temperature: float) -> Any:
        time.sleep(0.02)
        return super().advance(rng, state, n_steps, inverse_temperature)

    def __getstate__(self) -> dict[str, Any]:
        type(self).n_pickled += 1
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).n_unpickled += 1
        self.__dict__.update(state)


def travels(_: object = None) -> tuple[int, int]:
    return Counted.n_pickled, Counted.n_unpickled


@pytest.mark.slow
@pytest.mark.parametrize("n_killed", [1, 2])
def test_workers_killed_in_a_round_change_no_byte(client, n_killed, tmp_path):
    """Machines of a cluster come and go; if all are gone, so is what they had been sent."""
    settings: Any = {"n_steps": 600, "n_draws": 60, "n_chains": 3, "seed": 3}
    whole, path = tmp_path / "whole.json", tmp_path / "run.json"
    expected = samplers.metropolis(FullRing(), **settings, checkpoint=whole)
    doomed = list(client.run(os.getpid).values())[:n_killed]
    reports: list[samplers.Progress] = []

    def killed_later(report: samplers.Progress) -> None:
        reports.append(report)
        if len(reports) == 2:  # in the next round, not between two
            threading.Timer(0.1, lambda: [os.kill(pid, signal.SIGKILL) for pid in doomed]).start()

    with joblib.parallel_config("dask", client=client):
        found = samplers.metropolis(
            Slow(), **settings, n_jobs=-1, checkpoint=path, progress=killed_later
        )
    assert reports[1].done < reports[1].total
    assert not set(doomed) & set(client.run(os.getpid).values())
    assert found == expected
    assert path.read_bytes() == whole.read_bytes()
    client.wait_for_workers(2, timeout=60)


@pytest.mark.slow
def test_all_workers_are_used_and_get_the_target_once(client: Client) -> None:
    """A table of a gigabyte sent with every round of half a second is most of a fit."""
    client.restart()
    Counted.n_pickled, reports = 0, []
    with joblib.parallel_config("dask", client=client):
        run = samplers.metropolis(
            Counted(), n_steps=500, n_draws=100, n_chains=2, n_jobs=None, seed=1,
            progress=reports.append,
        )  # fmt: skip
    assert set(run.traces["pid"].ravel()) == set(client.run(os.getpid).values())
    assert Counted.n_pickled == 1
    received = [n_unpickled for _, n_unpickled in client.run(travels).values()]
    assert min(received) >= 1
    assert max(received) <= 2 < len(reports)  # the scheduler may have a worker fetch it twice


@pytest.mark.slow
def test_rounds_grow_on_a_cluster_but_not_beyond_a_due_checkpoint(client, tmp_path):
    """Messages are spared, yet no more is lost with the power than a checkpoint says."""
    rounds = {False: 0, True: 0}
    for has_checkpoint in rounds:
        checkpoint = samplers.Checkpoint(tmp_path / "run.json", checkpoint_seconds=0.6)
        with joblib.parallel_config("dask", client=client):
            samplers.metropolis(
                Counted(), n_steps=130, n_draws=130, n_chains=2, n_jobs=-1, seed=1,
                checkpoint=checkpoint.section("run") if has_checkpoint else None,
                progress=lambda _, of=has_checkpoint: rounds.update({of: rounds[of] + 1}),
            )  # fmt: skip
    assert rounds[False] < rounds[True]


def returned(value: object, _: int) -> object:
    return value


@pytest.mark.slow
def test_a_list_is_shared_as_one(client: Client) -> None:
    """Sent item by item, a call would get its first."""
    with joblib.parallel_config("dask", client=client):
        shared: Any = shared_on_cluster([1, 2, 3])
    assert list(shared.map(returned, [(0,), (1,)])) == [[1, 2, 3], [1, 2, 3]]


class Doomed:
    """A cluster, as joblib's backend has one, whose workers die of every call, with their data."""

    submit_kwargs: ClassVar[dict[str, Any]] = {}
    status = "running"

    def __init__(self, error: Exception, scatters: int) -> None:
        self.client, self.error, self.scatters, self.n_scattered = self, error, scatters, 0

    def scatter(self, values: list[Any], **_: Any) -> list[Any]:
        self.n_scattered += 1
        if self.n_scattered > self.scatters:
            raise TimeoutError("no worker")
        return [SimpleNamespace(status="lost") for _ in values]

    def submit(self, *_: Any, **__: Any) -> Any:
        return self

    def result(self) -> None:
        raise self.error

    def retrieval_context(self) -> Any:
        return nullcontext()


class KilledWorker(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "scatters", "attempts"),
    [(RuntimeError("dead"), 9, 3), (RuntimeError("dead"), 1, 3), (KilledWorker("dead"), 9, 1)],
)
def test_calls_that_kill_their_workers_are_given_up(error, scatters, attempts):
    """Out of memory on every machine, they would otherwise be tried again for ever."""
    cluster = Doomed(error, scatters)
    with pytest.raises(type(error), match="dead"):
        list(Shared(None, cluster).map(returned, [(0,), (1,)]))
    assert cluster.n_scattered == attempts
