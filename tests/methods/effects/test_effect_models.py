"""Models of effects: what they find, what they refuse, and that files keep it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

import bayescascade
from bayescascade import CausalSVM, DataError, EffectModel, ParameterError
from bayescascade.methods.effects import fitting
from bayescascade.methods.effects.fitting import fit_forest, mixed
from bayescascade.methods.effects.losses import target_weights
from bayescascade.methods.effects.problem import EffectProblem

_SQUARES = "square", "mean"


def _rows(seed=0, n=400):
    """Return rows, outcomes and arms; treating helps by .4 where x0 > 0, harms elsewhere."""
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 2)), rng.random(n) < 0.5
    y = rng.random(n) < 0.5 + 0.2 * np.where(t, 1.0, -1.0) * np.sign(X[:, 0])
    return X, y, t


KINDS = {
    "default": {},
    "quick": {"effort": "quick"},
    "forest": {"learner": "forest"},
    "residuals": {"adjust": "residuals", "learner": "kernel"},
    "logistic": {"surrogate": "logistic", "kernel": "linear", "penalty": 1e-3},
    "exponential": {"surrogate": "exponential", "length_scale": 2.0, "penalty": 1e-2},
    "hinge": {"surrogate": "hinge", "kernel": "cubic", "penalty": 1e-2},
    "svm": {"surrogate": "hinge", "combine": "max", "length_scale": 2.0, "penalty": 1e-3},
    "square max": {"combine": "max", "kernel": "quadratic", "penalty": 1e-2},
    "any": {"learner": LogisticRegression(), "surrogate": "logistic"},
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=[pytest.mark.slow] * (k in ("forest", "residuals"))) for k in KINDS],
)
def test_each_kind_finds_for_whom_it_works(kind, tmp_path):
    """Signs are right on new rows, proofs are tight, and files answer the same."""
    X, y, t = _rows()
    model = EffectModel(**KINDS[kind], random_state=0).fit(X, y, t, 0.5)
    new = _rows(1)[0]
    clear = np.abs(new[:, 0]) > 0.3
    signs = model.predict(new, neutral=0.1)
    assert (signs == 0).sum() == round(0.1 * len(new))
    assert (model.predict(new) == np.sign(new[:, 0]))[clear].mean() > 0.8
    assert "above 0 in" in str(model)
    exact = getattr(model, "exact_", None)
    assert exact is None or exact.gap < 1e-6
    if kind in ("svm", "hinge", "square max"):
        with pytest.raises(ParameterError, match="surrogate must not be"):
            model.effect(new)
    else:
        assert 0.15 < np.abs(model.effect(new)).mean() < 0.6  # it is .4
    if kind == "any":
        with pytest.raises(ParameterError, match="to be saved"):
            model.save(tmp_path / "model.json")
        return
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert str(loaded) == str(model)
    assert_array_equal(loaded.decision_function(new), model.decision_function(new))


def test_effort_is_counted():
    """Quick fits compute less, unknown words are refused, and normal is the default."""
    X, y, t = _rows(n=600)
    sizes = []
    for effort in ("quick", "normal"):
        given = {"effort": effort, "adjust": False, "random_state": 0}
        forest = EffectModel(learner="forest", **given).fit(X, y, t, 0.5)
        kernel = EffectModel(learner="kernel", kernel="rbf", length_scale=0.1, penalty=0.1, **given)
        kernel = kernel.fit(X, y, t, 0.5)
        sizes.append((len(forest._learned.function.roots), kernel._learned.function.n_held))
    assert sizes == [(60, 200), (200, 400)]
    assert EffectModel().effort == "normal"
    with pytest.raises(ParameterError, match="effort must be one of 'quick', 'normal', 'thorough'"):
        EffectModel(effort="slow").fit(X, y, t, 0.5)


def test_machines_come_as_near_as_they_say(monkeypatch):
    """Beyond 4,000 rows the maximum is by support vector machines: within the gap of the exact."""
    X, y, t = _rows(n=120)
    given = {"length_scale": 2.0, "penalty": 1e-2}
    exact = CausalSVM(**given).fit(X, y, t, 0.5)
    monkeypatch.setattr(fitting, "MOST_EXACT", 100)
    near = CausalSVM(**given).fit(X, y, t, 0.5)
    assert near.exact_.n_iter < 21
    assert 0.0 < near.exact_.gap < 1e-3 * exact.objective_
    assert -1e-8 <= near.objective_ - exact.objective_ <= near.exact_.gap + 1e-8
    agree = near.decision_function(X) - exact.decision_function(X)
    assert np.abs(agree).mean() < 0.1


@pytest.mark.slow
def test_scales_are_chosen_by_rows_left_out():
    """They find a ring, which scales of 10 times either way do not, and lie between the steps."""
    rng = np.random.default_rng(1)
    X, t = rng.uniform(-2.0, 2.0, (700, 2)), rng.random(700) < 0.5
    helps = np.abs(np.hypot(*X.T) - 1.2) < 0.5
    y = (helps == (rng.random(700) < 0.9)) == t
    first, new = slice(0, 200), slice(200, None)
    machine = CausalSVM(random_state=0).fit(X[first], y[first], t[first], 0.5)

    def right(one):
        return np.mean((one.decision_function(X[new]) > 0.0) == helps[new])

    assert right(machine) > 0.85
    for times in (0.1, 10.0):
        length = machine.length_scale_ * times
        other = CausalSVM(length_scale=length, penalty=machine.penalty_)
        assert right(other.fit(X[first], y[first], t[first], 0.5)) < right(machine) - 0.05


def test_the_same_effect_for_all_is_not_said_to_differ(tmp_path):
    """Estimates that differ by chance are worse than their average."""
    rng = np.random.default_rng(1)
    X, t = rng.normal(size=(300, 3)), rng.random(300) < 0.5
    same, other = (
        EffectModel(random_state=0).fit(X, rng.random(300) < 0.3 + gain * t, t, 0.5)
        for gain in (0.2, 0.5 * (X[:, 0] > 0.0))
    )
    assert "No sign that the effect differs between rows: the average effect" in " ".join(
        str(same).split()
    )
    assert np.ptp(same.effect(X)) < 1e-9
    assert_allclose(same.effect(X)[0], same.average_effect_.effects[0])
    same.save(tmp_path / "m.json")
    assert str(bayescascade.load(tmp_path / "m.json")) == str(same)
    assert "The effect differs between rows (slope of held-out" in " ".join(str(other).split())
    assert np.ptp(other.effect(X)) > 0.2
    few = replace(
        other.average_effect_, n_rows=np.array([[270, 30]]), sizes=np.array([[270.0, 30.0]])
    )
    assert "was not tested" in replace(other._learned, average=few).sentences()[0]


@pytest.mark.slow
def test_weights_of_a_mixture_are_the_best_for_rows_left_out():
    """No other weights that sum to 1 have a smaller squared error; nothing useless is kept."""
    rng = np.random.default_rng(0)
    X, t = rng.uniform(-1.0, 1.0, (800, 3)), rng.random(800) < 0.5
    y = rng.random(800) < 0.5 + 0.45 * np.where(t, 1.0, -1.0) * np.where(X[:, 0] > 0.3, 1.0, -0.5)
    problem = EffectProblem(
        X, np.where(y == t, 2.0, -2.0), rng.random(800) + 0.5, t, True, *_SQUARES
    )
    kernel = fitting.KernelFit(problem, True, rng).fit("auto", "auto", "auto")
    forest = fit_forest(problem, 0, None)
    useless = forest._replace(held_out=-5.0 * problem.labels)
    both = mixed(problem, [kernel, forest, useless]).function
    assert both.words == "kernel and forest"
    share = both.weights[1]
    assert both.weights == pytest.approx((1.0 - share, share))
    assert 0.0 < share < 1.0
    errors = [
        np.average(
            (problem.labels - kernel.held_out - each * (forest.held_out - kernel.held_out)) ** 2,
            weights=problem.weights,
        )
        for each in (share, share - 0.01, share + 0.01)
    ]
    assert errors[0] < min(errors[1:])


def test_a_difference_of_logistic_regressions_is_found_and_saved(tmp_path):
    """In each arm the outcome is a logistic regression, so the T-learner has a weight."""
    rng = np.random.default_rng(2)
    X, t = rng.uniform(-1.0, 1.0, (500, 4)), rng.random(500) < 0.5
    chances = [1.0 / (1.0 + np.exp(-2.0 * X @ slope)) for slope in ([1, 1, 0, 0], [-1, 0, 2, 0])]
    model = EffectModel(random_state=0).fit(X, rng.random(500) < np.where(t, *chances), t, 0.5)
    function = model._learned.function
    assert "T-learner" in model.learner_
    assert function.weights[-1] > 0.0
    effect = chances[0] - chances[1]
    assert np.mean((model.effect(X) - effect) ** 2) < 0.2 * np.var(effect)
    model.save(tmp_path / "model.json")
    assert_array_equal(bayescascade.load(tmp_path / "model.json").effect(X), model.effect(X))


@pytest.mark.slow
def test_targets_by_name_are_arrays():
    """Whoever has weights gives them; others than those are another population."""
    X, y, t = _rows(n=120)
    e = np.where(X[:, 1] > 0, 0.7, 0.3)
    for given, named, weights in (
        ({"adjust": False, "surrogate": "hinge", "combine": "max", "penalty": 1e-2,
          "length_scale": 2.0}, "treated", target_weights("treated", e, t)),
        ({"learner": "kernel", "kernel": "linear", "penalty": 1e-2}, "overlap", e * (1.0 - e)),
    ):  # fmt: skip
        made = [EffectModel(**given, target=each, random_state=0) for each in (named, weights)]
        first, second = (one.fit(X, y, t, e).decision_function(X) for one in made)
        assert_allclose(first, second, atol=1e-6)
        other = EffectModel(**given, target=weights * np.exp(X[:, 0]), random_state=0)
        assert np.abs(other.fit(X, y, t, e).decision_function(X) - first).max() > 0.01


def test_propensities_do_not_matter_where_the_treated_decide():
    """Goh's corollary 1: treated rows are noisier than the others, so that one risk counts."""
    rng = np.random.default_rng(3)
    X, t = rng.normal(size=(120, 2)), np.arange(120) % 2 > 0
    y = ((X[:, 0] > 0) ^ (t & (rng.random(120) < 0.3))) == t
    machine = CausalSVM(kernel="linear", penalty=1e-2)
    even = machine.fit(X, y, t, 0.5).decision_function(X)
    assert "only the risk of the treated counts" in str(machine)
    steep = 1.0 / (1.0 + np.exp(-X[:, 1]))
    assert_allclose(machine.fit(X, y, t, steep).decision_function(X), even, atol=1e-6)
    bent = CausalSVM(length_scale=2.0, penalty=1e-3)  # which fits the noise, so that risks are even
    first, second = (bent.fit(X, y, t, e).decision_function(X) for e in (0.5, steep))
    assert "risk of the treated" not in str(bent)
    assert np.abs(first - second).max() > 0.1


def test_minimax_finds_nothing_where_all_gain():
    """p_1 = .9, p_0 = .6 for everyone: the maximum says nothing, the mean says that it helps."""
    y, t = np.repeat([True, False, True, False], [90, 10, 60, 40]), np.arange(200) < 100
    X = np.linspace(-1.0, 1.0, 200)[:, None] * 1e-9
    given = {"surrogate": "hinge", "kernel": "linear", "penalty": 1.0, "standardize": False}
    largest = EffectModel(**given, combine="max").fit(X, y, t, 0.5)
    mean = EffectModel(**given, combine="mean").fit(X, y, t, 0.5)
    assert abs(largest.decision_function(X)).max() < 0.4
    assert abs(largest.objective_ - 0.92) < 0.1
    assert mean.decision_function(X).min() > 0.9


_X, _Y, _T = _rows()
_THREE = np.arange(400) % 3
BAD = {
    "y must have two values, got 3": (_X, _THREE, _T),
    "treatment must have two values": (_X, _Y, _THREE),
    "must have rows of both outcomes": (_X, _Y | _T, _T),
    "at least 10 rows, got 4": (_X, _Y, np.arange(400) < 4),
    "propensity must be > 0 and < 1, got 1": (_X, _Y, _T, np.ones(400)),
    "propensity must be > 0 and < 1, got 0": (_X, _Y, _T, 0.0),
    "must not hold the treatment": (np.column_stack([_X, _T]), _Y, _T),
    "row": (np.where(_X > 2.0, np.nan, _X), _Y, _T),
    "arms must overlap": (_X + 50.0 * _T[:, None], _Y, _T),
    "label per row": (_X, _Y, _T[:-1]),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_named(words):
    with pytest.raises((DataError, ParameterError), match=words):
        EffectModel(random_state=0, missing="error").fit(*BAD[words])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"adjust": "residuals", "surrogate": "logistic"}, 'adjust must be "none" unless'),
        ({"learner": "tree"}, "learner must be"),
        ({"learner": "forest", "combine": "max"}, "learner must be"),
        ({"target": np.zeros(400)}, "target must"),
    ],
)
def test_bad_parameters_are_named(given, words):
    with pytest.raises((DataError, ParameterError), match=words):
        EffectModel(random_state=0, **given).fit(*_rows())


def test_files_and_frames_name_the_treatment(tmp_path):
    """A column of X is taken out of it; little overlap is said."""
    X, y, t = _rows()
    rows = pd.DataFrame(X, columns=["a", "b"]).assign(
        c=np.where(X[:, 1] > 0, "u", "v"), drug=np.where(t, "yes", "no"), well=y
    )
    rows.to_csv(tmp_path / "rows.csv", index=False)
    given = CausalSVM(length_scale=2.0, penalty=1e-2)
    model = given.fit(str(tmp_path / "rows.csv"), "well", "drug", 0.5)
    assert model.feature_texts == ["a", "b", "c"]
    asked = rows.drop(columns=["drug", "well"])
    before = model.decision_function(asked)
    given.fit(asked, rows["well"], rows["drug"], 0.5)
    assert_allclose(before, model.decision_function(asked), atol=1e-8)
    with pytest.raises(DataError, match="must not hold the treatment"):
        given.fit(rows.drop(columns="well"), y, rows["drug"], 0.5)
    with pytest.warns(UserWarning, match="arms overlap little"):
        given.fit(asked, y, t, np.where(X[:, 0] > 0, 0.98, 0.3))


def test_weights_decide_whom_rows_stand_for():
    """Half of the rows gain, and half lose as much, though X is the same: the heavier half wins."""
    rng = np.random.default_rng(5)
    n = 600
    X, t, gains = rng.normal(size=(n, 1)), rng.random(n) < 0.5, np.arange(n) % 2 > 0
    y = rng.random(n) < 0.5 + 0.4 * np.where(gains == t, 0.5, -0.5)
    given = {"learner": "kernel", "kernel": "linear", "penalty": 1e-2, "random_state": 0}
    heavy, light = np.where(gains, 9.0, 1.0), np.where(gains, 1.0, 9.0)
    models = [EffectModel(**given).fit(X, y, t, 0.5, w) for w in (heavy, light, 100.0 * heavy)]
    effects = [one.effect(X).mean() for one in models]
    assert effects[0] > 0.15
    assert effects[1] < -0.15
    assert_allclose(effects[2], effects[0])
    averages = [one.average_effect_.effects[0] for one in models]
    assert averages[0] > 0.1 > -0.1 > averages[1]
    assert models[0].effective_sizes_.sum() < 0.7 * n
    whole = EffectModel(**given).fit(X, y, t, np.full(n, 0.5), np.where(gains, 1.0, 0.0))
    part = EffectModel(**given).fit(X[gains], y[gains], t[gains], 0.5)
    assert_allclose(whole.effect(X), part.effect(X))
    assert whole.n_rows_ == n // 2
    with pytest.raises(DataError, match="sample_weight must be"):
        EffectModel(**given).fit(X, y, t, 0.5, -heavy)


def test_rules_that_were_measured_stay_with_the_model(tmp_path):
    """Prints, files and `to_dict` say for whom it works; a fit forgets what was measured before."""
    X, y, t = _rows(n=900)
    learned, others = slice(0, 450), slice(450, None)
    model = EffectModel(learner="kernel", kernel="linear", penalty=1e-2, random_state=0)
    model.fit(X[learned], y[learned], t[learned], 0.5)
    assert "No rows were held out" in str(model)
    model.explain(X[learned], kind="tree", random_state=0)
    assert model.effect_rules_ is None
    rules = model.explain(
        X[learned], (X[others], y[others], t[others], 0.5), kind="tree", random_state=0
    )
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    record = model.to_dict()
    for one in (model, loaded):
        assert one.effect_rules_.to_dict() == rules.to_dict()
        assert all(text in " ".join(str(one).split()) for text in record["sentences"])
    assert sum("The treatment helps" in text for text in record["sentences"]) >= 1
    assert record["rules"]["measured"][0]["group"] == "all rows"
    for one in record["rules"]["measured"]:
        assert ("reason" in one) == (one["effect"] is None)
    model.fit(X[learned], y[learned], t[learned], 0.5)
    assert model.effect_rules_ is None
