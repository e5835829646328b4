"""Cost-complexity pruning of a forest's trees: scikit-learn's, at all levels at once."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from bayescascade.methods.forests.forest import Forest
from tests.benchmarks.pruning_baselines import best_levels, split_levels


@pytest.fixture
def data(rng):
    X = rng.standard_normal((400, 6)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] + rng.standard_normal(400) > 0)
    return X, y


@pytest.mark.parametrize("level", [0.0, 0.000987, 0.00217, 0.0143, 0.5])
def test_a_forest_pruned_at_a_level_is_that_of_scikit_learn(data, level):
    """Its `ccp_alpha` is the baseline that users know."""
    X, y = data
    forest = Forest.from_sklearn(RandomForestClassifier(8, random_state=0).fit(X, y))
    expected = RandomForestClassifier(8, random_state=0, ccp_alpha=level).fit(X, y)
    pruned = forest.pruned(split_levels(forest) > level)
    assert pruned.n_nodes == Forest.from_sklearn(expected).n_nodes
    np.testing.assert_allclose(pruned.predict_proba(X), expected.predict_proba(X), atol=1e-12)


def test_levels_are_those_of_the_pruning_path(data):
    """Every level at which scikit-learn cuts something, and no other."""
    X, y = data
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    forest = Forest.from_sklearn(tree)
    levels = split_levels(forest)
    path = np.unique(tree.cost_complexity_pruning_path(X, y).ccp_alphas.round(12))
    np.testing.assert_allclose(np.unique(levels.round(12)), path, atol=1e-10)


def wrong_rows(forest, X, y):
    """Return how many rows each tree gets wrong."""
    label = forest.counts.argmax(axis=1)
    return (label[forest.apply(X)] != y[:, np.newaxis]).sum(axis=0)


def test_the_best_level_errs_least_on_the_other_rows(data):
    """Each tree is tuned by itself: looked up in a list of all its prunings."""
    X, y = data
    forest = Forest.from_sklearn(RandomForestClassifier(8, random_state=2).fit(X[:200], y[:200]))
    others, labels = X[200:], y[200:]
    leaves = forest.apply(others)
    counts = np.zeros((forest.n_nodes, forest.n_classes))
    for row, label in enumerate(labels):
        for leaf in leaves[row]:
            node = leaf
            while node >= 0:
                counts[node, label] += 1
                node = forest.parents[node]
    levels = split_levels(forest)
    tuned = best_levels(forest, levels, counts)
    tree_of = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_starts))
    errors = wrong_rows(forest.pruned(levels > tuned[tree_of]), others, labels)
    smallest = np.full(forest.n_trees, np.inf)
    highest = np.zeros(forest.n_trees)
    for level in np.unique(levels):
        tried = wrong_rows(forest.pruned(levels > level), others, labels)
        highest[tried <= smallest] = level
        smallest = np.minimum(smallest, tried)
    np.testing.assert_array_equal(errors, smallest)
    assert errors.sum() < wrong_rows(forest, others, labels).sum()
    for tree in range(forest.n_trees):  # `highest` may lie between two levels of the tree's own
        own = levels[tree_of == tree]
        assert tuned[tree] == own[own <= highest[tree]].max()


def test_a_tree_of_one_leaf_has_no_level():
    """There is nothing to cut."""
    forest = Forest.from_preorder(
        np.array([-1], np.int32), np.array([0.0]), np.zeros(1, bool), np.array([[1.0, 2.0]])
    )
    assert split_levels(forest).tolist() == [0.0]
    assert best_levels(forest, np.zeros(1), np.array([[5.0, 0.0]])).tolist() == [0.0]
