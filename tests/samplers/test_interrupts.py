"""Ctrl-C gives what was found, at any moment; a run that was killed goes on to the same bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import pytest

import samplers
from samplers.cluster import results_of_workers
from tests.samplers.targets import ENGINES, MOVES, FullRing

engines = pytest.mark.parametrize(
    "engine", [engine for engine, _ in ENGINES.values()], ids=list(ENGINES)
)


class Interrupted(FullRing):
    """Raises KeyboardInterrupt at its k-th evaluation, as Ctrl-C would."""

    def __init__(self, n_calls):
        super().__init__()
        self.n_calls = n_calls

    def log_density(self, state):
        self.n_calls -= 1
        if self.n_calls == 0:
            raise KeyboardInterrupt
        return super().log_density(state)


@engines
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_interrupted_run_holds_what_was_found(engine, n_jobs, monkeypatch):
    """The part that is there must be the beginning of the whole run, and say that it is a part."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)
    search = {"n_steps": 40, "seed": 6}
    whole = engine(FullRing(), **search)
    target = Interrupted(0)

    def stop_soon(progress):
        if progress.done == 30:
            target.n_calls = 3 if n_jobs == 1 else 1

    part = engine(target, n_jobs=n_jobs, progress=stop_soon, **search)
    assert part.interrupted
    assert not whole.interrupted
    n_draws = part.traces["log_density"].shape[1]
    assert 0 < n_draws < whole.traces["log_density"].shape[1]
    for name, trace in part.traces.items():
        assert (trace == whole.traces[name][:, :n_draws]).all()
    assert [chain[:n_draws] for chain in whole.draws] == list(part.draws)
    assert part.best_log_density == FullRing().log_density(part.best_state)


@engines
def test_interrupt_before_anything_was_done_gives_the_initial_states(engine):
    search = {"n_steps": 100, "seed": 6, "n_chains": 3, "initial_states": [0, 2, 1]}
    run = engine(Interrupted(5), **search)
    assert run.interrupted
    assert run.final_states == (0, 2, 1)
    assert run.best_state == 1
    assert run.draws == ((), (), ())
    assert list(run.traces) == list(engine(FullRing(), **search).traces)
    assert all(trace.shape == (3, 0) for trace in run.traces.values())
    assert list(run.proposed) == list(MOVES)
    assert set(run.acceptance) == set(MOVES)


@engines
def test_interrupt_in_the_callback_keeps_the_round_just_done(engine):
    """The callback has already shown its result."""
    shown = []

    def stop(progress):
        shown.append(progress)
        if progress.done > 50:
            raise KeyboardInterrupt

    more = {} if engine is samplers.anneal else {"warmup": 0.0}
    run = engine(FullRing(), n_steps=100, seed=6, progress=stop, **more)
    assert run.interrupted == (shown[-1].done < 100)
    assert run.traces["log_density"].shape == (4, shown[-1].done)
    assert run.best_log_density == shown[-1].best_log_density


SCRIPT = """
import sys, time
from tests.samplers.targets import FullRing
import samplers

n_jobs, n_reports, pause = int(sys.argv[1]), 0, float(sys.argv[2])

class Slow(FullRing):
    def log_density(self, state):
        time.sleep(0.001)
        return super().log_density(state)

def show(progress):
    global n_reports
    n_reports += 1
    print("report", flush=True)
    if n_reports == 5:  # by then, all workers have started
        time.sleep(pause)

if __name__ == "__main__":
    run = samplers.metropolis(
        Slow(), n_steps=10**6, n_jobs=n_jobs, progress=show, n_draws=10**6, seed=1
    )
    print("interrupted", run.interrupted, run.best_state)
    print(samplers.metropolis(FullRing(), n_steps=100, n_jobs=n_jobs, seed=1).interrupted)
"""


@pytest.mark.parametrize(
    ("n_jobs", "pause"),
    [(1, 0), pytest.param(2, 60, marks=pytest.mark.slow)],
    ids=["in a round", "between rounds of workers"],
)
def test_control_c_in_a_terminal_ends_all_processes_quietly(n_jobs, pause, tmp_path):
    """A terminal sends the signal to parent and workers alike: no tracebacks, nothing left over."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(n_jobs), str(pause)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    with process:
        for _ in range(5):
            assert process.stdout.readline() == "report\n"
        time.sleep(0.1)  # into the round, or into the pause
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert errors == ""
    assert output.splitlines()[-2:] == ["interrupted True 4", "False"]
    assert process.returncode == 0
    deadline = time.monotonic() + 10
    while _is_group_alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_group_alive(process.pid)


def _is_group_alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


KILLED = """
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
        [sys.executable, "-c", KILLED, engine, str(path), str(n_jobs), str(pause)],
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


def test_ctrl_c_while_workers_start_is_raised_once_they_have_started(monkeypatch):
    """Joblib failed with another error, or lost it, and the program went on."""
    events = []

    class Starting:
        def __init__(self, **_):
            pass

        def __call__(self, _):
            signal.raise_signal(signal.SIGINT)
            events.append("started")
            return (result for result in ())

    monkeypatch.setattr("samplers.cluster.joblib.Parallel", Starting)
    with pytest.raises(KeyboardInterrupt):
        next(results_of_workers(abs, [(1,)], 2))
    assert events == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_chains_run_on_any_backend_of_joblib(backend):
    """Some return all results at the end; the result is the same."""
    assert_same_on(backend)


def test_chains_run_on_a_pool_of_processes():
    """Started from one of its own: a fork of this one, with all its models, takes a minute."""
    code = "from tests.samplers.test_interrupts import assert_same_on as on; on('multiprocessing')"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def assert_same_on(backend):
    search = {"n_steps": 20, "moves": MOVES, "initial_states": [0, 1, 2, 3], "seed": 1}
    expected = samplers.metropolis(FullRing(), n_jobs=1, **search)
    with joblib.parallel_config(backend, n_jobs=2):
        found = samplers.metropolis(FullRing(), n_jobs=None, **search)
    assert found.final_states == expected.final_states
