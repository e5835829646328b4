"""Evidence, best trees, inclusion probabilities and draws: against a list of all trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import ParameterError
from bayescascade.methods.density.trees.exact import solve
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.exact import brute_force as listed
from tests.methods.density.trees.exact.brute_force import CASES, LEVELS, cases
from tests.statistical.chi_square import fits

CLOSE = {"rtol": 0.0, "atol": 1e-9}


@cases(*CASES, slow=[(tiny.TERNARY, tiny.LEAF), (tiny.TERNARY_THREE_WAY, tiny.BRANCH)])
def test_sums_maximum_and_splits_are_those_of_all_trees(problem, model):
    """A wrong evidence would choose the wrong hyperparameters, silently."""
    everything, exact = listed.brute_force(problem, model), solve(model.on(problem))
    assert_allclose(exact.log_normalizer, everything.log_normalizer, **CLOSE)
    evidence = everything.log_normalizer - everything.log_prior_normalizer
    assert_allclose(exact.log_evidence, evidence, **CLOSE)
    assert_allclose(exact.log_density, everything.log_densities.max(), **CLOSE)
    assert_allclose(exact.posterior.log_density(exact.tree), exact.log_density, **CLOSE)
    listed.assert_splits_are_those_of_all_trees(exact, everything)
    assert exact.is_complete


@pytest.mark.parametrize("model", [tiny.LEAF, tiny.INDEPENDENT], ids=lambda m: m.name)
@pytest.mark.parametrize("problem", [tiny.BINARY, LEVELS, tiny.MULTIWAY], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "max_leaves", [1, 3, 4, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 5))]
)
def test_few_leaves_need_few_boxes(problem, model, max_leaves):
    """Boxes that no tree of so few leaves can reach are left out: they must not be missed."""
    everything = listed.brute_force(problem, model, max_leaves)
    exact = solve(model.on(problem), max_leaves=max_leaves)
    assert_allclose(exact.log_normalizer, everything.log_normalizer, **CLOSE)
    assert_allclose(exact.log_density, everything.log_densities.max(), **CLOSE)
    assert not exact.is_complete
    leaves = np.array([tree.n_leaves for tree in everything.trees])
    counted = np.bincount(leaves, everything.probabilities, max_leaves + 1)[1:]
    assert_allclose(exact.leaf_count_probabilities, counted, **CLOSE)
    whole = solve(model.on(problem))
    assert whole.cost.n_boxes >= exact.cost.n_boxes


@pytest.mark.parametrize("model", [tiny.BRANCH, tiny.INCLUSION], ids=lambda m: m.name)
def test_leaf_counts_of_the_branch_model_are_refused(model):
    """They are not kept; a made-up answer would be worse."""
    exact = solve(model.on(tiny.BINARY))
    assert exact.max_leaves is None
    with pytest.raises(ParameterError, match="got a branch model"):
        _ = exact.leaf_count_probabilities


DRAWN = (
    (tiny.BINARY, tiny.LEAF), (tiny.MULTIWAY, tiny.BRANCH), (tiny.MULTIWAY, tiny.INCLUSION),
    (tiny.BINS, tiny.INDEPENDENT), (tiny.FRACTIONAL, tiny.LEAF), (LEVELS, tiny.LEAF),
    (LEVELS, tiny.INCLUSION), (LEVELS, tiny.INDEPENDENT_BRANCH), (tiny.MULTIWAY, tiny.GENERATIVE),
    (tiny.ORDINAL, tiny.GENERATIVE_UNIFORM), (LEVELS, tiny.GENERATIVE_BRANCH),
)  # fmt: skip


@cases(*DRAWN, slow=[(tiny.TERNARY_THREE_WAY, tiny.BRANCH)])
def test_draws_have_the_posterior_probabilities(problem, model, rng):
    """They stand for the posterior; of the broken twin every fifth value is twice what it is."""
    everything, exact = listed.brute_force(problem, model), solve(model.on(problem))
    assert fits(listed.drawn_indices(exact, everything, rng), everything.probabilities)
    if (problem, model) in DRAWN[:4]:
        exact._sums.values.mantissa[::5] *= 2
        assert not fits(listed.drawn_indices(exact, everything, rng), everything.probabilities)
