"""Exact searches as a user meets them: when they run, what they say, keep and refuse."""

from copy import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import BranchCascade, LeafCascade
from bayescascade.methods.density.trees.exact import ExactCost, TiltedPosterior
from bayescascade.methods.density.trees.exact.passes import Passes
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.model.trace import Trace, read_trace
from tests.interrupts import interrupted
from tests.methods.density.trees.fits import DECLARED, ESTIMATORS, QUICK, people

both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.model_name)

TINY = {"memory_limit": 1e-9}  # gigabytes: nothing fits


def rows() -> pd.DataFrame:
    return people()[["sex", "crew", "age"]]


@cache
def proved(estimator):
    """Return an exact fit; treat it as read-only."""
    return estimator(random_state=0).fit(rows())


@both
def test_small_tables_are_searched_exactly_by_default(estimator):
    """Who does not know of searches should get the proof wherever it costs nothing."""
    model = proved(estimator)
    summary = model.summary_
    assert (summary.method, summary.reason, summary.certificate.gap) == ("exact", "", 0.0)
    assert summary.certificate.log_evidence == model.exact_.log_evidence
    assert model.log_posterior_ == pytest.approx(model.exact_.log_density, abs=1e-9)
    annealed = estimator(**{**QUICK, "search": "anneal", "n_steps": 2_000}).fit(rows())
    assert annealed.log_posterior_ <= model.log_posterior_ + 1e-9
    text = str(model)
    assert "exact: no tree is more probable" in text
    assert "1,000 independent draws" in text
    assert "R-hat" not in text


@both
def test_large_tables_are_sampled_and_the_print_says_why(estimator):
    """A silent change of method would be read as a proof."""
    model = estimator(**{**QUICK, "search": "auto"}, **TINY).fit(rows())
    assert model.summary_.method == "anneal+metropolis"
    assert model.summary_.reason.startswith("an exact search needs ")
    assert "boxes" in model.summary_.reason
    assert model.summary_.reason.split()[0] in str(model)
    with pytest.raises(AttributeError, match=r'exact_ needs search "exact"'):
        model.exact_  # noqa: B018
    assert not hasattr(model, "exact_")


@both
def test_the_average_is_over_all_trees(estimator):
    """It integrates to one, and is what the draws estimate."""
    model = copy(proved(estimator)).set_params(predictive="average")
    schema = model.schema_
    grid = np.indices(schema.n_levels).reshape(schema.n_columns, -1).astype(np.int32)
    averaged = np.exp(model.score_codes(grid))
    assert averaged.sum() == pytest.approx(1.0, abs=1e-9)
    draws, shares = model._drawn()
    by_draw = np.array([np.exp(draw.score_codes(grid)) for draw in draws])
    mean = shares @ by_draw
    error = np.sqrt(shares @ (by_draw - mean) ** 2 / 1000)
    assert np.all(np.abs(mean - averaged) <= 5 * error + 1e-12)
    at_best = np.exp(model.tree_.score_codes(grid))  # the broken twin: one tree
    assert np.any(np.abs(at_best - averaged) > 5 * error + 1e-12)


def test_shares_of_certain_columns_are_at_most_one(tmp_path):
    """Shares that rounding takes above 1 would make a saved model unreadable."""
    tossed = rows().assign(coin=np.arange(len(rows())) % 2)
    model = bayescascade.BranchCascade(feature_inclusion=0.5, random_state=0)
    model.fit(tossed, sample_weight=np.full(len(tossed), 10.0))
    split = model.exact_.split_probabilities
    shares = [*split.used.values(), *split.first.values(), split.none]
    assert 0 <= min(shares) <= max(shares) <= 1
    model.save(tmp_path / "model.json")
    assert bayescascade.load(tmp_path / "model.json").summary_.shares == model.summary_.shares


@both
def test_independent_draws_are_a_trace(estimator, tmp_path):
    """Notebooks and diagnose read chains; independent draws must not break them."""
    model = proved(estimator)
    assert {len(chain) for chain in model.run_.draws} == {250}
    model.run_.save_trace(tmp_path / "t.nc")
    trace = read_trace(tmp_path / "t.nc")
    assert trace.is_sample
    assert trace.acceptance == Trace.of(model.run_).acceptance == {}
    assert all(diagnostic.is_fine for diagnostic in trace.diagnostics().values())
    text = str(trace)
    assert "search exact" in text
    assert "accepted" not in text


@pytest.mark.slow
def test_numbers_of_leaves_that_no_tree_has_end_no_search():
    """Splits of three levels make odd numbers of leaves only: none of 16 says nothing of 17."""
    squares = pd.DataFrame(np.indices((3, 3, 3)).reshape(3, -1).T, columns=list("abc")).astype(str)
    squares["d"] = np.where(
        (squares["a"] == squares["b"]) & (squares["b"] == squares["c"]), "x", "y"
    )
    weights = np.where(squares["d"] == "x", 200, 7)
    model = LeafCascade(2, 0.5, partitions="levels", search="exact").fit(squares, None, weights)
    annealed = LeafCascade(2, 0.5, partitions="levels", **{**QUICK, "n_steps": 20_000})
    best = annealed.fit(squares, None, weights).log_posterior_
    assert model.tree_.n_leaves > 12  # where counting leaves begins
    assert best <= model.log_posterior_ + 1e-9


def between(posterior) -> float:
    """Return a memory limit, GB, in which one number a box fits, and one by leaves does not."""
    needs = ExactCost.of(posterior).memory_bytes, SearchPlan.of(posterior, None).memory_bytes
    return sum(needs) / 2e9


@pytest.mark.slow
def test_where_sums_by_leaves_do_not_fit_tilts_do(tmp_path):
    """The default on a large table: the same tree, evidence and print as of a small one."""
    exact = LeafCascade(**DECLARED, random_state=0).fit(people())
    model = LeafCascade(**DECLARED, random_state=0, memory_limit=between(exact.posterior_))
    model.fit(people())
    assert isinstance(model.exact_, TiltedPosterior)
    assert model.tree_.tree == exact.tree_.tree
    assert model.summary_.certificate == exact.summary_.certificate.__class__(
        0.0, f"{model.exact_.cost.n_boxes:,} boxes", pytest.approx(exact.exact_.log_evidence)
    )
    assert "exact: no tree is more probable" in str(model)
    averages = model.set_params(predictive="average").score_samples(people())
    expected = exact.set_params(predictive="average").score_samples(people())
    np.testing.assert_allclose(averages.mean(), expected.mean(), atol=0.02)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    np.testing.assert_allclose(loaded.score_samples(people()), averages, rtol=1e-9)


def test_averages_that_do_not_fit_are_those_of_the_draws():
    """A table that was fitted must be scored, too."""
    parameters = {**DECLARED, "predictive": "average", "random_state": 0}
    exact = BranchCascade(**parameters).fit(people())
    least = (ExactCost.of(exact.posterior_).memory_bytes + 1) / 1e9
    model = BranchCascade(**parameters, memory_limit=least).fit(people())
    found = model.score_samples(people())
    assert not np.array_equal(found, exact.score_samples(people()))
    del model.exact_
    np.testing.assert_array_equal(found, model.score_samples(people()))


def test_ctrl_c_between_passes_keeps_the_best_tree_and_its_gap(monkeypatch, tmp_path):
    """A user who has seen enough wants the tree, and to know how good it is."""
    exact = LeafCascade(**DECLARED, random_state=0).fit(people())
    kept = {"checkpoint": tmp_path / "passes", "memory_limit": between(exact.posterior_)}
    model = LeafCascade(**DECLARED, random_state=0, **kept)
    with monkeypatch.context() as patch:
        patch.setattr(Passes, "run", interrupted(3, Passes.run))
        model.fit(people())
    certificate = model.summary_.certificate
    assert model.log_posterior_ + certificate.gap >= exact.log_posterior_
    assert certificate.gap > 0
    assert certificate.log_evidence is None
    text = " ".join(str(model).split())
    assert "interrupted: best found so far; no tree is more probable by more than" in text
    assert "the best result only, no posterior draws" in text
    model.set_params(resume=True).fit(people())
    assert model.tree_.tree == exact.tree_.tree
    assert model.summary_.certificate.gap == 0
    assert model.run_.traces["n_leaves"].size == 1000


@pytest.mark.slow
def test_where_tilts_draw_nothing_chains_from_the_proved_tree_do(monkeypatch):
    """A tree and an evidence that are proved must not be lost because draws cannot be had."""
    exact = LeafCascade(**DECLARED, random_state=0).fit(people())
    monkeypatch.setattr("bayescascade.methods.density.trees.exact.expansion._HOPELESS", 0)
    limit = {"memory_limit": between(exact.posterior_)}
    model = LeafCascade(**DECLARED, random_state=0, n_steps=40_000, **limit).fit(people())
    assert model.exact_.draws == []
    assert model.tree_.tree == exact.tree_.tree
    certificate = model.summary_.certificate
    assert certificate.gap == 0
    assert certificate.log_evidence == pytest.approx(exact.exact_.log_evidence)
    text = " ".join(str(model).split())
    assert "exact: no tree is more probable" in text
    assert "R-hat" in text
    assert "independent draws" not in text
    shares, expected = (m.summary_.shares["leaves"] for m in (model, exact))
    likely = max(expected, key=expected.get)
    assert shares[likely] == pytest.approx(expected[likely], abs=0.1)
