"""A gate that asks where it pays: the game, its bounds, streams in parts, and bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from bayescascade import OnlineGate
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.methods.online.rates import regret_bound, regret_lower_bound, thesis_rates
from bayescascade.model.explore import explore
from tests.methods.online.similar_experts import Fixed, hardly_differing
from tests.methods.online.slow_rounds import slow_rounds

RATES = [("adaptive", None), ("anytime", None), ("horizon", 400)]


def stream(rng, n=400):
    """Return decisions of four experts, one of which asks, and the labels."""
    y = rng.integers(0, 2, n)
    wrong = rng.random((n, 3)) < [0.05, 0.3, 0.5]
    X = np.where(wrong, 1 - y[:, None], y[:, None])
    X[:, 2] = np.where(rng.random(n) < 0.5, -1, X[:, 2])
    return np.c_[X, np.full(n, -1)], y


def gate_of(rates="adaptive", horizon=None, **more):
    experts = [Fixed(column) for column in range(4)]
    options = {"cost": 0.3, "classes": [0, 1], "random_state": 3, **more}
    return OnlineGate(experts, rates=rates, horizon=horizon, **options)


def models(**more):
    kinds = [LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)]
    return OnlineGate.of_models(kinds, thresholds=5, random_state=0, **more)


@pytest.mark.parametrize(("rates", "horizon"), RATES)
@pytest.mark.parametrize("exploration", ["floor", "mix"])
@pytest.mark.parametrize("known", [True, False])
def test_rounds_are_those_of_the_slow_twin(rng, rates, horizon, exploration, known):
    """A gate that learns otherwise than it says would keep none of its promises."""
    X, y = stream(rng)
    gate = gate_of(rates, horizon, exploration=exploration, known_cost=known)
    gate.partial_fit(X, y)
    eta, gamma = thesis_rates(400, 4, 0.3)
    uniforms = np.random.default_rng(3).random((400, 2))
    rounds, losses = slow_rounds(
        X.tolist(), y.tolist(), uniforms.tolist(), 0.3, rates, eta=eta, gamma=gamma,
        mix=exploration == "mix", known=known,
    )  # fmt: skip
    asked, answers, chances = zip(*rounds, strict=True)
    played = gate.played_
    np.testing.assert_array_equal(played.asked, asked)
    np.testing.assert_array_equal(played.predictions, answers)
    np.testing.assert_allclose(played.ask_probabilities, chances, rtol=1e-9)
    np.testing.assert_allclose(gate.estimated_losses_, losses, rtol=1e-9)
    assert 0 < played.asked.sum() < 400


@pytest.mark.parametrize("learns", [True, False])
def test_a_stream_in_parts_is_the_stream_at_once(rng, learns):
    """However rows come, and whether labels are asked for or at hand: the same rounds."""
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=900) > 0, "yes", "no")
    once = models(learns=learns).start(X[:60], y[:60])
    calls = []

    def ask(i):
        calls.append(i)
        return str(y[60 + i])

    played = once.play(X[60:], ask)
    assert calls == np.flatnonzero(played.asked).tolist()  # no other label is looked at
    parts = models(learns=learns).start(X[:60], y[:60])
    found = []
    for first in (60, 63, 400):
        last = {60: 63, 63: 400, 400: 880}[first]
        found += parts.partial_fit(X[first:last], y[first:last]).played_.predictions.tolist()
    for row in range(880, 900):
        decision = parts.decide(X[row])
        found.append(y[row] if decision.asks else decision.prediction)
        parts.learn(decision, y[row] if decision.asks else None)
        assert decision.ask_probability == played.ask_probabilities[row - 60]
    assert found == played.predictions.tolist()
    np.testing.assert_array_equal(parts.estimated_losses_, once.estimated_losses_)
    assert (once.n_rounds_, once.n_asked_) == (840, len(calls))
    with pytest.raises(DataError, match="decision must be from round 840"):
        parts.learn(decision)


@pytest.mark.parametrize("learns", [True, False])
def test_a_saved_gate_plays_on_as_if_it_had_never_been_saved(rng, tmp_path, learns):
    X = pd.DataFrame({"age": rng.normal(50, 9, 600), "ward": rng.choice(["A", "B"], 600)})
    X.loc[::7, "age"] = np.nan
    y = np.where((X["ward"] == "A") ^ (rng.random(600) < 0.1), "well", "ill")
    gate = models(learns=learns).start(X[:50], y[:50]).partial_fit(X[50:300], y[50:300])
    gate.save(tmp_path / "gate.json")
    again = OnlineGate.load(tmp_path / "gate.json", models()._pool.models)
    assert str(again) == str(gate)
    for one in (gate, again):
        one.partial_fit(X[300:], y[300:])
    np.testing.assert_array_equal(again.played_.predictions, gate.played_.predictions)
    np.testing.assert_array_equal(again.estimated_losses_, gate.estimated_losses_)


def test_a_saved_gate_of_ones_own_experts_plays_on(rng, tmp_path):
    X, y = stream(rng)
    gate = gate_of().partial_fit(X[:100], y[:100])
    gate.save(tmp_path / "gate.json")
    again = OnlineGate.load(tmp_path / "gate.json", [Fixed(column) for column in range(4)])
    played = [one.partial_fit(X[100:], y[100:]).played_.predictions for one in (gate, again)]
    np.testing.assert_array_equal(*played)


@pytest.mark.parametrize(
    "forge",
    [
        lambda record: record.update(labels=[7] * len(record["labels"])),
        lambda record: record.update(n_learned=10**6),
        lambda record: record["losses"].pop(),
        lambda record: record.update(sums=[1.5, 0, 0, 1, 1]),
        lambda record: record.update(uniforms=[[2.0, 0.0]]),
        lambda record: record["rng"].update(bit_generator="exec"),
        lambda record: record.update(kind="O"),
        lambda record: record["options"].update(cost=-1),
        lambda record: record.pop("encoding"),
        lambda record: record.update(experts=["another"]),
    ],
)
def test_forged_gates_are_refused(rng, tmp_path, forge):
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    models().start(X, y).save(tmp_path / "gate.json")
    record = json.loads((tmp_path / "gate.json").read_text())
    forge(record)
    (tmp_path / "gate.json").write_text(json.dumps(record))
    with pytest.raises(ModelFileError):
        OnlineGate.load(tmp_path / "gate.json", models()._pool.models)


def test_models_that_learn_on_lose_less(rng):
    X = rng.normal(size=(2000, 4))
    y = X @ [1.0, -1.0, 0.5, 0.2] > 0
    losses = [
        models(cost=0.2, learns=learns).start(X[:20], y[:20]).play(X[20:], lambda i: y[20 + i])
        .losses(y[20:]).mean()
        for learns in (True, False)
    ]  # fmt: skip
    assert losses[0] < losses[1] - 0.01
    assert losses[0] < 0.1


@pytest.mark.parametrize(("rates", "horizon"), RATES[1:])
def test_regret_is_below_its_bound(rng, rates, horizon):
    """The bound is a promise about the mean, over any stream."""
    bound = regret_bound(400, 4, 0.3, rates)
    regrets = []
    for seed in range(20):
        X, y = stream(rng)
        gate = gate_of(rates, horizon, random_state=seed)
        lost = gate.partial_fit(X, y).played_.losses(y).sum()
        each = np.where(X < 0, 0.3, y[:, None] != X).sum(axis=0)
        regrets.append(lost - each.min())
    assert np.mean(regrets) < bound
    assert gate.regret_bound(400) == bound


@pytest.mark.slow
@pytest.mark.parametrize("rates", ["horizon", "anytime"])
def test_regret_is_below_its_bound_where_experts_hardly_differ(rng, rates):
    for n in (2_000, 20_000, 100_000):
        for k in (10, 100):
            for cost in (0.1, 0.3, 1.0):
                found = [hardly_differing(rng, rates, n, k, cost) for _ in range(3)]
                assert np.mean(found) < regret_bound(n, k, cost, rates)
                if (n, k, cost) == (20_000, 100, 1.0):
                    assert np.mean(found) > regret_lower_bound(n, k)


def test_bounds_are_those_worked_out_by_hand():
    """The rates need T >= log K / c^2, and the lower bound is not the printed one."""
    assert regret_bound(20_000, 100, 1.0, "horizon") == pytest.approx(3677.6, abs=1)
    assert regret_lower_bound(20_000, 100) == pytest.approx(376.7, abs=0.1)
    assert regret_lower_bound(10_000, 10) == pytest.approx(129.63, abs=0.01)
    assert regret_lower_bound(10_000, 3) == 0.0
    thesis_rates(461, 100, 0.1)
    with pytest.raises(ParameterError, match="horizon must be at least 461"):
        thesis_rates(460, 100, 0.1)
    assert regret_bound(100, 10, 0.2, "adaptive") is None
    assert (
        3.0 < regret_bound(10**6, 100, 0.5, "anytime") / (0.5 * np.log(100) * 1e12) ** (1 / 3) < 3.2
    )
    assert regret_bound(1000, 9, 0.2, "anytime", 3) > regret_bound(1000, 9, 0.2, "anytime")


def test_the_posterior_has_the_weights_of_the_experts(rng):
    X, y = stream(rng)
    gate = gate_of().partial_fit(X, y)
    densities = np.exp([gate.posterior_.log_density(expert) for expert in range(4)])
    np.testing.assert_allclose(densities / densities.sum(), gate.probabilities_, atol=1e-12)
    found = explore(gate.posterior_, "anneal", n_steps=200, n_chains=1, random_state=0)
    assert found.state == np.argmax(gate.probabilities_)
    assert "asked in" in str(gate)
    assert gate.to_dict()["n_rounds"] == 400


def test_ctrl_c_keeps_the_rounds(rng):
    X, y = stream(rng)
    gate = gate_of()

    def ask(i):
        if gate.n_asked_ == 5:
            raise KeyboardInterrupt
        return int(y[i])

    played = gate.play(X, ask)
    assert played.is_interrupted
    assert gate.n_rounds_ == len(played.asked) < 400
    rest = gate.partial_fit(X[len(played.asked) :], y[len(played.asked) :]).played_
    once = gate_of().partial_fit(X, y).played_
    assert [*played.predictions, *rest.predictions] == once.predictions.tolist()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: gate_of(cost=0.0), ParameterError, "cost must be"),
        (lambda: gate_of(cost=1.5), ParameterError, "cost must be"),
        (lambda: gate_of(classes=[1]), ParameterError, "classes must be at least 2"),
        (lambda: gate_of("horizon"), ParameterError, "horizon must be given"),
        (lambda: gate_of("fast"), ParameterError, "rates must be"),
        (lambda: OnlineGate([], classes=[0, 1]), ParameterError, "experts must be at least one"),
        (lambda: models().play([[0.0]], abs), DataError, "start must come first"),
        (lambda: gate_of().play([[0] * 4]), ParameterError, "ask or expensive_model must be given"),
        (lambda: gate_of().partial_fit([[0, 0, 0, 0]], [0]), DataError, "got none for row 0"),
        (lambda: gate_of().partial_fit([[0.5] * 4], [0]), DataError, "must return 1 integers"),
        (lambda: gate_of().partial_fit([[0, 0, 7, -1]], [0]), DataError, "or -1, got 7 to 7"),
        (lambda: gate_of().partial_fit([[0, 0, 0, -1]], [5]), DataError, "must have the classes"),
        (lambda: gate_of().partial_fit([[0, 0, 0, -1]], [0, 1]), DataError, "y must have a label"),
        (lambda: OnlineGate.of_models([]), ParameterError, "models must be at least one"),
        (lambda: OnlineGate.of_models([3]), ParameterError, "models must be classifiers"),
        (lambda: gate_of().start([[0]], [0]), ParameterError, "start needs a gate from Onl"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
