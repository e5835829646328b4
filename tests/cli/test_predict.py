"""``predict`` and ``score`` of a classifier: its predictions, and how good they are."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import bayescascade
from bayescascade.cli import rows
from tests.cli.conftest import CLINIC, TIC_TAC_TOE, TITANIC, assert_error, run
from tests.commands import read_written

PROBABILITIES = ["P(negative)", "P(positive)"]


def test_predictions_are_the_models(classified, tmp_path):
    """What is written for each row must be what the model says, to the last digit."""
    model, frame = bayescascade.load(classified.model), pd.read_csv(TIC_TAC_TOE)
    out = tmp_path / "p.csv"
    options = ("predict", classified.model, TIC_TAC_TOE)
    assert run(*options, "--explain", "--out", out).stdout == ""
    written = read_written(out)
    assert list(written) == ["row", "predicted", *PROBABILITIES, "low_95", "high_95", "rule"]
    predicted = model.predict(frame)
    np.testing.assert_array_equal(written["row"], np.arange(1, 959))
    np.testing.assert_array_equal(written["predicted"], predicted)
    np.testing.assert_array_equal(written[PROBABILITIES], model.predict_proba(frame))
    best = np.searchsorted(model.classes_, predicted)
    expected = model.credible_interval(frame)[np.arange(958), best]
    np.testing.assert_array_equal(written[["low_95", "high_95"]], expected)
    for row in (0, 400, 957):
        assert model.explain(frame.iloc[row]).startswith(f"{written['rule'][row]}: P(positive)")
    assert "no rule applies" in set(written["rule"])
    assert run(*options, "--explain").stdout == out.read_text()
    assert run(*options).stdout.splitlines()[0] == ",".join(list(written)[:-1])


def test_predictions_need_no_labels(classified, tmp_path):
    """Columns are matched by name, in any order; there may be more, and none of labels."""
    frame = pd.read_csv(TIC_TAC_TOE)
    whole = run("predict", classified.model, TIC_TAC_TOE).stdout
    other = frame.drop(columns="outcome").iloc[:, ::-1].assign(z=1)
    other.to_parquet(tmp_path / "t.parquet")
    assert run("predict", classified.model, tmp_path / "t.parquet").stdout == whole
    found = run("score", classified.model, tmp_path / "t.parquet")
    assert_error(found, 'column "outcome" is missing; columns: bottom_right, ')


@pytest.mark.slow
def test_averages_and_numbers(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.random(90).round(3), "a": rng.choice(["p", "q"], 90)})
    frame["y"] = np.where(frame["x"] > 0.5, 10, rng.choice([2, 3], 90))
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, out = tmp_path / "m.json", tmp_path / "s.csv"
    options = ("--predictive", "average", "--steps", 300, "--chains", 2, "--seed", 1, "--cv", 0)
    learned = run("classify", tmp_path / "t.csv", "--target", "y", *options, "--out", model)
    assert learned.exit_code == 0
    frame.astype({"y": float}).to_csv(tmp_path / "new.csv", index=False)  # 10.0 is 10
    record = json.loads(run("score", model, tmp_path / "new.csv", "--json", "--out", out).stdout)
    fitted = bayescascade.load(model)
    probabilities = fitted.predict_proba(frame)
    written = read_written(out)
    np.testing.assert_array_equal(written[["P(2)", "P(3)", "P(10)"]], probabilities)
    np.testing.assert_array_equal(written["label"], frame["y"])
    np.testing.assert_array_equal(written["predicted"], fitted.predict(frame))
    assert record["classes"] == [2, 3, 10]
    assert record["accuracy"] == pytest.approx(fitted.score(frame, frame["y"]))
    assert record["log_loss"] == pytest.approx(log_loss(frame["y"], probabilities))
    area = roc_auc_score(frame["y"], probabilities, multi_class="ovr")
    assert record["auc"] == pytest.approx(area)
    (tmp_path / "two.csv").write_text("x,a,y\n0.1,p,2\n0.9,q,10\n")
    assert json.loads(run("score", model, tmp_path / "two.csv", "--json").stdout)["auc"] is None
    assert "AUC unknown" in run("score", model, tmp_path / "two.csv").stdout
    explained = run("predict", model, tmp_path / "two.csv", "--explain").stdout
    assert explained.startswith("row,predicted,P(2),P(3),P(10),low_95,high_95,rule\n1,")


def test_scores_are_printed(classified):
    model, frame = bayescascade.load(classified.model), pd.read_csv(TIC_TAC_TOE)
    lines = run("score", classified.model, TIC_TAC_TOE).stdout.splitlines()
    accuracy = model.score(frame, frame["outcome"])
    error = np.sqrt(accuracy * (1 - accuracy) / 957)
    assert lines[0].startswith(
        f"tic_tac_toe.csv   958 rows   accuracy {accuracy:.3f} ± {error:.3f}   log loss "
    )
    assert lines[-5:-2] == ["", "           predicted", "outcome    negative   positive"]
    assert [line.split()[0] for line in lines[-2:]] == ["negative", "positive"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", ["classified", "forest"])
def test_weights_are_repeated_rows(name, tmp_path, request):
    found = request.getfixturevalue(name)
    model, path = (found, CLINIC) if name == "forest" else (found.model, TIC_TAC_TOE)
    frame = pd.read_csv(path).iloc[::9]
    weights = np.arange(len(frame)) % 3
    frame.assign(n=weights).to_csv(tmp_path / "w.csv", index=False)
    frame.loc[frame.index.repeat(weights)].to_csv(tmp_path / "r.csv", index=False)
    options = ("--target", "outcome", "--json")
    weighted = run("score", model, tmp_path / "w.csv", "--weights", "n", *options).stdout
    repeated = json.loads(run("score", model, tmp_path / "r.csv", *options).stdout)
    record = json.loads(weighted)
    for number in {"weight", "accuracy", "accuracy_error", "log_loss", "auc", "cost"} & {*record}:
        assert record[number] == pytest.approx(repeated[number]), number
    assert record["confusion"] == repeated["confusion"]
    text = run("score", model, tmp_path / "w.csv", "--weights", "n", *options[:2]).stdout
    assert f"weight {weights.sum()}" in text


def test_the_target_may_have_another_name(classified, tmp_path):
    """A model that was learned from an array has no name for its labels."""
    frame = pd.read_csv(TIC_TAC_TOE).rename(columns={"outcome": "result"})
    data = tmp_path / Path(TIC_TAC_TOE).name
    frame.to_csv(data, index=False)
    assert_error(run("score", classified.model, data), 'column "outcome" is missing')
    found = run("score", classified.model, data, "--target", "result")
    plain = run("score", classified.model, TIC_TAC_TOE).stdout
    assert (
        found.stdout.split("accuracy")[1].replace("result ", "outcome")
        == plain.split("accuracy")[1]
    )


def test_costs_of_errors_are_read_from_files(classified, tmp_path):
    """Costs of pairs of classes are a table; an interval is that of the class that is named."""
    model, frame = bayescascade.load(classified.model), pd.read_csv(TIC_TAC_TOE)
    table, out = tmp_path / "costs.csv", tmp_path / "p.csv"
    table.write_text("outcome, negative, positive\npositive,1,0\nnegative,0,9\n")
    options = ("predict", classified.model, TIC_TAC_TOE)
    assert run(*options, "--class-costs", table, "--out", out).exit_code == 0
    written = read_written(out)
    named = model.predict(frame, threshold=0.9)
    np.testing.assert_array_equal(written["predicted"], named)
    at = np.searchsorted(model.classes_, named)
    ends = model.credible_interval(frame)[np.arange(958), at]
    np.testing.assert_array_equal(written[["low_95", "high_95"]], ends)
    by_threshold = run(*options, "--threshold", "0.9").stdout
    assert by_threshold == out.read_text()
    for option, value, message in [
        ("--threshold", "3", "--threshold must be a finite number >= 0 and <= 1, got 3"),
        ("--class-costs", "positive", "or a file, cannot read positive"),
        ("--class-costs", "positive=x", "as in no=1,yes=5, or a file, got 'positive=x'"),
        ("--class-costs", "draw=2", "--class-costs must name classes, 'negative', 'positive', got"),
    ]:
        assert_error(run(*options, option, value), message)
    table.write_text("outcome,negative,positive\npositive,1\n")
    assert_error(run(*options, "--class-costs", table), "must have 3 cells in each line")
    assert (
        "mean cost of errors 0." in run("score", *options[1:], "--class-costs", "positive=3").stdout
    )


@pytest.mark.slow
def test_rows_are_explained_as_they_are_named(classified, tmp_path):
    """Who decides by costs reads reasons for that decision; rows may be anywhere in a file."""
    options = ("explain", classified.model, TIC_TAC_TOE)
    text = run(*options, "--rows", "957-", "--threshold", "0.0001").stdout
    assert [line.split()[:2] for line in text.splitlines()[1:] if line[0] != " "] == [
        ["957", "positive"], ["958", "positive"],
    ]  # fmt: skip
    surely = ("--threshold", "0.99999")
    assert "957  negative" in run(*options, "--rows", "957", *surely).stdout
    for rows_asked, message in [
        ("959-970", "--rows must begin with a row of tic_tac_toe.csv, 1 to 958, got 959"),
        ("5-3", "--rows must be FIRST-LAST, numbers from 1 as in 1-10, 7 or 7-, got '5-3'"),
        ("0-3", "--rows must be FIRST-LAST"),
    ]:
        assert_error(run(*options, "--rows", rows_asked), message)
    data, model = tmp_path / "t.csv", tmp_path / "m.json"
    names = "a class of which there is much to say"
    data.write_text("x,y\n" + f"p,{names}\nq,other\n" * 30)
    command = ("classify", data, "--target", "y", "--steps", 200, "--seed", 0, "--out", model)
    assert run(*command).exit_code == 0
    first = run("explain", model, data).stdout.splitlines()[0]
    assert first.startswith(f"  1  {names}   P 0.97   because x is")


BOARD = "b,b,b,b,o,o,x,x,x"
HEADER = (
    "top_left,top_center,top_right,middle_left,middle_center,middle_right,bottom_left,"
    "bottom_center,bottom_right,outcome\n"
)


@pytest.mark.parametrize(
    ("command", "content", "message"),
    [
        ("score", f"{HEADER}{BOARD},positive\n{BOARD},draw\n", 'unknown level "draw" in row 2'),
        ("score", f"{HEADER}{BOARD},\n", 'column "outcome" must not have missing labels, got none'),
        ("score", HEADER, "must have at least one row, got none"),
        ("predict", "top_left\nx\n", 'column "top_center" is missing; columns: top_left'),
    ],
)
def test_rows_that_cannot_be_used(classified, tmp_path, command, content, message):
    (tmp_path / "t.csv").write_text(content)
    out = tmp_path / "s.csv"
    out.write_text("old")
    assert_error(run(command, classified.model, tmp_path / "t.csv", "--out", out), message)
    assert out.read_text() == "old"
    assert_error(run(command, classified.model, tmp_path / "t.csv"), message)


def test_an_unknown_level_is_found_in_any_chunk(classified, tmp_path, monkeypatch):
    """A level of a feature is told of once for all chunks; a label's row is that of the file."""
    (tmp_path / "t.csv").write_text(
        HEADER + f"{BOARD},positive\n" * 40 + "z,b,b,b,o,o,x,x,x,draw\n"
    )
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 7)
    found = run("predict", classified.model, tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert found.exit_code == 0
    assert found.stderr.startswith('warning: 1 row has values that fit did not see (top_left "z")')
    assert found.stderr.count("\n") == 1
    assert len(pd.read_csv(tmp_path / "p.csv")) == 41
    assert_error(run("score", classified.model, tmp_path / "t.csv"), '"draw" in row 41')


def test_each_command_says_which_models_it_takes(classified, fitted, listed, forest):
    labels = ("--target", "outcome")
    for model, data, words in (
        (classified.model, TIC_TAC_TOE, "a rule list classifier"),
        (forest, CLINIC, "a budgeted forest"),
    ):
        for arguments, needed in (
            (["sample", model, "-n", "3"], "sample needs a density, "),
            (["show", model, "--given", "top_left=x"], "--given needs a density, "),
            (["score", model, data, *labels, "--top", "2"], "--top needs a density, "),
            (["predict", model, data, *labels], "--target needs a density, "),
            (["predict", model, data, "--how", "mean"], "--how needs a density, "),
            (["impute", model, data], "impute needs a density, "),
        ):
            assert_error(run(*arguments), f"{needed}got {model}, {words}")
    for model, words in ((fitted, "a leaf cascade"), (listed, "a density rule list")):
        found = run("score", model.model, TITANIC, "--target", "survived")
        assert_error(found, f"--target needs a classifier, got {model.model}, {words}")
        found = run("predict", model.model, TITANIC, "--target", "class", "--threshold", "0.3")
        assert_error(found, "--threshold needs a classifier, got")
