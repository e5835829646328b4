"""The density estimation tree is the paper's: greedy, pruned at weakest links, chosen fairly."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from bayescascade import DensityEstimationTree, Table
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.methods.density.trees import det
from bayescascade.methods.density.trees.det import _between, _grow, _scores
from bayescascade.methods.density.trees.greedy import grow, prune, weakest_links
from tests.cli.conftest import DATA, TITANIC
from tests.methods.density.trees import greedy

KINDS = ("nominal", "ordinal", "continuous")


def random_problem(rng, most_columns=3):
    """Return a small problem as the twins take it, and its schema, codes and weights."""
    columns = []
    for j in range(int(rng.integers(1, most_columns + 1))):
        kind, size = str(rng.choice(KINDS)), int(rng.integers(1, 5))
        if kind == "continuous":
            edges = np.cumsum(rng.uniform(0.2, 3.0, size + 1))
            columns.append(Column(f"c{j}", kind, (), tuple(edges.tolist())))
        else:
            columns.append(Column(f"c{j}", kind, tuple("abcd"[:size])))
    schema = Schema(tuple(columns))
    cells = list(itertools.product(*(range(q) for q in schema.n_levels)))
    kept = [cell for cell in cells if rng.random() < 0.7] or cells
    weights = rng.uniform(0.1, 4.0, len(kept))  # no two splits gain the same but by symmetry
    record = {
        "n_levels": tuple(schema.n_levels.tolist()),
        "nominal": tuple(column.kind == "nominal" for column in columns),
        "widths": [column.widths.tolist() for column in columns],
        "rows": kept,
        "weights": weights.tolist(),
    }
    return record, schema, np.array(kept, np.int32).T.reshape(len(columns), -1), weights


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("least", "most"), [(0.0, 0.0), (0.0, 3.0), (2.5, 4.0)])
def test_every_step_is_the_best_of_all_two_way_splits(seed: int, least: float, most: float) -> None:
    """Levels are only cut by density, or by order so that leaves are large enough."""
    record, schema, codes, weights = random_problem(np.random.default_rng(seed))
    if least > 0.0:
        columns = [Column(c.name, "ordinal", tuple(range(c.n_levels))) for c in schema.columns]
        schema = Schema(tuple(columns))
        record |= {"nominal": (False,) * len(columns), "widths": [c.widths for c in columns]}
    found = grow(schema, codes, weights[None], min_leaf_size=least, max_leaf_size=most)
    expected = greedy.grown(record, least, most)
    assert listed(found.tree.to_nested(record["nominal"])) == listed(expected)
    assert next(found.tree.problems(schema), None) is None
    total = found.errors[found.tree.leaves].sum()
    assert total == pytest.approx(greedy.tree_error(expected, record), rel=1e-9)


def listed(nested):
    if nested is None:
        return None
    column, branches = nested
    return column, [(tuple(codes), listed(child)) for codes, child in branches]


def test_the_error_by_hand() -> None:
    """Eight rows on a 2 x 3 table: R = -(n_t / n)^2 / v_t, the domain's volume being 1."""
    schema = Schema((Column("a", "nominal", ("x", "y")), Column("b", "ordinal", (1, 2, 3))))
    codes = np.array([[0, 0, 1], [0, 1, 2]])
    grown = grow(schema, codes, np.array([[5.0, 2, 1]]), min_leaf_size=0, max_leaf_size=5)
    # the whole: -1; b splits best: level 1 has 5/8 of the rows on 1/3 of the cells, 1.171875 and
    # .2109375 in all; a: 7/8 on a half and 1/8 on a half, 1.53125 and .03125, which is better
    assert grown.tree.to_nested((True, False)) == (
        0,
        [((0,), (1, [((0,), None), ((1, 2), None)])), ((1,), None)],
    )
    assert_allclose(grown.errors, [-1, -1.53125, -(25 / 64) * 6, -(4 / 64) * 3, -1 / 32])
    links = weakest_links(grown.tree, grown.errors)
    # below a is x: 2.34375 + .1875 - 1.53125 = 1 for one leaf more; everything: .5625 + 1, for two
    assert_allclose(links, [0.78125, 0.78125, 0, 0, 0])


@pytest.mark.parametrize("seed", range(8))
def test_pruning_finds_the_least_of_error_and_complexity(seed: int) -> None:
    """Of all subtrees the pruned one is best for its complexity, and the smallest such."""
    record, schema, codes, weights = random_problem(np.random.default_rng(seed), most_columns=2)
    grown = grow(schema, codes, weights[None], min_leaf_size=0.0, max_leaf_size=2.0)
    links = weakest_links(grown.tree, grown.errors)
    subtrees = greedy.pruned_trees(grown.tree.to_nested(record["nominal"]))
    errors = [greedy.tree_error(tree, record) for tree in subtrees]
    sizes = [len(greedy.reference.leaves_of(tree, record["n_levels"])) for tree in subtrees]
    for complexity in [*_between(links), *links, 0.0]:
        pruned, kept = prune(grown.tree, links, complexity)
        found = grown.errors[kept][pruned.leaves].sum() + complexity * pruned.n_leaves
        costs = np.array(errors) + complexity * np.array(sizes)
        assert found == pytest.approx(costs.min(), rel=1e-9)
        smallest = min(np.array(sizes)[costs < costs.min() + 1e-9])
        assert pruned.n_leaves == smallest


@pytest.mark.parametrize("choose_by", ["likelihood", "squared_error"])
def test_folds_are_scored_as_trees_of_their_own_would_score_them(rng, choose_by):
    """All complexities are scored at once; each must be what learning for it alone gives."""
    table = Table.from_csv(TITANIC)
    settings = DensityEstimationTree(choose_by=choose_by)
    complexities = _between(_grow(table, table.weights[None], settings, settings.max_leaf_size)[1])
    held_out = split_rows(table.weights, 4, rng)[0]
    scores = _scores(table, held_out, complexities, settings, settings.max_leaf_size)
    others, scored = with_weights(table, table.weights - held_out), with_weights(table, held_out)
    for complexity, score in zip(complexities, scores, strict=True):
        model = DensityEstimationTree(complexity=float(complexity)).fit(others)
        if choose_by == "likelihood":
            domain = model.tree_.log_volumes[0]
            expected = model.score(scored) + scored.total_weight * domain
        else:
            model.set_params(density="empirical")
            leaves = model.tree_.tree.leaves
            shares, volumes = model.tree_.probabilities[leaves], model.tree_.log_volumes[leaves]
            domain = np.exp(model.tree_.log_volumes[0])
            integral = domain * np.sum(shares**2 / np.exp(volumes))
            densities = domain * np.exp(model.score_samples(scored))
            expected = 2 * scored.weights @ densities - scored.total_weight * integral
        assert score == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_the_chosen_tree_predicts_better_than_the_grown_and_the_root(rng):
    """Where rows are few for the cells, a tree that is not pruned is worse than none."""
    table = Table.from_csv(DATA / "housebreak.csv")
    halves = split_rows(table.weights, 2, rng)
    seen, held_out = (with_weights(table, half) for half in halves)
    scores = {
        complexity: DensityEstimationTree(complexity=complexity, random_state=0)
        .fit(seen)
        .score(held_out)
        for complexity in (None, 0.0, 1e9)
    }
    assert scores[None] > max(scores[0.0], scores[1e9])


def test_of_trees_that_predict_alike_the_smallest_is_chosen(monkeypatch):
    """What other rows do not tell apart must not be read as a finding."""
    monkeypatch.setattr(det, "_scores", lambda *given: np.ones(given[2].shape))
    rows = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 10, "wind": ["yes", "no"] * 20})
    assert DensityEstimationTree(complexity=0.0).fit(rows).tree_.n_leaves > 1
    assert DensityEstimationTree(random_state=0).fit(rows).tree_.n_leaves == 1


def test_an_empty_leaf_has_density() -> None:
    """One row held out in an empty leaf must not make the score of all rows -inf."""
    model = DensityEstimationTree(max_leaf_size=0, complexity=0).fit(pd.read_csv(TITANIC))
    assert (model.tree_.counts == 0).any()
    row = {"class": "crew", "sex": "male", "age": "child", "survived": "no"}
    assert np.isfinite(model.score_samples(row)[0])
    assert model.set_params(density="empirical").score_samples(row)[0] == -np.inf
