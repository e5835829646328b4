"""``show``: the saved model as text, JSON, Graphviz source and picture."""

import json

import numpy as np
import pytest

import bayescascade
from bayescascade import AdditiveNoiseModel
from tests.cli.conftest import assert_error, run


@pytest.mark.slow
def test_long_trees_are_folded_unless_asked_for(tmp_path):
    """Printed first is what tells most; all of it for the asking, of fit and of show."""
    rows = ["".join(f"{bit}," for bit in f"{i:08b}")[:-1] for i in range(0, 256, 3)]
    data, model = tmp_path / "rows.csv", tmp_path / "m.json"
    data.write_text("\n".join([",".join("abcdefgh"), *rows * 40]) + "\n")
    options = ("--steps", 300, "--seed", 0, "--search", "anneal", "--leaf", "uniform")
    folded = run("fit", data, *options, "--out", model).stdout
    full = run("fit", data, *options, "--full").stdout
    assert " splits, with " in folded
    assert "--full" in folded
    assert "--full" not in full
    assert len(full.splitlines()) > len(folded.splitlines())
    assert run("show", model).stdout == folded
    assert run("show", model, "--full").stdout == full


@pytest.mark.slow
def test_a_part_is_drawn_alone(listed, forest, tmp_path):
    for path, options in ((listed.model, ("--given", "sex=male")), (forest, ("--tree", 1))):
        found = run("show", path, *options, "--png", tmp_path / f"{options[0]}.png")
        assert (found.exit_code, found.stdout, found.stderr) == (0, "", "")
        assert (tmp_path / f"{options[0]}.png").read_bytes().startswith(b"\x89PNG")
    model = bayescascade.load(forest)
    for options, tree in (((), 0), (("--tree", 1), 1)):
        assert run("show", forest, "--dot", *options).stdout == model.to_dot(tree)


def test_what_has_no_picture_is_told(fitted, classified, forest, tmp_path):
    released, png = tmp_path / "pair.json", tmp_path / "t.png"
    rng = np.random.default_rng(0)
    x = rng.random(60)
    AdditiveNoiseModel(score="spearman", random_state=0).fit(x, x**3 + rng.random(60)).save(
        released
    )
    for arguments, message in (
        ((released, "--png", png), "--png needs a model that has a picture, got"),
        ((classified.model, "--dot"), "--dot needs a tree or a forest, got"),
        ((fitted.model, "--dot", "--tree", 0), "--tree needs a forest, got"),
        ((forest, "--dot", "--tree", 9), "error: --tree must be an integer from 0 to 1, got 9"),
        ((forest, "--tree", 1), "--tree needs --dot or --png, got neither"),
    ):
        assert_error(run("show", *arguments), message)
    found = run("show", classified.model, "--dot")
    assert found.stderr.endswith(f"got {classified.model}, a rule list classifier\n")
    assert not png.exists()


def test_given(density):
    given = bayescascade.load(density.model).condition({"sex": "male", "class": ["1st", "2nd"]})
    options = ("--given", "sex=male", "--given", "class=1st,2nd")
    assert run("show", density.model, *options).stdout == f"{given}\n"
    record = json.loads(run("show", density.model, *options, "--json").stdout)
    assert record == given.to_dict()
    assert record["probability_given"] == pytest.approx(given.conditions_probability)
    assert record["given"] == "sex is male and class is 1st, 2nd"
    if "tree" in record:
        assert run("show", density.model, *options, "--dot").stdout == given.to_dot()


def test_given_of_continuous_and_missing(tmp_path):
    """An interval is two edges; nothing after the sign is a missing cell."""
    rows = "".join(f"{i % 7}.5,{'x' if i % 3 else ''}\n" for i in range(40))
    (tmp_path / "rows.csv").write_text("income,cell\n" + rows)
    model = tmp_path / "m.json"
    found = run(
        "fit", tmp_path / "rows.csv", "--continuous", "income:0,2,4,8", "--missing", "level",
        "--steps", 100, "--seed", 0, "--out", model,
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    text = run("show", model, "--given", "income=2,8", "--given", "cell=").stdout
    assert text.startswith("given income is in [2, 8] and cell is missing (probability ")
    text = run("show", model, "--given", "income=3").stdout
    assert text.startswith("given income is in [2, 4)")
    assert text.splitlines()[1] == "  3 is in the bin [2, 4)"
    assert_error(run("show", model, "--given", "income=1,8"), "pair of increasing edges")
    assert_error(run("show", model, "--given", "income=a,8"), "pair of increasing edges")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--given", "sex"], "--given must be NAME=LEVEL or NAME=LEVEL,LEVEL,..., got 'sex'"),
        (
            ["--given", "sex=x"],
            'column "sex" has the unknown level "x"; known levels: female, male',
        ),
        (["--given", "foo=x"], 'error: --given names the unknown column "foo"; columns: class'),
        (["--given", "sex="], 'column "sex" has no level for missing cells'),
        (["--given", "sex=male", "--given", "sex=male"], '--given must name column "sex" once'),
        (["--json", "--dot"], "--json, --dot, --png and --html exclude each other"),
        (["--png", "x.txt"], "--png must end in .png, got x.txt"),
    ],
)
def test_wrong_options(fitted, options, message):
    assert_error(run("show", fitted.model, *options), message)
