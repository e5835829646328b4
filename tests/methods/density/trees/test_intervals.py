"""Credible intervals of densities: how sure they say one is, against distributions known exactly.

An end is the quantile of `N_DRAWS` draws, so the exact distribution function at it is within a few
Monte Carlo standard errors of what it should be: `holds` allows five, a chance of 1 in 2 million.
Intervals of other posteriors, the broken twins, must be told apart.
"""

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.integrate import quad
from scipy.stats import beta

from bayescascade.base.errors import ParameterError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.counted_tree import N_DRAWS, CountedTree, density_intervals
from bayescascade.methods.density.trees.models import BranchModel, LeafModel
from bayescascade.methods.density.trees.tree import Tree
from tests.methods.density.trees.fits import ESTIMATORS, fitted, people

both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.model_name)

SCHEMA = Schema(
    (
        Column("sky", "nominal", ("blue", "grey")),
        Column("rain", "continuous", (), (0.0, 1.0, 5.0, 20.0)),
    )
)
KINDS = (True, False)
ONE = Tree.from_nested((0, [((0,), None), ((1,), None)]), KINDS)
TWO = Tree.from_nested((0, [((0,), None), ((1,), (1, [((0, 1), None), ((2,), None)]))]), KINDS)
RAINY = Tree.from_nested((1, [((0,), None), ((1, 2), None)]), KINDS)

BLUE, GREY, DRY, NOTHING = (0, 2), (1, 1), (-1, 0), (-1, -1)


def counted(tree, leaf_counts, level_counts=None):
    counts = np.zeros(tree.n_nodes)
    counts[tree.leaves] = leaf_counts
    for node in range(tree.n_nodes - 1, 0, -1):
        counts[tree.parent[node]] += counts[node]
    return CountedTree(tree, counts, None if level_counts is None else np.array(level_counts))


def intervals(model, trees, cells, shares=(1.0,), level=0.9):
    codes = np.array(cells, np.int32).T
    return density_intervals(SCHEMA, model, trees, np.array(shares), codes, level)


def holds(interval, distribution, level=0.9):
    """Whether an exact distribution function is at the ends what it should be."""
    wanted = np.array([(1 - level) / 2, (1 + level) / 2])
    error = 5 * np.sqrt(wanted * (1 - wanted) / N_DRAWS)
    return bool((np.abs([distribution(end) for end in interval] - wanted) < error).all())


@pytest.mark.parametrize("model", [LeafModel(concentration=2.0), BranchModel(concentration=2.0)])
def test_one_split_is_a_beta(model):
    """Of two leaves, one's probability is a Beta variate, in both models."""
    ((low, high),) = intervals(model, [counted(ONE, [12.0, 30.0])], [BLUE])
    assert holds((low, high), lambda density: beta.cdf(20 * density, 14, 32))
    assert not holds((low, high), lambda density: beta.cdf(20 * density, 12, 30))
    assert not holds((low, high), lambda density: beta.cdf(20 * density, 26, 62))


def test_the_leaf_model_has_one_dirichlet_and_the_branch_model_one_a_split():
    """A leaf below two splits: one Beta of all leaves, or a product of two."""
    tree, volume = counted(TWO, [12.0, 7.0, 23.0]), 5.0

    def one(density):
        return beta.cdf(volume * density, 27, 32 + 43)

    def product(density):
        def inside(first):
            return beta.pdf(first, 50, 32) * beta.cdf(volume * density / first, 27, 43)

        return quad(inside, 0.0, 1.0)[0]

    (by_leaf,) = intervals(LeafModel(concentration=20.0), [tree], [GREY])
    (by_branch,) = intervals(BranchModel(concentration=20.0), [tree], [GREY])
    assert holds(by_leaf, one)
    assert holds(by_branch, product)
    assert not holds(by_leaf, product)
    assert not holds(by_branch, one)


@pytest.mark.slow
def test_levels_inside_independent_leaves_are_uncertain_as_well():
    """A leaf that is certain: the density is that of the levels, over the bin's width."""
    levels = [[8.0, 32.0, 10.0, 6.0, 24.0]]
    model = LeafModel(leaf="independent", leaf_concentration=1.5)
    tree = counted(Tree.root(), [40.0], levels)
    (dry,) = intervals(model, [tree], [DRY])
    assert holds(dry, lambda density: beta.cdf(density, 11.5, 33))
    assert not holds(dry, lambda density: beta.cdf(density, 10, 30))
    (blue,) = intervals(model, [tree], [BLUE])

    def product(density):
        def inside(first):
            return beta.pdf(first, 9.5, 33.5) * beta.cdf(15 * density / first, 25.5, 19)

        return quad(inside, 0.0, 1.0)[0]

    assert holds(blue, product)
    (uniform,) = intervals(LeafModel(), [counted(Tree.root(), [40.0])], [BLUE])
    assert uniform.tolist() == pytest.approx([1 / 40, 1 / 40])
    assert not holds(uniform, product)


def test_trees_are_as_likely_as_they_were_drawn():
    """Over two trees the density is a mixture, with the shares of the draws."""
    trees = [counted(ONE, [12.0, 30.0]), counted(RAINY, [22.0, 20.0])]
    (blue,) = intervals(LeafModel(concentration=2.0), trees, [BLUE], shares=[0.25, 0.75])

    def mixture(share):
        return lambda d: share * beta.cdf(20 * d, 14, 32) + (1 - share) * beta.cdf(38 * d, 22, 24)

    assert holds(blue, mixture(0.25))
    assert not holds(blue, mixture(0.75))
    assert not holds(blue, mixture(0.5))


def test_missing_cells_are_integrated_out():
    """Rain is independent of the sky's split: nothing but its bin's width is known of it."""
    tree = counted(ONE, [12.0, 30.0])
    dry, nothing, sky = intervals(LeafModel(), [tree], [DRY, NOTHING, (0, -1)])
    assert dry.tolist() == pytest.approx([1 / 20, 1 / 20])
    assert nothing.tolist() == pytest.approx([1.0, 1.0])
    assert holds(sky, lambda density: beta.cdf(density, 14, 32))


def test_tiny_concentrations_underflow_nothing():
    """Gamma variates of such shapes are 0 in floats, and all of a leaf's would be."""
    model = LeafModel(concentration=1e-4, leaf="independent", leaf_concentration=1e-4)
    tree = counted(ONE, [0.0, 5.0], [[0.0] * 5, [0.0, 5.0, 5.0, 0.0, 0.0]])
    found = intervals(model, [tree], [BLUE, GREY, NOTHING])
    assert np.isfinite(found).all()
    assert found[2].tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    "options",
    [{}, pytest.param({"leaf": "independent"}, marks=pytest.mark.slow)],
    ids=["uniform", "independent"],
)
@pytest.mark.parametrize(
    "estimator", [ESTIMATORS[0], pytest.param(ESTIMATORS[1], marks=pytest.mark.slow)]
)
def test_rows_get_intervals_around_their_densities(estimator, options):
    """Wider over trees; the same each time, and in whatever company."""
    model, frame = fitted(estimator, predictive="average", **options), people(12, seed=5)
    found = model.credible_interval(frame)
    assert found.shape == (12, 2)
    density = np.exp(model.score_samples(frame))
    assert ((found[:, 0] < density) & (density < found[:, 1])).all()
    assert_array_equal(model.credible_interval(frame), found)
    assert_array_equal(model.credible_interval(frame.iloc[7]), found[7:8])
    inner = model.credible_interval(frame, level=0.5)
    assert ((found[:, 0] < inner[:, 0]) & (inner[:, 1] < found[:, 1])).all()


@both
def test_the_most_probable_tree_has_intervals_of_its_own(estimator):
    """With predictive "map", as scores are: of that tree's probabilities alone."""
    model, row = fitted(estimator), people(1, seed=5)
    interval = model.credible_interval(row)
    codes = model.schema_.encode(row)
    alone = density_intervals(
        model.schema_, model.posterior_.model, [model._best], np.ones(1), codes, 0.95
    )
    assert_array_equal(interval, alone)
    assert_array_equal(fitted(estimator, density="empirical").credible_interval(row), alone)


def test_intervals_that_cannot_be_are_errors():
    """Say which parameter is wrong, and why there is nothing to average over."""
    model = fitted(ESTIMATORS[0])
    for level in (0.0, 1.0, "0.9"):
        with pytest.raises(ParameterError, match="level must be"):
            model.credible_interval(people(3), level)
    annealed = copy.copy(fitted(ESTIMATORS[0], search="anneal"))
    annealed.set_params(predictive="average")
    with pytest.raises(ParameterError, match='predictive must be "map" for a model without draws'):
        annealed.credible_interval(people(3))
