"""What every budgeted classifier does, most of it on a forest of scikit-learn as it is."""

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayescascade
from bayescascade import BudgetedForestClassifier, FeatureCosts, PolynomialImpurity
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.given import GivenRows
from tests.methods.budget.forests import reference
from tests.methods.budget.forests.fits import COSTS, PlainForest, diagnoses, patients


@pytest.fixture
def rows(rng):
    frame = patients(rng)
    return frame, diagnoses(frame, rng)


@pytest.fixture
def model(rows):
    return PlainForest(costs=COSTS, random_state=0, max_depth=4).fit(*rows)


def test_a_row_pays_for_what_its_paths_read(model, rng):
    """A bill that differs from the features used would be paid by somebody."""
    frame = patients(rng, 40)
    used = model.features_used(frame)
    assert list(used.columns) == list(frame.columns)
    matrix = model._encoder.transform(GivenRows(frame), "")
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


def test_arrays_give_arrays(rng):
    """Without names there is no frame to return."""
    X = rng.random((60, 3))
    model = PlainForest(costs=[1, 2, 0.5]).fit(X, X[:, 1] > 0.5)
    used = model.features_used(X)
    assert isinstance(used, np.ndarray)
    np.testing.assert_allclose(model.acquisition_cost(X), used @ [1, 2, 0.5])


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


# -- within the tools of scikit-learn

NUMBERS = ["age", "glucose", "iron", "scan"]
GROWN = BudgetedForestClassifier(
    costs=COSTS, max_trees=5, cost_exponent=0.0, alpha=2.0, random_state=0
)


@pytest.mark.slow
def test_a_grid_search_over_budgets(rows):
    """Clones must have the costs, and each fit its own budget."""
    search = GridSearchCV(GROWN, {"budget": [40.0, 45.0], "alpha": [0.0, 8.0]}, cv=3).fit(*rows)
    assert search.best_estimator_.validation_cost_ <= search.best_params_["budget"]
    assert search.best_estimator_.costs is not COSTS  # a clone has its own
    assert search.best_estimator_.costs == COSTS
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_pipeline_that_loses_names_says_so(rows):
    """Costs by name must not silently become costs of 1."""
    frame, y = rows
    with pytest.raises(ParameterError, match="costs must be of the columns 0, 1, 2, 3, got 'blood"):
        make_pipeline(StandardScaler(), clone(GROWN).set_params(costs={"blood": 2})).fit(
            frame[NUMBERS], y
        )
    by_index = clone(GROWN).set_params(costs=[0, 15.5, 2, 22.75])
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), NUMBERS)), by_index)
    assert pipeline.fit(frame, y)[-1].costs_ == FeatureCosts({0: 0, 1: 15.5, 2: 2, 3: 22.75})


def test_acquisitions_can_be_pickled(rows):
    """Joblib sends them to its workers so."""
    ended = clone(GROWN).fit(*rows).acquire(rows[0].iloc[0].__getitem__, max_cost=0.0)
    read = pickle.loads(pickle.dumps(ended))
    assert not read.is_complete
    assert read.resume(rows[0].iloc[0].__getitem__).is_complete


# -- saved, and forged

RNG = np.random.default_rng(31)
FRAME = patients(RNG, 60)
MODEL = PlainForest(costs=COSTS, n_estimators=2, max_depth=2, random_state=0)
MODEL.fit(FRAME, diagnoses(FRAME, RNG))


def test_a_polynomial_comes_back(tmp_path):
    """It is the parameter that is no number."""
    polynomial = PolynomialImpurity([1.0, 2.0], [[1, 1, 0], [0, 1, 2]])
    model = BudgetedForestClassifier(impurity=polynomial, max_depth=3, max_trees=2)
    model.fit(FRAME, diagnoses(FRAME, RNG)).save(tmp_path / "model.json")
    assert bayescascade.load(tmp_path / "model.json").to_record() == model.to_record()


def test_arrays_and_numeric_labels_come_back(rng):
    """Labels 3 and 4 must not come back as text, nor columns with names."""
    X = rng.random((40, 3))
    model = PlainForest(costs=[1, 2, 3]).fit(X, rng.integers(3, 5, 40))
    read = PlainForest.from_record(json.loads(json.dumps(model.to_record(), allow_nan=False)))
    np.testing.assert_array_equal(read.predict(X), model.predict(X), strict=True)
    np.testing.assert_array_equal(read.acquisition_cost(X), model.acquisition_cost(X))
    assert not hasattr(read, "feature_names_in_")
