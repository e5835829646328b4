"""Long runs of every family visit what is probable, and annealing finds the best."""

from dataclasses import replace

import numpy as np
import pytest

import samplers
from tests import rules_reference
from tests.methods.density.trees import problems as cascades
from tests.methods.density.trees.problems import INCLUSION, LEAF
from tests.methods.lists import problems as rules
from tests.statistical import tiny_spaces as tiny
from tests.statistical.chi_square import fits
from tests.statistical.spaces import Space, each, lists, trees

N_DRAWS = 500  # per chain, of four chains


def visits(space: Space, rng, engine=samplers.metropolis, **settings):
    """Return the indices of the states drawn, as good as independent."""
    run = engine(
        space.posterior(),
        n_steps=space.thinning * (N_DRAWS + 20),
        warmup=20 / (N_DRAWS + 20),
        n_draws=N_DRAWS,
        n_chains=4,
        seed=rng,
        **settings,
    )
    return [space.index[state] for chain in run.draws for state in chain]


@each(tiny.BINARY, tiny.MULTIWAY, tiny.BINS, tiny.FRACTIONAL, *tiny.OPTIONS, tiny.PAIR,
      tiny.LIST_BINS, tiny.LIST_FRACTIONS, tiny.SUPPORTED, tiny.TWO, tiny.GROUPED,
      tiny.THREE_BUDGETED, tiny.WEIGHED, *tiny.CUTS, *tiny.BOUGHT, quick=tiny.CORE)  # fmt: skip
def test_chains_visit_states_as_often_as_they_are_probable(space, rng):
    """What is said of leaf counts, of columns and their costs is read off these visits."""
    drawn = visits(space, rng)
    assert fits(drawn, space.probabilities())
    assert not fits(drawn, space.probabilities(**space.wrong))


@pytest.mark.slow
@each(tiny.MULTIWAY, tiny.BY_BRANCHES, tiny.PAIR, tiny.SUPPORTED, tiny.THREE_CUTS)
def test_the_cold_replica_visits_states_as_often_as_they_are_probable(space, rng):
    """Replica exchange must not let the hot chains' states into the draws."""
    drawn = visits(space, rng, samplers.tempering, n_temperatures=3)
    assert fits(drawn, space.probabilities())
    assert not fits(drawn, space.probabilities(0.5))


def unseen(problem, model):
    return trees(replace(problem, name=f"{problem.name}-unseen", n_rows=0), model)


UNSEEN = [
    unseen(cascades.MULTIWAY, LEAF), unseen(cascades.BINS, INCLUSION),
    unseen(cascades.UNEVEN_LEVELS, LEAF),
    *(lists(rules.unseen(p)) for p in (rules.PAIR, rules.BINS, rules.SUPPORTED)),
]  # fmt: skip


@each(*UNSEEN, quick=(UNSEEN[0],))
def test_without_data_the_chain_returns_the_prior(space, rng):
    """What is claimed to be learned from data must not come from the chain itself."""
    prior = np.exp([space.posterior().log_prior(state) for state in space.states])
    np.testing.assert_allclose(prior / prior.sum(), space.probabilities(), atol=1e-9)
    drawn = visits(space, rng)
    assert fits(drawn, space.probabilities())
    assert not fits(drawn, space.probabilities(**space.wrong))


def test_long_lists_without_data_are_those_of_the_prior():
    """Of more candidates than could be listed: a Poisson of rules, each by its size, then alike."""
    kinds = ("nominal", "ordinal", "nominal")
    problem = rules.Problem("prior", kinds, (2, 3, 2), 3, n_classes=2, n_rows=60, faint=True)
    sizes = [len(one) for one in problem.record["candidates"]]
    assert len(set(sizes)) == 3
    posterior, size = problem.posterior(expected_rules=3.0), rules.PARAMETERS["expected_size"]
    run = samplers.metropolis(posterior, n_steps=600_000, n_draws=2000, n_chains=1, seed=8)
    drawn = [state.rules for state in run.draws[0]]

    def lengths(expected):
        support = range(min(len(sizes), rules_reference.MAX_RULES) + 1)
        return np.exp([rules_reference.log_poisson(m, expected, support) for m in support])

    def following(taken, expected):
        left = [n for i, n in enumerate(sizes) if i != taken]
        log_sizes = {n: rules_reference.log_poisson(n, expected, sorted(set(left))) for n in left}
        return np.array([
            np.exp(log_sizes[n]) / left.count(n) if i != taken else 0.0 for i, n in enumerate(sizes)
        ])  # fmt: skip

    assert fits([len(one) for one in drawn], lengths(3.0))
    assert not fits([len(one) for one in drawn], lengths(3.5))
    first = following(None, size)
    second = sum(chance * following(i, size) for i, chance in enumerate(first))
    assert fits([one[0] for one in drawn if one], first)
    assert fits([one[1] for one in drawn if len(one) > 1], second)
    assert not fits([one[0] for one in drawn if one], following(None, 1.5 * size))


@each(*tiny.ALL, quick=tiny.CORE)
def test_annealing_finds_the_most_probable_state(space, rng):
    """It is what is printed; on problems this small the best of all states is known."""
    exact = space.log_densities()
    run = samplers.anneal(space.posterior(), n_steps=5000, n_chains=2, seed=rng)
    assert exact[space.index[run.best_state]] == pytest.approx(exact.max(), abs=1e-9)
    if space not in tiny.CUTS:
        assert run.best_log_density == pytest.approx(exact.max(), abs=1e-9)


@each(tiny.BINARY, tiny.SUPPORTED, tiny.GAPS)
def test_annealing_is_needed(space):
    """Chains that only draw random starts do not find it: the test above can fail."""
    starts = [space.posterior().initial_state(np.random.default_rng(seed)) for seed in range(2)]
    assert max(map(space.log_density, starts)) < space.log_densities().max() - 0.1
