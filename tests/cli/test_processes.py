"""The command as a process: exit codes, signals, pipes, and what it imports."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import bayescascade
from tests.cli.conftest import TITANIC, run

COMMAND = [sys.executable, "-m", "bayescascade"]
FOLDER = Path(bayescascade.__file__).parents[1]  # where the package that is tested is


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(FOLDER)}


@contextmanager
def searching(checkpoint: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run a search of hours until it has saved something; it never outlives its test."""
    process = subprocess.Popen(
        [*COMMAND, "fit", TITANIC, "--search", "anneal+metropolis", "--steps", "500000000",
         "--seed", "0", "--checkpoint", str(checkpoint), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 90
        while not checkpoint.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield process
    finally:
        process.kill()


@pytest.mark.slow
def test_ctrl_c_prints_and_saves_what_was_found(tmp_path):
    out, trace = tmp_path / "m.json", tmp_path / "t.nc"
    with searching(tmp_path / "c", "--out", str(out), "--trace", str(trace)) as process:
        time.sleep(0.7)  # some rounds of the search
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: best found so far by annealing and 4 chains" in stdout
    assert "\neveryone " in stdout
    assert stderr.endswith(
        "interrupted: the tree is the best found so far; --resume continues from there\n"
    )
    assert "Traceback" not in stderr
    assert bayescascade.load(out).summary_.interrupted
    assert trace.stat().st_size > 0


@pytest.mark.slow
def test_two_signals_at_once_are_one_ctrl_c(tmp_path):
    """``timeout -s INT`` signals the process and its group; the second came while saving."""
    out = tmp_path / "m.json"
    with searching(tmp_path / "c", "--out", str(out)) as process:
        time.sleep(2.0)  # some tree is found by then on a busy machine, too
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: best found so far" in stdout
    assert "Traceback" not in stderr
    assert bayescascade.load(out).summary_.interrupted


def test_ctrl_c_waits_for_what_is_saved(tmp_path, monkeypatch):
    """The model that took hours must not be lost in the second in which it is written."""
    save = bayescascade.LeafCascade.save

    def pressed(self, path):
        signal.raise_signal(signal.SIGINT)
        save(self, path)

    monkeypatch.setattr(bayescascade.LeafCascade, "save", pressed)
    out = tmp_path / "m.json"
    found = run("fit", TITANIC, "--steps", 100, "--search", "anneal", "--out", out)
    assert found.exit_code == 0, found.stderr
    assert "everyone" in found.stdout
    assert not bayescascade.load(out).summary_.interrupted
    with pytest.raises(KeyboardInterrupt):  # as before
        signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(fitted):
    """``| head`` must not end in a traceback."""
    process = subprocess.Popen(
        [*COMMAND, "sample", fitted.model, "-n", "500000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"class,sex,age\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


def test_a_closed_stdout_is_no_error():
    line = f"exec {sys.executable} -m bayescascade --help >&-"
    found = subprocess.run(
        ["sh", "-c", line], stderr=subprocess.PIPE, env=environment(), check=False
    )
    assert (found.returncode, found.stderr) == (0, b"")
