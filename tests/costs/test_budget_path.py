"""Classifiers of several budgets in one file: which is chosen, and what is no such file."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayescascade import (
    BudgetedForestClassifier,
    BudgetPath,
    GatedSensorsClassifier,
    MarginNeighborsClassifier,
    ModelFileError,
    ParameterError,
    cost_accuracy_curve,
    load,
)


def rows():
    X = np.random.default_rng(0).normal(size=(200, 3))
    return X, X[:, 0] > 0.5 * X[:, 1]


@pytest.fixture(scope="module")
def path():
    """Return a path of two families."""
    gated = GatedSensorsClassifier(budget=3.0, n_steps=20, random_state=0).fit(*rows())
    forest = BudgetedForestClassifier(max_trees=5, random_state=0)
    return BudgetPath([gated, *(one for _, one in forest.fit_budgets([2, 1], *rows()))])


def test_the_largest_budget_within_is_chosen(path):
    assert path.budgets == [1, 2, 3]
    assert [path.within(amount).budget for amount in (1, 1.5, 2, 99)] == [1, 1, 2, 3]
    with pytest.raises(ParameterError, match=r"budget must be >= 1, the smallest, got 0\.9"):
        path.within(0.9)
    assert len(cost_accuracy_curve(path, *rows()).points) == len(path) == 3


def test_a_file_has_all_of_them(path, tmp_path):
    path.save(tmp_path / "path.json")
    again = load(tmp_path / "path.json")
    assert again.to_record() == path.to_record()
    assert str(again) == str(path)
    for one, other in zip(again, path, strict=True):
        np.testing.assert_array_equal(one.predict_proba(rows()[0]), other.predict_proba(rows()[0]))


def test_a_file_has_what_is_alike_once(tmp_path):
    """Training rows, which are most of the file of margins of neighbors."""
    X, y = rows()
    model = MarginNeighborsClassifier(LogisticRegression(), margins="in_sample", random_state=0)
    models = [one for _, one in model.fit_budgets([1, 2], X, y)]
    models[0].save(tmp_path / "one.json")
    BudgetPath(models).save(tmp_path / "path.json")
    sizes = [(tmp_path / f"{name}.json").stat().st_size for name in ("one", "path")]
    assert sizes[1] < 1.3 * sizes[0]
    for one, other in zip(load(tmp_path / "path.json"), models, strict=True):
        assert one.to_record() == other.to_record()
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    record = json.loads((tmp_path / "path.json").read_text())
    for alike in (3, {}, {**record["alike"], "asks": 3}):
        (tmp_path / "bad.json").write_text(json.dumps({**record, "alike": alike}))
        with pytest.raises(ModelFileError, match=r"bad\.json"):
            load(tmp_path / "bad.json")


def test_what_is_no_path_is_refused(path, tmp_path):
    for models, message in (
        ([], "at least one classifier, got none"),
        ([path[0], path[0]], "different budgets"),
        ([BudgetedForestClassifier(max_trees=2).fit(*rows())], "must be fitted within a budget"),
        ([BudgetedForestClassifier(budget=2)], "must be fitted within a budget"),
    ):
        with pytest.raises(ParameterError, match=message):
            BudgetPath(models)
    record = path.to_record()
    for models in ([], 3, [record], [{**record["models"][0], "model": "EffectModel"}], [{}]):
        (tmp_path / "bad.json").write_text(json.dumps({**record, "models": models}))
        with pytest.raises(ModelFileError, match=r"bad\.json"):
            load(tmp_path / "bad.json")
