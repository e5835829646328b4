"""Densities given evidence are the joint density divided by the evidence's probability."""

import itertools

import numpy as np
import pytest

from bayescascade.base.errors import DataError
from bayescascade.methods.cascades.tree import Tree
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    FRACTIONAL,
    INDEPENDENT,
    LEAF,
    MULTIWAY,
    ORDINAL,
    each,
)
from tests.methods.cascades.test_density import cells_of, density_of, grades
from tests.statistical.chi_square import fits


def evidences(column):
    """Yield evidence on a column and the codes that it allows."""
    size = column.n_levels
    if column.kind == "continuous":
        for low, high in itertools.combinations(range(size + 1), 2):
            yield (column.edges[low], column.edges[high]), set(range(low, high))
        yield (column.edges[0] + column.edges[1]) / 2, {0}
    elif column.kind == "ordinal":
        for low, high in itertools.combinations(range(size + 1), 2):
            yield list(column.levels[low:high]), set(range(low, high))
    else:
        for n in range(1, size + 1):
            for codes in itertools.combinations(range(size), n):
                yield [column.levels[code] for code in codes], set(codes)


def assert_conditional(density, conditional, allowed):
    """Check a conditional density on every cell; `allowed` maps columns to codes."""
    cells, volumes = cells_of(density.schema)
    inside = np.ones(cells.shape[1], bool)
    for j, codes in allowed.items():
        inside &= np.isin(cells[j], list(codes))
    joint = np.exp(density.score_codes(cells))
    marginal = np.dot(joint[inside], volumes[inside])
    found = np.exp(conditional.score_codes(cells))
    np.testing.assert_allclose(found[inside], joint[inside] / marginal, rtol=1e-12)
    assert (found[~inside] == 0).all()
    assert np.dot(found, volumes) == pytest.approx(1.0, abs=1e-12)
    assert conditional.evidence_probability == pytest.approx(marginal, rel=1e-12)
    assert not list(_problems(conditional))


def _problems(conditional):
    """Yield what is wrong with the conditional tree on its narrowed domain."""
    tree = conditional.tree
    for node in range(tree.n_nodes):
        children = tree.children(node)
        if children:
            column = int(tree.feature[node])
            kept = [code for child in children for code in conditional.boxes[child][column]]
            if sorted(kept) != list(conditional.boxes[node][column]) or len(children) < 2:
                yield node


@each(BINARY, MULTIWAY, BINS, ORDINAL, models=[LEAF, BRANCH, INDEPENDENT])
def test_conditional_is_joint_over_marginal(problem, model, rng):
    """On every cell, whatever is known."""
    for index in rng.choice(len(problem.trees), size=6, replace=False):
        density = density_of(problem, model, problem.trees[index])
        for j, column in enumerate(density.schema.columns):
            for evidence, codes in evidences(column):
                conditional = density.condition({column.name: evidence})
                assert_conditional(density, conditional, {j: codes})


@each(MULTIWAY, FRACTIONAL, BINS, models=[LEAF, INDEPENDENT])
def test_evidence_may_be_given_in_steps(problem, model, rng):
    """First the one fact, then the other, is both facts at once."""
    for index in rng.choice(len(problem.trees), size=6, replace=False):
        density = density_of(problem, model, problem.trees[index])
        one, other = density.schema.columns
        for (first, some), (second, more) in itertools.product(evidences(one), evidences(other)):
            stepwise = density.condition({one.name: first}).condition({other.name: second})
            at_once = density.condition({one.name: first, other.name: second})
            assert_conditional(density, stepwise, {0: some, 1: more})
            assert stepwise.tree == at_once.tree
            np.testing.assert_allclose(stepwise.probabilities, at_once.probabilities, rtol=1e-12)


def test_the_same_column_may_be_narrowed_twice():
    """Known to be 1 to 3, then known to be 2."""
    density = grades()
    narrowed = density.condition({"grade": [1, 2, 3]}).condition({"grade": 2})
    assert_conditional(density, narrowed, {1: {1}})


def test_evidence_decides_splits():
    """What is known is no longer asked."""
    conditional = grades().condition({"sex": "male"})
    assert conditional.to_dict()["feature"] == "grade"
    assert conditional.tree.n_leaves == 3
    assert conditional.counts[0] == 10.0
    assert conditional.evidence_words() == "sex is male"
    assert conditional.evidence_probability == pytest.approx(0.5)
    assert grades().condition({"sex": "female"}).tree == Tree.root()


def test_counts_are_expected_counts():
    """Rows are spread uniformly in a leaf: half of its volume has half of its rows."""
    conditional = grades().condition({"grade": [1, 2]})
    female = conditional.explain({"sex": "female", "grade": 1, "income": 1.0})
    assert female.startswith("sex is female: 5 of")


def test_missing_level_as_evidence():
    """That a cell is missing is a fact as well, where missing is a level."""
    density = grades()
    assert_conditional(density, density.condition({"income": None}), {2: {3}})


def test_draws_keep_to_the_evidence(rng):
    """Synthetic rows given the evidence."""
    density = grades().condition({"sex": "male", "grade": [3, 4]})
    codes = density.sample_codes(2000, rng)
    assert set(codes[0]) == {1}
    assert set(codes[1]) == {2, 3}
    cells, volumes = cells_of(density.schema)
    probabilities = np.exp(density.score_codes(cells)) * volumes
    drawn = np.ravel_multi_index(codes, density.schema.n_levels)
    assert fits(drawn, probabilities)
    assert not fits(drawn, np.exp(grades().score_codes(cells)) * volumes)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({"sex": "robot"}, "robot"),
        ({"height": 3}, "height"),
        ({"grade": [1, 3]}, 'ordinal column "grade" must be neighboring levels, got 1, 3'),
        ({"grade": []}, "must name a level"),
        ({"income": (10.0, 20.0)}, "increasing edges"),
        ({"income": (30.0, 10.0)}, "increasing edges"),
        ({"income": 500.0}, "income"),
        ({"sex": None}, "missing"),
    ],
)
def test_evidence_that_cannot_be_is_an_error(evidence, words):
    """Name the column and the value, so that a typing error is found."""
    with pytest.raises(DataError, match=words):
        grades().condition(evidence)


def test_evidence_may_not_contradict_earlier_evidence():
    """Known to be male, then known to be female."""
    male = grades().condition({"sex": "male"})
    with pytest.raises(DataError, match="must agree with the evidence given before, sex is male"):
        male.condition({"sex": "female"})
    with pytest.raises(DataError, match="contradicts the evidence: sex is male"):
        male.explain({"sex": "female", "grade": 1, "income": 1.0})


def test_evidence_of_probability_zero_is_an_error():
    """With plug-in densities a leaf can be impossible; nothing follows from it."""
    density = grades()
    counts = density.counts.copy()
    counts[int(density.tree.leaves[0])] = 0.0
    impossible = type(density)(
        density.schema, density.tree, counts, np.array([1, 0, 1, 0.9, 0.4, 0.5, 0.1]), {}
    )
    with pytest.raises(DataError, match="positive probability"):
        impossible.condition({"sex": "female"})
