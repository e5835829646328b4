"""Mixtures against enumeration, Bayes' rule by hand, and what EM promises."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import minimum_spanning_tree

from bayescascade import CascadeMixture, ModelFileError, ParameterError, Table
from bayescascade.methods.density.mixtures import em
from bayescascade.methods.density.mixtures.em import (
    EMSettings,
    Indicators,
    climb,
    maximized,
    memberships,
)

KINDS = pytest.mark.parametrize("kind", ["independent", "dependent"])
LEVELS = {"sky": ["blue", "grey"], "wind": ["calm", "gale", "storm"], "rain": ["no", "yes"]}


@cache
def frame(n=300):
    """Return rows of two classes, in one of which wind and rain go together."""
    rng = np.random.default_rng(3)
    is_first = rng.random(n) < 0.6
    sky = np.where(rng.random(n) < np.where(is_first, 0.9, 0.2), "blue", "grey")
    wind = rng.choice(LEVELS["wind"], n, p=[0.5, 0.3, 0.2])
    is_wet = np.where(is_first, rng.random(n) < 0.2, wind != "calm")
    return pd.DataFrame({"sky": sky, "wind": wind, "rain": np.where(is_wet, "yes", "no")})


def made(kind="dependent", n_components=2, **more):
    settings = {"smoothing": 1.0, "random_state": 0, "nominal": LEVELS} | more
    return CascadeMixture(n_components, kind=kind, **settings)


@cache
def fitted(kind):
    """Return a mixture of two classes; treat it as read-only."""
    return made(kind).fit(frame())


def by_hand(model):
    """Return shares, and the probability of every row in each class, from the saved tables."""
    record = model.to_record()["mixture"]
    inside = []
    for one in record["classes"]:
        cells = {}
        for row in product(*(range(len(levels)) for levels in LEVELS.values())):
            probability = 1.0
            for j, (parent, table) in enumerate(zip(one["parents"], one["tables"], strict=True)):
                probability *= table[row[j]] if parent < 0 else table[row[parent]][row[j]]
            cells[row] = probability
        inside.append(cells)
    return record["shares"], inside


def every_row(*, with_missing=False):
    """Return all rows, as codes and as a frame."""
    choices = [[*range(len(levels)), *[-1] * with_missing] for levels in LEVELS.values()]
    codes = list(product(*choices))
    named = [
        [(*levels, None)[code] for code, levels in zip(row, LEVELS.values(), strict=True)]
        for row in codes
    ]
    return codes, pd.DataFrame(named, columns=list(LEVELS))


@KINDS
def test_missing_cells_are_summed_out_and_classes_follow_bayes(kind):
    """A row with gaps must get what all ways to fill it get together; so must its classes."""
    model = fitted(kind)
    shares, inside = by_hand(model)
    codes, rows = every_row(with_missing=True)
    full = np.array(list(inside[0]))
    asked = np.array(codes)[:, np.newaxis]
    fills = ((asked < 0) | (asked == full)).all(axis=2)
    joint = fills @ np.array([list(cells.values()) for cells in inside]).T * shares
    assert_allclose(np.exp(model.score_samples(rows)), joint.sum(axis=1), rtol=1e-12)
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert_allclose(model.class_probabilities(rows), expected, rtol=1e-10)
    assert np.exp(model.score_samples(every_row()[1])).sum() == pytest.approx(1.0, abs=1e-12)


@KINDS
def test_evidence_and_draws(kind):
    """What is drawn given evidence must agree with it, and be as common as it is said to be."""
    given = fitted(kind).condition({"wind": ["gale", "storm"]})
    codes, _ = every_row()
    cells = np.array(codes, np.int32).T
    whole = np.exp(fitted(kind).learned_.score_codes(cells))
    expected = np.where(cells[1] > 0, whole, 0.0)
    assert given.conditions_probability == pytest.approx(expected.sum())
    expected /= expected.sum()
    assert_allclose(np.exp(given.score_codes(cells)), expected, atol=1e-14)
    assert_allclose([each.sum(axis=1) for each in given.level_probabilities], 1.0)
    n = 40_000
    drawn = given.sample_codes(n, np.random.default_rng(0))
    seen = np.array([(drawn == cell[:, np.newaxis]).all(axis=0).sum() for cell in cells.T])
    assert (abs(seen - n * expected) <= 5 * np.sqrt(n * expected)).all()
    again = given.condition({"rain": "yes"})
    at_once = fitted(kind).condition({"wind": ["gale", "storm"], "rain": "yes"})
    assert_allclose(again.probabilities, at_once.probabilities)


def climbs(kind, step):
    """Return whether the log posterior climbs wherever EM goes with such an M step."""
    rng, table = np.random.default_rng(0), Table.from_frame(frame(), nominal=LEVELS)
    rows = Indicators.of(table)
    settings = EMSettings(kind, 20.0, 3)
    for _ in range(5):
        belongs, values = rng.dirichlet(np.ones(3), rows.weights.size), []
        for _ in range(40):
            found = step(rows, settings, belongs)
            belongs, log_densities = memberships(found.log_joint(rows))
            values.append(rows.weights @ log_densities + found.log_prior(rows, 20.0))
        if (np.diff(values) < -1e-8).any():
            return False
    return True


@KINDS
def test_the_objective_climbs_at_each_step(kind):
    """Else EM ends anywhere; steps without weights, or with another prior, do not climb."""

    def unweighted(rows, settings, belongs):
        return maximized(replace(rows, weights=np.ones(rows.weights.size)), settings, belongs)

    def without_prior(rows, settings, belongs):
        return maximized(rows, settings._replace(smoothing=0.1), belongs)

    assert climbs(kind, maximized)
    assert not climbs(kind, unweighted)
    assert not climbs(kind, without_prior)


@KINDS
def test_starts_are_compared_by_the_log_posterior(kind):
    """With the weights of the rows, which stand for many: else another start is called the best."""
    rows, settings = (
        Indicators.of(Table.from_frame(frame(), nominal=LEVELS)),
        EMSettings(kind, 20.0, 3),
    )
    belongs = np.random.default_rng(0).dirichlet(np.ones(3), rows.weights.size)
    assert rows.weights.max() > 1.0
    found = climb(rows, settings, belongs, 5, 0.0, lambda: False)
    _, log_densities = memberships(found.components.log_joint(rows))
    prior = found.components.log_prior(rows, 20.0)
    assert found.objective[-1] == pytest.approx(rows.weights @ log_densities + prior)


@pytest.mark.slow
def test_planted_classes_are_found_and_told():
    """Who looks for classes of rows must find those that are there, and read what they are."""
    rng = np.random.default_rng(0)
    is_first = rng.random(600) < 0.7
    chance = np.where(is_first, 0.9, 0.1)
    rows = pd.DataFrame({f"q{j}": rng.random(600) < chance for j in range(8)})
    model = CascadeMixture(random_state=0).fit(rows)
    best = model.candidates_.iloc[0]
    assert (model.kind_, model.held_out_) == (best["kind"], best["held_out"])
    assert model.n_components_ == best["n_components"] == 2
    assert model.entropy_ > 0.9
    assert_allclose(model.learned_.probabilities, [0.7, 0.3], atol=0.05)
    assert ((model.class_probabilities(rows)[:, 0] > 0.5) == is_first).mean() > 0.97
    result = model.classes_[model.classes_["class"] == 2]
    assert set(result["level"]) <= {"True", "False"}
    assert (abs(result["inside"] - result["all_rows"]) > 0.4).all()
    page = str(model)
    assert "2 classes" in page
    assert "not proved" in page
    assert "(all rows " in page
    n_parameters = 17 if model.kind_ == "independent" else 31
    assert model.n_parameters_ == n_parameters
    expected = n_parameters * np.log(600) - 2 * model.score(rows)
    assert model.bic_ == pytest.approx(expected)


def test_one_class_of_independent_columns_is_a_product():
    """What is known in closed form: shares of levels and imagined rows."""
    model = made("independent", 1, smoothing=4.0).fit(frame())
    share = (frame()["sky"] == "grey").mean()
    expected = (share * 300 + 4 * (0.5 * share + 0.25)) / 304
    assert np.exp(model.score_samples({"sky": "grey", "wind": None, "rain": None})[0]) == (
        pytest.approx(expected)
    )


def test_more_classes_than_rows_are_refused():
    """Some would hold nothing."""
    with pytest.raises(ParameterError, match="at most the number of different rows, 11, got 13"):
        made(n_components=13).fit(frame())


@pytest.mark.parametrize("n", [1, 2, 40])
def test_rows_that_are_all_equal(n):
    """Nothing to tell apart is one class, not an error."""
    rows = pd.DataFrame({"sky": ["grey"] * n, "wind": ["calm"] * n})
    model = CascadeMixture(nominal={"sky": LEVELS["sky"], "wind": LEVELS["wind"]}).fit(rows)
    assert model.n_components_ == 1
    assert model.score_samples(rows)[0] > np.log(1 / 6)
    assert model.sample(5).shape == (5, 2)


def test_damaged_files_are_refused():
    """Else columns that depend on each other in a circle would be scored in silence."""
    record = fitted("dependent").to_record()
    one = record["mixture"]["classes"][0]
    root = one["parents"].index(-1)
    child = one["parents"].index(root)
    one["parents"][root] = child
    n_levels = [len(levels) for levels in LEVELS.values()]
    even = [1 / n_levels[root]] * n_levels[root]
    one["tables"][root] = [even] * n_levels[child]
    with pytest.raises(ModelFileError, match="must form no circle"):
        CascadeMixture.from_record(record)
    record = fitted("independent").to_record()
    record["mixture"]["classes"][0]["tables"][0][0] += 0.01
    with pytest.raises(ModelFileError, match="must be probabilities"):
        CascadeMixture.from_record(record)


def test_columns_are_joined_by_the_tree_of_largest_worth():
    """Another tree would tell readers of dependences that are weaker than those left out."""
    rng = np.random.default_rng(5)
    for p in (1, 2, 7, 30):
        worth = rng.random((p, p))
        worth = worth + worth.T
        parents = em._spanning_tree(worth)
        total = sum(worth[j, parent] for j, parent in enumerate(parents.tolist()) if parent >= 0)
        expected = -minimum_spanning_tree(-np.triu(worth, 1)).sum()
        assert_allclose(total, expected)
        assert parents[0] == -1
        assert (parents[1:] >= 0).all()


def test_tables_of_many_levels_are_learned_as_others(monkeypatch):
    """Pairs of levels are stored as sparse arrays there; scores would otherwise jump."""
    dense = made().fit(frame())
    monkeypatch.setattr(em, "_SPARSE_FROM", 0)
    assert_allclose(made().fit(frame()).score_samples(frame()), dense.score_samples(frame()))


def test_shares_of_classes_are_at_the_top_of_what_is_climbed(rng):
    """What EM maximizes and the posterior that it prints have one prior of shares."""
    table = Table.from_arrays(rng.integers(0, 3, (200, 2)), names=["a", "b"], nominal=["a", "b"])
    rows = Indicators.of(table)
    belongs = rng.dirichlet([0.05, 1.0], size=table.n_distinct)
    best = maximized(rows, EMSettings("independent", 2.0, 2), belongs)

    def worth(step):
        odds = best.log_shares + np.array([step, 0.0])
        moved = best._replace(log_shares=odds - np.logaddexp.reduce(odds))
        joint = (rows.weights[:, np.newaxis] * belongs * moved.log_joint(rows)).sum()
        return joint + moved.log_prior(rows, 2.0)

    assert worth(1e-2) < worth(0.0) > worth(-1e-2)
