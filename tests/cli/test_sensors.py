"""``bayescascade sensors``: a curve of budgets, a saved model, and errors in one line."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import assert_error, run

SENSORS = "name,cost,group\nax,,wrist\nay,,wrist\nbx,,ankle\nby,,ankle\nankle,2,\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sensors")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(500, 4)).round(4), columns=["ax", "ay", "bx", "by"])
    frame["moves"] = np.where(np.where(frame["ax"] > 0, frame["ay"], frame["by"]) > 0, "yes", "no")
    frame.to_csv(folder / "rows.csv", index=False)
    (folder / "sensors.csv").write_text(SENSORS)
    return folder


@pytest.mark.slow
def test_a_curve_is_printed_and_a_single_budget_is_saved(files):
    asked = ("sensors", files / "rows.csv", "--target", "moves", "--sensors",
             files / "sensors.csv", "--seed", 0, "--steps", 60)  # fmt: skip
    found = run(*asked, "--budgets", "1,3")
    assert found.exit_code == 0, found.stderr
    assert "376 to learn from, 124 to test" in found.stdout
    assert "settings are chosen on a quarter of the training rows" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80
    record = json.loads(run(*asked, "--budgets", "1,3", "--json").stdout)
    assert [one["budget"] for one in record["points"]] == [1.0, 3.0]
    assert record["points"][1]["error"] < record["nothing"]["error"]
    saved = run(*asked, "--budgets", 2, "--out", files / "m.json")
    assert saved.exit_code == 0, saved.stderr
    assert "wrist" in run("show", files / "m.json").stdout
    lines = run("predict", files / "m.json", files / "rows.csv", "--explain").stdout
    assert "send" in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,cost,group\nax,1,\n", "there must be sensors in the column group, got none"),
        ("name,cost,group\nax,1,a\n", "costs must be of sensors, not of the column 'ax'"),
        ("name,cost,group\nax,,a\nax,,b\n", "got 'ax' in 'a' and 'b'"),
        ("name,cost,group\naz,,a\n", "'az'"),
    ],
)
def test_errors_are_one_line(files, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    asked = ("--target", "moves", "--budgets", 1, "--sensors", tmp_path / "bad.csv")
    assert_error(run("sensors", files / "rows.csv", *asked), message)
    below = (*asked[:3], "-1", "--sensors", files / "sensors.csv")
    assert_error(run("sensors", files / "rows.csv", *below), "--budgets")
