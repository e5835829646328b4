"""Formulas of gated sensors: by hand, by slow twins, by differences and by other solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from bayescascade import GatePosterior, ParameterError, explore
from bayescascade.base.watch import OutOfTime
from bayescascade.methods.sensors import models
from bayescascade.methods.sensors.candidates import always, greedy_sets
from bayescascade.methods.sensors.models import (
    SOFTMAX,
    SQUARE,
    GatedNet,
    Weights,
    chances_of,
    fast_scores,
    fast_sends,
    within,
)
from bayescascade.methods.sensors.signals import Signals
from bayescascade.methods.sensors.training import (
    SensorProblem,
    ShareProblem,
    _Slopes,
    alternated,
    divergence,
    opened,
    projected,
    refitted,
    relaxed,
    solved,
    trained,
)
from tests.methods.sensors import slow_sums

OWNER = np.array([0, 0, 1, 2, 2])


def signals_of(n=30, seed=0, dead=False):
    rng = np.random.default_rng(seed)
    alive = np.ones((n, 3), bool)
    features = rng.normal(size=(n, 5))
    if dead:
        alive[:4, 1] = False
        features[:4, 2] = 0.0
    return Signals(features, alive, OWNER)


def weights_of(n_outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((5,), (3,), (5, n_outputs), (3, n_outputs), (n_outputs,))
    return Weights(*(rng.normal(size=shape) for shape in shapes))


def lesson_of(n=30, seed=0, n_classes=3, **how):
    rng = np.random.default_rng(seed)
    if n_classes:
        targets, loss = np.eye(n_classes)[rng.integers(0, n_classes, n)], SOFTMAX
    else:
        targets, loss = rng.normal(size=(n, 1)), SQUARE
    return SensorProblem(signals_of(n, seed, **how), targets, loss, np.array([1.0, 2.0, 0.5]), 1.0)


def test_sums_by_hand():
    """One sensor of one column: z = 2 x - 1, message 3 x + 1, constant 0.5."""
    signals = Signals(np.array([[1.0], [0.25]]), np.ones((2, 1), bool), np.array([0]))
    weights = Weights(
        np.array([2.0]), np.array([-1.0]), np.array([[3.0]]), np.array([[1.0]]), np.array([0.5])
    )
    net = GatedNet(weights)
    assert net.sends(signals).tolist() == [[True], [False]]
    assert net.outputs(signals).tolist() == [[4.5], [0.5]]
    relu = GatedNet(weights, "relu")
    assert relu.outputs(signals).tolist() == [[4.5], [0.5]]
    soft = GatedNet(weights, "sigmoid").outputs(signals)
    assert_allclose(soft[1], 0.5 + 1.75 / (1 + np.exp(0.5)))


@pytest.mark.parametrize("activation", ["step", "sigmoid", "relu"])
def test_sums_are_those_row_by_row(activation):
    """Also of a sensor that is dead, which counts as silent."""
    signals, weights = signals_of(dead=True), weights_of()
    net = GatedNet(weights, activation)
    sent, outputs = slow_sums.sums(signals.features, OWNER, *weights, activation, signals.alive)
    assert net.sends(signals).tolist() == sent
    assert_allclose(net.outputs(signals), outputs)
    labels = np.arange(30) % 3
    assert_allclose(SOFTMAX.rows(np.array(outputs), np.eye(3)[labels]),
                    slow_sums.cross_entropy(outputs, labels))  # fmt: skip
    one = net.outputs(signals.among([7]))
    assert (one == net.outputs(signals)[[7]]).all()  # a row answers as among many


@pytest.mark.parametrize("n_classes", [3, 0])
@pytest.mark.parametrize("kind", ["sigmoid", "relu"])
def test_slopes_of_soft_gates_are_differences(kind, n_classes):
    """Training walks along them; without the penalty's part they are off."""
    problem = lesson_of(n_classes=n_classes, dead=True)
    found, tradeoff = weights_of(problem.targets.shape[1], 1), 0.3
    places = np.arange(30)

    def value(flat, price=tradeoff):
        posterior_like = unflat(flat)
        gates = GatedNet(posterior_like, kind).gates(problem.signals)
        outputs = GatedNet(posterior_like, kind).outputs(problem.signals)
        squares = sum(np.sum(p**2) for p in posterior_like[2:4])
        loss = problem.loss.rows(outputs, problem.targets).mean()
        return loss + price * (gates @ problem.costs).mean() + 0.5 * problem.ridge / 30 * squares

    ends = np.cumsum([part.size for part in found])[:-1]

    def unflat(flat):
        parts = np.split(flat, ends)
        return Weights(*(p.reshape(s.shape) for p, s in zip(parts, found, strict=True)))

    flat = np.concatenate([np.ravel(part) for part in found])
    slope = _Slopes(problem, np.float32(tradeoff), kind, np.random.default_rng(0)).at(
        Weights(*(np.float32(part) for part in found)), places
    )
    slope = np.concatenate([np.ravel(part) for part in slope])
    steps = 1e-5 * np.eye(flat.size)
    expected = [(value(flat + s) - value(flat - s)) / 2e-5 for s in steps]
    assert_allclose(slope, expected, atol=2e-4)
    unpriced = [(value(flat + s, 0.0) - value(flat - s, 0.0)) / 2e-5 for s in steps]
    assert np.abs(slope - unpriced).max() > 0.01


def test_straight_through_passes_the_derivative_by_the_gate():
    """Where gates are sure, draws are as good as steps, and the slope is that by the step."""
    problem, found = lesson_of(), weights_of()
    sure = found._replace(gates=1e5 * found.gates, offsets=1e5 * found.offsets)
    slope = _Slopes(problem, np.float32(0.0), "straight_through", np.random.default_rng(0)).at(
        Weights(*(np.float32(part) for part in sure)), np.arange(30)
    )
    outputs = GatedNet(sure).outputs(problem.signals)
    errors = (chances_of(outputs) - problem.targets) / 30
    assert_allclose(slope.cloud, errors.sum(axis=0), atol=1e-5)
    sent = fast_sends(sure, problem.signals)[:, 1]
    ridged = errors[sent].sum(axis=0) + sure.constants[1] / 30
    assert_allclose(slope.constants[1], ridged, atol=1e-5)


@pytest.mark.parametrize("n_classes", [3, 0])
def test_refits_are_minima_and_their_gaps_hold(n_classes):
    """The gap bounds what another optimizer finds, also after a few iterations."""
    problem = lesson_of(n_classes=n_classes)
    gates = fast_sends(weights_of(), problem.signals).astype(float)
    start = np.zeros((9, problem.targets.shape[1]))
    best = refitted(problem, gates, start)
    assert best.gap < 1e-6
    design = np.column_stack([problem.signals.features * gates[:, OWNER], gates, np.ones(30)])

    def value(flat):
        theta = flat.reshape(start.shape)
        loss = problem.loss.rows(design @ theta, problem.targets).mean()
        return loss + 0.5 / 30 * np.sum(theta**2)

    other = minimize(value, start.ravel(), method="BFGS")
    assert best.value == pytest.approx(other.fun, abs=1e-6)
    assert value(best.theta.ravel()) == pytest.approx(best.value)
    if n_classes:
        early = refitted(problem, gates, start, max_iter=2)
        assert 1e-4 < early.value - best.value <= early.gap


def test_time_ends_long_sums_of_squares_between_blocks_of_rows(monkeypatch):
    design = np.random.default_rng(0).normal(size=(25, 4))
    monkeypatch.setattr(models, "_BLOCK", 10 * 4)
    assert_allclose(models.squared(design), design.T @ design)
    looks = iter([None, OutOfTime])

    def look():
        if ends := next(looks):
            raise ends

    monkeypatch.setattr(models, "check_time", look)
    with pytest.raises(OutOfTime):
        models.squared(design)


def test_gates_are_kept_within_a_budget():
    """Least squares from projected scores does not keep it: what restores it does."""
    signals, costs = signals_of(2000, 3), np.array([1.0, 2.0, 0.5])
    over = []
    for seed in range(5):
        weights = weights_of(1, seed)
        least = (fast_sends(weights, signals) @ costs).mean()
        for budget in least * np.array([0.3, 0.6, 0.9]):
            kept = within(weights, signals, costs, budget)
            cost = (fast_sends(kept, signals) @ costs).mean()
            assert cost <= budget
            assert cost > budget - 0.01  # no more is silenced than must be
            over.append(
                (fast_sends(projected(weights, signals, costs, budget), signals) @ costs).mean()
                / budget
            )
    assert max(over) > 1.2
    loose = within(weights, signals, costs, 10.0)
    assert loose is weights


def test_greedy_sets_take_the_best_for_its_cost():
    """Two sensors say the same, one of them for half as much; a third says nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    x[:, 1] = x[:, 0] + 0.01 * rng.normal(size=400)
    signals = Signals(x, np.ones((400, 3), bool), np.arange(3))
    targets = np.eye(2)[(x[:, 0] > 0).astype(int)]
    problem = SensorProblem(signals, targets, SOFTMAX, np.array([2.0, 1.0, 1.0]), 1.0)
    sets = list(greedy_sets(problem, problem))
    assert (sets[0][0].offsets > 0).tolist() == [False, False, False]
    assert_allclose(chances_of(sets[0][1].theta[-1:])[0], targets.mean(axis=0), atol=0.01)
    assert (sets[1][0].offsets > 0).tolist() == [False, True, False]
    assert (sets[-1][0].offsets > 0).all()
    assert always([1], weights_of()).offsets.tolist() == [-1.0, 1.0, -1.0]


def test_training_finds_who_is_needed():
    """The first sensor says which other one knows the class."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, 4))
    y = np.where(x[:, 0] > 0, x[:, 1] > 0, x[:, 3] > 0).astype(int)
    signals = Signals(x, np.ones((2000, 2), bool), np.array([0, 0, 1, 1]))
    problem = SensorProblem(signals, np.eye(2)[y], SOFTMAX, np.ones(2), 1.0)
    start = opened(problem, rng)
    gated = trained(problem, 0.05, start, 1500, "straight_through", rng)
    outputs = GatedNet(gated).outputs(signals)
    right = (outputs.argmax(axis=1) == y).mean()
    assert right > 0.9
    always_best = refitted(problem, np.ones((2000, 2)), start.theta)
    design = np.column_stack([x, np.ones((2000, 3))])
    assert right > ((design @ always_best.theta).argmax(axis=1) == y).mean() + 0.05
    assert fast_sends(gated, signals).mean() < 0.9


# -- the relaxation --------------------------------------------------------------------------------


def share_problem(limit, seed=0, n=6, n_sensors=3):
    rng = np.random.default_rng(seed)
    return ShareProblem(
        rng.normal(size=(n, n_sensors, 1)), np.zeros(1), rng.normal(size=(n, n_sensors)),
        rng.normal(size=(n, 1)), SQUARE, np.array([1.0, 2.0, 0.5]), limit, 0.3,
        np.ones((n, n_sensors)),
    )  # fmt: skip


def test_divergences_are_those_term_by_term():
    q, z = np.array([0.0, 0.2, 1.0]), np.array([-1.0, 0.3, 4.0])
    assert_allclose(
        divergence(q, z), [slow_sums.divergence(*pair) for pair in zip(q, z, strict=True)]
    )


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SciPy's, of 1.15
@pytest.mark.parametrize("limit", [pytest.param(2.0, marks=pytest.mark.slow), 100.0])
def test_shares_reach_the_optimum_of_a_general_solver(limit):
    """The printed step, which always spends the whole budget, stops above it."""
    problem = share_problem(limit)
    costs = np.broadcast_to(problem.costs, (6, 3)).ravel()
    found = minimize(
        lambda q: problem.value(q.reshape(6, 3)), np.full(18, 0.05),
        jac=lambda q: problem.slope(q.reshape(6, 3)).ravel(), bounds=[(1e-9, 1 - 1e-9)] * 18,
        constraints={"type": "ineq", "fun": lambda q: limit - costs @ q}, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    q = solved(problem, np.full((6, 3), 0.02), 1000)
    assert problem.value(q) == pytest.approx(found.fun, abs=5e-3)
    assert (q * problem.costs).sum() <= limit + 1e-9
    if limit < 10:
        return
    q = np.full((6, 3), 0.02)
    for step in range(500):
        slope = problem.slope(q)
        forced = slope - slope.max() - 1.0  # all negative: whatever there is room for becomes 1
        q = q + 2 / (step + 2) * (problem.vertex(forced) - q)
    assert problem.value(q) > found.fun + 0.05


def test_vertices_spend_on_the_steepest_for_their_cost():
    problem = share_problem(1.5, n=1)
    slope = np.array([[-1.0, -3.0, 2.0]])
    assert problem.vertex(slope).tolist() == [[0.0, 0.75, 0.0]]
    assert problem.vertex(-slope - 3.0).tolist() == [[1.0, 0.0, 1.0]]


@pytest.mark.slow
def test_relaxed_gates_follow_their_shares():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(250, 4))
    y = np.where(x[:, 0] > 0, x[:, 1] > 0, x[:, 3] > 0).astype(int)
    signals = Signals(x, np.ones((250, 2), bool), np.array([0, 0, 1, 1]))
    problem = SensorProblem(signals, np.eye(2)[y], SOFTMAX, np.ones(2), 1.0)
    found = relaxed(problem, 0.6, opened(problem, rng))
    assert fast_sends(found, signals).mean() < 0.9
    outputs = GatedNet(found).outputs(signals)
    assert (outputs.argmax(axis=1) == y).mean() > 0.7


# -- numbers ---------------------------------------------------------------------------------------


def truth_of(n_sensors, width, seed, n=1000):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_sensors), width)
    signals = Signals(rng.normal(size=(n, owner.size)), np.ones((n, n_sensors), bool), owner)
    truth = Weights(
        rng.normal(size=owner.size), rng.normal(size=n_sensors), rng.normal(size=(owner.size, 1)),
        np.zeros((n_sensors, 1)), np.zeros(1),
    )  # fmt: skip
    return signals, GatedNet(truth, "sigmoid").outputs(signals)[:, 0], truth


@pytest.mark.slow
def test_alternating_descent_comes_near_a_sum_of_soft_gates():
    """Without noise, (7.1) as printed; it is still far off after 10,000 steps."""
    signals, y, truth = truth_of(2, 2, 0)
    start = opened(
        SensorProblem(signals, y[:, np.newaxis], SQUARE, np.ones(2), 1.0), np.random.default_rng(0)
    )
    far = alternated(signals, y, start, 100)
    assert np.abs(far.weights.gates - truth.gates).max() > 1e-3
    assert 0 < far.error < 0.5 * y.var()


def test_projected_descent_keeps_the_budget():
    signals, y, _ = truth_of(3, 2, 0)
    costs = np.ones(3)
    start = opened(
        SensorProblem(signals, y[:, np.newaxis], SQUARE, costs, 1.0), np.random.default_rng(1)
    )
    found = alternated(signals, y, start, 20, costs=costs, budget=0.8)
    assert (fast_scores(found.weights, signals) > 0).sum(axis=1).mean() <= 0.8
    assert found.error < y.var()


# -- the posterior ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [3, None])
def test_densities_are_likelihood_ridge_and_cost(n_classes):
    rng = np.random.default_rng(0)
    x, targets = rng.normal(size=(12, 5)), np.arange(12) % 3
    costs = np.array([1.0, 2.0, 0.5])
    how = {"costs": costs, "tradeoff": 0.3, "ridge": 0.7, "gate_ridge": 0.2, "noise": 0.5}
    hard = GatePosterior(x, OWNER, targets, n_classes, gates="hard", **how)
    state = rng.normal(size=hard.n_numbers)
    weights = hard.parts(state)
    assert_allclose(hard.joined(weights), state)
    sent, outputs = slow_sums.sums(x, OWNER, *weights, "step")
    if n_classes is None:
        likelihood = -sum((o[0] - t) ** 2 for o, t in zip(outputs, targets, strict=True)) / 2 / 0.25
    else:
        likelihood = -sum(slow_sums.cross_entropy(outputs, targets))
    squares = 0.7 * np.sum(weights.theta**2)
    squares += 0.2 * (np.sum(weights.gates**2) + np.sum(weights.offsets**2))
    cost = (np.array(sent) @ costs).sum()
    expected = likelihood - 0.5 * squares - 0.3 * cost
    assert hard.log_density(state) == pytest.approx(expected)
    assert hard.describe(state)["cost"] == pytest.approx(cost / 12)
    sharp = GatePosterior(x, OWNER, targets, n_classes, sharpness=1e6, **how)
    assert sharp.log_density(state) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ParameterError, match='gates must be "smooth" for a gradient, got "hard"'):
        hard.log_density_and_gradient(state)


@pytest.mark.parametrize("gates", ["hard", "smooth"])
def test_a_sensor_that_is_not_alive_is_one_whose_gate_is_closed(gates):
    """Its cells are missing: what stands for them must not decide."""
    rng = np.random.default_rng(0)
    given = rng.normal(size=(12, 5)), OWNER, np.arange(12) % 3, 3
    alive = np.arange(3) != 1
    both, without = (
        GatePosterior(*given, gates=gates, alive=np.tile(each, (12, 1)))
        for each in (np.ones(3, bool), alive)
    )
    weights = both.parts(rng.normal(size=both.n_numbers))
    weights = weights._replace(offsets=weights.offsets + 3.0)
    closed = weights._replace(offsets=np.where(alive, weights.offsets, -1e9))
    expected = both.log_likelihood(both.joined(closed))
    assert without.log_likelihood(both.joined(weights)) == pytest.approx(expected)
    assert both.log_likelihood(both.joined(weights)) != pytest.approx(expected)


@pytest.mark.slow
def test_draws_say_which_sensor_is_needed():
    """The second one knows nothing: at a price it is silent in most draws, the first in none."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    posterior = GatePosterior(x, [0, 1], (x[:, 0] > 0).astype(int), 2, tradeoff=0.2, sharpness=4.0)
    found = explore(posterior, "ascent+langevin", n_steps=2000, n_chains=2, random_state=0,
                    until="steps")  # fmt: skip
    draws = [state for chain in found.run_.draws for state in chain]
    needed = posterior.needed(draws)
    assert needed[0] > 0.95
    assert needed[1] < 0.5
    hard = GatePosterior(x, [0, 1], (x[:, 0] > 0).astype(int), 2, tradeoff=0.2, gates="hard")
    annealed = explore(hard, "anneal", n_steps=4000, n_chains=2, random_state=0)
    assert hard.describe(annealed.state)["loss"] < 0.45
    with pytest.raises(ParameterError, match="at least one draw"):
        posterior.needed([])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sensor_of": [0, 2]}, "sensor_of must ascend from 0 without gaps"),
        ({"targets": [0, 5]}, r"targets must be in \[0, 2\)"),
        ({"targets": [0]}, "features must be"),
        ({"costs": [1.0]}, "costs must be 2 numbers >= 0"),
        ({"tradeoff": -1.0}, "tradeoff"),
        ({"sharpness": 0.0}, "sharpness"),
        ({"features": [[np.nan, 1.0], [0.0, 1.0]]}, "finite"),
    ],
)
def test_bad_posteriors_are_named(changed, words):
    given = {
        "features": np.eye(2), "sensor_of": [0, 1], "targets": [0, 1], "n_classes": 2, **changed
    }  # fmt: skip
    with pytest.raises(ParameterError, match=words):
        GatePosterior(**given)
