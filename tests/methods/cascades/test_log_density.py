"""Log densities of both models against twins, by hand, and under changes of the data's form."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import ParameterError
from bayescascade.data.table import Table
from bayescascade.methods.cascades.models import BranchModel, LeafModel
from bayescascade.methods.cascades.posterior import (
    BranchPosterior,
    LeafPosterior,
    log_stirling_numbers,
)
from bayescascade.methods.cascades.tree import Tree
from tests import reference
from tests.methods.cascades.problems import (
    BINS,
    BRANCH,
    FRACTIONAL,
    INCLUSION,
    INDEPENDENT_BRANCH,
    LEAF,
    LEVELS,
    MULTIWAY,
    PROBLEMS,
    WITH_OPTIONS,
    Problem,
    each,
    pairs,
    slowly,
)


@slowly(*PROBLEMS, model=BRANCH)
def test_every_tree_has_the_density_of_the_formula(problem, model):
    """Otherwise the tree printed as the most probable one is not."""
    posterior = model.on(problem)
    densities = np.array([posterior.log_density(tree) for tree in problem.trees])
    assert_allclose(densities, model.reference(problem), rtol=0, atol=1e-9)


@pairs(*WITH_OPTIONS, (BINS, INDEPENDENT_BRANCH), (LEVELS, INCLUSION))
def test_every_tree_has_the_density_of_the_formula_with_options(problem, model):
    """The same with independent leaves, levels that all go their own way, and a bound on leaves."""
    posterior = model.on(problem)
    densities = np.array([posterior.log_density(tree) for tree in problem.trees])
    assert_allclose(densities, model.reference(problem), rtol=0, atol=1e-9)


def test_the_twin_tells_one_parameter_from_another():
    """The comparison above must be able to fail."""
    posterior = LEAF.on(MULTIWAY)
    wrong = [
        reference.leaf_log_density(tree, MULTIWAY.record, 3.0, 1.6) for tree in MULTIWAY.nested
    ]
    right = [posterior.log_density(tree) for tree in MULTIWAY.trees]
    assert np.abs(np.subtract(right, wrong)).max() > 1e-3


def test_no_tree_is_listed_twice():
    """A tree counted twice would have twice its probability in every exact test."""
    for problem in PROBLEMS:
        assert len(set(problem.trees)) == len(problem.trees)


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


def test_inclusion_weighs_how_many_columns_are_used():
    """The thesis: ln C(p, d) + d ln gamma + (p - d) ln(1 - gamma), for d of p columns."""
    inclusion = BranchModel(feature_inclusion=0.3).log_inclusion(3)
    by_hand = [math.comb(3, d) * 0.3**d * 0.7 ** (3 - d) for d in range(4)]
    assert_allclose(np.exp(inclusion), by_hand)
    assert np.exp(inclusion).sum() == pytest.approx(1.0)


def test_prior_and_likelihood_add_up():
    """Traces report them apart; they must be the parts of what was sampled."""
    for model in (LeafPosterior, BranchPosterior):
        posterior = model(MULTIWAY.table)
        for tree in MULTIWAY.trees[::10]:
            total = posterior.log_prior(tree) + posterior.log_likelihood(tree)
            assert total == posterior.log_density(tree)


@pytest.mark.parametrize("name", ["expected_leaves", "concentration"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "2", None, True])
def test_leaf_model_refuses_bad_parameters(name, value):
    """A negative mean would give a NaN log posterior much later."""
    with pytest.raises(ParameterError, match=name):
        LeafModel(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expected_branches", 0.0),
        ("concentration", -2),
        ("feature_inclusion", 0.0),
        ("feature_inclusion", 1.0),
        ("feature_inclusion", "half"),
    ],
)
def test_branch_model_refuses_bad_parameters(name, value):
    """As above."""
    with pytest.raises(ParameterError, match=name):
        BranchModel(**{name: value})


@pytest.mark.parametrize("value", [1, 0, -3, 2.0, "2", True])
def test_posterior_refuses_bad_max_branches(value):
    """A tree whose splits have one branch is no tree."""
    with pytest.raises(ParameterError, match="max_branches must be an integer >= 2"):
        LeafPosterior(small_table(), max_branches=value)


def frame_of(problem: Problem, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame({c.name: rng.choice(list(c.levels), size=n_rows) for c in problem.columns})


@pytest.mark.parametrize("posterior", [LeafPosterior, BranchPosterior])
def test_renamed_levels_change_nothing(posterior, rng):
    """Whether a level is called "a" or "z" is not evidence."""
    frame = frame_of(MULTIWAY, 40, rng)
    names = {"a": "t", "b": "s", "c": "r"}  # the reverse order of codes
    renamed = frame.replace(names)
    one = posterior(Table.from_frame(frame), max_branches=3)
    other = posterior(Table.from_frame(renamed), max_branches=3)

    def mapped(nested):
        if nested is None:
            return None
        column, branches = nested
        top = MULTIWAY.n_levels[column] - 1
        return column, [
            (tuple(top - code for code in codes), mapped(child)) for codes, child in branches
        ]

    for nested in MULTIWAY.nested:
        tree = Tree.from_nested(nested, MULTIWAY.nominal)
        twin = Tree.from_nested(mapped(nested), MULTIWAY.nominal)
        assert one.log_density(tree) == pytest.approx(other.log_density(twin), abs=1e-9)


def test_shuffled_rows_change_nothing(rng):
    """The order of a file's rows is not evidence: not one bit may differ."""
    frame = frame_of(MULTIWAY, 60, rng)
    weights = rng.random(60)
    order = rng.permutation(60)
    tables = [
        Table.from_frame(frame, weights=weights),
        Table.from_frame(frame.iloc[order], weights=weights[order]),
    ]
    assert tables[0].fingerprint() == tables[1].fingerprint()
    one, other = (LeafPosterior(table, max_branches=3) for table in tables)
    for tree in MULTIWAY.trees[::7]:
        assert one.log_density(tree) == other.log_density(tree)


@each(BINS, models=[LEAF])
@pytest.mark.parametrize(("factor", "shift"), [(2.5, 0.0), (1.0, -40.0), (0.01, 3.0)])
def test_scaled_and_shifted_columns_move_the_density_by_a_known_constant(
    problem, model, factor, shift
):
    """Kilograms or grams: the same trees are probable, densities differ by the unit."""
    edges = {0: tuple(factor * edge + shift for edge in problem.edges[0])}
    moved = Problem(
        problem.name, problem.n_levels, problem.nominal, problem.max_branches, edges=edges
    )
    one, other = model.on(problem), model.on(moved)
    constant = -sum(problem.record["weights"]) * math.log(factor)
    for tree in problem.trees:
        expected = one.log_density(tree) + constant
        assert other.log_density(tree) == pytest.approx(expected, abs=1e-9)


def test_weights_stand_for_repeated_rows():
    """Three equal rows, or one of weight 3."""
    rows = [["a", "x"]] * 3 + [["b", "y"]] * 2 + [["b", "x"]]
    repeated = LeafPosterior(Table.from_arrays(rows))
    weighted = LeafPosterior(
        Table.from_arrays([["a", "x"], ["b", "y"], ["b", "x"]], sample_weight=[3, 2, 1])
    )
    tree = Tree.from_nested((0, [((0,), None), ((1,), (1, [((0,), None), ((1,), None)]))]), [1, 1])
    assert repeated.log_density(tree) == weighted.log_density(tree)


def test_node_statistics_count_what_is_inside():
    """Printed counts and volumes are those of the leaves' boxes."""
    posterior = LEAF.on(FRACTIONAL)
    for nested, tree in zip(FRACTIONAL.nested[::9], FRACTIONAL.trees[::9], strict=True):
        counts, log_volumes = posterior.node_statistics(tree)
        boxes = reference.leaves_of(nested, FRACTIONAL.n_levels)
        record = FRACTIONAL.record
        inside = [reference.weight_in(b, record["rows"], record["weights"]) for b in boxes]
        assert_allclose(counts[tree.leaves], inside, atol=1e-12)
        volumes = [reference.log_volume(box, record["widths"]) for box in boxes]
        assert_allclose(log_volumes[tree.leaves], volumes, atol=1e-12)
        assert counts[0] == pytest.approx(sum(record["weights"]))


def test_level_counts_are_those_of_the_rows_inside():
    """What is printed of the levels inside a leaf is what the leaf holds."""
    posterior, record = LEAF.on(FRACTIONAL), FRACTIONAL.record
    for nested, tree in zip(FRACTIONAL.nested[::9], FRACTIONAL.trees[::9], strict=True):
        counts, _ = posterior.node_statistics(tree)
        levels = posterior.level_counts(tree)
        for node, box in zip(
            tree.leaves, reference.leaves_of(nested, FRACTIONAL.n_levels), strict=True
        ):
            inside = [
                reference.weight_in(
                    (*box[:j], (code,), *box[j + 1 :]), record["rows"], record["weights"]
                )
                if code in box[j]
                else 0.0
                for j, n_levels in enumerate(FRACTIONAL.n_levels)
                for code in range(n_levels)
            ]
            assert_allclose(levels[node], inside, atol=1e-12)
        assert_allclose(np.add.reduceat(levels, [0, 3], axis=1), np.c_[counts, counts], atol=1e-12)


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
        "max_branches": 2,
        "partitions": "subsets",
    }
