"""Under the leaf model one tree stands for all that have the same leaves."""

from collections import defaultdict

import pytest

from bayescascade.methods.cascades.posterior import BranchPosterior
from bayescascade.methods.cascades.tree import Tree
from tests import reference
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    FRACTIONAL,
    INDEPENDENT,
    LEAF,
    LEVELS,
    MULTIWAY,
    ORDINAL,
    Problem,
    each,
)

FOUR = (BINARY, MULTIWAY, ORDINAL, LEVELS)


def leaves(problem, nested):
    return frozenset(reference.leaves_of(nested, problem.n_levels))


@pytest.mark.parametrize(
    "problem",
    [BINARY, MULTIWAY, BINS, FRACTIONAL]
    + [pytest.param(problem, marks=pytest.mark.slow) for problem in (ORDINAL, LEVELS)],
    ids=lambda p: p.name,
)
def test_same_leaves_same_tree(problem):
    """Twenty searches that find the same leaves must print the same tree."""
    posterior = LEAF.on(problem)
    found = defaultdict(set)
    for nested, tree in zip(problem.nested, problem.trees, strict=True):
        canonical = posterior.canonical(tree)
        found[leaves(problem, nested)].add(canonical)
        assert leaves(problem, canonical.to_nested(problem.nominal)) == leaves(problem, nested)
    assert all(len(trees) == 1 for trees in found.values())
    assert len(found) < len(problem.trees)


@each(*FOUR, models=[LEAF, INDEPENDENT])
def test_canonical_trees_are_valid_and_as_probable(problem, model):
    """What is printed must be a tree of the posterior, with the density that is printed."""
    posterior = model.on(problem)
    known = set(problem.trees)
    for tree in problem.trees[::7]:
        canonical = posterior.canonical(tree)
        assert canonical in known
        expected = posterior.log_density(tree)
        assert posterior.log_density(canonical) == pytest.approx(expected, abs=1e-9)
        assert posterior.canonical(canonical) == canonical


def test_the_strongest_split_comes_first():
    """A reader takes the first split for the most important one."""
    posterior = LEAF.on(BINARY)
    grid = [[2.0, 1.0], [7.0, 3.0]]
    cells = [(i, j) for i in (0, 1) for j in (0, 1)]
    problem = Problem("strong", (2, 2), (True, True), 2)
    problem.__dict__["record"] = {
        "n_levels": (2, 2),
        "nominal": (True, True),
        "widths": [[1.0, 1.0], [1.0, 1.0]],
        "rows": cells,
        "weights": [grid[i][j] for i, j in cells],
    }
    posterior = LEAF.on(problem)
    both = [((0,), None), ((1,), None)]
    columns_first = Tree.from_nested((1, [((k,), (0, both)) for k in (0, 1)]), problem.nominal)
    rows_first = Tree.from_nested((0, [((k,), (1, both)) for k in (0, 1)]), problem.nominal)
    assert posterior.canonical(columns_first) == rows_first  # rows: 3 to 10, columns: 9 to 4


def test_branch_trees_stand_for_themselves():
    """Their density depends on the order of the splits."""
    posterior = BRANCH.on(BINARY)
    assert isinstance(posterior, BranchPosterior)
    assert all(posterior.canonical(tree) is tree for tree in BINARY.trees)
