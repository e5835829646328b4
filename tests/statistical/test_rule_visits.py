"""Long runs visit every rule list as often as it is probable; without data, as the prior has it."""

from functools import cache

import numpy as np
import pytest

import samplers
from tests import rules_reference as reference
from tests.methods.rules.problems import (
    BINS,
    FRACTIONAL,
    GAPS,
    PAIR,
    PARAMETERS,
    PROBLEMS,
    SUPPORTED,
    Problem,
    each,
    slowly,
    step_matrix,
    unseen,
)
from tests.methods.rules.slow_moves import moves
from tests.statistical.chi_square import fits, independent_steps

N_DRAWS = 600  # per chain, of four chains


@cache
def thinning(problem):
    matrix = step_matrix(problem, tuple(problem.posterior().move_weights()))
    return independent_steps(matrix, problem.probabilities())


def visits(problem, seed, engine=samplers.metropolis, n_draws=N_DRAWS, n_chains=4, **settings):
    """Return the indices of the lists drawn, as good as independent."""
    thin = thinning(problem)
    run = engine(
        problem.posterior(),
        n_steps=thin * (n_draws + 20),
        warmup=20 / (n_draws + 20),
        n_draws=n_draws,
        n_chains=n_chains,
        seed=seed,
        **settings,
    )
    index = {state: i for i, state in enumerate(problem.lists)}
    return [index[state] for chain in run.draws for state in chain]


def wrong(problem):
    """Return the probabilities of a model that expects half as many rules again."""
    return problem.probabilities(expected_rules=1.5 * PARAMETERS["expected_rules"])


@slowly(*PROBLEMS, quick=(PAIR, BINS, FRACTIONAL, SUPPORTED))
def test_chains_visit_lists_as_often_as_they_are_probable(problem, rng):
    """The posterior of the number of rules and of the columns used is read off these visits."""
    drawn = visits(problem, rng)
    assert fits(drawn, problem.probabilities())
    assert not fits(drawn, wrong(problem))


@each(PAIR, SUPPORTED)
def test_the_cold_replica_visits_lists_as_often_as_they_are_probable(problem, rng):
    """Replica exchange must not let the hot chains' lists into the draws."""
    drawn = visits(problem, rng, samplers.tempering, n_temperatures=3)
    exact = problem.probabilities()
    assert fits(drawn, exact)
    hot = exact**0.5
    assert not fits(drawn, hot / hot.sum())


@each(BINS, SUPPORTED)
def test_the_generic_engine_visits_them_as_often(problem, rng):
    """Given the moves, an engine uses these and not the compiled sweep."""
    drawn = visits(problem, rng, n_draws=60, n_chains=2, moves=moves(problem.posterior()))
    assert fits(drawn, problem.probabilities())


@each(*map(unseen, (PAIR, BINS, SUPPORTED)))
def test_without_data_the_chain_returns_the_prior(problem, rng):
    """What is claimed to be learned from data must not come from the chain itself."""
    posterior = problem.posterior()
    prior = np.exp([posterior.log_prior(state) for state in problem.lists])
    np.testing.assert_allclose(prior / prior.sum(), problem.probabilities(), atol=1e-9)
    drawn = visits(problem, rng)
    assert fits(drawn, prior / prior.sum())
    assert not fits(drawn, wrong(problem))


PRIOR = Problem(
    "prior", ("nominal", "ordinal", "nominal"), (2, 3, 2), 3, n_classes=2, n_rows=60, faint=True
)


@cache
def prior_draws(expected_rules):
    """Return lists of more candidates than could be listed, drawn without data."""
    posterior = PRIOR.posterior(expected_rules=expected_rules)
    run = samplers.metropolis(posterior, n_steps=1_200_000, n_draws=3000, n_chains=1, seed=8)
    return [state.rules for state in run.draws[0]]


def candidate_sizes():
    return [len(one) for one in PRIOR.record["candidates"]]


def length_probabilities(expected_rules):
    longest = min(len(candidate_sizes()), reference.MAX_RULES)
    lengths = range(longest + 1)
    return np.exp([reference.log_poisson(m, expected_rules, lengths) for m in lengths])


def rule_probabilities(sizes, taken, expected_size):
    """Return the probability of each candidate to be next after those taken."""
    left = [size for i, size in enumerate(sizes) if i not in taken]
    chances = np.zeros(len(sizes))
    for i, size in enumerate(sizes):
        if i not in taken:
            log_size = reference.log_poisson(size, expected_size, sorted(set(left)))
            chances[i] = np.exp(log_size) / left.count(size)
    return chances


def test_lengths_without_data_are_those_of_the_prior():
    """A Poisson, whatever the number of candidates and their sizes."""
    lengths = [len(rules) for rules in prior_draws(3.0)]
    assert fits(lengths, length_probabilities(3.0))
    assert not fits(lengths, length_probabilities(3.5))


def test_rules_without_data_are_those_of_the_prior():
    """First and second rules, each by the size first and then alike."""
    sizes = candidate_sizes()
    assert len(set(sizes)) == 3
    first = rule_probabilities(sizes, (), PARAMETERS["expected_size"])
    second = sum(
        chance * rule_probabilities(sizes, (one,), PARAMETERS["expected_size"])
        for one, chance in enumerate(first)
    )
    drawn = prior_draws(3.0)
    assert fits([rules[0] for rules in drawn if rules], first)
    assert fits([rules[1] for rules in drawn if len(rules) > 1], second)
    other = rule_probabilities(sizes, (), 1.5 * PARAMETERS["expected_size"])
    assert not fits([rules[0] for rules in drawn if rules], other)


@slowly(*PROBLEMS)
def test_annealing_finds_the_most_probable_list(problem, rng):
    """The most probable list found should be the most probable list, where it can be checked."""
    exact = problem.log_densities()
    run = samplers.anneal(problem.posterior(), n_steps=5000, n_chains=2, seed=rng)
    assert run.best_log_density == pytest.approx(exact.max(), abs=1e-9)
    best = exact[problem.lists.index(run.best_state)]
    assert best == pytest.approx(exact.max(), abs=1e-9)


def test_annealing_is_needed():
    """Random starts are not the best list, which has rules: the test above can fail."""
    for problem in (SUPPORTED, GAPS):
        posterior = problem.posterior()
        starts = [posterior.initial_state(np.random.default_rng(seed)) for seed in range(2)]
        best = problem.log_densities().max()
        assert max(posterior.log_density(state) for state in starts) < best - 0.1


@pytest.mark.slow
def test_lengths_of_longer_label_lists(rng):
    """Six candidates, 1,957 lists: too many to test each, but not lengths and first rules."""
    problem = Problem(
        "six", ("nominal",) * 3, (2, 2, 2), 1, n_classes=2, n_rows=30, min_support=0.2
    )
    assert len(problem.lists) == 1957
    run = samplers.metropolis(
        problem.posterior(), n_steps=4_000_000, n_draws=2000, n_chains=2, seed=rng
    )
    drawn = [state for chain in run.draws for state in chain]
    exact = problem.probabilities()
    lengths = np.bincount([state.n_rules for state in problem.lists], exact)
    assert fits([state.n_rules for state in drawn], lengths)
    assert not fits([state.n_rules for state in drawn], np.roll(lengths, 1))
    first = np.bincount([first_rule(state) for state in problem.lists], exact)
    assert fits([first_rule(state) for state in drawn], first)


def first_rule(state):
    """Return 0 for no rule, otherwise one more than its candidate."""
    return state.rules[0] + 1 if state.rules else 0
