"""Associations of columns are shown if a tree has no splits to read, and only real ones."""

import json

import numpy as np
import pandas as pd
import pytest

from bayescascade import BranchCascade
from bayescascade.methods.density.trees import associations
from bayescascade.methods.density.trees.associations import associations_of
from tests.commands import run

ONE_LEAF = {"leaf": "dependent", "partitions": "levels", "max_depth": 0, "random_state": 0}
N_LEVELS = (2, 3, 2, 4, 2, 3)
STARTS = np.cumsum((0, *N_LEVELS))


def joint_of(codes):
    """Return the shares of pairs of levels, (L, L), of rows (n, p)."""
    result = np.concatenate([np.eye(m)[codes[:, j]] for j, m in enumerate(N_LEVELS)], axis=1)
    return result.T @ result / len(codes)


def independent(rng, n=300):
    shares = [rng.dirichlet(np.full(m, 3.0)) for m in N_LEVELS]
    return np.stack([rng.choice(len(p), n, p=p) for p in shares], axis=1)


def test_information_is_that_of_pairs_of_levels(rng):
    """By the definition, pair by pair."""
    codes = independent(rng)
    codes[:, 4] = np.where(rng.random(300) < 0.8, codes[:, 0], codes[:, 4])
    (found,) = associations_of(joint_of(codes), STARTS, 300.0)
    shares = np.array([[np.mean((codes[:, 0] == a) & (codes[:, 4] == b)) for b in (0, 1)]
                       for a in (0, 1)])  # fmt: skip
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    assert found.columns == (0, 4)
    assert found.information == pytest.approx(np.sum(shares * np.log(shares / apart)))
    assert found.together == pytest.approx(shares[found.codes])
    assert found.apart == pytest.approx(apart[found.codes])


@pytest.mark.parametrize("most_false", [0.05, 0.05 * 15])
def test_independent_columns_rarely_show_a_pair(most_false, monkeypatch):
    """The broken twin tests each of the 15 pairs as if it was the only one."""
    monkeypatch.setattr(associations, "_MOST_FALSE", most_false)
    rng, n_tables = np.random.default_rng(0), 400
    tables = [associations_of(joint_of(independent(rng)), STARTS, 300.0) for _ in range(n_tables)]
    n_false = sum(bool(found) for found in tables)
    is_right = n_false / n_tables <= 0.05 + 3 * (0.05 * 0.95 / n_tables) ** 0.5
    assert is_right == (most_false == 0.05)


def frame_of(rng, n=300):
    codes = independent(rng, n)
    codes[:, 4] = codes[:, 0]
    letters = np.array(list("abcd"))[codes.T]
    return pd.DataFrame({f"c{j}": column for j, column in enumerate(letters)})


def test_terminal_report_json_and_picture_show_them(rng, tmp_path):
    """A single box says nothing about the rows."""
    model = BranchCascade(**ONE_LEAF).fit(frame_of(rng))
    (found,) = model.tree_.associations
    text = str(model)
    assert f"c0 and c4 {found.information:.3f}" in " ".join(text.split())
    assert found.words(model.schema_) in text
    assert "with: " not in text  # no such line is printed
    path, html = tmp_path / "m.json", tmp_path / "m.html"
    model.save(path)
    assert run("show", path).stdout == text + "\n"
    run("show", path, "--html", html)
    assert f"{found.information:.3f} nats" in html.read_text(encoding="utf-8")
    (record,) = json.loads(run("show", path, "--json").stdout)["associations"]
    assert record["features"] == ["c0", "c4"]
    assert record["information"] == found.information
    labels = [label.get_text() for label in model.plot().get_yticklabels()]
    assert labels == ["c0 and c4"]
    model.tree_.draw(tmp_path / "m.png")
    assert (tmp_path / "m.png").stat().st_size > 0


def test_trees_with_splits_and_conditions_show_none(rng):
    frame, split = frame_of(rng), {**ONE_LEAF, "leaf": "independent", "max_depth": 1}
    assert "strongest" not in str(BranchCascade(**split).fit(frame))
    one = BranchCascade(**ONE_LEAF).fit(frame)
    assert "strongest" not in str(one.condition({"c0": "a"}))
    independent_leaf = BranchCascade(**{**ONE_LEAF, "leaf": "independent"}).fit(frame)
    text = str(independent_leaf)
    assert "No two columns clearly depend on each other in this model." in text
    assert independent_leaf.to_dict()["associations"] == []


def test_a_key_explains_only_what_is_printed():
    """Without a line "mostly", its explanation is a riddle."""
    even = pd.DataFrame({"a": ["x", "y"] * 40, "b": ["u", "u", "v", "v"] * 20})
    model = BranchCascade(**{**ONE_LEAF, "leaf": "independent"}).fit(even)
    assert "mostly" not in str(model)
    assert "share: posterior mean probability" in str(model)
    assert "mostly:" not in model._repr_html_()
    uneven = even.assign(a=["x"] * 76 + ["y"] * 4)
    model = BranchCascade(**{**ONE_LEAF, "leaf": "independent"}).fit(uneven)
    assert "mostly: " in str(model)
    assert "mostly: " in model._repr_html_()
