"""What a user calls to learn a density as a list: fit, score, sample, condition, explain."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import samplers
from bayescascade import DensityList, DensityRuleList, RuleListClassifier, Table
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.rules.antecedents import Condition
from bayescascade.methods.rules.rule_list import RuleList
from tests.methods.rules.fits import DECLARED, QUICK, fates, fitted, people


def test_fitted_attributes():
    """They are documented, and each must hold what is said of it."""
    model = fitted()
    state = model.run_.best_state
    assert isinstance(model.rules_, DensityList)
    assert model.log_posterior_ == pytest.approx(model.posterior_.log_density(state), abs=1e-9)
    assert model.log_posterior_ == pytest.approx(model.run_.best_log_density, abs=1e-9)
    assert model.log_posterior_ > model.posterior_.log_density(RuleList())
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["sex", "crew", "age", "fare"]
    assert model.schema_.names == ("sex", "crew", "age", "fare")
    assert model.rules_.n_rules == state.n_rules >= 1
    assert_array_equal(model.rules_.counts, model.posterior_.counts(state))
    assert_allclose(model.rules_.log_volumes, model.posterior_.log_volumes(state))
    smoothed = model.rules_.counts + 1.0
    assert_allclose(model.rules_.probabilities, smoothed / smoothed.sum())
    draws = np.array([[model.posterior_.log_density(s) for s in c] for c in model.run_.draws])
    assert (draws <= model.log_posterior_ + 1e-9).all()


def test_plug_in_probabilities():
    """The thesis's estimate is a part's share of the rows."""
    rules = fitted(density="empirical").rules_
    assert_allclose(rules.probabilities, rules.counts / 200)


def test_frames_arrays_and_tables_give_one_model():
    """However the rows come, they are the same rows."""
    frame = people()
    table = Table.from_frame(frame, **DECLARED)
    of_table = DensityRuleList(**QUICK).fit(table)
    numbered = {"ordinal": {2: DECLARED["ordinal"]["age"]}, "continuous": {3: [0, 5, 20, 100]}}
    of_array = DensityRuleList(**QUICK, **numbered).fit(frame.to_numpy(dtype=object))
    for other in (of_table, of_array):
        assert other.log_posterior_ == fitted().log_posterior_
        assert other.rules_.rules == fitted().rules_.rules
    assert of_table.score(table) == pytest.approx(fitted().score(frame))


def test_weights_are_repeated_rows():
    """A row of weight 3 is three rows."""
    frame = people(60)
    weights = np.arange(60) % 4
    repeated = frame.loc[frame.index.repeat(weights)]
    one = DensityRuleList(**QUICK, **DECLARED).fit(frame, sample_weight=weights)
    other = DensityRuleList(**QUICK, **DECLARED).fit(repeated)
    assert one.log_posterior_ == other.log_posterior_
    assert one.rules_.to_dict() == other.rules_.to_dict()
    with pytest.raises(ParameterError, match="sample_weight must be None with a Table"):
        DensityRuleList(**QUICK).fit(Table.from_frame(frame, **DECLARED), sample_weight=weights)


@pytest.mark.parametrize("density", ["posterior_mean", "empirical"])
@pytest.mark.parametrize("predictive", ["map", "average"])
def test_score_is_the_sum_of_scores(density, predictive):
    """Cross-validation adds scores up."""
    model, frame = fitted(density=density, predictive=predictive), people()
    scores = model.score_samples(frame)
    assert scores.shape == (200,)
    assert np.isfinite(scores).all()
    assert model.score(frame) == pytest.approx(scores.sum())
    weights = np.linspace(0, 2, 200)
    assert model.score(frame, sample_weight=weights) == pytest.approx(np.dot(weights, scores))


def test_scores_are_the_densities_explained():
    """What is scored is what is printed."""
    model, frame = fitted(), people(30, seed=4)
    figures = [
        float(model.explain(row).split("density ")[1].split(",")[0]) for _, row in frame.iterrows()
    ]
    assert_allclose(np.exp(model.score_samples(frame)), figures, rtol=1e-3)


def test_average_is_over_the_draws():
    """The posterior predictive density: the mean of the draws' densities, not of their logs."""
    model, frame = fitted(predictive="average"), people(25, seed=5)
    codes = model.schema_.encode(frame)
    states = [state for chain in model.run_.draws for state in chain]
    chosen = np.linspace(0, len(states) - 1, min(1000, len(states))).round().astype(int)
    scores = []
    for state in (states[i] for i in chosen):
        rules = tuple(model.posterior_.antecedents[index] for index in state.rules)
        counts = model.posterior_.counts(state)
        shares = (counts + 1.0) / (counts + 1.0).sum()
        scores.append(DensityList(model.schema_, rules, counts, shares).score_codes(codes))
    expected = logsumexp(scores, axis=0) - np.log(len(scores))
    assert_allclose(model.score_samples(frame), expected, atol=1e-12)
    assert not np.allclose(model.score_samples(frame), np.mean(scores, axis=0))


@pytest.mark.parametrize("predictive", ["map", "average"])
def test_densities_are_normalized(predictive):
    """Over all cells they sum to one, whichever predictive is asked for."""
    grid = pd.MultiIndex.from_product(
        [["male", "female"], [True, False], ["child", "adult", "old"], [1.0, 10.0, 50.0]],
        names=["sex", "crew", "age", "fare"],
    ).to_frame(index=False)
    widths = grid["fare"].map({1.0: 5.0, 10.0: 15.0, 50.0: 80.0})
    scores = fitted(predictive=predictive).score_samples(grid)
    assert np.dot(np.exp(scores), widths) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("predictive", ["map", "average"])
def test_missing_cells_when_scoring(predictive):
    """The density of the cells that are there."""
    model = fitted(predictive=predictive)
    known = {"sex": "male", "crew": False, "fare": 10.0}
    whole = [model.score_samples({**known, "age": age})[0] for age in ("child", "adult", "old")]
    assert model.score_samples({**known, "age": None})[0] == pytest.approx(logsumexp(whole))


@pytest.mark.parametrize("predictive", ["map", "average"])
def test_samples_look_like_the_rows(predictive):
    """Types and levels are those of the data; the same seed gives the same rows."""
    model = fitted(predictive=predictive)
    frame = model.sample(500, random_state=1)
    assert list(frame.columns) == ["sex", "crew", "age", "fare"]
    assert frame["crew"].dtype == bool
    assert set(frame["age"]) <= {"child", "adult", "old"}
    assert frame["fare"].between(0, 100).all()
    assert np.isfinite(model.score_samples(frame)).all()
    pd.testing.assert_frame_equal(frame, model.sample(500, random_state=1))
    assert not frame.equals(model.sample(500, random_state=2))


def test_samples_of_the_average_are_not_grouped_by_draw(monkeypatch):
    """The first rows are as good a sample as all, though each list's rows are drawn together."""
    model = fitted(predictive="average")
    female = ((Condition(0, 0, 1),),)
    sure = [DensityList(model.schema_, female, 200 * p, p) for p in np.eye(2)]
    monkeypatch.setattr(model, "_drawn", lambda: (sure, np.array([0.5, 0.5])))
    is_female = (model.sample(400, random_state=0)["sex"] == "female").to_numpy()

    def is_mixed(rows):
        return abs(rows[:200].mean() - rows[200:].mean()) < 0.25

    assert is_mixed(is_female)
    assert not is_mixed(np.sort(is_female))  # the twin that does not shuffle


def test_conditioning_and_explaining():
    """The estimator hands on to the list that it shows."""
    model = fitted()
    male = model.condition({"sex": "male"})
    assert isinstance(male, DensityList)
    assert male.evidence_words() == "sex is male"
    row = people(1, seed=3)
    assert model.explain(row) == model.explain(row.iloc[0]) == model.explain(dict(row.iloc[0]))


def test_parameters_follow_scikit_learn():
    """Grid searches clone estimators and set their parameters."""
    model = DensityRuleList(concentration=1.25, **QUICK)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    twin.set_params(max_size=3, density="empirical")
    assert (twin.max_size, twin.density) == (3, "empirical")
    assert "concentration=1.25" in repr(model)


def test_nothing_works_before_fit():
    """Say so, rather than fail on an attribute."""
    model = DensityRuleList()
    for call in (
        lambda: model.score_samples(people(3)),
        lambda: model.sample(),
        lambda: model.rules_,
        lambda: model.condition({}),
        lambda: model.save("unused.json"),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(model, "posterior_")
    assert str(model) == repr(model)


def test_same_seed_same_model():
    """A published list can be had again."""
    again = DensityRuleList(**QUICK, **DECLARED).fit(people())
    assert again.rules_.rules == fitted().rules_.rules
    assert again.run_ == fitted().run_
    parallel = DensityRuleList(**{**QUICK, "n_jobs": 2}, **DECLARED).fit(people())
    assert parallel.run_ == again.run_
    other = DensityRuleList(**{**QUICK, "random_state": 4}, **DECLARED).fit(people())
    assert other.run_ != again.run_


@pytest.mark.parametrize("search", ["anneal+metropolis", "anneal", "metropolis", "tempering"])
def test_every_search_finds_a_list(search):
    """All of them are offered; the best list is the best visited."""
    model = DensityRuleList(**{**QUICK, "search": search}, **DECLARED).fit(people())
    assert model.log_posterior_ >= model.run_.traces["log_density"].max() - 1e-9
    assert model.log_posterior_ > model.posterior_.log_density(RuleList())
    assert (model.summary_.n_draws > 0) == (search != "anneal")


def test_printed():
    """What is printed reads from top to bottom, every part with its figures."""
    text = str(fitted())
    assert "if " in text
    assert "else" in text
    assert "rules" in text
    assert "leaf" not in text
    assert "leaves" not in text
    for part in range(fitted().rules_.n_rules):
        first_words = " ".join(fitted().rules_.part_words(part).split(" ")[:3])
        assert first_words in text


def test_arviz():
    """R-hat and effective sample sizes come with the run, by ArviZ's names."""
    data = fitted().run_.to_inference_data()
    assert data["posterior"]["n_rules"].shape == data["sample_stats"]["lp"].shape
    assert "first_rule" in data["posterior"]
    assert "feature_used" in data["posterior"]


@pytest.mark.parametrize("estimator", [DensityRuleList, RuleListClassifier])
def test_temperatures_reach_across(estimator, monkeypatch):
    """With the six of trees, lists of other rules that are nearly as good are never met."""
    asked = []

    def spy(*arguments, n_temperatures, **others):
        asked.append(n_temperatures)
        return tempering(*arguments, n_temperatures=n_temperatures, **others)

    tempering = samplers.tempering
    monkeypatch.setattr(samplers, "tempering", spy)
    model = estimator(**{**QUICK, "search": "tempering", "n_steps": 100})
    model.fit(people()[["sex"]], fates(people()))
    assert asked == [16]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"expected_rules": 0}, "expected_rules must be a finite number > 0 and <= 10000, got 0"),
        ({"expected_rules": 1e300}, "must be a finite number > 0 and <= 10000, got 1e"),
        (
            {"expected_size": -1.0},
            "expected_size must be a finite number > 0 and <= 10000, got -1.0",
        ),
        ({"concentration": None}, "concentration must be a finite number > 0, got None"),
        ({"max_size": 1.0}, "max_size must be an integer >= 1, got 1.0"),
        ({"density": "mean"}, "density must be one of"),
        ({"predictive": "mean"}, "predictive must be one of"),
        ({"search": "anneal", "predictive": "average"}, "anneal"),
        ({"memory_limit": -1}, "memory_limit must be a finite number > 0, got -1"),
        ({"memory_limit": 1e-6}, "lower max_size"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"drop": ["height"]}, 'drop names the unknown column "height"'),
    ],
    ids=str,
)
def test_bad_parameters(parameters, words):
    """Name, rule, value."""
    with pytest.raises((ParameterError, DataError), match=words):
        DensityRuleList(**{**QUICK, **DECLARED, **parameters}).fit(people())
