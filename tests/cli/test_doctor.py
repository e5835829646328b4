"""``doctor`` and ``completion``: what the program stands on, and what shells know of it."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from bayescascade.cli import doctor as doctor_module
from tests.cli.conftest import run
from tests.cli.test_processes import COMMAND, environment


def test_a_report_has_what_a_defect_is_asked_for():
    """It is pasted into reports, and read by people and programs."""
    record = json.loads(run("doctor", "--json").stdout)
    assert record["python"] == sys.version.split()[0]
    assert record["cores"]["machine"] >= record["cores"]["usable"] >= 1
    assert record["packages"]["numpy"] == {"version": np.__version__, "least": "2.0"}
    assert record["extras"]["test"]
    text = run("doctor").stdout
    assert max(map(len, text.splitlines())) <= 80
    for label in ("packages", "kernels", "memory"):
        assert f"\n{label} " in text


def test_what_is_wrong_comes_with_what_to_do(monkeypatch, tmp_path):
    """Whoever waits a minute for each start should hear of the cache, not of kernels."""
    packages = {"numpy": {"version": "1.26.4", "least": "2.0"}, "rich": {"version": None}}
    monkeypatch.setattr(doctor_module, "_packages", lambda: (packages, {}))
    monkeypatch.setattr(doctor_module, "_memory", lambda: {"total": 4.0, "available": 0.5})
    kernels = {
        "folder": str(tmp_path), "is_writable": False, "is_temporary": False, "compiled": 0,
        "are_interpreted": False,
    }  # fmt: skip
    monkeypatch.setattr(doctor_module, "_kernels", lambda: kernels)
    advice = json.loads(run("doctor", "--json").stdout)["advice"]
    assert advice[0] == "numpy must be at least 2.0, got 1.26.4: pip install -U numpy"
    assert advice[1] == "rich is not installed: pip install rich"
    assert "NUMBA_CACHE_DIR" in advice[2]
    assert "--memory-limit" in advice[-1]
    assert "pip install rich" in run("doctor").stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the system has no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cl"], "classify"),
        (["fit", "--expected-l"], "--expected-leaves"),
        (["fit", "--partitions", "s"], "subsets"),
        (["fit", "da"], "compopt -o default"),  # bash completes the file
        (["rados", "make", "da"], "compopt -o default"),
        (["score", "model.json", "rows.csv", "--out", "s"], "compopt -o default"),
    ],
)
def test_bash_completes(words, expected, tmp_path):
    """A command of a hundred options is learned by its completion."""
    script = tmp_path / "bayescascade"
    script.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    script.chmod(0o755)
    typed = " ".join(["bayescascade", *words])
    code = (
        f'PATH="{tmp_path}:$PATH"\neval "$(bayescascade completion bash)"\n'
        'compopt() { printf "compopt %s %s\\n" "$@"; }\n'  # outside of completions bash has none
        f"COMP_WORDS=({typed})\nCOMP_CWORD={len(words)}\n"
        f"_bayescascade_completion bayescascade {words[-1]}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    found = subprocess.run(
        ["bash", "--norc", "-c", code], capture_output=True, text=True, env=environment(),
        check=True,
    )  # fmt: skip
    assert expected in found.stdout.splitlines()
    assert found.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_those_of_the_shells(shell):
    assert f"_BAYESCASCADE_COMPLETE={shell}_complete" in run("completion", shell).stdout
