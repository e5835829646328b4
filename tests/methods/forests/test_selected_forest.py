"""SelectedForestClassifier: what is bought for every row, and that a budget holds for each."""

import numpy as np
import pandas as pd
import pytest

from bayescascade import (
    BudgetPruneClassifier,
    FeatureCosts,
    SelectedForestClassifier,
    load,
)
from bayescascade.methods.forests.selected_forest import _purchases, _selected


@pytest.fixture(scope="module")
def patients():
    """Return rows of an examination (two readings) that tells most, and cheap, vague answers."""
    rng = np.random.default_rng(7)
    ill = rng.random(500) < 0.5
    columns = {
        "age": ill + 2.0 * rng.normal(size=500),
        "heart": 2.0 * ill + rng.normal(size=500),
        "vessel": 2.0 * ill + rng.normal(size=500),
        "blood": ill + 2.0 * rng.normal(size=500),
        "noise": rng.normal(size=500),
    }
    costs = FeatureCosts(
        {"age": 1.0, "heart": 1.0, "vessel": 1.0, "scan": 50.0, "blood": 30.0, "noise": 20.0},
        groups={"scan": ["heart", "vessel"]},
    )
    return pd.DataFrame(columns), np.where(ill, "ill", "well"), costs


@pytest.mark.slow
def test_the_members_of_a_group_are_bought_together_for_all(patients):
    """The examination is worth its price; once it is paid for, both readings nearly are free."""
    X, y, costs = patients
    model = SelectedForestClassifier(costs=costs, budget=60.0, random_state=0).fit(X[:300], y[:300])
    assert sorted(model.selected_) == ["age", "heart", "vessel"]
    assert model.acquisition_cost(X).max() <= 53.0 + 1e-9
    assert "budget 60   at most 53 for any row" in str(model)
    poor = SelectedForestClassifier(costs=costs, budget=35.0, random_state=0).fit(X[:300], y[:300])
    assert "heart" not in poor.selected_
    errors = [np.mean(one.predict(X[300:]) != y[300:]) for one in (model, poor)]
    assert errors[0] < 0.15 < errors[1]


@pytest.mark.slow
def test_buying_ends_where_nothing_more_helps(patients):
    """However much there is to spend: the rest costs twice what tells all."""
    X, _, costs = patients
    model = SelectedForestClassifier(costs=costs, random_state=0).fit(X, X["noise"] > 0)
    assert model.selected_ == ["age", "noise"]


def test_a_budget_below_every_price_buys_nothing(patients):
    """It says what would buy something."""
    X, y, costs = patients
    model = SelectedForestClassifier(costs=costs, budget=0.5, random_state=0).fit(X, y)
    assert model.selected_ == []
    assert "budget 0.5 buys nothing, and the cheapest feature, age, costs 1;" in (
        model.nothing_read_text
    )


def test_a_selected_forest_is_pruned_by_rows_that_did_not_select_it(patients, tmp_path):
    """Bags select, so that validation rows may still say how much of it is worth its cost."""
    X, y, costs = patients
    forest = SelectedForestClassifier(costs=costs, budget=60.0, n_trees=10, random_state=0)
    given = X[:300], y[:300], X[300:], y[300:]
    pruned = BudgetPruneClassifier(forest, costs=costs).fit(*given)
    assert 0 < pruned.validation_cost_ <= pruned.estimator_.validation_cost_
    pruned.estimator_.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.selected_ == pruned.estimator_.selected_
    assert str(again) == str(pruned.estimator_)


def test_lazy_choice_is_greedy_choice(rng):
    """Of returns that diminish: each time what lessens the loss most, within the budget."""
    costs = FeatureCosts({"a": 2.0, "b": 3.0, "c": 2.0, "d": 4.0, "g": 1.0}, groups={"g": ["c"]})
    items = costs.resolve(["a", "b", "c", "d"])
    covered = [set(rng.integers(0, 20, 6).tolist()) for _ in range(4)]

    def loss(features):
        return -float(len(set().union(*(covered[one] for one in features))))

    order, spent = [], 0.0
    prices = [2.0, 3.0, 3.0, 4.0]
    while True:
        within = [one for one in range(4) if one not in order and spent + prices[one] <= 9.0]
        gains = {one: loss(order) - loss([*order, one]) for one in within}
        if not gains or max(gains.values()) <= 0:
            break
        best = max(within, key=gains.__getitem__)
        order, spent = [*order, best], spent + prices[best]
    chosen = _selected(items, 9.0, loss, 0.0)
    assert loss(chosen) == loss(order)
    assert frozenset([2]) in _purchases(items)
