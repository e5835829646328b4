"""What every budgeted classifier does, on a forest of scikit-learn as it is."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.budget import FeatureCosts
from tests.methods.budget import reference
from tests.methods.budget.fits import COSTS, PlainForest, diagnoses, patients


@pytest.fixture
def rows(rng):
    frame = patients(rng)
    return frame, diagnoses(frame, rng)


@pytest.fixture
def model(rows):
    return PlainForest(costs=COSTS, random_state=0, max_depth=4).fit(*rows)


def test_probabilities_are_those_of_the_forest(rng):
    """Users who come from scikit-learn must find its answers again."""
    X, y = rng.random((100, 4)), rng.integers(0, 3, 100)
    model = PlainForest(random_state=0).fit(X, y)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    rows = rng.random((50, 4))
    np.testing.assert_allclose(model.predict_proba(rows), forest.predict_proba(rows), atol=1e-12)
    np.testing.assert_array_equal(model.predict(rows), forest.predict(rows))


def test_a_row_pays_for_what_its_paths_read(model, rng):
    """A bill that differs from the features used would be paid by somebody."""
    frame = patients(rng, 40)
    used = model.features_used(frame)
    assert list(used.columns) == list(frame.columns)
    matrix = model._encoder.transform(frame, "")
    trees = reference.nested_trees(model.forest_)
    source = model._encoder.source
    costs = model.acquisition_cost(frame)
    for i, row in enumerate(matrix.tolist()):
        names = {frame.columns[source[column]] for column in reference.columns_used(trees, row)}
        assert names == set(used.columns[used.iloc[i]])
        expected = reference.row_cost(
            {**COSTS.costs, "ward": 1.0}, COSTS.groups, COSTS.default, sorted(names)
        )
        assert costs[i] == pytest.approx(expected, rel=1e-12)
    assert len(set(costs)) > 1


def test_levels_of_one_column_are_paid_once(rng):
    """A column of three levels is three of the matrix, and one test at the patient."""
    frame = pd.DataFrame({"ward": rng.choice(["a", "b", "c"], 100)})
    model = PlainForest(random_state=0).fit(frame, frame["ward"])
    assert model._encoder.source.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(model.acquisition_cost(frame), 1.0)
    np.testing.assert_array_equal(model.predict(frame), frame["ward"])


def test_validation_rows_measure_costs(rows, rng):
    """Costs of the training rows are too small for new ones."""
    other = patients(rng, 77)
    model = PlainForest(costs=COSTS, random_state=0).fit(*rows, other)
    assert model.validation_cost_ == pytest.approx(model.acquisition_cost(other).mean(), rel=1e-12)
    assert model.item_shares_ @ model.items_.costs == pytest.approx(model.validation_cost_)
    np.testing.assert_allclose(model.feature_shares_, model.features_used(other).mean(axis=0))
    on_training = PlainForest(costs=COSTS, random_state=0).fit(*rows)
    expected = on_training.acquisition_cost(rows[0]).mean()
    assert on_training.validation_cost_ == pytest.approx(expected, rel=1e-12)


def test_fitted_attributes(model, rows):
    """As in scikit-learn, and forgotten by the next fit."""
    assert model.n_features_in_ == 8
    assert model.feature_names_in_.tolist() == list(rows[0].columns)
    assert model.classes_.tolist() == ["ill", "sick", "well"]
    assert model.costs_ == COSTS
    assert PlainForest(costs={"age": 3}).fit(*rows).costs_ == FeatureCosts({"age": 3})
    assert set(model.predict(rows[0])) <= set(model.classes_)
    refitted = model.set_params(costs=None).fit(rows[0][["age", "iron"]].to_numpy(), rows[1])
    assert not hasattr(refitted, "feature_names_in_")


def test_arrays_give_arrays(rng):
    """Without names there is no frame to return."""
    X = rng.random((60, 3))
    model = PlainForest(costs=[1, 2, 0.5]).fit(X, X[:, 1] > 0.5)
    used = model.features_used(X)
    assert isinstance(used, np.ndarray)
    np.testing.assert_allclose(model.acquisition_cost(X), used @ [1, 2, 0.5])


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"scans": 2}, "costs must be of the columns 'age', .* got 'scans'"),
        ({"scan": -2}, r"costs\['scan'\] must be a finite number >= 0, got -2"),
        ([1, 2], "costs must have one cost per feature, 8, got 2"),
        ({"scan": float("nan")}, r"costs\['scan'\] must be a finite number >= 0, got nan"),
    ],
)
def test_costs_are_checked_before_anything_is_learned(rows, costs, message):
    """A misspelled or negative cost must not become a cost of 1 or a reward."""
    with pytest.raises(ParameterError, match=message):
        PlainForest(costs=costs).fit(*rows)


def test_labels_are_checked(rows):
    """Labels that do not fit the rows would teach nonsense, silently."""
    frame, y = rows
    with pytest.raises(DataError, match="y must have at least two classes, got one class"):
        PlainForest().fit(frame, ["ill"] * len(y))
    with pytest.raises(ParameterError, match="PlainForest requires y to be passed"):
        PlainForest().fit(frame, None)
    with pytest.raises(DataError, match="y must have a label per row of X, 200, got 199"):
        PlainForest().fit(frame, y[1:])
    with pytest.raises(DataError, match=r'y_val must have the classes of y, got "dead" in row 2'):
        PlainForest().fit(frame, y, frame[:2], ["ill", "dead"])
    with pytest.raises(DataError, match="y_val must have a label per row of X_val, 200, got 199"):
        PlainForest().fit(frame, y, frame, y[1:])
    with pytest.raises(ParameterError, match="X_val must be given with y_val, got None"):
        PlainForest().fit(frame, y, y_val=y)
    with pytest.raises(DataError, match='column "scan" is missing'):
        PlainForest().fit(frame, y, frame.drop(columns="scan"))


def test_validation_labels_may_be_needed(rows):
    """Numbered as the classes, or asked for by name."""
    frame, y = rows
    training = PlainForest()._read_training(frame, y, frame[:9], y[:9])
    np.testing.assert_array_equal(training.validation_labels, training.labels[:9])
    training = PlainForest()._read_training(frame, y, frame[:9])
    with pytest.raises(ParameterError, match=r'X_val and y_val must be given for errors="valid'):
        training.needed_validation_labels('errors="validation"')


def test_unfitted_models_say_so(rows):
    """In the way that scikit-learn's tools expect."""
    for method in ("predict", "predict_proba", "acquisition_cost", "features_used"):
        with pytest.raises(NotFittedError):
            getattr(PlainForest(), method)(rows[0])


def test_missing_cells_are_values(rng):
    """Patients whose tests were not made must still be classified."""
    frame = patients(rng, missing=0.2)
    model = PlainForest(costs=COSTS, random_state=0).fit(frame, diagnoses(frame, rng))
    fresh = patients(rng, 20, missing=0.5)
    assert np.isfinite(model.predict_proba(fresh)).all()
    assert (model.acquisition_cost(fresh) > 0).all()
