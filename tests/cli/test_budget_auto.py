"""``budget`` without ``--method``: each budget has the method that suits it, and says which."""

import json
from io import StringIO

import pandas as pd
import pytest

import bayescascade
from bayescascade.methods.budget.auto.trying import EFFORTS
from bayescascade.methods.budget.pruning.budget_prune import BudgetPruneClassifier
from tests.cli.conftest import CLINIC, COSTS, assert_error, run

ASKED = ("--target", "outcome", "--costs", COSTS, "--seed", 0, "--trees", 2)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Two methods in place of all."""
    monkeypatch.setitem(EFFORTS, "normal", EFFORTS["quick"])


def test_each_budget_says_its_method():
    """And how many there are before it starts."""
    found = run("budget", CLINIC, *ASKED, "--budgets", "5,20")
    assert found.exit_code == 0
    assert found.stderr == (
        "note: up to 2 methods are tried (--effort, --time-limit, --method); Ctrl-C ends\n"
        "  this earlier\n"
    )
    lines = found.stdout.splitlines()
    assert lines[0].endswith("2 classes   auto classifier")
    assert lines[3].split() == ["budget", "cost", "error", "validation", "error", "method"]
    assert [line.split()[0] for line in lines[4:7]] == ["nothing", "5", "20"]
    assert all(line.split()[-1] in ("l1", "prune") for line in lines[5:7])
    assert any(line.startswith("budget 20: ") for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_budget_that_buys_nothing_names_no_method():
    """One that is named would seem to have learned something."""
    lines = run("budget", CLINIC, *ASKED, "--budgets", "0.5,20").stdout.splitlines()
    assert lines[5].split()[-1] == "none"
    assert lines[6].split()[-1] in ("l1", "prune")
    assert "budget 0.5: nothing is bought" in lines


def test_a_limit_is_repeated():
    text = run("budget", CLINIC, *ASKED, "--budgets", 5, "--time-limit", 30).stderr
    assert text.startswith("note: up to 2 methods are tried within 30 s (--effort, --time-limit, ")
    wrong = run("budget", CLINIC, *ASKED, "--budgets", 5, "--time-limit", 0)
    assert_error(wrong, "--time-limit must be a finite number > 0")


def test_effort_is_of_the_choice_among_methods():
    """One method alone would ignore it."""
    wrong = run("budget", CLINIC, *ASKED, "--budgets", 5, "--method", "prune", "--effort", "quick")
    assert_error(wrong, "--effort needs --method auto, got prune")
    text = run("budget", CLINIC, *ASKED, "--budgets", 5, "--effort", "quick").stderr
    assert text.startswith("note: up to 2 methods are tried (--effort, --time-limit, --method)")


def test_the_chosen_model_is_saved_and_used(tmp_path):
    out = tmp_path / "model.json"
    found = run("budget", CLINIC, *ASKED, "--budgets", 20, "--json", "--out", out)
    record, model = json.loads(found.stdout), bayescascade.load(out)
    (point,) = record["points"]
    assert record["method"] == "auto"
    assert point["chosen"][0]["method"] in ("l1", "prune")
    assert {one["method"] for one in point["chosen"]} == {"l1", "prune"}
    assert point["validation_cost"] == model.validation_cost_ <= 20
    frame = pd.read_csv(CLINIC)
    said = pd.read_csv(StringIO(run("predict", out, CLINIC).stdout))
    assert said["predicted"].tolist() == model.predict(frame).tolist()
    assert run("score", out, CLINIC, "--target", "outcome").exit_code == 0


def test_ctrl_c_prints_and_saves_the_best_so_far(tmp_path, monkeypatch):

    def stop(*_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(BudgetPruneClassifier, "fit_budgets", stop)
    out = tmp_path / "model.json"
    found = run("budget", CLINIC, *ASKED, "--budgets", 20, "--out", out)
    assert found.exit_code == 130
    assert found.stderr.endswith("interrupted: these are the best of the methods that were tried\n")
    assert found.stdout.splitlines()[-1] == "not tried because it was interrupted: prune"
    assert bayescascade.load(out).method_ == "l1"
    monkeypatch.setitem(EFFORTS, "normal", (("prune", "l1"), 6e7))
    found = run("budget", CLINIC, *ASKED, "--budgets", 20)
    assert (found.exit_code, found.stdout) == (130, "")
