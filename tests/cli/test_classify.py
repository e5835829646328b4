"""``classify``: the estimator on a file, and nothing else; what it prints, writes and refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import bayescascade
from bayescascade import RuleListClassifier
from tests.cli.conftest import TIC_TAC_TOE, TITANIC, assert_error, run

FEW = ("--steps", 200, "--chains", 2, "--seed", 1, "--cv", 0)
TWICE = ("--cv", 2)  # fits twice more; the last of two wins


def people(n_rows: int = 120) -> pd.DataFrame:
    """Return rows with columns of every kind, missing cells, weights and labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "class, deck": rng.choice(["1st", "2nd", "crew"], n_rows),
            "age": rng.integers(1, 80, n_rows),
            "fare": rng.exponential(20.0, n_rows).round(2),
            "siblings": rng.integers(0, 3, n_rows),
            "alone": rng.random(n_rows) < 0.5,
            "cabin": rng.choice(["a", "b", ""], n_rows),
            "weight": rng.choice([0.0, 1.0, 2.5], n_rows),
        }
    )
    fate = np.where(frame["age"] < 30, "lived", rng.choice(["lived", "died", "unknown"], n_rows))
    frame.insert(3, "fate", fate)
    frame["cabin"] = frame["cabin"].replace("", np.nan)
    return frame


def without_source(path: Path) -> dict[str, object]:
    record: dict[str, dict[str, object]] = json.loads(path.read_text())
    del record["summary"]["source"]
    record["summary"].pop("held_out", None)  # the command alone measures it
    return dict(record)


@pytest.mark.parametrize(
    ("name", "cv"), [("t.csv", TWICE), pytest.param("t.parquet", (), marks=pytest.mark.slow)]
)
def test_the_same_model_as_in_python(tmp_path, name, cv):
    """What pandas reads and the estimator learns must be what the command learns."""
    frame = people()
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
        read = pd.read_parquet(tmp_path / name)
    else:
        frame.to_csv(tmp_path / name, index=False)
        read = pd.read_csv(tmp_path / name)
    found = run(
        "classify", tmp_path / name, "--target", "fate", "--weights", "weight", "--missing",
        "level", "--continuous", "fare:0,10,40", "--drop", "siblings", *FEW, *cv, "--out",
        tmp_path / "cli.json",
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    model = RuleListClassifier(
        missing="level", continuous={"fare": [0.0, 10.0, 40.0]}, n_steps=200, n_chains=2,
        random_state=1,
    )  # fmt: skip
    features = read.drop(columns=["fate", "weight", "siblings"])
    model.fit(features, read["fate"], sample_weight=read["weight"])
    model.save(tmp_path / "python.json")
    assert without_source(tmp_path / "cli.json") == without_source(tmp_path / "python.json")
    assert model.schema_.columns[1].kind == "continuous"  # whole numbers, cut at quantiles


def test_the_class_that_matters_is_shown_and_judged(tmp_path):
    """Whoever looks for fraud reads P(fraud), not P(ok): in print, report and scores."""
    frame = people(200).drop(columns="weight")
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.json"
    result = ("classify", tmp_path / "t.csv", "--target", "fate", *FEW, *TWICE)
    found = run(*result, "--positive", "died", "--details", "--out", out)
    assert found.exit_code == 0, found.stderr
    assert "P(died)   95 % interval" in found.stdout
    assert "P(lived)" not in found.stdout
    model = bayescascade.load(out)
    assert model.positive_ == "died"
    details = model.summary_.held_out.details
    assert details.of_what == "P(died)"
    assert details.confusion.sum() == pytest.approx(200)
    assert details.calibration.weights.sum() == pytest.approx(200)
    assert f"AUC {details.auc:.3f}" in found.stdout
    names = model.classes_.tolist()
    table = found.stdout[found.stdout.rindex("predicted\n") :].splitlines()
    assert [line.split()[0] for line in table[2:5]] == names
    read = frame.drop(columns="fate")
    shares = model.predict_proba(read)
    record = json.loads(run("score", out, tmp_path / "t.csv", "--json").stdout)
    expected = roc_auc_score(frame["fate"] == "died", shares[:, names.index("died")])
    assert record["auc"] == pytest.approx(expected)
    assert "P(died) = " in model.explain(read.iloc[0])
    for options, words in [
        (("--positive", "nobody"), "--positive must be lived or unknown or died, got nobody"),
        (("--details", "--cv", 0), "--details needs held-out rows: --cv must not be 0, got 0"),
    ]:
        assert_error(run(*result, *options), words)


@pytest.mark.parametrize("labels", [[0, 1], [True, False], ["x", "y"], [10, 2, 3]], ids=str)
def test_labels_keep_their_type(tmp_path, labels):
    frame = people(60).drop(columns=["cabin", "fate"])
    frame["y"] = [labels[i % len(labels)] for i in range(60)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.json"
    assert run("classify", tmp_path / "t.csv", "--target", "y", *FEW, "--out", out).exit_code == 0
    model = bayescascade.load(out)
    assert model.classes_.tolist() == np.unique(labels).tolist()
    assert type(model.classes_.tolist()[0]) is type(labels[0])


@pytest.mark.slow
def test_json_and_quiet(tmp_path):
    out = tmp_path / "m.json"
    found = run(
        "classify", TIC_TAC_TOE, "--target", "outcome", *FEW, *TWICE, "--quiet", "--json",
        "--out", out,
    )  # fmt: skip
    record, model = json.loads(found.stdout), bayescascade.load(out)
    rules = model.rules_.to_dict()
    assert {name: record[name] for name in rules} == rules
    assert record["model"] == "RuleListClassifier"
    assert record["log_posterior"] == model.log_posterior_
    shown = run("show", out, "--json")
    assert json.loads(shown.stdout) == record
    found = run("classify", TIC_TAC_TOE, "--target", "outcome", *FEW, "--quiet")
    assert found.stdout == ""
    assert "warning: log posterior: R-hat " in found.stderr


@pytest.mark.slow
def test_every_option_reaches_the_estimator(tmp_path):
    """An option that is parsed but not used would give another model silently."""
    people().to_csv(tmp_path / "t.csv", index=False)
    found = run(
        "classify", tmp_path / "t.csv", "--target", "fate", "--columns",
        '"class, deck",age,siblings,cabin,fate', "--drop", "age", "--nominal", "siblings:0,1,2,3",
        "--ordinal", "cabin:a,b", "--missing", "level", "--expected-rules", 2.5, "--expected-size",
        1.5, "--concentration", 0.5, "--max-size", 1, "--min-support", 0.1, "--bins", 3,
        "--unknown", "ignore", "--memory-limit", 1.5, "--predictive", "average", "--search",
        "tempering", *FEW, "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    record = json.loads(found.stdout)
    given = {
        "expected_rules": 2.5, "expected_size": 1.5, "concentration": 0.5, "max_size": 1,
        "min_support": 0.1, "n_bins": 3, "unknown": "ignore", "memory_limit": 1.5,
        "predictive": "average", "search": "tempering", "n_steps": 200, "n_chains": 2,
        "missing": "level", "nominal": {"siblings": [0, 1, 2, 3]}, "ordinal": {"cabin": ["a", "b"]},
    }  # fmt: skip
    assert given.items() <= record["parameters"].items()
    columns = {column["name"]: column for column in record["columns"]}
    assert list(columns) == ["class, deck", "siblings", "cabin"]
    assert columns["siblings"]["levels"] == [0, 1, 2, 3]
    assert columns["cabin"]["has_missing_level"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Missing option '--target' (see bayescascade classify --help)"),
        (["--target", "age", "--drop", "age"], "--drop must not name the column of the labels"),
        (["--target", "age", "--continuous", "age:2"], "--continuous must not name the column"),
        (["--target", "age", "--weights", "age"], "--weights must be another column than --target"),
        (["--target", "age", "--drop", "class,sex,survived"], "column must be used, got none"),
        (["--target", "age", "--columns", "age"], "one column besides age must be used, got none"),
        (["--target", "age", "--min-support", "0.9"], "--min-support must be at most 0.786, the"),
        (["--target", "age", "--cv", "1"], "--cv must be 0, or an integer >= 2, got 1"),
    ],
)  # fmt: skip
def test_wrong_options(options, message, monkeypatch):
    """An option is never ignored, and never only noticed when the search is over."""
    monkeypatch.setattr("samplers.chains.run_chains", None)
    assert_error(run("classify", TITANIC, *options), message)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\nx,1\ny,1\n", [], 'column "b" must have at least two classes, got one class, "1"'),
        ("a,b\nx,1\ny,\n", [], 'missing labels, got a missing cell (NaN) in row 2:'),
        ("a,b\nx,1.5\ny,2.5\n", [], 'column "b" must hold text, whole numbers or truth values'),
        (
            "a,b\n,1\ny,2\n",
            ["--missing", "error"],
            'column "a" has a missing cell (NaN) in row 1: fill it, drop',
        ),
        ("a,b,w\nx,1,0\ny,2,1\n", ["--weights", "w"], 'two classes, got one class, "2"'),
    ],
)  # fmt: skip
def test_data_that_cannot_be_used(tmp_path, content, options, message):
    path, out = tmp_path / "rows.csv", tmp_path / "m.json"
    path.write_text(content)
    assert_error(run("classify", path, "--target", "b", *options, "--out", out, *FEW), message)
    assert not out.exists()


def test_one_column_is_enough(tmp_path):
    """Of a rule's two conditions there is one, and nobody need say so."""
    (tmp_path / "one.csv").write_text("a,b\n" + "x,1\ny,2\n" * 9)
    path = tmp_path / "m.json"
    found = run("classify", tmp_path / "one.csv", "--target", "b", "--out", path, *FEW, *TWICE)
    assert found.exit_code == 0, found.stderr
    assert run("show", path).stdout == found.stdout
    assert run("predict", path, tmp_path / "one.csv").stdout.count("\n") == 19


@pytest.mark.slow
def test_many_columns_are_no_warning(tmp_path):
    """There is a warning of pandas for frames that got over a hundred columns one by one."""
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(120)]
    frame = pd.DataFrame(rng.normal(size=(40, 120)), columns=names).assign(label=["a", "b"] * 20)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    edges = [word for name in names for word in ("--continuous", f"{name}:-1,0,1")]
    found = run("classify", tmp_path / "wide.csv", "--target", "label", "--max-size", 1, *edges,
                *FEW)  # fmt: skip
    assert (found.exit_code, "fragmented" in found.stderr) == (0, False), found.stderr


@pytest.mark.slow
def test_the_page_begins_with_rows_held_out(tmp_path):
    """The figures are the seed's alone, are saved, and are left out only where a line says why."""
    path = tmp_path / "m.json"
    options = ("classify", TIC_TAC_TOE, "--target", "outcome", *FEW[:-2])
    found = run(*options, "--jobs", 1, "--out", path)
    head, table = found.stdout.split("\n\n")[:2]
    assert head.startswith("tic_tac_toe.csv")
    assert [line.split("  ")[0] for line in table.splitlines()[:5]] == [
        "958 held-out rows", "average over draws", "this list",
        "logistic regression", "most common class",
    ]  # fmt: skip
    assert "65.3 ± 2.4 %" in table  # of 958 boards x has won 626
    assert run("show", path).stdout == found.stdout
    bayescascade.load(path).report(tmp_path / "report.html")
    assert "logistic regression" in (tmp_path / "report.html").read_text()
    assert run(*options, "--jobs", 2).stdout == found.stdout
    assert "held out" not in run(*options, "--cv", 0).stdout
    assert "2 folds, each held out once" in run(*options, "--cv", 2).stdout
    assert (
        "not measured, because there is a --time-limit" in run(*options, "--time-limit", 60).stdout
    )


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("classify", FEW),
        ("boxes", ("--method", "fast", "--seed", 0)),
        ("budget", ("--budgets", 1, "--method", "forest", "--trees", 2, "--seed", 0)),
    ],
)
def test_a_leak_and_ties_are_told_in_every_print(command, options, tmp_path):
    """A column that has the answer makes a useless model that seems to be perfect."""
    rng, data, html = np.random.default_rng(0), tmp_path / "rows.csv", tmp_path / "m.html"
    frame = pd.DataFrame({"a": rng.integers(5, size=90), "y": rng.integers(2, size=90)})
    frame.assign(b=-frame["a"], k=frame["y"]).to_csv(data, index=False)
    out = () if command == "budget" else ("--out", tmp_path / "m.json")
    result = run(command, data, "--target", "y", *options, *out)
    notes = [
        f'column "k" alone determines the label in all {68 if command == "budget" else 90} rows',
        '"a" and "b" mirror each other: either could stand in a rule',
    ]
    read = " ".join(result.stdout.split())
    assert all(note in read for note in notes)
    found = json.loads(run(command, data, "--target", "y", *options, "--json").stdout)
    assert [text.partition(": leave")[0] for text in found["notes"]] == notes
    if out:
        assert run("show", out[1]).stdout == result.stdout
        run("show", out[1], "--html", html)
        assert "alone determines the label in all 90 rows" in html.read_text(encoding="utf-8")
