"""``bayescascade boxes``: averaged, exact and fast boxes of a file, a path, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from bayescascade import load
from tests.cli.conftest import assert_error
from tests.commands import command, run


@pytest.fixture
def data(tmp_path):
    """Return a file of which a corner is rare."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)).round(2)
    frame = pd.DataFrame(X, columns=["width", "height"])
    frame["kind"] = np.where((X[:, 0] > 0.7) & (X[:, 1] < 0.5), "rare", "usual")
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


FAST = ("--method", "fast", "--clusters", "2", "--expansion", "1")
EXACT = ("--method", "exact", "--boxes", "1", "--side-cost", "0.5")


def test_exact_boxes_are_printed_and_saved(data, tmp_path):
    out = tmp_path / "m.json"
    text = command("boxes", data, "--target", "kind", *EXACT, "--out", out, "--seed", "0")
    assert "on 150 held-out rows: precision 100.0 ±" in text
    assert text.rstrip() in command("show", out)
    assert "exact: no union of up to 1 box has a higher objective" in text
    assert load(out).boxes_.n_sides == 2
    assert "P(rare)" in command("predict", out, data)
    record = json.loads(command("boxes", data, "--target", "kind", *EXACT, "--seed", "0", "--json"))
    assert record == load(out).to_dict()
    assert "width is at least" in command("predict", out, data, "--explain")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (FAST, "fast boxes"),
        (("--method", "path", *EXACT[2:]), "\nat most: "),
        pytest.param(
            ("--likelihood", "beta", "--steps", "500", "--seed", "0"),
            "likelihood beta",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_other_methods_are_printed_and_drawn(data, tmp_path, how, words):
    plot = tmp_path / "boxes.png"
    text = command("boxes", data, "--target", "kind", *how, "--plot", plot)
    assert words in text
    assert plot.read_bytes().startswith(b"\x89PNG")
    if "path" in how:  # a line for each weight, between two of headings and two of the key
        assert len(text.splitlines()) == 14


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--positive", "none"), "--positive must be usual or rare, got none"),
        (("--method", "path", "--out", "m.json"), "--out needs another --method, got path"),
        (("--method", "path", "--cv", "3"), "--cv needs another --method, got path"),
        (("--search", "exact"), 'likelihood must be "gibbs" for search "exact", got \'pooled\''),
        (
            ("--method", "fast", "--boxes", "2"),
            "--boxes needs --method average or exact or path, got fast",
        ),
        (("--clusters", "2"), "--clusters needs --method fast, got average"),
        (("--plot", "a.doc"), "--plot must end in .png, .svg, .pdf, got a.doc"),
    ],
)
def test_what_is_refused(data, given, told):
    assert_error(run("boxes", data, "--target", "kind", *given), told)
