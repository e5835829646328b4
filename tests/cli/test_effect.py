"""``bayescascade effect``: a model and its rules printed, saved, shown and used; wrong tables."""

import json

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

from bayescascade import load
from tests.cli.conftest import assert_error
from tests.commands import invoke, run

COLUMNS = ["--outcome", "recovered", "--treatment", "arm", "--treated", "drug"]
QUICK = [*COLUMNS, "--method", "kernel", "--known-propensity", "0.5", "--seed", "0"]


def _trial(n=600):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, n), "sex": rng.choice(["f", "m"], n)})
    arm = rng.choice(["drug", "placebo"], n)
    gain = np.where(frame["sex"] == "f", 0.4, -0.1) * (arm == "drug")
    good = np.where(rng.random(n) < 0.4 + gain, "yes", "no")
    return frame.assign(arm=arm, recovered=good)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a file of a trial that helps one sex."""
    path = tmp_path_factory.mktemp("effect") / "trial.csv"
    _trial().to_csv(path, index=False)
    return str(path)


@pytest.mark.slow
def test_effects_and_rules_are_printed_saved_and_used(data, tmp_path):
    out, rules = str(tmp_path / "model.json"), str(tmp_path / "rules.json")
    done = invoke("effect", data, *QUICK, "--explain", "--out", out, "--rules-out", rules)
    assert done.exit_code == 0, done.output
    assert max(map(cell_len, done.stdout.splitlines())) <= 80
    shown = invoke("show", out).stdout, invoke("show", rules).stdout
    assert done.stdout == "\n".join(shown)
    assert "sex is" in shown[1]
    model, told = load(out), load(rules)
    predicted = invoke("predict", out, data).stdout.splitlines()
    effects = [float(line.split(",")[1]) for line in predicted[1:]]
    X = _trial()[["age", "sex"]]
    assert effects == model.effect(X).tolist()
    assert told.n_held_out_ == 200
    assert np.mean(told.predict(X) == (X["sex"] == "f")) > 0.9
    assert "sex is" in invoke("predict", rules, data, "--explain").stdout
    both = json.loads(invoke("effect", data, *QUICK, "--explain", "--json").stdout)
    assert both["rules"]["effects"] == told.to_dict()["effects"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recovered": ["a", "b", "c"] * 200}, "--outcome must have two values, got 3: a, b, c"),
        ({"arm": ["a", "b", "c"] * 200}, "--treatment must have two values, got 3: a, b, c"),
        ({"recovered": ["yes", None, "no"] * 200}, "--outcome must have a value in every row"),
        ({"arm": ["x", "y"] * 300}, "--treated must be x or y, got drug"),
        ({"given": lambda rows: (rows["arm"] == "drug") * 1}, 'got it as column "given"'),
    ],
)
def test_wrong_tables_are_refused_in_a_line(tmp_path, change, message):
    path = tmp_path / "wrong.csv"
    _trial().assign(**change).to_csv(path, index=False)
    assert_error(run("effect", path, *QUICK), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drop", "arm"], "--drop must not name the column of --treatment, got arm"),
        (["--outcome", "arm"], "--treatment must be another column than --outcome, got arm"),
        (["--outcome", "recoverd"], 'unknown column "recoverd" (did you mean "recovered"?)'),
        (["--known-propensity", "1"], "1.0 is not in the range 0<x<1"),
        (["--rules-out", "r.json"], "--rules-out must come with --explain"),
    ],
)
def test_wrong_options_are_refused_in_a_line(data, options, message):
    assert_error(run("effect", data, *QUICK, *options), message)
