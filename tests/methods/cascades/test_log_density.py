"""Log densities of both models against twins, by hand, and under changes of the data's form."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.data.table import Table
from bayescascade.methods.cascades.exact import solve
from bayescascade.methods.cascades.kernel_arrays import log_stirling_numbers
from bayescascade.methods.cascades.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.cascades.tree import Tree
from tests import reference
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    CONSTANT,
    FRACTIONAL,
    GENERATIVE,
    GENERATIVE_BRANCH,
    INCLUSION,
    INDEPENDENT_BRANCH,
    LEAF,
    LEVELS,
    MULTIWAY,
    ORDINAL,
    TERNARY,
    UNEVEN_LEVELS,
    WITH_OPTIONS,
    pairs,
)


@pairs(
    (TERNARY, LEAF), (BINARY, LEAF), (MULTIWAY, BRANCH),
    (ORDINAL, INCLUSION), (BINS, LEAF), (BINS, INDEPENDENT_BRANCH), (FRACTIONAL, BRANCH),
    (CONSTANT, INCLUSION), (LEVELS, INCLUSION), *WITH_OPTIONS,
)  # fmt: skip
def test_every_tree_has_the_density_of_the_formula(problem, model):
    """Otherwise the tree printed as the most probable one is not."""
    assert len(set(problem.trees)) == len(problem.trees)
    posterior = model.on(problem)
    densities = np.array([posterior.log_density(tree) for tree in problem.trees])
    assert_allclose(densities, model.reference(problem), rtol=0, atol=1e-9)


PROCESSES = [
    (problem, model)
    for problem in (TERNARY, MULTIWAY, ORDINAL, CONSTANT, UNEVEN_LEVELS)
    for model in (GENERATIVE, GENERATIVE_BRANCH)
]


@pairs(*PROCESSES)
def test_a_process_sums_to_one(problem, model):
    """Evidence is that of a prior; one split counted too many, the broken twin, is noticed."""
    posterior = model.on(problem)
    log_priors = np.array([posterior.log_prior(tree) for tree in problem.trees])
    assert np.exp(log_priors).sum() == pytest.approx(1.0, rel=1e-12)
    is_split = np.array([tree.n_leaves > 1 for tree in problem.trees])
    broken = log_priors + is_split * (posterior.splits.log_most - np.log1p(n_first(problem)))
    assert abs(np.exp(broken).sum() - 1.0) > 1e-3
    assert n_first(problem) == pytest.approx(np.exp(posterior.splits.log_most), rel=1e-12)
    exact = solve(posterior)
    assert exact.log_evidence == exact.log_normalizer


def n_first(problem):
    """Return how many splits the whole domain allows, as its trees of one split."""
    return sum(tree.n_leaves > 1 and tree.depth == 1 for tree in problem.trees)


def test_node_statistics_are_those_of_the_rows_inside():
    """Printed counts, volumes and levels are those of the leaves' boxes."""
    posterior, record, n_levels = LEAF.on(FRACTIONAL), FRACTIONAL.record, FRACTIONAL.n_levels

    def inside(box):
        return reference.weight_in(box, record["rows"], record["weights"])

    for nested, tree in zip(FRACTIONAL.nested[::9], FRACTIONAL.trees[::9], strict=True):
        counts, log_volumes = posterior.node_statistics(tree)
        levels = posterior.level_counts(tree)
        boxes = reference.leaves_of(nested, n_levels)
        assert_allclose(counts[tree.leaves], [inside(box) for box in boxes], atol=1e-12)
        assert counts[0] == pytest.approx(sum(record["weights"]))
        volumes = [reference.log_volume(box, record["widths"]) for box in boxes]
        assert_allclose(log_volumes[tree.leaves], volumes, atol=1e-12)
        for node, box in zip(tree.leaves, boxes, strict=True):
            of_levels = [
                inside((*box[:j], (code,), *box[j + 1 :])) if code in box[j] else 0.0
                for j, n in enumerate(n_levels)
                for code in range(n)
            ]
            assert_allclose(levels[node], of_levels, atol=1e-12)


def test_the_twin_tells_one_parameter_from_another():
    """The comparison above must be able to fail."""
    posterior = LEAF.on(MULTIWAY)
    wrong = [
        reference.leaf_log_density(tree, MULTIWAY.record, 3.0, 1.6) for tree in MULTIWAY.nested
    ]
    right = [posterior.log_density(tree) for tree in MULTIWAY.trees]
    assert np.abs(np.subtract(right, wrong)).max() > 1e-3


def small_table():
    """Three rows a, a, b of one column with levels a, b."""
    return Table.from_arrays([["a"], ["a"], ["b"]])


ROOT = Tree.root()
SPLIT = Tree.from_nested((0, [((0,), None), ((1,), None)]), [True])


def test_leaf_model_by_hand():
    """One and two leaves, every term written out."""
    posterior = LeafPosterior(small_table(), expected_leaves=2.0, concentration=1.0)
    # Poisson(1; 2) and Dirichlet-multinomial 1, density 1/2 for each of 3 rows
    assert posterior.log_density(ROOT) == pytest.approx(-2 + math.log(2) - 3 * math.log(2))
    # Poisson(2; 2) = 2 e^-2; G(2) G(3) G(2) / G(5) = 2 / 24; volumes 1
    assert posterior.log_density(SPLIT) == pytest.approx(-2 + math.log(2) + math.log(2 / 24))


def test_branch_model_by_hand():
    """One and two leaves, with and without the weight of the columns used."""
    posterior = BranchPosterior(small_table(), expected_branches=2.0, concentration=1.0)
    assert posterior.log_density(ROOT) == pytest.approx(-2 - 3 * math.log(2))
    # inner node e^-2 2^2 / 2!, two leaves e^-2 each
    assert posterior.log_density(SPLIT) == pytest.approx(-6 + math.log(2) + math.log(2 / 24))
    included = BranchPosterior(small_table(), 2.0, 1.0, feature_inclusion=0.25)
    assert included.log_density(ROOT) - posterior.log_density(ROOT) == pytest.approx(math.log(0.75))
    difference = included.log_density(SPLIT) - posterior.log_density(SPLIT)
    assert difference == pytest.approx(math.log(0.25))


def test_many_columns_do_not_overflow():
    """2^300 cells are no number, their logarithm is."""
    rows = np.tile(np.array([[0], [1]]), (1, 300))
    posterior = LeafPosterior(Table.from_arrays(rows, nominal=list(range(300))))
    expected = -8 + math.log(8) - 2 * 300 * math.log(2)
    assert posterior.log_density(ROOT) == pytest.approx(expected)


def test_stirling_numbers_count_partitions():
    """Uniform proposals among partitions depend on them."""
    table = np.exp(log_stirling_numbers(7))
    for m in range(1, 8):
        sizes = [len(blocks) for blocks in reference.partitions(tuple(range(m)))]
        assert_allclose(table[m, 1 : m + 1], [sizes.count(b) for b in range(1, m + 1)])


def test_parameters_and_fingerprint_tell_posteriors_apart():
    """A checkpoint must never be resumed with another model's parameters."""
    table = MULTIWAY.table
    posteriors = [
        LeafPosterior(table),
        LeafPosterior(table, expected_leaves=9.0),
        LeafPosterior(table, max_branches=3),
        LeafPosterior(table, max_leaves=9),
        LeafPosterior(table, leaf="independent"),
        LeafPosterior(table, leaf="independent", leaf_concentration=2.0),
        LeafPosterior(table, partitions="levels"),
        LeafPosterior(FRACTIONAL.table),
        LeafPosterior(table, prior="generative"),
        LeafPosterior(table, prior="generative", stop=0.4),
        LeafPosterior(table, prior="size"),
        BranchPosterior(table),
        BranchPosterior(table, feature_inclusion=0.5),
    ]
    assert len({posterior.fingerprint() for posterior in posteriors}) == len(posteriors)
    assert LeafPosterior(table).fingerprint() == posteriors[0].fingerprint()
    assert posteriors[0].parameters() == {
        "expected_leaves": 8.0,
        "concentration": 2.0,
        "max_leaves": None,
        "leaf": "uniform",
        "leaf_concentration": 1.0,
        "prior": "poisson",
        "stop": 0.5,
        "max_branches": 2,
        "partitions": "subsets",
    }
