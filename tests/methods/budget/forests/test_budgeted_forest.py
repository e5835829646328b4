"""Forests grown for a budget: it is kept, what is chosen is the best, and nothing is by chance."""

from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from bayescascade import BudgetedForestClassifier, PolynomialImpurity, load
from bayescascade.base.errors import ParameterError
from bayescascade.costs import choice
from bayescascade.methods.budget.forests.growing import TreeGrower
from bayescascade.report.numbers import cost_texts
from tests.interrupts import interrupted


def small_forest(**parameters):
    return BudgetedForestClassifier(**{"max_trees": 5, "random_state": 0, **parameters})


def numbers(rng, n_rows=600, n_columns=8):
    """Return rows of three classes, and rows to validate on."""
    X = rng.normal(size=(n_rows, n_columns))
    y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] + 0.5 * rng.normal(size=n_rows) > 0.5)
    return train_test_split(X, y, test_size=1 / 3, random_state=0)


def same_trees(first, second):
    return first.forest_.to_dict() == second.forest_.to_dict()


def test_budget_is_kept(rng):
    """The user gets as many trees as the budget pays for, and the one more would pass it."""
    X, X_val, y, _ = numbers(rng)
    free = small_forest(max_trees=30).fit(X, y, X_val)
    assert (np.diff(free.cost_path_) >= 0).all()
    budget = float(free.cost_path_[9] + free.cost_path_[10]) / 2
    assert free.cost_path_[9] < budget < free.cost_path_[10]
    alone = {"alpha": 0.0, "cost_exponent": 1.0, "max_features": 0.5}  # nothing to choose among
    model = small_forest(max_trees=30, budget=budget, **alone).fit(X, y, X_val)
    assert model.forest_.n_trees == 10
    assert model.validation_cost_ == model.cost_path_[-1] <= budget
    assert model.validation_cost_ == pytest.approx(model.acquisition_cost(X_val).mean())
    np.testing.assert_array_equal(model.cost_path_, free.cost_path_[:10])


@pytest.mark.parametrize("thresholds", ["exact", "histogram", "random"])
def test_result_does_not_depend_on_workers(thresholds, rng):
    """A laptop and a server grow the same forest from one seed; another seed grows another."""
    X, X_val, y, _ = numbers(rng)
    settings = {"thresholds": thresholds, "max_features": "sqrt", "max_depth": 4}
    settings |= {"budget": 6.5, "max_trees": 9}
    models = [small_forest(**settings, n_jobs=n_jobs).fit(X, y, X_val) for n_jobs in (None, 3)]
    assert models[0].forest_.n_trees > 1
    assert same_trees(*models)
    other = small_forest(**settings).set_params(random_state=1).fit(X, y, X_val)
    assert not same_trees(models[0], other)


def test_bootstrap_is_an_option(rng):
    """Without it every tree sees each row once: with all columns, too, all are the same."""
    X, _, y, _ = numbers(rng)
    model = small_forest(bootstrap=False, max_features=None, max_trees=2).fit(X, y)
    first, second = np.split(model.forest_.counts, model.forest_.tree_starts[1:-1])
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[0], np.bincount(y))
    drawn = small_forest(max_trees=2).fit(X, y).forest_
    assert (drawn.counts[drawn.roots].sum(axis=1) == len(y)).all()
    assert not np.array_equal(*drawn.counts[drawn.roots])


def test_best_alternative_is_chosen(rng):
    """Of several alpha and exponents, the forest of least validation error within the budget."""
    X, X_val, y, y_val = numbers(rng)
    costs = np.linspace(1, 8, X.shape[1])
    grid = {"alpha": [0.0, 4.0, 30.0], "cost_exponent": (0.0, 1.0), "max_features": [3, None]}
    settings = {"costs": costs, "budget": 25.0, "max_trees": 10}
    model = small_forest(**grid, **settings).fit(X, y, X_val, y_val)
    tried = model.alternatives_
    assert [one[:3] for one in tried] == list(product([0, 4, 30], [0, 1], [3, 8]))
    best = min((one for one in tried if one.n_trees), key=lambda one: (one.error, one.cost))
    assert (model.alpha_, model.cost_exponent_, model.max_features_) == best[:3]
    assert model.validation_cost_ == best.cost <= 25.0
    assert best.error == np.mean(model.predict(X_val) != y_val)
    alone = small_forest(**settings, **dict(zip(grid, best, strict=False)))
    assert same_trees(model, alone.fit(X, y, X_val))
    assert len({one.error for one in tried}) > 1


@pytest.mark.slow
def test_automatic_alternatives(rng, monkeypatch):
    """With a budget and rows to choose by, a few trees of each kind; otherwise one."""
    X, X_val, y, y_val = numbers(rng)
    costs = np.linspace(1, 8, X.shape[1])
    automatic = {"alpha": (0, 16), "cost_exponent": (1, 0.5, 0), "max_features": (4, 8)}
    cases = [
        ({"budget": 20.0, "costs": costs}, automatic),
        ({"budget": 20.0, "costs": costs, "alpha": 3.0}, automatic | {"alpha": (3,)}),
        ({"budget": 7.0}, automatic | {"cost_exponent": (1,)}),
        ({"budget": 20.0, "costs": costs, "impurity": "powers"}, automatic | {"alpha": (0,)}),
        ({"costs": costs}, {name: values[:1] for name, values in automatic.items()}),
    ]
    for parameters, expected in cases:
        model = small_forest(max_trees=2, **parameters).fit(X, y, X_val, y_val)
        assert [one[:3] for one in model.alternatives_] == list(product(*expected.values()))
    for few_rows, expected in ((1000, list(product(*automatic.values()))), (0, [(0, 1, 4)])):
        monkeypatch.setattr(choice, "FEW_ROWS", few_rows)
        model = small_forest(max_trees=2, budget=20.0, costs=costs).fit(X, y, X_val)
        assert [one[:3] for one in model.alternatives_] == expected


def test_columns_drawn(rng):
    """A share is of the columns, rounded down, and at least one."""
    X, _, y, _ = numbers(rng)
    for asked, drawn in ((0.5, 4), (0.01, 1), (1.0, 8), (1, 1), (99, 8), ("sqrt", 2), (None, 8)):
        model = small_forest(max_features=asked, max_trees=1, max_depth=1).fit(X, y)
        assert model.max_features_ == drawn


def test_choosing_needs_labels(rng):
    """Without them the first of several values would be taken for the best."""
    X, X_val, y, _ = numbers(rng)
    with pytest.raises(ParameterError, match="y_val must be given for several alpha"):
        small_forest(alpha=[0.0, 1.0]).fit(X, y, X_val)


def test_a_budget_below_all_first_trees_names_the_least(rng, tmp_path):
    """Nothing is bought, and the print tells a budget that would buy a tree."""
    X, X_val, y, y_val = numbers(rng)
    model = small_forest(budget=0.5, alpha=[0.0, 10.0]).fit(X, y, X_val, y_val)
    assert (model.forest_.n_splits, model.validation_cost_) == (0, 0.0)
    assert model.commonest_class_ == model.predict(X_val)[0]
    (least,) = model.cost_path_.tolist()
    (costs,) = cost_texts([least])
    text = f"costs 1; all rows get the same prediction; the cheapest first tree costs {costs} a"
    assert text in model.nothing_read_text
    model.save(tmp_path / "forest.json")
    assert str(load(tmp_path / "forest.json")) == str(model)
    fitted = model.set_params(budget=least).fit(X, y, X_val, y_val)
    assert fitted.forest_.n_trees == 1
    assert fitted.validation_cost_ == pytest.approx(least)


def test_costly_features_are_avoided(rng):
    """Of two features that tell the same, trees read the cheap one."""
    X, _, y, _ = numbers(rng)
    doubled = np.column_stack([X, X])
    costs = np.repeat([10.0, 1.0], X.shape[1])
    model = small_forest(costs=costs, max_features=None).fit(doubled, y)
    assert model.forest_.feature[model.forest_.is_split].min() >= X.shape[1]
    assert model.validation_cost_ <= X.shape[1]


def test_interrupt_keeps_the_trees_so_far(rng, monkeypatch):
    """Ctrl-C leaves a usable forest, and says so; before the first tree it ends the program."""
    X, X_val, y, y_val = numbers(rng)
    whole = small_forest(n_jobs=1).fit(X, y)
    assert not whole.is_interrupted_
    grow = interrupted(3, TreeGrower.grow)
    monkeypatch.setattr(TreeGrower, "grow", grow)
    model = small_forest(n_jobs=1).fit(X, y)
    assert model.is_interrupted_
    assert model.forest_.n_trees == 2
    np.testing.assert_array_equal(model.cost_path_, whole.cost_path_[:2])
    grow.n_calls, grow.at = 0, 7  # within the second alternative
    model = small_forest(n_jobs=1, alpha=[0.0, 50.0]).fit(X, y, X_val, y_val)
    assert model.is_interrupted_
    assert [one.n_trees for one in model.alternatives_] == [5, 1]
    grow.n_calls, grow.at = 0, 1
    with pytest.raises(KeyboardInterrupt):
        small_forest(n_jobs=1).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": []}, r"alpha must be one value or several, got \[\]"),
        ({"alpha": [0.0, -3.0]}, r"alpha\[1\] must be a finite number >= 0, got -3.0"),
        ({"cost_exponent": -1.0}, "cost_exponent must be a finite number >= 0, got -1.0"),
        (
            {"max_features": 1.5},
            r"max_features must be an integer >= 1, a share in \(0, 1\], .* 1.5",
        ),
        ({"max_features": []}, r"max_features must be one value or several, got \[\]"),
        ({"costs": {"9": 1.0}}, "costs must be of the columns 0, 1, 2.*, got '9'"),
        (
            {"impurity": PolynomialImpurity([1.0], [[150, 150, 0]])},
            "impurity must be finite for 400 rows of each class, got inf",
        ),
    ],
)
def test_bad_parameters(parameters, message, rng):
    """At once, by name."""
    X, _, y, _ = numbers(rng)
    with pytest.raises(ParameterError, match=message):
        small_forest(**parameters).fit(X, y)
