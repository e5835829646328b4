"""``compress`` writes prototypes, and tells on held-out rows what they are worth."""

import json

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade.cli import compress
from tests.cli.conftest import assert_error, run
from tests.methods.compress.problems import blobs


@pytest.fixture
def data(tmp_path):
    X, y = blobs(240)
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(kind=np.where(X[:, 0] > 0, "x", "y"))
    frame.assign(label=y).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


QUICK = ("--target", "label", "--seed", 0, "--prototypes", 9)


def test_prototypes_are_written_and_measured(data, tmp_path):
    out, save = tmp_path / "p.csv", tmp_path / "m.json"
    found = run("compress", data, *QUICK, "--out", out, "--save", save)
    assert (found.exit_code, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0] == "neighbor compression   180 rows   4 columns   3 classes"
    assert "rows split by seed 0: 180 to learn from, 60 to test" in lines
    assert max(map(len, lines)) <= 80
    prototypes = pd.read_csv(out)
    assert list(prototypes) == ["u", "v", "w", "kind=y", "label"]
    assert sorted(prototypes["label"].unique()) == ["a", "b", "c"]
    model = bayescascade.load(save)
    np.testing.assert_allclose(prototypes.iloc[:, :-1], model.prototypes_)
    record = json.loads(run("compress", data, *QUICK, "--json").stdout)
    rows = pd.read_csv(data)
    predicted = run("predict", save, data, "--explain").stdout.splitlines()
    assert predicted[0].endswith("nearest_prototype")
    assert len(predicted) == 241
    assert record["n_prototypes"] == record["after"]["kept"] == 9
    assert record["before"]["kept"] == 180
    # a quarter of the rows is what it errs on, of which it has seen none
    wrong = np.mean(model.predict(rows.drop(columns="label")) != rows["label"])
    assert abs(record["after"]["error"] - wrong) < 0.15
    assert record["after"]["error"] < 0.5


def test_a_time_limit_leaves_out_the_work_of_all_pairs_of_rows(data, monkeypatch):
    """It took longer than the limit itself at 60,000 rows."""
    monkeypatch.setattr(compress, "_MANY_PAIRS", 100)
    found = run("compress", data, *QUICK, "--time-limit", 60).stdout
    assert "nearest row: not measured, because there is a --time-limit" in found


def test_equal_rows_are_no_crash(tmp_path):
    """All prototypes are alike, so no step goes up."""
    frame = pd.DataFrame({"a": [1.5] * 60, "b": [None] * 60, "label": ["x", "y"] * 30})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = run("compress", tmp_path / "rows.csv", "--target", "label", "--seed", 0)
    assert found.exit_code == 0, found.stderr
    assert "prototypes" in found.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--compression", 0), "--compression"),
        (("--compression", 1.5), "--compression"),
        (("--prototypes", 500), "--prototypes must be an integer from 3 to 180, got 500"),
        (("--drop", "none"), "none"),
        (("--target", "sex"), 'unknown column "sex"'),
        (("--metric", "cosine"), "--metric"),
        (("--prior-scale", 0), "--prior-scale must be a finite number > 0, got 0"),
    ],
)
def test_errors_are_one_line(data, options, words):
    assert_error(run("compress", data, *QUICK, *options), words)


def test_the_prior_is_chosen_or_given(data, tmp_path):
    """Whoever finds many prototypes too near each other can say how far apart they may be."""
    chosen = run("compress", data, *QUICK)
    assert "held-out rows" in chosen.stdout
    save = tmp_path / "m.json"
    given = run("compress", data, *QUICK, "--prior-scale", 5, "--save", save)
    assert "held-out rows" not in given.stdout
    assert bayescascade.load(save).prior_scale_ == 5.0


def test_cells_may_be_missing(data):
    rows = pd.read_csv(data)
    rows.loc[7, "v"] = np.nan
    rows.to_csv(data, index=False)
    found = run("compress", data, *QUICK)
    assert found.exit_code == 0
    assert "missing v: imputed by the median, plus an indicator column" in found.stdout
    assert_error(run("compress", data, *QUICK, "--missing", "error"), 'column "v"')
