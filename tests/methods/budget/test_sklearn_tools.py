"""Budgeted classifiers within pipelines and grid searches: costs go where the columns go."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayescascade.base.errors import ParameterError
from bayescascade.budget import (
    BudgetedForestClassifier,
    BudgetPrune,
    BudgetTreeClassifier,
    CostComplexityPrune,
    FeatureCosts,
    GreedyPrune,
    TruncatedForest,
)
from tests.methods.budget.fits import COSTS, PlainForest, diagnoses, patients

NUMBERS = ["age", "glucose", "iron", "scan"]
MODEL = BudgetedForestClassifier(
    costs=COSTS, max_trees=5, cost_exponent=0.0, alpha=2.0, random_state=0
)

ESTIMATORS = [
    PlainForest(n_estimators=3, random_state=0),
    BudgetedForestClassifier(max_trees=3, random_state=0),
    BudgetPrune(DecisionTreeClassifier(), random_state=0),
    BudgetTreeClassifier(n_steps=200, n_chains=1, random_state=0),
    CostComplexityPrune(RandomForestClassifier(2), random_state=0),
    GreedyPrune(DecisionTreeClassifier(), random_state=0),
    TruncatedForest(DecisionTreeClassifier(), random_state=0),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator, check):
    """Pipelines, searches and clones rely on each of them."""
    check(estimator)


@pytest.fixture
def rows(rng):
    frame = patients(rng, 150)
    return frame, diagnoses(frame, rng)


def test_a_grid_search_over_budgets(rows):
    """Clones must have the costs, and each fit its own budget."""
    search = GridSearchCV(MODEL, {"budget": [40.0, 45.0], "alpha": [0.0, 8.0]}, cv=3).fit(*rows)
    assert search.best_estimator_.validation_cost_ <= search.best_params_["budget"]
    assert search.best_estimator_.costs is not COSTS  # a clone has its own
    assert search.best_estimator_.costs == COSTS
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_rows_of_text_need_no_encoder(rows):
    """Folds of a frame with text must be learned from as they are."""
    scores = cross_val_score(MODEL, *rows, cv=4)
    assert scores.shape == (4,)
    assert scores.mean() > 0.38  # of three classes, by chance a third


def test_a_pipeline_that_keeps_names(rows):
    """Costs by name must reach the columns through its steps."""
    frame, y = rows
    pipeline = make_pipeline(
        SimpleImputer().set_output(transform="pandas"),
        StandardScaler().set_output(transform="pandas"),
        clone(MODEL),
    ).fit(frame[NUMBERS], y)
    last = pipeline[-1]
    assert last.feature_names_in_.tolist() == NUMBERS
    costs = last.acquisition_cost(pipeline[:-1].transform(frame[NUMBERS]))
    assert costs.max() == pytest.approx(2.1 + 15.5 + 22.75)


def test_a_pipeline_that_loses_names_says_so(rows):
    """Costs by name must not silently become costs of 1."""
    frame, y = rows
    with pytest.raises(ParameterError, match="costs must be of the columns 0, 1, 2, 3, got 'blood"):
        make_pipeline(StandardScaler(), clone(MODEL).set_params(costs={"blood": 2})).fit(
            frame[NUMBERS], y
        )
    by_index = clone(MODEL).set_params(costs=[0, 15.5, 2, 22.75])
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), NUMBERS)), by_index)
    assert pipeline.fit(frame, y)[-1].costs_ == FeatureCosts({0: 0, 1: 15.5, 2: 2, 3: 22.75})


def test_acquisitions_can_be_pickled(rows):
    """Joblib sends them to its workers so."""
    ended = clone(MODEL).fit(*rows).acquire(rows[0].iloc[0].__getitem__, max_cost=0.0)
    read = pickle.loads(pickle.dumps(ended))
    assert not read.is_complete
    assert read.resume(rows[0].iloc[0].__getitem__).is_complete
