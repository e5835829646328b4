"""Independent draws from the exact posterior."""

import numpy as np
import pytest

from bayescascade.cascades.exact import solve
from tests.cascades.exact.brute_force import LEVELS, BruteForce, cases
from tests.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    FRACTIONAL,
    INCLUSION,
    INDEPENDENT,
    INDEPENDENT_BRANCH,
    LEAF,
    MULTIWAY,
    TERNARY_THREE_WAY,
)
from tests.statistical.chi_square import fits

N_DRAWS = 4_000
DRAWN = (
    (BINARY, LEAF), (MULTIWAY, BRANCH), (MULTIWAY, INCLUSION), (BINS, INDEPENDENT),
    (FRACTIONAL, LEAF), (LEVELS, LEAF), (LEVELS, INCLUSION), (LEVELS, INDEPENDENT_BRANCH),
    (TERNARY_THREE_WAY, BRANCH),
)  # fmt: skip


def drawn_indices(exact, everything, rng):
    index = {tree: i for i, tree in enumerate(everything.trees)}
    return [index[tree] for tree in exact.sample(N_DRAWS, rng)]


@cases(*DRAWN)
def test_draws_have_the_posterior_probabilities(problem, model, rng):
    """Draws stand for the posterior in everything that is computed from them."""
    everything, exact = BruteForce(problem, model), solve(model.on(problem))
    drawn = drawn_indices(exact, everything, rng)
    assert fits(drawn, everything.probabilities)


@cases((BINARY, LEAF), (MULTIWAY, BRANCH))
def test_draws_with_a_broken_root_are_found_out(problem, model, rng):
    """The broken twin: every entry of the root, every choice at it, equally likely."""
    everything, exact = BruteForce(problem, model), solve(model.on(problem))
    uniform = np.full_like(exact._entry_probabilities, 1 / exact._entry_probabilities.size)
    exact.__dict__["_entry_probabilities"] = uniform
    options, weights = exact._walk.options(exact._sums.lattice.whole, 0)
    exact._walk._options[exact._sums.lattice.whole, 0] = options, np.zeros_like(weights)
    assert not fits(drawn_indices(exact, everything, rng), everything.probabilities)


def test_draws_are_repeatable():
    """The same seed must give the same trees, whatever was asked before."""
    one, other = solve(BRANCH.on(MULTIWAY)), solve(BRANCH.on(MULTIWAY))
    _ = other.split_probabilities
    trees = one.sample(20, np.random.default_rng(3))
    assert trees == other.sample(20, np.random.default_rng(3))


@pytest.mark.parametrize("n", [0, 1])
def test_few_draws(n, rng):
    """No draw is a list of none."""
    assert len(solve(LEAF.on(BINARY)).sample(n, rng)) == n
