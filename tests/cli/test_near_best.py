"""--near-best and --top: other models beside the best one, in prints, JSON and reports."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.commands import command, run


@pytest.fixture
def rows(tmp_path):
    """Return a small file."""
    rng = np.random.default_rng(5)
    sky = rng.choice(["grey", "blue"], 60, p=[0.7, 0.3])
    wind = np.where(rng.random(60) < 0.8, sky == "grey", False)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"sky": sky, "wind": wind}).to_csv(path, index=False)
    return path


def test_models_are_printed_with_the_best_and_after_loading(rows, tmp_path):
    """A fit knows all trees; a file has only draws, and the print says so."""
    saved, page = tmp_path / "model.json", tmp_path / "model.html"
    fit = ["fit", rows, "--model", "branch", "--leaf", "uniform", "--search", "exact"]
    result = command(*fit, "--near-best", "3", "--top", "2", "--out", saved)
    assert "within 3 nats of the best (proved: no others are)" in result
    assert "model 2" in result
    assert "model 3" not in result
    assert max(map(len, result.splitlines())) <= 80
    record = json.loads(run(*fit, "--near-best", "3", "--json").stdout)
    assert record["near_best"]["is_complete"] is True
    assert sum(one["probability"] for one in record["near_best"]["models"]) <= 1.0
    assert "drawn trees, not proved" in command("show", saved, "--near-best", "3")
    command("show", saved, "--near-best", "3", "--html", page)
    assert "Other models that are as good" in page.read_text(encoding="utf-8")


def test_lists_of_labels_are_printed_after_the_details(rows):
    """Who asks for both would else see one of them."""
    classify = ["classify", rows, "--target", "sky", "--near-best", "3", "--cv", "2"]
    result = command(*classify, "--top", "1", "--details")
    assert result.index("AUC") < result.index("within 3 nats of the best")
    assert "model 2" not in result
    assert "AUC" not in command(*classify)
    assert "near_best" in json.loads(run(*classify, "--json").stdout)
    assert "--top needs --near-best" in command("classify", rows, "--target", "sky", "--top", "2")


def test_what_cannot_be_listed_is_refused_before_the_search(rows):
    """An hour of search must not end in an error."""
    assert "--top needs --near-best" in command("fit", rows, "--top", "2")
    result = command("fit", rows, "--model", "mixture", "--near-best", "3")
    assert "--near-best needs --model auto or leaf or branch or rules" in result
    result = command(
        "fit", rows, "--model", "branch", "--search", "anneal", "--steps", "50",
        "--near-best", "3",
    )  # fmt: skip
    assert "no models near the best" in result
