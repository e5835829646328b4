"""``fit --model rules``: all that is done with trees works for density rule lists."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import DensityRuleList, Table
from bayescascade.cli import fit as fit_module
from bayescascade.model.trace import read_trace
from tests.cli.conftest import TITANIC, Fitted, assert_error, interrupted, run

FEW = ("--model", "rules", "--steps", 200, "--chains", 2, "--seed", 1)


def test_same_seed_as_in_python(listed: Fitted) -> None:
    """The command line is the estimator and nothing else."""
    table = Table.from_csv(TITANIC, drop=["survived"], ordinal={"age": ["child", "adult"]})
    model = DensityRuleList(n_steps=2_000, n_chains=2, random_state=0).fit(table)
    assert f"{model}\n" == listed.stdout == run("show", listed.model).stdout
    assert listed.stdout.startswith("titanic.csv   2,201 rows   14 distinct   3 columns   16 cells")
    assert "\ndensity rule list, expected_rules 3, " in listed.stdout
    assert max(map(len, listed.stdout.splitlines())) <= 80


def test_every_option_reaches_the_estimator() -> None:
    found = run(
        "fit", TITANIC, "--drop", "survived", *FEW, "--expected-rules", 2, "--expected-size", 1.5,
        "--concentration", 0.5, "--max-size", 1, "--memory-limit", 1, "--density", "empirical",
        "--predictive", "average", "--json",
    )  # fmt: skip
    given = {
        "expected_rules": 2.0, "expected_size": 1.5, "concentration": 0.5, "max_size": 1,
        "memory_limit": 1.0, "density": "empirical", "predictive": "average", "n_steps": 200,
    }  # fmt: skip
    record = json.loads(found.stdout)
    assert given.items() <= record["parameters"].items()
    assert record["model"] == "rules"


def test_show(listed: Fitted, tmp_path: Path) -> None:
    """As JSON and given evidence; pictures are of trees."""
    model = bayescascade.load(listed.model)
    record = json.loads(run("show", listed.model, "--json").stdout)
    assert {"rules": record["rules"], "else": record["else"]} == model.rules_.to_dict()
    density = model.condition({"sex": "male", "class": ["1st", "2nd"]})
    options = ("--given", "sex=male", "--given", "class=1st,2nd")
    assert run("show", listed.model, *options).stdout == f"{density}\n"
    record = json.loads(run("show", listed.model, *options, "--json").stdout)
    assert {"rules": record["rules"], "else": record["else"]} == density.to_dict()
    assert record["given"] == "sex is male and class is 1st, 2nd"
    assert_error(run("show", listed.model, "--given", "sex=x"), 'unknown level "x"')
    assert_error(run("show", listed.model, "--dot"), "--dot needs a tree, got ")
    picture = tmp_path / "t.png"
    assert_error(run("show", listed.model, "--png", picture), ", a density rule list\n")
    assert not picture.exists()


def test_scores_are_the_models(listed: Fitted, tmp_path: Path) -> None:
    """The rarest rows come with the part that holds them."""
    model, frame = bayescascade.load(listed.model), pd.read_csv(TITANIC)
    scores, out = model.score_samples(frame), tmp_path / "s.csv"
    assert run("score", listed.model, TITANIC, "--out", out).exit_code == 0
    np.testing.assert_array_equal(pd.read_csv(out)["log_density"], scores)
    record = json.loads(run("score", listed.model, TITANIC, "--top", 3, "--json").stdout)
    assert record["log_density"]["sum"] == pytest.approx(scores.sum())
    rarest = record["rarest"][0]
    assert rarest["row"] == 1 + int(np.argmin(scores))
    assert rarest["explanation"] == model.explain(rarest["values"]).splitlines()
    lines = run("score", listed.model, TITANIC, "--top", 2).stdout.splitlines()
    assert lines[2].startswith(f"row {rarest['row']}")
    assert lines[4].startswith("  because ")
    assert max(map(len, lines)) <= 80


def test_missing_cells_are_in_several_parts(listed: Fitted, tmp_path: Path) -> None:
    """Each part that a row could be in is a reason."""
    (tmp_path / "n.csv").write_text("class,sex,age\ncrew,,adult\n,,\n")
    lines = run("score", listed.model, tmp_path / "n.csv").stdout.splitlines()
    model = bayescascade.load(listed.model)
    unknown = model.explain({"class": None, "sex": None, "age": None}).splitlines()
    assert len(unknown) == model.rules_.n_rules + 1
    assert sum(line.startswith("  because ") for line in lines) >= len(unknown)
    assert "  class: missing   sex: missing   age: missing" in lines


def test_averages_are_scored(tmp_path: Path) -> None:
    model, out = tmp_path / "m.json", tmp_path / "s.csv"
    options = ("--drop", "survived", "--predictive", "average", "--out", model)
    assert run("fit", TITANIC, *FEW, *options).exit_code == 0
    assert run("score", model, TITANIC, "--out", out).exit_code == 0
    expected = bayescascade.load(model).score_samples(pd.read_csv(TITANIC))
    np.testing.assert_array_equal(pd.read_csv(out)["log_density"], expected)


def test_sample(listed: Fitted, tmp_path: Path) -> None:
    """Rows come as CSV that can be scored again."""
    found = run("sample", listed.model, "-n", 50, "--seed", 1)
    assert found.stdout.startswith("class,sex,age\n")
    assert found.stdout.count("\n") == 51
    (tmp_path / "rows.csv").write_text(found.stdout)
    assert run("score", listed.model, tmp_path / "rows.csv").exit_code == 0


def test_the_run_can_be_diagnosed(listed: Fitted, tmp_path: Path) -> None:
    """The trace of a list speaks of rules."""
    assert read_trace(listed.trace).settings["model"] == "rules"
    text = run("diagnose", listed.trace, "--plots", tmp_path).stdout
    assert "density rule list" in text
    assert "leaves" not in text
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ranks.png",
        "sizes.png",
        "traces.png",
    ]
    printed, diagnosed = listed.stdout.splitlines(), text.splitlines()
    posterior = next(line for line in printed if line.startswith("posterior   rules"))
    assert posterior in diagnosed


def test_an_interrupted_search_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found is a list, not a tree, and is not lost."""
    whole, again, checkpoint = tmp_path / "w.json", tmp_path / "a.json", tmp_path / "checkpoint"
    common = ("fit", TITANIC, "--model", "rules", "--drop", "survived", "--steps", 20_000,
              "--chains", 1, "--seed", 5)  # fmt: skip
    assert run(*common, "--out", whole).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "learn", interrupted)
        found = run(*common, "--checkpoint", checkpoint)
    assert found.exit_code == 130
    assert found.stderr.endswith(
        "interrupted: the list is the best found so far; --resume goes on from there\n"
    )
    resumed = run(*common, "--checkpoint", checkpoint, "--resume", "--out", again)
    assert resumed.exit_code == 0
    assert again.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("command", [["fit", "--model", "rules"], ["classify", "--target", "sex"]])
def test_an_exact_search_of_lists_has_no_trace(command: list[str], tmp_path: Path) -> None:
    """It draws nothing; that should be said before it starts."""
    name, *options = command
    trace = ("--search", "exact", "--trace", tmp_path / "t.nc")
    assert_error(run(name, TITANIC, *options, *trace), "--trace needs a --search that draws lists")
    assert not (tmp_path / "t.nc").exists()


def test_lists_have_no_automatic_search() -> None:
    found = run("fit", TITANIC, "--model", "rules", "--search", "auto")
    assert_error(found, "--search auto needs --model leaf or branch, got rules")
