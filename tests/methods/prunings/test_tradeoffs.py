"""The tradeoff that the data choose: prices in cents must not leave nothing of a forest."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from bayescascade import FeatureCosts, ParameterError
from bayescascade.budget import BudgetPrune


@pytest.fixture(scope="module")
def liver():
    """Return costs, rows to learn from and to test on, and the labels of both."""
    X = pd.read_csv("data/liver_clinic.csv")
    y = X.pop("outcome")
    costs = FeatureCosts.read_csv("data/liver_clinic_costs.csv")
    return costs, *train_test_split(X, y, test_size=0.3, random_state=0)


@pytest.mark.parametrize("is_given", [False, True], ids=["out of bag", "validation"])
def test_defaults_keep_what_predicts_and_save_the_rest(liver, is_given):
    """Of the liver clinic's tests: better than the commonest outcome, for half of the costs."""
    costs, X, X_test, y, y_test = liver
    given = train_test_split(X, y, random_state=0) if is_given else [X, None, y, None]
    model = BudgetPrune(costs=costs, random_state=0).fit(given[0], given[2], given[1], given[3])
    assert 0 < model.forest_.n_splits < model.whole_forest_.n_splits
    majority = np.mean(y_test != y.mode()[0])
    error = np.mean(model.predict(X_test) != y_test)
    assert error < 0.75 * majority
    everything = RandomForestClassifier(40, criterion="entropy", max_features=None, random_state=0)
    numbers = [pd.get_dummies(frame) for frame in (X, X_test)]
    whole = np.mean(everything.fit(numbers[0], y).predict(numbers[1]) != y_test)
    assert error < whole + 2 * np.sqrt(whole * (1 - whole) / len(y_test))
    assert model.acquisition_cost(X_test).mean() < 0.8 * model.items_.costs.sum()
    assert "chosen on other rows" in str(model)
    assert model.duality_gap_ < 1e-9


def test_the_unit_of_costs_does_not_matter(liver):
    """In cents, or in thousands, the same tests are worth their price."""
    costs, X, _, y, _ = liver
    own = dict(zip(X.columns, costs.resolve(list(X.columns)).costs.tolist(), strict=False))
    forest = RandomForestClassifier(15, max_features=None, random_state=0)
    models = [
        BudgetPrune(forest, costs={name: unit * cost for name, cost in own.items()}).fit(X, y)
        for unit in (1.0, 2.0**7, 2.0**-10)
    ]
    assert models[0].kept_.any()
    for model, unit in zip(models[1:], (2.0**7, 2.0**-10), strict=True):
        np.testing.assert_array_equal(model.kept_, models[0].kept_)
        assert model.tradeoff_ * unit == models[0].tradeoff_


def test_free_features_are_all_worth_it(rng):
    X = rng.normal(size=(200, 4))
    model = BudgetPrune(RandomForestClassifier(8, random_state=0), costs=[0.0] * 4)
    assert model.fit(X, X[:, 0] > 0).tradeoff_ == 0.0


def test_where_no_rows_can_decide_a_user_must(rng):
    """A tree that has seen all rows errs on none: whatever it costs would seem worth it."""
    X = rng.normal(size=(100, 3))
    y = X[:, 0] > 0
    with pytest.raises(ParameterError, match="tradeoff=None without y_val or a budget needs"):
        BudgetPrune(DecisionTreeClassifier()).fit(X, y)
    BudgetPrune(DecisionTreeClassifier()).fit(X[:50], y[:50], X[50:], y[50:])
    BudgetPrune(DecisionTreeClassifier(), budget=1.0).fit(X, y)
