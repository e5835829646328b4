"""Trees of classifiers: what is read is paid for, prunings are best, files are checked."""

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest

from bayescascade import FeatureCosts, SubmodularTreeClassifier
from bayescascade.base.errors import (
    ParameterError,
    TooLargeError,
    UnknownLevelWarning,
)
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows, NodeGrowth, grow
from bayescascade.methods.budget.classifier_trees.validation import prunings

COSTS = FeatureCosts({0: 1.0, 1: 2.0, 3: 0.5}, groups={"blood": [2, 3]})


def moons(n, seed):
    """Return rows whose class needs one feature on one side, and three on the other."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 5))
    y = np.where(X[:, 0] > 0, X[:, 1] + 0.3 * X[:, 0] > 0, X[:, 2] * 0.5 + X[:, 3] > 0)
    return X, (y + (X[:, 0] > 1.5)).astype(int)


@pytest.mark.parametrize("basis", ["linear", "bins"])
@pytest.mark.parametrize("seed", range(3))
def test_prunings_are_the_best_for_every_tradeoff(basis, seed):
    X, y = moons(300, seed)
    V, v = moons(80, 100 + seed)
    if seed == 2:  # whom most subtrees serve worse than their roots
        v = np.random.default_rng(0).integers(0, 3, 80)
    items = COSTS.resolve(range(5))
    made = Basis.of(basis, X, np.arange(5))
    rows = GrowingRows.of(made, X, y, np.ones(300), 3)
    tree = grow(rows, items, NodeGrowth((1.5,), max_depth=3))
    path = prunings(tree, items, V, v)
    inner = [place for place, node in enumerate(tree.nodes) if not node.is_leaf]
    every = []
    for cut in chain.from_iterable(combinations(inner, k) for k in range(len(inner) + 1)):
        pruned = tree.cut_at(cut)
        error = float((pruned.predict_proba(V).argmax(axis=1) != v).mean())
        cost = float(items.total(items.paid(pruned.has[pruned.apply(V)])).mean())
        every.append((error, cost))
    for one in path:
        result = float((one.tree.predict_proba(V).argmax(axis=1) != v).mean())
        assert one.error == pytest.approx(result)
        for error, cost in every:
            assert one.error + one.tradeoff * one.cost <= error + one.tradeoff * cost + 1e-12
    for tradeoff in np.geomspace(1e-4, 1.0, 25):
        here = max((p for p in path if p.tradeoff <= tradeoff), key=lambda p: p.tradeoff)
        best = min(error + tradeoff * cost for error, cost in every)
        assert here.error + tradeoff * here.cost == pytest.approx(best)


PRINTED = {"basis": "linear", "selection": "paper", "leaf": "least_squares", "prune": False}


@pytest.mark.parametrize("how", [{}, {"weights": "soft"}, {**PRINTED, "node_budget": 1.5}])
def test_other_rows_are_classified_too(how):
    X, y = moons(600, 0)
    V, v = moons(2000, 7)
    model = SubmodularTreeClassifier(costs=COSTS, max_depth=3, random_state=0, **how).fit(X, y)
    assert model.score(V, v) > 0.65
    assert model.prune or len(model.tree_.nodes) == 7
    assert all(one.explained <= one.bound <= 1 for one in model.certificate_)


def test_text_and_missing_cells_and_an_unknown_level_are_read():
    X, y = moons(400, 3)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(f=np.where(X[:, 1] > 0, "yes", "no"))
    frame.loc[::7, "b"] = np.nan
    frame.loc[::11, "f"] = None
    heard = []
    model = SubmodularTreeClassifier(
        budget=4.0, max_depth=3, random_state=0, progress=heard.append
    ).fit(frame, y)
    assert [report.done for report in heard] == list(range(heard[0].total))
    row = frame.iloc[0]
    acquired = model.acquire(row.__getitem__)
    np.testing.assert_allclose(acquired.probabilities, model.predict_proba(frame.iloc[:1])[0])
    assert "f" in str(model)
    others = frame.iloc[:100].copy()
    others.loc[3, "a"] = np.nan  # of which the rows to learn from have none
    with pytest.warns(UnknownLevelWarning, match="counts as the mean"):
        SubmodularTreeClassifier(max_depth=2).fit(frame, y, others, y[:100])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"node_budget": 0.1}, "node_budget must be at least 1, the cost of the cheapest"),
        ({"node_budget": [1.0, 2.0]}, "node_budget must have one number or 31"),
        ({"costs": {0: float("nan")}}, r"costs\[0\] must be"),
    ],
)
def test_bad_parameters_are_named(changed, words):
    X, y = moons(60, 0)
    with pytest.raises(ParameterError, match=words):
        SubmodularTreeClassifier(**{"costs": COSTS, **changed}).fit(X, y)


def test_too_many_sets_are_refused_by_name():
    X = np.random.default_rng(0).normal(size=(100, 60))
    with pytest.raises(TooLargeError, match='got "exact" with 60 features'):
        SubmodularTreeClassifier(selection="exact", node_budget=30.0).fit(X, X[:, 0] > 0)
