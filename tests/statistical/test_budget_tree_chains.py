"""Chains of budgeted trees: balanced, compiled as plain, and visiting what is probable."""

import numpy as np
import pytest

import samplers
from bayescascade.methods.cost_trees import posterior as tree_posterior
from bayescascade.methods.cost_trees.kernels.sweep import MOVES
from tests.methods.cost_trees.problems import (
    CONSTANT,
    GROUPED,
    PROBLEMS,
    THREE_CLASSES,
    TWO,
    WEIGHED,
    Remembered,
    TreeProblem,
    each,
    step_matrix,
)
from tests.statistical.chi_square import fits, independent_steps

N_STEPS = 800
N_DRAWS = 250  # per chain, of four chains

GROUPS = [("grow", "prune"), ("change",), ("regrow",), MOVES]


@each(*PROBLEMS)
@pytest.mark.parametrize("names", GROUPS, ids="+".join)
@pytest.mark.parametrize("inverse_temperature", [0.0, 0.4, 1.0])
def test_plain_moves_are_in_detailed_balance(problem, names, inverse_temperature):
    """Each draws from the posterior exactly, at any temperature."""
    hot = problem.probabilities(inverse_temperature)
    flow = hot[:, None] * step_matrix(problem, names, inverse_temperature)
    np.testing.assert_allclose(flow, flow.T, atol=1e-14)


@each(TWO, WEIGHED)
@pytest.mark.parametrize("names", GROUPS, ids="+".join)
def test_moves_without_hastings_term_are_not_in_balance(problem, names):
    """The test above must be able to fail."""
    flow = problem.probabilities(0.4)[:, None] * step_matrix(problem, names, 0.4, broken=True)
    assert np.abs(flow - flow.T).max() > 1e-4


def is_plain_step(problem, start, rng, names=MOVES, inverse_temperature=1.0, broken=False):
    """Whether compiled steps from a tree pass for plain ones."""
    posterior = problem.posterior(Remembered)
    index = {state: i for i, state in enumerate(problem.trees)}
    chances = step_matrix(problem, names, inverse_temperature, broken)[start]
    steps = [
        posterior.advance(rng, problem.trees[start], 1, inverse_temperature)[0]
        for _ in range(N_STEPS)
    ]
    return fits([index[state] for state in steps], chances)


def some_starts(problem, rng):
    """Return the leaf alone, one of the largest trees, and others between."""
    n_all = len(problem.trees)
    return [0, n_all - 1, *rng.choice(n_all, size=2)]


@pytest.mark.parametrize(
    ("problem", "inverse_temperature"),
    [(TWO, 0.0), (TWO, 0.4), (GROUPED, 0.4), (WEIGHED, 0.4), (THREE_CLASSES, 1.0), (CONSTANT, 1.0)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_compiled_steps_are_the_plain_ones(problem, inverse_temperature, rng):
    """The compiled sweep is a second program for the moves: it must be the same chain."""
    for start in some_starts(problem, rng):
        assert is_plain_step(problem, start, rng, inverse_temperature=inverse_temperature)


@each(TWO, WEIGHED)
@pytest.mark.parametrize("names", GROUPS[:3], ids="+".join)
def test_each_move_alone_is_the_plain_one(problem, names, rng, monkeypatch):
    """With all moves together a rare one could be wrong unnoticed; nor may the test pass always."""
    chosen = {name: (name in names) / len(names) for name in MOVES}
    monkeypatch.setattr(tree_posterior, "MOVE_WEIGHTS", chosen)
    starts = some_starts(problem, rng)
    assert all(is_plain_step(problem, start, rng, names, 0.4) for start in starts)
    right, wrong = (step_matrix(problem, names, 0.4, broken) for broken in (False, True))
    start = int(np.abs(wrong - right).sum(axis=1).argmax())
    assert not is_plain_step(problem, start, rng, names, 0.4, broken=True)


def visits(problem: TreeProblem, seed, n_draws=N_DRAWS, **settings) -> list[int]:
    """Return the indices of the trees drawn, as good as independent."""
    thin = independent_steps(step_matrix(problem, MOVES), problem.probabilities())
    run = samplers.metropolis(
        problem.posterior(Remembered),
        n_steps=thin * (n_draws + 20),
        warmup=20 / (n_draws + 20),
        n_draws=n_draws,
        n_chains=4,
        seed=seed,
        **settings,
    )
    index = {state: i for i, state in enumerate(problem.trees)}
    return [index[state] for chain in run.draws for state in chain]


@each(TWO, THREE_CLASSES, WEIGHED)
def test_chains_visit_trees_as_often_as_they_are_probable(problem, rng):
    """The probability that a feature is worth its cost is read off these visits."""
    drawn = visits(problem, rng)
    assert fits(drawn, problem.probabilities())
    assert not fits(drawn, problem.probabilities(concentration=0.2))


@each(GROUPED)
def test_costs_decide_how_often_trees_are_visited(problem, rng):
    """Were a group paid for twice, or never, the visits would tell."""
    drawn = visits(problem, rng, 80)
    assert fits(drawn, problem.probabilities())
    assert not fits(drawn, problem.probabilities(groups=()))


@each(*PROBLEMS)
def test_annealing_finds_the_most_probable_tree(problem, rng):
    """On problems this small the best of all trees is known."""
    run = samplers.anneal(problem.posterior(Remembered), n_steps=4000, n_chains=2, seed=rng)
    assert run.best_log_density == pytest.approx(problem.log_densities().max(), abs=1e-9)
