"""What a budget buys is better than nothing on rows that it was not learned from, or not bought."""

import copy

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from bayescascade import BudgetedForestClassifier, BudgetPruneClassifier
from bayescascade.costs import choice
from bayescascade.methods.budget.forests.base import ForestClassifier
from tests.benchmarks.pruning_baselines import GreedyPrune, TruncatedForest

FOREST = RandomForestClassifier(7, random_state=0)
MODELS = [
    BudgetedForestClassifier(budget=4.0, max_trees=5, alpha=0.0, random_state=0),
    BudgetPruneClassifier(FOREST, budget=3.0),
    GreedyPrune(FOREST, budget=3.0),
    TruncatedForest(FOREST, budget=4.0),
]
SEEDS = range(4)


def table(seed, is_learnable, n_rows=160):
    """Return four numbers a row, and labels of which 65 % are "a"; perhaps the first tells them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    by = X[:, 0] if is_learnable else rng.normal(size=n_rows)
    return X, np.where(by < np.quantile(by, 0.65), "a", "b")


def is_worth_it(model, X, y):
    """Return whether a model is better than "a" by more than chance, or free and says that."""
    said = model.predict(X)
    if model.validation_cost_ == 0.0:
        return bool((said == "a").all() and (model.acquisition_cost(X) == 0.0).all())
    gains = (y != "a") * 1.0 - (said != y)
    return bool(gains.mean() > gains.std(ddof=1) / np.sqrt(len(y)))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_validation_rows_find_what_is_bought_better_than_nothing(model, monkeypatch):
    """Of labels that nothing tells, a budget bought errors; the twin that only fits still does."""

    def are_worth_it():
        found = []
        for seed in SEEDS:
            X, y = table(seed, is_learnable=False)
            fitted = copy.deepcopy(model).fit(X[:80], y[:80], X[80:], y[80:])
            found.append(is_worth_it(fitted, X[80:], y[80:]))
        return found

    assert all(are_worth_it())
    monkeypatch.setattr(ForestClassifier, "_settle", lambda *_: None)
    assert not all(are_worth_it())


@pytest.mark.slow
@pytest.mark.parametrize("few_rows", [1000, 0], ids=["crossed", "out of bag"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_without_validation_rows_the_others_decide(model, few_rows, monkeypatch):
    """What can be learned is bought, and noise is not, on most tables; the print says how."""
    monkeypatch.setattr(choice, "FEW_ROWS", few_rows)
    rows = "rows in 5-fold cross-validation" if few_rows else "out-of-bag rows"
    bought = {True: 0, False: 0}
    for seed in SEEDS:
        for is_learnable in bought:
            fitted = copy.deepcopy(model).fit(*table(seed, is_learnable))
            assert fitted.choice_.rows == rows
            assert (fitted.validation_cost_ > 0.0) == fitted.choice_.is_better
            bought[is_learnable] += fitted.choice_.is_better
            printed = " ".join(str(fitted).split())
            is_better = fitted.choice_.is_better
            how = "better than buying nothing" if is_better else "not better than the most common"
            assert how in printed
            assert f"on {fitted.choice_.n_rows} {rows}" in printed
    assert bought[True] == len(SEEDS)
    assert bought[False] <= 1


def test_cross_validation_judges_each_row_by_the_others(monkeypatch):
    """If the folds leaked, a forest that knows its own rows by heart would look perfect."""
    monkeypatch.setattr(choice.PurchaseChoice, "is_better", True)
    X, y = table(0, is_learnable=False)
    fitted = copy.deepcopy(MODELS[3]).fit(X, y)
    assert (fitted.predict(X) != y).mean() < 0.15
    assert fitted.choice_.error > 0.25
    again = copy.deepcopy(MODELS[3]).fit(X, y)
    assert again.choice_ == fitted.choice_


def test_each_of_a_path_of_budgets_is_compared():
    """The command prunes one forest for all budgets: each must be what its budget alone gives."""
    X, y = table(1, is_learnable=True)
    alone = [BudgetPruneClassifier(FOREST, budget=amount).fit(X, y) for amount in (0.5, 3.0)]
    path = alone[1].path(budgets=[0.5, 3.0])
    assert [one.choice_ for one in path] == [one.choice_ for one in alone]
    assert [one.validation_cost_ for one in path] == [one.validation_cost_ for one in alone]


def test_cross_validation_chooses_among_growths():
    """Without validation rows, a forest of the thesis's one setting left costly features unread."""
    rng = np.random.default_rng(2)
    X, y = table(2, is_learnable=True)
    X[:, 1] = X[:, 0] + 3.0 * rng.normal(size=len(X))
    grown = BudgetedForestClassifier(
        costs=[30.0, 1.0, 1.0, 1.0], budget=31.0, alpha=0.0, cost_exponent=[4.0, 0.0],
        max_features=None, max_trees=3, max_depth=2, random_state=0,
    ).fit(X, y)  # fmt: skip
    errors = [one.error for one in grown.alternatives_]
    assert grown.cost_exponent_ == 0.0
    assert grown.choice_.error == min(errors) < max(errors)


@pytest.mark.slow
def test_a_class_of_one_row_can_be_crossed():
    """Its fold learns without it; and with one class alone, nothing can be."""
    X, y = table(3, is_learnable=True)
    y = y.astype("<U4")
    y[5] = "rare"
    assert BudgetPruneClassifier(FOREST, budget=3.0).fit(X, y).choice_.is_better
    y = np.where(np.arange(len(X)) == 5, "b", "a")
    for model in MODELS:
        assert not copy.deepcopy(model).fit(X, y).validation_cost_


def test_a_fitted_forest_is_judged_by_the_rows_out_of_its_bags():
    """It cannot be grown anew on folds; of other rows than its own, nothing is known."""
    X, y = table(0, is_learnable=True)
    fitted = copy.deepcopy(FOREST).fit(X, y)
    assert BudgetPruneClassifier(fitted, budget=3.0).fit(X, y).choice_.rows == "out-of-bag rows"
    assert BudgetPruneClassifier(fitted, budget=3.0).fit(X[:90], y[:90]).choice_ is None
