"""Log densities of both models against twins, by hand, and under changes of the data's form."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.data.table import Table
from bayescascade.methods.density.trees.exact import solve
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.tree import Tree
from tests import reference
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.problems import pairs


@pairs(
    (tiny.BINARY, tiny.LEAF), (tiny.MULTIWAY, tiny.BRANCH),
    (tiny.ORDINAL, tiny.INCLUSION), (tiny.BINS, tiny.LEAF), (tiny.BINS, tiny.INDEPENDENT_BRANCH),
    (tiny.FRACTIONAL, tiny.BRANCH), (tiny.CONSTANT, tiny.INCLUSION), (tiny.LEVELS, tiny.INCLUSION),
    *tiny.WITH_OPTIONS,
)  # fmt: skip
def test_every_tree_has_the_density_of_the_formula(problem, model):
    """Otherwise the tree printed as the most probable one is not."""
    assert len(set(problem.trees)) == len(problem.trees)
    posterior = model.on(problem)
    densities = np.array([posterior.log_density(tree) for tree in problem.trees])
    assert_allclose(densities, model.reference(problem), rtol=0, atol=1e-9)


PROCESSES = [
    (problem, model)
    for problem in (tiny.MULTIWAY, tiny.ORDINAL, tiny.CONSTANT, tiny.UNEVEN_LEVELS)
    for model in (tiny.GENERATIVE, tiny.GENERATIVE_BRANCH)
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
    problem = tiny.FRACTIONAL
    posterior, record, n_levels = tiny.LEAF.on(problem), problem.record, problem.n_levels

    def inside(box):
        return reference.weight_in(box, record["rows"], record["weights"])

    for nested, tree in zip(problem.nested[::9], problem.trees[::9], strict=True):
        counts, log_volumes = posterior.node_statistics(tree)
        _, levels = posterior.level_counts(tree)
        assert counts[0] == pytest.approx(sum(record["weights"]))
        for node, box in zip(tree.leaves, reference.leaves_of(nested, n_levels), strict=True):
            assert counts[node] == pytest.approx(inside(box), abs=1e-12)
            volume = reference.log_volume(box, record["widths"])
            assert log_volumes[node] == pytest.approx(volume, abs=1e-12)
            of_levels = [
                inside((*box[:j], (code,), *box[j + 1 :])) if code in box[j] else 0.0
                for j, n in enumerate(n_levels)
                for code in range(n)
            ]
            assert_allclose(levels[node], of_levels, atol=1e-12)


ROOT = Tree.root()


def test_many_columns_do_not_overflow():
    """2^300 cells are no number, their logarithm is."""
    rows = np.tile(np.array([[0], [1]]), (1, 300))
    posterior = LeafPosterior(Table.from_arrays(rows, nominal=list(range(300))))
    expected = -8 + math.log(8) - 2 * 300 * math.log(2)
    assert posterior.log_density(ROOT) == pytest.approx(expected)


def test_parameters_and_fingerprint_tell_posteriors_apart():
    """A checkpoint must never be resumed with another model's parameters."""
    table = tiny.MULTIWAY.table
    process = {"prior": "generative"}
    of_leaves = (
        {}, {"expected_leaves": 9.0}, {"concentration": 1.0}, {"max_branches": 3},
        {"max_leaves": 9}, {"leaf": "independent"},
        {"leaf": "independent", "leaf_concentration": 2.0}, {"partitions": "levels"}, process,
        {**process, "stop": 0.4},
    )  # fmt: skip
    posteriors = [LeafPosterior(table, **given) for given in of_leaves]
    posteriors += [LeafPosterior(tiny.FRACTIONAL.table), BranchPosterior(table)]
    posteriors += [BranchPosterior(table, feature_inclusion=0.5)]
    assert len({posterior.fingerprint() for posterior in posteriors}) == len(posteriors)
    assert LeafPosterior(table).fingerprint() == posteriors[0].fingerprint()
