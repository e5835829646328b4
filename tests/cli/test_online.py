"""``bayescascade online``: what it asks for, what it loses, and errors in one line."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import assert_error, run


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"dose": rng.normal(size=900).round(3), "ward": rng.choice(["A", "B"], 900)}
    )
    rows["ill"] = np.where((rows["dose"] > 0) == (rows["ward"] == "A"), "yes", "no")
    path = tmp_path_factory.mktemp("stream") / "stream.csv"
    rows.to_csv(path, index=False)
    return path


def test_it_asks_little_and_says_what_it_lost(stream):
    found = run("online", stream, "--target", "ill", "--cost", 0.3, "--first", 200)
    assert found.exit_code == 0, found.stderr
    assert "700 rounds" in found.stdout
    assert "asks always" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80
    again = run("online", stream, "--target", "ill", "--cost", 0.3, "--first", 200, "--json")
    losses = json.loads(again.stdout)["losses"]
    assert losses["this gate"] < losses["asks always"] == 0.3
    assert losses["this gate"] < losses["most common class"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--first", 900), "--first must be less than the 900 rows, got 900"),
        (("--cost", 0), "cost"),
        (("--target", "sick"), "sick"),
    ],
)
def test_errors_are_one_line(stream, options, message):
    assert_error(run("online", stream, "--target", "ill", *options), message)


def test_a_file_sorted_by_class_is_to_be_shuffled(tmp_path):
    rows = pd.DataFrame({"dose": range(60), "ill": ["no"] * 40 + ["yes"] * 20})
    rows.to_csv(tmp_path / "sorted.csv", index=False)
    run_online = run("online", tmp_path / "sorted.csv", "--target", "ill", "--first", 30)
    assert_error(run_online, "shuffle the rows, or increase --first")
