"""Long runs visit every tree as often as it is probable; without data, as the prior has it."""

from dataclasses import replace

import numpy as np
import pytest

import samplers
from bayescascade.methods.cascades.posterior import LeafPosterior
from tests import reference
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    FRACTIONAL,
    LEAF,
    LEVELS,
    MODELS,
    MULTIWAY,
    UNEVEN_LEVELS,
    WITH_OPTIONS,
    Model,
    Problem,
    each,
    listed_moves,
    pairs,
    slowly,
    step_matrix,
    weights_of,
)
from tests.statistical.chi_square import fits, independent_steps

N_DRAWS = 600  # per chain, of four chains

IRREDUCIBLE = [("grow", "prune"), ("grow", "prune", "change"), ("grow", "prune", "swap")]

UNSEEN = tuple(
    replace(p, name=p.name + "-unseen", n_rows=0) for p in (BINARY, MULTIWAY, BINS, UNEVEN_LEVELS)
)
BY_SUBSETS, BY_LEVELS = UNSEEN[:3], UNSEEN[3:]


def probabilities_of(problem, model):
    log_densities = model.reference(problem)
    return np.exp(log_densities - np.logaddexp.reduce(log_densities))


def visits(problem, model, seed, engine=samplers.metropolis, names=None, **settings):
    """Return the indices of the trees drawn, as good as independent."""
    posterior = model.on(problem)
    if names is not None:
        posterior = model.on(problem, move_weights=weights_of(posterior, names))
    matrix = step_matrix(problem, model, tuple(posterior.move_weights()))
    thin = independent_steps(matrix, probabilities_of(problem, model))
    run = engine(
        posterior,
        n_steps=thin * (N_DRAWS + 20),
        warmup=20 / (N_DRAWS + 20),
        n_draws=N_DRAWS,
        n_chains=4,
        seed=seed,
        **settings,
    )
    index = {tree: i for i, tree in enumerate(problem.trees)}
    return [index[tree] for chain in run.draws for tree in chain]


def wrong(problem, model):
    """Return the probabilities of a model whose first parameter is half as large again."""
    name, first = next(iter(model.parameters.items()))
    values = model.reference(problem, **{name: 1.5 * first})
    return np.exp(values - np.logaddexp.reduce(values))


@slowly(BINARY, MULTIWAY, BINS, FRACTIONAL, model=BRANCH)
def test_plain_chains_visit_trees_as_often_as_they_are_probable(problem, model, rng):
    """The posterior of the leaf count and of the columns used is read off these visits."""
    drawn = visits(problem, model, rng)
    assert fits(drawn, probabilities_of(problem, model))
    assert not fits(drawn, wrong(problem, model))


@pairs(*WITH_OPTIONS)
def test_chains_with_options_visit_trees_as_often_as_they_are_probable(problem, model, rng):
    """The same where splits are others, leaves are not uniform, or large trees have no density."""
    drawn = visits(problem, model, rng)
    assert fits(drawn, probabilities_of(problem, model))
    assert not fits(drawn, wrong(problem, model))


@each(MULTIWAY, models=[LEAF, BRANCH])
def test_the_cold_replica_visits_trees_as_often_as_they_are_probable(problem, model, rng):
    """Replica exchange must not let the hot chains' trees into the draws."""
    drawn = visits(problem, model, rng, samplers.tempering, n_temperatures=3)
    exact = probabilities_of(problem, model)
    assert fits(drawn, exact)
    hot = exact**0.5
    assert not fits(drawn, hot / hot.sum())


@slowly(MULTIWAY, model=LEAF)
@pytest.mark.parametrize("names", IRREDUCIBLE, ids="+".join)
def test_some_moves_alone_suffice(problem, model, names, rng):
    """Each choice of moves that reaches everything has the same stationary distribution."""
    drawn = visits(problem, model, rng, names=names)
    assert fits(drawn, probabilities_of(problem, model))
    assert not fits(drawn, wrong(problem, model))


def assert_prior(problem, model, rng):
    """Check that without data the chain visits trees as the prior weighs them."""
    prior = probabilities_of(problem, model)
    posterior = model.on(problem)
    log_priors = np.array([posterior.log_prior(tree) for tree in problem.trees])
    np.testing.assert_allclose(np.exp(log_priors) / np.exp(log_priors).sum(), prior, atol=1e-12)
    drawn = visits(problem, model, rng)
    assert fits(drawn, prior)
    assert not fits(drawn, wrong(problem, model))


@slowly(*BY_SUBSETS, model=BRANCH)
def test_without_data_the_chain_returns_the_prior(problem, model, rng):
    """What is claimed to be learned from data must not come from the chain itself."""
    assert_prior(problem, model, rng)


@each(*BY_LEVELS, models=[LEAF])
def test_without_data_the_chain_of_levels_returns_the_prior(problem, model, rng):
    """The same where every level goes its own way; other models leave nearly all to one leaf."""
    assert_prior(problem, model, rng)


@each(MULTIWAY, BINS, models=[BRANCH])
def test_the_generic_engine_visits_them_as_often(problem, model, rng):
    """Given the moves, an engine uses these and not the compiled sweep."""
    posterior = model.on(problem)
    moves = listed_moves(posterior)
    matrix = step_matrix(problem, model, tuple(moves))
    thin = independent_steps(matrix, probabilities_of(problem, model))
    n_draws = 100
    run = samplers.metropolis(
        posterior, moves=moves, n_steps=thin * (n_draws + 5), warmup=5 / (n_draws + 5),
        n_draws=n_draws, n_chains=2, seed=rng,
    )  # fmt: skip
    index = {tree: i for i, tree in enumerate(problem.trees)}
    assert fits(
        [index[tree] for chain in run.draws for tree in chain], probabilities_of(problem, model)
    )


@pairs(*((p, m) for p in (BINARY, MULTIWAY, BINS, FRACTIONAL) for m in MODELS), *WITH_OPTIONS)
def test_annealing_finds_the_most_probable_tree(problem, model, rng):
    """The most probable tree found should be the most probable tree, where it can be checked."""
    exact = model.reference(problem)
    run = samplers.anneal(model.on(problem), n_steps=5000, n_chains=2, seed=rng)
    assert run.best_log_density == pytest.approx(exact.max(), abs=1e-9)
    best = exact[problem.trees.index(run.best_state)]
    assert best == pytest.approx(exact.max(), abs=1e-9)


def test_annealing_is_needed():
    """A chain that only draws random starts does not find it: the test above can fail."""
    posterior = LEAF.on(BINARY)
    exact = LEAF.reference(BINARY).max()
    starts = [posterior.initial_state(np.random.default_rng(seed)) for seed in range(2)]
    assert max(posterior.log_density(tree) for tree in starts) < exact - 0.1


def test_starts_differ():
    """R-hat compares chains from different places; equal starts would flatter it."""
    posterior = LeafPosterior(MULTIWAY.table)
    rng = np.random.default_rng(0)
    starts = [posterior.initial_state(rng) for _ in range(40)]
    assert len(set(starts)) > 10
    assert {tree.n_leaves for tree in starts} >= {1, 2, 3, 4}
    assert all(tree.n_leaves <= 8 for tree in starts)
    for tree in starts:
        assert not list(tree.problems(posterior.is_nominal, MULTIWAY.n_levels))


def test_starts_are_possible():
    """A chain that starts where there is no density has nothing to compare its proposals with."""
    bounded = LeafPosterior(MULTIWAY.table, max_leaves=3)
    levels = LeafPosterior(LEVELS.table, partitions="levels", max_leaves=2)
    rng = np.random.default_rng(0)
    starts = [bounded.initial_state(rng) for _ in range(40)]
    assert {tree.n_leaves for tree in starts} == {1, 2, 3}
    starts = [levels.initial_state(rng) for _ in range(40)]
    assert {tree.n_leaves for tree in starts} == {1, 2}
    assert all(set(tree.features_used) <= {1, 2} for tree in starts)  # the first has three levels


@pytest.mark.slow
@pytest.mark.parametrize("model", [LEAF, BRANCH], ids=["leaf", "branch"])
def test_leaf_counts_of_two_ternary_columns(model: Model, rng):
    """The space of the thesis's size of example: too many trees to test each, but not sizes."""
    problem = Problem("ternary", (3, 3), (True, True), 3)
    exact = np.zeros(10)
    sizes = [len(reference.leaves_of(tree, problem.n_levels)) for tree in problem.nested]
    np.add.at(exact, sizes, probabilities_of(problem, model))
    run = samplers.metropolis(
        model.on(problem), n_steps=8_000_000, n_draws=2000, n_chains=2, seed=rng
    )
    drawn = [tree.n_leaves for chain in run.draws for tree in chain]
    assert fits(drawn, exact)
    assert not fits(drawn, np.roll(exact, 1))
