"""Gated sensors from rows to who sends: budgets, missing cells, errors and files."""

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import (
    DataError,
    GatedSensorsClassifier,
    GatedSensorsRegressor,
    ParameterError,
    cost_accuracy_curve,
    explore,
)
from bayescascade.methods.sensors import base, candidates, signals

SENSORS = {"wrist": ["ax", "ay"], "ankle": ["bx", "by"], "chest": ["c"]}
HOW = {"sensors": SENSORS, "n_steps": 250, "random_state": 0}


def rows(n=900, seed=0):
    """Return rows of which wrist or ankle knows the class, as they themselves can tell."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=["ax", "ay", "bx", "by", "c"])
    moves = rng.random(n) < 0.5  # seen by both
    frame["ax"] = np.where(moves, 2.0, -2.0) + 0.3 * frame["ax"]
    frame["bx"] = np.where(moves, -2.0, 2.0) + 0.3 * frame["bx"]
    y = np.where(np.where(moves, frame["ay"], frame["by"]) > 0, "up", "down")
    return frame, y


@pytest.fixture(scope="module")
def model():
    return GatedSensorsClassifier(budget=1.2, **HOW).fit(*rows())


@pytest.mark.slow
def test_half_of_the_sensors_do(model):
    """No set that always sends can be right for as little."""
    X, y = rows(seed=1)
    assert model.score(X, y) > 0.95
    sends = model.sends(X)
    assert list(sends.columns) == list(SENSORS)
    assert (sends["wrist"] == (X["ax"] > 0)).mean() > 0.95
    assert (sends["ankle"] == (X["bx"] > 0)).mean() > 0.95
    assert sends["chest"].mean() < 0.1
    cost = model.activation_cost(X)
    np.testing.assert_array_equal(cost, sends.sum(axis=1))
    assert cost.mean() <= 1.2 * 1.05
    assert not model.always_sends_
    static = [one for one in model.path_ if one.kind == "always" and one.cost <= 1.2]
    assert min(one.error for one in static) > 0.2
    assert "wrist" in str(model)


def test_budgets_are_met_on_rows_held_out(model):
    """Of each: what chose, the rows that it learned from, and a curve of new ones."""
    X, y = rows(seed=2)
    models = model.path([0.4, 0.8, 1.2])
    for budget, one in zip((0.4, 0.8, 1.2), models, strict=True):
        assert one.held_out_cost_ <= budget
        assert one.validation_cost_ <= budget * (1 + 1e-9)
        assert one.budget == budget
    errors = [1 - one.score(X, y) for one in models]
    assert errors == sorted(errors, reverse=True)
    curve = cost_accuracy_curve({"gated": models}, X, y)
    assert [p.error for p in curve.points] == pytest.approx(errors)
    assert curve.nothing.error > errors[0]


def test_sets_that_always_send_win_where_they_are_better():
    """One sensor knows all, and no gate could know when it need not send."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] > 0
    made = GatedSensorsClassifier(budget=1.0, random_state=0, n_steps=3, tradeoff=5.0).fit(X, y)
    assert made.always_sends_
    assert made.sensor_shares_.tolist() == [1.0, 0.0]
    assert made.gap_ < 1e-3
    assert made.tradeoff_ is None
    assert made.score(X, y) > 0.97


def first_sensors(costs):
    """Return the first sensor of the sets that always send, of four tables."""
    found = []
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(600, 3))
        noise = 0.3 * np.random.default_rng([seed, 1]).normal(size=600)
        y = X @ [1.0, 0.7, 0.5] + noise > 0
        made = GatedSensorsClassifier(costs=costs, budget=1.2, n_steps=20, random_state=seed)
        sets = [one.net.weights.offsets > 0 for one in made.fit(X, y).path_ if one.kind == "always"]
        assert not sets[0].any()
        (first,) = np.flatnonzero(sets[1])
        found.append(int(first))
    return found


def test_the_best_and_cheapest_sensor_is_added_first(monkeypatch):
    """The broken twin starts from a squared error, so that all losses rise, and divides by costs.

    It added the sensor that costs a hundred times as much as the best one.
    """
    assert first_sensors([1.0, 100.0, 2.0]) == [0, 0, 0, 0]
    fitted = candidates._fitted

    def start(problem, validation, weights):
        found, loss = fitted(problem, validation, weights)
        return found, loss if (weights.offsets > 0).any() else 0.25

    monkeypatch.setattr(candidates, "_fitted", start)
    monkeypatch.setattr(candidates, "_rank", lambda change, cost: (change / cost,))
    assert first_sensors([1.0, 100.0, 2.0]) == [1, 1, 1, 1]


@pytest.mark.parametrize("make", [GatedSensorsClassifier, GatedSensorsRegressor])
def test_budgets_below_all_leave_sensors_silent(make, tmp_path):
    """Of a given tradeoff; else gates are trained until they are silent. The print says so."""
    X, y = rows()
    y = y if make is GatedSensorsClassifier else np.where(y == "up", 3.0, 1.0)
    made = make(tradeoff=0.01, **{**HOW, "budget": 0.05, "n_steps": 20}).fit(X, y)
    assert made.held_out_cost_ == made.activation_cost(X).max() == 0.0
    assert len(set(made.predict(X).tolist())) == 1
    text = "budget 0.05: no sensor sends; the cheapest sensor, wrist, costs 1; all rows get the"
    assert made.nothing_read_text.startswith(text)
    made.save(tmp_path / "m.json")
    assert text in " ".join(str(bayescascade.load(tmp_path / "m.json")).split())
    assert not make(**{**HOW, "n_steps": 20, "budget": 3}).fit(X, y).nothing_read_text


def test_negative_budgets_are_errors():
    X, y = rows(60)
    with pytest.raises(ParameterError, match="budget must be a finite number >= 0, got -1"):
        GatedSensorsClassifier(**{**HOW, "budget": -1}).fit(X, y)


@pytest.mark.slow
def test_validation_rows_choose_if_they_are_given():
    X, y = rows()
    X_val, y_val = rows(300, seed=5)
    made = GatedSensorsClassifier(budget=1.2, **HOW).fit(X, y, X_val, y_val)
    assert made.held_out_error_ == pytest.approx(1 - made.score(X_val, y_val), abs=1e-12)
    assert made.validation_cost_ == pytest.approx(made.activation_cost(X_val).mean())


@pytest.mark.slow
def test_a_sensor_with_a_missing_cell_is_silent(model):
    """Its row is answered by the others; as an error it names the column."""
    X, y = rows(seed=3)
    broken = X.copy()
    broken.loc[::2, "ay"] = np.nan
    sends = model.sends(broken)
    assert not sends["wrist"][::2].any()
    pd.testing.assert_frame_equal(sends[1::2], model.sends(X)[1::2])
    assert 0.6 < model.score(broken, y) < model.score(X, y)
    refit = GatedSensorsClassifier(budget=1.5, **HOW).fit(broken, y)
    assert not refit.sends(broken)["wrist"][::2].any()
    with pytest.raises(DataError, match='"ay"'):
        GatedSensorsClassifier(missing="error", **HOW).fit(broken, y)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"sensors": {"a": ["ax"], "b": ["ay", "ax"]}},
            "each column once, got 'ax' in 'a' and 'b'",
        ),
        ({"sensors": {"a": ["az"]}}, r"sensors\['a'\] must be of columns, got 'az'"),
        ({"sensors": {"a": []}}, "at least one column"),
        ({"sensors": {"a": "ax"}}, "must be a list of columns, got 'ax'"),
        ({"sensors": []}, "sensors must be a mapping"),
        ({"sensors": {3: ["ax"]}}, "names of text, got 3"),
        ({"costs": {"wrst": 1.0}}, "costs must be of sensors, got 'wrst'.*wrist"),
        ({"costs": [1.0]}, "costs must be a mapping of sensors or 3 numbers"),
        ({"costs": {"wrist": -1.0}}, r"costs\['wrist'\] must be a finite number >= 0, got -1"),
        ({"activation": "relu"}, 'activation must be "sigmoid" for straight_through, got "relu"'),
    ],
)
def test_bad_sensors_are_named(changed, words):
    with pytest.raises(ParameterError, match=words):
        GatedSensorsClassifier(**{**HOW, **changed}).fit(*rows(100))


def test_one_class_is_an_error():
    X, _ = rows(50)
    with pytest.raises(DataError, match="at least two classes"):
        GatedSensorsClassifier(**HOW).fit(X, np.zeros(50))


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"method": "direct", "activation": "relu", "features": "squared"},
        {"method": "direct"},
        {"method": "relaxed"},
        {"features": "fourier", "n_fourier": 20},
    ],
    ids=str,
)
def test_other_ways_by_name(how, tmp_path):
    """Each is within its budget, better than a guess, printed and saved."""
    X, y = rows(300)
    made = GatedSensorsClassifier(**{**HOW, "budget": 1.5, "n_steps": 200, **how}).fit(X, y)
    assert made.activation_cost(X).mean() <= 1.5 * (1 + 1e-9)
    assert made.score(X, y) > 0.7
    made.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict_proba(X), made.predict_proba(X))
    np.testing.assert_array_equal(loaded.sends(X), made.sends(X))
    assert str(loaded) == str(made)
    assert loaded.get_params()["sensors"] == SENSORS
    with pytest.raises(Exception, match="not read from a file"):
        loaded.within(1.0)


@pytest.mark.slow
def test_the_seed_decides_and_interruptions_keep_what_was_tried(monkeypatch):
    X, y = rows(200)
    made = [GatedSensorsClassifier(budget=1.2, **HOW).fit(X, y) for _ in range(2)]
    assert made[0].to_record() == made[1].to_record()
    calls = []

    def stop(*_):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return trained(*_)

    from bayescascade.methods.sensors import estimators

    trained = estimators.trained
    monkeypatch.setattr(estimators, "trained", stop)
    ended = GatedSensorsClassifier(budget=1.2, **HOW).fit(X, y)
    assert ended.is_interrupted_
    assert ended.always_sends_
    assert "interrupted" in str(ended)


def test_the_posterior_is_of_what_was_learned(model):
    posterior, state = model.posterior_, model.state()
    assert posterior.tradeoff == model.tradeoff_
    np.testing.assert_allclose(posterior.sending(state), model.sensor_shares_)
    found = explore(posterior, "langevin", n_steps=50, n_chains=1, starts=[state], until="steps",
                    random_state=0)  # fmt: skip
    assert np.isfinite(found.log_density)


def test_many_rows_with_many_features_fit_into_memory(monkeypatch, tmp_path):
    """Fits learn from a share of them, with every class, and predictions take blocks."""
    X, y = rows(5000)
    y[:2] = "rare"
    how = HOW | {"features": "fourier", "n_fourier": 20, "n_steps": 10, "tradeoff": 0.1}
    n_features, sizes, made = 5 + 3 * 20, [], signals.SensorScaling.signals

    def counted(*given):
        sizes.append(len(given[1]))
        return made(*given)

    monkeypatch.setattr(signals.SensorScaling, "signals", counted)
    monkeypatch.setattr(base, "_MOST_CELLS", 1500 * n_features)
    monkeypatch.setattr(signals, "_BLOCK", 700 * n_features)
    model = GatedSensorsClassifier(**how).fit(X, y, *rows(3000, seed=1))
    assert max(sizes) <= 1503  # each class is rounded up
    assert f"learned from {sizes[1]:,} random rows, as each has 65 features" in str(model)
    assert "5,000 rows" in str(model)
    assert model.classes_.tolist() == ["down", "rare", "up"]
    limited = GatedSensorsClassifier(**how, time_limit=1000.0).fit(X, y, *rows(3000, seed=1))
    sizes.clear()
    in_blocks = model.predict_proba(X)
    assert model.sends(X).shape == (5000, 3)
    assert max(sizes) == 700
    np.testing.assert_array_equal(limited.predict_proba(X), in_blocks)
    monkeypatch.setattr(signals, "_BLOCK", 5000 * n_features)
    np.testing.assert_array_equal(model.predict_proba(X), in_blocks)
    model.save(tmp_path / "m.json")
    assert bayescascade.load(tmp_path / "m.json").notes_ == model.notes_

    drawn = GatedSensorsRegressor(**how).fit(X, X["c"])
    assert "learned from 1,500 random rows" in str(drawn)
    assert "random rows" not in str(drawn.fit(X[:1000], X["c"][:1000]))


# -- numbers ---------------------------------------------------------------------------------------


def numbers(n=800, seed=0):
    X, _ = rows(n, seed)
    return X, 5.0 + 3.0 * np.where(X["ax"] > 0, X["ay"], X["by"])


@pytest.mark.parametrize(
    "method",
    ["straight_through"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("alternating", "projected")],
)
def test_numbers_are_explained_within_a_budget(method):
    X, y = numbers()
    made = GatedSensorsRegressor(budget=1.3, method=method, **HOW).fit(X, y)
    assert made.activation_cost(X).mean() <= 1.3 * (1 + 1e-9)
    X_test, y_test = numbers(seed=1)
    least = {"straight_through": 0.9}.get(method, 0.4)
    assert made.score(X_test, y_test) > least
    assert "% of the variance" in str(made)


def test_numbers_must_be_numbers():
    X, _ = numbers(60)
    with pytest.raises(DataError, match="y must hold numbers"):
        GatedSensorsRegressor(**HOW).fit(X, np.full(60, "a"))
    with pytest.raises(DataError, match="y must hold finite numbers, got nan in row 1"):
        GatedSensorsRegressor(**HOW).fit(X, np.full(60, np.nan))
