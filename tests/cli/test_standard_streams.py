"""Tables from standard input, rows to standard output, and disks without room."""

import os
import re
import resource
import signal
import stat
import subprocess
from pathlib import Path

import click
import pytest

from bayescascade.cli.application import application
from bayescascade.cli.file_types import InputFile
from tests.cli.conftest import CLINIC, TIC_TAC_TOE, TITANIC, assert_error, run
from tests.cli.test_processes import COMMAND, environment

needs_devices = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")


def given(content, *arguments, **more):
    """Run a command in a process that reads a text."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=content, capture_output=True, env=environment(),
        text=True, check=False, **more,
    )  # fmt: skip


def test_a_dash_is_a_table_from_standard_input(fitted):
    """Pipes spare files: what is read twice is stored for the time of the command."""
    rows = "class,sex,age\n1st,male,adult\n3rd,female,child\n"
    found = given(rows, "predict", fitted.model, "-", "--target", "sex", "--out", "-")
    assert found.stderr == ""
    assert found.stdout.startswith("row,predicted,")
    assert found.stdout.count("\n") == 3
    assert not Path("-").exists()
    known = given(rows, "score", fitted.model, "-", "--out", "-")
    assert (known.returncode, known.stdout) == (2, "")


WRITTEN = {  # options
    "out", "prototypes", "trace", "checkpoint", "plot", "plots", "png", "html",
    "rules_out",
}  # fmt: skip


def parameters(group):
    """Yield the parameters of all commands that are files."""
    for one in group.commands.values():
        if hasattr(one, "commands"):
            yield from parameters(one)
        for each in one.params:
            is_named = re.search(r"FILE|DATA|DIR|\.(json|nc)$", each.metavar or "")
            if (is_named or isinstance(each, click.Argument)) and each.name != "shell":
                yield each


def test_a_dash_is_standard_input_for_all_files_that_are_read(tmp_path, classified):
    """Some options looked for a file called "-"."""
    files = list(parameters(application))
    assert len(files) > 50
    for one in files:
        is_read = isinstance(one, click.Argument) or one.name not in WRITTEN
        assert isinstance(one.type, InputFile) == is_read, one.opts
    rows, page = Path(TIC_TAC_TOE).read_bytes(), tmp_path / "page.html"
    run("show", classified.model, "--html", page, "--held-out", "-", given=rows)
    assert "958" in page.read_text(encoding="utf-8")
    budget = "budget", CLINIC, "--target", "outcome", "--budgets", 1
    assert_error(run(*budget, "--costs", "-", given=b"name\n"), "stdin must have the header")
    message = "standard input (-) must be given once, got --costs and DATA"
    assert_error(run("budget", "-", *budget[2:], "--costs", "-", given=rows), message)


def test_a_dash_is_standard_output_for_rows(fitted):
    assert run("sample", fitted.model, "-n", 3, "--seed", 0, "--out", "-").stdout == (
        run("sample", fitted.model, "-n", 3, "--seed", 0).stdout
    )
    filled = [run("impute", fitted.model, TITANIC, *out).stdout for out in ((), ("--out", "-"))]
    assert filled[0] == filled[1]
    assert not Path("-").exists()


@pytest.mark.parametrize("option", ["--out", "--trace", "--checkpoint"])
def test_models_are_no_rows(option):
    """A page on standard output with a model between its lines is neither."""
    message = f"{option} must be a file, got -: only rows are written to standard output"
    assert_error(run("fit", TITANIC, option, "-"), message)
    assert not Path("-").exists()


@needs_devices
@pytest.mark.parametrize("name", ["full", "null"])
def test_devices_stay_devices(name, tmp_path, fitted):
    """``--out /dev/full`` replaced the device by a file; here a twin of it, to be safe."""
    device, own = Path("/dev", name), tmp_path / name
    try:
        os.mknod(own, 0o666 | stat.S_IFCHR, device.stat().st_rdev)
        own.write_text("")
    except PermissionError:
        pytest.skip("only root makes devices")
    found = run("sample", fitted.model, "-n", 3, "--out", own)
    if name == "full":
        assert_error(found, f"cannot write {own}: No space left on device")
    assert found.exit_code == (2 if name == "full" else 0)
    assert stat.S_ISCHR(own.stat().st_mode)
    assert os.listdir(tmp_path) == [name]


@needs_devices
@pytest.mark.parametrize(
    "rest",
    [
        ("sample", "-n", "5"),
        pytest.param(("show",), marks=pytest.mark.slow),
        pytest.param(("show", "--json"), marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_behind_stdout_is_named(rest, fitted):
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*COMMAND, rest[0], fitted.model, *rest[1:]], stdout=full, stderr=subprocess.PIPE,
            text=True, env=environment(), check=False,
        )  # fmt: skip
    assert (found.returncode, found.stderr) == (
        2, "error: standard output: No space left on device\n"
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--out", "--trace", "--checkpoint"])
def test_a_file_without_room_is_named(option, tmp_path):
    """Whoever frees space wants to know where."""
    path = tmp_path / "written"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    found = given("", "fit", TITANIC, "--model", "leaf", "--search", "anneal", "--steps", 100,
                  option, path, preexec_fn=limit)  # fmt: skip
    errors = [line for line in found.stderr.splitlines() if line.startswith("error: ")]
    assert found.returncode == 2
    assert len(errors) == 1
    assert str(path) in errors[0]
    assert not path.exists()
