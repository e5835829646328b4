"""Acquiring step by step: what is bought, in which order, and what is left when it ends early."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.exceptions import NotFittedError

from bayescascade import AcquisitionError, FeatureCosts
from bayescascade.base.errors import ParameterError
from tests.methods.budget.forests.fits import COSTS, PlainForest, diagnoses, patients

RNG = np.random.default_rng(20260)
FRAME = patients(RNG, 150, missing=0.1)
MODEL = PlainForest(costs=COSTS, random_state=0, max_depth=4).fit(FRAME, diagnoses(FRAME, RNG))
FRESH = patients(RNG, 60, missing=0.2)


class Clinic:
    """Sells the values of a row, and writes down who asked for what."""

    def __init__(self, row, fail_at=None, error=None):
        self.row, self.sold = row, []
        self.fail_at, self.error = fail_at, error

    def __call__(self, name):
        if len(self.sold) == self.fail_at:
            raise self.error
        self.sold.append(name)
        return self.row[name]


@given(st.integers(0, len(FRESH) - 1))
@settings(max_examples=25, deadline=None)
def test_only_what_paths_need_is_bought_and_once(i):
    """A patient must not be tested twice, nor for what no tree asks."""
    clinic = Clinic(FRESH.iloc[i])
    acquisition = MODEL.acquire(clinic)
    assert len(set(clinic.sold)) == len(clinic.sold)
    used = MODEL.features_used(FRESH[i : i + 1]).iloc[0]
    assert set(clinic.sold) == set(used.index[used])
    assert [step.feature for step in acquisition.steps] == clinic.sold
    # to the last digit
    assert acquisition.total_cost == MODEL.acquisition_cost(FRESH[i : i + 1])[0]
    expected = MODEL.predict_proba(FRESH[i : i + 1])[0]
    np.testing.assert_array_equal(acquisition.probabilities, expected)
    assert acquisition.prediction == MODEL.predict(FRESH[i : i + 1])[0]
    assert acquisition.is_complete
    assert acquisition.needed == ()


@given(
    seed=st.integers(0, 10**6),
    costs=st.lists(st.sampled_from([0, 0.1, 1, 2.5]), min_size=4, max_size=4),
)
@settings(max_examples=15, deadline=None)
def test_arrays_with_any_costs(seed, costs):
    """Bills of free features and groups must be those of `acquisition_cost`, to the last digit."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (80, 4)).astype(float)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 3) + rng.integers(0, 2, 80)
    groups = FeatureCosts({**dict(enumerate(costs)), "g": 0.7}, groups={"g": [0, 1]})
    model = PlainForest(costs=groups, n_estimators=4, random_state=0).fit(X, y)
    for i in range(5):
        acquisition = model.acquire(lambda index, row=X[i]: row[index])
        assert acquisition.total_cost == model.acquisition_cost(X[i : i + 1])[0]
        np.testing.assert_array_equal(acquisition.probabilities, model.predict_proba(X)[i])
        paid = [step.cost for step in acquisition.steps]
        assert sum(paid) == pytest.approx(acquisition.total_cost)


def test_steps_add_up_and_trees_come_to_rest():
    """What is shown after each step must follow from the steps before."""
    acquisition = MODEL.acquire(Clinic(FRESH.iloc[0]))
    total = 0.0
    waiting = MODEL.forest_.n_trees
    for step in acquisition.steps:
        total += step.cost
        assert step.total_cost == pytest.approx(total)
        assert step.n_waiting <= waiting
        waiting = step.n_waiting
        assert step.probabilities.sum() == pytest.approx(1.0)
        assert step.prediction == MODEL.classes_[step.probabilities.argmax()]
    assert waiting == 0
    frame = acquisition.to_frame()
    names = ["feature", "value", "cost", "total_cost", "prediction", "n_waiting"]
    assert list(frame.columns) == [*names, "ill", "sick", "well"]
    assert frame["total_cost"].iloc[-1] == acquisition.total_cost
    assert sorted(acquisition.values) == sorted(step.feature for step in acquisition.steps)


def test_probabilities_so_far_are_those_of_the_nodes_reached():
    """After each step they must be what a forest cut at the unknown splits would say."""
    acquisition = MODEL.acquire(Clinic(FRESH.iloc[1]))
    forest, source = MODEL.forest_, MODEL._encoder.source
    matrix = MODEL._matrix(FRESH[1:2])
    columns = list(FRESH.columns)
    known = set()
    expected = forest.pruned(np.zeros(forest.n_nodes, bool)).predict_proba(matrix)[0]
    np.testing.assert_allclose(acquisition.start_probabilities, expected, atol=1e-12)
    for step in acquisition.steps:
        known.add(columns.index(step.feature))
        is_kept = np.isin(source[forest.feature], list(known))
        expected = forest.pruned(is_kept).predict_proba(matrix)[0]
        np.testing.assert_allclose(step.probabilities, expected, atol=1e-12)


def test_the_next_feature_has_most_waiting_trees_per_cost():
    """Of stumps: free ones first, then by trees per cost, ties by column."""
    X = np.array([[0, 0, 0, 0], [1, 1, 1, 1]] * 20, float)
    y = [0, 1] * 20
    model = PlainForest(costs=[4.0, 1.0, 1.0, 0.0], n_estimators=30, random_state=0).fit(X, y)
    asked = model.forest_.feature[model.forest_.roots]
    n_asking = np.bincount(asked, minlength=4)
    assert n_asking.min() > 0  # of this seed
    order = [step.feature for step in model.acquire(lambda j: X[1, j]).steps]
    ratios = n_asking / np.array([4.0, 1.0, 1.0, 1e-9])
    assert order == sorted(range(4), key=lambda j: (-ratios[j], j))


def test_no_step_passes_the_most_allowed():
    """Who allows 20 must not be charged 21, nor stop where a needed feature is within 20."""
    full = MODEL.acquire(Clinic(FRESH.iloc[2]))
    for most in (0.0, 1.0, 3.0, 20.0, full.total_cost):
        clinic = Clinic(FRESH.iloc[2])
        acquisition = MODEL.acquire(clinic, max_cost=most)
        assert acquisition.total_cost <= most
        assert acquisition.is_complete == (most == full.total_cost)
        if not acquisition.is_complete:
            assert acquisition.status == "max_cost"
            assert acquisition.needed
            assert not set(acquisition.needed) & set(clinic.sold)
            bought = [*clinic.sold, *acquisition.needed[:1]]
            items = MODEL.items_
            used = np.isin(list(FRESH.columns), bought)[np.newaxis]
            assert items.total(items.paid(used))[0] > most


def test_an_acquisition_goes_on_where_it_ended():
    """Who has paid must not pay again, whatever stopped it."""
    full = MODEL.acquire(Clinic(FRESH.iloc[3]))
    clinic = Clinic(FRESH.iloc[3])
    part = MODEL.acquire(clinic, max_cost=5.0)
    assert 0 < len(part.steps) < len(full.steps)
    done = part.resume(clinic)
    assert len(clinic.sold) == len(full.steps) == len(set(clinic.sold))
    assert done.steps[: len(part.steps)] == part.steps
    assert done.total_cost == full.total_cost
    np.testing.assert_array_equal(done.probabilities, full.probabilities)
    assert done.resume(clinic).steps == done.steps
    assert part.resume(clinic, max_cost=5.0).status == "max_cost"


def test_ctrl_c_keeps_the_steps():
    """Values that were paid for must not be lost."""
    acquisition = MODEL.acquire(Clinic(FRESH.iloc[4], 2, KeyboardInterrupt()))
    assert acquisition.status == "interrupted"
    assert len(acquisition.steps) == 2
    assert acquisition.resume(Clinic(FRESH.iloc[4])).is_complete


def test_an_error_keeps_the_steps_and_its_cause():
    """A scanner that fails must not take the results before it along."""
    broken = TimeoutError("the scanner is busy")
    with pytest.raises(
        AcquisitionError,
        match=r"fetch\('\w+'\) raised TimeoutError: the scanner is busy; 3 features had been acq",
    ) as caught:
        MODEL.acquire(Clinic(FRESH.iloc[4], 3, broken))
    assert caught.value.__cause__ is broken
    acquisition = caught.value.acquisition
    assert (acquisition.status, len(acquisition.steps)) == ("failed", 3)
    assert acquisition.resume(Clinic(FRESH.iloc[4])).is_complete


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("age", "old", "column \"age\" must have a finite number, got 'old'"),
        ("ward", "south", 'column "ward" has the unknown level "south"'),
        ("age", [3], r"column \"age\" must have a single value, got \[3\]"),
    ],
)
def test_values_that_cannot_be_read(name, value, message):
    """A slip of the pen is no value: it is named, not paid for, and may be corrected."""
    row = FRESH.iloc[5].to_dict()
    with pytest.raises(AcquisitionError, match=message) as caught:
        MODEL.acquire(Clinic({**row, name: value}))
    acquisition = caught.value.acquisition
    assert name not in acquisition.values
    assert acquisition.resume(Clinic(row)).is_complete


def test_a_forest_without_splits_asks_for_nothing():
    """It knows its answer, and must not fail or buy."""
    model = PlainForest(n_estimators=2, random_state=0).fit(np.zeros((40, 2)), [0, 1, 1, 1] * 10)
    acquisition = model.acquire(Clinic({}))
    assert acquisition.is_complete
    assert acquisition.steps == ()
    assert acquisition.prediction == 1
    assert "0 of 2 features acquired" in str(acquisition)
    assert acquisition.to_frame().shape == (0, 8)


def test_wrong_arguments_are_refused():
    """By name, before anything is bought."""
    with pytest.raises(ParameterError, match="fetch must be a function of a feature's name, got 3"):
        MODEL.acquire(3)
    with pytest.raises(ParameterError, match="max_cost must be a finite number >= 0, got -1"):
        MODEL.acquire(Clinic({}), max_cost=-1)
    with pytest.raises(NotFittedError):
        PlainForest().acquire(Clinic({}))
