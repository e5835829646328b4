"""Independent draws from the exact posterior."""

import pytest

from bayescascade.methods.cascades.exact import solve
from tests.methods.cascades.exact.brute_force import LEVELS, brute_force, cases
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    FRACTIONAL,
    GENERATIVE,
    GENERATIVE_BRANCH,
    GENERATIVE_UNIFORM,
    INCLUSION,
    INDEPENDENT,
    INDEPENDENT_BRANCH,
    LEAF,
    MULTIWAY,
    ORDINAL,
    TERNARY_THREE_WAY,
)
from tests.statistical.chi_square import fits

N_DRAWS = 4_000
DRAWN = (
    (BINARY, LEAF), (MULTIWAY, BRANCH), (MULTIWAY, INCLUSION), (BINS, INDEPENDENT),
    (FRACTIONAL, LEAF), (LEVELS, LEAF), (LEVELS, INCLUSION), (LEVELS, INDEPENDENT_BRANCH),
    (MULTIWAY, GENERATIVE), (ORDINAL, GENERATIVE_UNIFORM), (LEVELS, GENERATIVE_BRANCH),
)  # fmt: skip


def drawn_indices(exact, everything, rng):
    index = {tree: i for i, tree in enumerate(everything.trees)}
    return [index[tree] for tree in exact.sample(N_DRAWS, rng)]


@cases(*DRAWN)
def test_draws_have_the_posterior_probabilities(problem, model, rng):
    """Draws stand for the posterior in everything that is computed from them."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    drawn = drawn_indices(exact, everything, rng)
    assert fits(drawn, everything.probabilities)


@pytest.mark.slow
@cases((TERNARY_THREE_WAY, BRANCH))
def test_draws_of_three_way_splits_have_them_too(problem, model, rng):
    """Which of a split's blocks go together is drawn, too."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    assert fits(drawn_indices(exact, everything, rng), everything.probabilities)


@cases(*DRAWN[:4])
def test_draws_from_broken_values_are_found_out(problem, model, rng):
    """The broken twin: every fifth value is twice what it should be."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    exact._sums.values.mantissa[::5] *= 2
    assert not fits(drawn_indices(exact, everything, rng), everything.probabilities)
