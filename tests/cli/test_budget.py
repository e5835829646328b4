"""``budget`` learns within each budget, and tells what the rows that it has not seen cost."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade.base.watch import Watch
from bayescascade.cli import budget as cli_budget
from bayescascade.costs.feature_costs import FeatureCosts
from bayescascade.methods.budget.forests.base import ForestClassifier
from bayescascade.methods.budget.forests.budgeted_forest import BudgetedForestClassifier
from bayescascade.methods.budget.listed import BUDGET_LEARNERS
from bayescascade.methods.budget.pruning.budget_prune import BudgetPruneClassifier
from bayescascade.methods.budget.pruning.solvers import Frontier
from bayescascade.methods.budget.single_trees import estimators as cost_trees
from tests.cli.conftest import CLINIC, COSTS, assert_error, run

PRUNED = ("--target", "outcome", "--costs", COSTS, "--seed", 0, "--trees", 2, "--method", "prune")
QUICK = (*PRUNED, "--method", "forest")


def test_a_line_for_a_budget():
    found = run("budget", CLINIC, *QUICK, "--budgets", "12,8")
    assert (found.exit_code, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0] == "liver_clinic.csv   1,500 rows   19 features   2 classes   budgeted forest"
    assert lines[1] == (
        "rows split by seed 0: 751 to learn from, 375 to measure costs, 374 to test"
    )
    assert lines[3].split() == ["budget", "cost", "error", "features", "trees", "splits"]
    assert [line.split()[0] for line in lines[4:7]] == ["nothing", "8", "12"]
    assert max(map(len, lines)) <= 80
    assert run("budget", CLINIC, *QUICK, "--budgets", "8,12").stdout == found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("method", BUDGET_LEARNERS)
def test_few_rows_choose_by_cross_validation(method, tmp_path, monkeypatch):
    """On noise, budgets bought forests that erred more than the commonest class."""
    monkeypatch.setattr(cost_trees, "_NATS", (100.0,))
    monkeypatch.setattr(cost_trees, "_STEPS", 50)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd"))
    frame["sick"] = np.where(rng.random(400) < 0.35, "yes", "no")
    frame.to_csv(tmp_path / "noise.csv", index=False)
    holds_out = method in ("astc", "cstc", "l1", "miser") or method.startswith("adapt")
    how = "a quarter of the rows, held out" if holds_out else "5-fold cross-validation"
    buys_nothing = []
    for seed in (0, 3):  # a gain above one standard error comes by chance for some splits
        asked = ("--target", "sick", "--budgets", 4, "--trees", 5, "--method", method)
        found = run("budget", tmp_path / "noise.csv", *asked, "--seed", seed)
        lines = found.stdout.splitlines()
        assert lines[1:3] == [
            f"rows split by seed {seed}: 301 to learn from, 99 to test",
            f"few rows, no validation rows: settings chosen by {how}",
        ]
        assert max(map(len, lines)) <= 80
        nothing, bought = (line.split() for line in lines[5:7])
        assert (nothing[0], bought[0]) == ("nothing", "4")
        buys_nothing.append(nothing[1:6] == bought[1:6])  # cost and error
        assert "note: " in found.stderr or not buys_nothing[-1]
        if buys_nothing[-1]:
            break
    assert any(buys_nothing)
    if method != "forest":  # of others nothing may be left anyway
        return
    record = json.loads(run("budget", tmp_path / "noise.csv", *asked, "--seed", 0, "--json").stdout)
    assert (record["n_training_rows"], record["n_validation_rows"]) == (301, 0)
    assert record["nothing"]["predicted"] == "no"
    (point,) = record["points"]
    assert (point["cost"], point["error"]) == (0.0, record["nothing"]["error"])
    text = " ".join(found.stderr.split())
    words = "note: budget 4 buys nothing: the classifier is not better than the most common "
    assert text.startswith(words)
    assert point["choice"]["rows"] == "rows in 5-fold cross-validation"


def test_buying_nothing_is_said():
    found = run("budget", CLINIC, *PRUNED, "--budgets", "0.5,12")
    assert "budget-pruned forest" in found.stdout.splitlines()[0]
    assert found.stderr.startswith("note: budget 0.5 buys nothing, and the cheapest first feature ")
    assert found.stderr.count("note:") == 1


def test_json_has_every_digit(tmp_path):
    out = tmp_path / "model.json"
    found = run("budget", CLINIC, *QUICK, "--budgets", 8, "--json", "--out", out)
    record = json.loads(found.stdout)
    assert (record["method"], record["seed"], record["target"]) == ("forest", 0, "outcome")
    assert [record[f"n_{part}_rows"] for part in ("training", "validation", "test")] == [
        751, 375, 374,
    ]  # fmt: skip
    (point,) = record["points"]
    model = bayescascade.load(out)
    assert point["budget"] == 8.0
    assert point["validation_cost"] == model.validation_cost_ <= 8.0
    assert point["n_splits"] == model.forest_.n_splits
    assert abs(point["cost"] - point["validation_cost"]) < 5 * point["cost_error"]


def test_one_file_has_the_classifiers_of_all_budgets(tmp_path):
    """And is used as the file of the budget alone, for which a budget of its own is chosen."""
    path, one, rows = (str(tmp_path / name) for name in ("path.json", "one.json", "rows.csv"))
    Path(rows).write_text("".join(Path(CLINIC).read_text().splitlines(keepends=True)[:30]))
    result = run("budget", CLINIC, *PRUNED, "--budgets", "14,25", "--out", path)
    assert (result.exit_code, result.stderr) == (0, "")
    run("budget", CLINIC, *PRUNED, "--budgets", "14", "--out", one)
    measured = ("score", rows, "--target", "outcome")
    for name, *others in (("show",), ("predict", rows), measured, ("explain", rows)):
        chosen = run(name, path, *others, "--budget", "20")
        assert (chosen.exit_code, chosen.stdout) == (0, run(name, one, *others).stdout)
    shown = [line.split() for line in run("show", path).stdout.splitlines()]
    assert shown[0] == ["path", "of", "budgets", "2", "budgets", "budget-pruned", "forest"]
    assert [line[0] for line in shown[2:5]] == ["budget", "14", "25"]
    assert [each["model"] for each in json.loads(run("show", path, "--json").stdout)["models"]] == [
        "BudgetPruneClassifier", "BudgetPruneClassifier",
    ]  # fmt: skip
    must_choose = "path.json has classifiers for the budgets 14, 25: show, score, predict and"
    assert_error(run("predict", path, rows), must_choose)
    assert_error(run("predict", path, rows, "--budget", 13), "--budget must be >= 14, the smallest")
    needs = "--budget needs the classifiers of several budgets, got"
    assert_error(run("show", one, "--budget", 20), needs)


def test_a_time_limit_tests_on_fewer_rows(monkeypatch):
    """On as many as its end leaves time for, spread over the test rows; else on all of them."""
    asked = ("budget", CLINIC, *QUICK, "--budgets", 8)
    whole, lines = json.loads(run(*asked, "--json").stdout), run(*asked).stdout
    assert run(*asked, "--time-limit", 1000).stdout == lines
    monkeypatch.setattr(cli_budget, "_FIRST_ROWS", 50)
    monkeypatch.setattr(Watch, "left", property(lambda _: 40.0))
    ticks = itertools.count(step=20.0)  # for 50 rows
    monkeypatch.setattr(cli_budget, "perf_counter", lambda: next(ticks))
    asked = (*asked, "--time-limit", 1000)
    assert "measured on 100 of the test rows, as many as the time limit" in run(*asked).stdout
    part = json.loads(run(*asked, "--json").stdout)
    assert (whole["n_test_rows"], part["n_test_rows"]) == (374, 100)
    (point,), (of_all,) = part["points"], whole["points"]
    assert point["validation_cost"] == of_all["validation_cost"]
    assert (100 * point["error"]) % 1 == 0 < abs(point["error"] - of_all["error"]) < 0.2


def test_without_a_seed_the_json_says_which_was_used():
    """Else no result could be had again."""
    options = ("--target", "outcome", "--budgets", 3, "--trees", 1, "--method", "prune", "--json")
    first = json.loads(run("budget", CLINIC, *options).stdout)
    again = json.loads(run("budget", CLINIC, *options, "--seed", first["seed"]).stdout)
    assert first == again


def test_test_rows_are_not_learned_from(monkeypatch):
    """Else the error would be too small."""
    seen = []
    fit = BudgetedForestClassifier.fit

    def spy(self, X, y, X_val, y_val):
        seen.extend([X, X_val])
        return fit(self, X, y, X_val, y_val)

    monkeypatch.setattr(BudgetedForestClassifier, "fit", spy)
    tested = []
    answers = ForestClassifier.predict_block

    def answered(self, X, first_row):
        tested.append(X)
        return answers(self, X, first_row)

    monkeypatch.setattr(ForestClassifier, "predict_block", answered)
    run("budget", CLINIC, *QUICK, "--budgets", 5)
    every = pd.concat([*seen, tested[0]]).sort_values(list(seen[0].columns))
    whole = pd.read_csv(CLINIC).drop(columns="outcome").sort_values(list(every.columns))
    pd.testing.assert_frame_equal(
        every.reset_index(drop=True), whole.reset_index(drop=True), check_dtype=False
    )


def test_one_price_list_does_for_any_columns(tmp_path):
    """Also for the labels, and for a group that is left out, or some of its members."""
    prices = tmp_path / "prices.csv"
    prices.write_text(Path(COSTS).read_text() + "outcome,5,\n")
    out = tmp_path / "model.json"
    options = ("--target", "outcome", "--costs", prices, "--seed", 0, "--trees", 1, "--out", out)
    options = (*options, "--method", "prune")
    kept = "age,bilirubin,albumin,ascites"
    run("budget", CLINIC, *options, "--budgets", 20, "--columns", kept, "--drop", "albumin")
    costs, whole = bayescascade.load(out).costs_, FeatureCosts.read_csv(COSTS)
    assert costs.groups == {"blood": ("bilirubin",)}
    paid = ("age", "ascites", "bilirubin", "blood")
    assert costs.costs == {name: whole.costs[name] for name in paid}
    run("budget", CLINIC, *options, "--budgets", 20, "--columns", "age,sex")
    costs = bayescascade.load(out).costs_
    assert (set(costs.costs), costs.groups) == ({"age", "sex"}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,cost\nagee,2\n", "costs must be of the columns 'age', "),
        ("name,cost,group\nagee,,blood\n", "groups['blood'] must be of the columns 'age', "),
        ("name,cost,group\nage,nan,\n", "nan"),
    ],
)
def test_a_wrong_price_list_is_named(tmp_path, text, message):
    prices = tmp_path / "prices.csv"
    prices.write_text(text)
    result = run("budget", CLINIC, "--target", "outcome", "--budgets", 3, "--costs", prices)
    assert_error(result, message)
    assert result.stderr.startswith(f"error: {prices}")


@pytest.mark.slow
def test_a_picture(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("a,b,c\n" + "".join(f"{i % 2},{i % 3},{'xy'[i % 2]}\n" for i in range(90)))
    options = ("--target", "c", "--seed", 0, "--trees", 1, "--budgets", "1,2", "--method", "prune")
    for suffix, start in {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}.items():
        plot = tmp_path / f"p.{suffix}"
        assert run("budget", data, *options, "--plot", plot).exit_code == 0
        assert plot.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budgets", "5,x"), "--budgets must be costs, as in 5,10,20, got '5,x'"),
        (("--budgets", "-1"), "--budgets must be a finite number >= 0, got -1"),
        (("--budgets", "1", "--plot", "p.txt"), "--plot must end in .png, .svg, .pdf"),
        (("--budgets", "1", "--test-share", "0.5"), "--test-share must be a finite number > 0 and"),
        (("--budgets", "1", "--drop", "age,x"), 'drop names the unknown column "x"'),
        (("--budgets", "1", "--costs", "none.csv"), "cannot read none.csv: No such file"),
        (("--budgets", "1", "--target", "x"), '--target names the unknown column "x"'),
    ],
)
def test_wrong_options_are_named(options, message):
    assert_error(run("budget", CLINIC, *QUICK, *options), message)


def test_rows_that_are_too_few_are_an_error(tmp_path):
    (tmp_path / "few.csv").write_text("a,b\n1,x\n2,y\n")
    result = run("budget", tmp_path / "few.csv", "--target", "b", "--budgets", 1)
    assert_error(result, "--test-share must leave rows for each part, got 0.25 of 2 rows")


def test_a_budget_below_everything_buys_nothing(tmp_path):
    """It was an error, or a budget without a line; the note says what would do."""
    rows = "".join(f"{i % 2},{'xy'[i % 2]}\n" for i in range(2000))
    (tmp_path / "rows.csv").write_text("a,b\n" + rows)
    options = ("--target", "b", "--seed", 0, "--trees", 1, "--method", "forest")
    result = run("budget", tmp_path / "rows.csv", *options, "--budgets", "0.5,1")
    assert result.exit_code == 0
    assert " ".join(result.stderr.split()) == (
        "note: budget 0.5 buys nothing, and the cheapest feature, a, costs 1; all rows get the "
        "same prediction; the cheapest first tree costs 1 a row"
    )
    lines = {line.split(" ")[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert lines["0.5"][:5] == lines["nothing"][:5]  # cost and error
    assert "0.00 ± 0.48 %" in result.stdout


def test_ctrl_c_prints_what_was_finished(monkeypatch):
    """Minutes of learning would be lost."""
    fit, calls = BudgetedForestClassifier.fit, []

    def stop(self, *arguments, **others):
        calls.append(self.budget)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(self, *arguments, **others)

    monkeypatch.setattr(BudgetedForestClassifier, "fit", stop)
    found = run("budget", CLINIC, *QUICK, "--budgets", "8,10,12")
    assert found.exit_code == 130
    assert found.stderr == "interrupted: 1 of 3 fits were finished\n"
    assert [line.split()[0] for line in found.stdout.splitlines()[5:6]] == ["8"]


def test_ctrl_c_within_a_fit_is_no_finished_fit(monkeypatch):
    """What a fit kept when it was stopped is not the forest of that budget."""
    fit = BudgetedForestClassifier.fit

    def stopped(self, *arguments, **others):
        fit(self, *arguments, **others).is_interrupted_ = True
        return self

    monkeypatch.setattr(BudgetedForestClassifier, "fit", stopped)
    found = run("budget", CLINIC, *QUICK, "--budgets", "4,8")
    assert (found.exit_code, found.stdout) == (130, "")
    assert found.stderr == "interrupted: 0 of 2 fits were finished\n"


@pytest.mark.slow
def test_single_trees_are_sampled_for_each_budget(monkeypatch):
    monkeypatch.setattr(cost_trees, "_NATS", (20.0, 1e5))
    monkeypatch.setattr(cost_trees, "_STEPS", 200)
    found = run("budget", CLINIC, *QUICK, "--method", "tree", "--budgets", "0,25", "--json")
    assert found.exit_code == 0
    assert found.stderr.startswith("note: budget 0 buys nothing, and the cheapest feature, ")
    none, some = json.loads(found.stdout)["points"]
    assert none["n_splits"] == none["cost"] == 0.0 < some["validation_cost"] <= 25.0
    assert some["error"] < none["error"]


def test_a_forest_is_pruned_for_each_budget(tmp_path):
    """One forest is fitted for all; each pruning must be what its budget alone would give."""
    out = tmp_path / "pruned.json"
    found = run("budget", CLINIC, *PRUNED, "--budgets", "8,14,25", "--json")
    assert found.exit_code == 0
    assert "budget 8 buys nothing, though the cheapest first feature " in found.stderr
    points = json.loads(found.stdout)["points"]
    assert [point["budget"] for point in points] == [8.0, 14.0, 25.0]
    assert all(point["validation_cost"] <= point["budget"] for point in points)
    alone = run("budget", CLINIC, *PRUNED, "--budgets", "14", "--json", "--out", out)
    assert json.loads(alone.stdout)["points"] == points[1:2]
    model = bayescascade.load(out)
    assert (model.model_name, model.budget) == ("BudgetPruneClassifier", 14.0)
    assert (
        "2 classes   budget-pruned forest" in run("budget", CLINIC, *PRUNED, "--budgets", 9).stdout
    )


def test_ways_to_spend_a_budget_are_compared_by_labels(monkeypatch):
    """On digits, one forest of few columns a split erred 22 % without them and 12 % with them."""
    fit_budgets, given = BudgetPruneClassifier.fit_budgets, []

    def spy(self, budgets, *arguments, **others):
        given.extend([*arguments, *others.values()])
        return fit_budgets(self, budgets, *arguments, **others)

    monkeypatch.setattr(BudgetPruneClassifier, "fit_budgets", spy)
    assert run("budget", CLINIC, *PRUNED, "--budgets", 8).exit_code == 0
    assert [len(rows) for rows in given] == [751, 751, 375, 375]


def test_ctrl_c_keeps_prunings_that_were_finished(monkeypatch):
    within = Frontier.within

    def stop(self, amount):
        return replace(within(self, amount), interrupted=amount == 25)

    monkeypatch.setattr(Frontier, "within", stop)
    found = run("budget", CLINIC, *PRUNED, "--budgets", "8,14,25")
    assert found.exit_code == 130
    assert found.stderr.endswith("interrupted: 2 of 3 fits were finished\n")
    assert [line.split()[0] for line in found.stdout.splitlines()[5:7]] == ["8", "14"]
