"""Saved budgeted classifiers come back the same, and forged ones are refused."""

import copy
import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import bayescascade
from bayescascade.base.errors import ModelFileError
from bayescascade.budget import (
    BudgetedForestClassifier,
    BudgetPrune,
    BudgetTreeClassifier,
    CostComplexityPrune,
    GreedyPrune,
    PolynomialImpurity,
    TruncatedForest,
)
from tests.forgeries import JUNK, at, places
from tests.methods.budget.fits import COSTS, PlainForest, diagnoses, patients

RNG = np.random.default_rng(31)
FRAME = patients(RNG, 60)
MODEL = PlainForest(costs=COSTS, n_estimators=2, max_depth=2, random_state=0)
MODEL.fit(FRAME, diagnoses(FRAME, RNG))
RECORD = json.loads(json.dumps(MODEL.to_record(), allow_nan=False))


def test_a_file_comes_back_the_same(tmp_path):
    """Whoever loads a model must get its answers, its costs and its text."""
    MODEL.save(tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text())
    model = PlainForest.from_record(record)
    fresh = patients(RNG, 50, missing=0.1)
    np.testing.assert_array_equal(model.predict_proba(fresh), MODEL.predict_proba(fresh))
    np.testing.assert_array_equal(model.acquisition_cost(fresh), MODEL.acquisition_cost(fresh))
    assert str(model) == str(MODEL)
    assert (model.costs, model.n_estimators) == (COSTS, 2)
    assert model.acquire(fresh.iloc[0].__getitem__).is_complete
    assert model.to_record() == record


def test_arrays_and_numeric_labels_come_back(rng):
    """Labels 3 and 4 must not come back as text, nor columns with names."""
    X = rng.random((40, 3))
    model = PlainForest(costs=[1, 2, 3]).fit(X, rng.integers(3, 5, 40))
    read = PlainForest.from_record(json.loads(json.dumps(model.to_record(), allow_nan=False)))
    np.testing.assert_array_equal(read.predict(X), model.predict(X), strict=True)
    np.testing.assert_array_equal(read.acquisition_cost(X), model.acquisition_cost(X))
    assert not hasattr(read, "feature_names_in_")


SAVED = [
    CostComplexityPrune(RandomForestClassifier(2), costs=COSTS, random_state=0),
    CostComplexityPrune(DecisionTreeClassifier(), level=0.01, costs=COSTS, random_state=0),
    GreedyPrune(DecisionTreeClassifier(max_depth=4), costs=COSTS, n_removed=2, random_state=0),
    TruncatedForest(RandomForestClassifier(2), costs=COSTS, n_trees=1, random_state=0),
    BudgetPrune(DecisionTreeClassifier(max_depth=4), budget=20.0, costs=COSTS, random_state=0),
    BudgetedForestClassifier(budget=30.0, costs=COSTS, max_trees=3, alpha=[2.0], random_state=0),
    BudgetTreeClassifier(costs=COSTS, predictive="average", n_steps=200, random_state=0),
    BudgetedForestClassifier(
        impurity=PolynomialImpurity([1.0, 2.0], [[1, 1, 0], [0, 1, 2]]), max_depth=3, max_trees=2
    ),
]


@pytest.mark.parametrize("model", SAVED, ids=lambda model: model.model_name)
def test_every_estimator_is_loaded_as_it_was(model, tmp_path, rng):
    """What it tells of itself beside its forest must come back as well."""
    y = diagnoses(FRAME, rng)
    own = () if isinstance(model, BudgetTreeClassifier) else (FRAME[:30], y[:30])
    model = clone(model).fit(FRAME, y, *own)
    model.save(tmp_path / "model.json")
    read = bayescascade.load(tmp_path / "model.json")
    assert str(read) == str(model)
    assert read.to_record() == model.to_record()
    for name in model._own_record():
        np.testing.assert_array_equal(getattr(read, f"{name}_"), getattr(model, f"{name}_"))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("parameters", "n_trees"), 3, "a saved model's parameters must be max_depth"),
        (("costs", "default"), -1, "default must be a finite number >= 0, got -1"),
        (("costs", "groups"), {"blood": ["none"]}, "must be of the columns 'age', .* got 'none'"),
        (("encoding", "columns", 0), "sex", "must be different names"),
        (("classes", "values"), ["ill", "ill", "well"], "classes must be different"),
        (("classes", "values"), ["ill", "well"], "counts must be finite numbers of shape"),
        (("feature_shares",), [1.0], "feature_shares must be 8 numbers from 0 to 1"),
        (("feature_shares", 0), 1.5, "feature_shares must be 8 numbers from 0 to 1"),
        (("item_shares", 0), 0.123, "validation cost must follow from its shares"),
        (("validation_cost",), "3", "validation cost must follow from its shares"),
        (("forest", "feature", 0), 10, "a forest's feature must be integers from -1 to 9"),
    ],
)
def test_contradictions_are_named(place, value, message):
    """An edited file must not become a model of another forest or other costs."""
    record = copy.deepcopy(RECORD)
    at(record, place[:-1])[place[-1]] = value
    with pytest.raises(ModelFileError, match=message):
        PlainForest.from_record(record)


PLACES = list(places(RECORD))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_edit_is_refused_or_harmless(data):
    """Kernels read what a file says without looking: nothing that is accepted may mislead them."""
    record = copy.deepcopy(RECORD)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(PLACES))
        try:
            at(record, place[:-1])[place[-1]] = data.draw(JUNK)
        except (KeyError, IndexError, TypeError):
            continue
    try:
        model = PlainForest.from_record(record)
    except ModelFileError:
        return
    row = {name: None for name in FRAME}
    if list(model.feature_names_in_) == list(FRAME):
        assert np.isfinite(model.predict_proba(row)).all()
        assert model.acquire(row.__getitem__).is_complete
    str(model)
