"""BudgetPruneClassifier: from rows to a pruned forest."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

import bayescascade
from bayescascade import BudgetedForestClassifier, BudgetPruneClassifier, FeatureCosts
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.pruning import solvers
from bayescascade.methods.budget.pruning.solvers import FlowSolver
from tests.interrupts import interrupted
from tests.methods.budget.forests.fits import COSTS, diagnoses, patients


@pytest.fixture
def numbers(rng):
    """Return 240 rows whose label depends on two of six columns."""
    X = rng.normal(size=(240, 6)).astype(np.float32)
    return X, np.array(["no", "yes"])[(X[:, 1] + X[:, 4] + 0.3 * rng.normal(size=240) > 0) * 1]


def small_forest(**parameters):
    return RandomForestClassifier(8, random_state=0, **parameters)


def test_a_pruned_forest_predicts_as_the_forest_with_cuts(numbers):
    """What is certified would not be what is predicted with."""
    X, y = numbers
    forest = small_forest().fit(X[:160], y[:160])
    model = BudgetPruneClassifier(forest, tradeoff=0.01).fit(X[:160], y[:160], X[160:])
    assert model.estimator_ is forest
    whole = Forest.from_sklearn(forest)
    is_split = np.isin(np.arange(whole.n_nodes), model.program_.node[model.kept_])
    sums = np.zeros((len(X), 2))
    for i, row in enumerate(X):
        for root in whole.tree_starts[:-1]:
            node = root
            while is_split[node]:
                left = row[whole.feature[node]] <= whole.threshold[node]
                node = node + 1 if left else whole.right[node]
            sums[i] += whole.counts[node] / whole.counts[node].sum()
    np.testing.assert_allclose(model.predict_proba(X), sums / 8, atol=1e-12)
    assert model.program_.cost(model.kept_) == pytest.approx(model.validation_cost_)
    assert model.validation_cost_ == pytest.approx(model.acquisition_cost(X[160:]).mean())


def test_what_is_said_of_a_pruning_is_its_own(numbers):
    """An objective or a gap that is not the one of the pruning would be reported."""
    X, y = numbers
    model = BudgetPruneClassifier(small_forest(), tradeoff=0.02).fit(X[:160], y[:160], X[160:])
    program = model.program_
    assert model.objective_ == pytest.approx(program.objective(model.kept_, 0.02))
    assert model.tradeoff_ == 0.02
    assert 0 <= model.duality_gap_ <= 1e-3
    best = FlowSolver(program).solve(0.02).objective
    assert model.lower_bound_ <= best + 1e-9 <= model.objective_ + 2e-9


def test_columns_of_text_groups_and_missing_cells_are_pruned(rng):
    """Costs must follow the columns through the encoding."""
    frame = patients(rng, 150, missing=0.05)
    y = diagnoses(frame, rng)
    model = BudgetPruneClassifier(small_forest(), costs=COSTS, tradeoff=0.002)
    model.fit(frame[:100], y[:100], frame[100:])
    assert model.validation_cost_ == pytest.approx(model.program_.cost(model.kept_))
    assert model.validation_cost_ < COSTS.resolve(list(frame)).costs.sum()


def test_a_budget_is_kept_and_spent(numbers):
    """A user who may pay 3 must not pay 4, nor get a forest for 1."""
    X, y = numbers
    whole = BudgetPruneClassifier(small_forest(max_features=None), tradeoff=0.0).fit(
        X[:160], y[:160]
    )
    full = whole.program_.cost(np.ones(whole.program_.n_splits, np.bool_))
    errors = []
    for budget in [0.0, 1.0, 3.0, full]:
        model = BudgetPruneClassifier(small_forest(max_features=None), budget=budget).fit(
            X[:160], y[:160]
        )
        assert model.validation_cost_ <= budget * (1 + 1e-9)
        assert model.lower_bound_ <= model.objective_
        errors.append(model.program_.error(model.kept_))
        # no best pruning at a smaller tradeoff is within the budget
        if budget < full:
            dearer = FlowSolver(model.program_).solve(model.tradeoff_ * (1 - 1e-6))
            assert model.program_.cost(dearer.kept) > budget
    assert errors == sorted(errors, reverse=True)
    assert model.kept_.all()


def test_a_budget_between_all_and_nothing_is_spent_on_some_trees(numbers):
    """Forests whose trees share little would be cut down entirely, whatever the budget."""
    X, y = numbers
    forest = small_forest(max_features=1).fit(X, y)
    models = [BudgetPruneClassifier(forest, budget=budget).fit(X, y) for budget in (2.5, 4.0, 5.5)]
    for model, budget in zip(models, (2.5, 4.0, 5.5), strict=True):
        assert 0.7 * budget < model.validation_cost_ <= budget
    accuracy = [model.score(X, y) for model in models]
    assert accuracy[0] > np.mean(y == "yes").clip(0.5) + 0.1


def test_paths_are_the_fits_they_stand_for(numbers):
    """Warm starts must not show, and each model must know its own parameters."""
    X, y = numbers
    model = BudgetPruneClassifier(small_forest(), tradeoff=0.01, random_state=0).fit(
        X[:160], y[:160], X[160:]
    )
    tradeoffs = [0.02, 0.001, 0.1]
    path = model.path(tradeoffs)
    assert len(path) == 3
    for tradeoff, one in zip(tradeoffs, path, strict=True):
        alone = clone(model).set_params(tradeoff=tradeoff).fit(X[:160], y[:160], X[160:])
        assert one.get_params() | {"forest": None} == alone.get_params() | {"forest": None}
        np.testing.assert_array_equal(one.kept_, alone.kept_)
        np.testing.assert_array_equal(one.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(path.tradeoffs, tradeoffs)
    assert np.all(np.diff(path.costs[[1, 0, 2]]) <= 0)
    assert np.all(np.diff(path.errors[[1, 0, 2]]) >= 0)
    np.testing.assert_allclose(path.objectives, path.errors + path.tradeoffs * path.costs)
    assert path.gaps.max() <= 1e-9
    assert model.tradeoff_ == 0.01
    for budget, one in zip([1.0, 3.0], model.path(budgets=[1.0, 3.0]), strict=True):
        assert one.budget == budget
        assert one.validation_cost_ <= budget


def test_a_path_prints_as_a_table(numbers):
    """Users choose from it."""
    X, y = numbers
    path = BudgetPruneClassifier(small_forest()).fit(X, y).path([0.0, 0.02, 0.5])
    lines = str(path).splitlines()
    assert lines[0] == "3 prunings of a forest"
    assert lines[2].split() == ["tradeoff", "cost", "tree", "error", "splits", "objective", "gap"]
    assert [line.split()[0] for line in lines[3:]] == ["nothing", "0", "0.0200", "0.500"]
    assert all(len(line) <= 80 for line in lines)
    path = BudgetPruneClassifier(small_forest()).fit(X, y).path(budgets=[0.5, 3, 4])
    lines = str(path).splitlines()
    assert lines[1].startswith("budget 0.5 buys nothing, and ")
    lines = lines[lines.index("") - 1 :]
    assert " ".join(lines[2].split()) == "budget cost tree error lower bound splits tradeoff"
    assert [line.split()[0] for line in lines[3:]] == ["nothing", "0.5", "3", "4"]
    frame = path.to_frame()
    assert frame["budget"].tolist() == [0.5, 3, 4]
    for name, values in [
        ("tradeoff", path.tradeoffs), ("cost", path.costs), ("tree_error", path.errors),
        ("least_error", path.least_errors), ("objective", path.objectives), ("gap", path.gaps),
    ]:  # fmt: skip
        np.testing.assert_array_equal(frame[name], values)


def test_no_pruning_within_a_budget_errs_less_than_is_said(rng):
    """A user would take the error for nearly the least one, whatever was left on the table."""
    X = rng.integers(0, 3, (60, 4)).astype(np.float64)
    y = np.where(X.sum(axis=1) + rng.normal(size=60) > 4, "yes", "no")
    forest = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
    path = (
        BudgetPruneClassifier(forest, costs=[1, 2, 0.5, 1])
        .fit(X, y)
        .path(budgets=[0.3, 0.8, 1.4, 2.2, 9])
    )
    program = path[0].program_
    prunings = [
        kept
        for bits in itertools.product([False, True], repeat=program.n_splits)
        if program.is_closed(kept := np.array(bits))
    ]
    costs, errors = np.array([(program.cost(kept), program.error(kept)) for kept in prunings]).T
    for budget, error, least in zip(path.budgets, path.errors, path.least_errors, strict=True):
        best = errors[costs <= budget + 1e-9].min()
        assert least - 1e-12 <= best <= error + 1e-12
    assert path.least_errors[-1] == pytest.approx(errors.min())
    assert (path.least_errors[:-1] > 0.5 * path.errors[:-1]).all()
    assert BudgetPruneClassifier(forest).fit(X, y).path([0.1]).budgets is None


def test_the_text_tells_the_certificate(numbers):
    """What was proved would be known to those only who look for attributes."""
    X, y = numbers
    text = str(BudgetPruneClassifier(small_forest(), tradeoff=0.02).fit(X, y))
    assert "tradeoff 0.02   objective 0." in text
    assert text.splitlines()[2].endswith("   optimal")
    text = str(BudgetPruneClassifier(small_forest(max_features=1), budget=4.0).fit(X, y))
    assert "budget 4   tree error at most " in text
    text = str(BudgetPruneClassifier(small_forest(max_features=1), budget=99.0).fit(X, y))
    assert "budget 99   optimal" in text


@pytest.mark.parametrize("errors", ["out_of_bag", "validation"])
def test_errors_may_be_those_of_other_rows(numbers, errors):
    """The wrong rows would make every deep split look useful."""
    X, y = numbers
    forest = small_forest().fit(X[:160], y[:160])
    model = BudgetPruneClassifier(forest, tradeoff=0.0, errors=errors)
    model.fit(X[:160], y[:160], X[160:], y[160:])
    program, n_nodes = model.program_, model.whole_forest_.n_nodes
    rates = []
    for kept in (model.kept_, np.ones(program.n_splits, np.bool_)):
        pruned = model.whole_forest_.pruned(np.isin(np.arange(n_nodes), program.node[kept]))
        wrong = []
        for tree, bag in enumerate(forest.estimators_samples_):
            rows, labels = X[160:], y[160:]
            if errors == "out_of_bag":
                outside = np.setdiff1d(np.arange(160), bag)
                rows, labels = X[outside], y[outside]
            leaves = pruned.apply(rows)[:, tree]
            said = forest.classes_[pruned.counts[leaves].argmax(axis=1)]
            wrong.append(np.mean(said != labels))
        rates.append(np.mean(wrong))
        assert program.error(kept) == pytest.approx(rates[-1])
    assert rates[0] < rates[1]


@pytest.mark.parametrize(
    "forest",
    [
        DecisionTreeClassifier(random_state=0),
        ExtraTreesClassifier(5, random_state=0),
        BudgetedForestClassifier(max_trees=5, random_state=0),
        None,
    ],
)
def test_forests_of_all_kinds_are_pruned(numbers, forest):
    """The README says which may be."""
    X, y = numbers
    model = BudgetPruneClassifier(forest, tradeoff=0.02, random_state=3).fit(X[:160], y[:160])
    assert model.score(X[160:], y[160:]) > 0.75
    assert model.validation_cost_ < 6
    again = BudgetPruneClassifier(model.estimator_, tradeoff=0.02).fit(X[:160], y[:160])
    np.testing.assert_array_equal(again.kept_, model.kept_)
    if forest is not None:
        assert not hasattr(forest, "classes_")


def test_a_forest_of_text_columns_is_pruned_again(rng):
    """Comparing prunings of one forest would need a way around the classes that prune."""
    frame = patients(rng, 120)
    y = diagnoses(frame, rng)
    model = BudgetPruneClassifier(small_forest(), tradeoff=0.01, random_state=1).fit(frame, y)
    for forest in (model.estimator_, pickle.loads(pickle.dumps(model.estimator_))):
        again = BudgetPruneClassifier(forest, tradeoff=0.01).fit(frame, y)
        assert again.estimator_ is forest
        np.testing.assert_array_equal(again.kept_, model.kept_)
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    less = BudgetPruneClassifier(model, tradeoff=0.05).fit(frame, y)
    assert less.forest_.n_splits < model.forest_.n_splits
    with pytest.raises(ParameterError, match="fitted to columns of the same names and levels"):
        BudgetPruneClassifier(model.estimator_).fit(frame[frame.columns[::-1]], y)
    with pytest.raises(ParameterError, match="fitted to columns of the same names and levels"):
        BudgetPruneClassifier(model.estimator_).fit(frame[["age", "iron"]], y)
    elsewhere = model.estimator_.fit(frame[["age", "iron"]], y)
    assert BudgetPruneClassifier(elsewhere).fit(frame[["age", "iron"]], y).n_features_in_ == 2


def test_costs_are_given_to_forests_without(numbers):
    """A forest would be grown for others than those it is pruned for."""
    X, y = numbers
    grown = BudgetPruneClassifier(
        BudgetedForestClassifier(max_trees=2), costs=[1, 2, 3, 4, 5, 6], tradeoff=0.01
    ).fit(X, y)
    assert grown.estimator_.costs == [1, 2, 3, 4, 5, 6]


def test_a_frozen_forest_stays_in_grid_searches(numbers):
    """Clones of fitted forests are unfitted, so a grid search would prune others."""
    X, y = numbers
    forest = small_forest().fit(X, y)
    search = GridSearchCV(
        BudgetPruneClassifier(FrozenEstimator(forest)), {"tradeoff": [0.001, 0.05]}, cv=2
    )
    search.fit(X, y)
    assert search.best_estimator_.estimator_ is forest


def test_a_fitted_forest_may_know_more_classes(numbers):
    """Labels of a part of the rows must be numbered as the forest does."""
    X, y = numbers
    three = np.where(X[:, 0] > 0.8, "a third", y)
    forest = small_forest().fit(X, three)
    some = three != "a third"
    model = BudgetPruneClassifier(forest, tradeoff=0.0, errors="validation")
    model.fit(X[some], three[some], X[some], three[some])
    assert list(model.classes_) == ["a third", "no", "yes"]
    assert model.program_.error(np.ones_like(model.kept_)) < 0.2
    with pytest.raises(DataError, match="y must have labels of the forest's classes 'no', 'yes'"):
        BudgetPruneClassifier(small_forest().fit(X, y)).fit(X, three)


def test_wrong_parameters_and_forests_are_named(numbers, rng):
    """A message must say what to change."""
    X, y = numbers
    frame = patients(rng, 60)
    for model, message in [
        (BudgetPruneClassifier(LogisticRegression()), "forest must be .*, got LogisticRegression"),
        (BudgetPruneClassifier(costs={"x": 1}), "costs must be of the columns"),
        (
            BudgetPruneClassifier(small_forest().fit(X[:, :5], y)),
            "forest must be fitted to the columns of X",
        ),
        (
            BudgetPruneClassifier(errors="validation"),
            'X_val and y_val must be given for errors="validation", got None',
        ),
        (
            BudgetPruneClassifier(small_forest(bootstrap=False), errors="out_of_bag"),
            "needs a forest of scikit-learn with bootstrap=True",
        ),
        (
            BudgetPruneClassifier(small_forest().fit(X[:100], y[:100]), errors="out_of_bag"),
            "needs the rows that the forest was fitted on, 100, got 240",
        ),
    ]:
        with pytest.raises(ParameterError, match=message):
            model.fit(X, y)
    named = small_forest().fit(frame[["age", "iron"]], diagnoses(frame, rng))
    with pytest.raises(ParameterError, match="got one of 'age', 'iron' for 'iron', 'age'"):
        BudgetPruneClassifier(named).fit(frame[["iron", "age"]], diagnoses(frame, rng))
    with pytest.raises(
        ParameterError, match="got a fitted RandomForestClassifier and column 'sex'"
    ):
        BudgetPruneClassifier(named).fit(frame[["iron", "sex"]], diagnoses(frame, rng))
    with pytest.raises(DataError, match="class"):
        BudgetPruneClassifier().fit(X, np.ones(len(X)))


def test_wrong_paths_are_named(numbers, tmp_path):
    """A saved model has no forest to prune."""
    X, y = numbers
    model = BudgetPruneClassifier(small_forest(), costs=FeatureCosts(default=2.0)).fit(X, y)
    with pytest.raises(ParameterError, match="either tradeoffs or budgets must be given, got neit"):
        model.path()
    with pytest.raises(ParameterError, match="either tradeoffs or budgets must be given, got both"):
        model.path([0.1], budgets=[1.0])
    for values in (np.array([0.1, 0.2]), pd.Series([0.1, 0.2], [7, 8])):
        assert model.path(values)[:1].tradeoffs.tolist() == [0.1]
        assert model.path(budgets=values).budgets.tolist() == [0.1, 0.2]
    with pytest.raises(ParameterError, match="budgets must have at least one value, got"):
        model.path(budgets=[])
    with pytest.raises(
        ParameterError, match=r"tradeoffs\[1\] must be a finite number >= 0, got -1"
    ):
        model.path([0.1, -1])
    model.save(tmp_path / "model.json")
    with pytest.raises(
        NotFittedError, match="BudgetPruneClassifier must be fitted, and not read from a file"
    ):
        bayescascade.load(tmp_path / "model.json").path([0.1])


def test_ctrl_c_ends_a_path_with_what_was_found(numbers, monkeypatch):
    """Minutes of work would be lost."""
    X, y = numbers
    model = BudgetPruneClassifier(small_forest()).fit(X, y)
    measure = interrupted(30, solvers.measure_distances)
    monkeypatch.setattr(solvers, "measure_distances", measure)
    path = model.path(np.linspace(0.0, 0.1, 50).tolist())
    assert path.interrupted
    assert 0 < len(path) < 50
    assert path.gaps.max() < 1e-9
    assert "interrupted" in str(path)
    measure.n_calls, measure.at = 0, 1
    with pytest.raises(KeyboardInterrupt):
        model.path([0.1])
    for n_calls in range(1, 12):
        measure.n_calls, measure.at = 0, n_calls
        cut_short = BudgetPruneClassifier(model.estimator_, budget=3.0).fit(X, y)
        assert cut_short.validation_cost_ <= 3.0


def test_a_budget_that_buys_nothing_is_told_what_would_do():
    """Else a model of no splits looks like an answer."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = X[:, 0] > 0
    costs = FeatureCosts({"x0": 3.0, "blood": 2.0}, groups={"blood": ["x0"]}, default=9.0)
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    forest = RandomForestClassifier(3, max_features=None, random_state=0)
    model = BudgetPruneClassifier(forest, costs=costs, budget=1.5).fit(frame, y)
    text = (
        "budget 1.5 buys nothing, and the cheapest first feature of its trees, x0 with blood "
        "(group), costs 5; all rows get the same prediction"
    )
    assert model.nothing_read_text == text
    path = model.path(budgets=[1.0, 1.5, 6.0])
    for one in (model, path):
        assert " ".join(str(one).split()).count(text) == 1
    assert "budget 1 buys" not in str(path)
    assert "buys nothing" not in str(path[2])


def test_rounding_of_what_is_left_of_a_budget_is_not_overspending():
    """Costs of .1 add up to a little more than the budget, and a path would end in an error."""
    generator = np.random.default_rng(14)
    X = generator.integers(0, 4, (80, 6)).astype(float)
    y = X.sum(axis=1) + generator.normal(0, 2, 80) > 9
    forest = RandomForestClassifier(4, max_features=None, max_depth=3, random_state=14)
    costs = dict.fromkeys(range(6), 0.1)
    model = BudgetPruneClassifier(forest, costs=costs, tradeoff=0.0).fit(X, y)
    limits = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    found = [one.validation_cost_ for one in model.path(budgets=limits)]
    assert all(cost <= limit * (1 + 1e-9) for cost, limit in zip(found, limits, strict=True))
