"""One compiled step is distributed as one step of the plain moves, state by state."""

from functools import cache

import numpy as np
import pytest

import samplers
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    FRACTIONAL,
    INCLUSION,
    LEAF,
    LEVELS,
    MIXED_WAYS,
    MULTIWAY,
    ORDINAL,
    TERNARY_THREE_WAY,
    WITH_OPTIONS,
    each,
    groups,
    listed_moves,
    pairs,
    slowly,
    weights_of,
)
from tests.statistical.chi_square import fits
from tests.statistical.proposals import one_step, without_hastings

N_DRAWS = 1500


@cache
def plain_step(posterior, tree, names, inverse_temperature, broken=False):
    """Return the states that one plain step leads to, and their exact probabilities."""
    moves = listed_moves(posterior)
    moves = {name: moves[name] for name in names}
    if broken:
        moves = without_hastings(moves)
    weights = weights_of(posterior, names)
    return one_step(moves, weights, posterior.log_density, tree, inverse_temperature)


def compiled_steps(posterior, tree, rng, inverse_temperature, n):
    for _ in range(n):
        yield posterior.advance(rng, tree, 1, inverse_temperature)[0]


def is_plain_step(posterior, tree, rng, inverse_temperature=1.0, broken=False, n=N_DRAWS):
    """Whether compiled steps from a tree pass for plain ones."""
    names = tuple(posterior.move_weights())
    states, probabilities = plain_step(posterior, tree, names, inverse_temperature, broken)
    index = {state: i for i, state in enumerate(states)}
    drawn = compiled_steps(posterior, tree, rng, inverse_temperature, n)
    try:
        return fits([index[state] for state in drawn], probabilities)
    except KeyError:  # it went where no plain step leads
        return False


def some_trees(problem, rng):
    """Return a small tree, a middling one, and the largest."""
    by_size = sorted(problem.trees, key=lambda tree: tree.n_leaves)
    third = len(by_size) // 3
    chosen = [by_size[0], by_size[int(rng.integers(1, third))], by_size[-1]]
    return [*chosen, by_size[int(rng.integers(third, len(by_size)))]]


def possible_trees(problem, model, rng):
    """Return some trees, of those that have a density."""
    possible = [t for t in problem.trees if model.on(problem).log_prior(t) > -np.inf]
    return [possible[int(i)] for i in rng.choice(len(possible), size=4, replace=False)]


@slowly(BINARY, MULTIWAY, BINS, FRACTIONAL, ORDINAL, MIXED_WAYS, TERNARY_THREE_WAY, model=BRANCH)
def test_compiled_steps_are_the_plain_ones(problem, model, rng):
    """The compiled sweep is a second program for the moves: it must be the same chain."""
    posterior = model.on(problem)
    for tree in some_trees(problem, rng):
        assert is_plain_step(posterior, tree, rng), tree


@pairs(*WITH_OPTIONS, (LEVELS, LEAF), (LEVELS, INCLUSION))
def test_compiled_steps_are_the_plain_ones_with_options(problem, model, rng):
    """The same where splits are others, leaves are not uniform, or large trees have no density."""
    posterior = model.on(problem)
    for tree in possible_trees(problem, model, rng):
        assert is_plain_step(posterior, tree, rng), tree


@each(MULTIWAY, models=[LEAF, INCLUSION])
def test_each_move_alone_is_the_plain_one(problem, model, rng):
    """With all moves together a rare one could be wrong unnoticed."""
    for names in groups(model.on(problem)):
        weights = weights_of(model.on(problem), names)
        posterior = model.on(problem, move_weights=weights)
        for tree in some_trees(problem, rng)[1:]:
            assert is_plain_step(posterior, tree, rng), names


@each(MULTIWAY, models=[LEAF, BRANCH])
@pytest.mark.parametrize("inverse_temperature", [0.0, 0.3, 3.0])
def test_compiled_steps_know_the_temperature(problem, model, inverse_temperature, rng):
    """Annealing would otherwise cool something else."""
    posterior = model.on(problem)
    for tree in some_trees(problem, rng):
        assert is_plain_step(posterior, tree, rng, inverse_temperature)


@each(MULTIWAY, models=[LEAF, BRANCH])
def test_steps_without_hastings_term_are_told_apart(problem, model, rng):
    """The tests above must be able to fail."""
    posterior = model.on(problem)
    verdicts = [is_plain_step(posterior, t, rng, broken=True) for t in some_trees(problem, rng)]
    assert not all(verdicts)
    best = problem.trees[int(np.argmax(model.reference(problem)))]
    states, probabilities = plain_step(posterior, best, tuple(posterior.move_weights()), 0.3)
    index = {state: i for i, state in enumerate(states)}
    drawn = [index[state] for state in compiled_steps(posterior, best, rng, 2.0, N_DRAWS)]
    assert not fits(drawn, probabilities)


@each(MULTIWAY, BINS, models=[LEAF, BRANCH])
def test_compiled_and_plain_blocks_agree_on_acceptance(problem, model, rng):
    """Acceptance is reported per move, whichever engine ran."""
    posterior = model.on(problem)
    tree = problem.trees[int(np.argmax(model.reference(problem)))]
    _, counts = posterior.advance(rng, tree, 20_000, 1.0)
    chain = samplers.init(tree, posterior)
    accepted = dict.fromkeys(posterior.move_weights(), 0)
    tried = dict.fromkeys(posterior.move_weights(), 0)
    moves, weights = listed_moves(posterior), posterior.move_weights()
    names = list(moves)
    chances = np.array([weights[name] for name in names])
    for name in rng.choice(names, size=1500, p=chances / chances.sum()):
        chain, info = samplers.step(rng, chain, posterior, moves[name])
        tried[name] += 1
        accepted[name] += info.accepted
    assert list(counts.proposed) == names
    for name in names:
        fast = counts.accepted[name] / counts.proposed[name]
        # successive steps are correlated: 5 standard errors of a tenth of the steps
        error = np.sqrt(0.25 * (10 / tried[name] + 10 / counts.proposed[name]))
        assert abs(fast - accepted[name] / tried[name]) < 5 * error
        expected = 20_000 * weights[name] / chances.sum()
        assert abs(counts.proposed[name] - expected) < 5 * np.sqrt(expected)
