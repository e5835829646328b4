"""Curves tell what test rows cost and how often they are wrong, whatever is measured."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from bayescascade import cost_accuracy_curve
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.model.standard_errors import share_error
from tests.methods.budget.forests.fits import COSTS, PlainForest, diagnoses, patients


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    frame = patients(rng, 300)
    return frame, diagnoses(frame, rng)


@pytest.fixture(scope="module")
def models(rows):
    frame, y = rows
    return [
        PlainForest(costs=COSTS, max_depth=depth, random_state=0).fit(frame[:200], y[:200])
        for depth in (4, 1, 2)
    ]


class Constant:
    """A classifier of somebody else, without a forest."""

    classes_ = np.array(["ill", "well"])

    def predict(self, X):
        return np.full(len(X), "well")

    def acquisition_cost(self, X):
        return np.zeros(len(X))


def test_points_are_means_over_the_test_rows(rows, models):
    """A curve is read as what new rows will cost, and how sure that is."""
    X, y = rows[0][200:], rows[1][200:]
    curve = cost_accuracy_curve(models, X, y)
    assert curve.n_rows == 100
    assert curve.labels == ["plain forest"]
    assert [point.cost for point in curve.points] == sorted(point.cost for point in curve.points)
    for model in models:
        costs, wrong = model.acquisition_cost(X), model.predict(X) != y
        (point,) = [point for point in curve.points if point.n_splits == model.forest_.n_splits]
        assert point.cost == pytest.approx(costs.mean())
        assert point.cost_error == pytest.approx(np.std(costs, ddof=1) / 10, rel=0.25)
        assert point.error == pytest.approx(wrong.mean())
        assert point.error_error == share_error(point.error, 100)
        assert point.n_features == pytest.approx(model.features_used(X).sum(axis=1).mean())
        assert point.n_trees == 10


def test_models_come_in_every_form(rows, models):
    """A path is one family, whatever object it is."""
    X, y = rows[0][200:], rows[1][200:]
    path = iter(models[1:])
    curve = cost_accuracy_curve({"deep": models[0], "path": path, "none": [Constant()]}, X, y)
    assert curve.labels == ["deep", "path", "none"]
    assert [len(curve.of(label)) for label in curve.labels] == [1, 2, 1]
    (constant,) = curve.of("none")
    assert (constant.cost, constant.n_trees, constant.n_splits) == (0.0, None, None)
    assert np.isnan(constant.n_features)
    alone = cost_accuracy_curve(models[0], X, y)
    assert alone == cost_accuracy_curve([models[0]], X, y, ["plain forest"])
    named = cost_accuracy_curve([models[0], models[1:]], X, y, labels=["a", "b"])
    assert [point.label for point in named.points] == ["a", "b", "b"]
    assert cost_accuracy_curve([Constant()], X, y).labels == ["Constant"]


def test_buying_nothing_is_measured_beside_the_classifiers(rows, models):
    """A point that errs more than this is not worth its cost; test rows do not say which class."""
    X, y = rows[0][200:], rows[1][200:]
    commonest = pd.Series(rows[1][:200]).value_counts().index[0]
    others = np.flatnonzero(y != commonest)  # of which another class is the commonest
    for test in (np.arange(len(y)), others):
        curve = cost_accuracy_curve(models, X.iloc[test], y[test])
        wrong = y[test] != commonest
        assert curve.commonest == commonest
        assert (curve.nothing.cost, curve.nothing.n_features) == (0.0, 0.0)
        assert curve.nothing.error == pytest.approx(wrong.mean())
        assert curve.nothing.error_error == share_error(curve.nothing.error, len(wrong))
        assert f"nothing: every row is classified as {commonest}" in str(curve)
    assert cost_accuracy_curve([Constant()], X, y).commonest == pd.Series(y).mode()[0]


def test_one_row_has_no_standard_error(rows, models):
    """An error of 0, or a warning, would be wrong."""
    curve = cost_accuracy_curve(models[0], rows[0][:1], rows[1][:1])
    assert np.isnan(curve.points[0].cost_error)
    assert "nan" not in str(curve)
    curve.plot()


def test_a_curve_is_printed_as_a_table(rows, models):
    """What a user reads, within the width of a terminal."""
    curve = cost_accuracy_curve({"deep": models[0], "flat": models[1:]}, *rows)
    frame = curve.to_frame()
    assert list(frame.columns) == [
        "label", "cost", "cost_error", "error", "error_error", "n_features", "n_trees", "n_splits",
    ]  # fmt: skip
    assert frame["label"].tolist() == ["nothing", *(point.label for point in curve.points)]
    assert frame["cost"].tolist() == [0.0, *(point.cost for point in curve.points)]
    lines = str(curve).split("\n")
    assert lines[0] == "300 test rows"
    assert lines[2].split() == ["cost", "error", "features", "trees", "splits"]
    assert [line.split()[0] for line in lines[3:6]] == ["nothing", "deep", "flat"]
    assert lines[6].startswith("  ")  # a family's name stands once
    assert max(map(len, lines)) <= 80
    lines = str(cost_accuracy_curve([Constant()], *rows)).split("\n")
    assert lines[2].split() == ["cost", "error"]  # no headings without numbers


def test_a_curve_is_drawn_where_it_is_told(rows, models):
    """Two pictures must not be drawn into one."""
    from matplotlib.figure import Figure

    curve = cost_accuracy_curve({"deep": models[0], "flat": models[1:]}, *rows)
    ax = Figure().subplots()
    assert curve.plot(ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "nothing", "deep", "flat",
    ]  # fmt: skip
    assert curve.plot().figure is not ax.figure


@pytest.mark.parametrize(
    ("others", "labels", "message"),
    [
        ([], None, "models must have at least one classifier, got none"),
        ([3], None, "models must be fitted classifiers with predict and acquisition_cost, .* 3"),
        ([RandomForestClassifier()], None, "models must be fitted .* got RandomForestClassifier"),
        ([Constant()], ["a", "b"], r"labels must be 1 names, got \['a', 'b'\]"),
        ({"a": Constant()}, ["b"], r"labels must be None with a mapping, got \['b'\]"),
    ],
)
def test_other_models_are_refused(rows, others, labels, message):
    """By name, before anything is measured."""
    with pytest.raises(ParameterError, match=message):
        cost_accuracy_curve(others, *rows, labels)


def test_other_labels_are_refused(rows, models):
    """Labels of another kind or number would count every row as an error."""
    frame, y = rows
    with pytest.raises(DataError, match="y_test must have a label per row, 300, got 299"):
        cost_accuracy_curve(models, frame, y[1:])
    with pytest.raises(DataError, match="y_test must have classes of the classifiers, got 1"):
        cost_accuracy_curve(models, frame, np.ones(300, int))
    with pytest.raises(ParameterError, match="cost_accuracy_curve requires y to be passed"):
        cost_accuracy_curve(models, frame, None)
    missing = pd.Series(y).where(np.arange(300) > 5)
    with pytest.raises(DataError, match="y_test must not have missing labels"):
        cost_accuracy_curve(models, frame, missing)
