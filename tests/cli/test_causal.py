"""``bayescascade causal``: directions printed, published once, saved and shown."""

import json

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

from bayescascade import load
from tests.cli.conftest import assert_error
from tests.commands import invoke

PRIVATE = ["--protect", "test", "--epsilon", "4", "--x-bounds", "-1,1", "--y-bounds", "-2,2"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a file of a dose and its response."""
    rng = np.random.default_rng(0)
    dose = rng.uniform(-1, 1, 200)
    frame = pd.DataFrame(
        {"dose": dose, "response": np.tanh(3 * dose) + rng.uniform(-0.3, 0.3, 200)}
    )
    path = tmp_path_factory.mktemp("causal") / "pairs.csv"
    frame.to_csv(path, index=False)
    return str(path)


def run(*arguments):
    return invoke("causal", *arguments, "--x", "dose")


def test_a_direction_is_printed_saved_and_shown(data, tmp_path):
    out = str(tmp_path / "model.json")
    done = run(data, "--y", "response", "--seed", "0", "--out", out)
    assert done.exit_code == 0, done.output
    assert "dose -> response   score lower by 0." in done.output
    assert invoke("show", out).output == done.output
    record = json.loads(run(data, "--y", "response", "--seed", "0", "--json").output)
    assert record["scores"] == load(out).scores_
    assert (record["direction"], record["decided"]) == ("x->y", True)
    for command in (["predict", out, data], ["score", out, data], ["sample", out, "-n", "3"]):
        refused = invoke(*command)
        assert refused.exit_code == 2
        assert "got " in refused.stderr


def test_no_direction_is_printed_where_none_is_found(tmp_path):
    """Two columns on a straight line with normal noise: "undecided", and null in JSON."""
    first, rest = np.random.default_rng(0).normal(size=(2, 100))
    frame = pd.DataFrame({"dose": first, "response": first + rest})
    frame.to_csv(tmp_path / "line.csv", index=False)
    arguments = [str(tmp_path / "line.csv"), "--y", "response", "--seed", "0"]
    assert "\nundecided   scores differ by" in run(*arguments).output
    record = json.loads(run(*arguments, "--json").output)
    assert (record["direction"], record["decided"]) == (None, False)
    assert set(record["scores"]) == {"x->y", "y->x"}
    always = json.loads(run(*arguments, "--decide", "always", "--json").output)
    assert always["direction"] == min(record["scores"], key=record["scores"].get)


def test_a_private_direction_prints_its_guarantee(data, tmp_path):
    """With noise from the operating system: numbers differ, words do not."""
    out = str(tmp_path / "model.json")
    done = run(data, "--y", "response", *PRIVATE, "--out", out)
    assert done.exit_code == 0, done.output
    flat = " ".join(done.output.split())
    assert "makes no result more than 54.6 times as probable (epsilon 4, delta 0)" in flat
    assert "Training rows are not protected." in flat
    assert max(map(cell_len, done.output.splitlines())) <= 80
    assert invoke("show", out).output == done.output
    for_all = run(data, "--y", "response", *PRIVATE[2:])
    assert "replacing any one row makes" in " ".join(for_all.output.split())
    alone = run(data, "--y", "response", *PRIVATE, "--publish", "direction")
    assert "exponential mechanism" in alone.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "1"], "--x-bounds must be declared"),
        (["--epsilon", "0", *PRIVATE[4:]], "--epsilon"),
        ([*PRIVATE, "--score", "iqr"], "--delta must be > 0"),
        ([*PRIVATE, "--score", "variance"], "without bound"),
        (["--decide", "always", *PRIVATE], "--decide must not come with --epsilon"),
        (["--protect", "both"], "--protect must come with --epsilon"),
        (["--epsilon", "1", "--x-bounds", "low,high"], "--x-bounds must be LOW,HIGH"),
        (["--epsilon", "1", "--x-bounds", "3,1", "--y-bounds", "0,1"], "low < high"),
        (["--y", "dose"], "two columns"),
        (["--y", "absent"], "absent"),
    ],
)
def test_refusals_are_one_line(data, arguments, words):
    given = [] if "--y" in arguments else ["--y", "response"]
    assert_error(run(data, *given, *arguments), words)
