"""Regressions that pay: norms by their conditions, gaps that are bounds, rows that read alike."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayescascade import CostSensitiveTreeClassifier, CostWeightedLogisticClassifier, FeatureCosts
from bayescascade.base.errors import ParameterError
from bayescascade.costs.items import CostNorms
from bayescascade.methods.budget.classifier_trees.logistic import LogisticProblem
from bayescascade.methods.budget.classifier_trees.scaling import Standard
from bayescascade.methods.budget.classifier_trees.validation import TreeValidation

NESTED = {"a": [0, 1, 2], "all": [0, 1, 2, 3]}
OVERLAPPING = {"a": [0, 1, 2], "b": [2, 3], "c": [0, 3]}
GROUPS = [{}, NESTED, OVERLAPPING]


def problem(seed, groups, n_classes=2, n=120):
    """Return a regression of features of one to three columns, one of them free."""
    rng = np.random.default_rng(seed)
    feature = np.repeat(np.arange(5), [1, 2, 1, 3, 1])
    X = rng.normal(size=(n, feature.size))
    X[:, 2] = X[:, 1] + 0.1 * X[:, 2]
    scores = X[:, :n_classes] * 2 + rng.normal(size=(n, n_classes))
    y = scores.argmax(axis=1)
    weights = rng.uniform(0.2, 1.0, n)
    costs = FeatureCosts({0: 1.0, 1: 2.0, 2: 0.3, 3: 1.5, 4: 0.0}, groups=groups, default=0.7)
    norms = CostNorms.of(costs.resolve(range(5)), feature, n_free=1)
    rows = np.column_stack([Standard.of(X, weights).scaled(X), np.ones(n)])
    return LogisticProblem(rows, np.eye(n_classes)[y], weights / weights.sum(), norms), y


def value(of, coefficients, penalty):
    """Return the penalized loss, by the formula alone."""
    scores = of.rows @ coefficients
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    own = (scores * of.indicators).sum(axis=1)
    total, layout = 0.0, of.norms.layout
    for item, cost in enumerate(of.norms.costs):
        columns = layout.incurring[layout.members[item] : layout.members[item + 1]]
        total += cost * np.linalg.norm(coefficients[columns])
    return of.weights @ (np.log(np.exp(scores).sum(axis=1)) - own) + penalty * total


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_split_meets_the_conditions_of_the_least(groups, seed):
    """Each item pulls along its part of what is left, as far as its cost allows, or all of it."""
    norms = problem(0, groups)[0].norms
    values = np.random.default_rng(seed).normal(size=(norms.n_columns, 2))
    left, pulls = norms.split(values, 0.8)
    layout, whole = norms.layout, left.copy()
    np.add.at(whole, layout.incurring, pulls)
    np.testing.assert_allclose(whole, values, atol=1e-12)
    assert bool(layout.nested) == (groups is not OVERLAPPING)
    for item, cost in enumerate(norms.costs):
        places = slice(layout.members[item], layout.members[item + 1])
        pull, part = pulls[places], left[layout.incurring[places]]
        limit, size = 0.8 * cost, np.linalg.norm(part)
        assert np.linalg.norm(pull) <= limit * (1 + 1e-9)
        assert np.sum(pull * part) == pytest.approx(limit * size, abs=1e-7)
    least = norms.least_amount(values, 0.8)
    assert np.abs(norms.split(values, least * 1.000001)[0][~norms.is_free]).max() < 1e-5


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gaps_are_small_and_no_coefficients_are_below_the_bound(groups, n_classes):
    rng = np.random.default_rng(1)
    for seed in range(2):
        of, _ = problem(seed, groups, n_classes)
        most = of.largest_penalty()
        penalties = most * np.array([1.01, 0.5, 0.1, 0.01])
        n_used = []
        for solution in of.path(penalties):
            assert 0 <= solution.gap <= 1e-6
            least = value(of, solution.coefficients, solution.penalty)
            bound = of._bound(of._at(solution.coefficients), solution.penalty)
            assert bound == pytest.approx(least, abs=1e-6)
            for scale in (1e-4, 1e-2, 1.0):
                step = scale * rng.normal(size=solution.coefficients.shape)
                other = solution.coefficients + step
                assert value(of, other, solution.penalty) >= least - solution.gap
                assert of._bound(of._at(other), solution.penalty) <= least + 1e-12
            n_used.append(int(solution.coefficients[~of.norms.is_free].any(axis=1).sum()))
        assert n_used[0] <= n_used[1] < n_used[-1]
        wrong = of.solve(penalties[-1] * 1.1, np.zeros_like(solution.coefficients))
        here = of._at(wrong.coefficients)
        away = value(of, wrong.coefficients, penalties[-1]) - of._bound(here, penalties[-1])
        assert away > 1e-6  # another penalty's best is not taken for this one's


def test_the_loss_is_that_of_scikit_learn_with_an_intercept_that_is_free():
    of, y = problem(3, {})
    costs = np.full(of.norms.n_columns - 1, 1.0)
    norms = CostNorms.of(FeatureCosts().resolve(range(costs.size)), np.arange(costs.size), 1)
    alike = LogisticProblem(of.rows, of.indicators, of.weights, norms)
    found = alike.solve(0.05, np.zeros((of.norms.n_columns, 1)))
    theirs = LogisticRegression(C=1 / 0.05, l1_ratio=1.0, solver="saga", tol=1e-8, max_iter=10_000)
    theirs.fit(of.rows[:, :-1], y, sample_weight=of.weights)
    both = np.append(theirs.coef_[0], theirs.intercept_)
    np.testing.assert_allclose(found.coefficients[:, 0], both, atol=1e-3)
    assert value(alike, found.coefficients, 0.05) <= value(alike, both[:, np.newaxis], 0.05) + 1e-9


def labeled(n=400):
    X = np.random.default_rng(0).normal(size=(n, 5))
    return X, np.where(X[:, 0] > 0.8, 2, X[:, 2] + 0.5 * X[:, 3] > 0).astype(int)


def test_every_row_reads_the_same_and_units_do_not_matter():
    X, y = labeled()
    costs = FeatureCosts({0: 1.0, 1: 2.0}, groups={"blood": [2, 3]})
    model = CostWeightedLogisticClassifier(costs=costs, budget=3.0, random_state=0).fit(X, y)
    assert model.duality_gap_ <= 1e-6
    read = model.features_used(X)
    assert (read == read[0]).all()
    assert 0 < read[0].sum() < 5
    np.testing.assert_array_equal(read[0], model.coef_.any(axis=0))
    units = np.array([1e3, 1.0, 1e-4, 1.0, 1.0])
    scaled = CostWeightedLogisticClassifier(penalty=0.02, refit=False, costs=costs).fit(
        X * units, y
    )
    plain = CostWeightedLogisticClassifier(penalty=0.02, refit=False, costs=costs).fit(X, y)
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, atol=1e-4)
    path = [(one.penalty, one.cost) for one in model.path_]
    assert path == sorted(path, key=lambda one: -one[0])


def test_free_features_that_separate_classes_leave_no_loss():
    X = np.random.default_rng(1).normal(size=(100, 3))
    for costs in ([0.0, 1.0, 1.0], [0.0, 0.0, 0.0]):
        model = CostWeightedLogisticClassifier(costs=costs, penalties=[0.1, 0.01], refit=False)
        model.fit(X, X[:, 0] > 0)
        assert all(one.duality_gap <= 1e-6 for one in model.path_)
        assert model.score(X, X[:, 0] > 0) >= 0.95


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"penalty": 0.1, "penalties": [0.1]}, "penalty must be None where penalties are given"),
        ({"penalties": [0.1, -1]}, r"penalties\[1\] must be"),
        ({"costs": {0: float("nan")}}, r"costs\[0\] must be"),
    ],
)
def test_bad_parameters_are_named(given, words):
    with pytest.raises(ParameterError, match=words):
        CostWeightedLogisticClassifier(**given).fit(*labeled(60))


@pytest.mark.parametrize("make", [CostWeightedLogisticClassifier, CostSensitiveTreeClassifier])
def test_rows_of_no_weight_and_what_no_time_is_left_for_are_left_out(make):
    X, y = labeled(60)
    weights = np.where(y == 2, 0.0, 1.0)
    model = make(random_state=0).fit(X, y, sample_weight=weights)
    assert model.predict_proba(X)[:, 2].max() < 0.1
    late = make(random_state=0, time_limit=1e-6).fit(X, y)
    assert late.stopped_after_ == 1e-6
    assert late.predict_proba(X).shape == (60, 3)


class Never:
    """A tree that reads nothing and always says the first class."""

    has = np.zeros((1, 1), np.bool_)

    def predict_proba(self, rows):
        return np.tile([1.0, 0.0], (len(rows), 1))

    def apply(self, rows):
        return np.zeros(len(rows), np.int64)


def test_the_error_of_a_candidate_is_by_weights():
    """Nine of twelve rows are the last one."""
    items = FeatureCosts.of({"x": 1.0}, ["x"]).resolve(["x"])
    labels, weights = np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 1.0, 9.0])
    learns = np.ones(4, np.bool_)
    found = TreeValidation(np.zeros((4, 1)), labels, weights, "rows", learns).scored(Never(), items)
    assert (found["error"], found["cost"]) == (0.75, 0.0)
    even = TreeValidation(np.zeros((4, 1)), labels, 0 * weights, "rows", learns)
    assert even.scored(Never(), items)["error"] == 0.25
