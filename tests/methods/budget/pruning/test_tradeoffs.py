"""The tradeoff that the data choose: prices in cents must not leave nothing of a forest."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import bayescascade
from bayescascade import (
    BudgetedForestClassifier,
    BudgetPruneClassifier,
    FeatureCosts,
    ParameterError,
)
from bayescascade.methods.budget.pruning import path
from tests.benchmarks.pruning_baselines import GreedyPrune


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
    model = BudgetPruneClassifier(costs=costs, random_state=0).fit(
        given[0], given[2], given[1], given[3]
    )
    assert 0 < model.forest_.n_splits < model.whole_forest_.n_splits
    majority = np.mean(y_test != y.mode()[0])
    error = np.mean(model.predict(X_test) != y_test)
    assert error < 0.75 * majority
    everything = RandomForestClassifier(40, criterion="entropy", max_features=None, random_state=0)
    numbers = [pd.get_dummies(frame) for frame in (X, X_test)]
    whole = np.mean(everything.fit(numbers[0], y).predict(numbers[1]) != y_test)
    assert error < whole + 2 * np.sqrt(whole * (1 - whole) / len(y_test))
    assert model.acquisition_cost(X_test).mean() < 0.8 * model.items_.costs.sum()
    assert "chosen on held-out rows" in str(model)
    assert model.duality_gap_ < 1e-9


@pytest.mark.parametrize("pruner", [BudgetPruneClassifier, GreedyPrune])
def test_the_unit_of_costs_does_not_matter(liver, pruner):
    """In cents, or in thousands, the same tests are worth their price."""
    costs, X, _, y, _ = liver
    own = dict(zip(X.columns, costs.resolve(list(X.columns)).costs.tolist(), strict=False))
    forest = RandomForestClassifier(15, max_features=None, random_state=0)
    models = [
        pruner(forest, costs={name: unit * cost for name, cost in own.items()}).fit(X, y)
        for unit in (1.0, 2.0**7, 2.0**-10)
    ]
    assert 0 < models[0].forest_.n_splits < models[0].whole_forest_.n_splits
    for model, unit in zip(models[1:], (2.0**7, 2.0**-10), strict=True):
        np.testing.assert_array_equal(model.forest_.feature, models[0].forest_.feature)
        assert model.tradeoff_ * unit == models[0].tradeoff_


def test_free_features_are_all_worth_it(rng):
    X = rng.normal(size=(200, 4))
    model = BudgetPruneClassifier(RandomForestClassifier(8, random_state=0), costs=[0.0] * 4)
    assert model.fit(X, X[:, 0] > 0).tradeoff_ == 0.0


def test_where_no_rows_can_decide_a_user_must(rng):
    """A tree that has seen all rows errs on none: whatever it costs would seem worth it."""
    X = rng.normal(size=(100, 3))
    y = X[:, 0] > 0
    with pytest.raises(ParameterError, match="tradeoff=None without y_val or a budget needs"):
        BudgetPruneClassifier(DecisionTreeClassifier()).fit(X, y)
    BudgetPruneClassifier(DecisionTreeClassifier()).fit(X[:50], y[:50], X[50:], y[50:])
    BudgetPruneClassifier(DecisionTreeClassifier(), budget=1.0).fit(X, y)


@pytest.fixture
def halves(rng):
    """Return rows to fit and validation rows, of labels with noise."""
    X = rng.normal(size=(400, 6))
    y = X[:, 0] + X[:, 1] + rng.normal(size=400) > 0
    return X[:200], y[:200], X[200:], y[200:]


@pytest.mark.parametrize(
    ("errors", "decider"),
    [("in_bag", "validation"), ("validation", "out of bag"), ("out_of_bag", "validation")],
)
def test_rows_that_prunings_were_fitted_to_decide_on_none(halves, monkeypatch, errors, decider):
    """A pruning looks best on the rows it was fitted to, and the choice would keep too much."""
    asked = []
    wrong_out_of_bag = path.wrong_out_of_bag

    def watched(*arguments):
        asked.append(len(arguments[1]))
        return wrong_out_of_bag(*arguments)

    monkeypatch.setattr(path, "wrong_out_of_bag", watched)
    forest = RandomForestClassifier(8, random_state=0)
    model = BudgetPruneClassifier(forest, errors=errors).fit(*halves)
    assert bool(asked) == (decider == "out of bag")
    assert "chosen on held-out rows" in str(model)


def test_where_all_other_rows_are_taken_a_user_must_decide(halves):
    """What to give instead is said: a tradeoff, a budget, or other rows."""
    X, y, X_val, y_val = halves
    bagged, tree = RandomForestClassifier(4, random_state=0), DecisionTreeClassifier(random_state=0)
    said = r'with errors="out_of_bag", tradeoff, budget, or y_val .* must be given, got None'
    with pytest.raises(ParameterError, match=said):
        BudgetPruneClassifier(bagged, errors="out_of_bag").fit(X, y)
    said = r'without other rows than y_val, of errors="validation", or a budget needs a forest'
    with pytest.raises(ParameterError, match=said):
        BudgetPruneClassifier(tree, errors="validation").fit(X, y, X_val, y_val)
    for given in ({"tradeoff": 0.01}, {"budget": 2.0}):
        BudgetPruneClassifier(bagged, errors="out_of_bag", **given).fit(X, y)
        text = str(
            BudgetPruneClassifier(tree, errors="validation", **given).fit(X, y, X_val, y_val)
        )
        assert "chosen on held-out rows" not in text


@pytest.mark.parametrize("is_fitted", [False, True])
def test_rows_that_chose_the_forest_choose_no_tradeoff(halves, tmp_path, is_fitted):
    """The validation rows chose alpha; on them the forest looks better than it is."""
    chosen = BudgetedForestClassifier(alpha=[0.0, 4.0], max_trees=3, random_state=0)
    plain = BudgetedForestClassifier(max_trees=3, random_state=0)
    if is_fitted:
        chosen.fit(*halves).save(tmp_path / "model.json")
        plain.fit(*halves)
        refused = [chosen, bayescascade.load(tmp_path / "model.json")]
    else:
        refused = [chosen, BudgetPruneClassifier(plain, tradeoff=0.0)]
    for forest in refused:
        with pytest.raises(ParameterError, match=r"than y_val, of a \w+ that may be chosen by"):
            BudgetPruneClassifier(forest).fit(*halves)
    assert "chosen on held-out rows" in str(BudgetPruneClassifier(plain).fit(*halves))
