"""``rados``: one program where the rows are, another where they are learned from."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import bayescascade
from bayescascade import Rados
from bayescascade.base.store import stored
from tests.cli.conftest import assert_error, run
from tests.methods.rados.problems import blobs


@pytest.fixture
def halves(tmp_path):
    X, y = blobs(400)
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(
        hiv=np.arange(400) % 5 < 2, label=np.where(y > 0, "ill", "well")
    )
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, half in zip(paths, (frame[:200], frame[200:]), strict=True):
        half.to_csv(path, index=False)
    return paths


TARGET = ("--target", "label")
HIDE = ("--private-feature", "hiv", "--epsilon", "3")


def test_two_parties_make_sums_and_a_third_learns(halves, tmp_path):
    a, b, model = tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "m.json"
    made = run("rados", "make", halves[0], *TARGET, "--n", 300, "--out", a, "--seed", 0)
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.stdout.splitlines()[0] == "Rademacher observations   300 rados of 200 rows"
    assert "no privacy is promised" in made.stdout
    before = Rados.load(a).values
    run("rados", "make", halves[0], *TARGET, "--n", 300, "--out", a, "--seed", 0)
    np.testing.assert_array_equal(Rados.load(a).values, before)
    run("rados", "make", halves[1], *TARGET, "--n", 300, "--out", b, "--like", a, "--seed", 1)
    fitted = run("rados", "fit", a, b, "--out", model, "--learner", "moments")
    assert (fitted.exit_code, fitted.stderr) == (0, "")
    assert "300 rados of 400 rows" in fitted.stdout
    assert fitted.stdout == str(bayescascade.load(model)) + "\n"
    scored = json.loads(run("score", model, halves[1], *TARGET, "--json").stdout)
    rows = pd.read_csv(halves[1])
    own = LogisticRegression().fit(rows[["u", "v", "w", "hiv"]], rows["label"])
    best = own.score(rows[["u", "v", "w", "hiv"]], rows["label"])
    assert scored["accuracy"] > best - 0.03
    record = json.loads(run("rados", "fit", a, b, "--rounds", 7, "--json").stdout)
    assert record["about"]["n_rounds_made"] == 7


def test_blocks_are_typed_as_their_file_is(halves, tmp_path, monkeypatch):
    """A code such as 01 is text also in a block that has no other."""
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    for path in halves:
        pd.read_csv(path).assign(code=["01"] * 100 + ["x"] * 100).to_csv(path, index=False)
    monkeypatch.setattr("bayescascade.cli.rows._CHUNK_ROWS", 37)
    for path, options in ((halves[0], ("--out", a)), (halves[1], ("--out", b, "--like", a))):
        made = run("rados", "make", path, *TARGET, "--n", 5, *options)
        assert (made.exit_code, made.stderr) == (0, "")


def test_files_of_any_size_are_read_block_by_block(halves, tmp_path, monkeypatch):
    """By others' columns, classes and units; labels that they lack are told."""
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    run("rados", "make", halves[0], *TARGET, "--n", 5, "--out", a)
    monkeypatch.setattr("bayescascade.cli.rows._CHUNK_ROWS", 37)
    made = run("rados", "make", halves[1], *TARGET, "--n", 5, "--out", b, "--like", a)
    assert "5 rados of 200 rows" in made.stdout
    assert Rados.merge([Rados.load(a), Rados.load(b)]).n_rows == 400
    text = halves[1].read_text().rstrip("\n").removesuffix("ill").removesuffix("well") + "dead\n"
    halves[1].write_text(text)
    assert_error(run("rados", "make", halves[1], *TARGET, "--out", b, "--like", a), '"dead"')


def test_promises_are_told(halves, tmp_path):
    out = tmp_path / "r.npz"
    feature = ("--private-feature", "hiv", "--values", "False,True", "--epsilon", 3)
    made = run("rados", "make", halves[0], *TARGET, "--out", out, *feature, "--n", 3)
    assert 'If "hiv" changes in one row' in " ".join(made.stdout.split())
    assert Rados.load(out).promise.is_private
    pytest.importorskip("opendp")
    whole = ("--bounds", "-4,4", "--bounds", "hiv=0,1", "--classes", "ill,well", "--epsilon", 2)
    whole += ("--noise-on", "rados")
    made = run("rados", "make", halves[0], *TARGET, "--out", out, *whole, "--n", 5, "--json")
    promise = json.loads(made.stdout)["promise"]
    assert (promise["protects"], promise["epsilon"], promise["delta"]) == ("rows", 2.0, 1e-6)
    assert Rados.load(out).reading.units.tolist() == [4.0, 4.0, 4.0, 0.5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--private-feature", "hiv"), "--private-feature must come with --epsilon"),
        (("--epsilon", "1"), "--epsilon must come with --private-feature or --bounds"),
        (("--private-feature", "hiv", "--epsilon", "1", "--seed", "3"), "--seed must not come"),
        (("--private-feature", "hiv", "--epsilon", "3"), "--values must be the two values"),
        ((*HIDE, "--values", "0,2"), 'column "hiv" must be "0" or "2", as was declared'),
        ((*HIDE, "--values", "yes"), "--values must be two texts, numbers or truth values"),
        ((*HIDE, "--values", "NA,B"), "and none that stands for a missing cell, got 'NA,B'"),
        ((*HIDE, "--classes", "ill,well"), "--classes must not come with --private-feature"),
        (
            ("--private-feature", "hiv", "--values", "false,true", "--epsilon", "0.01"),
            "epsilon must be at least",
        ),
        (("--values", "0,1"), "--values must come with --private-feature"),
        (("--classes", "0,1"), "--classes must come with --epsilon"),
        (("--epsilon", "1", "--bounds", "0,1"), "--classes must be the two classes"),
        (("--epsilon", "1", "--like", "r", "--classes", "0,1"), "must not come with --like"),
        (
            ("--epsilon", "1", "--bounds", "3"),
            "--bounds must be LOW,HIGH or NAME=LOW,HIGH, got '3'",
        ),
        (("--epsilon", "1", "--bounds", "=0,1"), "--bounds must be LOW,HIGH or NAME=LOW,HIGH"),
        (("--epsilon", "1", "--bounds", "z=0,1"), '--bounds names the unknown column "z"; columns'),
        (
            ("--epsilon", "1", "--bounds", "u=0,1", "--bounds", "u=0,2"),
            '--bounds must be given once for column "u"',
        ),
        (
            ("--epsilon", "1", "--bounds", "u=0,1", "--classes", "ill,well"),
            "edge_bounds must be (low, high)",
        ),
        (("--epsilon", "1", "--bounds", "0,1", "--raw"), "--raw must not come with --bounds"),
        (("--support", "201"), "support must be an integer from 1 to 200"),
        (("--time-limit", "9", *HIDE), "--time-limit must not come with --epsilon"),
        (("--time-limit", "9", "--like", "r"), "--time-limit must not come with --like"),
        (("--raw", "--like", "r"), "--raw must not come with --like"),
        (("--missing", "error", "--like", "r"), "--missing must not come with --like"),
        (
            ("--epsilon", "1", "--bounds", "0,1", "--missing", "level"),
            "--missing must be error with --epsilon",
        ),
        (("--truncation", "0.1"), "--truncation must come with --private-feature"),
    ],
)
def test_errors_are_one_line(halves, tmp_path, options, words):
    made = run("rados", "make", halves[0], *TARGET, "--out", tmp_path / "r.npz", *options)
    assert_error(made, words)
    assert not (tmp_path / "r.npz").exists()


def test_files_that_do_not_go_together_are_told(halves, tmp_path):
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    for path, rows in zip((a, b), halves, strict=True):
        run("rados", "make", rows, *TARGET, "--out", path)
    assert_error(run("rados", "fit", a, b), "same classes and units, as by like=")
    assert_error(
        run("rados", "fit", halves[0]),
        "is not a file of rados, or is damaged: rados make writes such files",
    )
    assert_error(run("rados", "fit"), "Missing argument")
    assert_error(run("rados", "make", halves[0], *TARGET, "--out", halves[0]), "DATA")


@pytest.mark.parametrize("codes", [("no", "yes"), ("0", "1"), ("01", "x"), ("True", "False")])
def test_files_of_neighbors_are_alike(tmp_path, codes):
    """A cell decides neither how the others of its column are read, nor what is printed."""
    pytest.importorskip("opendp")
    pages = []
    for other in (0, 1):
        cells = [codes[0]] * 59 + [codes[other]]
        rows, out = tmp_path / "rows.csv", tmp_path / "r.npz"
        pd.DataFrame({"u": np.arange(60) % 9, "f": cells}).to_csv(rows, index=False)
        whole = ("--target", "f", "--bounds", "0,9", "--classes", ",".join(codes), "--n", 2)
        made = run("rados", "make", rows, *whole, "--out", out, "--epsilon", 1)
        pages.append((made.exit_code, made.stdout, made.stderr, stored(Rados.load(out).reading)))
        hide = ("--target", "u", "--private-feature", "f", "--values", ",".join(codes), "--n", 2)
        pd.DataFrame({"u": np.arange(60) % 2, "f": cells}).to_csv(rows, index=False)
        made = run("rados", "make", rows, *hide, "--out", out, "--epsilon", 9)
        pages.append((made.exit_code, made.stdout, made.stderr, stored(Rados.load(out).reading)))
    assert pages[:2] == pages[2:]
    assert [page[0] for page in pages] == [0] * 4
