"""``--cluster``: the same result from the workers of a Dask cluster, and clear errors."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from distributed import Client, KilledWorker, LocalCluster

import bayescascade
from bayescascade.cli import cluster as cluster_module
from tests.cli.conftest import TIC_TAC_TOE, TITANIC, assert_error, run, said
from tests.cli.test_processes import COMMAND, environment
from tests.clusters import two_workers

pytestmark = pytest.mark.slow  # processes that import all of it come and go

CHAINS = ("--search", "anneal+metropolis", "--steps", 3000, "--chains", 2, "--seed", 0)


@pytest.fixture(scope="module")
def address():
    """Return the address of a scheduler with two worker processes."""
    with two_workers() as cluster:
        yield cluster.scheduler_address


def on_scheduler(address: str, function: Callable[[Any], Any]) -> Any:
    """Return what a function of a cluster's scheduler returns."""
    with Client(address, set_as_default=False) as client:
        return client.run_on_scheduler(lambda dask_scheduler: function(dask_scheduler))


def n_transitions(address: str) -> int:
    """Return a number that grows with everything a cluster is given to do."""
    n: int = on_scheduler(address, lambda scheduler: scheduler.transition_counter)
    return n


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", TITANIC, *CHAINS),
        ("classify", TIC_TAC_TOE, "--target", "outcome", "--cv", 0, *CHAINS),
        ("compare", TITANIC, "--models", "histogram,det", "--repeats", 2, "--seed", 0),
        ("evidence", TITANIC, "--drop", "survived", "--grid", "expected_leaves=2,8"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_cluster_gives_the_same(arguments, address):
    """Where work is done must not be seen in what is found."""
    here, n_before = run(*arguments, "--json"), n_transitions(address)
    there = run(*arguments, "--json", "--cluster", address)
    assert n_transitions(address) > n_before
    assert there.exit_code == 0, there.stderr
    assert said(there.stderr) == said(here.stderr)

    def result(stdout):
        record = json.loads(stdout)
        for outcome in (one for table in record.get("tables", ()) for one in table["outcomes"]):
            del outcome["seconds"]
        record.get("fit", {}).pop("seconds", None)
        held_out = record.get("summary", {}).get("held_out", {})
        for figure in held_out.get("figures", ()):  # a logistic regression's last bit may differ
            figure["log_loss"] = float(f"{figure['log_loss']:.12g}")
        return record

    assert result(there.stdout) == result(here.stdout)


def test_ctrl_c_prints_and_saves_what_was_found(address, tmp_path):
    """A search on many machines is lost as little as one on this."""
    out, checkpoint = tmp_path / "model.json", tmp_path / "checkpoint"
    process = subprocess.Popen(
        [*COMMAND, "fit", TITANIC, "--search", "anneal+metropolis", "--steps", "500000000",
         "--cluster", address, "--out", str(out), "--checkpoint", str(checkpoint)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 90
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)  # some rounds of the search
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted: best found so far by annealing and 4 chains" in stdout
    end = "interrupted: the tree is the best found so far; --resume continues from there"
    assert said(stderr) == [end]
    assert bayescascade.load(out).summary_.interrupted


def test_clusters_that_cannot_be_used(address, monkeypatch, caplog):
    """The reason is one line, and nothing is computed before."""
    caplog.set_level("CRITICAL")
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    assert_error(
        run("fit", TITANIC, "--cluster", "tcp://127.0.0.1:1"),
        "must be the address of a Dask scheduler, got tcp://127.0.0.1:1",
    )
    assert_error(run("fit", TITANIC, "--cluster", "nowhere://"), "got nowhere://")
    assert_error(
        run("fit", TITANIC, "--cluster", address, "--jobs", 1), "--jobs must be other than 1"
    )
    with LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        assert_error(
            run("fit", TITANIC, "--cluster", empty.scheduler_address), "must have a worker"
        )
    monkeypatch.setattr(cluster_module, "__version__", "99.0")
    assert_error(run("fit", TITANIC, "--cluster", address), "must have bayescascade 99.0, got ")
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert_error(run("fit", TITANIC, "--cluster", address), "pip install 'bayescascade[dask]'")


def test_work_that_takes_every_worker_down_is_told(address, monkeypatch):
    """A table too large for the workers' memory must not be sent round for ever."""

    def killed(*_: object) -> None:
        raise KilledWorker("a chain", None, 3)

    monkeypatch.setattr("samplers.cluster.Shared.map", killed)
    found = run("fit", TITANIC, *CHAINS, "--cluster", address)
    assert_error(found, "lost all workers that tried a part of the work")
