"""The additive noise model: found directions, posteriors, what it refuses, and its files."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import bayescascade
from bayescascade import AdditiveNoiseModel, DataError, DirectionPosterior, ParameterError, explore
from bayescascade.methods.causal import randomization
from bayescascade.methods.causal.pair import Pair
from bayescascade.methods.causal.scores import SCORES
from tests.methods.causal.problems import tanh_pair


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Decide by few draws, which take no time; `test_undecided` tests decisions."""
    monkeypatch.setattr(randomization, "N_DRAWS", 4)


def pairs():
    """Return pairs with a direction: bent mechanisms, uniform and normal causes and noises."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, 400) if seed % 2 else rng.normal(size=400) / 2
        noise = rng.uniform(-0.3, 0.3, 400) if seed % 3 else rng.normal(size=400) / 6
        yield x, (np.tanh(3 * x) if seed < 3 else x**3 + x) + noise


@pytest.mark.parametrize("given", [{"decide": "always"}, {"score": "hsic"}])
def test_directions_are_found_and_turn_with_the_arguments(given):
    """Which column comes first is nothing that could cause anything."""
    found = [AdditiveNoiseModel(**given, random_state=0).fit(x, y) for x, y in pairs()]
    turned = [AdditiveNoiseModel(**given, random_state=0).fit(y, x) for x, y in pairs()]
    assert sum(model.direction_ == "x->y" for model in found) >= 5
    assert sum(model.direction_ == "y->x" for model in turned) >= 5


@pytest.mark.parametrize("score", SCORES)
def test_units_and_places_do_not_matter(score):
    """Degrees may be Celsius or Fahrenheit."""
    x, y = tanh_pair(200)
    one = AdditiveNoiseModel(score=score, random_state=0).fit(x, y)
    other = AdditiveNoiseModel(score=score, random_state=0).fit(1e6 * x + 3, 7 - y / 1e9)
    assert other.direction_ == one.direction_
    for direction in one.scores_:
        assert other.scores_[direction] == pytest.approx(one.scores_[direction], abs=1e-3)
    assert one.margin_ == abs(one.scores_["x->y"] - one.scores_["y->x"])


def test_posteriors_weigh_two_scores():
    """By hand: a difference of two temperatures, and a prior of 3 to 1."""
    posterior = DirectionPosterior({"x->y": 0.5, "y->x": 0.1}, temperature=0.2, prior=0.75)
    odds = 3 * math.exp(-2)
    assert posterior.probabilities["x->y"] == pytest.approx(odds / (1 + odds))
    assert posterior.direction == "y->x"
    found = explore(posterior, "metropolis", n_steps=4000, n_chains=2, random_state=0)
    share = float(np.mean(found.run_.traces["x_to_y"]))
    assert share == pytest.approx(odds / (1 + odds), abs=0.04)
    with pytest.raises(ParameterError, match="temperature"):
        DirectionPosterior({"x->y": 0.5, "y->x": 0.1}, temperature=0.0)


def test_any_regression_and_any_dress_of_the_rows():
    x, y = tanh_pair(200)
    arrays = AdditiveNoiseModel(random_state=0).fit(x, y)
    frames = AdditiveNoiseModel(random_state=0).fit(
        pd.Series(x, name="dose"), pd.DataFrame({"response": y})
    )
    assert frames.scores_ == arrays.scores_ == AdditiveNoiseModel(random_state=0).fit(
        list(x), y[:, None]
    ).scores_  # fmt: skip
    assert frames.names_ == {"x": "dose", "y": "response"}
    assert "dose -> response" in str(frames)
    tree = AdditiveNoiseModel(score="hsic", regression=DecisionTreeRegressor(max_depth=4))
    assert tree.fit(x, y).margin_ > 0.0
    assert "DecisionTreeRegressor" in str(tree)
    with pytest.raises(ParameterError, match="score must be of residuals"):
        AdditiveNoiseModel(regression=tree.regression).fit(x, y)


def test_a_fitted_model_is_cloned_pickled_saved(tmp_path):
    x, y = tanh_pair(100)
    model = AdditiveNoiseModel(score="kendall", random_state=0).fit(x, y)
    assert clone(model).fit(x, y).scores_ == model.scores_
    assert pickle.loads(pickle.dumps(model)).posterior_ == model.posterior_
    model.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    assert str(loaded) == str(model)
    assert loaded.posterior_ == model.posterior_
    record = json.loads((tmp_path / "m.json").read_text())
    for field, value in [("names", {"x": 1, "y": "b"}), ("scores", {"x->y": 0.1}), ("n_rows", -1),
                         ("scores", {"x->y": "a", "y->x": 0.1}), ("regression", 3),
                         ("decided", 1), ("direction", "up"), ("tied", "z")]:  # fmt: skip
        (tmp_path / "f.json").write_text(json.dumps({**record, field: value}))
        with pytest.raises(bayescascade.ModelFileError):
            bayescascade.load(tmp_path / "f.json")


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0] * 30, range(30), "x must vary, got 1"),
        (range(30), [2.0] * 30, "y must vary, got 2"),
        (range(19), range(19), "at least 20 rows, got 19"),
        (range(30), range(31), "30 and 31"),
        ([1.0] * 3 + [math.nan] * 30, range(33), "x has a missing cell in row 4"),
        (range(30), [*range(29), math.inf], "row 30"),
        (["a"] * 30, range(30), "x must hold numbers, got 'a' in row 1"),
        (np.ones((30, 2)), range(30), "x must be a single column"),
    ],
)
def test_rows_that_tell_nothing_are_refused(x, y, words):
    with pytest.raises(DataError, match=words):
        AdditiveNoiseModel(random_state=0).fit(x if isinstance(x, np.ndarray) else list(x), list(y))


@pytest.mark.parametrize("regression", ["linear", DecisionTreeRegressor])
def test_what_is_no_regressor_is_named(regression):
    with pytest.raises(ParameterError, match="regression must be"):
        AdditiveNoiseModel(regression=regression).fit(*tanh_pair(50))


def test_half_of_the_residuals_of_one_number_have_no_range():
    x = np.arange(100.0)
    nearest = AdditiveNoiseModel(score="iqr", regression=KNeighborsRegressor(1), random_state=0)
    with pytest.raises(DataError, match='score "iqr" needs'):
        nearest.fit(x, x // 10)


@pytest.mark.parametrize("score", ["shapes", "hsic"])
def test_columns_of_few_values_are_undecided_as_answers_would_be_wrong_and_sure(score, monkeypatch):
    """An event that becomes more probable with the dose would be called its cause."""
    wrong = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        dose = pd.Series(rng.uniform(0, 10, 500), name="dose")
        died = pd.Series(rng.random(500) < 1 / (1 + np.exp(5 - dose)), name="died").astype(int)
        model = AdditiveNoiseModel(score=score, random_state=seed).fit(died, dose)
        assert model.direction_ is None
        assert 'more than a tenth of the rows of "died"' in " ".join(str(model).split())
        with monkeypatch.context() as patched:
            patched.setattr(Pair, "tied", lambda _: None)
            model = AdditiveNoiseModel(score=score, random_state=seed).fit(dose, died)
            wrong += model.direction_ == "y->x" and model.margin_ > 2 * model.posterior_.temperature
    assert wrong >= 3
    x, y = tanh_pair(400)
    model = AdditiveNoiseModel(score=score, decide="always", random_state=0).fit(x, y.round(2))
    assert (model.tied_, model.direction_) == (None, "x->y")


def test_every_pair_gets_a_direction_where_asked_for(tmp_path):
    """Also with ties, and by chance; files keep it and say so."""
    x, noise = np.random.default_rng(0).normal(size=(2, 200))
    for y in (noise, noise > 0):
        model = AdditiveNoiseModel(decide="always").fit(x, y)
        assert model.direction_ == min(model.scores_, key=model.scores_.get)
        assert "not tested" in str(model)
        model.save(tmp_path / "m.json")
        assert str(bayescascade.load(tmp_path / "m.json")) == str(model)
    assert AdditiveNoiseModel(decide="always").fit(x, x).direction_ is None  # equal scores
