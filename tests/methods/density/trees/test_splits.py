"""Split proposals: the probability in kernels is that of the plain one, and they sum to one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base import jit
from bayescascade.methods.density.trees.kernels.layout import IN_PLACE, new_workspace
from bayescascade.methods.density.trees.kernels.proposals import log_q_split
from bayescascade.methods.density.trees.kernels.trees import load
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.tree import Tree, root_box
from tests.methods.density.trees.problems import random_table
from tests.methods.density.trees.slow_splits import SplitProposals


def table_of(rng, n_levels=(8, 5, 6), fractional=False):
    """Return nominal, ordinal, continuous and binary columns, filled unevenly."""
    kinds = ("nominal", "ordinal", "continuous", "nominal")
    columns = list(zip(kinds, (*n_levels, 2), strict=True))
    return random_table(columns, 60, fractional, int(rng.integers(1000)))


def boxes_of(posterior, tree):
    return tree.codes(posterior.is_nominal, root_box(posterior.schema))


def kernels_probability(posterior, tree, node, split):
    """Return the probability that the kernels give a split of a node."""
    work = new_workspace(posterior.arrays, posterior.model_arrays, tree.n_nodes)
    load(posterior.arrays, posterior.model_arrays, work, tree.feature, tree.parent, tree.block)
    j, blocks = split
    for branch, codes in enumerate(blocks):
        work.assign[IN_PLACE, list(codes)] = branch
    token = jit._is_interpreting.set(True)  # compiling takes longer than all of the tests
    try:
        log_q = log_q_split(
            posterior.arrays, posterior.model_arrays, work, node, j, len(blocks), IN_PLACE
        )
    finally:
        jit._is_interpreting.reset(token)
    return float(np.exp(log_q))


def random_trees(posterior, rng, n):
    """Return trees that the chain visits."""
    tree = posterior.initial_state(rng)
    for _ in range(n):
        tree, _ = posterior.advance(rng, tree, 40, 0.3)
        yield tree


POSTERIORS = [
    pytest.param(LeafPosterior, {"max_branches": 2}, id="leaf-2"),
    pytest.param(LeafPosterior, {"max_branches": None, "concentration": 0.3}, id="leaf-all"),
    pytest.param(BranchPosterior, {"max_branches": 3}, id="branch-3"),
    pytest.param(BranchPosterior, {"expected_branches": 4.0}, id="branch-all"),
    pytest.param(LeafPosterior, {"partitions": "levels", "concentration": 0.3}, id="levels"),
    pytest.param(LeafPosterior, {"leaf": "independent"}, id="independent"),
    pytest.param(
        BranchPosterior, {"leaf": "independent", "partitions": "levels"}, id="independent-levels"
    ),
]


@pytest.mark.parametrize(("cls", "parameters"), POSTERIORS)
def test_probabilities_of_all_splits_sum_to_one(cls, parameters, rng):
    """A split that is left out, or listed twice, would break the balance; kernels say the same."""
    checked = 0
    for fractional in (False, True):
        posterior = cls(table_of(rng, (5, 4, 4), fractional), **parameters)
        for tree in random_trees(posterior, rng, 2):
            boxes = boxes_of(posterior, tree)
            splittable = [n for n, box in enumerate(boxes) if any(len(codes) > 1 for codes in box)]
            for node in splittable[:4]:
                splits = SplitProposals.at(posterior, boxes[node])
                listed = list(splits.all())
                assert len(set(listed)) == len(listed)
                plain = [splits.probability(split) for split in listed]
                assert sum(plain) == pytest.approx(1.0, abs=1e-9)
                fast = [kernels_probability(posterior, tree, node, split) for split in listed]
                assert_allclose(fast, plain, rtol=1e-9)
                checked += len(listed)
    assert checked > 20


@pytest.mark.parametrize(
    ("n_branches", "partitions"),
    [(2, "subsets"), (3, "subsets"), (4, "subsets"), (2, "levels"), (4, "levels"), (5, "levels")],
)
def test_probabilities_given_the_branches_sum_to_one(n_branches, partitions, rng):
    """The same for changes of a split that keep its number of branches."""
    posterior = BranchPosterior(table_of(rng, (5, 4, 4)), partitions=partitions)
    splits = SplitProposals.at(posterior, boxes_of(posterior, Tree.root())[0])
    listed = list(splits.all_with_branches(n_branches))
    assert {len(blocks) for _, blocks in listed} == {n_branches}
    assert sum(map(splits.probability_with_branches, listed)) == pytest.approx(1.0, abs=1e-9)
