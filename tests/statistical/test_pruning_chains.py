"""Chains of prunings: balanced step by step, compiled as plain, and visiting what is probable."""

import math
from functools import cache

import numpy as np
import pytest

import samplers
from bayescascade.methods.prunings import posterior as pruning_posterior
from bayescascade.methods.prunings.kernels.cutting import MOVES
from tests.methods.prunings.problems import (
    DEEP,
    FREE,
    PAIR,
    PROBLEMS,
    STUMP,
    THREE,
    PruningProblem,
    each,
)
from tests.methods.prunings.slow_moves import moves
from tests.methods.rules.problems import without_hastings
from tests.statistical.chi_square import fits, independent_steps

N_STEPS = 800
N_DRAWS = 400  # per chain, of four chains

GROUPS = [("redraw",), ("switch",), MOVES]


@cache
def step_matrix(problem, names, beta=1.0, broken=False, bound=math.inf):
    """Return the exact transition matrix of a step that selects one of these plain moves."""
    plain = {name: moves(problem, beta)[name] for name in names}
    return samplers.transition_matrix(
        without_hastings(plain) if broken else plain,
        problem.posterior(max_objective=bound),
        problem.prunings,
        inverse_temperature=beta,
        weights=pruning_posterior.MOVE_WEIGHTS,
    )


@each(*PROBLEMS)
@pytest.mark.parametrize("names", GROUPS, ids="+".join)
@pytest.mark.parametrize("inverse_temperature", [0.0, 0.4, 1.0])
def test_plain_moves_are_in_detailed_balance(problem, names, inverse_temperature):
    """Each draws from the posterior exactly, at any temperature."""
    hot = problem.probabilities() ** inverse_temperature
    flow = (hot / hot.sum())[:, None] * step_matrix(problem, names, inverse_temperature)
    np.testing.assert_allclose(flow, flow.T, atol=1e-14)


@each(PAIR, DEEP, THREE)
@pytest.mark.parametrize("names", GROUPS[:2], ids="+".join)
def test_moves_without_hastings_term_are_not_in_balance(problem, names):
    """The test above must be able to fail."""
    flow = problem.probabilities()[:, None] * step_matrix(problem, names, 1.0, broken=True)
    assert np.abs(flow - flow.T).max() > 1e-4


def is_plain_step(problem, start, rng, names=MOVES, inverse_temperature=1.0, broken=False):
    """Whether compiled steps from a pruning pass for plain ones."""
    posterior = problem.posterior()
    index = {state: i for i, state in enumerate(problem.prunings)}
    chances = step_matrix(problem, names, inverse_temperature, broken)[start]
    steps = [
        posterior.advance(rng, problem.prunings[start], 1, inverse_temperature)[0]
        for _ in range(N_STEPS)
    ]
    return fits([index[state] for state in steps], chances)


def some_starts(problem, rng, n=4):
    """Return the pruning without splits, the one of all, and others between."""
    n_all = len(problem.prunings)
    return [0, n_all - 1, *rng.choice(n_all, size=min(n, n_all) - 2 if n_all > 2 else 0)]


@pytest.mark.parametrize(
    ("problem", "inverse_temperature"),
    [(THREE, 0.0), (THREE, 0.4), (PAIR, 0.4), (DEEP, 0.4), (FREE, 1.0), (STUMP, 1.0)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_compiled_steps_are_the_plain_ones(problem, inverse_temperature, rng):
    """The compiled sweep is a second program for the moves: it must be the same chain."""
    for start in some_starts(problem, rng):
        assert is_plain_step(problem, start, rng, inverse_temperature=inverse_temperature)


@each(PAIR, DEEP, THREE)
@pytest.mark.parametrize("names", GROUPS[:2], ids="+".join)
def test_each_move_alone_is_the_plain_one(problem, names, rng, monkeypatch):
    """With all moves together a rare one could be wrong unnoticed; nor may the test pass always."""
    chosen = {name: float(name in names) for name in MOVES}
    monkeypatch.setattr(pruning_posterior, "MOVE_WEIGHTS", chosen)
    starts = some_starts(problem, rng, n=4)
    assert all(is_plain_step(problem, start, rng, names) for start in starts)
    right, wrong = (step_matrix(problem, names, 1.0, broken) for broken in (False, True))
    start = int(np.abs(wrong - right).sum(axis=1).argmax())
    assert not is_plain_step(problem, start, rng, names, broken=True)


def visits(problem: PruningProblem, seed, engine=samplers.metropolis, **settings) -> list[int]:
    """Return the indices of the prunings drawn, as good as independent."""
    thin = independent_steps(step_matrix(problem, MOVES), problem.probabilities())
    run = engine(
        problem.posterior(),
        n_steps=thin * (N_DRAWS + 20),
        warmup=20 / (N_DRAWS + 20),
        n_draws=N_DRAWS,
        n_chains=4,
        seed=seed,
        **settings,
    )
    index = {state: i for i, state in enumerate(problem.prunings)}
    return [index[state] for chain in run.draws for state in chain]


@each(*PROBLEMS)
def test_chains_visit_prunings_as_often_as_they_are_probable(problem, rng):
    """How often a feature is needed is read off these visits."""
    drawn = visits(problem, rng)
    assert fits(drawn, problem.probabilities())
    assert not fits(drawn, problem.probabilities(2.0 * problem.temperature))


@pytest.mark.slow
@each(THREE)
def test_the_cold_replica_visits_prunings_as_often_as_they_are_probable(problem, rng):
    """Replica exchange must not let the hot chains' prunings into the draws."""
    drawn = visits(problem, rng, samplers.tempering, n_temperatures=3)
    assert fits(drawn, problem.probabilities())
    assert not fits(drawn, problem.probabilities(2.0 * problem.temperature))


@pytest.mark.parametrize("names", GROUPS[:2], ids="+".join)
@each(PAIR, THREE)
def test_compiled_steps_stay_below_the_bound(problem, names, rng, monkeypatch):
    """The near-optimal prunings are those of a bound; within it, steps are in balance too."""
    objectives = np.array([problem.objective(kept) for kept in problem.sets])
    bound = float(np.sort(objectives)[len(objectives) // 2])
    monkeypatch.setattr(
        pruning_posterior, "MOVE_WEIGHTS", {name: float(name in names) for name in MOVES}
    )
    posterior = problem.posterior(max_objective=bound)
    matrix = step_matrix(problem, names, bound=bound)
    chances = problem.probabilities() * (objectives <= bound)
    np.testing.assert_allclose(chances[:, None] * matrix, (chances[:, None] * matrix).T, atol=1e-14)
    index = {state: i for i, state in enumerate(problem.prunings)}
    for start in np.flatnonzero(objectives <= bound)[::4]:
        state = problem.prunings[start]
        steps = [posterior.advance(rng, state, 1, 1.0)[0] for _ in range(N_STEPS)]
        assert fits([index[state] for state in steps], matrix[start])
    free = problem.posterior()
    ends = [free.advance(rng, problem.prunings[0], 50, 0.0)[0] for _ in range(50)]
    assert any(posterior.log_density(state) == -np.inf for state in ends)  # if nothing holds it


@each(*PROBLEMS)
def test_annealing_finds_the_best_pruning_and_none_better(problem, rng):
    """On problems this small the best of all prunings is known."""
    best = min(map(problem.objective, problem.sets))
    run = samplers.anneal(problem.posterior(), n_steps=4000, n_chains=2, seed=rng)
    objective = problem.posterior().describe(run.best_state)["objective"]
    assert objective == pytest.approx(best, abs=1e-12)
