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


EXACT = ("--method", "exact", "--boxes", "1", "--side-cost", "0.5")


def test_exact_boxes_are_printed_and_saved(data, tmp_path):
    """And predict afterwards."""
    out = tmp_path / "m.json"
    text = command("boxes", data, "--target", "kind", *EXACT, "--out", out)
    assert "exact: no union of up to 1 box is more probable" in text
    assert load(out).boxes_.n_sides == 2
    assert "P(rare)" in command("predict", out, data)
    told = json.loads(command("boxes", data, "--target", "kind", *EXACT, "--json"))
    assert told == load(out).to_dict()


def test_fast_and_averaged_boxes(data):
    """By the same command."""
    assert "fast boxes" in command("boxes", data, "--target", "kind", "--method", "fast")
    text = command(
        "boxes", data, "--target", "kind", "--likelihood", "beta", "--steps", "500", "--seed", "0"
    )
    assert "likelihood beta" in text


def test_paths_are_tables(data):
    """A line for each weight."""
    text = command("boxes", data, "--target", "kind", "--method", "path", *EXACT[2:])
    assert len(text.splitlines()) == 11


def test_what_is_refused(data):
    """An unknown label, and options that do not go together."""
    told = command("boxes", data, "--target", "kind", "--positive", "none")
    assert "--positive must be" in told
    fast = ("boxes", data, "--target", "kind", "--method", "fast")
    assert "--boxes needs --method average or exact or path" in command(*fast, "--boxes", "2")
    told = command("boxes", data, "--target", "kind", "--method", "path", "--out", "m.json")
    assert "--out needs another --method" in told
