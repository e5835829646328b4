"""Boxes that hold data, the others from tables: against lists of all trees, and all boxes."""

import gc
import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import bayescascade
from bayescascade import BranchCascade, BranchPosterior, LeafCascade, LeafPosterior, Table
from bayescascade.base.errors import TooLargeError
from bayescascade.methods.density.trees.exact import cost, shared, solve, solve_by_tilts
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.posterior import ExactPosterior
from bayescascade.methods.density.trees.exact.recursion import Recursion
from bayescascade.methods.density.trees.exact.shared import SharedBoxes
from bayescascade.methods.density.trees.exact.tree_choices import choose_trees
from tests.interrupts import interrupted
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.exact import brute_force as listed
from tests.methods.density.trees.exact.brute_force import LEVELS, WIDE_BINS, cases
from tests.methods.density.trees.exact.test_exact_cost import random_table
from tests.methods.density.trees.exact.test_exact_tail import HUGE as HUGE_COPIES, LEVELS as COPIED
from tests.statistical.chi_square import fits

CLOSE = {"rtol": 0.0, "atol": 1e-9}
HUGE = replace(HUGE_COPIES, name="huge")
NO_DATA = replace(LEVELS, name="no-levels", n_rows=0)
ONE_ROW = replace(LEVELS, name="one-level", n_rows=1)
_MODELS = {
    LEVELS: "branch independent-branch generative-branch",
    tiny.UNEVEN_LEVELS: "branch independent-branch generative-uniform",
    WIDE_BINS: "branch",
    COPIED: "branch",
    HUGE: "branch generative-uniform",
    NO_DATA: "branch generative-branch",
    ONE_ROW: "branch",
}
BY_BRANCHES = cases(*listed.cases_of(_MODELS))


@pytest.fixture
def are_held(monkeypatch):
    """Have only boxes that hold data kept, however few there are in all."""
    monkeypatch.setattr(cost, "_SHORT", -1.0)
    monkeypatch.setattr(cost, "_DEARER", 1e-9)


@BY_BRANCHES
@pytest.mark.usefixtures("are_held")
def test_all_trees_are_summed_and_the_best_is_found(problem, model):
    """A box taken for another would be seen in no single tree, but in the evidence."""
    everything, found = listed.brute_force(problem, model), solve(model.on(problem))
    assert isinstance(found._sums, SharedBoxes)
    close = {"rtol": 1e-13, "atol": 1e-9}  # of millions of rows
    shares = 1e-9 if problem is not HUGE else 1e-8  # the twin's rounding
    assert_allclose(found.log_normalizer, everything.log_normalizer, **close)
    prior = found.log_normalizer - found.log_evidence
    assert_allclose(prior, everything.log_prior_normalizer, **close)
    assert_allclose(found.log_density, everything.log_densities.max(), **close)
    assert_allclose(found.posterior.log_density(found.tree), found.log_density, **close)
    listed.assert_splits_are_those_of_all_trees(found, everything, shares)
    assert found.is_complete


@cases((LEVELS, tiny.LEAF), (tiny.UNEVEN_LEVELS, tiny.LEAF), (tiny.UNEVEN_LEVELS, tiny.INDEPENDENT),
       (HUGE, tiny.LEAF), (tiny.UNEVEN_LEVELS, tiny.GENERATIVE),
       (HUGE, tiny.GENERATIVE))  # fmt: skip
@pytest.mark.usefixtures("are_held")
def test_tilts_tell_of_all_trees(problem, model):
    """Bounds must hold however boxes are kept."""
    everything, found = listed.brute_force(problem, model), solve_by_tilts(model.on(problem), rng=0)
    assert isinstance(found._passes.boxes, SharedBoxes)
    listed.assert_bounds_hold(found, everything)


@cases((LEVELS, tiny.BRANCH), (tiny.UNEVEN_LEVELS, tiny.INDEPENDENT_BRANCH), (LEVELS, tiny.LEAF))
@pytest.mark.usefixtures("are_held")
def test_draws_have_the_posterior_probabilities(problem, model, rng):
    """Broken twins: worths of boxes that hold data, or of those that do not, are off."""
    everything = listed.brute_force(problem, model)
    if model is tiny.LEAF:
        found = solve_by_tilts(model.on(problem), rng=0)
        assert fits(listed.drawn_indices(found, everything, rng), everything.probabilities)
        return
    found = solve(model.on(problem))
    assert fits(listed.drawn_indices(found, everything, rng), everything.probabilities)
    for numbers in (found._sums._values, found._sums._outside):
        numbers.mantissa[1::2] *= 2
        assert not fits(listed.drawn_indices(found, everything, rng), everything.probabilities)
        numbers.mantissa[1::2] /= 2


def mixed_table(scale, is_fractional, seed=3):
    """Return rows of nominal, ordinal, copied and continuous columns, and one of one level."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 60), "b": rng.integers(0, 3, 60)})
    frame["c"], frame["one"] = frame["a"] % 2, "x"
    frame["x"], frame["copy"] = rng.gamma(1.0, size=60), frame["a"]
    frame["y"] = frame["x"] + rng.random(60)
    weights = rng.integers(1, 4, 60) * scale + (rng.random(60) if is_fractional else 0.0)
    return Table.from_frame(frame, weights=weights, nominal=["a"], continuous={"x": 4, "y": 3})


@pytest.mark.parametrize(
    ("scale", "is_fractional"),
    [(1.0, False), (2.0, True), (1e5, False), (1e11, False)],
    ids=["whole", "fractional", "many", "huge"],
)
@pytest.mark.parametrize(
    ("make", "leaf"),
    [
        (LeafPosterior, "uniform"),
        (BranchPosterior, "independent"),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in ((LeafPosterior, "independent"), (BranchPosterior, "uniform"))
        ),
    ],
)
def test_what_all_boxes_say_those_that_hold_data_say(make, leaf, scale, is_fractional):
    """Of any column's widths and copies, of any weights."""
    table = mixed_table(scale, is_fractional)
    posterior = make(table, leaf=leaf, partitions="levels")
    plan = SearchPlan.of(posterior, None)
    whole, kept = Recursion.of(posterior, plan), SharedBoxes.of(posterior, plan, np.inf, np.inf)
    assert kept.n_boxes < plan.index().n_entries / 5
    for how in ({}, {"maximize": True}, {"tilt": -1.5}, {"closed": 0}, {"closed": 5, "tilt": 2.0}):
        whole.run(**how)
        kept.run(**how)
        origin = whole.origin
        assert abs(kept.origin - origin) <= 1
        assert_allclose(kept.log_values(origin), whole.log_values(origin), rtol=1e-12, atol=1e-9)
        assert_allclose(kept.shapes.log_values(), whole.shapes.log_values(), **CLOSE)
        if not how:
            assert_allclose(kept.first_splits(origin), whole.first_splits(origin), **CLOSE)
        if "maximize" in how:
            pair = [choose_trees(boxes, [0], np.random.default_rng(0)) for boxes in (whole, kept)]
            best, same = (posterior.log_density(tree) for (tree,) in pair)
            assert_allclose(same, best, rtol=1e-13, atol=1e-9)


def test_the_boxes_are_those_of_two_rows_or_more(monkeypatch):
    """Sizes decide what is refused; they do not depend on how the work is cut, nor do values."""
    posterior = BranchPosterior(random_table((3, 4, 2, 5, 2)), partitions="levels")
    plan = SearchPlan.of(posterior, None)
    kept = SharedBoxes.of(posterior, plan, np.inf, np.inf)
    rows = posterior.table.codes[list(plan.columns)].T
    n_boxes = n_visits = 0
    for size in range(6):
        for fixed in combinations(range(5), size):
            _, sizes = np.unique(rows[:, fixed], axis=0, return_counts=True)
            n_boxes += int((sizes > 1).sum())
            n_visits += int(sizes[sizes > 1].sum()) * (5 - size)
    assert (kept.n_boxes, kept.n_visits) == (n_boxes, n_visits)
    kept.run()
    monkeypatch.setattr(shared, "_PIECE", 4 * len(rows))
    monkeypatch.setattr(shared, "_MANY_VISITS", 0)
    cut, result = SharedBoxes.of(posterior, plan, np.inf, np.inf), []
    cut.run(n_jobs=2, progress=result.append)
    assert np.array_equal(cut._values.mantissa, kept._values.mantissa)
    assert (cut.log_values() == kept.log_values()).all()
    assert len(result) == 8
    assert result == sorted(result)
    assert result[-1] == 1.0


def dense_table(n_columns):
    """Return rows of copies of a column of five levels, and of others of three."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 3, (80, n_columns)), columns=range(n_columns))
    return Table.from_frame(frame.astype(str).rename(columns=str))


def test_memory_is_what_was_announced_and_a_limit_is_kept():
    """What does not fit is refused before it is allocated, with what would."""
    posterior = BranchPosterior(dense_table(12), partitions="levels")
    solve(posterior, memory_limit=5e7)  # compiled
    gc.collect()
    tracemalloc.start()
    found = solve(posterior, memory_limit=5e7)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    announced = found.cost.memory_bytes
    assert not isinstance(found, ExactPosterior)
    assert 0.5 * announced < peak < 1.2 * announced + 300_000
    with pytest.raises(TooLargeError, match="less work: fewer columns") as refused:
        solve(posterior, memory_limit=announced - 1)
    assert refused.value.needed == found.cost.words()
    fewer = BranchPosterior(dense_table(12), partitions="subsets")
    with pytest.raises(TooLargeError, match=r'less work: .*partitions="levels"'):
        solve(fewer, memory_limit=announced)


def test_boxes_are_kept_by_what_they_cost(monkeypatch):
    """All boxes say more, and are kept unless they take long and far longer."""
    posterior = BranchPosterior(dense_table(6), partitions="levels")
    assert isinstance(solve(posterior), ExactPosterior)
    monkeypatch.setattr(cost, "_SHORT", 0.0)
    monkeypatch.setattr(cost, "_DEARER", 0.1)
    held_cost = solve(posterior).cost
    assert held_cost.n_boxes < 4**6 / 2
    monkeypatch.setattr(cost, "_DEARER", 1e3)
    assert solve(posterior).cost.n_boxes == 4**6


def test_ctrl_c_is_seen_between_pieces(monkeypatch):
    """A pass over millions of boxes must not have to be waited for."""
    posterior = LeafPosterior(dense_table(12), partitions="levels")
    monkeypatch.setattr(shared, "_PIECE", 1 << 12)
    evaluate = interrupted(100, shared.evaluate_sets)
    with monkeypatch.context() as patch:
        patch.setattr(shared, "evaluate_sets", evaluate)
        with pytest.raises(KeyboardInterrupt):
            solve_by_tilts(posterior, memory_limit=5e7)
    assert evaluate.n_calls == 100


@pytest.mark.parametrize(
    "estimator", [BranchCascade, pytest.param(LeafCascade, marks=pytest.mark.slow)]
)
def test_estimators_average_over_draws(estimator, tmp_path):
    """Who fits a table of many columns must get all that a model has to say."""
    frame = pd.DataFrame(dense_table(6).codes.T).astype(str).rename(columns=str)
    model = estimator(partitions="levels", predictive="average", random_state=0, memory_limit=8e-5)
    model.fit(frame)
    assert not isinstance(model.exact_, ExactPosterior)
    assert model.exact_.cost.n_boxes < 4**6 / 2
    assert model.summary_.certificate.extent == f"{model.exact_.cost.n_boxes:,} boxes"
    assert "exact: no tree is more probable" in str(model)
    averages = model.score_samples(frame)
    assert averages.mean() > -6 * np.log(3.0)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert_allclose(loaded.score_samples(frame), averages, rtol=1e-9)
