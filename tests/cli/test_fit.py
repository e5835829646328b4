"""``fit``: what it prints, what it writes, and that options mean what the estimators' do."""

import inspect
import json
import re
from pathlib import Path

import click
import pandas as pd
import pytest

import bayescascade
from bayescascade.cli import fit as fit_module
from bayescascade.cli.fit import fit
from bayescascade.methods.cascades import base, models
from bayescascade.methods.cascades.estimators import BranchCascade, LeafCascade
from bayescascade.methods.rules.estimators import DensityRuleList
from bayescascade.model import estimator, search
from bayescascade.model.trace import read_trace
from tests.cli.conftest import TITANIC, Fitted, assert_error, interrupted, run

SAMPLED = ("--search", "anneal+metropolis")
FEW = (*SAMPLED, "--steps", 200, "--seed", 1)


def test_text_is_the_models(fitted: Fitted) -> None:
    """The printed model, the saved one and the one in Python must be the same."""
    model = bayescascade.load(fitted.model)
    assert fitted.stdout == f"{model}\n"
    assert max(map(len, fitted.stdout.splitlines())) <= 80
    assert fitted.stdout.startswith(
        "titanic.csv   2,201 rows   14 distinct   3 columns   16 cells\n"
    )
    assert "age: child < adult" in fitted.stdout
    assert "\x1b" not in fitted.stdout


def test_same_seed_as_in_python(fitted: Fitted) -> None:
    """The command line is the estimator and nothing else."""
    table = bayescascade.Table.from_csv(
        TITANIC, drop=["survived"], ordinal={"age": ["child", "adult"]}
    )
    model = LeafCascade(search="anneal+metropolis", n_steps=40_000, random_state=0).fit(table)
    assert f"{model}\n" == fitted.stdout


def test_trace_is_written(fitted: Fitted) -> None:
    trace = read_trace(fitted.trace)
    assert (trace.n_chains, trace.settings["source"]) == (4, "titanic.csv")
    assert set(trace.columns) == {"class", "sex", "age"}


def test_json_has_everything(tmp_path: Path) -> None:
    """Programs need the numbers that text rounds."""
    out = tmp_path / "m.json"
    found = run("fit", TITANIC, "--columns", "sex,age", *FEW, "--json", "--out", out)
    record = json.loads(found.stdout)
    model = bayescascade.load(out)
    assert record["log_posterior"] == model.log_posterior_
    assert record["tree"] == model.tree_.to_dict()
    assert record["summary"]["n_rows"] == 2201
    assert record["summary"]["warnings"] == model.summary_.warnings
    assert record["parameters"]["expected_leaves"] == 8.0
    assert [column["name"] for column in record["columns"]] == ["sex", "age"]


def test_quiet_prints_only_json(tmp_path: Path) -> None:
    out = tmp_path / "m.json"
    assert run("fit", TITANIC, *FEW, "--quiet", "--out", out).stdout == ""
    assert out.exists()
    assert json.loads(run("fit", TITANIC, *FEW, "--quiet", "--json").stdout)["n_leaves"] > 1


def test_what_did_not_converge_is_warned_of_on_stderr() -> None:
    """In a pipeline nobody reads the text."""
    found = run("fit", TITANIC, *FEW)
    assert re.search(
        r"^warning: log posterior: R-hat .*ESS \d+ \(at least 400\)$", found.stderr, re.M
    )


def test_every_declaration_reaches_the_table(tmp_path: Path) -> None:
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


def test_parquet_and_compressed_csv_give_the_same_model(tmp_path: Path) -> None:
    frame = pd.read_csv(TITANIC)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    trees = [
        json.loads(run("fit", path, *FEW, "--json").stdout)["tree"]
        for path in (TITANIC, tmp_path / "t.parquet", tmp_path / "t.csv.gz")
    ]
    assert trees[0] == trees[1] == trees[2]


def test_a_constant_column_is_noted(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("a,b\nx,1\nx,2\nx,2\n")
    found = run("fit", tmp_path / "c.csv", *FEW)
    assert found.exit_code == 0
    assert 'note: column "a" is constant ("x"): no split or rule can use it\n' in found.stderr
    assert "a: x (constant)" in found.stdout


def test_one_column_is_enough(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("a\nx\ny\nx\n")
    assert run("fit", tmp_path / "c.csv", *FEW).exit_code == 0


def test_options_are_the_estimators_parameters() -> None:
    """A parameter without an option, or a choice that only one side knows, would go unnoticed."""
    owned = {"leaf": LeafCascade, "branch": BranchCascade, "rules": DensityRuleList}
    parameters = {name: set(inspect.signature(cls).parameters) for name, cls in owned.items()}
    options = {param.name: param for param in fit.params}
    assert set.union(*parameters.values()) - {"progress"} <= set(options)
    for name in set.union(*parameters.values()):
        assert (name in fit_module.OF_MODELS) != all(name in has for has in parameters.values())
    assert isinstance(options["model"].type, click.Choice)
    assert tuple(options["model"].type.choices) == tuple(owned)
    for name, known in (
        ("search", search.SEARCHES),
        ("density", estimator.DENSITIES),
        ("predictive", estimator.PREDICTIVES),
        ("partitions", models.PARTITIONS),
        ("leaf", models.LEAVES),
        ("start", base.STARTS),
    ):
        choice = options[name].type
        assert isinstance(choice, click.Choice)
        assert tuple(choice.choices) == tuple(known)


def test_defaults_in_the_help_are_the_estimators() -> None:
    """Help that names another default misleads."""
    told = {param.name: getattr(param, "help", "") or "" for param in fit.params}
    leaf, branch = inspect.signature(LeafCascade), inspect.signature(BranchCascade)
    rules = inspect.signature(DensityRuleList).parameters
    assert f"({leaf.parameters['concentration'].default:g})" in told["concentration"]
    assert f"rule ({rules['concentration'].default:g})" in told["concentration"]
    for name in ("expected_rules", "expected_size", "max_size"):
        assert f"({rules[name].default:g})" in told[name]
    assert f"; {leaf.parameters['expected_leaves'].default:g})" in told["expected_leaves"]
    assert f"; {branch.parameters['expected_branches'].default:g})" in told["expected_branches"]
    assert f"leaf model {leaf.parameters['max_branches'].default}," in told["max_branches"]
    assert branch.parameters["max_branches"].default is None
    assert f"({leaf.parameters['n_chains'].default})" in told["n_chains"]
    assert told["memory_limit"].endswith(f"({leaf.parameters['memory_limit'].default:g}).")
    for name in ("partitions", "leaf", "leaf_concentration", "start"):
        assert told[name].endswith(f"(trees; {leaf.parameters[name].default}).".replace(".0", ""))
    assert leaf.parameters["max_leaves"].default is None
    assert rules["time_limit"].default is None


def test_a_checkpoint_is_resumed_to_the_same_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted and gone on with, a run must end where it would have ended."""
    whole, checkpoint = tmp_path / "whole.json", tmp_path / "run.checkpoint"
    common = ("fit", TITANIC, *SAMPLED, "--steps", 300_000, "--chains", 1, "--seed", 5)
    assert run(*common, "--out", whole).exit_code == 0

    first = tmp_path / "first.json"
    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "learn", interrupted)
        found = run(*common, "--checkpoint", checkpoint, "--out", first)
    assert found.exit_code == 130
    assert "interrupted: best found so far" in found.stdout
    assert found.stderr.endswith(
        "interrupted: the tree is the best found so far; --resume goes on from there\n"
    )
    assert bayescascade.load(first).summary_.interrupted
    unfinished = run(*common, "--checkpoint", checkpoint)
    assert_error(unfinished, "holds an unfinished run")
    again = tmp_path / "again.json"
    assert run(*common, "--checkpoint", checkpoint, "--resume", "--out", again).exit_code == 0
    assert again.read_bytes() == whole.read_bytes()
    other = run(
        "fit", TITANIC, *SAMPLED, "--steps", 300_000, "--chains", 1, "--seed", 5, "--drop", "age",
        "--checkpoint", checkpoint, "--resume",
    )  # fmt: skip
    assert_error(other, f"checkpoint {checkpoint}")
