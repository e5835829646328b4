"""``score`` and ``predict --explain`` of a budgeted forest: how well, and at what cost."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

import bayescascade
from tests.cli.conftest import CLINIC, assert_error, run


def test_scores_are_the_forests_and_printed(forest, tmp_path):
    out = tmp_path / "rows.csv"
    options = ("score", forest, CLINIC, "--target", "outcome")
    record = json.loads(run(*options, "--out", out, "--json").stdout)
    model, frame = bayescascade.load(forest), pd.read_csv(CLINIC)
    labels, predicted, costs = frame["outcome"], model.predict(frame), model.acquisition_cost(frame)
    right = (labels == predicted).to_numpy(float)
    for name, values in (("accuracy", right), ("cost", costs)):
        assert record[name] == pytest.approx(values.mean())
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert record[f"{name}_error"] == pytest.approx(error, rel=0.1)
    is_second, chances = labels == model.classes_[1], model.predict_proba(frame)[:, 1]
    assert record["auc"] == pytest.approx(roc_auc_score(is_second, chances))
    assert record["confusion"] == confusion_matrix(labels, predicted).tolist()
    rows = pd.read_csv(out)
    assert rows["label"].tolist() == labels.tolist()
    assert rows["predicted"].tolist() == predicted.tolist()
    np.testing.assert_allclose(rows["cost"], costs, rtol=1e-11)
    found = run(*options)
    assert (found.exit_code, found.stderr) == (0, "")
    assert f"cost {record['cost']:.2f} ± {record['cost_error']:.2f} a row" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80


def test_numbers_are_labels_too_and_may_be_surprising(tmp_path):
    """A leaf without examples of a class makes the loss of such a row infinite, not a warning."""
    rows = "".join(f"{i % 2},{i % 2}\n" for i in range(400))
    data, other, model = (tmp_path / name for name in ("rows.csv", "other.csv", "model.json"))
    data.write_text("a,b\n" + rows)
    other.write_text("a,b\n0,1\n1,1\n0,0\n")
    options = ("--target", "b", "--budgets", 1, "--trees", 1, "--seed", 0, "--out", model)
    assert run("budget", data, *options, "--method", "prune").exit_code == 0
    found = run("score", model, other, "--target", "b")
    assert (found.exit_code, found.stderr) == (0, "")
    heading = " ".join(found.stdout.split("predicted")[0].split())
    assert heading == (
        "other.csv 3 rows accuracy 0.667 ± 0.515 "
        "log loss infinite: a label had probability 0 AUC 0.750 cost 1 a row"
    )
    perfect = run("score", model, data, "--target", "b").stdout
    assert "accuracy 1.000 ± 0.006   log loss 0.0000" in perfect, "another row may be wrong"


def test_rows_that_a_forest_cannot_be_tested_on(forest, tmp_path):
    frame, data, out = pd.read_csv(CLINIC).head(3), tmp_path / "rows.csv", tmp_path / "out.csv"
    strange = frame.assign(outcome=["die", "recover", "die"])
    for rows, options, message in (
        (frame, (), "--target must name the column of the labels, got none"),
        (frame, ("--target", "x"), 'column "x" is missing'),
        (frame[["outcome"]], ("--target", "outcome"), 'column "age" is missing'),
        (strange, ("--target", "outcome"), '"recover" in row 2'),
    ):
        rows.to_csv(data, index=False)
        assert_error(run("score", forest, data, *options, "--out", out), message)
        assert not out.exists()


def test_predictions_costs_and_features_are_the_forests(forest):
    found = run("predict", forest, CLINIC, "--explain")
    rows = list(csv.DictReader(io.StringIO(found.stdout)))
    model, frame = bayescascade.load(forest), pd.read_csv(CLINIC)
    assert [row["predicted"] for row in rows] == model.predict(frame).tolist()
    costs = [float(row["cost"]) for row in rows]
    np.testing.assert_allclose(costs, model.acquisition_cost(frame), rtol=1e-11)
    assert max(len(row["cost"]) for row in rows) <= len("12.34"), "sums without their rounding"
    chances = [float(row["P(die)"]) for row in rows]
    np.testing.assert_array_equal(chances, model.predict_proba(frame)[:, 0])
    used = model.features_used(frame)
    expected = [", ".join(used.columns[row]) for row in used.to_numpy()]
    assert [row["acquired"] for row in rows] == expected
    assert len(set(expected)) > 1
