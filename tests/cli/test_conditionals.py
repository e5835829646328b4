"""``predict`` and ``impute`` of a density: any column predicted, missing cells filled."""

import signal

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade.cli import rows
from tests.cli.conftest import assert_error, run

GAPS = """id,class,sex,age,note
007,1st,female,,"a,b"
008,,male,adult,NA
009,,,,0.10
010,crew,,child,
"""


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Return the folder of a table of all kinds of columns, with gaps, and of its model."""
    folder = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(0)
    size = rng.integers(1, 4, 90)
    frame = pd.DataFrame(
        {
            "size": pd.array(size, dtype="Int64"),
            "weight": size + rng.random(90).round(2),
            "kind": pd.Categorical(np.where(size > 1, "large", "small")),
            "sold": pd.Series(size > 2, dtype=object),
            "when": pd.date_range("2020-01-01", periods=90),
            "bed": pd.array([*[None] * 9, *range(81)], dtype="Int64"),
        }
    )
    for j in range(5):
        frame.iloc[j::7, j] = None
    frame.to_parquet(folder / "rows.parquet")
    frame.to_csv(folder / "rows.csv", index=False)
    found = run(
        "fit", folder / "rows.parquet", "--drop", "when,bed", "--continuous", "weight:0,2,3,9",
        "--seed", 0, "--steps", 300, "--search", "anneal", "--out", folder / "m.json", "--quiet",
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    return folder


@pytest.mark.slow
def test_numbers_bins_and_gaps_are_predicted(numbers):
    """Bins have their edges as headings, a level for missing cells is never what is predicted."""
    model, frame = (
        bayescascade.load(numbers / "m.json"),
        pd.read_parquet(numbers / "rows.parquet").drop(columns=["when", "bed"]),
    )
    for target in ("size", "weight", "kind", "sold"):
        out = numbers / f"{target}.parquet"
        arguments = (numbers / "m.json", numbers / "rows.csv", "--target", target)
        assert run("predict", *arguments, "--out", out).exit_code == 0
        written = pd.read_parquet(out)
        assert list(written)[-1] == "P(missing)"
        expected = model.predict(frame, target)
        if target == "sold":  # as classes are: text
            expected = expected.astype(str)
        np.testing.assert_array_equal(written["predicted"], expected)
    assert "P([3, 9])" in pd.read_parquet(numbers / "weight.parquet")
    found = run("predict", *arguments[:2], "--target", "weight", "--how", "mean")
    means = [float(line.split(",")[1]) for line in found.stdout.splitlines()[1:]]
    np.testing.assert_allclose(means, model.predict(frame, "weight", how="mean"))


@pytest.mark.slow
def test_only_what_is_missing_is_filled(fitted, tmp_path, monkeypatch):
    """A table is filled as the model does; ids keep their zeros, notes their commas."""
    data, out = tmp_path / "gaps.csv", tmp_path / "filled.csv"
    data.write_text(GAPS)
    before = pd.read_csv(data, dtype=str)
    expected = bayescascade.load(fitted.model).impute(before)
    assert not expected[["class", "sex", "age"]].isna().any(axis=None)
    for chunk_rows in (100, 1):
        monkeypatch.setattr(rows, "_CHUNK_ROWS", chunk_rows)
        found = run("impute", fitted.model, data, "--out", out)
        assert (found.exit_code, found.stdout, found.stderr) == (0, "", "")
        pd.testing.assert_frame_equal(pd.read_csv(out, dtype=str), expected)
        assert run("impute", fitted.model, data).stdout == out.read_text()
    assert out.read_text().splitlines()[1].endswith(',"a,b"')
    pd.testing.assert_frame_equal(expected[["id", "note"]], before[["id", "note"]])


@pytest.mark.slow
@pytest.mark.parametrize("source", ["rows.csv", "rows.parquet"])
def test_filled_columns_keep_their_types(source, numbers, monkeypatch):
    """Whole numbers stay whole and dates dates, also where a block of rows is full of gaps."""
    model, frame = bayescascade.load(numbers / "m.json"), pd.read_parquet(numbers / "rows.parquet")
    expected, out = model.impute(frame), numbers / "filled.parquet"
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 1)
    found = run("impute", numbers / "m.json", numbers / source, "--out", out)
    assert found.exit_code == 0, found.stderr
    written = pd.read_parquet(out)
    assert written["size"].dtype == np.int64
    assert written["weight"].dtype == np.float64
    for name in ("size", "kind"):
        assert written[name].tolist() == expected[name].tolist()
    # pandas before 3 parses the last bit of text in its own way
    np.testing.assert_allclose(written["weight"], expected["weight"], rtol=1e-15)
    if source == "rows.parquet":
        assert written["sold"].tolist() == expected["sold"].tolist()
        for name in ("when", "bed"):
            pd.testing.assert_series_equal(written[name], frame[name], check_dtype=False)


def test_unknown_numbers_stay_what_they_are(numbers):
    """Whole numbers of Parquet have no room for 2.5, which must not become 2."""
    data, out = numbers / "unknown.csv", numbers / "unknown_filled.csv"
    data.write_text("size,weight,kind,sold\n2.5,1,large,True\n")
    assert run("impute", numbers / "m.json", data, "--out", out).exit_code == 0
    assert out.read_text() == data.read_text()
    found = run("impute", numbers / "m.json", data, "--out", numbers / "unknown.parquet")
    assert_error(found, 'column "size" must have whole numbers')
    assert not (numbers / "unknown.parquet").exists()


def test_values_are_spelled_as_the_file_does(tmp_path):
    """Whoever wrote true and 007 must not find True and 7 beside them."""
    data, gaps, out = tmp_path / "rows.csv", tmp_path / "gaps.csv", tmp_path / "filled.csv"
    data.write_text("flag,id\n" + "true,007\nfalse,010\n" * 30)
    how = ("--model", "branch", "--search", "anneal", "--steps", 200, "--seed", 0)
    fit = run("fit", data, *how, "--out", tmp_path / "m.json")
    assert fit.exit_code == 0, fit.stderr
    gaps.write_text("id,flag,note\n007,,1\n,true,\n010,false,2\n,false,\n")
    assert run("impute", tmp_path / "m.json", gaps, "--out", out).exit_code == 0
    assert out.read_text() == "id,flag,note\n007,true,1\n007,true,\n010,false,2\n010,false,\n"


def test_draws_are_repeated_by_their_seed(fitted, tmp_path):
    data = tmp_path / "gaps.csv"
    data.write_text("class,sex,age\n" + ",,\n" * 60)
    first, again, other = (
        run("impute", fitted.model, data, "--how", "draw", "--seed", seed).stdout
        for seed in (1, 1, 2)
    )
    assert first == again != other
    drawn = bayescascade.load(fitted.model).impute(pd.read_csv(data, dtype=str), "draw", 1)
    assert first == drawn.to_csv(index=False, lineterminator="\n")


def test_ctrl_c_keeps_the_rows_that_are_filled(fitted, tmp_path, monkeypatch):
    """Whole blocks, in a whole file, and it is told that there were more."""
    data, out = tmp_path / "gaps.csv", tmp_path / "filled.csv"
    data.write_text("class,sex,age\n" + "1st,,adult\n" * 9)
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 2)
    impute = bayescascade.LeafCascade.impute

    def pressed(self, *arguments, **more):
        if more["first_row"] == 3:
            signal.raise_signal(signal.SIGINT)
        return impute(self, *arguments, **more)

    monkeypatch.setattr(bayescascade.LeafCascade, "impute", pressed)
    found = run("impute", fitted.model, data, "--out", out)
    assert (found.exit_code, found.stdout) == (130, "")
    assert found.stderr == f"interrupted: {out} has the first 4 rows\n"
    assert len(pd.read_csv(out)) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict"], "--target must name the column that a density is to predict, got none"),
        (
            ["predict", "--target", "sexx"],
            '--target names the unknown column "sexx" (did you mean "sex"?)',
        ),
        (["predict", "--target", "age", "--how", "mean"], '--how must be "mode" for column "age"'),
        (["predict", "--target", "age", "--explain"], "--explain needs a classifier, got"),
        (["predict", "--target", "sex"], 'the unknown level "4th" in row 5; known levels'),
        (["impute"], 'the unknown level "4th" in row 5; known levels: 1st'),
        (["impute", "--seed", "1"], "--seed needs --how draw, got mode"),
    ],
)
def test_wrong_options_and_rows(fitted, tmp_path, arguments, message, monkeypatch):
    """One line says what is wrong, a row by its number in the file, and no file is left."""
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 2)
    data, out = tmp_path / "gaps.csv", tmp_path / "filled.csv"
    data.write_text(GAPS + "011,4th,male,adult,z\n")
    command, *options = arguments
    found = run(command, fitted.model, data, *options, "--unknown", "error", "--out", out)
    assert_error(found, message)
    assert not out.exists()
