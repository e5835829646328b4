"""Branch cascades whose leaves are dependent: fitted, printed, saved, scored, drawn from."""

import json
from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import pytest

from bayescascade import BranchCascade, BranchPosterior, LeafCascade, Table
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.methods.density.trees import estimators
from bayescascade.methods.density.trees.checked_trees import lower_of_pairs
from bayescascade.methods.density.trees.counted_tree import CountedTree
from bayescascade.methods.density.trees.dependence import edge_probabilities
from bayescascade.methods.density.trees.exact import solve
from bayescascade.methods.density.trees.shallow_extent import fitting_trees
from bayescascade.methods.density.trees.shallow_trees import TEMPERS, ShallowTrees
from bayescascade.model.packing import pack
from bayescascade.model.record import load
from tests.commands import run
from tests.contracts.test_plots import assert_readable
from tests.methods.density.trees.problems import record_of
from tests.methods.density.trees.slow_dependence import log_evidence
from tests.methods.lists.lists import cells_of
from tests.statistical.chi_square import fits

DEPENDENT = {"leaf": "dependent", "partitions": "levels", "random_state": 0}


@cache
def weather(n_rows=400):
    """Return rows where wind goes with rain in the grey town, and against it in the blue one."""
    rng = np.random.default_rng(7)
    sky = rng.choice(["blue", "grey"], n_rows)
    wind = rng.choice(["calm", "gale"], n_rows)
    goes = rng.random(n_rows) < 0.9
    rain = np.where((wind == "gale") == ((sky == "grey") == goes), "much", "none")
    town = rng.choice(["Ayr", "Bath", "Crewe"], n_rows)
    return pd.DataFrame({"sky": sky, "wind": wind, "rain": rain, "town": town})


@cache
def fitted(**parameters):
    """Return a fitted model; treat it as read-only."""
    return BranchCascade(**{**DEPENDENT, **parameters}).fit(weather())


def test_the_tree_splits_where_dependences_change():
    """No one tree of pairs holds in both towns."""
    model = fitted()
    assert model.tree_.n_leaves > 1
    assert fitted(max_depth=0).tree_.n_leaves == 1
    ours, single = (m.score_samples(weather()).mean() for m in (model, fitted(max_depth=0)))
    assert ours > single + 0.1


def test_leaves_are_printed_with_the_levels_that_go_together():
    """What a reader sees of a leaf: two levels, how often together, and how often if apart."""
    text = str(fitted())
    assert "with: levels of columns that probably depend on each other" in text
    assert "wind is" in text
    assert " (0." in text
    assert "leaf dependent" in " ".join(text.split())
    assert "tempered" not in text
    tempered = " ".join(str(fitted(temper=50.0)).split())
    assert "tempered at 50 rows, which is no posterior" in tempered
    assert "exact: no tree of depth up to 4, tempered at 50 rows, is more probable" in tempered
    assert "log evidence" not in tempered
    assert "log evidence" in text


def test_joined_columns_are_drawn(tmp_path):
    """Who comes from networks looks for a graph: an arc for each pair, wider if more probable."""
    model, path = fitted(), tmp_path / "model.json"
    tree = model.tree_
    leaves = sorted(tree.tree.leaves.tolist(), key=lambda leaf: -tree.counts[leaf])
    chances = [pair.probability for leaf in leaves for pair in tree.pairs(leaf)]
    ax = tree.plot_joined()
    assert_readable(ax)
    widths = [line.get_linewidth() for line in ax.lines if len(line.get_xdata()) > 2]
    assert len(widths) == len(chances) > 0
    assert np.argsort(widths, kind="stable").tolist() == np.argsort(chances, kind="stable").tolist()
    model.save(path)
    assert run("show", path, "--png", tmp_path / "joined.png", "--joined").exit_code == 0
    assert (tmp_path / "joined.png").stat().st_size > 5_000
    assert "--joined needs --png" in run("show", path, "--joined").stderr
    coins = pd.DataFrame(tosses(0).astype(str)).add_prefix("coin ")
    none = BranchCascade(**DEPENDENT, max_depth=0, n_steps=10, n_chains=1).fit(coins)
    with pytest.raises(DataError, match="joined in a leaf, got none"):
        none.tree_.plot_joined()
    assert "with: levels" not in str(none)  # in no legend what the print has not


def test_the_temper_is_chosen_by_rows_held_out(monkeypatch):
    """Each fifth of the rows by what was learned without it; then all rows are learned from."""
    asked = []

    def score(trees, rows):
        asked.append((trees.table, rows, trees.max_depth))
        scores = np.zeros((len(TEMPERS), rows.n_distinct))
        scores[TEMPERS.index(100.0)] = 3.0 * (len(asked) == 1)  # best only of the first fifth
        scores[TEMPERS.index(50.0)] = 1.0
        return scores

    monkeypatch.setattr(ShallowTrees, "score_tempers", score)
    model = BranchCascade(**DEPENDENT, temper="auto", max_depth=2).fit(weather())
    table, counts = model.posterior_.table, Counter()
    for learned, held, depth in asked:
        assert (learned.total_weight, held.total_weight, depth) == (320, 80, 2)
        counts += counted(held)
        assert counted(learned) + counted(held) == counted(table)
    assert counts == counted(table)
    np.testing.assert_array_equal(
        model.score_samples(weather()), fitted(temper=50.0, max_depth=2).score_samples(weather())
    )
    text = " ".join(str(model).split())
    assert "temper chosen on held-out rows, which is not Bayes" in text
    assert "tempered at 50 rows, is more probable" in text
    assert "log evidence" not in text
    few = BranchCascade(**DEPENDENT, temper="auto").fit(weather().head(3))
    assert few.exact_.temper is None
    assert len(asked) == 5
    monkeypatch.setattr(estimators, "_LONG", 0.0)  # where it takes long
    asked.clear()
    assert BranchCascade(**DEPENDENT, temper="auto").fit(weather()).exact_.temper == 100.0
    assert len(asked) == 1


def counted(table):
    return Counter(dict(zip(map(tuple, table.codes.T.tolist()), table.weights, strict=True)))


def test_explanations_and_plain_data_tell_joined_columns():
    """Besides the density of the row itself, which is not that of its leaf."""
    row = {"sky": "grey", "wind": "gale", "rain": "much", "town": "Ayr"}
    words = fitted().explain(row)
    assert "; columns depend on each other: " in words
    assert " if independent)" in words
    assert f", density of this row {np.exp(fitted().score_samples(row)[0]):.4g}, " in words
    assert ", average density " in fitted().explain({**row, "rain": None})
    record = fitted().tree_.node_dict()
    assert json.loads(json.dumps(record)) == record

    def pairs(node):
        below = [pair for one in node.get("branches", ()) for pair in pairs(one["child"])]
        return below + node.get("pairs", [])

    assert pairs(record)
    assert all(0.5 <= pair["probability"] <= 1 and pair["together"] > 0 for pair in pairs(record))


@pytest.mark.parametrize("evidence", [{"sky": "grey"}, {"rain": "much", "town": ["Ayr", "Crewe"]}])
def test_evidence_leaves_the_rest_of_the_density(evidence):
    """By Bayes' rule from all cells: densities, levels and draws; also one after the other."""
    tree = fitted().tree_
    names, shape = tree.schema.names, tuple(tree.schema.n_levels)
    cells = np.indices(shape).reshape(len(shape), -1)
    masses, holds = np.exp(tree.score_codes(cells)), np.ones(cells.shape[1], bool)
    given, again = tree.condition(evidence), tree
    for name, levels in evidence.items():
        again, j = again.condition({name: levels}), names.index(name)
        holds &= np.isin(np.array(tree.schema.columns[j].levels)[cells[j]], levels)
    expected = masses * holds / masses[holds].sum()
    np.testing.assert_allclose(np.exp(given.score_codes(cells)), expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(again.score_codes(cells)), expected, atol=1e-12)
    assert given.conditions_probability == pytest.approx(masses[holds].sum())
    for leaf in given.tree.leaves.tolist():
        boxes = zip(cells, given.boxes[leaf], strict=True)
        inside = np.all([np.isin(codes, left) for codes, left in boxes], axis=0)
        for j, left in enumerate(given.boxes[leaf]):
            shares = np.array([expected[inside & (cells[j] == code)].sum() for code in left])
            np.testing.assert_allclose(given.level_shares(leaf, j), shares / shares.sum())
    drawn = np.ravel_multi_index(given.sample_codes(2000, np.random.default_rng(3)), shape)
    assert fits(drawn, expected)
    assert not fits(drawn, holds / holds.sum())
    assert "given " in str(given)
    assert " (0." in str(tree)
    assert " (0." not in str(given)  # the rest is no average over trees


def test_evidence_that_leaves_too_many_cells_is_refused():
    """Rather than summed over for hours; enough of it is answered."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 2, (50, 18))).astype(str).add_prefix("c")
    model = BranchCascade(**DEPENDENT, max_depth=0).fit(wide)
    with pytest.raises(DataError, match=r"at most 65,536 cells of a dependent leaf, got 131,072"):
        model.condition({"c0": "1"})
    given = model.condition({"c0": "1", "c1": "0"})
    assert 0 < given.conditions_probability < 1


def test_densities_of_the_tree_are_those_of_its_leaves():
    """Share of the leaf times the ratio of its evidences with the row and without, by the twin."""
    model = fitted()
    table, tree = model.posterior_.table, model.tree_
    problem = record_of(table)
    cells, _ = cells_of(table.schema)
    found = tree.score_codes(cells)
    for cell, score in zip(cells.T.tolist(), found, strict=True):
        (leaf,) = (
            leaf for leaf in tree.tree.leaves.tolist()
            if all(code in left for code, left in zip(cell, tree.boxes[leaf], strict=True))
        )  # fmt: skip
        box = tuple(tree.boxes[leaf])
        more = log_evidence(box, problem, 1.0, tuple(cell)) - log_evidence(box, problem, 1.0)
        assert score == pytest.approx(np.log(tree.probabilities[leaf]) + more, abs=1e-9)
    assert np.exp(found).sum() == pytest.approx(1.0)


def test_averages_are_over_all_trees_and_files_hold_what_they_need(tmp_path):
    """By what the exact search kept, or a file's draws; the best tree alone says something else."""
    model = fitted(temper=50.0, max_depth=2)
    codes, scores = model.schema_.encode(weather()), model.score_samples(weather())
    averaged = np.exp(model.exact_.log_predictive(codes))
    assert abs(np.exp(scores) / averaged - 1).max() > 0.06
    average = fitted(temper=50.0, max_depth=2, predictive="average")
    np.testing.assert_allclose(np.exp(average.score_samples(weather())), averaged)
    model.save(tmp_path / "model.json")
    read = load(tmp_path / "model.json")
    np.testing.assert_array_equal(read.score_samples(weather()), scores)
    assert str(read.tree_) == str(model.tree_)
    assert read.get_params()["temper"] == 50.0
    assert read.log_posterior_ == pytest.approx(model.posterior_.log_density(model.tree_))
    read.set_params(predictive="average")
    assert abs(np.exp(read.score_samples(weather())) / averaged - 1).max() < 0.03  # 1,000 draws


def tosses(seed):
    """Return 60 rows of 60 independent fair coins."""
    return np.random.default_rng(seed).integers(0, 2, (60, 60))


def leaf_of(coins):
    """Return all rows as one dependent leaf."""
    frame = pd.DataFrame(coins.astype(str)).add_prefix("coin ")
    model = BranchCascade(**DEPENDENT, max_depth=0, n_steps=10, n_chains=1).fit(frame)
    return model.tree_.inside[0]


def test_tosses_of_coins_are_not_called_joined():
    """Any tree has edges; a reader must not take one for a finding, nor miss a true pair."""
    leaves = [leaf_of(tosses(seed)) for seed in range(5)]
    assert not any(leaf.strongest_pairs for leaf in leaves)
    by_trees_alone = [np.triu(edge_probabilities(leaf.log_weights) >= 0.5, 1) for leaf in leaves]
    assert all(edges.any() for edges in by_trees_alone)
    coins = tosses(0)
    coins[6:, 1] = coins[6:, 0]  # nine rows in ten alike
    assert [pair.columns for pair in leaf_of(coins).strongest_pairs] == [(0, 1)]


FORGERIES = {
    "finite and >= 0": (1, -1.0),
    "sum up to those": (0, 1.0),
    "sum up to those of its levels": (-2, 1e6),
}


@pytest.mark.parametrize("words", FORGERIES)
def test_forged_counts_of_pairs_are_refused(words):
    """A probability that was edited must not be printed as if it had been computed."""
    model = fitted(max_depth=0)
    record = model._best.to_record()
    CountedTree.from_record(record, model.schema_, "dependent")
    shorter = record["pair_counts"] | {"size": record["pair_counts"]["size"] - 1}
    with pytest.raises(ModelFileError, match="counts of pairs must be"):
        CountedTree.from_record({**record, "pair_counts": shorter}, model.schema_, "dependent")
    place, value = FORGERIES[words]
    pairs = lower_of_pairs(model._best.pair_counts)
    pairs[0, place] = value
    forged = {**record, "pair_counts": pack(pairs.ravel())}
    with pytest.raises(ModelFileError, match=words):
        CountedTree.from_record(forged, model.schema_, "dependent")
    with pytest.raises(ModelFileError, match="exactly if its leaves are dependent"):
        CountedTree.from_record(record, model.schema_)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"density": "empirical"}, 'density must be "posterior_mean" with leaf "dependent"'),
        ({"partitions": "subsets", "temper": 3.0}, "max_depth and temper must be None unless"),
        ({"search": "metropolis", "max_depth": 2}, "max_depth and temper must be None unless"),
        ({"feature_inclusion": 0.5, "temper": 3.0}, "max_depth and temper must be None unless"),
        (
            {"partitions": "subsets", "search": "exact"},
            'search "exact" with leaf "dependent" needs',
        ),
        ({"max_depth": 4, "memory_limit": 1e-9}, "max_depth must be at most 0"),
        ({"leaf": "uniform", "temper": 3.0}, "temper needs max_depth unless leaf"),
    ],
)
def test_settings_that_dependent_leaves_lack(changed, message):
    """Said before anything is computed."""
    with pytest.raises(ParameterError, match=message):
        BranchCascade(**{**DEPENDENT, **changed}).fit(weather())


def test_what_dependent_leaves_cannot_do_is_said():
    """Rather than answered as if leaves were uniform."""
    model = fitted()
    with pytest.raises(ParameterError, match="for credible intervals"):
        model.credible_interval(weather())
    posterior = BranchPosterior(model.posterior_.table, partitions="levels", leaf="dependent")
    with pytest.raises(ParameterError, match="in a sum over all trees, got"):
        solve(posterior)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LeafCascade, BranchCascade])
def test_chains_find_what_exact_searches_cannot(estimator, tmp_path):
    """Where a split may group levels there are too many trees; draws are averaged and saved."""
    model = estimator(leaf="dependent", n_steps=1000, n_chains=1, random_state=0, max_branches=2)
    model.set_params(predictive="average").fit(weather())
    assert "an exact search needs a branch cascade" in " ".join(str(model).split())
    assert model.tree_.n_leaves > 1
    assert model.log_posterior_ == pytest.approx(model.posterior_.log_density(model.tree_))
    cells, _ = cells_of(model.schema_)
    assert np.exp(model.score_codes(cells)).sum() == pytest.approx(1.0)
    model.save(tmp_path / "model.json")
    few, read = weather().head(40), load(tmp_path / "model.json")
    np.testing.assert_allclose(read.score_samples(few), model.score_samples(few))


def fitting(frame, max_depth, memory_limit=2e9):
    posterior = BranchPosterior(Table.from_frame(frame), leaf="dependent", partitions="levels")
    return fitting_trees(posterior, max_depth, memory_limit)


def wide(n_columns):
    """Return rows of columns that say nothing of each other, but for three at the end."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (3000, n_columns))
    codes[:, -3:] = codes[:, -1:] ^ (rng.random((3000, 3)) < [0.1, 0.2, 0.0])
    return pd.DataFrame(codes, columns=[f"c{j}" for j in range(n_columns)]).astype(str)


def test_depths_that_take_too_long_are_refused():
    """Before they are tried; by default trees are as deep as takes seconds."""
    assert fitting(weather(), None) == (4, [0, 1, 2, 3])
    assert fitting(weather(), 9) == (9, [0, 1, 2, 3])
    assert fitting(wide(60), 2) == (2, list(range(60)))
    assert fitting(wide(60), None, 1e4) == (0, list(range(60)))
    with pytest.raises(ParameterError, match=r"at most \d for all trees .*, got 30"):
        fitting(wide(60), 30)
    with pytest.raises(ParameterError, match=r"max_depth must be at most 0"):
        fitting(wide(60), 2, 1e5)


def test_trees_over_many_columns_split_those_that_tell_of_others():
    """Rather three of some than one of all; what was left out is told."""
    depth, columns = fitting(wide(200), None)
    assert depth == 3
    assert {197, 198, 199} <= set(columns)
    assert len(columns) < 200
    few = Table.from_frame(wide(5))
    posterior = BranchPosterior(few, leaf="dependent", partitions="levels")
    some = ShallowTrees(posterior, 3, columns=[1, 3])
    assert (some.n_columns, some.max_depth, some.is_complete) == (2, 2, False)
    assert set(np.flatnonzero(some.first_splits)) <= {1, 3, 5}  # the last is none
    assert ShallowTrees(posterior, 5).is_complete


def test_rows_with_too_many_missing_cells_are_refused():
    model = fitted()
    scored = model.score_samples(weather().head(3).assign(town=None, rain=None))
    assert np.isfinite(scored).all()
    frame = wide(17)
    single = BranchCascade(**DEPENDENT, max_depth=0).fit(frame)
    with pytest.raises(DataError, match=r"at most 65,536 ways .*, got 131,072 in row"):
        single.score_samples(frame.head(1).assign(**dict.fromkeys(frame.columns)))
