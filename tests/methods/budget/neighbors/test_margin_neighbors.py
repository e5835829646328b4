"""The nearest neighbor policy: step by step against a slow twin, and what it promises users."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from bayescascade import FeatureCosts, MarginNeighborsClassifier, cost_accuracy_curve
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.budget.neighbors import nearest_fitting
from bayescascade.methods.budget.neighbors.margins import fit_additive, out_of_fold
from bayescascade.methods.budget.neighbors.rule import Neighborhoods
from tests.methods.budget.neighbors import slow_rule

COSTS = FeatureCosts({0: 1.0, 1: 2.0, 3: 0.5}, groups={"blood": [2, 3]})
PRINTED = {
    "estimator": LogisticRegression(),
    "n_neighbors": 20,
    "tradeoff": 0.01,
    "stop": "threshold",
    "threshold": 0.9,
    "rest": "zero",
    "margins": "in_sample",
    "ties": "first",
    "predict_by": "margin",
}


def grid(n, seed, n_classes=2):
    """Return rows of whole numbers, with many ties, and classes that need several of them."""
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 6, size=(n, 5)).astype(float)
    score = X[:, 0] + np.where(X[:, 0] > 2, X[:, 1], 5 - X[:, 2]) + 0.5 * X[:, 3]
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def stump_booster(n=40):
    return GradientBoostingClassifier(max_depth=1, n_estimators=n, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    X, y = grid(300, 0)
    model = MarginNeighborsClassifier(
        LogisticRegression(), costs=COSTS, budget=4.0, n_neighbors=15, random_state=0
    )
    return model.fit(X, y), grid(60, 1)[0]


def compare(model, X, max_cost=math.inf):
    """Compare the ways of rows with those of the slow twin, to 1e-9; break ties as it does."""
    around, rule, items = model._asks.around, model.rule_, model.items_
    limits = rule.limits._replace(max_cost=max_cost)
    found = around.routes(X, rule, limits)
    cells, source = around.cells(X), around.source
    features = [np.flatnonzero(source == j).tolist() for j in range(items.n_columns)]
    own = around.full.of_features(cells, around.starts)

    def price(measured, feature):
        paid = {item for j in measured for item in items.of_column(j)}
        return sum(items.costs[item] for item in items.of_column(feature) if item not in paid)

    how = {
        "n_neighbors": rule.n_neighbors,
        "tradeoff": rule.tradeoff,
        "rest": "neighbors" if around.is_rest_near else "zero",
        "ties": "all" if around.has_ties else "first",
        "threshold": limits.threshold,
        "least_gain": limits.least_gain,
        "most": limits.most_features,
        "max_cost": max_cost,
    }
    for i in range(len(X)):
        order, result = slow_rule.route(
            around.cells(around.rows), around.parts, around.labels, around.weights,
            around.full.offset, features, price, cells[i], own[i], how,
        )  # fmt: skip
        assert found.order[i][found.order[i] >= 0].tolist() == order
        assert found.n_steps[i] == len(order)
        for step, (accuracy, gain, cost, scores, votes) in enumerate(result):
            assert_allclose(found.accuracy[i, step], accuracy, atol=1e-9)
            assert_allclose(found.gains[i, step], gain, atol=1e-9)
            assert_allclose(found.costs[i, step], cost, atol=1e-9)
            assert_allclose(found.scores[i, step], scores, atol=1e-9)
            assert_allclose(found.votes[i, step][: len(votes)], votes, atol=1e-9)
    return found


@pytest.mark.parametrize(
    "how",
    [
        PRINTED,
        PRINTED | {"margins": "out_of_fold", "ties": "all", "rest": "neighbors"},
        PRINTED | {"stop": "gain", "threshold": None, "ties": "all", "tradeoff": 0.05},
        PRINTED | {"estimator": stump_booster(), "threshold": 1.0, "costs": COSTS},
        PRINTED | {"stop": "number", "threshold": None, "max_features": 3, "costs": COSTS},
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_step_is_that_of_the_slow_twin(how, n_classes):
    X, y = grid(90, 0, n_classes)
    weights = np.arange(90) % 3
    model = MarginNeighborsClassifier(**how).fit(X, y, sample_weight=weights)
    others = grid(8, 1)[0]
    others[::3, 1] = np.nan
    found = compare(model, others)
    compare(model, others[:3], max_cost=2.5)
    if how is PRINTED:  # the twin sees what is broken
        model._asks.around.parts[:20] *= -3.0
        model._asks.around.__dict__.pop("start", None)
        broken = model._asks.around.routes(others, model.rule_, model.rule_.limits)
        assert not np.allclose(broken.accuracy, found.accuracy)


def test_shifts_and_scales_of_columns_change_nothing(fitted):
    X, y = grid(300, 0)
    model, others = fitted
    shift, scale = np.array([3.0, -1e3, 0.1, 7.0, 1e5]), np.array([1e3, 1e-3, 2.0, 0.3, 11.0])
    moved = MarginNeighborsClassifier(**model.get_params(deep=False)).fit(X * scale + shift, y)
    assert_allclose(moved.predict_proba(others * scale + shift), model.predict_proba(others))
    np.testing.assert_array_equal(
        moved.features_used(others * scale + shift), model.features_used(others)
    )


def test_the_most_that_may_be_paid_buys_the_best_that_fits(fitted):
    """An acquisition says what was promised and why it stopped."""
    model, X = fitted
    acquired = model.acquire(X[0].__getitem__)
    assert (acquired.to_frame()[["promised", "accuracy"]].to_numpy() <= 1).all()
    assert "stopped: " in str(acquired)
    alone = model.acquire(X[0].__getitem__, max_cost=0.6)
    assert alone.status == "max_cost"
    assert alone.total_cost <= 0.6
    more = alone.resume(X[0].__getitem__)
    assert more.is_complete
    assert more.steps[: len(alone.steps)] == alone.steps
    asked = []
    missing = model.acquire(lambda feature: asked.append(feature))  # None: it cannot be measured
    assert len(asked) == len({*asked}) == len(missing.steps)
    assert missing.total_cost > 0
    assert_allclose(missing.probabilities, model._asks.around.start.votes, atol=0.5)


def test_a_path_of_budgets_is_one_fit(fitted):
    model, _ = fitted
    limits = [0.2, 1.0, 2.0, 10.0]
    path = model.path(limits)
    costs = [each.validation_cost_ for each in path]
    found = [one.validation_cost_ for _, one in model.fit_budgets(limits, *grid(300, 0))]
    assert found == costs
    V, v = grid(200, 5)
    scored = MarginNeighborsClassifier(**model.get_params(deep=False)).fit(*grid(300, 0), V, v)
    assert scored.choice_.rows == "validation rows"
    assert scored.validation_cost_ == pytest.approx(scored.acquisition_cost(V).mean())
    assert scored.choice_.error == pytest.approx((scored.predict(V) != v).mean())


@pytest.mark.slow
def test_rows_that_judge_choose_the_margins_and_say_how_right_estimates_are():
    X, y = grid(400, 0)
    V, v = grid(300, 5)
    model = MarginNeighborsClassifier(stump_booster(150), costs=COSTS, random_state=0)
    model.fit(X, y, V, v)
    found = model._trial.found
    assert {one.rule.margins for one in found.tried} == {"in_sample", "out_of_fold"}
    least = min(one.error for one in found.tried)
    chosen = next(one for one in found.tried if one.rule == model.rule_)
    assert chosen.error == least
    assert model.margins_ == chosen.rule.margins
    rule, routes = model.rule_._replace(margins="in_sample"), chosen.routes
    actual = 1 - routes.wrong["margin"].mean(axis=0)
    estimated = rule.calibrated(routes.accuracy, routes.offsets()).mean(axis=0)
    assert_allclose(estimated, actual, atol=1 / len(routes.accuracy))
    assert np.abs(rule.calibrated(routes.accuracy, 0.0).mean(axis=0) - actual).max() > 0.01
    given = MarginNeighborsClassifier(stump_booster(), margins="in_sample", random_state=0)
    assert given.fit(X, y, V, v).margins_ == "in_sample"


def test_few_validation_rows_are_helped_by_training_rows():
    """A rule that is within the budget by the chance of few rows would be chosen."""
    X, y = grid(400, 0)
    V, v = grid(25, 5)
    model = MarginNeighborsClassifier(LogisticRegression(), budget=2.0, random_state=0)
    model.fit(X, y, V, v)
    found = model._trial.found
    assert len(found.validation.labels) == 425
    assert found.validation.n_settling == model.choice_.n_rows == 25
    assert model.validation_cost_ == pytest.approx(model.acquisition_cost(V).mean())
    costs = [(one.cost, one.routes.at_ends(one.rule)[0]) for one in found.tried]
    assert all(cost == max(each.mean(), each[:25].mean()) for cost, each in costs)
    assert max(cost - each[:25].mean() for cost, each in costs) > 0.1
    assert model.acquisition_cost(grid(2000, 9)[0]).mean() < 2.0 * 1.05


def test_text_and_missing_cells_and_unknown_levels_are_read():
    X, y = grid(200, 3)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(f=np.where(X[:, 1] > 2, "yes", "no"))
    frame.loc[::7, "b"] = np.nan
    frame.loc[::11, "f"] = None
    model = MarginNeighborsClassifier(stump_booster(), budget=4.0, random_state=0).fit(frame, y)
    acquired = model.acquire(frame.iloc[0].__getitem__)
    assert_allclose(acquired.probabilities, model.predict_proba(frame.iloc[:1])[0])
    gone = frame.iloc[:3].assign(a=np.nan)
    with pytest.warns(UserWarning, match="missing"):
        assert np.isfinite(model.predict_proba(gone)).all()


@pytest.mark.parametrize("estimator", [LinearSVC(), stump_booster()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_over_columns_are_the_classifier(estimator, n_classes):
    X, y = grid(120, 0, n_classes)
    model = MarginNeighborsClassifier(estimator, random_state=0, n_neighbors=5).fit(X, y)
    around = model._asks.around
    sums = around.full.offset + around.full.of_features(around.cells(X), around.starts).sum(axis=1)
    expected = sums[:, 0] > 0 if n_classes == 2 else sums.argmax(axis=1)
    again = estimator.fit(around.cells(X), y)
    np.testing.assert_array_equal(expected, again.predict(around.cells(X)))
    assert (expected == y).mean() > 0.7
    parts = around.full.of_features(around.cells(X), around.starts)
    assert_allclose(parts.mean(0), 0, atol=1e-9 * (1 + np.abs(parts).max()))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"estimator": RandomForestClassifier(3)}, "estimator must be a sum over columns"),
        ({"estimator": GradientBoostingClassifier(max_depth=2, n_estimators=5)}, "max_depth 1"),
        ({"n_neighbors": 61}, "n_neighbors must be at most 60"),
        ({"stop": "threshold", "threshold": 1.1}, "threshold must be"),
        ({"threshold": 0.9}, 'threshold must be None unless stop is "threshold"'),
        ({"max_features": 2}, "max_features must be None"),
        ({"costs": {0: float("nan")}}, r"costs\[0\] must be"),
    ],
)
def test_bad_parameters_are_named(changed, words):
    X, y = grid(60, 0)
    with pytest.raises(ParameterError, match=words):
        MarginNeighborsClassifier(**{"estimator": LogisticRegression(), **changed}).fit(X, y)


def test_odd_rows_are_survived():
    X, y = grid(60, 0)
    constant = np.column_stack([X[:, 0], np.full(60, 7.0)])
    model = MarginNeighborsClassifier(LogisticRegression(), n_neighbors=7).fit(constant, y)
    assert 1 not in np.flatnonzero(model.feature_shares_ == 1)
    alike = MarginNeighborsClassifier(LogisticRegression()).fit(np.ones((60, 2)), y)
    assert alike.predict(np.ones((1, 2)))[0] == np.bincount(y).argmax()
    nothing = MarginNeighborsClassifier(LogisticRegression(), budget=0.1).fit(X, y)
    assert "buys nothing" in str(nothing)
    with pytest.raises(DataError, match="at least two classes"):
        MarginNeighborsClassifier(LogisticRegression()).fit(X, np.zeros(60))


def test_of_many_rows_some_of_each_class_are_neighbors(monkeypatch):
    """The work for a row and its file do not grow; the classifier still learns from all rows."""
    X, y = grid(400, 0)
    y[:3] = 2
    whole = MarginNeighborsClassifier(LogisticRegression(), budget=4.0, random_state=0).fit(X, y)
    assert "neighbors are sought" not in str(whole)
    monkeypatch.setattr(nearest_fitting, "MOST_KEPT", 100)
    model = MarginNeighborsClassifier(LogisticRegression(), budget=4.0, random_state=0).fit(X, y)
    around = model._asks.around
    counts = np.bincount(y) / 4
    assert (np.abs(np.bincount(around.labels) - counts) < 1).all()
    assert f"neighbors are sought among {len(around.rows)} of 400 rows" in str(model)
    np.testing.assert_array_equal(around.full.weights, whole._asks.around.full.weights)
    others, labels = grid(500, 1)
    assert model.score(others, labels) > 0.8
    again = MarginNeighborsClassifier.from_record(model.to_record())
    np.testing.assert_array_equal(again.predict(others), model.predict(others))
    with pytest.raises(ParameterError, match="n_neighbors must be at most 10"):
        MarginNeighborsClassifier(LogisticRegression(), n_neighbors=110).fit(X, y)


def test_a_curve_follows_rows_once(fitted, monkeypatch):
    model, X = fitted
    labels, costs = model.predict(X), model.acquisition_cost(X)
    n_features = model.features_used(X).sum(axis=1).mean()
    n_followed, routes = [], Neighborhoods.routes

    def counted(around, rows, *given):
        n_followed.append(len(rows))
        return routes(around, rows, *given)

    monkeypatch.setattr(Neighborhoods, "routes", counted)
    point = cost_accuracy_curve(model, X, np.zeros(len(X), np.int64)).points[0]
    assert n_followed == [len(X)]
    assert point.error == (labels != 0).mean()
    assert (point.cost, point.n_features) == pytest.approx((costs.mean(), n_features))


def test_a_row_is_no_neighbor_of_its_own():
    """Else what is chosen by training rows is chosen by their own labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)
    how = {"n_neighbors": 1, "tradeoff": 0.0, "stop": "number", "max_features": 3, "ties": "first"}
    model = MarginNeighborsClassifier(LogisticRegression(), margins="in_sample", **how).fit(X, y)
    around, rule = model._asks.around, model.rule_
    result = around.routes(around.rows, rule, rule.limits, own=np.arange(80))
    distances = cdist(around.columns.T, around.columns.T)
    np.fill_diagonal(distances, np.inf)
    votes = result.votes[:, 3].argmax(axis=1)
    np.testing.assert_array_equal(votes, around.labels[distances.argmin(axis=1)])


def test_margins_of_a_fold_do_not_learn_from_its_rows():
    """If a row changes, the classifier of the other folds says the same of its fold."""
    rng = np.random.default_rng(0)
    cells, labels = rng.normal(size=(60, 2)), np.arange(60) % 3 == 0
    changed = cells.copy()
    changed[7] += 5.0
    given = labels.astype(np.int64), np.ones(60), np.arange(3)
    full = fit_additive(LogisticRegression(), cells, *given[:2])
    before, after = (out_of_fold(LogisticRegression(), full, c, *given) for c in (cells, changed))
    is_same = (before == after).all(axis=(1, 2))
    assert not is_same[7]
    assert is_same.sum() == 60 / 5 - 1
