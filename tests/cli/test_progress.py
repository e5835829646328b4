"""What is said of a search while it runs, on a terminal and elsewhere."""

import io
import math
import re
import subprocess
import sys
from contextlib import nullcontext

import pandas as pd
import pytest

import bayescascade
import samplers
from bayescascade.cli import progress_lines
from bayescascade.cli.progress import progress_bar
from bayescascade.cli.progress_lines import ProgressLines
from tests.cli.conftest import TITANIC, run


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """Have a bar drawn on what is returned, within a test: before it, pytest has its own stderr."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return sys.stderr


@pytest.mark.parametrize(
    ("sizes", "described", "words"),
    [
        (("n_leaves", "leaves"), {"n_leaves": 8.0, "depth": 3.0}, "8 leaves"),
        (("n_rules", "rules"), {"log_prior": -9.0, "n_rules": 5.2}, "5 rules"),
    ],
)
def test_sizes_are_told_in_their_own_words(sizes, described, words, monkeypatch):
    """A search for lists must neither fail for want of leaves nor speak of them."""
    terminal = on_terminal(monkeypatch)
    with progress_bar(*sizes) as show:
        show(samplers.Progress("annealing", 1, 4, -4000.0, -4321.06, 0.25, described))
    assert f"log posterior -4,321.1  {words}  25% accepted" in terminal.getvalue()


class Watched:
    """Lines of a search that is simulated, second by second."""

    def __init__(self) -> None:
        self.now, self.said = 100.0, list[str]()
        self.lines = ProgressLines(self.said.append, lambda: self.now)

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.lines.tick()

    def hear(self, phase: str, done: int, total: int, best: float = -5.5, **more: float) -> None:
        self.lines.hear(samplers.Progress(phase, done, total, best, best, 0.2, more))


def test_short_searches_say_nothing():
    """Whoever fits a hundred small tables in a script does not want two hundred lines."""
    search = Watched()
    for done in range(9):
        search.hear("annealing", done, 9)
        search.wait(1)
    assert search.said == []


def test_long_searches_say_so_at_once_and_then_each_minute():
    """An empty log for hours might be a program that hangs."""
    search = Watched()
    for done in range(150):
        search.hear("annealing", 1_000 * done, 1_000_000, best=-5.5 + done)
        search.wait(1)
    assert search.said == [
        "after 0:02: annealing 0%, about 16:38 left in this phase, best log posterior -4.50",
        "after 1:02: annealing 6%, about 15:38 left in this phase, best log posterior 55.50",
        "after 2:02: annealing 12%, about 14:38 left in this phase, best log posterior 115.50",
    ]


def test_time_left_counts_down_between_rare_reports():
    """A search of 270 s must not have five minutes left because its last report is old."""
    search = Watched()
    search.hear("forest", 0, 270)
    search.wait(30)
    search.hear("prune", 30, 270)
    search.wait(40)
    assert "about 3:20 left" in search.said[-1]


def test_a_phase_that_becomes_slower_has_no_time_left():
    """A search said for minutes that it was about to end."""
    search = Watched()
    search.hear("annealing", 0, 100)
    search.wait(30)
    search.hear("annealing", 50, 100)
    search.wait(180)
    assert search.said[1:] == [
        "after 1:10: annealing 50%, best log posterior -5.50",
        "after 2:10: annealing 50%, best log posterior -5.50",
        "after 3:10: annealing 50%, best log posterior -5.50",
    ]


def test_lines_come_though_nothing_is_heard():
    """A pass over all trees may take minutes between two reports, and counting rows before any."""
    search = Watched()
    search.wait(60)
    assert search.said == ["after 1:00: reading the table, or compiling (only the first time)"]
    search.hear("pass 2", 10, 1_000, best=float("nan"), gap=3.25)
    search.wait(60)
    assert search.said[1:] == [
        "after 2:00: pass 2 1%, no other is more probable by more than 3.25 nats"
    ]
    unknown = Watched()
    unknown.hear("proof", 0, 0)
    unknown.wait(10)
    assert unknown.said == ["after 0:10: proof, best log posterior -5.50"]


def test_counts_of_fits_and_rows_are_said_elsewhere_than_on_terminals(monkeypatch):
    """A comparison of classifiers takes minutes, and an empty log might be a program that hangs."""
    heard = []
    monkeypatch.setattr(progress_lines, "_lines", lambda: nullcontext(heard.append))
    with progress_lines.count_progress("titanic.csv, fits", 30) as done:
        done("rules")
        done("rules")
    with progress_lines.rows_progress("titanic.csv", None) as show:
        show(2_000)
    texts = [(one.phase, one.done, one.total) for one in heard]
    assert texts == [
        *(("titanic.csv, fits", n, 30) for n in range(3)), ("titanic.csv, 2,000 rows", 2_000, 0)
    ]  # fmt: skip


def test_a_time_limit_of_a_command_ends_it_with_a_model(tmp_path):
    """It is no error: the file is there, and says what it is."""
    out = tmp_path / "m.json"
    options = ("--search", "anneal", "--steps", 10**8, "--leaf", "uniform", "--time-limit", 0.2)
    found = run("fit", TITANIC, *options, "--out", out)
    assert found.exit_code == 0, found.stderr
    assert "stopped at the time limit of 0.2 s: best found so far by annealing" in found.stdout
    summary = bayescascade.load(out).summary_
    assert (summary.interrupted, summary.stopped_after) == (False, 0.2)
    assert run("show", out).stdout == found.stdout


@pytest.mark.parametrize(
    ("n_stages", "stage", "percent"),
    [(1, "summing over trees", 100), (2, "drawing", None), (3, "scoring", 0)],
)
def test_a_stage_that_follows_does_not_stand_at_100_percent(n_stages, stage, percent, monkeypatch):
    """Of 73 s a bar said "all trees 100 %" for 68: trees were drawn, and scored."""
    terminal = on_terminal(monkeypatch)
    with progress_bar("n_leaves", "leaves") as show:
        stages = [("summing over trees", 9, 9), ("drawing", 0, 0), ("scoring", 0, 9)]
        for name, done, total in stages[:n_stages]:
            show(samplers.Progress(name, done, total, math.nan, math.nan, math.nan, {}))
    shown = re.findall(r"(\d+) %", terminal.getvalue().rpartition(stage)[2])
    assert shown == ([] if percent is None else [str(percent)])


@pytest.mark.slow
def test_all_stages_of_a_fit_are_reported():
    """Between the sums and the end a fit must say what it does."""
    heard: list[samplers.Progress] = []
    fit = {"random_state": 0, "progress": heard.append, "drop": ["survived"]}
    frame = pd.read_csv(TITANIC)
    bayescascade.BranchCascade(search="exact", **fit).fit(frame)
    stages = list(dict.fromkeys(report.phase for report in heard))
    assert stages == ["counting boxes", "summing over trees", "drawing trees", "adding up splits"]
    heard.clear()
    bayescascade.BranchCascade(partitions="levels", max_depth=2, **fit).fit(frame)
    assert [report.phase for report in heard][-1] == "drawing trees"
    heard.clear()
    bayescascade.AutoCascade(effort="quick", **fit).fit(frame)
    assert heard[0].phase == "trying cascades, 1 so far"
    assert "drawing trees" in {report.phase for report in heard}


@pytest.mark.slow
def test_what_chains_lack_is_said_once(tmp_path):
    """With 2>&1 a reader saw each line of it twice."""
    command = [sys.executable, "-m", "bayescascade", "fit", TITANIC, "--model", "leaf", "--search"]
    options = ["anneal+metropolis", "--steps", "40", "--chains", "2", "--jobs", "1", "--seed", "0"]
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([*command, *options], stdout=out, stderr=out, check=True)
    assert (tmp_path / "out").read_text().count("log posterior: R-hat") == 1
