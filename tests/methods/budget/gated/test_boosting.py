"""Boosted trees of gates and local models: growing them, and what they pay for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade import AdaptiveClassifier, FeatureCosts, GreedyMiserClassifier
from bayescascade.methods.budget.gated.boosted import Boosting
from bayescascade.methods.budget.gated.growing import GateGrowth, Grower
from tests.methods.budget.gated import slow_trees
from tests.methods.budget.gated.problems import mixed, problem

COSTS = FeatureCosts({0: 1.0, 1: 2.0, 2: 0.5}, groups={"blood": [1, 2]})


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", ["none", "once", "per_row"])
def test_trees_are_those_of_the_slow_twin(seed, penalty):
    """Two trees, the second after what the first has paid for; cells are missing."""
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(160, 4)), 1 + seed % 2).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1 * (seed % 3)] = np.nan
    items = COSTS.resolve([0, 1, 2, 3])
    growth = GateGrowth(depth=1 + seed % 4, ridge=0.5, least=2.0, rate=0.3)
    grower = Grower.of(rows, np.ones(160), items, growth, penalty)
    price = {"none": 0.0, "once": 1.5, "per_row": 0.03}[penalty]
    sizes = rng.uniform(0.2, 1.0, 160)
    buying = grower.buying(price, sizes)
    by_name = {
        "once": price if penalty == "once" else 0.0,
        "per_row": price if penalty == "per_row" else 0.0,
        "bought": np.zeros(items.n_items, bool),
        "paid": np.zeros((160, items.n_items), bool),
        "sizes": sizes,
    }
    incurred = [items.of_column(j).tolist() for j in range(4)]
    codes = grower.data.codes.astype(int)
    assert (codes == grower.data.n_bins).any(axis=0).tolist() == np.isnan(rows).any(axis=0).tolist()
    added = np.zeros(160)
    for _ in range(2):
        gradients, curvatures = rng.normal(size=160), rng.uniform(0.1, 1.0, 160)
        gradients += np.nan_to_num(rows[:, seed % 4])
        before = added.copy()
        tree = grower.grow(buying, gradients, curvatures, added)
        twin = slow_trees.grown(
            codes, grower.data.n_bins, gradients, curvatures, growth, incurred, items.costs, by_name
        )
        assert_allclose(added - before, slow_trees.scores(twin, 160), rtol=1e-9, atol=1e-12)
        assert (buying.bought == by_name["bought"]).all()
        if penalty == "per_row":
            assert (buying.paid.astype(bool) == by_name["paid"]).all()
        assert (tree.column >= 0).any()
    assert_allclose(added - before, grower.scores([tree], np.zeros(1)).of(rows, rows[0])[:, 0])
    if penalty != "none":  # nothing is worth such a price
        dear = grower.grow(grower.buying(1e6, sizes), gradients, curvatures, added)
        assert (dear.column < 0).all()


@pytest.mark.parametrize("penalty", ["once", "per_row"])
def test_without_a_full_share_it_is_greedy_miser(penalty):
    """With one, rows that are sent count less, and other trees grow."""
    (X, y), validation = mixed(300, 0), mixed(200, 1)
    how = {"penalty": penalty, "tradeoff": 0.01, "costs": COSTS}
    miser = GreedyMiserClassifier(n_boosted=20, **how, random_state=0).fit(X, y, *validation)
    grown = {one.fit.n_trees: one.fit.local.to_record() for one in miser.path_}
    for share in (0.0, 0.4):
        how |= {"n_boosted": 10 if share == 0.0 else 20, "n_trees": 3, "full_share": share}
        gate = AdaptiveClassifier(**how, random_state=0)
        gate.fit(X, y, *validation)
        found = {one.fit.n_trees: one.fit.local.to_record() for one in gate.path_}
        assert found.keys() == grown.keys()
        assert (found == grown) == (share == 0.0)


@pytest.mark.parametrize("penalty", ["once", "set", None])
@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_a_budget_of_one_feature_buys_one(penalty, scale):
    """Trees whose largest price lets them buy three at once would buy nothing; in any currency."""
    X = np.random.default_rng(0).normal(size=(900, 4))
    costs = FeatureCosts({j: scale for j in range(4)})
    model = GreedyMiserClassifier(penalty=penalty, costs=costs, budget=scale, n_boosted=30)
    model = model.set_params(random_state=0).fit(X[:600], (X[:600, :3].sum(axis=1) > 0))
    assert np.count_nonzero(model.feature_shares_) == 1
    assert model.score(X[600:], X[600:, :3].sum(axis=1) > 0) > 0.6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_set_has_the_features_that_matter_and_its_trees_see_all_rows(n_classes):
    """Else a quarter of the rows would be wasted on the choice, or the budget on noise."""
    X = np.random.default_rng(0).normal(size=(400, 6))
    y = np.digitize(X[:, 1] + X[:, 4], [0.0, 1.0][: n_classes - 1])
    costs = FeatureCosts({1: 3.0, 4: 2.0})
    model = GreedyMiserClassifier(penalty="set", costs=costs, budget=5.0, n_boosted=60)
    model = model.set_params(random_state=0).fit(X, y)
    assert np.flatnonzero(model.feature_shares_).tolist() == [1, 4]
    assert model.acquisition_cost(X).max() <= 5.0
    assert all(one.fit.penalty == "set" for one in model.path_)
    chosen = min(model.path_, key=lambda one: (one.cost > 5.0, one.error, one.cost))
    (part,), (whole,) = (
        {int(one.trees.n_trees) // one.intercept_.size} for one in (chosen.fit.local, model.local_)
    )
    assert part == whole
    assert chosen.fit.local.to_record() != model.local_.to_record()


def test_what_time_ends_has_tried_a_bit_of_everything():
    """If time is up halfway, both penalties and small prices must not be missing."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = GreedyMiserClassifier(n_boosted=5, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    all_fits = list(model._trial.learner.tried(model._trial.validation.learns))
    half = all_fits[: len(all_fits) // 2]
    for penalty in ("once", "per_row"):
        every, early = (
            [one.tradeoff for one in fits if one.penalty == penalty] for fits in (all_fits, half)
        )
        assert max(early) == max(every)
        assert min(early) <= np.quantile(every, 0.25)
    scored = [(one.fit.penalty, -one.fit.tradeoff) for one in model.path_]
    assert scored == sorted(scored)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_newton", [True, False])
def test_more_trees_lower_the_objective(n_classes, is_newton):
    """Trees that climbed would raise it, and fixed ones leave it where it was."""
    one = problem(0, n=200, n_classes=n_classes, full_share=0.3)
    items = FeatureCosts().resolve(list(range(4)))
    growth = GateGrowth(depth=3, ridge=1.0, least=0.5, rate=0.2)
    grower = Grower.of(one.rows, one.weights, items, growth, "none")
    values = []
    for n_trees in (1, 4, 16, 64):
        boosting = Boosting(n_trees, n_trees, 1, is_newton)
        sums = boosting.adapted(one, grower, 0.0, boosting.greedy(one, grower, 0.0))
        values.append(one.value_at(sums.gates, sums.outputs.T))
    assert (np.diff(values) < -0.005).all()
