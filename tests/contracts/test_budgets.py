"""Whatever learns within budgets: rows pay for what is read of them, and limits are kept."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier

from bayescascade import (
    AutoBudgetClassifier,
    BudgetTreeClassifier,
    CostSensitiveTreeClassifier,
    CostWeightedLogisticClassifier,
    GatedSensorsClassifier,
    GreedyMiserClassifier,
    MarginNeighborsClassifier,
    ParameterError,
    SubmodularTreeClassifier,
)
from bayescascade.methods.budget.listed import BUDGET_LEARNERS
from bayescascade.methods.budget.single_trees import estimators as cost_trees
from tests.contracts.listed import COSTS, ESTIMATORS, fitted, rows

ACQUIRING = [name for name, case in ESTIMATORS.items() if hasattr(case.make, "acquire")]
OF_BUDGETS = [  # the path of "prune" is one of tradeoffs
    name for name in ACQUIRING if hasattr(ESTIMATORS[name].make, "path") and name != "prune"
]


@pytest.mark.parametrize("name", ACQUIRING)
def test_rows_pay_for_what_is_read_of_them(name):
    """Step by step they come to the same, and what is not read changes nothing."""
    model, frame = fitted(name), rows()[:40]
    read = np.asarray(model.features_used(frame))
    chances, costs = model.predict_proba(frame), model.acquisition_cost(frame)
    assert 0 < read.mean() < 1
    assert_allclose(costs, read @ [COSTS[column] for column in frame])
    other = frame.where(read, rows()[::-1][:40].set_axis(frame.index))
    assert not other.equals(frame)
    assert_array_equal(model.predict_proba(other), chances)
    for row in range(12):
        acquired = model.acquire(frame.iloc[row].__getitem__)
        assert acquired.is_complete
        assert acquired.total_cost == costs[row]
        assert_allclose(acquired.probabilities, chances[row])
        assert {step.feature for step in acquired.steps} == {*frame.columns[read[row]]}


@pytest.mark.parametrize("name", OF_BUDGETS)
def test_budgets_are_kept_by_a_path(name):
    """On the rows that choose; for nothing, nothing is read, and everybody is of one class."""
    model, limits = fitted(name), [0.0, 1.0, 3.0, 6.0]
    path = model.path(limits)
    costs = [each.validation_cost_ for each in path]
    assert costs == sorted(costs)
    assert (np.array(costs) <= limits).all()
    assert path[0].acquisition_cost(rows()).max() == 0
    assert len(set(path[0].predict(rows()))) == 1
    with pytest.raises(ParameterError, match="budget must be"):
        model.within(-1)


# -- every way to spend a budget -------------------------------------------------------------------

PRICES = [1.0, 1000.0, 2.0]
AMOUNTS = [0.0, 0.5, 1.2, 2.5, 1000.5, 2000.0]
SLOW = ("adapt-gbrt", "adapt-lstsq", "fmcc")


def within_budgets(name, prices):
    """Return the unfitted estimator of a method, with quick parameters."""
    given = {"costs": prices, "random_state": 0}
    if name == "sensors":
        return GatedSensorsClassifier(**given, n_steps=40)
    if name == "auto":
        methods = ["l1", "forest", "tree"]
        return AutoBudgetClassifier(**given, methods=methods, n_jobs=1, time_limit=60)
    listed = BUDGET_LEARNERS[name]
    model = listed.made(**{**listed.given, **listed.of_trees(10), **given})
    quick = {"n_jobs": 1, "n_steps": 300, "n_chains": 1}
    names = model.get_params()
    return model.set_params(**{key: value for key, value in quick.items() if key in names})


def priced(seed):
    """Return rows whose cheapest column says most, and whose dearest says less."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    return X, np.where(X @ [2.0, 1.0, 1.0] + 0.7 * rng.normal(size=400) > 0.3, "ill", "well")


def dominating(name, prices):
    """Return the columns that are cheaper and better than the first purchase on a path.

    A column is better if the tree of it alone errs less on the validation rows, by more than a
    standard error of the difference. No budget may be refused; without a purchase all is free.
    """
    X, y = priced(0)
    X_val, y_val = priced(1)
    path = list(within_budgets(name, prices).fit_budgets(AMOUNTS, X, y, X_val, y_val))
    assert [amount for amount, _ in path] == AMOUNTS
    for _, model in path[:2]:
        assert len(set(model.predict(X_val))) == 1
        assert model.validation_cost_ == model.acquisition_cost(X).max() == 0.0
        assert "all rows get the same" in model.nothing_read_text
    _, first = next(one for one in path if one[1].validation_cost_ > 0.0)
    read = first.sensor_shares_ if name == "sensors" else first.feature_shares_
    spent, wrong = float(read @ PRICES), first.predict(X_val) != y_val
    found = []
    for column, price in enumerate(PRICES):
        alone = DecisionTreeClassifier(max_depth=3).fit(X[:, [column]], y)
        worse = wrong * 1.0 - (alone.predict(X_val[:, [column]]) != y_val)
        error = worse.std(ddof=1) / np.sqrt(len(worse))
        if price < spent * (1 - 1e-9) and worse.mean() > error:
            found.append(column)
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
        for name in ("sensors", "auto", *BUDGET_LEARNERS)
    ],
)
def test_no_first_purchase_is_dear_and_bad(name, monkeypatch):
    """Gated sensors began with the dearest column, and four methods refused small budgets."""
    monkeypatch.setattr(cost_trees, "_NATS", (4.0, 40.0))
    assert dominating(name, PRICES) == []


def test_a_first_purchase_by_wrong_prices_is_found():
    """The broken twin takes the dearest column for the cheapest."""
    assert 0 in dominating("l1", [1000.0, 1.0, 2.0])


WEIGHTED = [
    BudgetTreeClassifier, GreedyMiserClassifier, CostWeightedLogisticClassifier,
    MarginNeighborsClassifier,
]  # fmt: skip


@pytest.mark.parametrize("make", WEIGHTED, ids=lambda make: make.__name__)
def test_buying_nothing_is_the_class_of_most_weight(make, monkeypatch):
    """Rows of "b" count ten times, so "b" is what is predicted if nothing is bought."""
    monkeypatch.setattr(cost_trees, "_NATS", (4.0,))
    X = np.random.default_rng(0).normal(size=(160, 4))
    y = np.where(X[:, 0] < np.quantile(X[:, 0], 0.65), "a", "b")
    model = make(budget=3.0, random_state=0)
    weighted = model.fit(X, y, sample_weight=np.where(y == "b", 10.0, 1.0)).choice_
    plain = model.fit(X, y).choice_
    assert (weighted.commonest, plain.commonest) == ("b", "a")
    assert weighted.error_of_nothing == pytest.approx(65 / (65 + 350), abs=0.03)
    assert plain.error_of_nothing == pytest.approx(0.35, abs=0.03)


SPLIT = [SubmodularTreeClassifier, CostSensitiveTreeClassifier, CostWeightedLogisticClassifier]


@pytest.mark.parametrize("n_weighted", [1, 2, 40])
@pytest.mark.parametrize("make", SPLIT, ids=lambda make: make.__name__)
def test_rows_without_weight_are_neither_learned_from_nor_held_out(make, n_weighted):
    """Where all others were held out, nothing was left to learn from."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    counts = np.random.default_rng(1).permutation(60) < n_weighted
    model = make(budget=2.0, random_state=18).fit(X, y, sample_weight=counts.astype(float))
    found, choice = model.predict_proba(X), model.choice_
    if n_weighted < 40:
        assert choice is None
        assert len(np.unique(found, axis=0)) == 1
        return
    model.fit(X[counts], y[counts])
    np.testing.assert_allclose(found, model.predict_proba(X))
    assert choice == model.choice_


@pytest.mark.parametrize("make", SPLIT, ids=lambda make: make.__name__)
def test_a_refit_that_buys_nothing_forgets_the_tree_before(make):
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = X[:, 0] > 0
    model = make(budget=3.0, random_state=0).fit(X, y).set_params(budget=0.0).fit(X, y)
    fresh = make(budget=0.0, random_state=0).fit(X, y)
    for name in ("tradeoff_", "penalty_", "log_posterior_", "posterior_"):
        assert hasattr(model, name) == hasattr(fresh, name)
        assert (getattr(model, name, None) is None) == (getattr(fresh, name, None) is None)


@pytest.mark.parametrize("make", WEIGHTED[1:3], ids=lambda make: make.__name__)
def test_candidates_are_chosen_by_weights(make):
    """The second feature tells the class of the rows that count; the first, of all others."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(600, 2)).astype(float)
    counts = rng.random(600) < 0.25
    y = np.where(counts, X[:, 1], X[:, 0]) > 0
    model = make(budget=1.0, random_state=0)
    model.fit(X, y, sample_weight=np.where(counts, 50.0, 1.0))
    assert model.feature_shares_.tolist() == [0.0, 1.0]
    assert model.fit(X, y).feature_shares_.tolist() == [1.0, 0.0]
