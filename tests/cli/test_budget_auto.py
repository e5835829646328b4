"""``budget`` without ``--method``: each budget has the method that suits it, and says which."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

import bayescascade
from bayescascade.methods.auto_budget import estimators
from bayescascade.methods.prunings.budget_prune import BudgetPruneClassifier
from tests.cli.conftest import CLINIC, COSTS, assert_error, run

ASKED = ("--target", "outcome", "--costs", COSTS, "--seed", 0, "--trees", 2)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods in place of all."""
    monkeypatch.setattr(estimators, "IN_TURN", ("l1", "prune"))


def test_each_budget_says_its_method() -> None:
    """And how long that may take before it starts."""
    found = run("budget", CLINIC, *ASKED, "--budgets", "5,20")
    assert found.exit_code == 0
    assert found.stderr == (
        "note: up to 2 methods are tried within 145 s (--time-limit); Ctrl-C ends this\n  earlier\n"
    )
    lines = found.stdout.splitlines()
    assert lines[0].endswith("2 classes   auto classifier")
    assert lines[3].split() == ["budget", "cost", "error", "validation", "error", "method"]
    assert [line.split()[0] for line in lines[4:7]] == ["nothing", "5", "20"]
    assert all(line.split()[-1] in ("l1", "prune") for line in lines[5:7])
    assert any(line.startswith("budget 20: ") for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_budget_that_buys_nothing_names_no_method() -> None:
    """One that is named would seem to have learned something."""
    lines = run("budget", CLINIC, *ASKED, "--budgets", "0.5,20").stdout.splitlines()
    assert lines[5].split()[-1] == "none"
    assert lines[6].split()[-1] in ("l1", "prune")
    assert "budget 0.5: nothing is bought" in lines


def test_a_limit_is_repeated() -> None:
    told = run("budget", CLINIC, *ASKED, "--budgets", 5, "--time-limit", 30).stderr
    assert told.startswith("note: up to 2 methods are tried within 30 s (--time-limit)")
    told = run("budget", CLINIC, *ASKED, "--budgets", 5, "--time-limit", "no limit").stderr
    assert told.startswith("note: 2 methods are tried, without a limit of time")


def test_the_chosen_model_is_saved_and_used(tmp_path: Path) -> None:
    """Other commands ask for no method, either."""
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
    assert run("show", out).stdout == f"{model}\n"


def test_ctrl_c_prints_and_saves_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has seen enough keeps what there is."""

    def stop(*_: object) -> Iterator[object]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(BudgetPruneClassifier, "fit_budgets", stop)
    out = tmp_path / "model.json"
    found = run("budget", CLINIC, *ASKED, "--budgets", 20, "--out", out)
    assert found.exit_code == 130
    assert found.stderr.endswith("interrupted: these are the best of the methods that were tried\n")
    assert found.stdout.splitlines()[-1] == "not tried because it was interrupted: prune"
    assert bayescascade.load(out).method_ == "l1"
    monkeypatch.setattr(estimators, "IN_TURN", ("prune", "l1"))
    found = run("budget", CLINIC, *ASKED, "--budgets", 20)
    assert (found.exit_code, found.stdout) == (130, "")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("--target", "x"), '--target names the unknown column "x"'),
        (("--budgets", "-1"), "--budgets must be a finite number >= 0, got -1"),
        (("--time-limit", "0"), "--time-limit must be a finite number > 0"),
    ],
)
def test_wrong_options_are_named(changed: tuple[str, ...], message: str) -> None:
    assert_error(run("budget", CLINIC, *ASKED, "--budgets", 5, *changed), message)


def test_wrong_costs_are_named(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("name,cost,group\nage,nan,\n")
    told = run("budget", CLINIC, "--target", "outcome", "--budgets", 3, "--costs", prices)
    assert_error(told, "prices.csv")
