"""Evidence, best trees, inclusion probabilities and draws: against a list of all trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import ParameterError
from bayescascade.methods.cascades.exact import solve
from tests.methods.cascades.exact.brute_force import (
    CASES,
    LEVELS,
    assert_splits_are_those_of_all_trees,
    brute_force,
    cases,
    drawn_indices,
)
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
    TERNARY,
    TERNARY_THREE_WAY,
)
from tests.statistical.chi_square import fits

CLOSE = {"rtol": 0.0, "atol": 1e-9}


@cases(*CASES, slow=[(TERNARY, LEAF), (TERNARY_THREE_WAY, BRANCH)])
def test_sums_and_maximum_are_those_of_all_trees(problem, model):
    """A wrong evidence would choose the wrong hyperparameters, silently."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    assert_allclose(exact.log_normalizer, everything.log_normalizer, **CLOSE)
    evidence = everything.log_normalizer - everything.log_prior_normalizer
    assert_allclose(exact.log_evidence, evidence, **CLOSE)
    assert_allclose(exact.log_density, everything.log_densities.max(), **CLOSE)
    assert_allclose(exact.posterior.log_density(exact.tree), exact.log_density, **CLOSE)
    assert exact.is_complete


@pytest.mark.parametrize("model", [LEAF, INDEPENDENT], ids=lambda m: m.name)
@pytest.mark.parametrize("problem", [BINARY, LEVELS, MULTIWAY], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "max_leaves", [1, 3, 4, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 5))]
)
def test_few_leaves_need_few_boxes(problem, model, max_leaves):
    """Boxes that no tree of so few leaves can reach are left out: they must not be missed."""
    everything = brute_force(problem, model, max_leaves)
    exact = solve(model.on(problem), max_leaves=max_leaves)
    assert_allclose(exact.log_normalizer, everything.log_normalizer, **CLOSE)
    assert_allclose(exact.log_density, everything.log_densities.max(), **CLOSE)
    assert not exact.is_complete
    leaves = np.array([tree.n_leaves for tree in everything.trees])
    counted = np.bincount(leaves, everything.probabilities, max_leaves + 1)[1:]
    assert_allclose(exact.leaf_count_probabilities, counted, **CLOSE)
    whole = solve(model.on(problem))
    assert whole.cost.n_boxes >= exact.cost.n_boxes


@cases()
def test_split_probabilities_are_those_of_all_trees(problem, model):
    """What a column is good for must not be told from a wrong count of trees."""
    exact = solve(model.on(problem))
    assert_splits_are_those_of_all_trees(exact, brute_force(problem, model))


@pytest.mark.parametrize("model", [BRANCH, INCLUSION], ids=lambda m: m.name)
def test_leaf_counts_of_the_branch_model_are_refused(model):
    """They are not kept; a made-up answer would be worse."""
    exact = solve(model.on(BINARY))
    assert exact.max_leaves is None
    with pytest.raises(ParameterError, match="got a branch model"):
        _ = exact.leaf_count_probabilities


DRAWN = (
    (BINARY, LEAF), (MULTIWAY, BRANCH), (MULTIWAY, INCLUSION), (BINS, INDEPENDENT),
    (FRACTIONAL, LEAF), (LEVELS, LEAF), (LEVELS, INCLUSION), (LEVELS, INDEPENDENT_BRANCH),
    (MULTIWAY, GENERATIVE), (ORDINAL, GENERATIVE_UNIFORM), (LEVELS, GENERATIVE_BRANCH),
)  # fmt: skip


@cases(*DRAWN, slow=[(TERNARY_THREE_WAY, BRANCH)])
def test_draws_have_the_posterior_probabilities(problem, model, rng):
    """Draws stand for the posterior in everything that is computed from them."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    drawn = drawn_indices(exact, everything, rng)
    assert fits(drawn, everything.probabilities)


@cases(*DRAWN[:4])
def test_draws_from_broken_values_are_found_out(problem, model, rng):
    """The broken twin: every fifth value is twice what it should be."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    exact._sums.values.mantissa[::5] *= 2
    assert not fits(drawn_indices(exact, everything, rng), everything.probabilities)
