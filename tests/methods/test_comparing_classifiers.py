"""``compare_classifiers``, and ``compare --target``: defaults on the same held-out rows."""

import json

import numpy as np
import pandas as pd
import pytest

from bayescascade import DataError, ParameterError, RadoBoostClassifier, compare_classifiers
from tests.cli.conftest import DATA, assert_error, run

CLINIC = str(DATA / "liver_clinic.csv")
QUICK = ("--target", "outcome", "--models", "logistic,rados", "--seed", "0")


def test_differences_are_those_of_the_same_rows():
    """A difference, its error and the figures must be those that the predictions have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "b", "a")
    found = compare_classifiers(X, y, models=["rados", "logistic"], random_state=0)
    assert found.table.index.tolist() == ["rados", "logistic"]
    assert found.table["accuracy"].between(0.7, 0.85).all()
    best, behind = (row for _, row in found.table.sort_values("log_loss").iterrows())
    assert behind["log_loss"] - best["log_loss"] == pytest.approx(behind["more_loss"])
    assert best["accuracy"] - behind["accuracy"] == pytest.approx(behind["less_accurate"])
    assert 0.0 < behind["more_loss_error"] < 0.1
    again = compare_classifiers(X, y, models=["logistic"], random_state=0)
    assert again.table.loc["logistic", "log_loss"] == found.table.loc["logistic", "log_loss"]


def test_a_class_that_is_given_away_is_found_by_all_and_one_at_random_by_none():
    """Labels of a fold must not be known where it is predicted; probabilities are of the class."""
    y = np.tile(["a", "b", "c"], 60)
    given = compare_classifiers(pd.DataFrame({"x": y}), y, models=["logistic", "boosted"])
    assert (given.table["accuracy"] == 1.0).all()
    X = np.random.default_rng(1).normal(size=(180, 2))
    blind = compare_classifiers(X, y, models=["logistic", "boosted"], random_state=0)
    assert (blind.table["accuracy"] < 0.45).all()
    assert (blind.table["log_loss"] > 1.0).all()


def test_the_command_prints_what_python_returns():
    printed = run("compare", CLINIC, *QUICK)
    assert (printed.exit_code, printed.stderr) == (0, "")
    record = json.loads(run("compare", CLINIC, *QUICK, "--json").stdout)
    frame = pd.read_csv(CLINIC)
    found = compare_classifiers(
        frame.drop(columns="outcome"), frame["outcome"], random_state=0,
        models=["logistic", "rados"],
    )  # fmt: skip
    for one, (name, row) in zip(record["models"], found.table.iterrows(), strict=True):
        assert (one["name"], one["log_loss"]) == (name, pytest.approx(row["log_loss"]))
        assert f"{100 * row['accuracy']:.1f} %" in printed.stdout
    assert max(map(len, printed.stdout.splitlines())) <= 80


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "b", "b"], list("abcdefgh")])
def test_classes_of_one_row_are_refused(labels):
    """What learns from other rows than this one would know one class, or no row."""
    message = f"y must have two rows of each of two classes, got {labels.count('b') // 3}"
    with pytest.raises(DataError, match=message):
        compare_classifiers(np.arange(len(labels))[:, None], labels, models=["logistic"])


def test_two_rows_of_two_classes_are_enough():
    found = compare_classifiers([[0.0], [0.1], [1.0], [1.1]], list("aabb"), models=["logistic"])
    assert found.n_rows == 4


def test_ctrl_c_prints_what_was_finished(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RadoBoostClassifier, "fit", stop)
    found = run("compare", CLINIC, *QUICK)
    assert found.exit_code == 130
    assert "logistic regression" in found.stdout
    assert found.stderr == "interrupted: classifiers finished: 1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([CLINIC, CLINIC, *QUICK], "--target needs one DATA, got 2"),
        ([CLINIC, *QUICK, "--repeats", "3"], "--repeats must not come with --target, got 3"),
        ([CLINIC, *QUICK, "--weights", "age"], "--weights must not come with --target, got age"),
        ([CLINIC, "--target", "death"], 'target names the unknown column "death"'),
        ([CLINIC, *QUICK, "--models", "leaf"], "for 2 classes, got 'leaf'"),
        ([CLINIC, "--models", "boosted"], "--models must be some of auto, leaf, "),
        ([CLINIC, "--missing-labels", "drop"], "--missing-labels"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(arguments, message):
    assert_error(run("compare", *arguments), message)


def test_boxes_need_two_classes():
    with pytest.raises(ParameterError, match=r"rules, compress, .* for 3 classes, got 'boxes'"):
        compare_classifiers(np.zeros((6, 1)), list("abcabc"), models=["boxes"])


@pytest.mark.slow
def test_all_defaults_are_compared(rng):
    """Of four columns three matter, and half of the budget are two."""
    X = rng.normal(size=(80, 4))
    found = compare_classifiers(X, X[:, :3].sum(axis=1) > 0.5, random_state=0).table
    assert len(found) == 7
    assert (found["accuracy"] > 0.6).all()
    assert found.loc["budget", "accuracy"] < found.loc["logistic", "accuracy"] - 0.05
