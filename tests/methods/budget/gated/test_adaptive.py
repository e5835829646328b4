"""A gate between a local and a full model: its objective, its search, its rows and their costs."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import entr, expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVC

from bayescascade import AdaptiveClassifier, FeatureCosts, ParameterError, explore
from bayescascade.costs.items import CostNorms
from bayescascade.methods.budget.gated.alternating import GroupNorm, alternated
from bayescascade.methods.budget.gated.choosing import GateValidation, scored
from bayescascade.methods.budget.gated.full import FullClassifier
from bayescascade.methods.budget.gated.gated import Gated
from bayescascade.methods.budget.gated.linear import ColumnScaling, LinearScores
from bayescascade.methods.budget.gated.objective import best_log_odds, best_split, class_chances
from bayescascade.methods.budget.gated.oracle import oracle_of
from bayescascade.methods.budget.gated.selecting import Fit
from tests.methods.budget.gated.problems import four_clusters, mixed, problem, state

LINEAR = {"learner": "linear"}
COSTS = FeatureCosts({0: 1.0, 1: 2.0, 2: 0.5}, groups={"blood": [1, 2]})


# -- the objective ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SciPy's, of 1.15
@pytest.mark.parametrize("limit", [0.05, 0.3, 0.8])
def test_shares_are_those_of_a_general_solver(limit):
    """Without the price of a share, rows would go to the full model as they like."""
    rng = np.random.default_rng(int(100 * limit))
    gaps, sizes = rng.normal(0.5, 2, 7), rng.dirichlet(np.ones(7))

    def objective(q):
        return sizes @ (-q * gaps - entr(q) - entr(1 - q))

    found = minimize(
        objective, np.full(7, limit / 2), jac=lambda q: sizes * (np.log(q / (1 - q)) - gaps),
        bounds=[(1e-9, 1 - 1e-9)] * 7, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda q: limit - sizes @ q},
    )  # fmt: skip
    shares, beta, _ = best_split(gaps, sizes, limit)
    assert_allclose(shares, found.x, atol=1e-5)
    assert objective(shares) <= found.fun + 1e-12
    assert sizes @ shares <= limit + 1e-12
    free = expit(gaps)
    assert (beta > 0) == (sizes @ free > limit)
    assert beta == 0 or not np.allclose(free, found.x, atol=1e-2)


@pytest.mark.parametrize("seed", range(4))
def test_log_odds_are_those_of_many_starts(seed):
    """Nested bisections against the best of ten; with the price of a share left out, they err."""
    rng = np.random.default_rng(seed)
    gaps, gates = 3 * rng.normal(size=6), rng.normal(size=6)
    sizes = rng.dirichlet(np.full(6, 5.0))
    limit = 0.8 * float(sizes @ best_log_odds(gaps, gates, sizes, 1.0).shares)

    def objective(s):
        return sizes @ (expit(-s) * gaps + (s - gates) ** 2)

    def slope(s):
        return sizes * (-expit(s) * expit(-s) * gaps + 2 * (s - gates))

    within = {
        "type": "ineq", "fun": lambda s: limit - sizes @ expit(s),
        "jac": lambda s: -sizes * expit(s) * expit(-s),
    }  # fmt: skip
    ends = [
        minimize(objective, gates + rng.normal(size=6) - 2, jac=slope, method="SLSQP",
                 constraints=within, options={"ftol": 1e-14, "maxiter": 500})
        for _ in range(10)
    ]  # fmt: skip
    best = min(end.fun for end in ends if within["fun"](end.x) > -1e-9)
    shares, beta, logits = best_log_odds(gaps, gates, sizes, limit)
    assert sizes @ shares <= limit + 1e-12
    assert objective(logits) <= best + 1e-8
    assert beta > 0
    assert np.abs(gaps - beta).max() < 12 * np.sqrt(3)  # a single root of each row
    assert sizes @ best_log_odds(gaps, gates, sizes, 1.0).shares > limit


@pytest.mark.slow
def test_log_odds_of_rows_with_several_roots():
    """Each row by itself, against a fine grid."""
    rng = np.random.default_rng(0)
    gaps, gates = rng.choice([-60.0, -25, 25, 40, 300], 50), 6 * rng.normal(size=50)
    _, _, logits = best_log_odds(gaps, gates, np.full(50, 0.02), 1.0)
    grid = np.linspace(-60, 60, 240_001)[:, np.newaxis]
    least = (gaps * expit(-grid) + (grid - gates) ** 2).min(axis=0)
    assert (gaps * expit(-logits) + (logits - gates) ** 2 <= least + 1e-6).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("full_share", [0.0, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_the_objective_is_its_definition(n_classes, full_share, size):
    """With shares and entropy written out; without a limit, the likelihood of a mixture."""
    one = problem(3, n_classes=n_classes, full_share=full_share)
    at, sizes = state(one, 5, size), one.weights / one.weights.sum()
    kept, sent = one.losses(at)
    q = one.split(at).shares
    assert sizes @ q <= full_share + 1e-9
    whole = (1 - q) * kept + q * sent - entr(q) - entr(1 - q)
    assert_allclose(one.value_and_split(at)[0], sizes @ whole + one.penalty(at), rtol=1e-9)
    if full_share == 1.0 and size == 1.0:
        gate, own = expit(one.rows @ at.gate), np.arange(len(one.labels))
        local = class_chances(one.rows @ at.local)[own, one.labels]
        both = np.log((1 - gate) * local + gate * np.exp(-one.full_losses))
        assert_allclose(one.value_and_split(at)[0], -sizes @ both + one.penalty(at), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("gamma", "distance"), [(None, "kl"), (None, "log_odds"), (0.01, "kl")])
def test_no_round_raises_the_objective_and_it_ends_at_a_minimum(n_classes, gamma, distance):
    ridge = 1.0 if gamma is None else 0.0
    one = problem(1, n_classes=n_classes, ridge=ridge, distance=distance)
    norm = None
    if gamma is not None:
        items = FeatureCosts.of([1.0, 2.0, 3.0]).resolve([0, 1, 2])
        norm = GroupNorm(CostNorms.of(items, np.arange(3), n_free=1), gamma)
    values = []
    everything = np.ones(4, np.bool_)
    found, value = alternated(one, state(one, 2), everything, norm, values.append)
    assert len(values) > 3
    assert max(np.diff(values)) <= 1e-12
    assert value == pytest.approx(
        one.value_and_split(found)[0] + (0.0 if norm is None else norm.total(found))
    )
    slope = one.value_and_gradient(found)[1]
    steep = max(np.abs(slope.gate).max(), np.abs(slope.local).max())
    if distance == "kl":  # log odds move little in a round
        assert steep < 0.02 if norm is None else steep <= 3 * gamma + 0.02


def test_an_ascent_of_the_posterior_ends_where_the_alternation_does():
    X, y = mixed(300, 0)
    how = {**LINEAR, "full_share": 0.3, "tradeoff": 0.0, "cut": 0.0, "random_state": 0}
    model = AdaptiveClassifier(RandomForestClassifier(20, random_state=0), **how).fit(X, y)
    posterior = model.posterior_
    found = explore(posterior, search="ascent", starts=[model.state()], random_state=0)
    before, after = (posterior.describe(s)["objective"] for s in (model.state(), found.state))
    assert after <= before <= after + 1e-3
    kept, sent = posterior.losses(found.state)
    shares = posterior.shares(found.state)
    assert shares.mean() <= 0.3 + 1e-9
    assert np.corrcoef(kept - sent, shares)[0, 1] > 0.3


# -- sets and cuts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "seed"), [("+-+-", 0), ("+--+", 1)])
def test_the_set_of_synthetic_2(labels, seed):
    """As printed, from zeros and cut at 0, the optimum is not reached."""
    X, y = four_clusters(labels, seed)
    model = AdaptiveClassifier(SVC(), **LINEAR, random_state=0).fit(X, y, X, y)
    assert model.score(X, y) == 1.0
    assert model.acquisition_cost(X).mean() <= 110 / 70 + 1e-12
    assert np.flatnonzero(model.local_.coef_[0]).tolist() == [1]
    assert model.sent_share_ == pytest.approx(model.acquisition_cost(X).mean() - 1.0)
    with pytest.raises(ParameterError, match="saved as JSON, got SVC"):
        model.to_record()
    printed = AdaptiveClassifier(
        SVC(),
        **LINEAR,
        selection="group_lasso",
        start="zero",
        cut=0.0,
        tradeoff=0.01,
        full_share=0.5,
    ).fit(X, y, X, y)
    assert printed.acquisition_cost(X).mean() > 1.6 or printed.score(X, y) < 1


class Narrow(FullClassifier):
    """A full model that does not read the first column, which the gate reads."""

    def used(self, X):
        return np.tile([False, True, True], (len(X), 1))


@pytest.mark.parametrize("kind", [FullClassifier, Narrow])
def test_cuts_worth_a_look_are_those_of_all_cuts(kind):
    """By errors and costs: rows that are sent pay for what gate and full model read."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal(size=(30, 3)), 1), rng.integers(0, 2, 30)
    items = COSTS.resolve([0, 1, 2])
    one = replace(problem(0, n=30, p=3), rows=np.column_stack([X, np.ones(30)]))
    at = state(one, 4)
    at.gate[1], at.local[[0, 1]] = 0.0, 0.0
    full = kind(LogisticRegression().fit(X, y), None, 3)
    gate, local = (
        LinearScores.of_scaled(part, ColumnScaling(np.zeros(3), np.ones(3)))
        for part in (at.gate[:, np.newaxis], at.local)
    )
    nothing = Gated.of(full, np.zeros(3), np.arange(3), np.full(2, 0.5))
    model = replace(nothing, gate=gate, local=local)
    wrong = full.probabilities(X).argmax(axis=1) != y
    weights = np.arange(30) % 4 + 0.5
    learns = np.ones(30, np.bool_)
    validation = GateValidation(X, y, weights, "rows", learns, wrong, full.used(X))
    fit = Fit(at, np.ones(4, np.bool_), 0.3, 0.0, 0.0, 0.0)
    found = scored(fit, model, validation, items, None)
    scores = np.unique(model.scores(X))
    every = []
    for cut in (-np.inf, np.inf, *(0.5 * (scores[1:] + scores[:-1]))):
        cutting = replace(model, cut=cut)
        said = cutting.probabilities(X).argmax(axis=1)
        error = np.average(said != y, weights=weights)
        every.append((items.total(items.paid(cutting.used(X))).mean(), error))
    assert_allclose([(one.cost, one.error) for one in found], _frontier(every), atol=1e-12)
    for one in found:
        (again,) = scored(fit, model, validation, items, one.cut)
        assert_allclose(again[1:] if isinstance(again, tuple) else
                        (again.error, again.cost, again.sent_share),
                        (one.error, one.cost, one.sent_share), atol=1e-12)  # fmt: skip


def _frontier(points):
    kept = []
    for cost, error in sorted(points):
        if not kept or error < kept[-1][1] - 1e-12:
            kept.append((cost, error))
    return kept


def test_the_oracle_is_the_best_of_all_gates():
    """Of all ways to send nine rows; full models that cost less on some rows are there, too."""
    rng = np.random.default_rng(1)
    local_wrong, full_wrong = rng.random((2, 9)) < [[0.5], [0.3]]
    local, full = np.round(rng.uniform(0, 2, 9), 2), np.round(rng.uniform(1, 5, 9), 2)
    found = oracle_of(local_wrong, full_wrong, local, full, np.arange(9) < 4)
    every = np.array([
        (np.where(sent, full, local).mean(), np.where(sent, full_wrong, local_wrong).mean())
        for sent in (np.array(one) for one in product((False, True), repeat=9))
    ])  # fmt: skip
    assert (np.diff(found.costs) >= 0).all()
    for cost, error in zip(found.costs, found.errors, strict=True):
        assert error == pytest.approx(every[every[:, 0] <= cost + 1e-12, 1].min())
    for cost, error in every:
        assert found.error_at(cost + 1e-12) <= error + 1e-9
    assert found.lost_to_gate >= 0
    assert "best gate" in str(found)


# -- rows and what they pay ------------------------------------------------------------------------


@pytest.mark.parametrize("how", [LINEAR, {"n_boosted": 20}])
def test_more_is_bought_for_fewer_errors(how):
    X, y = mixed(500, 2)
    X_val, y_val = mixed(400, 3)
    model = AdaptiveClassifier(n_trees=10, full_share=0.3, random_state=0, **how)
    model.fit(X, y, X_val, y_val)
    path = model.path([0.0, 1.0, 2.0, 3.0])
    errors = [np.mean(each.predict(X_val) != y_val) for each in path]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] - 0.1
    assert "nothing is bought" in str(path[0]) or "buys nothing" in str(path[0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"estimator": LinearRegression()}, "estimator must be a classifier, got LinearReg"),
        ({"costs": [1.0, np.nan, 1.0, 1.0]}, "must be a finite number >= 0, got nan"),
        ({"selection": "group_lasso"}, 'learner must be "linear" with selection'),
        ({"distance": "log_odds"}, 'learner must be "linear" with distance'),
        ({"max_depth": 9}, "max_depth must be an integer .*8, got 9"),
    ],
)
def test_bad_input_is_named(changed, message):
    X, y = mixed(60, 0)
    with pytest.raises(ParameterError, match=message):
        AdaptiveClassifier(**changed).fit(X, y)


def test_full_models_of_other_rows_are_refused():
    X, y = mixed(80, 0)
    for other, message in (
        (LogisticRegression().fit(X[:, :3], y), "fitted on the 4 columns of the rows, got 3"),
        (LogisticRegression().fit(X, y + 1), r"classes of y, \[0, 1\], got \[1, 2\]"),
    ):
        with pytest.raises(ParameterError, match=message):
            AdaptiveClassifier(other).fit(X, y)
    with pytest.raises(ValueError, match="class"):
        AdaptiveClassifier(n_trees=3).fit(X, np.zeros(80))
    constant = np.column_stack([X[:, 0], np.ones(80)])
    model = AdaptiveClassifier(n_trees=3, n_boosted=5, random_state=0).fit(constant, y)
    assert not model.features_used(constant)[:, 1].any()
