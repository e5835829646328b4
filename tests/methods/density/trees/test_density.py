"""What a user asks of a density tree: densities, missing cells, draws, words, plain data."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.models import (
    empirical_probabilities,
    independent_probabilities,
)
from bayescascade.methods.density.trees.tree import Tree, leaf_boxes
from tests import reference
from tests.methods.density.trees.problems import BINS, FRACTIONAL, MULTIWAY, each

DENSITIES = ("posterior_mean", "empirical")


def density_of(problem, model, tree, density="posterior_mean"):
    """Return the density tree of a problem's tree, as an estimator makes it."""
    posterior = model.on(problem)
    counts, _ = posterior.node_statistics(tree)
    if density == "empirical":
        probabilities = empirical_probabilities(tree, counts)
    else:
        probabilities = posterior.model.probabilities(tree, counts)
    schema, levels = problem.table.schema, None
    if posterior.model.leaf == "independent":
        levels = independent_probabilities(
            schema,
            leaf_boxes(schema, tree),
            posterior.level_counts(tree)[1][tree.leaves],
            0.0 if density == "empirical" else posterior.model.leaf_concentration,
        )
    return LearnedDensityTree(schema, tree, counts, probabilities, {}, level_probabilities=levels)


@each(BINS, FRACTIONAL)
def test_posterior_means_are_those_of_the_dirichlet(problem, model):
    """Leaves by (n_l + alpha) / (n + K alpha), or the product of such shares along the path."""
    alpha = model.parameters["concentration"]
    for nested, tree in zip(problem.nested[::7], problem.trees[::7], strict=True):
        tree_density = density_of(problem, model, tree)
        counts = tree_density.counts
        if model.name == "leaf":
            leaves = tree.leaves
            share = (counts[leaves] + alpha) / (counts[0] + leaves.size * alpha)
            assert_allclose(tree_density.probabilities[leaves], share)
        else:
            for node in range(tree.n_nodes):
                children = tree.children(node)
                share = (counts[children] + alpha) / (counts[node] + len(children) * alpha)
                expected = tree_density.probabilities[node] * share
                assert_allclose(tree_density.probabilities[children], expected)
        assert tree_density.probabilities[0] == pytest.approx(1.0)
        assert len(reference.leaves_of(nested, problem.n_levels)) == tree_density.n_leaves


def grades():
    """Return a tree over a nominal, an ordinal and a continuous column, with a missing level."""
    schema = Schema(
        (
            Column("sex", "nominal", ("female", "male")),
            Column("grade", "ordinal", (1, 2, 3, 4)),
            Column("income", "continuous", (), (0.0, 10.0, 30.0, 100.0), has_missing_level=True),
        )
    )
    income = (2, [((0, 1), None), ((2, 3), None)])
    nested = (0, [((0,), None), ((1,), (1, [((0, 1, 2), income), ((3,), None)]))])
    tree = Tree.from_nested(nested, [True, False, False])
    counts = np.zeros(tree.n_nodes)
    counts[tree.leaves] = [10.0, 4.0, 5.0, 1.0]
    for node in range(tree.n_nodes - 1, 0, -1):
        counts[tree.parent[node]] += counts[node]
    return LearnedDensityTree(schema, tree, counts, counts / counts[0], {})


def test_plain_data_of_a_tree():
    """Programs read the tree in this form; the keys are documented."""
    record = grades().node_dict()
    assert record["feature"] == "sex"
    female, male = record["branches"]
    assert female["levels"] == ["female"]
    volume = 1 * 4 * 101
    assert female["child"] == {
        "count": 10.0, "volume": pytest.approx(volume), "probability": 0.5,
        "density": pytest.approx(0.5 / volume),
    }  # fmt: skip
    inner = male["child"]
    assert set(inner) == {"feature", "branches"}
    assert inner["branches"][0]["levels"] == [1, 2, 3]
    income = inner["branches"][0]["child"]
    low, high = income["branches"]
    assert (income["feature"], low["interval"], high["interval"]) == (
        "income", [0.0, 30.0], [30.0, 100.0],
    )  # fmt: skip
    assert "missing" not in low
    assert high["missing"] is True
    assert high["child"]["volume"] == pytest.approx(3 * 71)


def test_a_single_leaf_is_a_leaf():
    """The smallest model is one density for all cells."""
    schema = MULTIWAY.table.schema
    root = LearnedDensityTree(schema, Tree.root(), np.array([5.0]), np.array([1.0]), {})
    assert root.node_dict() == {
        "count": 5.0,
        "volume": pytest.approx(6.0),
        "probability": 1.0,
        "density": pytest.approx(1 / 6),
    }
    assert root.explain({"c0": "a", "c1": "b"}).startswith("any row: 5 of 5 rows")
    assert root.relative_densities.tolist() == pytest.approx([1.0])


def test_explanations_name_the_rule_and_the_figures():
    """A rare row is shown with why it is rare; one that may be in several leaves with each."""
    density = grades()
    words = density.explain({"sex": "male", "grade": 4, "income": 3.0})
    assert words.startswith("sex is male and grade is 4: 1 of 20 rows, probability 0.05, density ")
    figure = float(words.split("density ")[1].split(",")[0])
    assert figure == pytest.approx(0.05 / (1 * 1 * 101), rel=1e-3)
    assert words.endswith("x uniform")
    relative = float(words.split(", ")[-1].split(" ")[0])
    assert relative == pytest.approx(0.05 / 101 * (2 * 4 * 101), rel=1e-2)
    assert density.branch_words(4) == "income is in [0, 30)"
    words = density.explain(pd.Series({"sex": "male", "grade": 2, "income": None}))
    assert words.startswith("sex is male and grade is 1 to 3 and income is in [30, 100] or missing")
    assert "\n" not in words
    several = density.explain({"sex": None, "grade": 4, "income": 1.0}).splitlines()
    assert [line.split(":")[0] for line in several] == [
        "sex is female",
        "sex is male and grade is 4",
    ]


def test_evidence_decides_splits():
    """What is known is no longer asked."""
    conditional = grades().condition({"sex": "male"})
    assert conditional.node_dict()["feature"] == "grade"
    assert conditional.tree.n_leaves == 3
    assert conditional.counts[0] == 10.0
    assert conditional.conditions_words() == "sex is male"
    assert conditional.conditions_probability == pytest.approx(0.5)
    assert grades().condition({"sex": "female"}).tree == Tree.root()
    halved = grades().condition({"grade": [1, 2]})  # a leaf has as many rows in either half
    words = halved.explain({"sex": "female", "grade": 1, "income": 1.0})
    assert words.startswith("sex is female: 5 of")
