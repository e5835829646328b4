"""GreedyPrune, CostComplexityPrune and TruncatedForest, as BudgetPrune is compared with them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from bayescascade import FeatureCosts, cost_accuracy_curve
from bayescascade.data.given import GivenRows
from bayescascade.methods.budget.forests.forest import Forest
from tests.benchmarks.pruning_baselines import (
    CostComplexityPrune,
    GreedyPrune,
    TruncatedForest,
    best_levels,
    split_levels,
)

KNOBS = {GreedyPrune: "n_removed", CostComplexityPrune: "level", TruncatedForest: "n_trees"}


def rows(rng, n):
    frame = pd.DataFrame(rng.standard_normal((n, 5)), columns=list("abcde"))
    frame["site"] = rng.choice(["north", "south", "west"], n)
    y = np.where(frame["a"] + 0.5 * frame["b"] + 0.5 * rng.standard_normal(n) > 0, "ill", "well")
    return frame, y


@pytest.fixture(scope="module")
def data():
    return rows(np.random.default_rng(3), 300)


COSTS = FeatureCosts({"a": 3.0, "lab": 2.0, "site": 0.0}, groups={"lab": ["b", "c"]})
FOREST = RandomForestClassifier(6, max_features=None, max_depth=5, random_state=0)


def fitted(baseline, data, **settings):
    X, y = data
    return baseline(FOREST, costs=COSTS, **settings).fit(X[:200], y[:200], X[200:])


@pytest.mark.parametrize("baseline", KNOBS)
def test_a_path_leads_from_the_whole_forest_to_less(baseline, data):
    """Each of its classifiers stands alone, and costs no more than the one before."""
    X, y = data
    path = fitted(baseline, data).path()
    if baseline is TruncatedForest:
        assert [model.n_trees_ for model in path] == [6, 5, 4, 3, 2, 1, 0]
    costs = [model.validation_cost_ for model in path]
    assert np.all(np.diff(costs) <= 1e-12)
    assert costs[-1] < costs[0]
    whole = clone(FOREST).fit(path[0]._encoder.transform(GivenRows(X[:200]), "test"), y[:200])
    matrix = path[0]._encoder.transform(GivenRows(X), "test")
    np.testing.assert_allclose(path[0].predict_proba(X), whole.predict_proba(matrix), atol=1e-12)
    for model in path[:3]:
        assert model.acquisition_cost(X[200:]).mean() == pytest.approx(model.validation_cost_)
        strength = KNOBS[baseline]
        assert getattr(model, strength) == getattr(model, f"{strength}_")
        again = fitted(baseline, data, **{strength: getattr(model, strength)})
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert len(cost_accuracy_curve(path, X, y).points) == len(path)


@pytest.mark.parametrize("baseline", KNOBS)
def test_a_budget_is_kept_and_used(baseline, data):
    """As much is left of the forest as is within the budget."""
    model = fitted(baseline, data)
    values = model._values()
    costs = np.array([model._cost(value) for value in values])
    budgets = [costs[0] + 1, float(np.median(costs)), float(costs[-1])]
    for budget, within in zip(budgets, model.path(budgets=budgets), strict=True):
        expected = values[int(np.flatnonzero(costs <= budget + 1e-9)[0])]
        assert getattr(within, f"{KNOBS[baseline]}_") == expected
        assert within.validation_cost_ <= budget + 1e-9
        again = fitted(baseline, data, budget=budget)
        assert again.validation_cost_ == within.validation_cost_
        assert within.budget == budget


def test_levels_are_tuned_on_rows_out_of_bag(data):
    """Each tree its own: trees that are grown to the last row gain by it."""
    model = fitted(CostComplexityPrune, data)
    assert model.level_.shape == (6,)
    assert len(set(model.level_)) > 1
    assert model.forest_.n_splits < model.whole_forest_.n_splits / 2
    X, y = rows(np.random.default_rng(4), 2000)
    errors = [(one.predict(X) != y).mean() for one in (model, *model.path([0.0, 0.5]))]
    assert errors[0] < errors[1] < errors[2]


@pytest.fixture
def matrix(rng):
    X = rng.standard_normal((400, 6)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] + rng.standard_normal(400) > 0)
    return X, y


@pytest.mark.parametrize("level", [0.0, 0.000987, 0.00217, 0.0143, 0.5])
def test_a_forest_pruned_at_a_level_is_that_of_scikit_learn(matrix, level):
    """Its `ccp_alpha` is the baseline that users know."""
    X, y = matrix
    forest = Forest.from_sklearn(RandomForestClassifier(8, random_state=0).fit(X, y))
    expected = RandomForestClassifier(8, random_state=0, ccp_alpha=level).fit(X, y)
    pruned = forest.pruned(split_levels(forest) > level)
    assert pruned.n_nodes == Forest.from_sklearn(expected).n_nodes
    np.testing.assert_allclose(pruned.predict_proba(X), expected.predict_proba(X), atol=1e-12)


def wrong_rows(forest, X, y):
    """Return how many rows each tree gets wrong."""
    label = forest.counts.argmax(axis=1)
    return (label[forest.apply(X)] != y[:, np.newaxis]).sum(axis=0)


def test_the_best_level_errs_least_on_the_other_rows(matrix):
    """Each tree is tuned by itself: looked up in a list of all its prunings."""
    X, y = matrix
    forest = Forest.from_sklearn(RandomForestClassifier(8, random_state=2).fit(X[:200], y[:200]))
    others, labels = X[200:], y[200:]
    leaves = forest.apply(others)
    counts = np.zeros((forest.n_nodes, forest.n_classes))
    for row, label in enumerate(labels):
        for leaf in leaves[row]:
            node = leaf
            while node >= 0:
                counts[node, label] += 1
                node = forest.parents[node]
    levels = split_levels(forest)
    tuned = best_levels(forest, levels, counts)
    tree_of = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_starts))
    errors = wrong_rows(forest.pruned(levels > tuned[tree_of]), others, labels)
    smallest = np.full(forest.n_trees, np.inf)
    highest = np.zeros(forest.n_trees)
    for level in np.unique(levels):
        tried = wrong_rows(forest.pruned(levels > level), others, labels)
        highest[tried <= smallest] = level
        smallest = np.minimum(smallest, tried)
    np.testing.assert_array_equal(errors, smallest)
    assert errors.sum() < wrong_rows(forest, others, labels).sum()
    for tree in range(forest.n_trees):  # `highest` may lie between two levels of the tree's own
        own = levels[tree_of == tree]
        assert tuned[tree] == own[own <= highest[tree]].max()
