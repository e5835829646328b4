"""The cascade that suits a table: what it is weighed by, what it keeps, and what it refuses."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import AutoCascade, BranchCascade, CascadeMixture, LeafCascade, Table
from bayescascade.base.errors import DataError, ModelFileError
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.methods.density.auto import choosing, held_out
from bayescascade.methods.density.auto.choosing import Chooser
from bayescascade.methods.density.continuous import learning as continuous
from bayescascade.methods.density.hidden_trees import learning as hidden
from bayescascade.methods.density.trees.parameters import LEAVES
from bayescascade.methods.density.trees.tree import Tree
from tests.methods.density.trees.problems import Problem
from tests.methods.density.trees.slow_dependence import depth, log_sum

TINY = Problem("tiny", (3, 2), (True, False), 3, n_rows=9)
BINARY, LEVELS = replace(TINY, max_branches=2), replace(TINY, partitions="levels")
OF_ANY_DEPTH = [
    *itertools.product(("leaf", "branch"), ("uniform", "independent"), ("subsets", "levels"))
]
ONE_SPLIT = {"partitions": "levels", "max_depth": 1}


def chains_of(n_columns, n_rows, seed):
    """Columns each of which mostly repeats the one before: one dependent leaf says it all."""
    rng = np.random.default_rng(seed)
    column = rng.integers(3, size=n_rows)
    by_name = {}
    for j in range(n_columns):
        column = np.where(rng.random(n_rows) < 0.75, column, rng.integers(3, size=n_rows))
        by_name[f"c{j}"] = column.astype(str)
    return pd.DataFrame(by_name)


@pytest.fixture
def weighed():
    chooser = Chooser(TINY.table, "normal", 2e9, 1, 0, lambda *_: None)
    choice, known = chooser.choose(), list(chooser.known.values())
    others = [
        held_out.Candidate(model, {"leaf": leaf, "partitions": partitions})
        for model, leaf, partitions in OF_ANY_DEPTH
    ]
    others += [one.changed(prior="generative", stop=0.2) for one in (*known, *others)]
    return choice, known, [chooser._weigh(one) for one in others]


def enumerated(candidate):
    """Return the log evidence of a candidate from a list of all of its trees."""
    of_subsets = BINARY if candidate.model == "leaf" else TINY  # by default of two branches
    problem = LEVELS if candidate.kind[1] == "levels" else of_subsets
    posterior = candidate.cascade()._make_posterior(problem.table)
    most = candidate.settings.get("max_depth")
    trees = [tree for tree in problem.nested if most is None or depth(tree) <= most]
    made = [Tree.from_nested(tree, posterior.is_nominal) for tree in trees]
    log_priors = [posterior.log_prior(tree) for tree in made]
    values = [posterior.log_density(tree) for tree in made]
    return log_sum(np.array(values)) - log_sum(np.array(log_priors))


def test_evidences_are_those_of_all_trees(weighed):
    """Of every prior, leaf, partition and depth: sums over a list of every tree there is."""
    choice, known, others = weighed
    kinds = {(one.model, *one.kind, one.is_shallow) for one in known}
    assert {("branch", leaf, "levels", True) for leaf in LEAVES} <= kinds
    assert {("branch", leaf, "subsets", False) for leaf in ("uniform", "independent")} <= kinds
    one_a_kind = list({
        (one.model, *one.kind, one.is_shallow, one.settings.get("prior")): one
        for one in [*known, *others]
    }.values())  # fmt: skip
    assert {"stop" in one.settings for one in one_a_kind} == {True, False}
    expected = [enumerated(one) for one in one_a_kind]
    np.testing.assert_allclose([one.log_evidence for one in one_a_kind], expected, atol=1e-9)
    assert np.ptp(expected) > 0.5
    assert math.isnan(choice.candidates[0].held_out)  # evidence decided
    best = max(known, key=lambda one: one.log_evidence)
    assert choice.candidates[0].key == best.key


@pytest.mark.parametrize(
    ("gains", "deepest", "known"),
    [
        ((50.0, 40.0, 30.0, 20.0, 15.0), 5, 5),
        ((50.0, 20.0, 0.9, 30.0, 30.0), 3, 2),  # too little for trees that take longer
        ((50.0, 20.0, -9.0, 30.0, 30.0), 3, 3),
        ((50.0, 5.0, 30.0, 30.0, 30.0), 2, 2),  # the third would gain half a nat
    ],
)
def test_trees_get_deeper_while_a_level_gains_enough(gains, deepest, known, monkeypatch):
    """Each level costs several times the one before; the first that gains little ends it."""
    values, depths = -300.0 + np.cumsum([0.0, *gains]), []

    def weighed(one, *_):
        depth = one.settings["max_depth"]
        if "prior" not in one.settings:  # the other prior goes on from the best
            depths.append(depth)
        return replace(one, log_evidence=float(values[depth]), n_leaves=1)

    monkeypatch.setattr(choosing, "weighed", weighed)
    monkeypatch.setattr(Chooser, "_climb", Chooser._weigh)
    table = bayescascade.Table.from_frame(chains_of(5, 80, 1))
    chooser = Chooser(table, "thorough", 2e9, 1, 0, lambda *_: None)
    chooser.left = chooser._all = 1e15
    leaf = held_out.Candidate("branch", {"leaf": "dependent", **ONE_SPLIT, "max_depth": 0})
    may_gain = chooser._deepen(chooser._weigh(leaf))
    assert max(depths) == deepest
    assert may_gain == (deepest == 5)
    poisson = [one for one in chooser.known.values() if "prior" not in one.settings]
    assert max(one.settings["max_depth"] for one in poisson) == known


def test_the_trees_of_a_rule_are_found():
    """The first levels of depth say little of a rule that needs them all."""
    rows = pd.DataFrame(itertools.product(range(3), repeat=6))
    a, b, c, d, e, _ = rows.to_numpy().T
    rows["label"] = np.where(a == 0, b + c + d, np.where(b == 0, c + d + e, c * e + d)) % 4
    chooser = Chooser(Table.from_frame(rows.astype(str)), "normal", 2e9, 1, 0, lambda *_: None)
    chooser.left = chooser._all = choosing.EFFORTS["normal"]
    found = {}
    for leaf in LEAVES:
        own = {"leaf": leaf, "partitions": "levels", "max_depth": 0}
        chooser._deepen(chooser._climb(held_out.Candidate("branch", own)))
        found[leaf] = max(o.log_evidence for o in chooser.known.values() if o.kind[0] == leaf)
    assert max(found, key=found.get) == "uniform"
    assert found["uniform"] > found["dependent"] + 100


@pytest.mark.slow
def test_seeds_decide_not_workers_nor_the_clock(monkeypatch):
    """The same file to the byte, also where chains and held-out rows decide."""
    frame = chains_of(9, 80, 0)
    monkeypatch.setitem(choosing.EFFORTS, "normal", 4e9)
    monkeypatch.setattr(held_out, "_OF_FIT", 1e7)
    files = []
    for n_jobs in (1, 2):
        model = AutoCascade(random_state=1, n_jobs=n_jobs, n_chains=2, n_steps=300).fit(frame)
        assert model.candidates_.held_out.notna().any()
        files.append(json.dumps(model.to_record()))
        monkeypatch.setattr(held_out, "perf_counter", lambda: 0.0)
    assert files[0] == files[1]


@pytest.mark.slow
def test_a_tree_to_read_stands_beside_one_leaf(tmp_path):
    """People come for a tree; what it loses is said, and it comes back from a file."""
    model = AutoCascade("quick", random_state=0).fit(chains_of(6, 300, 1))
    assert model.cascade_.tree_.n_leaves == model.candidates_.leaves[0] == 1
    shown = model.readable_.tree_
    assert 1 < shown.n_leaves <= 30
    for found in (model.tree_, model.learned_):
        assert found.tree == shown.tree
    assert model.to_dot() == shown.to_dot()
    assert model.to_dict()["shown"] == "readable"
    np.testing.assert_array_equal(model.feature_importances_, model.readable_.feature_importances_)
    boxes = {text.get_text() for text in model.plot().texts}
    assert boxes == {text.get_text() for text in shown.plot().texts}
    assert any("c1 is" in text for text in boxes)
    words = " ".join(str(model).split())
    pairs = model.cascade_.tree_.associations
    assert pairs[0].words(model.schema_) in words
    assert model.to_dict()["cascade"]["associations"][0]["information"] == pairs[0].information
    assert str(model.condition({"c1": "0"})) == str(shown.condition({"c1": "0"}))
    assert hasattr(model, "plot_joined") == hasattr(model.cascade_.tree_, "plot_joined")
    assert "The best tree has 1 leaf. This one is more informative" in words
    lost = (model.cascade_.exact_.log_evidence - model.readable_.exact_.log_evidence) / 300
    assert f"Its log evidence is lower by {lost:,.2f} nats a row" in words
    assert lost > 0
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert str(loaded) == str(model)
    assert loaded.tree_.tree == shown.tree
    assert "c1" in model.to_dot()


def test_a_tree_to_read_is_known_even_if_the_best_seems_readable(monkeypatch):
    """A tempered best tree may have one leaf, though its kind had four before."""
    dependent, independent = (
        held_out.Candidate("branch", {"leaf": leaf, **ONE_SPLIT}, log_evidence=value, n_leaves=4)
        for leaf, value in (("dependent", -1.0), ("independent", -2.0))
    )
    known = {one.key: one for one in (dependent, independent)}
    monkeypatch.setattr(Chooser, "_weigh_all", lambda chooser: chooser.known.update(known))
    table = bayescascade.Table.from_frame(chains_of(6, 300, 1))
    choice = Chooser(table, "quick", 2e9, 1, 0, lambda *_: None).choose()
    assert choice.candidates[0] == dependent
    assert choice.readable == (independent,)
    one_leaf = replace(dependent, settings={**dependent.settings, "max_depth": 0})
    choice = choice._replace(candidates=(one_leaf, independent))
    model = AutoCascade(n_jobs=1).fit_chosen(table, choice, Watch(None), np.random.SeedSequence(0))
    assert model.cascade_.tree_.n_leaves == model.candidates_.leaves[0] == 1
    assert model.tree_.n_leaves > 1


def classes_of(n_rows, noise, seed):
    """Ten columns that mostly repeat the class of their row, or nothing if all is noise."""
    rng = np.random.default_rng(seed)
    places = rng.integers(4, size=n_rows)
    by_name = {}
    for j in range(10):
        kept = np.where(rng.random(n_rows) < noise, rng.integers(3, size=n_rows), places * (j + 1))
        by_name[f"c{j}"] = (kept % 3).astype(str)
    return pd.DataFrame(by_name)


WEIGHTS = {"cascade": 0.25, "independent": 0.35, "hidden": 0.3, "continuous": 0.1}


def averaged(frame):
    """Return a cascade and other densities with known weights, as if held-out rows chose them."""
    model = AutoCascade("quick", random_state=0).fit(frame)
    mixture = CascadeMixture(2, kind="independent", smoothing=1.0, random_state=0).fit(frame)
    table = Table.from_frame(frame, schema=model.schema_)
    model.mixtures_ = {
        "independent": mixture.mixture_,
        "hidden": hidden.fitted(table, hidden.HiddenSettings(2, 3, 1.0, 2), 0)[0],
        "continuous": continuous.fitted(table, continuous.ContinuousSettings(5, 0, 0.01, 8), 0)[0],
    }
    model.weights_ = WEIGHTS
    return model


def test_the_average_is_one_density_of_complete_and_incomplete_rows():
    """Scores, gaps, draws and predictions are all of the same weighted average."""
    model = averaged(chains_of(2, 60, 1))
    rows = pd.DataFrame(itertools.product("012", repeat=2), columns=["c0", "c1"])
    parts = [model.cascade_, *model.mixtures_.values()]
    expected = [*WEIGHTS.values()] @ np.exp([one.score_codes(model.encode(rows)) for one in parts])
    np.testing.assert_allclose(np.exp(model.score_samples(rows)), expected)
    assert expected.sum() == pytest.approx(1.0)
    of_ones = expected[rows["c1"] == "1"]
    gap = {"c0": [None], "c1": ["1"]}
    assert np.exp(model.score_samples(gap))[0] == pytest.approx(of_ones.sum())
    np.testing.assert_allclose(model.predict_proba(gap, "c0").iloc[0], of_ones / of_ones.sum())
    drawn = model.sample(20_000, random_state=0).value_counts()
    seen = np.array([drawn.get(tuple(row), 0) for row in rows.itertuples(index=False)])
    for is_drawn, density in (
        (True, expected),
        (False, np.exp(model.cascade_.score_samples(rows))),
    ):
        errors = abs(seen - 20_000 * density) / np.sqrt(20_000 * density)
        assert (errors.max() < 6) == is_drawn
    many = pd.DataFrame({"c0": [None] * 5_000, "c1": ["1"] * 5_000})
    filled = model.impute(many, "draw", random_state=0)["c0"].value_counts()[["0", "1", "2"]]
    shares = of_ones / of_ones.sum()
    assert (abs(filled - 5_000 * shares) <= 6 * np.sqrt(5_000 * shares)).all()
    assert model.impute(gap)["c0"][0] == "012"[of_ones.argmax()]
    assert model.explain(rows.iloc[0]).startswith("tree shown: ")


def test_files_keep_the_average():
    """A loaded model would else predict by the cascade alone."""
    model = averaged(chains_of(2, 60, 1))
    printed = " ".join(str(model).split())
    assert "average cascade 0.25 mixture of 2 classes (independent columns) 0.35" in printed
    assert "tree of 3 hidden states per column 0.30 continuous mixture at 8 points" in printed
    record = json.loads(json.dumps(model.to_record()))
    loaded = AutoCascade.from_record(record)
    assert (str(loaded), loaded.to_record()) == (str(model), record)
    with pytest.raises(ModelFileError, match="weights"):
        AutoCascade.from_record(record | {"weights": WEIGHTS | {"cascade": 0.5}})
    with pytest.raises(ModelFileError, match="densities of an average"):
        AutoCascade.from_record(record | {"mixtures": {"other": record["mixtures"]["hidden"]}})


@pytest.mark.slow
def test_the_average_predicts_better_where_there_are_classes(monkeypatch):
    """Or as well as the cascade alone, where a mixture has nothing to add."""
    monkeypatch.setitem(choosing.EFFORTS, "normal", 4e9)
    for noise, gain in ((0.3, 0.1), (1.0, -0.01)):
        seen, unseen = classes_of(500, noise, 0), classes_of(4_000, noise, 1)
        model = AutoCascade(random_state=0, n_chains=2, n_steps=300).fit(seen)
        alone = model.cascade_.score_samples(unseen)
        assert (model.score_samples(unseen) - alone).mean() > gain
        assert sum(model.weights_.values()) == pytest.approx(1.0)


def test_time_that_is_up_before_a_draw_ends_the_comparison():
    """No draws to average over would end the fit by another error."""
    table = Table.from_frame(chains_of(9, 300, 0))
    folds = held_out.HeldOutSplits.of(table, 0, 1, 2e9)
    searched = held_out.Candidate("branch", {"leaf": "independent"})
    with pytest.raises(OutOfTime), Watch(0.05).watching():
        folds.scored(searched, 30_000)


@pytest.mark.slow
def test_finalists_by_sums_and_by_chains_are_compared_by_all_folds(monkeypatch):
    """The second of the two would else be known by one fold only, or end the fit."""
    monkeypatch.setattr(held_out, "_OF_FIT", 1e7)
    chooser = Chooser(
        bayescascade.Table.from_frame(chains_of(4, 60, 0)), "normal", 2e9, 1, 0, lambda *_: None
    )
    chooser.left = chooser._all = choosing.EFFORTS["normal"]
    chooser._weigh(held_out.Candidate("branch", {"leaf": "independent", **ONE_SPLIT}))
    folds = held_out.HeldOutSplits.of(chooser.table, 0, 1, 2e9)
    compared, _ = chooser._compare(folds)
    n_held = sum(held.n_distinct for _, held in folds.folds)
    assert {folds.rows[found.key].size for found in compared} == {n_held}
    assert {found.is_summed for found in compared} == {True, False}


def uniform(table, most, rng):
    """Draw distinct rows, however many of each there are: what `_sample` must not do."""
    kept = rng.permutation(table.n_distinct) < most
    return held_out.with_weights(table, table.weights * kept)


@pytest.mark.parametrize("draw", [held_out._sample, uniform])
def test_rows_that_are_scored_are_drawn_by_their_number(draw, monkeypatch):
    """A row that is a quarter of a table must count for a quarter, however many are scored."""
    monkeypatch.setattr(held_out, "_sample", draw)
    rare = np.divmod(np.arange(3_000), 60)
    texts = [["x"] * 1_000 + [f"l{code}" for code in codes] for codes in rare]
    table = bayescascade.Table.from_frame(pd.DataFrame(dict(zip("ab", texts, strict=True))))
    folds = held_out.HeldOutSplits.of(table, 0, 1, 2e9)
    deep = held_out.Candidate("branch", {"leaf": "dependent", **ONE_SPLIT}, operations=1e9)
    ((_, held),) = folds.cut(1).folds
    share, found = held.weights.max() / held.total_weight, []
    for seed in range(8):
        some = replace(folds, seed=seed).affordable([deep], 0.0).folds[0][1]
        assert some.n_distinct <= 500 < held.n_distinct
        found.append(some.weights.max() / some.total_weight)
    is_right = np.abs(np.array(found) - share).max() < 0.09  # 4.6 standard errors
    assert is_right == (draw is not uniform)


def test_a_fold_is_scored_whole_where_that_is_no_work():
    """Its rows cost nothing but the sums, which are made once for however many."""
    folds = held_out.HeldOutSplits.of(
        bayescascade.Table.from_frame(chains_of(6, 3_000, 0)), 0, 1, 2e9
    )
    assert all(learned.n_rows + held.n_rows == 3_000 for learned, held in folds.folds)
    slow = held_out.Candidate("branch", {"leaf": "independent"}, operations=5e9)
    assert folds.affordable([slow], 1e9).folds == folds.folds[:1]
    assert folds.affordable([slow], 1e11).folds == folds.folds


@pytest.mark.slow
def test_what_is_chosen_is_that_cascade_and_ties_are_named():
    """Fitted by hand it scores alike; another that ties would be taken for a worse one."""
    frame = chains_of(4, 60, 2)
    model = AutoCascade("quick", random_state=0).fit(frame)
    best, other, *others = model._candidates
    kind = {"leaf": LeafCascade, "branch": BranchCascade}[best.model]
    by_hand = kind(**best.settings, search="exact", predictive="average").fit(frame)
    np.testing.assert_allclose(model.score_samples(frame), by_hand.score_samples(frame))
    assert model.candidates_.log_evidence[0] == pytest.approx(by_hand.exact_.log_evidence)
    assert model.candidates_.nats_behind[0] == 0
    assert "tie for the best" not in str(model)
    model._candidates = (best, replace(other, log_evidence=best.log_evidence), *others)
    assert "2 candidates tie for the best" in " ".join(str(model).split())


@pytest.mark.parametrize(
    "cells",
    [{"a": ["x"], "b": ["y"]}, {"a": ["x", "y", "y"]}, {"a": ["x"] * 9, "b": ["y"] * 9}],
    ids=["one row", "one column", "all equal"],
)
def test_small_tables_are_fitted_or_refused_in_words(cells):
    """One row, one column and equal rows are tables, too."""
    frame = pd.DataFrame(cells)
    try:
        model = AutoCascade(random_state=0).fit(frame)
    except DataError as error:
        assert str(error)  # noqa: PT017 - which of them is up to the reader of tables
        return
    assert 0 < math.exp(model.score_samples(frame)[0]) <= 1
    assert str(model)


def test_no_mixture_is_fitted_where_no_density_could_score_better():
    """Of few cells the rows' own shares score hardly better than the cascade: the fit is quick."""
    frame = pd.DataFrame(itertools.product("abc", "xy", range(2)), columns=["a", "b", "c"])
    frame = frame.sample(30_000, replace=True, weights=np.arange(12) + 1, random_state=0)
    assert AutoCascade(random_state=0).fit(frame).mixtures_ == {}


def test_what_is_no_other_setting_is_weighed_once():
    """A default that is spelled out is no other candidate, but no largest depth is."""
    plain = held_out.Candidate("branch", {"leaf": "independent"})
    assert plain.key == plain.changed(leaf_concentration=1.0, max_branches=None).key
    assert plain.key != plain.changed(max_depth=None).key
