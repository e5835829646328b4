"""How many trees there are of each number of leaves, and the prior that is shared by them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bayescascade import LeafCascade, LeafPosterior
from bayescascade.base.errors import TooLargeError
from bayescascade.methods.cascades import tree_counts
from bayescascade.methods.cascades.exact import solve, solve_by_tilts
from bayescascade.methods.cascades.tree_counts import count_trees
from tests.methods.cascades import problems as tiny
from tests.methods.cascades.exact.brute_force import NO_DATA, brute_force
from tests.methods.cascades.exact.test_exact_cost import random_table
from tests.methods.cascades.fits import people
from tests.methods.cascades.problems import Problem

ORDERED = Problem("ordered", (5, 2), (False, True), 2)
THREE_OF_FIVE = Problem("three-of-five", (5, 2), (False, True), 3)
FOUR_OF_FIVE = Problem("four-of-five", (5,), (True,), 4)
TWO_OF_FIVE = Problem("two-of-five", (5,), (True,), 2)
ONE_CELL = Problem("one-cell", (1, 1), (True, False), 2)
MANY_TREES = (tiny.TERNARY_THREE_WAY, tiny.MIXED_WAYS, ORDERED)
COUNTED = [
    tiny.TERNARY, tiny.MULTIWAY, tiny.ORDINAL, tiny.BINS, tiny.CONSTANT, tiny.LEVELS,
    tiny.UNEVEN_LEVELS, THREE_OF_FIVE, FOUR_OF_FIVE, TWO_OF_FIVE, ONE_CELL,
    *(pytest.param(problem, marks=pytest.mark.slow) for problem in MANY_TREES),
]  # fmt: skip


def listed(problem, most=math.inf):
    """Return the numbers of all trees of 1, 2, .. leaves, one by one."""
    return np.bincount([t.n_leaves for t in problem.trees if t.n_leaves <= most])[1:]


@pytest.mark.parametrize("most", [None, 2, 4])
@pytest.mark.parametrize("problem", COUNTED, ids=lambda problem: problem.name)
def test_counts_are_those_of_a_list(problem, most):
    """One tree that is forgotten, and its number of leaves is more probable than it is said."""
    branches = None if problem.partitions == "levels" else problem.max_branches
    found = count_trees(problem.table.schema, problem.partitions, branches, most)
    expected = listed(problem, most or math.inf)
    assert expected.size <= found.logs.size <= math.prod(problem.n_levels)
    assert np.flatnonzero(found.is_possible).tolist() == np.flatnonzero(expected).tolist()
    possible = found.is_possible
    np.testing.assert_allclose(np.exp(found.logs[possible]), expected[expected > 0], rtol=1e-13)
    assert np.isfinite(found.logs).all()


def test_numbers_beyond_floats_are_counted():
    """Of one column split to the end, those of binary trees over its levels: 1 x 3 x 5 x ..."""
    n = 200
    found = tree_counts._count(((True, n),), False, 2, n).logs[-1]
    assert found > 710.0  # the log of the largest float
    assert found == pytest.approx(math.fsum(math.log(2 * k - 3) for k in range(2, n + 1)))


def truncated_mean(rate, possible):
    chances = [math.exp(k * math.log(rate) - math.lgamma(k + 1)) for k in possible]
    return sum(k * p for k, p in zip(possible, chances, strict=True)) / sum(chances)


@pytest.mark.parametrize(
    "problem", [tiny.MULTIWAY, tiny.UNEVEN_LEVELS], ids=lambda problem: problem.name
)
def test_expected_leaves_are_what_is_expected(problem):
    """A Poisson over numbers of leaves; that over trees, the broken twin, expects more."""
    n_leaves = np.array([tree.n_leaves for tree in problem.trees])
    means = []
    for model in (tiny.SIZE, tiny.LEAF):
        posterior = model.on(problem)
        prior = np.exp([posterior.log_prior(tree) for tree in problem.trees])
        means.append(prior @ n_leaves / prior.sum())
    counts = tiny.SIZE.on(problem).tree_counts
    log_sum, error = counts.log_prior_sum(3.0)
    priors = [tiny.SIZE.on(problem).log_prior(tree) for tree in problem.trees]
    assert np.exp(np.array(priors) - log_sum).sum() == pytest.approx(1.0, rel=1e-12)
    assert error < 1e-13
    expected = truncated_mean(3.0, sorted(set(n_leaves.tolist())))
    assert means[0] == pytest.approx(expected, rel=1e-12)
    assert abs(means[1] - expected) > 0.3


@pytest.mark.parametrize("weight", [10, 1_000_000])
def test_first_splits_and_averages_are_those_of_all_trees(weight):
    """Of ten rows and of a million; the Poisson over trees, the broken twin, says otherwise."""
    record = tiny.MULTIWAY.record
    weights = [weight * w / sum(record["weights"]) for w in record["weights"]]
    problem = replace(tiny.MULTIWAY, given=dict(zip(record["rows"], weights, strict=True)))
    everything, exact = brute_force(problem, tiny.SIZE), solve(tiny.SIZE.on(problem))
    first = np.array([tree.feature[0] for tree in everything.trees])
    found = exact.split_probabilities
    for j, name in enumerate(problem.table.schema.names):
        share = everything.probabilities[first == j].sum()
        assert found.first[name] == pytest.approx(share, abs=1e-9)
    rows = np.array([[0, 1, 2], [0, 1, 0]], np.int32)
    expected = [
        everything.log_normalizer_with(tuple(row)) - everything.log_normalizer for row in rows.T
    ]
    tolerance = 1e-9 + 1e-15 * abs(everything.log_normalizer)
    np.testing.assert_allclose(exact.log_predictive(rows), expected, atol=tolerance)
    other = solve(tiny.LEAF.on(problem))
    evidence = everything.log_normalizer - everything.log_prior_normalizer
    for one in (exact, solve_by_tilts(tiny.SIZE.on(problem), rng=0)):
        assert abs(one.log_evidence - evidence) <= one.error + 1e-9 + 1e-13 * abs(evidence)
    assert abs(other.log_evidence - evidence) > 0.01


def test_what_bounds_the_leaves_is_part_of_the_prior():
    """Numbers that no tree may have take no probability from the others."""
    exact = solve(tiny.SIZE_BOUNDED.on(NO_DATA))
    chances = np.array([3.0**k / math.factorial(k) for k in range(1, 5)])
    np.testing.assert_allclose(exact.leaf_count_probabilities, chances / chances.sum())
    assert exact.log_evidence == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_trees_too_many_to_count_are_refused_at_once():
    """The message names a bound on leaves that does, which then does indeed."""
    table = random_table((9,) * 12)
    with pytest.raises(
        TooLargeError, match=r'got "size".*what would fit: max_leaves=\d+;'
    ) as caught:
        LeafCascade(prior="size").fit(table)
    most = int(str(caught.value).split("max_leaves=")[1].split(";")[0])
    assert LeafPosterior(table, prior="size", max_leaves=most).log_n_trees.size == most
    levels = LeafPosterior(table, prior="size", partitions="levels", max_leaves=200)
    assert levels.log_n_trees.size == 200


def test_a_fit_says_which_prior_it_has():
    model = LeafCascade(expected_leaves=3.0, prior="size", random_state=0).fit(people())
    assert model.summary_.method == "exact"
    assert "size prior" in str(model)
    assert model.log_posterior_ == pytest.approx(model.posterior_.log_density(model.tree_))
