"""Trees whose classifiers move together: the objective as printed, draws, and what is read."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from bayescascade import (
    CostSensitiveTreeClassifier,
    CostSensitiveTreePosterior,
    FeatureCosts,
    explore,
)
from bayescascade.base.errors import ParameterError
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows, NodeGrowth, grow
from bayescascade.model.ascent import ascend
from tests.methods.budget.classifier_trees.soft_trees import COSTS, posterior


def slow_objective(of, state, n_classes, seed):
    """Return J by paths from the root, one node and one row after the other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + 2.0
    y = np.where(X[:, 0] > 2.0, X[:, 1] > 2.0, X[:, 3] > 2.3).astype(int)
    y = np.where(X[:, 4] > 3.0, n_classes - 1, y)
    weights = rng.uniform(0.5, 2.0, 80)
    weights /= weights.sum()
    mean = weights @ X
    Z = (X - mean) / np.sqrt(weights @ (X - mean) ** 2)
    labels = np.eye(n_classes)[y] * 2 - 1
    labels = labels[:, 1:] if n_classes == 2 else labels
    coefficients, thresholds = of.parts(state)
    e, total = (
        of.smoothing,
        of.penalty * np.sum(np.sqrt(coefficients[:, :-1] ** 2 + of.smoothing**2) - of.smoothing),
    )
    items = {1.0: [0], 2.0: [1], 0.5: [2, 3]}  # the cost of each, and its features
    ways = [[(0, None)]]
    while ways:
        way = ways.pop()
        node = of.tree.nodes[way[-1][0]]
        reach = weights.copy()
        for (above, _), (_, is_up) in pairwise(way):
            scores = (Z @ coefficients[above][:-1] + coefficients[above][-1]) @ of._directions[
                above
            ]
            up = expit(scores - thresholds[above])
            reach = reach * (up if is_up else 1 - up)
        own = coefficients[way[-1][0]]
        if node.is_leaf or of.loss_at == "all":
            total += reach @ np.sum((labels - Z @ own[:-1] - own[-1]) ** 2, axis=1)
        if node.is_leaf:
            read = np.stack([coefficients[k][:-1] for k, _ in way])
            for cost, features in items.items():
                norm = np.sqrt(np.sum(read[:, features] ** 2) + e**2) - e
                total += of.tradeoff * reach.sum() * cost * norm
        else:
            ways += [
                [*way, (child, s)] for child, s in zip(node.children, (True, False), strict=True)
            ]
    return total


@pytest.mark.parametrize("loss_at", ["all", "leaves"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_is_the_formula(n_classes, loss_at):
    of = posterior(n_classes, 4, loss_at=loss_at, temperature=0.5)
    assert len(of.tree.nodes) == 7
    for seed in range(3):
        state = of.initial_state(np.random.default_rng(seed))
        expected = slow_objective(of, state, n_classes, 4)
        assert of.objective(state) == pytest.approx(expected, rel=1e-12)
        assert of.log_density(state) == pytest.approx(-of.n_rows * expected / 0.5, rel=1e-12)


def test_it_climbs_and_gates_become_those_of_the_state():
    of = posterior(2, 1)
    run = ascend(of, [of.start], max_iter=100)
    assert run.best_log_density > of.log_density(of.start) + 1.0
    coefficients, thresholds = of.parts(of.start)
    X = np.random.default_rng(9).normal(size=(50, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + 2.0
    root = of.standard.scaled(X) @ coefficients[0, :-1, 0] + coefficients[0, -1, 0] > thresholds[0]
    assert 0 < root.sum() < 50
    for place, there in of.learned(of.start).visited(X):
        if place in (1, 2):
            assert (root[there] == (place == 1)).all()
    tree = of.learned(run.best_state)
    few = of.learned(run.best_state, 0.2)
    assert few.has.sum() < tree.has.sum()
    dear = ascend(of.with_tradeoff(50.0), [of.start], max_iter=300).best_state
    assert not of.learned(dear, 0.01).has[:, :4].any()


@pytest.mark.parametrize(("asked", "is_right"), [(1.0, True), (2.0, False)])
def test_draws_of_a_single_classifier_are_those_of_least_squares(asked, is_right):
    """Without costs its density is normal; that of another temperature is not taken for it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(np.int64)
    rows = GrowingRows.of(Basis.of("linear", X, np.arange(2)), X, y, np.ones(60), 2)
    items = FeatureCosts().resolve(range(2))
    tree = grow(rows, items, NodeGrowth((3.0,), "greedy", 1, "soft", "least_squares"))
    of = CostSensitiveTreePosterior(tree, rows, items, temperature=asked)
    found = explore(of, "langevin", n_steps=1_500, n_chains=2, random_state=0)
    drawn = np.array([state for chain in found.run_.draws for state in chain])
    Z = np.column_stack([of.standard.scaled(X), np.ones(60)])
    mean = np.linalg.solve(Z.T @ Z, Z.T @ (2 * y - 1))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.05)
    deviations = np.sqrt(np.diag(np.linalg.inv(2 * Z.T @ Z)))
    ratio = drawn.std(axis=0) / deviations
    assert bool((np.abs(ratio - 1) < 0.2).all()) == is_right


@pytest.mark.slow
def test_a_budget_holds_and_the_state_is_that_of_the_posterior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = np.where(X[:, 0] > 0, X[:, 1] > 0, X[:, 2] + X[:, 3] > 0).astype(int)
    model = CostSensitiveTreeClassifier(costs=COSTS, loss_at="leaves", budget=3.6, random_state=0)
    model.fit(X, y)
    assert model.validation_cost_ <= 3.6
    assert model.score(X, y) > 0.8
    assert model.log_posterior_ == pytest.approx(
        model.posterior_.log_density(model.posterior_.start)
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tradeoff": -1.0}, "tradeoff must be a finite number >= 0"),
        ({"loss_at": "root"}, "loss_at must be"),
        ({"smoothing": 0.0}, "smoothing must be a finite number > 0"),
        ({"temperature": float("nan")}, "temperature must be a finite number > 0"),
    ],
)
def test_bad_parameters_are_named(given, words):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ParameterError, match=words):
        CostSensitiveTreeClassifier(**given).fit(X, X[:, 0] > 0)
    if "loss_at" not in given:
        with pytest.raises(ParameterError, match=words):
            posterior(**given)
