"""Policies of boxes: the best of all, drawn as often as they are probable, and the same in SQL."""

import json
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chisquare
from sklearn.linear_model import LogisticRegression

import bayescascade
from bayescascade import FeatureCosts, MarginNeighborsClassifier, explore
from bayescascade.base.errors import InternalError, ModelFileError, ParameterError, TooLargeError
from bayescascade.methods.margin_neighbors.boxes import BoxTable, Policy
from bayescascade.methods.margin_neighbors.policy_posterior import PolicyPosterior
from tests.methods.margin_neighbors.problems import problem

duckdb = pytest.importorskip("duckdb")

EXAMPLE = np.array(  # the thesis's figure 2.1
    [[1, -1, -1]] * 2 + [[-1, 1, 1]] * 2 + [[-1, 1, -1]] + [[1, 1, 1]] * 3
)
LABELS = np.array([0] * 4 + [1] * 4)
PRINTED = np.array([0.9995, 1.4998, -0.5002]), -0.9997


def example(tradeoff, scores=None):
    bins = (EXAMPLE + 1) // 2
    items = FeatureCosts().resolve(range(3))
    table = BoxTable.of(bins, [2, 2, 2], LABELS, np.ones(8), 2, items, scores)
    return PolicyPosterior(table, tradeoff)


def every_policy(bins, labels, weights, sizes, tradeoff):
    """Yield all policies in preorder, with what each errs and costs; it knows nothing of ours."""

    def price(measured, feature):
        own = {0: 0.7, 1: 0.2}.get(feature, 0.0 if feature == 2 else 1.0)
        is_new = feature in (1, 2) and not {1, 2} & {*measured}
        return own + is_new * 1.0

    def below(rows, measured):
        counts = np.bincount(labels[rows], weights[rows], 2)
        yield (-1,), counts.sum() - counts.max()
        if not len(rows):
            return
        for feature in (j for j in range(len(sizes)) if j not in measured):
            cost = tradeoff * price(measured, feature) * weights[rows].sum()
            inside = [
                list(below(rows[bins[rows, feature] == b], (*measured, feature)))
                for b in range(sizes[feature])
            ]
            for parts in product(*inside):
                nodes = (feature, *(node for part in parts for node in part[0]))
                yield nodes, cost + sum(part[1] for part in parts)

    return dict(below(np.arange(len(labels)), ()))


def test_the_thesiss_example():
    """Counts 4, 6, 4; then 5/6 and 3/6; but the best policy asks x_1 first."""
    w, offset = PRINTED
    scores = np.array([offset]), [np.array([[-each], [each]]) for each in w]
    table = example(0.001, scores).boxes
    right = [8 - sum(table.errors[d * table.strides[j]] for d in (1, 2)) for j in range(3)]
    assert right == [4, 6, 4]
    x_2 = 2 * table.strides[1]
    inside = [sum(table.errors[x_2 + d * table.strides[j]] for d in (1, 2)) for j in (0, 2)]
    assert table.weights[x_2] == 6
    assert [6 - wrong for wrong in inside] == [5, 3]
    posterior = example(0.01)
    assert posterior.best.nodes[0] == 0
    assert posterior.describe(posterior.best) == {"n_questions": 3, "error": 0, "cost": 2.0}
    assert posterior.greedy.nodes[:3] == (1, -1, 0)
    assert posterior.describe(posterior.greedy)["cost"] == 17 / 8
    assert math.isinf(posterior.log_density(Policy((0, 0, -1, -1, -1))))


def test_a_policy_that_does_not_keep_its_claim_is_not_certified():
    """Whatever is wrong with the recursion, no print may call its policy the best."""
    posterior, _ = problem(0, tradeoff=0.1)
    assert 0 < posterior.certificate.gap < 1e-9
    posterior.solved.best[0] *= 1 - 1e-9
    with pytest.raises(InternalError, match=r"a search found .* but its result is worth"):
        explore(posterior, "exact", solve=lambda _, search: posterior.solve(search))


@pytest.mark.parametrize(
    ("seed", "how"),
    [
        (0, {"tradeoff": 0.1}),
        (1, {"tradeoff": 0.0, "temperature": 0.5}),
        (2, {"tradeoff": 0.02, "sizes": (2, 2, 2, 2), "n": 6}),
        (3, {"tradeoff": 0.05, "weight": 1e9, "temperature": 1e9}),
        (4, {"tradeoff": 1e-9, "temperature": 1e-3}),
    ],
)
def test_the_best_and_the_sums_are_those_of_all_policies(seed, how):
    posterior, given = problem(seed, **how)
    every = every_policy(*given, how["tradeoff"])
    values = np.array(list(every.values()))
    best = posterior.objective(posterior.best) * posterior.weight
    assert_allclose(best, values.min(), rtol=1e-12, atol=1e-12)
    assert_allclose(best, posterior.solved.best[0], rtol=1e-12, atol=1e-12)
    gap = posterior.certificate.gap * posterior.temperature
    assert best <= values.min() + gap + 1e-15
    logs = -values / posterior.temperature
    total = logs.max() + math.log(np.exp(logs - logs.max()).sum())
    assert_allclose(posterior.log_normalizer, total, rtol=1e-9)
    firsts = posterior.first_questions
    chances = np.exp(logs - total)
    for feature, share in firsts.items():
        exact = sum(c for c, nodes in zip(chances, every, strict=True) if nodes[0] == feature)
        assert_allclose(share, exact, atol=1e-9)
    nodes = next(iter(every))
    assert_allclose(posterior.log_density(Policy(nodes)), logs[0], rtol=1e-12)


def test_draws_are_as_frequent_as_they_are_probable():
    """And those of another tradeoff are not."""
    posterior, given = problem(5, (2, 2, 2), 5, tradeoff=0.3, temperature=1.5)
    every = every_policy(*given, 0.3)
    logs = -np.array(list(every.values())) / 1.5
    chances = np.exp(logs - posterior.log_normalizer)
    places = {nodes: place for place, nodes in enumerate(every)}
    n_draws = 1000

    def p_value(drawn_from):
        generator = np.random.default_rng(7)
        found = np.zeros(len(every))
        for _ in range(n_draws):
            found[places[drawn_from.draw(generator).nodes]] += 1
        order = np.argsort(chances)  # those expected less than 5 times are one
        few = np.cumsum(chances[order]) * n_draws < 5
        few[: few.sum() + 1] = True
        joined = [sum(each[order][few]) for each in (found, chances * n_draws)]
        rest = [each[order][~few] for each in (found, chances * n_draws)]
        return chisquare(*([j, *r] for j, r in zip(joined, rest, strict=True))).pvalue

    assert p_value(posterior) > 1e-3
    assert p_value(PolicyPosterior(posterior.boxes, 0.0, 1.5)) < 1e-6


def test_chains_find_what_is_exact():
    posterior, _ = problem(0, tradeoff=0.1)
    found = explore(posterior, n_steps=100, n_chains=2, random_state=0)
    assert found.log_density == pytest.approx(posterior.log_density(posterior.best))


def frame(n, seed):
    generator = np.random.default_rng(seed)
    age, ward = generator.normal(50, 20, n), generator.choice(["a", "b", "c"], n)
    rows = pd.DataFrame({"age": age, "ward": ward, "pain": generator.integers(0, 3, n) * 1.0})
    y = np.where((rows["age"] > 60) | ((rows["ward"] == "b") & (rows["pain"] > 0)), "ill", "well")
    rows.loc[generator.random(n) < 0.1, "age"] = np.nan
    return rows, y


@pytest.mark.parametrize("how", [{}, {"predict_by": "margin"}])
def test_an_estimator_has_the_policy_and_says_the_same_everywhere(how, tmp_path):
    rows, y = frame(300, 0)
    others, _ = frame(60, 1)
    model = MarginNeighborsClassifier(
        LogisticRegression(), neighborhood="boxes", tradeoff=0.02, random_state=0, **how
    ).fit(rows, y)
    assert model.certificate_.gap < 1e-9
    assert "exact: no policy of" in str(model)
    assert model.posterior_.objective(model.posterior_.best) == pytest.approx(
        model.policy_.objective
    )
    assert model.policy_.error == pytest.approx((model.predict(rows) != y).mean())
    assert model.policy_.cost == pytest.approx(model.acquisition_cost(rows).mean())
    rng = np.random.default_rng(0)
    assert len({model.posterior_.draw(rng) for _ in range(50)}) > 1
    with duckdb.connect() as database:
        database.register("told", others.assign(place=np.arange(60)))
        asked = model.policy_.to_sql("ill")
        told = database.sql(f"SELECT {asked} AS a FROM told ORDER BY place").df()["a"]
    assert_allclose(told, model.predict_proba(others)[:, 0])
    model.save(tmp_path / "m.json")
    record = json.loads((tmp_path / "m.json").read_text())
    record["asks"]["nodes"][-1] = 0
    (tmp_path / "m.json").write_text(json.dumps(record))
    with pytest.raises(ModelFileError):
        bayescascade.load(tmp_path / "m.json")


def test_a_budget_chooses_a_policy_and_limits_are_named():
    rows, y = frame(300, 2)
    model = MarginNeighborsClassifier(neighborhood="boxes", budget=1.2, random_state=0)
    model.fit(rows, y)
    assert 0 < model.validation_cost_ <= 1.2
    assert str(model.within(0.0)).count("buys nothing") == 1
    assert (model.within(0.0).predict(rows) == model.commonest_class_).all()
    with pytest.raises(ParameterError, match="n_neighbors must be None with neighborhood"):
        MarginNeighborsClassifier(neighborhood="boxes", n_neighbors=3).fit(rows, y)
    wide = np.random.default_rng(0).normal(size=(50, 12))
    with pytest.raises(TooLargeError, match="boxes must be at most 4,000,000, got 16,777,216"):
        MarginNeighborsClassifier(neighborhood="boxes").fit(wide, wide[:, 0] > 0)
