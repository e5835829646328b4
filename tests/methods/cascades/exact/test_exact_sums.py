"""Evidence, most probable trees and inclusion probabilities: against a list of all trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import ParameterError
from bayescascade.methods.cascades.exact import solve
from tests.methods.cascades.exact.brute_force import (
    LEVELS,
    brute_force,
    cases,
)
from tests.methods.cascades.problems import (
    BINARY,
    BRANCH,
    INCLUSION,
    INDEPENDENT,
    LEAF,
    MULTIWAY,
    TERNARY,
    TERNARY_THREE_WAY,
)

CLOSE = {"rtol": 0.0, "atol": 1e-9}


@cases()
def test_sums_and_maximum_are_those_of_all_trees(problem, model):
    """A wrong evidence would choose the wrong hyperparameters, silently."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    assert_allclose(exact.log_normalizer, everything.log_normalizer, **CLOSE)
    evidence = everything.log_normalizer - everything.log_prior_normalizer
    assert_allclose(exact.log_evidence, evidence, **CLOSE)
    assert_allclose(exact.log_density, everything.log_densities.max(), **CLOSE)
    assert_allclose(exact.posterior.log_density(exact.tree), exact.log_density, **CLOSE)
    assert exact.is_complete


@pytest.mark.slow
@cases((TERNARY, LEAF), (TERNARY_THREE_WAY, BRANCH))
def test_larger_columns_are_summed_too(problem, model):
    """Three-way splits of several columns take sums that binary ones never need."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    assert_allclose(exact.log_normalizer, everything.log_normalizer, **CLOSE)
    assert_allclose(exact.log_density, everything.log_densities.max(), **CLOSE)


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
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    names, found = exact.posterior.schema.names, exact.split_probabilities
    for j, name in enumerate(names):
        first = np.array([tree.feature[0] == j for tree in everything.trees])
        used = np.array([j in tree.features_used for tree in everything.trees])
        assert_allclose(found.first[name], everything.probabilities[first].sum(), **CLOSE)
        assert_allclose(found.used[name], everything.probabilities[used].sum(), **CLOSE)
    leaf = np.array([tree.n_leaves == 1 for tree in everything.trees])
    assert_allclose(found.none, everything.probabilities[leaf].sum(), **CLOSE)


@pytest.mark.parametrize("model", [BRANCH, INCLUSION], ids=lambda m: m.name)
def test_leaf_counts_of_the_branch_model_are_refused(model):
    """They are not kept; a made-up answer would be worse."""
    exact = solve(model.on(BINARY))
    assert exact.max_leaves is None
    with pytest.raises(ParameterError, match="got a branch model"):
        _ = exact.leaf_count_probabilities
