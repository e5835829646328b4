"""``bayescascade effect``: a model and its rules printed, saved, shown and used; wrong tables."""

import html
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
    assert done.stdout == invoke("show", out).stdout
    listed = invoke("show", rules).stdout
    assert "sex is" in listed
    assert set(listed.splitlines()) <= set(done.stdout.splitlines())
    model, result = load(out), load(rules)
    predicted = invoke("predict", out, data).stdout.splitlines()
    effects = [float(line.split(",")[1]) for line in predicted[1:]]
    X = _trial()[["age", "sex"]]
    assert effects == model.effect(X).tolist()
    assert result.n_held_out_ == 200
    assert np.mean(result.predict(X) == (X["sex"] == "f")) > 0.9
    assert "sex is" in invoke("predict", rules, data, "--explain").stdout
    both = json.loads(invoke("effect", data, *QUICK, "--json").stdout)
    assert both["rules"]["effects"] == result.to_dict()["effects"]
    words = " ".join(done.stdout.split())
    assert len(both["sentences"]) > 1
    places = [words.index(one) for one in both["sentences"]]
    assert places == sorted(places)
    assert places[-1] < words.index("square losses")  # the answer is first
    page = tmp_path / "page.html"
    invoke("show", out, "--html", str(page))
    text = page.read_text()
    assert all(html.escape(one, quote=False) in text for one in both["sentences"])


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
        (["--rules-out", "r.json", "--no-explain"], "--rules-out must come without --no-explain"),
        (["--weights", "arm"], "--weights must be another column than --treatment, got arm"),
    ],
)
def test_wrong_options_are_refused_in_a_line(data, options, message):
    assert_error(run("effect", data, *QUICK, *options), message)


def test_weights_count_and_few_rows_are_not_held_out(tmp_path):
    """Weights are no column of the model; a table that is too small is learned from as a whole."""
    path, out = tmp_path / "weighted.csv", tmp_path / "model.json"
    rows = _trial()
    rows.assign(count=np.where(rows["sex"] == "f", 5, 1)).to_csv(path, index=False)
    done = invoke("effect", str(path), *QUICK, "--weights", "count", "--out", str(out))
    assert done.exit_code == 0, done.output
    model = load(out)
    assert model.feature_texts == ["age", "sex"]
    assert model.effective_sizes_.sum() < 390.0
    small = tmp_path / "small.csv"
    rows[:26].to_csv(small, index=False)
    plain = invoke("effect", str(small), *QUICK, "--no-explain")
    assert plain.stderr == ""
    assert "rules of effects" not in plain.stdout
    few = invoke("effect", str(small), *QUICK)
    assert few.exit_code == 0, few.output
    assert "no rows were held out" in few.stderr
    assert few.stdout == plain.stdout
