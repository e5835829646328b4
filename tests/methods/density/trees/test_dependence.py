"""Leaves averaged over all trees of dependences: evidence, density, edges, compiled code."""

import numpy as np
import pytest

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.dependence import (
    DependentLeaf,
    edge_probabilities,
    pair_counts,
)
from bayescascade.methods.density.trees.posterior import BranchPosterior
from bayescascade.methods.density.trees.tree import level_starts, pack_block, root_box
from tests.methods.density.trees import slow_dependence as slow
from tests.methods.density.trees.problems import Problem
from tests.methods.lists.lists import cells_of
from tests.statistical.chi_square import fits

FIVE = Problem("five", (2, 3, 2, 2, 3), (True, True, False, True, False), 2, n_rows=30)
BINS = Problem(
    "bins", (3, 2, 4), (False, True, True), 2, edges={0: (-1.0, -0.5, 1.5, 2.0)}, fractional=True
)
PAIR = Problem("pair", (3, 4), (True, False), 2)
NO_ROWS = Problem("none", (2, 3, 2), (True, False, True), 2, n_rows=0)

BOXES = [
    (FIVE, {}, 1.0),
    (FIVE, {1: (0, 2), 4: (1, 2)}, 0.3),
    (FIVE, {0: (1,), 1: (0, 2)}, 7.0),
    (BINS, {}, 1.0),
    (BINS, {0: (0, 1), 2: (0, 2, 3)}, 2.5),
    (PAIR, {}, 1.0),
    (PAIR, {0: (1,)}, 4.0),
    (PAIR, {0: (1,), 1: (2,)}, 1.0),
    (NO_ROWS, {1: (0, 1)}, 1.0),
]
boxes = pytest.mark.parametrize(("problem", "kept", "a"), BOXES)


def box_of(problem, kept):
    """Return the codes left of every column."""
    return tuple(kept.get(j, tuple(range(q))) for j, q in enumerate(problem.n_levels))


def leaf_of(problem, kept, a, row=None):
    """Return the leaf of a problem's rows in a box, with one row more."""
    box = box_of(problem, kept)
    rows = [*zip(problem.record["rows"], problem.record["weights"], strict=True)]
    rows += [] if row is None else [(tuple(row), 1.0)]
    inside = [(r, w) for r, w in rows if all(c in b for c, b in zip(r, box, strict=True))]
    codes = np.array([r for r, _ in inside], np.int32).reshape(-1, len(box)).T
    counts = counts_of(problem.table.schema, codes, np.array([w for _, w in inside]))
    return DependentLeaf(problem.table.schema, words_of(problem, kept), counts, a)


def words_of(problem, kept):
    """Return a box as trees have it."""
    blocks = zip(problem.nominal, box_of(problem, kept), strict=True)
    return np.array([pack_block(nominal, block) for nominal, block in blocks], np.uint64)


def counts_of(schema, codes, weights):
    """Return the weights of all pairs of levels."""
    places = codes + level_starts(schema)[:-1, np.newaxis]
    has = np.array([(places == level).any(axis=0) for level in range(schema.n_levels.sum())], float)
    return (has * weights) @ has.T


def cells_in(problem, kept):
    """Return the cells of a box and their volumes."""
    cells, volumes = cells_of(problem.table.schema)
    box = box_of(problem, kept)
    inside = [all(c in b for c, b in zip(cell, box, strict=True)) for cell in cells.T]
    return cells[:, inside], volumes[inside]


@boxes
def test_evidence_and_densities_are_means_over_all_trees(problem, kept, a):
    """Each of the k^(k-2) trees is a product; one more row multiplies by its predictive density."""
    leaf = leaf_of(problem, kept, a)
    expected = slow.log_evidence(box_of(problem, kept), problem.record, a)
    assert leaf.log_evidence == pytest.approx(expected, rel=1e-12, abs=1e-12)
    cells, volumes = cells_in(problem, kept)
    scores = leaf.score_codes(cells)
    ratios = [leaf_of(problem, kept, a, cell).log_evidence for cell in cells.T]
    np.testing.assert_allclose(scores, np.array(ratios) - expected, rtol=1e-10, atol=1e-10)
    assert np.dot(np.exp(scores), volumes) == pytest.approx(1.0, rel=1e-12)
    if problem is BINS:  # whose widths differ
        assert abs(np.exp(scores).sum() - 1) > 0.01


@pytest.mark.parametrize("problem", [FIVE, BINS, PAIR, NO_ROWS])
def test_pairs_are_counted_in_the_rows_of_each_box(problem):
    """Boxes that hold few of the levels, and one that holds all."""
    schema, posterior = problem.table.schema, BranchPosterior(problem.table)
    chosen = [kept for one, kept, _ in BOXES if one is problem] + [{0: (0,)}]
    boxes = np.array([words_of(problem, kept) for kept in chosen])
    codes, weights = problem.table.codes, problem.table.weights
    for kept, found in zip(chosen, pair_counts(schema, posterior.arrays, boxes), strict=True):
        inside = np.all([np.isin(codes[j], own) for j, own in kept.items()], axis=0)
        np.testing.assert_allclose(found, counts_of(schema, codes, weights * inside), rtol=1e-12)


def test_no_rows_leave_all_cells_alike():
    """An empty leaf has no evidence for anything: its levels, a missing one too, are even."""
    schema = Schema(
        (
            Column("rain", "continuous", (), (0.0, 1.0, 5.0), has_missing_level=True),
            Column("sky", "nominal", ("blue", "grey")),
        )
    )
    leaf = DependentLeaf(schema, root_box(schema), np.zeros((5, 5)), 2.0)
    assert leaf.log_evidence == 0.0
    cells, volumes = cells_of(schema)
    np.testing.assert_allclose(np.exp(leaf.score_codes(cells)) * volumes, 1 / 6, rtol=1e-12)


def random_exponents(rng, k, largest):
    exponents = rng.integers(-largest, largest, (k, k))
    return np.triu(exponents, 1) + np.triu(exponents, 1).T


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("largest", [1, 3, 2000])
def test_edge_probabilities_are_sums_over_trees(rng, k, largest):
    """The share of the trees' weight that has an edge; k - 1 edges in all."""
    logs = random_exponents(rng, k, largest) * 0.7
    trees = list(slow.spanning_trees(k))
    values = np.array([sum(logs[s, t] for s, t in edges) for edges in trees])
    shares = np.exp(values - values.max())
    expected = np.zeros((k, k))
    for edges, share in zip(trees, shares / shares.sum(), strict=True):
        for s, t in edges:
            expected[s, t] += share
            expected[t, s] += share
    found = edge_probabilities(logs)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.sum() == pytest.approx(2 * (k - 1), abs=1e-10)


def copies(rng, n_levels, n_rows, weight):
    """Return random rows whose columns are noisy copies of each other, and their schema."""
    columns = [Column(f"c{j}", "ordinal", tuple(range(q))) for j, q in enumerate(n_levels)]
    first = rng.integers(0, 64, n_rows)
    noise = rng.integers(0, 64, (len(n_levels), n_rows)) * (
        rng.random((len(n_levels), n_rows)) < 0.1
    )
    codes = (first + noise) % np.array(n_levels)[:, np.newaxis]
    return Schema(tuple(columns)), codes, np.full(n_rows, weight)


@pytest.mark.parametrize("weight", [0.37, 1.0, 12.0, 18.0, 25.0, 40.0, 1e9])
def test_many_columns_of_huge_weights_do_not_overflow(rng, weight):
    """Twenty columns; log weights of pairs up to billions, floats hold 700."""
    schema, codes, weights = copies(rng, [2, 3, 2, 4] * 5, 60, weight)
    counts = counts_of(schema, codes, weights)
    leaf = DependentLeaf(schema, root_box(schema), counts, 1.0)
    log_range = np.ptp(leaf.log_weights)  # floats hold ratios of up to 700
    assert weight >= 2 or log_range < 500
    assert weight <= 30 or log_range > 1400
    evidence, densities = slow.formula(counts, schema.n_levels, codes, 1.0)
    assert leaf.log_evidence == pytest.approx(evidence, rel=1e-9)
    tolerance = 1e-9 * max(1.0, 1e-3 * weight)  # a difference of numbers of that size
    np.testing.assert_allclose(leaf.score_codes(codes), densities, rtol=0, atol=tolerance)


def test_strongest_pairs_are_the_columns_that_go_together(rng):
    """A copy is told, with the levels that meet; what has nothing to do with it is not."""
    first, other = rng.integers(0, 3, 200), rng.integers(0, 2, 200)
    codes = np.array([other, first, np.zeros(200, np.int64), np.where(first == 1, 1, 0)])
    columns = [
        Column(name, "nominal", tuple("abc"[:q]))
        for name, q in zip("pqrs", (2, 3, 1, 2), strict=True)
    ]
    schema = Schema(tuple(columns))
    counts = counts_of(schema, codes, np.ones(200))
    leaf = DependentLeaf(schema, root_box(schema), counts, 1.0)
    (pair,) = leaf.strongest_pairs
    assert pair.columns == (1, 3)
    assert pair.codes == (1, 1)
    assert pair.probability > 0.999
    share = np.mean(first == 1)
    assert pair.together == pytest.approx((200 * share + 1 / 6) / 201)
    assert pair.apart == pytest.approx(((200 * share + 1 / 3) * (200 * share + 1 / 2)) / 201**2)
    assert pair.words(schema).startswith("q is b with s is b 0.")
    few = DependentLeaf(schema, root_box(schema), counts / 100, 1.0)
    assert few.strongest_pairs == []


@pytest.mark.parametrize(
    ("problem", "kept", "a"),
    [*(pytest.param(*BOXES[i], marks=pytest.mark.slow) for i in (1, 4, 6)), BOXES[7]],
)
def test_rows_drawn_follow_the_density(problem, kept, a, rng):
    """Not that of the best tree, or of independent columns; levels not left are never drawn."""
    leaf = leaf_of(problem, kept, a)
    cells, volumes = cells_in(problem, kept)
    shape = tuple(problem.n_levels)
    places = {cell: i for i, cell in enumerate(np.ravel_multi_index(cells, shape).tolist())}
    drawn = leaf.sample_codes(4000, rng)
    indices = [places[cell] for cell in np.ravel_multi_index(drawn, shape).tolist()]
    assert fits(indices, np.exp(leaf.score_codes(cells)) * volumes)
    if cells.shape[1] > 4:
        levels = leaf.level_probabilities[cells + level_starts(problem.table.schema)[:-1, None]]
        assert not fits(indices, levels.prod(axis=0))


def test_trees_are_drawn_in_proportion_where_weights_hardly_connect(rng):
    """A random walk between the two groups would never end."""
    problem = Problem("copies", (2, 2, 2, 2), (True,) * 4, 2)
    codes = np.repeat([[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]], 500, axis=0).T
    schema = problem.table.schema
    leaf = DependentLeaf(schema, root_box(schema), counts_of(schema, codes, np.ones(2000)), 1.0)
    assert np.ptp(leaf.log_weights) > 1000
    drawn = leaf.sample_codes(300, rng)
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[2] == drawn[3]).all()
    assert 0.35 < np.mean(drawn[0] == drawn[2]) < 0.65
