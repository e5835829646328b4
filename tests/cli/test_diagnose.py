"""``diagnose``: convergence in text and JSON, and pictures."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bayescascade import DataError
from bayescascade.base.files import is_damaged
from bayescascade.model.trace import read_trace
from tests.cli.conftest import TITANIC, assert_error, run
from tests.documents import ENVIRONMENT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("fitted", "titanic.csv   leaf cascade   search anneal+metropolis   2 x "),
        ("listed", "titanic.csv   density rule list   "),
        ("classified", "tic_tac_toe.csv   rule list classifier   "),
    ],
)
def test_it_says_what_fit_said(name, begins, request):
    """R-hat, sizes and columns must not depend on where they are read; lists have no leaves."""
    fitted = request.getfixturevalue(name)
    text = run("diagnose", fitted.trace).stdout
    assert text.startswith(begins)
    assert ("leaves" in text) == (name == "fitted")
    assert max(map(len, text.splitlines())) <= 80
    posterior = [line for line in text.splitlines() if line.startswith("posterior   ")]
    assert posterior[0] in fitted.stdout.splitlines()
    record = json.loads(run("diagnose", fitted.trace, "--json").stdout)
    trace = read_trace(fitted.trace)
    found = trace.diagnostics()["log_posterior"]
    assert record["diagnostics"]["log_posterior"]["r_hat"] == found.r_hat
    assert record["shares"] == trace.shares()
    rates = {name: None if np.isnan(rate) else rate for name, rate in trace.acceptance.items()}
    assert record["acceptance"] == rates  # null for a move that was never proposed


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (TITANIC, "titanic.csv is not a trace file, or is cut short: not netCDF"),
        ("no/such.nc", "no such file: no/such.nc"),
    ],
)
def test_what_is_no_trace(path, message):
    assert_error(run("diagnose", path), message)


DAMAGED = [("flip", 163, False), ("cut", 300, False), ("cut", 0.5, True), ("flip", 0.4, True)]

DIAGNOSE = """
import sys
from bayescascade.cli.application import application

for path in sys.argv[1:]:
    try:
        application.main(["diagnose", path])
    except SystemExit as end:
        print(end.code)
"""


@pytest.mark.slow
def test_of_damaged_files_one_line_each_is_said(fitted, tmp_path):
    """In a process of its own: half-opened files complain when the interpreter collects them."""
    paths = [tmp_path / f"{i}.nc" for i in range(len(DAMAGED))]
    for path, (how, where, is_sealed) in zip(paths, DAMAGED, strict=True):
        content = _damaged(Path(fitted.trace).read_bytes(), how, where)
        if not is_sealed:  # as files of before
            content = content.split(b"\nbayescascade sha256")[0]
        path.write_bytes(content)
    run = subprocess.run(
        [sys.executable, "-c", DIAGNOSE, *map(str, paths)],
        check=False, capture_output=True, encoding="utf-8", env=ENVIRONMENT, timeout=100,
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "2\n" * len(DAMAGED))
    for path, line in zip(paths, run.stderr.splitlines(), strict=True):
        assert line.startswith("error: ")
        assert path.name in line
        assert "is not a trace file" in line or "is damaged: its checksum" in line


def test_every_flipped_byte_is_noticed(fitted, tmp_path):
    """HDF5 might hang, or read other draws; without the seal it reads most of these files."""
    content, bad = Path(fitted.trace).read_bytes(), tmp_path / "t.nc"
    body = len(content.split(b"\nbayescascade sha256")[0])
    for place in range(0, body, body // 300):
        bad.write_bytes(_damaged(content, "flip", place))
        with pytest.raises(DataError, match=r"t\.nc is damaged: its checksum"):
            read_trace(bad)
    bad.write_bytes(content[:body])  # as before there were seals
    assert str(read_trace(bad)) == str(read_trace(fitted.trace))
    bad.write_bytes(_damaged(content[:body], "flip", body - 5000))
    assert not is_damaged(bad)


def _damaged(content: bytes, how: str, where: float) -> bytes:
    place = int(where * len(content)) if where < 1 else int(where)
    rest = bytes([content[place] ^ 0xFF]) + content[place + 1 :]
    return content[:place] + (rest if how == "flip" else b"")


def test_plots_need_a_folder(fitted, tmp_path):
    (tmp_path / "file").write_text("")
    assert_error(run("diagnose", fitted.trace, "--plots", tmp_path / "file"), "File exists")


@pytest.mark.slow
def test_an_annealing_is_traced_too(tmp_path):
    trace = tmp_path / "t.nc"
    few = ("--drop", "survived", "--steps", 2_000, "--chains", 1, "--seed", 0)
    assert run("fit", TITANIC, *few, "--search", "anneal", "--trace", trace).exit_code == 0
    assert "this is the path of an annealing" in run("diagnose", trace).stdout
