"""``fit``: what it prints, what it writes, and that options mean what the estimators' do."""

import json

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade.base.typed_words import words_of_commands
from bayescascade.cli import learning
from bayescascade.methods.density.cascade_mixtures.estimators import CascadeMixture
from bayescascade.methods.density.trees.estimators import LeafCascade
from bayescascade.methods.lists.estimators import DensityRuleList
from bayescascade.model.trace import read_trace
from tests.cli.conftest import TIC_TAC_TOE, TITANIC, assert_error, interrupted, run

SAMPLED = ("--search", "anneal+metropolis")
FEW = (*SAMPLED, "--steps", 200, "--chains", 2, "--seed", 1)
SMALL = ("--steps", 200, "--chains", 2, "--seed", 1)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        (
            "fitted",
            LeafCascade(
                leaf="auto", search="anneal+metropolis", n_steps=500, n_chains=2, random_state=0
            ),
        ),
        ("listed", DensityRuleList(n_steps=500, n_chains=2, random_state=0)),
    ],
)
def test_same_seed_as_in_python(name, model, request):
    """The command line is the estimator and nothing else; all that is said of a run agrees."""
    printed = request.getfixturevalue(name)
    ages = {"age": ["child", "adult"]}
    model.fit(bayescascade.Table.from_csv(TITANIC, drop=["survived"], ordinal=ages))
    with words_of_commands():
        text = f"{model}\n"
    assert text == printed.stdout == run("show", printed.model).stdout
    assert max(map(len, printed.stdout.splitlines())) <= 80
    assert printed.stdout.startswith(
        "titanic.csv   2,201 rows   14 distinct   3 columns   16 cells\n"
    )
    assert "age: child < adult" in printed.stdout
    assert "\x1b" not in printed.stdout
    trace = read_trace(printed.trace)
    assert (trace.settings["source"], set(trace.columns)) == (
        "titanic.csv", {"class", "sex", "age"}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("common", "words"),
    [
        (("fit", TITANIC, "--leaf", "uniform", *SAMPLED, "--steps", 500), "tree"),
        pytest.param(
            ("fit", TITANIC, "--model", "rules", *SAMPLED, "--steps", 2_000),
            "list",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("classify", TIC_TAC_TOE, "--target", "outcome", "--steps", 2_000, "--cv", 0),
            "list",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["fit", "rules", "classify"],
)
def test_a_checkpoint_is_resumed_to_the_same_model(
    common, words, tmp_path,
    monkeypatch
):  # fmt: skip
    """Interrupted and gone on with, a run must end where it would have ended."""
    whole, first, again, checkpoint = (tmp_path / name for name in ("w", "f", "a", "checkpoint"))
    common = (*common, "--chains", 1, "--seed", 5)
    assert run(*common, "--out", whole).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(learning, "learn", interrupted)
        found = run(*common, "--checkpoint", checkpoint, "--out", first)
    assert found.exit_code == 130
    assert "interrupted: best found so far" in found.stdout
    assert found.stderr.endswith(
        f"interrupted: the {words} is the best found so far; --resume continues from there\n"
    )
    assert bayescascade.load(first).summary_.interrupted
    assert_error(run(*common, "--checkpoint", checkpoint), "holds an unfinished run")
    assert run(*common, "--checkpoint", checkpoint, "--resume", "--out", again).exit_code == 0
    assert again.read_bytes() == whole.read_bytes()
    other = run(*common, "--drop", "sex" if "fit" in common else "top_left",
                "--checkpoint", checkpoint, "--resume")  # fmt: skip
    assert_error(other, f"checkpoint {checkpoint}")


def test_json_has_everything(tmp_path):
    out = tmp_path / "m.json"
    found = run("fit", TITANIC, "--columns", "sex,age", *FEW, "--json", "--out", out)
    record = json.loads(found.stdout)
    model = bayescascade.load(out)
    assert record["log_posterior"] == model.log_posterior_
    assert record["tree"] == model.tree_.node_dict()
    assert record["summary"]["n_rows"] == 2201
    with words_of_commands():
        assert record["summary"]["warnings"] == model.summary_.warnings
    assert record["parameters"]["expected_leaves"] == 8.0
    assert [column["name"] for column in record["columns"]] == ["sex", "age"]


@pytest.mark.slow
def test_every_declaration_reaches_the_table(tmp_path):
    """An option that is parsed but not used would give another model silently."""
    path = tmp_path / "rows.csv"
    frame = pd.DataFrame(
        {
            "size": [1, 2, 3, 2, 1, 3],
            "zip": [10, 20, 10, 30, 20, 10],
            "a, b": ["x", "y", "x", None, "y", "x"],
            "income": [1.5, 2.5, 9.0, 3.5, 7.0, 2.0],
            "n": [1, 2, 0.5, 1, 1, 1],
            "id": [1, 2, 3, 4, 5, 6],
        }
    )
    frame.to_csv(path, index=False)
    found = run(
        "fit", path, "--ordinal", "size", "--nominal", "zip:10,20,30,40", "--continuous",
        "income:0,5,10", "--weights", "n", "--drop", "id", "--missing", "level", *FEW, "--json",
        "--model", "branch", "--expected-branches", 1.5, "--feature-inclusion", 0.3,
        "--max-branches", 3, "--concentration", 0.5, "--density", "empirical", "--chains", 2,
        "--search", "tempering",
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    record = json.loads(found.stdout)
    columns = {column["name"]: column for column in record["columns"]}
    assert list(columns) == ["size", "zip", "a, b", "income"]
    assert columns["size"]["kind"] == "ordinal"
    assert columns["zip"]["levels"] == [10, 20, 30, 40]
    assert columns["a, b"]["has_missing_level"]
    assert columns["income"]["edges"] == [0.0, 5.0, 10.0]
    assert record["summary"]["total_weight"] == 6.5
    given = {
        "expected_branches": 1.5,
        "feature_inclusion": 0.3,
        "max_branches": 3,
        "concentration": 0.5,
        "density": "empirical",
        "n_chains": 2,
        "n_steps": 200,
        "search": "tempering",
    }
    assert given.items() <= record["parameters"].items()
    assert run("fit", path, "--columns", '"a, b",size', "--missing", "level", *FEW).exit_code == 0
    every = run("fit", path, "--drop", "id,income,n", "--missing", "level", "--max-branches", "all",
                *FEW, "--json")  # fmt: skip
    assert json.loads(every.stdout)["parameters"]["max_branches"] is None


def test_every_option_of_rules_reaches_the_estimator():
    found = run(
        "fit", TITANIC, "--drop", "survived", "--model", "rules", *SMALL,
        "--expected-rules", 2, "--expected-size", 1.5,
        "--concentration", 0.5, "--max-size", 1, "--memory-limit", 1, "--density", "empirical",
        "--predictive", "average", "--json",
    )  # fmt: skip
    given = {
        "expected_rules": 2.0, "expected_size": 1.5, "concentration": 0.5, "max_size": 1,
        "memory_limit": 1.0, "density": "empirical", "predictive": "average", "n_steps": 200,
    }  # fmt: skip
    record = json.loads(found.stdout)
    assert given.items() <= record["parameters"].items()
    assert record["model"] == "DensityRuleList"


def test_a_constant_column_is_noted(tmp_path):
    (tmp_path / "c.csv").write_text("a,b\nx,1\nx,2\nx,2\n")
    found = run("fit", tmp_path / "c.csv", *FEW)
    assert found.exit_code == 0
    assert 'note: column "a" is constant ("x"): no split or rule can use it\n' in found.stderr
    assert "a: x (constant)" in found.stdout


def test_a_mixture_is_fitted_printed_and_saved(tmp_path):
    """The command must find what Python finds; options of chains are refused by name."""
    path = tmp_path / "mixture.json"
    command = ("fit", TITANIC, "--model", "mixture", "--components", 2, "--smoothing", 1)
    found = run(*command, "--seed", 0, "--out", path, "--quiet")
    assert found.exit_code == 0
    model = CascadeMixture(2, smoothing=1.0, random_state=0).fit(pd.read_csv(TITANIC))
    loaded = bayescascade.load(path)
    np.testing.assert_array_equal(loaded.objective_, model.objective_)
    assert "titanic.csv" in run("show", path).stdout
    for option, value in (("--chains", 2), ("--trace", tmp_path / "t.nc")):
        refused = run(*command, option, value)
        assert_error(
            refused, f"{option} needs --model auto or leaf or branch or rules, got mixture"
        )


def test_dependent_leaves_are_fitted_and_shown(tmp_path):
    """Depth and tempering reach the estimator; the saved file has what the page needs."""
    options = ("--model", "branch", "--leaf", "dependent", "--partitions", "levels")
    out = tmp_path / "m.json"
    found = run("fit", TITANIC, *options, "--max-depth", 2, "--temper", 300, "--out", out)
    text = " ".join(found.stdout.split())
    assert "exact: no tree of depth up to 2, tempered at 300 rows, is more probable" in text
    assert "tempered at 300 rows, which is no posterior" in text
    assert " (0." in text
    assert run("show", out).stdout == found.stdout
    assert "\ntempered    " in found.stdout
    assert "\nposterior " not in found.stdout
    html = tmp_path / "m.html"
    run("show", out, "--html", html)
    report = html.read_text(encoding="utf-8")
    assert "What follows is from a tempered distribution, which is no posterior." in report
    assert "plausible" not in report
    record = json.loads(run("show", out, "--json").stdout)
    assert record["summary"]["drawn_from"] == "a tempered distribution, which is no posterior"
    chosen = run("fit", TITANIC, *options, "--max-depth", 1, "--temper", "auto")
    assert "temper chosen on held-out rows" in " ".join(chosen.stdout.split())
    given = run("fit", TITANIC, "--temper", 300, "--model", "leaf")
    assert_error(given, "--temper needs --model branch, got leaf")


@pytest.mark.slow
def test_options_say_which_model_is_meant():
    """Without --model it is what suits the table, or the first model that has all options."""
    for options, model in (
        (("--effort", "quick"), "AutoCascade"),
        (("--leaf", "uniform"), "LeafCascade"),
        (("--leaf", "uniform", "--expected-branches", 3), "BranchCascade"),
        (("--expected-rules", 2, "--steps", 200), "DensityRuleList"),
    ):
        found = run("fit", TITANIC, *options, "--seed", 0, "--json")
        assert json.loads(found.stdout)["model"] == model
    assert_error(
        run("fit", TITANIC, "--model", "auto", "--leaf", "uniform"),
        "--leaf needs --model leaf or branch, got auto",
    )


@pytest.mark.slow
def test_ages_are_bins_from_file_to_filled_file(tmp_path):
    """41 ages were 41 names; as bins, what is printed, given and filled in is still an age."""
    ages = np.random.default_rng(0).permutation(np.repeat(np.arange(17, 58), 8))
    frame = pd.DataFrame({"age": ages, "old": np.where(ages >= 34, "yes", "no")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.json"
    found = run("fit", tmp_path / "t.csv", *FEW, "--out", model)
    assert found.exit_code == 0, found.stderr
    text = " ".join(found.stderr.split())
    assert 'note: column "age" holds whole numbers, cut into 7 bins' in text
    assert "--nominal age keeps them as levels" in text
    assert "age: 7 bins from 17 to 57" in found.stdout
    last = bayescascade.load(model).schema_.columns[0].bin_words(6, 6)
    given = run("show", model, "--given", f"age={last.replace(' to ', ',')}")
    assert given.exit_code == 0, given.stderr
    assert f"age is {last}" in given.stdout
    (tmp_path / "gaps.csv").write_text("age,old\n,no\n20,\n")
    for name in ("filled.csv", "filled.parquet"):
        filled = run("impute", model, tmp_path / "gaps.csv", "--out", tmp_path / name)
        assert filled.exit_code == 0, filled.stderr
    assert pd.read_csv(tmp_path / "filled.csv")["age"].dtype == np.int64
    assert pd.read_parquet(tmp_path / "filled.parquet")["age"].dtype == np.int64
    kept = run("fit", tmp_path / "t.csv", *FEW, "--nominal", "age", "--out", model)
    assert kept.exit_code == 0, kept.stderr
    assert "note: column" not in kept.stderr
    assert "age: 17, 18, 19," in kept.stdout
    assert "57 (41 levels)" in kept.stdout
    assert "age is 34 to 57" in kept.stdout
