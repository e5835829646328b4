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
from tests.cli.conftest import TITANIC, Fitted, run

COMMAND = [sys.executable, "-m", "bayescascade"]
FOLDER = Path(bayescascade.__file__).parents[1]  # where the package that is tested is


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(FOLDER)}


def finished(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env=environment(), check=False
    )


HELP_LACKS = {"numpy", "pandas", "numba", "arviz", "matplotlib", "sklearn", "rich", "joblib"}
MAIN = "from bayescascade.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"


def printed_without(modules: set[str], code: str) -> str:
    """Return what a program prints that must not import some modules."""
    code = f"import sys\n{code}\nprint(sorted({modules} & set(sys.modules)), file=sys.stderr)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    assert found.stderr == "[]\n"
    return found.stdout


@pytest.mark.parametrize(
    ("command", "option"), [("fit", "--expected-leaves"), ("compare", "--repeats")]
)
def test_help_is_quick_because_nothing_heavy_is_imported(command: str, option: str) -> None:
    """Half a second for --help is long; compiled and plotting libraries would take three."""
    code = f"sys.argv = ['bayescascade', {command!r}, '--help']\n{MAIN}"
    assert option in printed_without(HELP_LACKS, code)


@pytest.mark.slow
def test_showing_a_model_imports_no_plots(fitted: Fitted) -> None:
    code = f"sys.argv = ['bayescascade', 'show', {fitted.model!r}]\n{MAIN}"
    assert printed_without({"arviz", "matplotlib"}, code) == fitted.stdout


def test_tables_are_read_without_what_estimators_need() -> None:
    """scikit-learn takes longer to import than a million rows of Parquet to count."""
    path = Path(__file__).parents[2] / "data" / "titanic.csv"
    code = f"from bayescascade import Table\nprint(Table.from_csv({str(path)!r}).n_rows)"
    assert printed_without({"sklearn", "numba", "scipy"}, code) == "2201\n"


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
def test_ctrl_c_prints_and_saves_what_was_found(tmp_path: Path) -> None:
    """A search that is ended early must not be lost."""
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
def test_two_signals_at_once_are_one_ctrl_c(tmp_path: Path) -> None:
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


def test_ctrl_c_waits_for_what_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that took hours must not be lost in the second in which it is written."""
    save = bayescascade.LeafCascade.save

    def pressed(self: bayescascade.LeafCascade, path: str) -> None:
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
def test_a_reader_that_leaves_is_no_error(fitted: Fitted) -> None:
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_behind_stdout() -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
            env=environment(), check=False,
        )  # fmt: skip
    assert (found.returncode, found.stderr) == (2, "error: No space left on device\n")


def test_a_closed_stdout_is_no_error() -> None:
    line = f"exec {sys.executable} -m bayescascade --help >&-"
    found = subprocess.run(
        ["sh", "-c", line], stderr=subprocess.PIPE, env=environment(), check=False
    )
    assert (found.returncode, found.stderr) == (0, b"")
