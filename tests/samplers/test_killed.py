"""A run that is killed, really killed, and resumed ends in the same bytes as one that was not."""

import os
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import sys, time
from tests.samplers.targets import FullRing
import samplers

ENGINES = {
    "metropolis": (samplers.metropolis, {"n_draws": 300}),
    "anneal": (samplers.anneal, {"n_restarts": 2}),
}

class Slow(FullRing):
    pause = float(sys.argv[4])

    def log_density(self, state):
        time.sleep(self.pause)
        return super().log_density(state)

engine, settings = ENGINES[sys.argv[1]]
checkpoint = samplers.Checkpoint(sys.argv[2], resume=True, checkpoint_seconds=0.01)
engine(
    Slow(), n_steps=400, seed=1, n_chains=2, n_jobs=int(sys.argv[3]),
    checkpoint=checkpoint.section("run"), **settings,
)
checkpoint.finish()
"""


def start(engine, path, n_jobs, pause):
    """Start a run, or go on with it, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, engine, str(path), str(n_jobs), str(pause)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "n_jobs", "n_kills"), [("metropolis", 2, 1), ("anneal", 1, 2)])
def test_killed_and_resumed_run_ends_in_the_same_bytes(engine, n_jobs, n_kills, tmp_path):
    """Power fails, clusters preempt: what was paid for must not be lost, nor changed."""
    whole, path = tmp_path / "whole.json", tmp_path / "run.json"
    assert start(engine, whole, 1, 0.0).wait(timeout=60) == 0
    sizes = [0]
    for _ in range(n_kills):
        process = start(engine, path, n_jobs, 0.003)
        minimum = max(10_000, sizes[-1] + 2000)
        deadline = time.monotonic() + 60
        while not (path.exists() and path.stat().st_size >= minimum):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
        sizes.append(path.stat().st_size)
        assert path.read_bytes() != whole.read_bytes()
    assert sizes[-1] < whole.stat().st_size
    assert start(engine, path, n_jobs, 0.0).wait(timeout=60) == 0
    assert path.read_bytes() == whole.read_bytes()
