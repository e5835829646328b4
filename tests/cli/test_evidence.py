"""``evidence``: a table of log evidences, and bad grids."""

import json

import pytest

from bayescascade import LeafPosterior, Table
from bayescascade.methods.density.trees.exact import solve, solve_or_tilt
from tests.cli.conftest import TITANIC, assert_error, run


def test_a_grid_is_printed_best_first():
    grid = ("--grid", "expected_leaves=2,5,8,12", "--grid", "leaf=uniform,independent")
    found = run("evidence", TITANIC, "--drop", "survived", "--model", "leaf", *grid)
    assert found.exit_code == 0, found.stderr
    data, _, header, first, *others = found.stdout.splitlines()
    assert data == "titanic.csv   2,201 rows   14 distinct"
    assert header.split() == ["log", "evidence", "below", "best", "leaves"]
    assert first.startswith("leaf, expected_leaves ")
    assert len([line for line in others if line.startswith("leaf, ")]) == 7
    assert max(map(len, found.stdout.splitlines())) <= 80


def test_json_has_every_digit():
    found = run("evidence", TITANIC, "--drop", "survived", "--grid", "max_branches=all,2", "--json")
    points = json.loads(found.stdout)["points"]
    assert {point["model"] for point in points} == {"leaf", "branch"}
    leaf = next(p for p in points if p["model"] == "leaf" and p["parameters"]["max_branches"] == 2)
    table = Table.from_csv(TITANIC, drop=["survived"])
    assert leaf["log_evidence"] == solve(LeafPosterior(table)).log_evidence


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grid", "expected_leaves"], "--grid must be NAME=VALUE,VALUE,..."),
        (["--grid", "leaf=uniform", "--grid", "leaf=uniform"], "--grid must name leaf once"),
        (["--grid", "leaves=2"], "--grid must name parameters out of"),
        (["--grid", "expected_leaves=x"], "expected_leaves must be"),
        (
            ["--memory-limit", "1e-9"],
            "--memory-limit must be large enough for one of the models, got 1e-09",
        ),
    ],
)
def test_bad_options(options, message):
    assert_error(run("evidence", TITANIC, *options), message)


def test_ctrl_c_prints_what_was_finished(monkeypatch):
    solved = []

    def interrupted(*args, **options):
        if solved:
            raise KeyboardInterrupt
        solved.append(solve_or_tilt(*args, **options))
        return solved[0]

    grid = "bayescascade.methods.density.trees.evidence_grid"
    monkeypatch.setattr(f"{grid}.solve_or_tilt", interrupted)
    found = run("evidence", TITANIC, "--drop", "survived")
    assert found.exit_code == 130
    assert found.stdout.splitlines()[-1].startswith("leaf ")
    assert found.stderr.endswith("interrupted: only finished models are listed\n")
