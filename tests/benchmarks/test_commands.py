"""What a user waits for, and what it costs in memory: whole processes, imports included."""

import os
import subprocess
import sys

import pytest

from tests.benchmarks.figures import ROOT, Figure
from tests.benchmarks.workloads import write_csv

COMMAND = [sys.executable, "-m", "bayescascade"]
FIT = ["fit", "data/titanic.csv", "--drop", "survived", "--seed", "0"]


def run(command, cache=None):
    """Run a command that must succeed, with numba's cache in its own directory if one is given."""
    environment = (
        dict(os.environ) if cache is None else {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    )
    subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (FIT, 8.0),
        ([*FIT, "--leaf", "independent"], 8.0),
        (["fit", "data/housebreak.csv", "--partitions", "levels", "--leaf", "independent"], 15.0),
        (["classify", "data/titanic.csv", "--target", "survived"], 15.0),
        (["evidence", "data/titanic.csv", "--grid", "leaf=uniform,independent"], 15.0),
        (["compress", "data/liver_clinic.csv", "--target", "outcome"], 15.0),
        (["compare", "data/titanic.csv", "--drop", "survived"], 15.0),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_first_command(arguments, target, tmp_path, benchmark, report):
    """The first command after installation, with nothing compiled, and the same once more."""
    command = [*COMMAND, *arguments, *([] if "--seed" in arguments else ["--seed", "0"])]
    benchmark.pedantic(run, args=(command, tmp_path / "numba"), rounds=2)
    first, second = benchmark.stats.stats.data
    name = " ".join(arguments)
    report(Figure(f"{name}, nothing compiled", first, "s", at_most=target))
    report(Figure("  the same again", second, "s", at_most=2.0))


@pytest.mark.parametrize(
    ("name", "command", "target"),
    [
        ("fit titanic.csv, compiled before", [*COMMAND, *FIT], 2.0),
        ("bayescascade --help", [*COMMAND, "--help"], 0.5),
        ("import bayescascade", [sys.executable, "-c", "import bayescascade"], 0.5),
    ],
    ids=["fit", "help", "import"],
)
def test_warm_command(name, command, target, benchmark, report):
    """Every later command."""
    benchmark.pedantic(run, args=(command,), rounds=5, warmup_rounds=1)
    report(Figure(name, benchmark.stats.stats.min, "s", at_most=target))


def test_memory_of_a_long_file(tmp_path, report):
    """A million rows, nearly all distinct, of twenty columns."""
    path = tmp_path / "rows.csv"
    write_csv(path, n_rows=1_000_000, n_columns=20)
    command = [*COMMAND, "fit", str(path), "--steps", "2000", "--chains", "1", "--seed", "0"]
    process = subprocess.Popen(command, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    size = path.stat().st_size / 1e6
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    name = f"peak memory, fit of 1,000,000 x 20 CSV ({size:.0f} MB)"
    report(Figure(name, peak / 1e9, "GB", at_most=1.5))
