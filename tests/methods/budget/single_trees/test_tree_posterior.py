"""The posterior of budgeted trees: its density, its moves, its candidates, its forests."""

import math

import numpy as np
import pandas as pd
import pytest

import samplers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.methods.budget.single_trees.posterior import BudgetTreePosterior
from bayescascade.methods.budget.single_trees.tree import BudgetTree, SplitCandidates
from tests.methods.budget.single_trees.problems import GROUPED, PROBLEMS, THREE_CLASSES, TWO, each


@each(*PROBLEMS)
def test_density_is_the_formula(problem):
    """What is sampled must be what the module says."""
    posterior = problem.posterior()
    for tree, expected in zip(problem.trees, problem.log_densities(), strict=True):
        assert posterior.log_density(tree) == pytest.approx(expected, abs=1e-9)
        assert posterior.log_prior(tree) + posterior.log_likelihood(tree) == pytest.approx(expected)


@each(TWO)
def test_trees_beyond_the_limits_have_no_density(problem):
    """Neither more leaves, nor smaller ones."""
    assert problem.posterior(max_leaves=2).log_density(problem.trees[-1]) == -math.inf
    assert problem.posterior(min_leaf_weight=99).log_density(problem.trees[-1]) == -math.inf
    assert problem.posterior(min_leaf_weight=99).log_density(problem.trees[0]) == -math.inf
    empty = problem.trees[1].grown(1, problem.trees[1].nodes[0])  # the same split again
    assert problem.posterior().log_density(empty) == -math.inf


def test_rows_without_weight_count_for_nothing():
    """They are as if they were not there."""
    X, y = [[0.0], [1.0], [2.0], [9.0]], ["a", "b", "b", "c"]
    weighed = BudgetTreePosterior(X, y, [1.0, 2.0, 1.0, 0.0])
    without = BudgetTreePosterior(X[:3], y[:3], [1.0, 2.0, 1.0])
    assert weighed.classes.tolist() == ["a", "b"]
    assert weighed.candidates.thresholds.tolist() == [0.5, 1.5]
    assert weighed.fingerprint() == without.fingerprint()


def test_thresholds_are_halfway_between_values():
    """Rows go left at a candidate exactly when their value is at most its threshold."""
    X = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 1.0]], np.float32)
    candidates = SplitCandidates.of(X, 8)
    assert candidates.thresholds.tolist() == [1.5, 2.5]
    assert candidates.starts.tolist() == [0, 2, 2]
    assert candidates.columns.tolist() == [0, 0]
    assert candidates.codes[0].tolist() == [2, 0, 1, 0]
    assert np.exp(candidates.log_probabilities()).tolist() == [0.5, 0.5]
    # one more candidate parts missing cells from all others
    candidates = SplitCandidates.of(np.float32([[1.0], [np.nan], [2.0]]), 8)
    assert candidates.thresholds.tolist() == [1.5, np.finfo(np.float32).max]
    assert candidates.codes[0].tolist() == [0, 2, 1]


def test_many_values_have_thresholds_evenly_among_rows(rng):
    """A grid over the values would leave most rows between two thresholds."""
    X = np.exp(3 * rng.standard_normal((5000, 1))).astype(np.float32)
    candidates = SplitCandidates.of(X, 9)
    shares = np.bincount(candidates.codes[0]) / len(X)
    np.testing.assert_allclose(shares, 0.1, atol=0.001)
    heavy = SplitCandidates.of(np.repeat(np.float32([[0], [1], [2], [3]]), [97, 1, 1, 1], 0), 2)
    assert heavy.thresholds.tolist() == [0.5]


def test_draws_predict_the_posterior_predictive():
    """The forest of draws is how a tree posterior classifies."""
    posterior = THREE_CLASSES.posterior()
    rows, labels, weights = THREE_CLASSES.rows
    states = [THREE_CLASSES.trees[-1], THREE_CLASSES.trees[0]]
    forest = posterior.forest(states)
    with pytest.raises(ParameterError, match="states must have at least one tree, got none"):
        posterior.forest([])
    assert forest.n_trees == 2
    X = np.array(rows, np.float32)
    leaves = forest.apply(X)
    expected = np.zeros((len(rows), 3))
    for tree in range(2):
        for i in range(len(rows)):
            together = [j for j in range(len(rows)) if leaves[j, tree] == leaves[i, tree]]
            counts = np.full(3, THREE_CLASSES.concentration)
            for j in together:
                counts[labels[j]] += weights[j]
            expected[i] += counts / counts.sum() / 2
    np.testing.assert_allclose(forest.predict_proba(X), expected, atol=1e-12)


def test_a_forest_costs_what_its_trees_cost():
    """Expected costs in the posterior are those that users pay."""
    posterior = GROUPED.posterior()
    X = np.array(GROUPED.rows[0], np.float32)
    for tree in GROUPED.trees:
        used = posterior.forest([tree]).features_used(X)
        paid = posterior.items.total(posterior.items.paid(used))
        assert paid.mean() == pytest.approx(posterior.expected_cost(tree), abs=1e-12)


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (None, "cannot be read"),
        ([0, -1], "one tree in preorder"),
        ([-1, 0, -1, -1], "one tree in preorder"),
        ([99, -1, -1], "integers from -1 to 2"),
        ([0.0, -1, -1], "integers from -1 to 2"),
        ([0, 0, -1, -1, -1], "its prior is zero"),
    ],
)
def test_forged_states_are_refused(encoded, message):
    """The kernels trust what they are given."""
    with pytest.raises(ModelFileError, match=message):
        TWO.posterior().decode_state(encoded)


def test_fingerprints_tell_problems_apart():
    """A checkpoint of other rows, labels, costs or priors must not be resumed."""
    rows, labels, weights = TWO.rows
    changes = [
        {}, {"tradeoff": 0.1}, {"costs": [1.0, 3.0]}, {"concentration": 0.1},
        {"split_probability": 0.1}, {"max_leaves": 3}, {"min_leaf_weight": 3}, {"n_thresholds": 1},
    ]  # fmt: skip
    posteriors = [GROUPED.posterior(), *(TWO.posterior(**changed) for changed in changes)]
    for others in (labels[::-1], [f"class {label}" for label in labels[::-1]]):
        posteriors.append(BudgetTreePosterior(rows, others, weights))
    assert len({posterior.fingerprint() for posterior in posteriors}) == len(posteriors)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tradeoff": -1.0}, "tradeoff must be a finite number >= 0, got -1.0"),
        ({"costs": [1.0]}, "costs must have one cost per feature, 2, got 1"),
        ({"costs": [1.0, -1.0]}, "must be a finite number >= 0, got -1.0"),
    ],
)
def test_impossible_parameters_are_refused(settings, message):
    """At once, by name."""
    with pytest.raises(ParameterError, match=message):
        TWO.posterior(**settings)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], [1, 1], 'y must have at least two classes, got one class, "1"'),
        (np.array([[1.0], [1e39]]), [0, 1], "contains infinity or a value too large"),
        ([[1.0], [2.0]], [0, 1, 1], "y must have a label per row of X, 2, got 3"),
        ([1.0, 2.0], [0, 1], "Expected 2D array"),
        ([[1.0], [1.0, 2.0]], [0, 1], "Expected 2D array"),
        (np.empty((0, 2)), [], "Found array with 0 sample"),
    ],
)
def test_unusable_rows_are_refused(X, y, message):
    """Kernels look at no bounds."""
    with pytest.raises(ValueError, match=message):
        BudgetTreePosterior(X, y)
    with pytest.raises(DataError, match="sample_weight must be > 0 for rows of at least two cl"):
        BudgetTreePosterior([[1.0], [2.0], [3.0]], [0, 0, 2], [1.0, 1.0, 0.0])


def test_traces_say_the_names_of_features():
    """The columns of a text's levels are one feature, which is what a user knows."""
    rows = pd.DataFrame({"site": ["n", "s", "w"] * 9, "age": range(27)})
    posterior = BudgetTreePosterior(rows, rows["age"] > 13, costs={"age": 3.0})
    assert posterior.legend().columns == ("site", "age")
    used = {tuple(posterior.legend().columns_of(BudgetTree((c, -1, -1)))) for c in range(29)}
    assert used == {(0,), (1,)}


@pytest.mark.slow
def test_rows_that_are_all_alike_make_a_bare_tree():
    """A constant column is no reason to fail: the classes' shares are known all the same."""
    posterior = BudgetTreePosterior(np.zeros((4, 2)), [0, 1, 1, 1])
    assert posterior.candidates.n_candidates == 0
    run = samplers.metropolis(posterior, n_steps=20, n_draws=2, n_chains=1, seed=0)
    assert run.best_state == BudgetTree()
    forest = posterior.forest(run.draws[0])
    np.testing.assert_allclose(forest.predict_proba(np.zeros((1, 2))), [[2 / 6, 4 / 6]])
