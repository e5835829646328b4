"""Private directions: what is published, what never is, and what a broken one would give away."""

import json
import math
import pickle
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import bayescascade
from bayescascade import (
    DataError,
    DirectionPosterior,
    ModelFileError,
    ParameterError,
    PrivacyError,
    PrivacyLedger,
    PrivateAdditiveNoiseModel,
    audit_privacy,
)
from bayescascade.base.threads import single_threaded
from bayescascade.methods.causal import private as rooms
from bayescascade.methods.causal.protection import Protection, agreement, credibility
from tests.methods.causal.problems import tanh_pair

BOUNDS = {"x_bounds": (-1, 1), "y_bounds": (-2, 2)}
SIMULATED = {**BOUNDS, "noise": "simulated", "random_state": 0}
TESTED = [("iqr", "test"), ("iqr", "both")]
OF_TEST_ROWS = [("hsic", "test"), ("spearman", "test"), ("kendall", "test"), ("hsic", "both")]
KINDS = [*OF_TEST_ROWS, *TESTED, ("kendall", "train")]


def made(score="hsic", protect="test", **changed):
    """Return a model."""
    given = {"score": score, "delta": 1e-3 if (score, protect) in TESTED else 0.0, "epsilon": 2.0}
    return PrivateAdditiveNoiseModel(**{**given, **SIMULATED, "protect": protect, **changed})


class Silence:
    """A source of no noise, which shows what it would have been added to."""

    is_private = False

    def laplace(self, _, n):
        return np.zeros(n, np.int64)

    def choose(self, scores, _):
        return int(np.argmax(scores))


def exact_scores(model, x, y, monkeypatch):
    """Return the scores that noise would be added to; None if the rows are not stable."""
    monkeypatch.setattr(rooms, "noise_source", lambda *_: Silence())
    scores = model.fit(x, y).release_.scores
    return None if scores is None else np.array(list(scores.values()))


def _splitting(seed):
    """Return what a model splits its rows by."""
    return np.random.SeedSequence(seed).spawn(2)[0]


@pytest.mark.parametrize(
    ("changed", "is_broken"), [({}, False), ({"publish": "direction"}, False), ({}, True)]
)
def test_audits_certify_no_more_than_was_promised(changed, is_broken, monkeypatch):
    """Of the worst neighbors: a row at the top of both orders, and at the top and the bottom."""
    if is_broken:
        sensitivity = Protection.sensitivity
        monkeypatch.setattr(Protection, "sensitivity", lambda self, n: sensitivity(self, n) / 2)
    x, y = np.linspace(-1, 1, 40), np.linspace(-1, 1, 40)
    is_test = rooms.split_rows(40, 40, np.random.default_rng(_splitting(0))) < 20
    other = x.copy(), y.copy()
    place = np.flatnonzero(is_test)[-1]
    other[1][place] = -2.0
    monkeypatch.setattr(rooms, "regressed", lambda *_: np.zeros_like)
    rows = [exact_scores(made("kendall"), *one, monkeypatch) for one in ((x, y), other)]
    assert np.abs(rows[0] - rows[1]).max() == pytest.approx(4 / 20)
    rng, protection = np.random.default_rng(0), made("kendall", "test", **changed)._protection(2.0)
    scale = 2 * protection.sensitivity(40) / 2.0

    def released(scores):
        if changed:
            posterior = DirectionPosterior(dict(zip(("x->y", "y->x"), scores, strict=True)), scale)
            return rng.random() < posterior.probabilities["x->y"]
        noisy = scores + rng.laplace(0, scale, 2)
        return float(np.abs(noisy - rows[1]).sum() - np.abs(noisy - rows[0]).sum())

    found = audit_privacy(released, rows, n_samples=4000).epsilon_lower
    assert (found > 2.0) == is_broken
    assert found > 1.0 or changed


@pytest.mark.parametrize(("score", "protect"), OF_TEST_ROWS)
def test_the_lower_score_wins_and_noise_hides_both(score, protect, monkeypatch):
    """A row that tests changes both scores; without noise the direction is that of the lower."""
    x, y = tanh_pair(100)
    model = made(score, protect)
    scores = exact_scores(model, x, y, monkeypatch)
    both = 2 * model._protection(2.0).sensitivity(100)
    assert model.release_.scale == pytest.approx(both / model.epsilon, rel=1e-3)
    lower = ("x->y", "y->x")[int(np.argmin(scores))]
    assert made(score, protect, publish="direction").fit(x, y).direction_ == lower


@pytest.mark.slow
def test_drawn_directions_are_those_of_the_posterior(monkeypatch):
    """The exponential mechanism is one draw from the Gibbs posterior at 2 sensitivity / epsilon."""
    x, y = tanh_pair(100)
    scores = exact_scores(made(), x, y, monkeypatch)
    monkeypatch.undo()
    model = made(publish="direction", epsilon=8.0)
    protection = model._protection(8.0)
    posterior = DirectionPosterior(
        dict(zip(("x->y", "y->x"), scores, strict=True)), protection.scale(100)
    )
    expected = posterior.probabilities["x->y"]
    assert 0.5 < expected < 0.99
    pair = rooms.Pair.read(x, y).within(*BOUNDS.values())
    is_test = rooms.split_rows(100, 100, np.random.default_rng(_splitting(0))) < 50
    curves = model._regressions(protection, pair.x[~is_test], pair.y[~is_test], None)
    monkeypatch.setattr(model, "_regressions", lambda *_: curves)
    noise = rooms.noise_source("simulated", np.random.default_rng(1))
    with single_threaded():
        found = [model._published(protection, pair, is_test, noise)[0] for _ in range(500)]
    deviation = math.sqrt(expected * (1 - expected) / 500)
    assert abs(np.mean([one == "x->y" for one in found]) - expected) < 4 * deviation


@pytest.mark.parametrize("protect", ["both", "train"])
def test_regressions_from_a_histogram_follow_a_curve(protect):
    """Of many rows, so that everybody may be protected; of few, noise is all there is."""
    found = [
        made("hsic", protect, epsilon=1.0, random_state=seed).fit(*tanh_pair(n, seed)).direction_
        for seed, n in enumerate([20_000] * 4)
    ]
    assert found == ["x->y"] * 4
    errors = [
        made("hsic", protect, epsilon=e)._protection(e).regression_error(6000) for e in (0.1, 1)
    ]
    assert errors[0] > 0.1 > 0.05 > errors[1] > 0.0
    if protect == "both":  # plans know what regressions need
        assert made("hsic", protect).plan(n_rows=60, margin=0.7, epsilon=5.0).probability == 0.5
    assert made("hsic", protect, epsilon=0.01).fit(*tanh_pair(60)).release_.probability is None


@pytest.mark.slow
@pytest.mark.parametrize(("score", "protect"), TESTED)
def test_rows_as_they_mostly_are_pass_what_is_proposed(score, protect):
    """Else the default would spend a budget on no answer; half of it would be too low."""
    n, delta = 100_000, 1e-6
    x, y = tanh_pair(n)
    model = made(score, protect, delta=delta).fit(x, y)
    assert model.direction_ is not None
    less = model._protection(2.0).sensitivity(n) / 20
    assert made(score, protect, delta=delta, proposed=less).fit(x, y).direction_ is None


def test_what_is_promised_is_never_rounded_down():
    release = made().fit(*tanh_pair(50)).release_
    for epsilon, text in [
        (0.001, "1.00101"),
        (1.0, "2.72"),
        (1.2, "3.33"),
        (10.0, "22,100"),
        (50.0, "e^50"),
    ]:
        guarantee = replace(release, epsilon=epsilon, is_private=True).guarantee
        assert f"more than {text} times" in guarantee


def test_real_noise_is_private_and_is_not_seeded():
    x, y = tanh_pair(60)
    both = [made("hsic", "test", noise="opendp").fit(x, y) for _ in range(2)]
    assert both[0].release_.is_private
    assert both[0].release_.scores != both[1].release_.scores
    assert "Simulated, not private" not in str(both[0])
    simulated = [made("hsic", "test").fit(x, y) for _ in range(2)]
    assert simulated[0].release_ == simulated[1].release_
    assert "Simulated, not private" in str(simulated[0])


@pytest.mark.parametrize(("score", "protect"), KINDS)
def test_releases_say_what_they_are_and_keep_nothing_else(score, protect, tmp_path):
    """No print, pickle or file holds a row, a residual or a score without noise."""
    x, y = tanh_pair(400)
    model = made(score, protect).fit(x, y)
    release = model.release_
    assert (model.epsilon_, model.delta_) == (2.0, model.delta)
    assert release.protects == protect
    if release.scores is not None:
        assert model.direction_ == min(release.scores, key=release.scores.get)
        is_told = release.probability is not None and 0.5 <= release.probability <= 1.0
        assert is_told == (release.regression_error <= 0.05)
        assert is_told != ("too much to rely on" in " ".join(str(model).split()))
    state = pickle.dumps(model)
    assert len(state) < 3000  # 400 rows would be more
    assert {k for k in vars(model) if k.endswith("_")} == {"release_", "n_rows_", "names_"}
    model.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    assert loaded.release_ == release
    assert str(loaded) == str(model) == str(pickle.loads(state))
    for other in (model, loaded, pickle.loads(state)):
        with pytest.raises(PrivacyError, match="spent"):
            other.fit(x, y)
    record = json.loads((tmp_path / "m.json").read_text())
    forgeries = {"direction": "up", "epsilon": -1, "score": "variance", "scale": "a", "n_test": 7}
    for field, value in [*forgeries.items(), ("names", {"x": "a"}), ("x_bounds", [1])]:
        forged = {**record, "release": {**record["release"], field: value}}
        (tmp_path / "f.json").write_text(json.dumps(forged))
        with pytest.raises(bayescascade.ModelFileError):
            bayescascade.load(tmp_path / "f.json")


def test_a_ledger_pays_until_it_is_spent():
    """Clones share it; a pickled copy has none; a refused fit publishes nothing."""
    x, y = tanh_pair(60)
    ledger = PrivacyLedger(5.0)
    model = made("hsic", "test", ledger=ledger).fit(x, y)
    clone(model).fit(x, y)
    first = model.release_
    with pytest.raises(PrivacyError, match="remains"):
        model.fit(x, y)
    assert model.release_ is first
    assert ledger.spent.epsilon == 4.0
    paid = made("hsic", "test", ledger=PrivacyLedger(9.0))
    for lost in (pickle.loads(pickle.dumps(paid)), clone(pickle.loads(pickle.dumps(paid)))):
        with pytest.raises(PrivacyError, match="ledger must be given again"):
            lost.fit(x, y)
    for copied in (copy(paid), deepcopy(paid), clone(copy(paid))):
        assert copied.ledger is paid.ledger
    bad = made("hsic", "test", ledger=PrivacyLedger(2.0))
    with pytest.raises(DataError):
        bad.fit(x[:5], y[:5])
    assert bad.fit(x, y).direction_ is not None  # nothing was spent on the error


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"x_bounds": None}, "x_bounds must be declared.*not from the data"),
        ({"y_bounds": (2, 1)}, "low < high"),
        ({"y_bounds": (0, math.inf)}, "y_bounds"),
        ({"x_bounds": (0, 1, 2)}, "x_bounds must be .low, high., low < high"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"score": "iqr", "delta": 0.0}, "delta must be > 0"),
        ({"score": "iqr", "delta": 0.1, "publish": "direction"}, "publish"),
        ({"score": "variance"}, "without bound"),
        ({"regularization": 1e308}, "regularization"),
        ({"y_bounds": (0, 5e-324)}, "low < high"),
        ({"epsilon": 1e9}, "epsilon"),
        ({"score": "iqr"}, "no 50 rows would pass"),
        ({"bandwidth": 0.001}, "bandwidth"),
        ({"proposed": -1.0, "score": "iqr", "delta": 0.1}, "proposed"),
    ],
)
def test_bad_settings_are_named_before_anything_is_spent(changed, words):
    model = made(**changed)
    with pytest.raises(ParameterError, match=words):
        model.fit(*tanh_pair(50))
    with pytest.raises(ParameterError):  # not that the budget is spent
        model.fit(*tanh_pair(50))


def difference(rng, n):
    """Return differences of two Laplace noises of scale 1."""
    return rng.laplace(size=n) - rng.laplace(size=n)


@pytest.mark.parametrize("margin", [0.0, 0.5, 3.0])
def test_noise_leaves_the_order_as_often_as_is_told(margin):
    """Theorem 4 by Monte Carlo; of twice the noise it is wrong."""
    found = float(np.mean(difference(np.random.default_rng(0), 200_000) < margin))
    assert agreement(2 * margin, 2.0) == pytest.approx(found, abs=0.004)
    assert not margin or abs(agreement(margin, 2.0) - found) > 0.01


@pytest.mark.parametrize("scale", [0.05, 1.0, 4.0])
def test_what_noise_allows_to_say_is_right_as_often_as_it_says(scale):
    """Of uniform margins whose noisy ones are alike, that part has their sign."""
    rng = np.random.default_rng(0)
    margins = rng.uniform(-1, 1, 400_000)
    noisy = margins + scale * difference(rng, len(margins))
    for at in np.quantile(np.abs(noisy), [0.3, 0.9]):
        near = np.abs(np.abs(noisy) - at) < 0.02 * scale
        right = float(np.mean((margins > 0)[near] == (noisy > 0)[near]))
        assert credibility(float(at), scale, 1.0) == pytest.approx(right, abs=0.03)
    limit = (1 - math.exp(-1 / scale)) / (1 - math.exp(-2 / scale))  # of tails that fall like e
    assert credibility(900.0, scale, 1.0) == pytest.approx(limit, abs=0.01)
    assert credibility(2.0, 1.0, math.inf) == agreement(2.0, 1.0)


@pytest.mark.parametrize(("score", "protect"), [*OF_TEST_ROWS, *TESTED])
def test_plans_find_what_is_missing(score, protect):
    """From three numbers the fourth, and back."""
    model = made(score, protect, epsilon=1.0)
    plan = model.plan(margin=0.2, probability=0.9)
    assert plan.n_rows >= 20
    assert model.plan(margin=0.2, n_rows=plan.n_rows).probability >= 0.9
    if plan.n_rows > 20:
        assert model.plan(margin=0.2, n_rows=plan.n_rows - 1).probability < 0.9
    other = model.plan(n_rows=plan.n_rows, probability=0.9)
    if protect != "both":  # of which the regressions, too, need rows
        assert other.margin == pytest.approx(0.2, rel=0.05) or plan.n_rows == 20
    found = model.plan(n_rows=plan.n_rows, probability=0.9, margin=0.2)
    assert found.epsilon <= 1.0 + 1e-9
    assert "epsilon" in str(found)
    assert found.to_dict()["probability"] == 0.9


def test_plans_refuse_what_nothing_would_do():
    model = made("hsic", "test")
    with pytest.raises(ParameterError, match="score"):
        made("pearson").plan(margin=0.1, probability=0.9)
    for wrong in ({}, {"n_rows": 100}, {"margin": 0.1, "n_rows": 5}, {"margin": -1, "n_rows": 50},
                  {"margin": 0.1, "probability": 0.3}, {"margin": 3.0, "n_rows": 50},
                  {"margin": 0.1, "probability": 0.9, "n_rows": 50, "epsilon": 1.0}):  # fmt: skip
        with pytest.raises(ParameterError):
            model.plan(**wrong)


@pytest.mark.parametrize("publish", ["scores", "direction"])
def test_exact_scores_that_are_infinite_are_no_direction(publish, tmp_path):
    """They are published, paid for, saved and printed; nothing is made up in their place."""
    rng = np.random.default_rng(0)
    x = np.where(np.arange(400) % 5 == 0, rng.uniform(-1, 1, 400), 0.25)
    y = np.where(np.arange(400) % 7 == 0, rng.uniform(-1, 1, 400), -0.5)
    ledger = PrivacyLedger(1.0)
    model = PrivateAdditiveNoiseModel(
        score="iqr", protect="train", publish=publish, x_bounds=(-1, 1), y_bounds=(-1, 1),
        noise="simulated", ledger=ledger, random_state=0,
    ).fit(x, y)  # fmt: skip
    assert model.direction_ is None
    assert ledger.spent.epsilon == model.epsilon_ == 1.0
    both = {"x->y": -np.inf, "y->x": -np.inf}
    assert model.release_.scores == (both if publish == "scores" else None)
    assert "no answer: half of the test rows" in " ".join(str(model).split())
    model.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    assert loaded.release_ == model.release_
    assert str(loaded) == str(model)
    with pytest.raises(PrivacyError):
        loaded.fit(x, y)
    record = json.loads((tmp_path / "m.json").read_text())
    record["release"]["direction"] = "x->y"
    (tmp_path / "m.json").write_text(json.dumps(record))
    if publish == "scores":
        with pytest.raises(ModelFileError, match="direction must be that of the lower score"):
            bayescascade.load(tmp_path / "m.json")
