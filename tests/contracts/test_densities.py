"""Whatever learns a density: scored, drawn, conditioned and explained in the same way."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

from bayescascade import Table
from bayescascade.base.errors import DataError, ParameterError
from tests.contracts.listed import CHAINS, ESTIMATORS, fitted, rows
from tests.people import DECLARED, draw_people

DENSITIES = [name for name, case in ESTIMATORS.items() if hasattr(case.make, "condition")]
SEARCHED = [name for name in DENSITIES if "search" in ESTIMATORS[name].parameters]
DRAWN = [name for name in SEARCHED if ESTIMATORS[name].parameters["search"] != "exact"]
"""Of others the average is over all trees, not over draws."""

densities = pytest.mark.parametrize("name", DENSITIES)
searched = pytest.mark.parametrize("name", SEARCHED)
of_one_leaf = pytest.mark.parametrize("name", [name for name in DENSITIES if "auto" not in name])
"""Once chosen, leaves are one of the others, and what follows is their code."""
one_of_a_class = pytest.mark.parametrize("name", ["leaf", "rules", "det", "histogram", "mixture"])
predicting = pytest.mark.parametrize("predictive", ["map", "average"])


@cache
def predicted(name, predictive):
    """Return a listed estimator that predicts so, if it can; treat it as read-only."""
    if "predictive" not in fitted(name).get_params():
        if predictive == "average":
            pytest.skip("of one density there is no average")
        return fitted(name)
    is_listed = fitted(name).predictive == predictive
    return fitted(name) if is_listed else ESTIMATORS[name].fit(predictive=predictive)


@searched
def test_fitted_attributes(name):
    """They are documented, and each must hold what is said of it."""
    model = fitted(name)
    posterior, learned = model.posterior_, model.learned_
    assert model.schema_.names == ("sex", "crew", "age", "fare")
    state = model.run_.best_state
    assert model.log_posterior_ == pytest.approx(posterior.log_density(state), abs=1e-9)
    assert model.log_posterior_ >= model.run_.traces["log_density"].max() - 1e-9
    traced = [[posterior.log_density(state) for state in chain] for chain in model.run_.draws]
    assert_allclose(traced, model.run_.traces["log_density"], atol=1e-8)
    assert learned.log_densities.shape == learned.counts.shape == learned.probabilities.shape
    assert max(learned.counts) <= 150


@one_of_a_class
def test_frames_arrays_and_tables_give_one_model(name):
    """However the rows come, they are the same rows."""
    case, model = ESTIMATORS[name], fitted(name)
    plain = {key: value for key, value in case.parameters.items() if key not in DECLARED}
    table = Table.from_frame(rows(), **DECLARED)
    of_table = case.make(**plain).fit(table)
    numbered = {"ordinal": {2: DECLARED["ordinal"]["age"]}, "continuous": {3: [0, 5, 20, 100]}}
    of_array = case.make(**plain, **numbered).fit(rows().to_numpy(dtype=object))
    for other in (of_table, of_array):
        if name in SEARCHED:
            assert other.log_posterior_ == model.log_posterior_
        assert_array_equal(other.learned_.counts, model.learned_.counts)
    assert of_array.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    assert of_table.score(table) == pytest.approx(model.score(rows()))
    with pytest.raises(ParameterError, match="sample_weight must be None with a Table"):
        case.make(**plain).fit(table, sample_weight=np.ones(150))


@of_one_leaf
@predicting
def test_scores_are_log_densities(name, predictive):
    """They sum up for cross-validation, over all cells to one, and over missing cells too."""
    model, frame = predicted(name, predictive), draw_people(30, 4)
    scores = model.score_samples(frame)
    assert scores.shape == (30,)
    assert_array_equal(model.score_codes(model.schema_.encode(frame)), scores)
    weights = np.linspace(0, 2, 30)
    assert model.score(frame) == pytest.approx(scores.sum())
    assert model.score(frame, sample_weight=weights) == pytest.approx(np.dot(weights, scores))
    grid = pd.MultiIndex.from_product(
        [["male", "female"], [True, False], ["child", "adult", "old"], [1.0, 10.0, 50.0]],
        names=["sex", "crew", "age", "fare"],
    ).to_frame(index=False)
    widths = grid["fare"].map({1.0: 5.0, 10.0: 15.0, 50.0: 80.0})
    assert np.dot(np.exp(model.score_samples(grid)), widths) == pytest.approx(1.0, abs=1e-9)
    known = {"sex": "male", "crew": False, "fare": 10.0}
    whole = [model.score_samples({**known, "age": age})[0] for age in ("child", "adult", "old")]
    assert model.score_samples({**known, "age": None})[0] == pytest.approx(logsumexp(whole))
    with pytest.raises(DataError, match=r'"fare".*row 2'):
        model.score_samples(frame.assign(fare=["1", "much"] * 15))


@pytest.mark.parametrize("name", DRAWN)
def test_average_is_over_the_draws(name):
    """The posterior predictive density: the mean of the draws' densities, not of their logs."""
    model, frame = predicted(name, "average"), draw_people(25, 5)
    codes = model.schema_.encode(frame)
    states = [state for chain in model.run_.draws for state in chain]
    chosen = np.linspace(0, len(states) - 1, min(1000, len(states))).round().astype(int)
    drawn, shares = model._drawn()
    assert len(drawn) == len({states[i] for i in chosen})
    assert max(shares) == pytest.approx(
        max(np.unique([states.index(states[i]) for i in chosen], return_counts=True)[1])
        / len(chosen)
    )
    scores = np.array([one.score_codes(codes) for one in drawn])
    assert_allclose(model.score_samples(frame), logsumexp(scores.T, axis=1, b=shares), atol=1e-12)
    assert not np.allclose(model.score_samples(frame), shares @ scores)


@of_one_leaf
@predicting
def test_samples_look_like_the_rows(name, predictive):
    model = predicted(name, predictive)
    frame = model.sample(500, random_state=1)
    assert list(frame.columns) == ["sex", "crew", "age", "fare"]
    assert frame["crew"].dtype == bool
    assert set(frame["age"]) <= {"child", "adult", "old"}
    assert frame["fare"].between(0, 100).all()
    assert np.isfinite(model.score_samples(frame)).all()
    pd.testing.assert_frame_equal(frame, model.sample(500, random_state=1))
    assert not frame.equals(model.sample(500, random_state=2))
    with pytest.raises(ParameterError, match="n_samples must be an integer >= 1"):
        model.sample(0)


@of_one_leaf
def test_conditioning_and_explaining(name):
    """The estimator hands on to the density that it shows; what is scored is what is printed."""
    model, frame = predicted(name, "map"), draw_people(30, 4)
    assert model.condition({"sex": "male"}).conditions_words() == "sex is male"
    texts = [model.explain(row).replace("of this row ", "") for _, row in frame.iterrows()]
    figures = [float(text.split("density ")[1].split(",")[0]) for text in texts]
    assert_allclose(np.exp(model.score_samples(frame)), figures, rtol=1e-3)
    row = frame.iloc[[0]]
    assert model.explain(row) == model.explain(row.iloc[0]) == model.explain(dict(row.iloc[0]))
    with pytest.raises(ParameterError, match="row must be a single row, got 2"):
        model.explain(frame[:2])


@pytest.mark.parametrize("name", ["leaf exact", "dependent exact", "rules"])
def test_refitting_forgets(name):
    """Draws and proofs of an earlier fit must not score the rows of a later one."""
    case = ESTIMATORS[name]
    plain = {key: value for key, value in case.parameters.items() if key not in DECLARED}
    model = case.make(**{**plain, "predictive": "average"}).fit(rows()[["sex", "crew"]])
    model.score_samples(rows()[["sex", "crew"]])
    later = rows()[["crew", "age"]]
    fresh = case.make(**{**plain, "predictive": "average"}).fit(later)
    assert_array_equal(model.fit(later).score_samples(later), fresh.score_samples(later))
    model.set_params(**{**CHAINS, "search": "anneal", "predictive": "map"}).fit(later)
    assert model.summary_.certificate is None
    assert not hasattr(model, "exact_")


@pytest.mark.parametrize(
    ("name", "search"),
    [
        *(("leaf", search) for search in ("anneal+metropolis", "anneal", "metropolis")),
        *((name, "tempering") for name in DRAWN if name != "leaf auto"),
    ],
)
def test_every_search_finds_something(name, search):
    """All of them are offered; the best is the best visited, and better than nothing."""
    model = ESTIMATORS[name].fit(search=search, predictive="map")
    posterior = model.posterior_
    assert model.log_posterior_ >= model.run_.traces["log_density"].max() - 1e-9
    assert (model.summary_.n_draws > 0) == (search != "anneal")
    assert model.learned_.counts.size > 1
    assert posterior.log_density(model.run_.best_state) == pytest.approx(model.log_posterior_)


@densities
def test_nothing_works_before_fit(name):
    model = ESTIMATORS[name].make()
    codes = np.zeros((4, 1), np.int32)
    for call in (
        model.sample,
        lambda: model.condition({}),
        lambda: model.save("unused.json"),
        lambda: model.score_codes(codes),
        lambda: model.learned_,
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(model, "posterior_")
    assert str(model) == repr(model)


@pytest.mark.parametrize("name", ["det", "histogram"])
def test_without_a_posterior_nothing_is_offered_of_one(name):
    absent = {"posterior_", "run_", "exact_", "summary_", "plot_posterior", "to_inference_data"}
    absent |= {"credible_interval", "predictive", "log_posterior_", "n_chains"}
    assert absent.isdisjoint(dir(fitted(name)))
    assert not any(hasattr(fitted(name), each) for each in absent)


@pytest.mark.parametrize("name", ["leaf", "leaf exact", "rules"])
def test_seeds_differ(name):
    run = ESTIMATORS[name].fit(random_state=np.random.default_rng(5)).run_
    assert run != fitted(name).run_
