"""What a node buys: sums against least squares, the best set against all sets, the bound."""

from itertools import combinations

import numpy as np
import pytest

from bayescascade import FeatureCosts
from bayescascade.costs.limits import is_within
from bayescascade.methods.budget.classifier_trees.scaling import squares_of
from bayescascade.methods.budget.classifier_trees.selection import NodeChoices
from tests.methods.budget.classifier_trees.problems import explained


def draw(seed, d=6):
    """Return a node of d features: groups, copies, a constant, free ones, weights of both kinds."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(20, 60))
    sizes = generator.integers(1, 4, d) if seed % 2 else np.ones(d, np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    mixing = np.eye(starts[-1]) + generator.normal(size=(starts[-1], starts[-1])) * (seed % 3)
    columns = generator.normal(size=(n, starts[-1])) @ mixing * 10.0 ** generator.integers(-3, 4)
    if seed % 5 == 0:
        columns[:, 0] = 7.3e5
    if seed % 7 == 0:
        columns[:, -1] = columns[:, 0]
    targets = np.eye(3)[generator.integers(0, 3, n)] if seed % 4 else generator.normal(size=(n, 1))
    targets[:, 0] += columns[:, 1] / np.abs(columns[:, 1]).max()
    weights = generator.random(n) if seed % 2 else (generator.random(n) < 0.7).astype(float)
    costs = dict(enumerate(generator.choice([0.0, 0.5, 1.0, 3.0], d)))
    groups = {"blood": [0, 2], "urine": [2, 3]} if seed % 3 == 0 else {}
    items = FeatureCosts(costs, groups=groups).resolve(range(d))
    return columns, targets, weights, starts, items


def node_of(problem, inherited, ridge):
    columns, targets, weights, starts, items = problem
    has = np.isin(np.arange(items.n_columns), inherited)
    return NodeChoices(squares_of(columns, targets, weights, ridge).squares, starts, items, has)


def best_value(problem, inherited, budget, ridge):
    """Return the largest z of a set within the budget, by looking at all."""
    items, d = problem[-1], problem[-1].n_columns
    others = [f for f in range(d) if f not in inherited]
    paid = items.paid(np.isin(np.arange(d), inherited)[np.newaxis])
    best = -np.inf
    for k in range(len(others) + 1):
        for more in combinations(others, k):
            has = np.isin(np.arange(d), (*inherited, *more))[np.newaxis]
            cost = float(items.costs[items.paid(has)[0] & ~paid[0]].sum())
            if is_within(cost, budget):
                best = max(best, explained(problem, (*inherited, *more), ridge))
    return best


@pytest.mark.parametrize("seed", range(24))
def test_gains_are_those_of_least_squares_and_best_sets_those_of_enumeration(seed):
    problem = draw(seed)
    inherited = ((), (1,), (0, 3))[seed % 3]
    ridge = (1e-6, 1e-2)[seed % 2]
    budget = (0.5, 2.0, 4.0)[seed % 3]
    node = node_of(problem, inherited, ridge)
    best = best_value(problem, inherited, budget, ridge)
    for how in ("paper", "greedy", "auto", "exact"):
        bought = node.choose(budget, how)
        has = inherited
        for feature, gain in zip(bought.features.tolist(), bought.gains, strict=True):
            before = explained(problem, has, ridge)
            has = (*has, feature)
            assert gain == pytest.approx(explained(problem, has, ridge) - before, abs=1e-9)
        assert bought.explained == pytest.approx(explained(problem, has, ridge), abs=1e-9)
        assert bought.bound >= best - 1e-9
        assert bought.explained <= best + 1e-9
        if how in ("auto", "exact"):
            assert bought.is_exact
            assert bought.explained == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("by_price", [False, True])
def test_greedy_buys_what_explains_most_or_most_for_its_price(by_price):
    """The budget would buy less than it could."""
    prices = np.array([3.0, 0.5, 1.0, 2.0, 0.2, 1.5])
    for seed in range(1, 12):
        items = FeatureCosts(dict(enumerate(prices.tolist()))).resolve(range(6))
        problem = (*draw(seed)[:-1], items)
        values = np.array([explained(problem, (feature,), 1e-6) for feature in range(6)])
        values /= prices if by_price else 1.0
        bought, _ = node_of(problem, (), 1e-6).greedy(4.0, by_price=by_price, skips=True)
        assert values[bought[0]] == pytest.approx(values.max(), rel=1e-6)


@pytest.mark.slow
def test_no_set_exceeds_the_certificate():
    tightest = 0.0
    for seed in range(1000):
        problem, budget = draw(seed, 5), float(np.random.default_rng(seed).choice([0.5, 1, 3, 5]))
        best = best_value(problem, (), budget, 1e-6)
        for how in ("greedy", "paper"):
            bought = node_of(problem, (), 1e-6).choose(budget, how)
            assert best <= bought.bound + 1e-9
            tightest = max(tightest, best / bought.bound if bought.bound else 0.0)
    assert tightest > 0.999


EXTREMES = {
    "weights": lambda x, w: (x, w * 10.0 ** np.linspace(-12, 12, len(w))),
    "huge weights": lambda x, w: (x, w * 1e15),
    "copies": lambda x, w: (x[:, [0, 0, 1, 1, 4]], w),
    "nearly copies": lambda x, w: (x[:, [0, 0, 0, 3, 4]] + 1e-9 * x, w),
    "constants": lambda x, w: (x * [1, 0, 1, 0, 1] + [0, 1e9, 0, -3e-9, 0], w),
    "all constant": lambda x, w: (0 * x + 7.1, w),
    "scales": lambda x, w: (x * 10.0 ** np.array([-150, 150, 0, 80, -80]), w),
    "wide scales": lambda x, w: (x * 10.0 ** np.array([-200, 200, -290, 290, 0]), w),
    "far": lambda x, w: (x + 1e8, w),
    "one outlier": lambda x, w: (np.where(np.arange(len(x))[:, None] == 3, 1e12, x), w),
}


@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("n", [12, 1_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_certificates_hold_at_extremes(kind, n):
    generator = np.random.default_rng(n)
    x = generator.normal(size=(n, 5)) @ generator.normal(size=(5, 5))
    x, weights = EXTREMES[kind](x, generator.random(n))
    with np.errstate(invalid="ignore"):
        scaled = (x - x.mean(axis=0)) / np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1.0)
    y = (scaled @ [1.0, 0.5, -0.7, 0.2, 0.1] + generator.normal(size=n) * 0.1 > 0)[:, None] * 1.0
    y[:2] = [[0.0], [1.0]]
    items = FeatureCosts(dict(enumerate([1.0, 1.0, 0.5, 2.0, 0.0]))).resolve(range(5))
    problem = scaled, y, weights, np.arange(6), items
    best = best_value(problem, (), 2.0, 1e-6)
    node = node_of((x, y, weights, np.arange(6), items), (), 1e-6)
    for how in ("paper", "greedy", "auto"):
        bought = node.choose(2.0, how)
        assert bought.explained <= best + 1e-7
        assert bought.bound >= best - 1e-7
        assert np.isfinite([bought.explained, bought.bound]).all()
    assert bought.is_exact
    assert bought.explained == pytest.approx(best, abs=1e-7)
