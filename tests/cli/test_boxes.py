"""``bayescascade boxes``: averaged, exact and fast boxes of a file, a path, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from bayescascade import load
from tests.commands import run


def command(*arguments):
    """Return what a command prints, errors included."""
    result = run(*arguments)
    return result.stdout + result.stderr


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
    """And predict afterwards."""
    out = tmp_path / "m.json"
    text = command("boxes", data, "--target", "kind", *EXACT, "--out", out)
    assert "exact: no union of up to 1 box has a higher objective" in text
    assert load(out).boxes_.n_sides == 2
    assert "P(rare)" in command("predict", out, data)
    told = json.loads(command("boxes", data, "--target", "kind", *EXACT, "--json"))
    assert told == load(out).to_dict()
    assert "width is at least" in command("predict", out, data, "--explain")


@pytest.mark.slow
def test_fast_and_averaged_boxes(data):
    """By the same command."""
    assert "fast boxes" in command("boxes", data, "--target", "kind", *FAST)
    text = command(
        "boxes", data, "--target", "kind", "--likelihood", "beta", "--steps", "500", "--seed", "0"
    )
    assert "likelihood beta" in text


def test_paths_are_tables(data):
    """A line for each weight, between two of headings and two of the key."""
    text = command("boxes", data, "--target", "kind", "--method", "path", *EXACT[2:])
    lines = text.splitlines()
    assert len(lines) == 14
    assert lines[-1].startswith("at most: ")


@pytest.mark.parametrize("how", [FAST, ("--method", "path", *EXACT[2:])])
def test_pictures_are_drawn(data, tmp_path, how):
    """Of boxes, and of a path's curve."""
    plot = tmp_path / "boxes.png"
    command("boxes", data, "--target", "kind", *how, "--plot", plot)
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--positive", "none"), "--positive must be usual or rare, got none"),
        (("--method", "path", "--out", "m.json"), "--out needs another --method, got path"),
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
    """An unknown label, and options that do not go together: in one line, with 2."""
    result = run("boxes", data, "--target", "kind", *given)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
