"""All trees of few fixed columns, against lists of every tree."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bayescascade.base.errors import InternalError
from bayescascade.data.splitting import with_weights
from bayescascade.data.table import Table
from bayescascade.methods.density.trees import shallow_trees
from bayescascade.methods.density.trees.posterior import BranchPosterior
from bayescascade.methods.density.trees.shallow_trees import ShallowTrees
from bayescascade.methods.density.trees.tree import Tree
from tests.methods.density.trees.problems import Problem
from tests.methods.density.trees.slow_dependence import (
    TemperedTrees,
    depth,
    log_sum,
    tree_log_density,
)
from tests.methods.lists.lists import cells_of
from tests.reference import log_process
from tests.statistical.chi_square import fits

RATE, ALPHA, A = 1.8, 0.7, 1.3
SETTINGS = {"partitions": "levels", "leaf": "dependent", "leaf_concentration": A}


def trees_of(problem, max_depth, temper=None, columns=None, **changed):
    posterior = BranchPosterior(problem.table, RATE, ALPHA, **SETTINGS, **changed)
    return ShallowTrees(posterior, max_depth, temper, columns)


# columns of which any two say nothing about the third, and both nearly everything
PARITY = {row: float(8 - 7 * (sum(row) % 2)) for row in itertools.product(range(2), repeat=3)}
BINARY = Problem("parity", (2, 2, 2), (True, True, True), 2, partitions="levels", given=PARITY)
MIXED = Problem("mixed", (3, 2, 2, 1), (True, False, True, True), 3, partitions="levels", n_rows=9)
BINS = Problem(
    "bins", (3, 2, 2), (False, True, True), 3, edges={0: (-1.0, -0.5, 1.5, 2.0)}, fractional=True,
    partitions="levels",
)  # fmt: skip
FEW = Problem("few", (2, 3, 2), (True, True, False), 3, partitions="levels", n_rows=2)
NO_ROWS = Problem("none", (2, 3), (True, False), 2, partitions="levels", n_rows=0)

RECORD = {
    problem: {**problem.record, "partitions": "levels", "max_branches": 9}
    for problem in (BINARY, MIXED, BINS, FEW, NO_ROWS)
}
CASES = [(BINARY, 3), (BINARY, 1), (MIXED, 2), (BINS, 2), (FEW, 2), (BINARY, 0), (NO_ROWS, 2)]
cases = pytest.mark.parametrize(
    ("problem", "max_depth"), CASES, ids=[f"{p.name}-{d}" for p, d in CASES]
)


def listed(problem, max_depth, row=None):
    """Return every tree of that depth, nested, and its log density, with a row more or without."""
    trees = [tree for tree in problem.nested if depth(tree) <= max_depth]
    return trees, np.array(
        [tree_log_density(tree, problem.record, RATE, ALPHA, A, row) for tree in trees]
    )


@cases
def test_evidence_best_tree_and_first_splits_are_those_of_all_trees(problem, max_depth):
    """Of prior times likelihood of each tree that fixes no more columns on a path."""
    found = trees_of(problem, max_depth)
    trees, values = listed(problem, max_depth)
    assert found.log_normalizer == pytest.approx(log_sum(values), rel=1e-12)
    if len(trees) > 1:
        all_but_the_second = np.sort(values)[np.arange(len(values)) != len(values) - 2]
        assert abs(log_sum(all_but_the_second) - log_sum(values)) > 1e-4
        assert values.min() < values.max() - 1e-6
    best = dict(zip(trees, values, strict=True))[nested(found.tree, problem)]
    assert best == pytest.approx(values.max(), rel=1e-12)
    shares = np.zeros(len(problem.n_levels) + 1)  # the last of no split
    for tree, share in zip(trees, np.exp(values - log_sum(values)), strict=True):
        shares[-1 if tree is None else tree[0]] += share
    assert found.first_splits == pytest.approx(shares, abs=1e-12)


@pytest.mark.parametrize("columns", [[0, 2], [1], []])
def test_trees_may_be_of_some_columns(columns):
    """The sum is that of the listed trees that split no others."""

    def splits(tree):
        if tree is None:
            return set()
        return {tree[0]}.union(*(splits(below) for _, below in tree[1]))

    trees, values = listed(MIXED, 2)
    kept = [value for tree, value in zip(trees, values, strict=True) if splits(tree) <= {*columns}]
    found = trees_of(MIXED, 2, columns=columns)
    assert found.log_normalizer == pytest.approx(log_sum(np.array(kept)), rel=1e-12)
    assert abs(log_sum(values) - found.log_normalizer) > 1e-4


@cases
def test_densities_are_averages_over_all_trees(problem, max_depth):
    """A row's density is the ratio of the evidences with and without it, also in empty boxes."""
    found = trees_of(problem, max_depth)
    cells, volumes = cells_of(problem.table.schema)
    densities = np.exp(found.log_predictive(cells))
    before = listed(problem, max_depth)[1]
    after = np.array([listed(problem, max_depth, tuple(cell))[1] for cell in cells.T])
    expected = [math.exp(log_sum(each) - log_sum(before)) for each in after]
    np.testing.assert_allclose(densities, expected, rtol=1e-9)
    assert np.dot(densities, volumes) == pytest.approx(1.0, rel=1e-9)
    if (problem, max_depth) == CASES[0]:  # not that of the best tree, nor that of all alike
        ratios = np.exp(after - before)
        assert abs(ratios[:, before.argmax()] - densities).max() > 1e-4
        assert abs(ratios.mean(axis=1) - densities).max() > 1e-3


PROCESS = {"prior": "generative", "stop": 0.35}


@pytest.mark.parametrize(
    ("problem", "max_depth"), [(BINARY, 1), (MIXED, 2), (BINS, 2), (NO_ROWS, 2)]
)
@pytest.mark.parametrize(
    "changed",
    [{"leaf": "uniform"}, {"leaf": "independent"}, {"leaf": "uniform", **PROCESS}, PROCESS],
    ids=["uniform", "independent", "process-uniform", "process-dependent"],
)
def test_sums_are_those_of_the_posterior(problem, max_depth, changed):
    """Evidence and densities are those of every tree, by the posterior's own density, summed up."""
    nested = [tree for tree in problem.nested if depth(tree) <= max_depth]

    def log_evidence(table):
        posterior = BranchPosterior(table, RATE, ALPHA, **{**SETTINGS, **changed})
        nominal = posterior.is_nominal
        values = [posterior.log_density(Tree.from_nested(tree, nominal)) for tree in nested]
        return log_sum(np.array(values)), ShallowTrees(posterior, max_depth)

    table = problem.table
    before, found = log_evidence(table)
    assert found.log_normalizer == pytest.approx(before, rel=1e-12)
    cells, volumes = cells_of(table.schema)
    densities = np.exp(found.log_predictive(cells))
    assert np.dot(densities, volumes) == pytest.approx(1.0, rel=1e-9)
    if table.n_distinct == 0:
        return
    present = np.flatnonzero((table.codes[:, :1] == cells).all(axis=0))[0]
    more = with_weights(table, table.weights + (np.arange(table.n_distinct) == 0))
    ratio = math.exp(log_evidence(more)[0] - before)
    assert densities[present] == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize(
    ("problem", "max_depth"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] in (MIXED, FEW))) for case in CASES],
    ids=[f"{p.name}-{d}" for p, d in CASES],
)
def test_a_process_may_end_at_a_depth(problem, max_depth):
    """Every node there is a leaf: the prior still sums to one, and of no other trees."""
    settings = {**SETTINGS, **PROCESS, "max_depth": max_depth}
    posterior = BranchPosterior(problem.table, RATE, ALPHA, **settings)
    found, nominal = ShallowTrees(posterior, max_depth), posterior.is_nominal
    trees = [Tree.from_nested(tree, nominal) for tree in problem.nested]
    is_shallow = np.array([depth(tree) <= max_depth for tree in problem.nested])
    priors = np.exp([posterior.log_prior(tree) for tree in trees])
    twins = [log_process(tree, RECORD[problem], 0.35, max_depth) for tree in problem.nested]
    np.testing.assert_allclose(priors, np.exp(twins), rtol=1e-12)
    assert priors[is_shallow].sum() == pytest.approx(1.0, rel=1e-12)
    assert priors[~is_shallow].sum() == 0.0
    values = np.array([posterior.log_density(tree) for tree in trees])
    assert found.log_normalizer == pytest.approx(log_sum(values), rel=1e-12)
    assert found.log_evidence == pytest.approx(found.log_normalizer, rel=1e-12, abs=1e-12)
    assert found.log_density == pytest.approx(values.max(), rel=1e-12)
    free = BranchPosterior(problem.table, RATE, ALPHA, **{**SETTINGS, **PROCESS})
    if 0 < max_depth < int((posterior.schema.n_levels > 1).sum()):  # broken: it does not end there
        mass = np.exp([free.log_prior(tree) for tree in trees])[is_shallow].sum()
        assert mass < 1.0 - 1e-3
        state, rng = posterior.initial_state(np.random.default_rng(0)), np.random.default_rng(0)
        state, counts = posterior.advance(rng, state, 2_000, 1.0)
        assert state.depth <= max_depth
        assert counts.best_log_density <= values.max() + 1e-9


def nested(tree: Tree, problem):
    """Return a tree as `reference` has it."""

    def hashable(node):
        if node is None:
            return None
        return node[0], tuple((tuple(codes), hashable(child)) for codes, child in node[1])

    return hashable(tree.to_nested(problem.nominal))


@pytest.mark.parametrize(("problem", "max_depth"), [(BINARY, 2), (FEW, 2)])
def test_draws_follow_the_posterior(problem, max_depth, rng):
    """Each tree as often as its share of the evidence; not as its share of the prior."""
    posterior = trees_of(problem, max_depth)
    trees, values = listed(problem, max_depth)
    index = {tree: i for i, tree in enumerate(trees)}
    drawn = [index[nested(tree, problem)] for tree in posterior.sample(3000, rng)]
    assert fits(drawn, np.exp(values - values.max()))
    if problem is BINARY:  # two rows say too little
        nothing = {**problem.record, "rows": [], "weights": []}
        priors = [tree_log_density(tree, nothing, RATE, ALPHA, A) for tree in trees]
        assert not fits(drawn, np.exp(np.array(priors)))


@pytest.mark.parametrize("temper", [None, 2.5])
@pytest.mark.parametrize("more", [{}, {"prior": "generative"}])
@cases
def test_densities_of_trees_are_sums_over_their_boxes(problem, max_depth, temper, more, rng):
    """Traces of draws would otherwise need to count all rows again, for each draw."""
    found = trees_of(problem, max_depth, temper, **more)
    for tree in {*found.sample(30, rng), found.tree}:
        assert found.log_density_of(tree) == pytest.approx(found.posterior.log_density(tree))


TEMPERED = [(BINARY, 3, 5.0), (MIXED, 2, 2.5), (BINS, 2, 8.0), (FEW, 2, 0.5)]


@pytest.mark.parametrize(("problem", "max_depth", "temper"), TEMPERED)
def test_tempered_boxes_decide_as_if_they_held_fewer_rows(problem, max_depth, temper):
    """The recursion's definition, box by box; what it gives is still a density."""
    found = trees_of(problem, max_depth).tempered(temper)
    twin = TemperedTrees(problem.record, RATE, ALPHA, A, max_depth, temper)
    cells, volumes = cells_of(problem.table.schema)
    densities = np.exp(found.log_predictive(cells))
    np.testing.assert_allclose(densities, [twin.density(tuple(c)) for c in cells.T], rtol=1e-9)
    assert np.dot(densities, volumes) == pytest.approx(1.0, rel=1e-9)
    assert found.log_evidence == pytest.approx(twin.choices(twin.root)[0], rel=1e-12)
    plain = np.exp(trees_of(problem, max_depth).log_predictive(cells))
    assert abs(plain - densities).max() > 1e-5


def test_tempering_above_the_number_of_rows_is_none():
    """Then every box decides by all that it holds."""
    cells, _ = cells_of(BINARY.table.schema)
    plain = trees_of(BINARY, 3)
    capped = trees_of(BINARY, 3, temper=BINARY.table.total_weight)
    assert capped.tempered(1.0).log_evidence != capped.log_evidence
    assert capped.log_evidence == pytest.approx(plain.log_evidence, rel=1e-14)
    np.testing.assert_allclose(
        capped.log_predictive(cells), plain.log_predictive(cells), rtol=1e-12
    )


@cases
def test_tempers_are_scored_together_as_one_by_one(problem, max_depth):
    """One above the number of rows is of no effect, to the last bit, so that none is as good."""
    tempers = (None, 6.0, 2.0, 0.5, problem.table.total_weight + 1.0)
    cells, _ = cells_of(problem.table.schema)
    whole = trees_of(problem, max_depth)
    found = whole.score_tempers(replace(problem.table, codes=cells), tempers)
    expected = [whole.tempered(c).log_predictive(cells) for c in tempers]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert found[0].tolist() == found[-1].tolist()
    if max_depth > 1 and problem.table.total_weight > 2.0:
        assert abs(found[0] - found[3]).max() > 1e-3


@pytest.mark.parametrize("limit", ["_ROWS_AT_ONCE", "_CELLS_AT_ONCE"])
def test_how_much_is_done_at_once_is_of_no_effect(limit, rng, monkeypatch):
    """Rows and boxes that do not fit together are scored after each other, in any order."""
    cells, _ = cells_of(MIXED.table.schema)
    whole = trees_of(MIXED, 2)
    scores = whole.log_predictive(cells)
    chosen = rng.integers(0, cells.shape[1], 30)
    np.testing.assert_allclose(whole.log_predictive(cells[:, chosen]), scores[chosen], rtol=1e-12)
    assert whole.log_predictive(cells[:, :0]).shape == (0,)
    monkeypatch.setattr(shallow_trees, limit, 30)
    parts = trees_of(MIXED, 2)
    assert parts.log_evidence == whole.log_evidence
    np.testing.assert_allclose(parts.log_predictive(cells), scores, rtol=1e-12)


def test_missing_cells_are_integrated_out():
    """The density of the cells that are there, over bins of different widths."""
    posterior = trees_of(BINS, 2)
    cells, volumes = cells_of(BINS.table.schema)
    masses = np.exp(posterior.log_predictive(cells)) * volumes
    rows = np.array([[1, -1, 0], [-1, -1, 1], [-1, -1, -1], [2, 1, 1]], np.int32).T
    widths = [column.widths for column in BINS.table.schema.columns]
    expected = []
    for row in rows.T:
        holds = np.all((row == cells.T) | (row < 0), axis=1)
        known = [w[code] for w, code in zip(widths, row, strict=True) if code >= 0]
        expected.append(masses[holds].sum() / np.prod(known))
    np.testing.assert_allclose(np.exp(posterior.log_predictive(rows)), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_depth": -1}, "max_depth must be an integer >= 0, got -1"),
        ({"feature_inclusion": 0.5}, "feature_inclusion must be None for all trees, got 0.5"),
        ({"temper": 0.0}, "temper must be .* > 0, got 0.0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        trees_of(BINARY, **{"max_depth": 2, **settings})


def test_many_rows_are_added_as_precisely_as_is_promised(monkeypatch):
    """Else no tree of a large table is certified: widths added one by one are off by too much."""
    rng = np.random.default_rng(0)
    frame = {f"c{j}": rng.integers(0, 12, 200_000) for j in range(5)}
    frame["x"] = rng.uniform(0.0, 2e-300, 200_000)
    table = Table.from_arrays(frame, continuous={"x": (0.0, 1e-300, 2e-300)})
    assert table.n_distinct > 100_000
    posterior = BranchPosterior(table, partitions="levels", leaf="independent")
    assert ShallowTrees(posterior, 0).tree.n_leaves == 1

    pairwise = np.add.reduceat

    def one_by_one(numbers, starts, **how):
        if numbers.ndim > 1:
            return pairwise(numbers, starts, **how)
        return np.array([np.cumsum(part)[-1] for part in np.split(numbers, starts[1:])])

    broken = SimpleNamespace(**{**vars(np), "add": SimpleNamespace(reduceat=one_by_one)})
    monkeypatch.setattr(shallow_trees, "np", broken)
    with pytest.raises(InternalError):
        _ = ShallowTrees(posterior, 0).tree
