"""``score`` and ``sample``: densities of rows, the rarest of them and why, and rows drawn."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade.base.errors import UnknownLevelWarning
from bayescascade.cli import rows, saved
from tests.cli.conftest import TIC_TAC_TOE, TITANIC, assert_error, run
from tests.commands import read_written


def test_scores_are_the_models(density, tmp_path):
    out = tmp_path / "s.csv"
    found = run("score", density.model, TITANIC, "--out", out)
    scores = read_written(out)
    expected = bayescascade.load(density.model).score_samples(pd.read_csv(TITANIC))
    np.testing.assert_array_equal(scores["log_density"], expected)
    np.testing.assert_array_equal(scores["row"], np.arange(1, 2202))
    line = f"log density: mean {expected.mean():,.2f}, sum {expected.sum():,.2f} nats\n"
    assert found.stdout == f"titanic.csv   2,201 rows   {line}"


def test_groups_are_measured_apart(tmp_path, monkeypatch):
    """Is the model wrong for women, or for the old: the figures of each group, by pandas."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m", None], 300), "age": rng.integers(20, 80, 300)}
    )
    frame["paid"] = np.where(rng.random(300) < frame["age"] / 100, "yes", "no")
    data, model = tmp_path / "t.csv", tmp_path / "m.json"
    frame.to_csv(data, index=False)
    few = ("--steps", 200, "--chains", 2, "--seed", 1, "--cv", 0)
    learned = ("classify", data, "--target", "paid", "--drop", "sex", *few, "--out", model)
    assert run(*learned).exit_code == 0
    fitted = bayescascade.load(model)
    frame["P"] = fitted.predict_proba(frame)[:, 1]
    frame["is_yes"], frame["named"] = frame["paid"] == "yes", fitted.predict(frame) == "yes"
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 97)
    groups = json.loads(run("score", model, data, "--by", "sex", "--json").stdout)["groups"]
    for name, own in frame.groupby(frame["sex"].fillna("missing")):
        assert groups[name]["rows"] == len(own)
        assert groups[name]["accuracy"] == pytest.approx((own.is_yes == own.named).mean())
        wrong = own[~own.is_yes].named.mean(), 1 - own[own.is_yes].named.mean()
        assert groups[name]["false_positive_rate"] == pytest.approx(wrong[0])
        assert groups[name]["false_negative_rate"] == pytest.approx(wrong[1])
        assert groups[name]["predicted"] == pytest.approx(own.P.mean())
        assert groups[name]["observed"] == pytest.approx(own.is_yes.mean())
    sizes = [one["rows"] for one in groups.values()]
    assert sizes == sorted(sizes, reverse=True)
    bins = json.loads(run("score", model, data, "--by", "age", "--json").stdout)["groups"]
    column = fitted.schema_.columns[0]
    assert list(bins) == [column.describe_codes((b,), is_open=True) for b in range(column.n_levels)]
    printed = run("score", model, data, "--by", "age").stdout
    assert max(map(len, printed.splitlines())) <= 80
    assert "share of the other rows that are predicted to be yes" in printed
    frame.assign(id=range(300)).to_csv(data, index=False)
    assert_error(run("score", model, data, "--by", "id"), "at most 64 different values")


def test_the_rarest_rows_come_with_the_reason(density):
    found = run("score", density.model, TITANIC, "--top", 2)
    lines = found.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1] == ""
    assert lines[2].startswith("row ")
    assert lines[2].endswith(" x uniform")
    assert lines[3].startswith("  class: ")
    assert lines[4].startswith("  because ")
    record = json.loads(run("score", density.model, TITANIC, "--top", 2, "--json").stdout)
    model, frame = bayescascade.load(density.model), pd.read_csv(TITANIC)
    scores = model.score_samples(frame)
    assert record["log_density"]["sum"] == pytest.approx(scores.sum())
    assert record["rarest"][0]["log_density"] == scores.min()
    rarest = record["rarest"][0]
    assert rarest["row"] == 1 + int(np.argmin(scores))
    assert rarest["values"] == frame.drop(columns="survived").iloc[rarest["row"] - 1].to_dict()
    assert rarest["explanation"] == model.explain(rarest["values"]).splitlines()
    assert run("score", density.model, TITANIC, "--top", 0).stdout.count("\n") == 1


def test_missing_cells_and_other_orders(fitted, tmp_path):
    """Columns are matched by name; what is missing is integrated out."""
    (tmp_path / "n.csv").write_text("age,z,sex,class\nadult,9,male,1st\n,,,crew\n,,,\n")
    out = tmp_path / "s.csv"
    assert run("score", fitted.model, tmp_path / "n.csv", "--out", out).exit_code == 0
    frame = pd.DataFrame(
        {"class": ["1st", "crew", None], "sex": ["male", None, None], "age": ["adult", None, None]}
    )
    expected = bayescascade.load(fitted.model).score_samples(frame)
    np.testing.assert_array_equal(read_written(out)["log_density"], expected)
    assert expected[2] == pytest.approx(0.0)
    text = run("score", fitted.model, tmp_path / "n.csv").stdout
    assert "sex: missing" in text


def test_missing_cells_are_in_several_parts(listed, tmp_path):
    (tmp_path / "n.csv").write_text("class,sex,age\ncrew,,adult\n,,\n")
    lines = run("score", listed.model, tmp_path / "n.csv").stdout.splitlines()
    model = bayescascade.load(listed.model)
    unknown = model.explain({"class": None, "sex": None, "age": None}).splitlines()
    assert len(unknown) == model.rules_.n_rules + 1
    assert sum(line.startswith("  because ") for line in lines) >= len(unknown)
    assert "  class: missing   sex: missing   age: missing" in lines


def test_weights(fitted, tmp_path):
    counts = pd.read_csv(TITANIC).value_counts(["class", "sex", "age"]).reset_index(name="n")
    counts.loc[len(counts)] = ["crew", "female", "child", 0]
    counts.to_csv(tmp_path / "counts.csv", index=False)
    plain = json.loads(run("score", fitted.model, TITANIC, "--json").stdout)
    weighted = json.loads(
        run("score", fitted.model, tmp_path / "counts.csv", "--weights", "n", "--json").stdout
    )
    assert weighted["weight"] == plain["weight"] == 2201
    assert weighted["log_density"]["sum"] == pytest.approx(plain["log_density"]["sum"])
    assert {"class": "crew", "sex": "female", "age": "child"} not in [
        rare["values"] for rare in weighted["rarest"]
    ]


def test_parquet_numbers_stay_numbers(tmp_path):
    """A row's cells are printed as they are in the file, 3 and not 3.0."""
    frame = pd.DataFrame({"a": [1, 2, 3, 1] * 5, "x": [0.5, 1.5, 2.5, 0.5] * 5})
    frame.to_parquet(tmp_path / "t.parquet")
    model = tmp_path / "m.json"
    options = ("--continuous", "x:0,1,3", "--steps", 200, "--seed", 0, "--out", model)
    assert run("fit", tmp_path / "t.parquet", *options).exit_code == 0
    record = json.loads(run("score", model, tmp_path / "t.parquet", "--json").stdout)
    assert {type(rare["values"]["a"]) for rare in record["rarest"]} == {int}


def test_zero_density_is_minus_infinity(tmp_path):
    """The empirical density of an empty leaf is 0, whose logarithm JSON cannot say."""
    (tmp_path / "t.csv").write_text("a,b\n" + "x,1\n" * 50 + "y,2\n" * 50)
    model, out = tmp_path / "m.json", tmp_path / "s.csv"
    options = ("--density", "empirical", "--steps", 2000, "--seed", 0, "--out", model)
    assert run("fit", tmp_path / "t.csv", *options).exit_code == 0
    (tmp_path / "new.csv").write_text("a,b\nx,2\nx,1\n")
    assert run("score", model, tmp_path / "new.csv", "--out", out).exit_code == 0
    assert out.read_text().splitlines()[1] == "1,-inf"
    assert pd.read_csv(out)["log_density"][0] == -math.inf
    record = json.loads(run("score", model, tmp_path / "new.csv", "--json").stdout)
    assert record["log_density"]["sum"] is None
    assert "log density -inf   0 x uniform" in run("score", model, tmp_path / "new.csv").stdout


def test_rows_of_unknown_levels_are_rare_and_told_of(density, tmp_path, monkeypatch):
    """One line for all blocks; the summary counts them, and the explanation names the level."""
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 2)
    data = tmp_path / "new.csv"
    known = "1st,male,adult\n2nd,female,child\n3rd,male,adult\n"
    data.write_text("class,sex,age\n" + known + "1st,alien,adult\n" + known + "6th,alien,old\n")
    found = run("score", density.model, data, "--top", 2)
    assert found.exit_code == 0
    assert found.stderr.count("\n") == 1
    text = '(such as class "6th", sex "alien", age "old")'
    assert f"warning: 2 rows have values that fit did not see {text}" in found.stderr
    assert "8 rows   2 rows with unknown levels" in found.stdout
    assert found.stdout.index("row 8") < found.stdout.index("row 4")
    assert "because sex is alien, which no training row has" in found.stdout
    record = json.loads(run("score", density.model, data, "--json").stdout)
    assert record["rows_with_unknown_levels"] == 2
    assert record["rarest"][1]["log_density"] < -math.log(3 * 2202)


def test_unknown_levels_are_what_the_command_says(fitted, classified, forest, tmp_path):
    """Whoever scores need not fit again, or edit a model, to refuse what was never seen."""
    data = tmp_path / "new.csv"
    data.write_text("class,sex,age\n1st,alien,adult\n")
    model = bayescascade.load(fitted.model)
    for how in ("rare", "ignore"):
        out = tmp_path / f"{how}.csv"
        found = run("score", fitted.model, data, "--unknown", how, "--out", out)
        assert found.stderr.startswith('warning: 1 row has values that fit did not see (sex "alien')
        with pytest.warns(UnknownLevelWarning):
            expected = model.set_params(unknown=how).score_samples(pd.read_csv(data))
        assert read_written(out)["log_density"].tolist() == expected.tolist()
    found = run("score", fitted.model, data, "--unknown", "error")
    assert_error(found, 'column "sex" has the unknown level "alien" in row 1')
    for path, choices in (
        (classified.model, "ignore, error for a rule list classifier"),
        (forest, "ignore, error for a budgeted forest"),
    ):
        found = run("predict", path, data, "--unknown", "rare")
        assert_error(found, f"--unknown must be one of {choices}, got rare")
    board = pd.read_csv(TIC_TAC_TOE).head(1).assign(top_left="z")
    board.to_csv(tmp_path / "board.csv", index=False)
    found = run("predict", classified.model, tmp_path / "board.csv", "--unknown", "error")
    assert_error(found, 'column "top_left" has the unknown level "z" in row 1')


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("class,sex\n1st,male\n", [], 'column "age" is missing; columns: class, sex'),
        (
            "class,sex,age\n1st,male,adult\n",
            ["--top", "-1"],
            "--top must be an integer >= 0, got -1",
        ),
        ("class,sex,age\n1st,male,adult\n", ["--weights", "w"], 'column "w" is missing'),
        ("class,sex,age,w\n1st,male,adult,-1\n", ["--weights", "w"], "must be finite and >= 0"),
    ],
)
def test_rows_that_cannot_be_scored(fitted, tmp_path, content, options, message):
    (tmp_path / "new.csv").write_text(content)
    out = tmp_path / "s.csv"
    out.write_text("old")
    assert_error(run("score", fitted.model, tmp_path / "new.csv", *options, "--out", out), message)
    assert out.read_text() == "old"


def test_the_first_drawn_rows_come_at_once(fitted):
    """A reader of a few rows, such as `head`, does not wait for a billion."""
    first = next(saved._drawn_rows(str(fitted.model), 10**9, 0))
    assert 2 <= first.count("\n") <= 1001


def test_sample(fitted, tmp_path):
    found = run("sample", fitted.model, "-n", 500, "--seed", 1)
    assert found.stdout.startswith("class,sex,age\n")
    assert found.stdout.count("\n") == 501
    assert run("sample", fitted.model, "-n", 500, "--seed", 1).stdout == found.stdout
    assert run("sample", fitted.model, "-n", 500, "--seed", 2).stdout != found.stdout
    out = tmp_path / "rows.csv"
    assert run("sample", fitted.model, "-n", 500, "--seed", 1, "--out", out).stdout == ""
    assert out.read_text() == found.stdout
    assert run("score", fitted.model, out).exit_code == 0
    assert_error(run("sample", fitted.model, "-n", 0), "-n must be an integer >= 1, got 0")
    assert_error(run("sample", fitted.model), "Missing option '-n'")
